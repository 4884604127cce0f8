//! A server that starts again goes on with a stream.

use std::sync::Arc;

use super::state::{Position, Replication};
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::journal::User;

#[cfg(test)]
use super::follow;

/// Entries that are removed under one lock.
const SLICE: usize = 64;

impl Replication {
    /// A server goes on with the stream whose end its snapshot shows, before it serves any client. It goes on as a replica of
    /// the same primary, or as a primary under another name, which replicas can follow that have the stream up to there.
    pub fn go_on_from(&self, instance: &Arc<Instance>, position: Position, is_replica: bool) {
        let alone = instance.exclusive.already_stopped();
        let mut state = self.state();
        let Position { id, offset, db } = position;
        #[cfg(test)]
        let db = if follow::tests::is_broken(follow::tests::Defect::DatabaseIsForgotten) { 0 } else { db };
        let db = (is_replica && db < instance.databases().len()).then_some(db);
        // The first PING is due a whole period from now: replicas may have all that there is.
        (state.has_backlog, state.alone_since, state.pinged_at) = (true, now_ms(), now_ms());
        if is_replica {
            state.id = id;
        } else {
            state.second = Some((id, offset));
        }
        instance.journal.turn_on(User::Replicas, &alone);
        instance.journal.begin_at(offset, db, &alone);
        instance.journal.keep_backlog(instance.config.uint(settings::REPL_BACKLOG_SIZE));
        drop(state);
        if !is_replica {
            expire(instance);
        }
    }
}

/// Removes keys that had expired before the server started. Replicas that go on with the stream are told so.
fn expire(instance: &Instance) {
    let (now, mut removed) = (now_ms(), 0);
    for database in instance.databases().iter().filter(|database| database.has_deadlines()) {
        for shard in 0..database.shards() {
            loop {
                let expired = database.expire_shard(shard, now, SLICE);
                removed += expired.entries.len() as u64;
                if expired.is_done {
                    break;
                }
            }
        }
    }
    instance.snapshots.expired_behind_load(removed);
}
