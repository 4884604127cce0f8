//! HTTP/3 (RFC 9114) from the client's side, on QUIC by quinn-proto, which has neither sockets nor a clock: datagrams in,
//! datagrams out.
//!
//! A [`Judge`](super::h2::Judge) says what an answer means, as with HTTP/2.

mod answer;
mod connection;
mod control;
mod frame;
pub(super) mod qpack;
mod quic;
mod table;

pub(super) use connection::{Connection, Request};
pub(super) use quic::Dialler;
