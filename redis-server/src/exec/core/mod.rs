//! All commands share this room: the instance with the state of its services, a worker, and a call's view of both.
//!
//! Data stands here, and work that needs no other room. Each service defines its state in its `state.rs`, and works in the rooms above.

mod call;
pub mod client_memory;
pub mod clock;
mod ctx;
mod instance;
pub mod later;
pub mod links;
pub mod loading;
pub mod oom_score;
pub(crate) mod pace;
pub mod peer_tls;
pub mod peers;
pub mod priority;
pub mod resolve;
pub mod rounds;
pub mod slow_calls;
pub(in crate::exec) mod transport;
mod worker;
pub mod workers;

pub use call::{Block, Call, InVain, Ready};
pub use ctx::{CommandTable, Ctx, Gather, Handler, Random, RunHere};
pub use instance::{Instance, Pause, Renamed, renamed};
pub use worker::{Scratch, Worker};
