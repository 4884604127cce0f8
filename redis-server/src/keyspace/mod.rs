//! The keyspace: sharded hash tables, their locks, expiry, and the clients that wait for keys.
//!
//! A [`Database`] is a DashMap reached by its shards. Commands never lock: [`Database::lock`] takes the locks of all
//! declared keys in ascending order and hands out a [`View`], in which handlers find, change and remove entries.

mod buffer;
mod changes;
mod cut;
mod database;
mod entry;
mod evict;
mod expire;
mod fields;
mod held;
mod hidden;
mod interest;
mod key;
mod loan;
mod order;
mod parts;
mod queue;
mod reaper;
mod shards;
mod slot;
mod slots;
mod table;
mod usage;
mod value;
mod view;
mod watch;

#[cfg(test)]
mod tests;

pub use buffer::{Buffer, has_heavy_replies};
pub use changes::{Changed, Dropped};
pub use cut::Walk;
pub use database::Database;
pub use entry::Entry;
pub use evict::Spot;
pub use held::{forget_holds, longest_hold};
pub use interest::{Waiter, Watched};
pub use key::{Access, Happening, Key};
pub use parts::{Cut, Expired, Saver};
pub use reaper::{Garbage, Reaper, Removed};
pub use slot::Slot;
pub use table::BUCKET;
pub(crate) use usage::begin_call;
pub use usage::{Frequency, Usage};
pub use value::{Object, StrRef, Value, ValueRef};
pub use view::View;
