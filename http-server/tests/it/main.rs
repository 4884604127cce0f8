//! Tests of the whole server over sockets: conformance, faults, genuine clients.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod autobahn;
mod by_hyper;
mod clients;
mod endings;
mod faults;
mod features;
mod files;
mod flags;
mod http1;
mod http2;
mod http3;
mod logged;
mod methods;
mod outside;
mod probe;
mod redis;
mod routes;
mod shutdown;
mod slow_readers;
mod smuggling;
mod strangers;
mod streams;
mod support;
mod trickles;
mod websocket;
mod workers;
