//! A node of a cluster: the owners of slots, and the errors for clients that ask the wrong node.
//!
//! A slot is a shard of database 0, so the thread that has locked its keys decides about them alone. A call is judged on
//! admission, where the genuine server does so, among all other reasons to refuse it. It is judged again under its locks, because
//! slots leave and keys move in between. For nearly all calls the second judgement is one bit for each key.

mod clients;
mod file;
mod lost;
mod moving;
mod node;
mod redirect;
mod saver;
mod state;

pub use moving::Landing;
pub use node::{DISABLED, settings_of};
pub(crate) use redirect::{port_for, preferred, redirect};
pub use state::{Cluster, Line, bus_port, replication_port};
