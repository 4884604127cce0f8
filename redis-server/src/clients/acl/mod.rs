//! Access control lists: the users' permissions to run commands on keys and channels, and in databases
//! (<https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/>).
//!
//! A [`User`] is immutable: a change makes another one. The [`Table`] holds an [`Account`] for every name, which names the
//! user in force, and a version that grows with every change. A client keeps its account and, as long as the version is
//! the same, its user ([`Identity`]): for one that may do everything, a command costs one comparison.

mod certificate;
mod commands;
mod file;
mod identity;
mod log;
mod password;
mod pattern;
mod rule;
mod selector;
mod table;
mod user;

pub use certificate::{NameField, certificate_names};
pub use file::{FileError, LoadError};
pub use identity::Identity;
pub use log::{Context, Entry, Log, Logged, Reason};
pub use password::PasswordHash;
pub use pattern::{KeyPattern, Permission};
pub(crate) use rule::has_spaces;
pub use rule::{Defaults, RuleError, SetError};
pub use selector::{Asked, Denied, Place, Selector};
pub use table::{Account, Change, Table};
pub use user::User;
