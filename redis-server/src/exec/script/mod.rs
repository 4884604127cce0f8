//! Scripts and functions in Lua 5.1 (<https://redis.io/docs/latest/develop/programmability/>).
//!
//! One script runs at a time, alone with the data (see [`Exclusive`](crate::exec::gate::Exclusive)), on a stack of its own. A script that
//! takes longer than `busy-reply-threshold` is interrupted from time to time: its worker then answers other clients with BUSY, and accepts
//! `SCRIPT KILL`. There are two Lua states, for EVAL and for functions, which all workers use in turn.
//!
//! `raw` holds what has no safe form: functions that raise Lua errors, and the way of a call through Lua's stack.

mod api;
mod call;
mod engine;
pub mod lib;
mod library;
mod lock;
mod raw;
mod sha;
mod shebang;
mod state;
mod status;
mod vm;

pub use engine::{Cache, Engine};
pub use library::{Function, Libraries, Library};
pub use sha::{SHA_LEN, Sha, sha1};
pub use shebang::ScriptFlags;
pub use state::Scripts;
pub use status::Figures;
