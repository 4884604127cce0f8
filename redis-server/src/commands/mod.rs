//! What each command does: one file per family, ending in its table.

mod bitmap;
mod connection;
mod databases;
mod generic;
mod hash;
mod limits;
mod list;
mod pubsub;
mod random;
mod scan;
mod server;
mod set;
mod sorted_set;
mod store;
mod string;
mod transaction;

use crate::client::Client;
use crate::command::Family;
use crate::worker::Worker;

/// Every family.
pub const FAMILIES: &[&Family] = &[
    &string::FAMILY,
    &bitmap::FAMILY,
    &generic::FAMILY,
    &databases::FAMILY,
    &hash::FAMILY,
    &list::FAMILY,
    &set::FAMILY,
    &sorted_set::FAMILY,
    &pubsub::FAMILY,
    &transaction::FAMILY,
    &connection::FAMILY,
    &server::FAMILY,
];

/// Undoes what a session has left behind, at its end or at RESET: watched keys and subscriptions.
pub fn leave(worker: &Worker, client: &mut Client) {
    unwatch(worker, client);
}

/// Forgets the watched keys.
fn unwatch(worker: &Worker, client: &mut Client) {
    for (db, key) in client.watching.drain(..) {
        worker.instance.database(db).watched.remove(&key, &client.watched);
    }
    client.watched = crate::db::Watched::default();
}
