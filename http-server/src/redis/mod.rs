//! A Redis client for servers: one connection for each worker thread, which pipelines all that its requests ask.
//!
//! It shares the wire with our Redis server and nothing else, except that a server in this process is called directly.
//!
//! From the wire to the caller: `wire` and `reply` (bytes) → `mux` (which answer is whose) → `session` (a connection's
//! task, made by `connect`) → `client` (what a request handler calls). `subscribe` has a connection of its own, `budget`
//! bounds what all hold.

pub(crate) mod budget;
mod client;
mod connect;
#[cfg(feature = "embedded-redis")]
mod embedded;
mod failure;
pub(crate) mod mux;
pub(crate) mod reply;
mod session;
mod settings;
mod subscribe;
pub(crate) mod wire;

pub use client::{Answer, Redis};
pub use connect::TlsError;
pub use failure::Failure;
pub(crate) use mux::{Come, Ticket};
pub use settings::{ParseTargetError, Place, Server, Settings, Target};
pub use subscribe::{Event, Message, Subscription, Topic};
