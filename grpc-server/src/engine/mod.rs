//! Calls, on the connections of [`mod@serve`]: an answer that is ready at once costs no task and no wake-up.

mod admit;
mod answers;
mod call;
mod connect;
mod inbound;
mod metadata;
mod origin;
mod service;
mod stats;
mod timeout;
mod web;
mod worker;

pub use connect::ConnectGet;
pub use inbound::Inbound;
pub use service::serve;
