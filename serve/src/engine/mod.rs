//! Connections: HTTP/1.1 by our own loop, HTTP/2 by our own engine, HTTP/3 by quinn and h3, all answered by one router.
//!
//! The HTTP/1.1 loop reads once, handles every complete request of what it read, and writes once. A connection that is
//! idle holds no buffer; its time-out is an entry in a table that is swept, not a timer.

mod app;
mod by_hyper;
mod clock;
mod conn;
mod exchange;
mod find;
mod gathered;
mod guard;
mod http2;
#[cfg(feature = "http3")]
mod http3;
#[cfg(not(feature = "http3"))]
#[path = "no_http3.rs"]
mod http3;
mod later;
mod output;
mod request_line;
mod sending;
mod sending_file;
mod service;
mod state;
mod stats;
mod upgrade;
mod upload;
mod watch;
pub(crate) mod websocket;
mod wire;
mod worker;

pub use app::{App, End, Keepalive, Origin, Rules};
pub use http2::Session;
pub use request_line::RequestLine;
pub use sending::Endless;
pub use service::{serve, start};
pub use stats::{Count, Stats};
pub use upload::BodyError;
pub use worker::Worker;
