//! What a command is: its row in the table, its arguments, and what its handler works with.
//!
//! A handler is a plain synchronous function. By the time it runs, the dispatcher has checked arity and permission and
//! has locked the keys that the row declares; the handler reads [`Args`], works on [`Ctx::db`] and appends to
//! [`Ctx::reply`].

mod args;
mod flags;
mod keys;
mod row;

pub use crate::exec::{Block, Ctx, Event, InVain, Ready};
pub use args::{Args, OwnedArgs};
pub use flags::{Categories, Flags, acl};
pub use keys::{Begin, Find, KeySpec, Use, keynum, numkeys, optional, read, reads, update, write, writes};
pub use row::{Command, Family, Footprint, Handler, KeyPositions, KeyUses, Result, cmd, container, sub};
