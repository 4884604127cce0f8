//! A server that starts again goes on with a stream.

use super::{Position, Replication};
use crate::config::settings;
use crate::exec::clock::now_ms;
use crate::exec::instance::Instance;
use crate::journal::User;

impl Replication {
    /// A server goes on with the stream whose end its snapshot shows, before it serves anybody: as a replica of the same, or as
    /// a primary under another name, whom those can follow who have the stream up to there.
    pub fn go_on_from(&self, instance: &Instance, position: Position, is_replica: bool) {
        let mut state = self.state();
        let Position { id, offset, db } = position;
        let db = (is_replica && db < instance.databases().len()).then_some(db);
        (state.has_backlog, state.alone_since) = (true, now_ms());
        if is_replica {
            state.id = id;
        } else {
            state.second = Some((id, offset));
        }
        instance.journal.set_on(User::Replicas, true);
        instance.journal.begin_at(offset, db);
        instance.journal.keep_backlog(instance.config.uint(settings::REPL_BACKLOG_SIZE));
    }
}
