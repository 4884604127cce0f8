//! Ends transactions, and forgets the keys that a client watches.

use std::sync::atomic::Ordering::Relaxed;

use crate::clients::client::{Client, count, flag};
use crate::exec::core::Instance;
use crate::protocol::error::Error;

/// Ends the transaction that is being put together, if any, and forgets the watched keys.
pub(crate) fn discard_transaction(instance: &Instance, client: &mut Client) {
    client.multi = None;
    client.shared.set_flag(flag::MULTI, false);
    client.shared.counts[count::MULTI].store(0, Relaxed);
    client.shared.queued.store(0, Relaxed);
    forget_watched(instance, client);
}

/// Forgets the watched keys.
pub(crate) fn forget_watched(instance: &Instance, client: &mut Client) {
    if client.watching.is_empty() {
        return;
    }
    for (db, key) in std::mem::take(&mut client.watching) {
        let database = instance.database(db);
        database.unwatch(&database.key(&key), &client.shared.watched);
    }
    // No database holds the mark any more, so it stays clear.
    client.shared.watched.clear();
    client.watch_until = None;
    note_watched(client);
}

/// How Valkey says that a command is not for transactions.
pub(crate) fn not_inside(name: &str) -> Error {
    Error::Message(format!("ERR Command '{name}' not allowed inside a transaction"))
}

/// Shows others the number of watched keys.
pub(crate) fn note_watched(client: &Client) {
    client.shared.counts[count::WATCHED].store(client.watching.len() as u32, Relaxed);
}
