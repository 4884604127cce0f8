//! The runtime from outside: real sockets on loopback.

mod connections;
mod support;
