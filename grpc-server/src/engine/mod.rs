//! Connections and calls: HTTP/2 by [http2], driven so that what is ready at once costs no task and no wake-up.

mod admit;
mod call;
mod conn;
mod h1;
mod inbound;
mod link;
mod origin;
mod pipe;
mod requests;
mod service;
mod stats;
mod timeout;
mod watch;
mod web;
mod wire;
mod worker;

pub use inbound::Inbound;
pub use service::serve;
