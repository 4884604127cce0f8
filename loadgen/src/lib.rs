//! One load generator for Redis, HTTP, WebSocket, gRPC and ECHONET Lite.
//!
//! A run is a [`Load`] (how many connections, how fast, how long) of a [`Protocol`](codec::Protocol) (what is asked, and
//! what a right answer looks like). [`run`] drives it and gives an [`Outcome`](record::Outcome): latencies from the
//! *intended* time of every request, failures by kind with examples, the generator's and the server's CPU time.
//!
//! There is one timing loop ([`session`]) and one set of statistics ([`record`]) for all protocols. It shares no code with
//! the servers that it judges.

mod blocking;
pub mod cgroup;
pub mod cli;
mod clock;
mod cluster;
pub mod codec;
pub mod compare;
pub mod flow;
pub mod front;
pub mod load;
mod number;
pub mod objective;
pub mod output;
pub mod pace;
pub mod process;
pub mod record;
pub mod scenario;
pub mod schema;
pub mod session;
pub mod watch;
pub mod workload;

pub use clock::{Clock, Nanos};
pub use load::Load;
pub use scenario::Scenario;
pub use session::run;
