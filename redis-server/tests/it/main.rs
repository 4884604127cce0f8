//! Tests of the whole server: conversations, genuine clients, hostile neighbours, limits.

mod clients;
mod support;
mod transcripts;
