//! Tests of the whole server over sockets.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod redis;
mod routes;
