//! Parts that servers on the crates `http` and `http-body` need beside the engine (feature `http`): a
//! [`Connection`](crate::Connection) that one task drives and others answer on, requests as `http` has them, and their
//! bodies.
//!
//! Still there is no clock and no runtime; tasks are known by their wakers, sockets by tokio's traits.

mod arrivals;
mod body;
mod connection;
mod link;
#[cfg(any(test, feature = "model"))]
#[doc(hidden)]
pub mod model;
mod pipe;
mod requests;
#[cfg(test)]
mod tests;

pub use arrivals::{Arrivals, TooLarge};
pub use body::{BodyError, Incoming, Pieces};
pub use connection::Shared;
pub use link::{Answers, Buffers, Ended, Link, TURN_TASKS};
pub use requests::{Requests, fields, join_cookies};
