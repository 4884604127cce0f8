//! HTTP/2 by our own engine, driven as the HTTP/1.1 loop is: one read, all requests of what it brought, one write. An
//! answer that is ready at once costs no task.

mod conn;
mod later;
mod plain;
mod session;
mod stream;

pub(super) use conn::{Begun, First, serve, upgraded};
pub(super) use plain::Heads;
pub use session::Session;
pub(super) use stream::begin;
