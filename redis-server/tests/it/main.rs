//! Tests of the whole server: conversations, genuine clients, hostile neighbours, limits.

mod support;
mod transcripts;
