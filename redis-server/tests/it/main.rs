//! Tests of the whole server: conversations, genuine clients, hostile neighbours, limits.

mod blocking;
mod clients;
mod support;
mod transcripts;
