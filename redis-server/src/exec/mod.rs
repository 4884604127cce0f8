//! How commands run: the gate, the locks of a window, transactions, blocked clients, scripts, eviction.

pub mod blocking;
pub mod client_eviction;
mod ctx;
pub mod dispatch;
pub mod eviction;
pub mod exclusive;
pub mod instance;
pub mod peers;
pub(crate) mod pipeline;
pub mod script;
pub mod session;
pub mod worker;
pub mod workers;

pub use ctx::{Block, Ctx, Event, InVain, Ready};
