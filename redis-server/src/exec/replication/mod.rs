//! Replication (<https://redis.io/docs/latest/operate/oss_and_stack/management/replication/>): the replicas of this server, and
//! its primary.
//!
//! A replica asks by PSYNC for the stream of changes from some offset on. If the stream is the one that it knows, by its
//! **replication id**, and the journal still has what comes there, it goes on (**partial** synchronization). Otherwise it gets a snapshot first,
//! and the stream from the snapshot's cut on (**full** synchronization). One snapshot serves all who wait for one.
//!
//! A connection that has become a replica's takes what [`Link`] gives it, which knows no socket. A server that follows another
//! has a thread for that (`follow`). It passes on what it is sent, byte for byte, so that its own replicas have
//! the same stream, at the same offsets, under the same id; and when it is promoted, all who followed can follow it.

mod failover;
mod farewell;
mod follow;
mod link;
mod local;
mod restart;
mod state;
mod sync;
mod wait;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use crate::clients::client::{ClientShared, Follower, SyncRequest, flag};
use crate::command::Args;
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::gate::{Alone, Still};
use crate::journal::User;
use state::{State, new_id};

pub use failover::FailoverRequest;
pub use link::{Link, Next, Unexpected};
pub use state::{
    Copies, FailedSyncs, FailoverStage, Figures, Ids, LinkStage, Position, Primary, Replica, Replication, Stage,
};

impl Replication {
    /// A connection has become a replica's.
    pub fn join(&self, instance: &Arc<Instance>, client: &Arc<ClientShared>, follower: Follower, now: u64) -> Link {
        let mut state = self.state();
        let replica = Arc::new(Replica {
            client: Arc::clone(client),
            is_told: follower.request != Some(SyncRequest::Full),
            follower,
            asked_at: now,
            stage: AtomicU8::new(Stage::Waits as u8),
            acknowledged: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            acknowledged_at: AtomicU64::new(now),
            feed: Mutex::default(),
            reader: OnceLock::new(),
            end: AtomicU64::new(u64::MAX),
        });
        // A replica whose connection is to end keeps nothing of the stream for others.
        for gone in state.replicas.values().filter(|other| other.client.has_flag(flag::KILLED)) {
            gone.reader.get().into_iter().for_each(|&reader| instance.journal.let_go(reader));
        }
        let resumed = match &replica.follower.request {
            Some(SyncRequest::Partial(id, offset)) => self.resume(instance, &state, &replica, id, *offset),
            Some(SyncRequest::Full) | None => None,
        };
        state.replicas.insert(client.id, Arc::clone(&replica));
        drop(state);
        let (id, addr) = (client.id, &client.addr);
        match &resumed {
            Some(_) => tracing::info!(id, addr, "Partial resynchronization request accepted"),
            None => tracing::info!(id, addr, "Full resync requested"),
        }
        Link::new(Arc::clone(instance), replica, resumed)
    }

    /// The start of the stream for a replica that can go on where it was.
    fn resume(
        &self,
        instance: &Arc<Instance>,
        state: &State,
        replica: &Replica,
        id: &str,
        offset: i64,
    ) -> Option<link::Resumed> {
        let known = |offset: u64| {
            #[cfg(test)]
            if follow::tests::is_broken(follow::tests::Defect::OldNamesAreGoodForEver) {
                return state.second.as_ref().is_some_and(|(second, _)| second == id) || id == state.id;
            }
            id.eq_ignore_ascii_case(&state.id)
                || state
                    .second
                    .as_ref()
                    .is_some_and(|(second, until)| id.eq_ignore_ascii_case(second) && offset <= *until)
        };
        // Offsets begin with 1 there.
        let offset = u64::try_from(offset - 1).ok();
        let client = Arc::clone(&replica.client);
        let reader = offset
            .filter(|&offset| state.has_backlog && known(offset))
            .and_then(|offset| instance.journal.reader_from(offset, move || client.wake()));
        match reader {
            Some(reader) => {
                self.figures.partial.fetch_add(1, Relaxed);
                replica.read_by(&reader);
                // Before others see it: a snapshot's cut takes all who wait.
                replica.set_stage(Stage::Online);
                let id = if replica.follower.knows_second_ids { format!(" {}", state.id) } else { String::new() };
                Some(link::Resumed { head: format!("+CONTINUE{id}\r\n"), reader })
            }
            None => {
                if id != "?" {
                    self.figures.refused.fetch_add(1, Relaxed);
                }
                None
            }
        }
    }

    /// Where the stream is, if there is one.
    pub fn position(&self, instance: &Instance, _: &Still) -> Option<Position> {
        self.position_of_locked(instance)
    }

    /// [`Replication::position`] for a caller that has locked all shards, [between units](crate::exec::gate::Units).
    pub fn position_of_locked(&self, instance: &Instance) -> Option<Position> {
        let (state, db) = (self.state(), instance.journal.database());
        state.has_backlog.then(|| Position {
            id: state.id.clone(),
            offset: instance.journal.offset(),
            db: db.unwrap_or(0),
        })
    }

    fn database(&self, instance: &Instance) -> usize {
        let db = usize::try_from(self.database.swap(0, Relaxed)).unwrap_or(0);
        if db < instance.databases().len() { db } else { 0 }
    }

    /// Removes keys whose time is over and of which the primary knows nothing; the caller is at work with the data.
    pub fn expire_local(&self, instance: &Instance, now: u64) {
        self.local.expire(instance.databases(), now);
    }

    /// Follows the primary that the configuration names.
    pub fn begin(&self, instance: &Arc<Instance>, still: &Still) {
        let target = match &instance.config.words(settings::REPLICAOF)[..] {
            [host, port] => {
                let port = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok());
                port.map(|port| (String::from_utf8_lossy(host).into_owned(), port))
            }
            _ => instance.cluster.primary(&instance.config),
        };
        if target.is_some() {
            self.follow(instance, target, still);
            let mut state = self.state();
            let knows_stream = state.has_backlog;
            if let Some(primary) = &mut state.primary {
                primary.had_stream = knows_stream;
            }
        }
    }

    /// Whether this server is a replica when it starts: by its configuration, or in its cluster.
    pub fn starts_as_replica(instance: &Instance) -> bool {
        !instance.config.words(settings::REPLICAOF).is_empty() || instance.cluster.primary(&instance.config).is_some()
    }

    /// Follows another server from now on, or none any more.
    pub fn follow(&self, instance: &Arc<Instance>, target: Option<(String, u16)>, still: &Still) {
        let Some(generation) = self.set_primary(instance, target, still) else { return };
        if let Err(error) = instance.set_oom_score() {
            tracing::warn!("oom-score-adj cannot be set for the new role: {error}");
        }
        if self.is_replica() {
            follow::begin(instance, generation);
        }
    }

    /// Sets the primary that this server follows from now on. Returns the number of this choice, if it is another primary.
    fn set_primary(&self, instance: &Instance, target: Option<(String, u16)>, still: &Still) -> Option<u64> {
        let mut state = self.state();
        if state.follows(target.as_ref()) {
            return None;
        }
        state.generation += 1;
        let generation = state.generation;
        let (now, was_replica) = (now_ms(), state.primary.is_some());
        state.primary.iter().for_each(Primary::hang_up);
        // They follow again, under whatever name the stream has then.
        let end = instance.journal.offset();
        for replica in state.replicas.values() {
            replica.end.store(end, Relaxed);
            replica.client.kill();
        }
        state.primary = target.map(|(host, port)| Primary::new(host, port, generation, now));
        let follows = state.primary.is_some();
        self.local.forget();
        self.is_replica.store(follows, Relaxed);
        server_runtime::set_log_role(if follows { 'S' } else { 'M' });
        instance.journal.follow(follows, still);
        if was_replica && !follows {
            // A replica that had the stream up to here can go on from here.
            let id = std::mem::replace(&mut state.id, new_id());
            state.second = Some((id, instance.journal.offset()));
            state.alone_since = now;
        }
        Some(generation)
    }

    /// The name of the stream, if others can go on with it.
    pub fn name_of_stream(&self, instance: &Instance) -> Option<String> {
        if !instance.journal.is_on_for(User::Replicas) {
            return None;
        }
        let state = self.state();
        state.has_backlog.then(|| state.id.clone())
    }

    /// The stream that is here, and its end, where it is worth going on with.
    fn known(&self, instance: &Instance) -> Option<(String, u64)> {
        let state = self.state();
        state.has_backlog.then(|| (state.id.clone(), instance.journal.offset()))
    }

    /// The stream of the primary of this generation goes on where ours ends; it may be called otherwise now. Returns whether that primary is
    /// still followed.
    fn go_on_as(&self, instance: &Instance, id: Option<String>, generation: u64) -> bool {
        let mut state = self.state();
        if state.primary_of(generation).is_none() {
            return false;
        }
        if let Some(id) = id.filter(|id| *id != state.id) {
            let old = std::mem::replace(&mut state.id, id);
            state.second = Some((old, instance.journal.offset()));
            state.replicas.values().for_each(|replica| replica.client.kill());
        }
        true
    }

    /// The stream is kept for as long as `repl-backlog-size` says now.
    pub fn resize_backlog(&self, instance: &Instance) {
        if self.state().has_backlog {
            instance.journal.keep_backlog(instance.config.uint(settings::REPL_BACKLOG_SIZE));
        }
    }

    /// The data is the primary's now: the stream begins here.
    fn begin_as(&self, instance: &Instance, id: &str, offset: u64, alone: &Alone) {
        let db = self.database(instance);
        self.local.forget();
        let mut state = self.state();
        state.replicas.values().for_each(|replica| replica.client.kill());
        (state.id, state.second, state.has_backlog) = (id.to_owned(), None, true);
        instance.journal.turn_on(User::Replicas, alone);
        instance.journal.begin_at(offset, Some(db), alone);
        instance.journal.keep_backlog(instance.config.uint(settings::REPL_BACKLOG_SIZE));
    }

    /// The data is nobody's any more: no stream goes on with it.
    fn forget(&self, instance: &Instance, _: &Alone) {
        let mut state = self.state();
        state.replicas.values().for_each(|replica| replica.client.kill());
        (state.id, state.second, state.has_backlog) = (new_id(), None, false);
        instance.journal.keep_backlog(0);
    }

    /// From here on the stream is written down, and kept. Returns its name, and its end.
    fn begin_stream(&self, instance: &Instance, alone: &Alone) -> (String, u64) {
        let mut state = self.state();
        if !state.has_backlog {
            // The old name cannot vouch for a stream of which nothing was kept.
            (state.id, state.second, state.has_backlog) = (new_id(), None, true);
            // The first PING is due a whole period from now, not in the middle of what is sent first.
            state.pinged_at = now_ms();
            instance.journal.turn_on(User::Replicas, alone);
        }
        instance.journal.keep_backlog(instance.config.uint(settings::REPL_BACKLOG_SIZE));
        // A primary's stream goes on in the database in which it is, which the snapshot says.
        let (offset, _) = instance.journal.reset_db(alone);
        (state.id.clone(), offset)
    }

    /// Runs some times a second: begins a snapshot for replicas that wait, sends replicas a sign of life, and drops a backlog
    /// that no replica needs.
    pub fn run(&self, instance: &Arc<Instance>, now: u64) {
        sync::end_if_useless(instance);
        sync::begin_if_due(instance, now);
        self.tick(instance, now);
    }

    /// Sends replicas a sign of life, and drops a backlog that no replica needs.
    fn tick(&self, instance: &Instance, now: u64) {
        let mut state = self.state();
        let ping = instance.config.uint(settings::REPL_PING_REPLICA_PERIOD) * 1000;
        if self.is_replica() {
            // Its primary says what is in the stream.
        } else if state.replicas.is_empty() {
            let ttl = instance.config.uint(settings::REPL_BACKLOG_TTL) * 1000;
            if state.has_backlog && ttl > 0 && now.saturating_sub(state.alone_since) > ttl {
                state.has_backlog = false;
                instance.journal.turn_off(User::Replicas);
                instance.journal.keep_backlog(0);
                tracing::info!("Replication backlog freed after {} seconds without connected replicas.", ttl / 1000);
            }
        } else if instance.exclusive.is_busy() {
            // A server that ends has saved where the stream is.
        } else if state.has_backlog && now.saturating_sub(state.pinged_at) >= ping && instance.paused(now).is_none() {
            state.pinged_at = now;
            instance.journal.tell_replicas(&[b"PING"]);
        }
        drop(state);
        self.wake_all();
    }

    /// Tells replicas of a call that changes no data, if there are some.
    pub fn tell(&self, instance: &Instance, args: Args<'_>) {
        if instance.journal.is_on_for(User::Replicas) && !self.is_replica() {
            instance.journal.tell_replicas(&args.iter().collect::<Vec<_>>());
        }
    }
}

#[cfg(test)]
mod tests;
