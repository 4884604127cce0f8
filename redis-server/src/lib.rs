//! A Redis-compatible server.
