//! What servers on the crates `http` and `http-body` need beside the engine (feature `http`): a [`Connection`](crate::Connection)
//! that one task drives and others answer on, requests as `http` has them, and their bodies.
//!
//! Still there are no sockets, no clock and no runtime; tasks are known by their wakers.

mod arrivals;
mod body;
mod connection;
mod requests;

pub use arrivals::Arrivals;
pub use body::{BodyError, Incoming, Pieces};
pub use connection::Shared;
pub use requests::fields;
