//! How commands run: admission, the locks of a window, transactions, blocked clients, scripts, eviction.

pub mod aof;
pub mod blocking;
pub mod client_eviction;
pub mod client_list;
pub mod clock;
pub mod cluster;
mod ctx;
pub mod dispatch;
pub mod event_loop;
pub mod eviction;
pub mod gate;
pub mod instance;
pub mod later;
pub mod loading;
pub mod oom_score;
mod pace;
pub(crate) mod panics;
pub mod peer_tls;
pub mod peers;
pub mod permission;
pub(crate) mod pipeline;
pub mod priority;
mod replay;
pub mod replication;
pub mod script;
pub mod search;
pub mod session;
pub mod slow;
pub mod snapshot;
pub mod tracking;
pub mod transaction;
pub mod window;
pub mod worker;
pub mod workers;

pub use crate::clients::notifications::Event;
pub use ctx::{Block, CommandTable, Ctx, Handler, InVain, Random, Ready};
