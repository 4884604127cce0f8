//! Connections and calls: HTTP/2 by [h2], driven so that what is ready at once costs no task and no wake-up.

mod call;
mod conn;
mod inbound;
mod service;
mod worker;

pub use inbound::Inbound;
pub use service::serve;
