//! Connections and calls: HTTP/2 by [http2], driven so that an answer that is ready at once costs no task and no
//! wake-up.

mod admit;
mod answers;
mod call;
mod conn;
mod connect;
mod h1;
mod inbound;
mod metadata;
mod origin;
mod rest;
mod service;
mod stats;
mod strict;
mod timeout;
mod watch;
mod web;
mod wire;
mod worker;

pub use connect::ConnectGet;
pub use inbound::Inbound;
pub use service::serve;
