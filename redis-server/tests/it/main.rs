//! Tests of the whole server: conversations, genuine clients, hostile neighbours, limits.

mod atomicity;
mod blocking;
mod clients;
mod limits;
mod model;
mod support;
mod transcripts;
