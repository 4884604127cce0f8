//! What all commands share: the instance with the state of its services, a worker, and a call's view of both.
//!
//! Here stand data and what needs no other room. The services' state is defined in their `state.rs`; their work is done above.

mod call;
pub mod client_memory;
pub mod clock;
mod ctx;
pub mod event_loop;
mod instance;
pub mod later;
pub mod loading;
pub mod oom_score;
pub(crate) mod pace;
pub mod peer_tls;
pub mod peers;
pub mod priority;
pub mod resolve;
pub mod slow_calls;
mod worker;
pub mod workers;

pub use call::{Block, Call, InVain, Ready};
pub use ctx::{CommandTable, Ctx, Handler, Random};
pub use instance::{Instance, Pause, Renamed, renamed};
pub use worker::{Scratch, Worker};
