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
mod sync;
mod wait;

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use failover::{FailoverRequest, FailoverStage};
pub(in crate::exec) use follow::Transport;
pub use follow::{FailedSyncs, LinkStage, Primary};
pub use link::{Link, Next, Unexpected};
pub use wait::Copies;

use crate::clients::client::{ClientShared, Follower, SyncRequest, flag};
use crate::command::Args;
use crate::config::{Config, settings};
use crate::exec::clock::now_ms;
use crate::exec::gate::Alone;
use crate::exec::gate::Still;
use crate::exec::instance::Instance;
use crate::journal::{Reader, ReaderId, User};

/// The replicas of this server, and its primary.
#[derive(Debug)]
pub struct Replication {
    state: Mutex<State>,
    is_replica: AtomicBool,
    /// The database of the next command behind the snapshot that was loaded last.
    database: AtomicU64,
    waiting: Mutex<Vec<wait::Wait>>,
    /// Those whom the snapshot in the making is sent to.
    receivers: Mutex<sync::Receivers>,
    local: local::LocalKeys,
    /// The figures for INFO.
    pub figures: Figures,
}

/// INFO's figures of synchronizations.
#[derive(Debug, Default)]
pub struct Figures {
    /// Full ones.
    pub full: AtomicU64,
    /// Partial ones.
    pub partial: AtomicU64,
    /// Full ones of replicas that had asked for a partial one.
    pub refused: AtomicU64,
    /// Bytes that have come from this server's primary.
    pub received: AtomicU64,
    /// Bytes that replicas were sent.
    pub sent: AtomicU64,
}

impl Figures {
    /// Counts anew (`CONFIG RESETSTAT`).
    pub fn reset(&self) {
        let Self { full, partial, refused, received, sent } = self;
        [full, partial, refused, received, sent].into_iter().for_each(|figure| figure.store(0, Relaxed));
    }

    /// Bytes that have come from this server's primary, and that replicas were sent.
    pub fn traffic(&self) -> (u64, u64) {
        (self.received.load(Relaxed), self.sent.load(Relaxed))
    }
}

#[derive(Debug)]
struct State {
    /// Names the stream.
    id: String,
    /// The name that it had before, up to this offset.
    second: Option<(String, u64)>,
    has_backlog: bool,
    replicas: BTreeMap<u64, Arc<Replica>>,
    /// Since when there has been none, in milliseconds of Unix time.
    alone_since: u64,
    /// When replicas were sent a PING last.
    pinged_at: u64,
    /// The primary that this server follows.
    primary: Option<Primary>,
    /// How often that has changed.
    generation: u64,
    failover: failover::Failover,
}

impl State {
    /// Whether this server follows `target`, or none if that is none.
    fn follows(&self, target: Option<&(String, u16)>) -> bool {
        let primary = self.primary.as_ref().map(|primary| (&primary.host, primary.port));
        primary == target.map(|(host, port)| (host, *port))
    }
}

/// How far a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// There is no snapshot for it yet.
    Waits,
    /// One is made, of which it will be sent the file.
    Promised,
    /// It is sent a snapshot as it is made.
    Streams,
    /// It is sent a snapshot's file.
    Receives,
    /// It gets the stream.
    Online,
}

impl Stage {
    /// As INFO and ROLE call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waits | Self::Promised | Self::Streams => "wait_bgsave",
            Self::Receives => "send_bulk",
            Self::Online => "online",
        }
    }
}

/// A replica, as others see it.
#[derive(Debug)]
pub struct Replica {
    /// Its connection.
    pub client: Arc<ClientShared>,
    /// Its statements about itself.
    pub follower: Follower,
    /// Whether it is told at which offset its snapshot ends.
    is_told: bool,
    /// Since when it waits for a snapshot, in milliseconds of Unix time.
    asked_at: u64,
    stage: AtomicU8,
    acknowledged: AtomicU64,
    /// The offset up to which it has it on disk, plus one; 0: it has said nothing of that.
    durable: AtomicU64,
    /// When it said so, in milliseconds of Unix time.
    acknowledged_at: AtomicU64,
    feed: Mutex<Option<sync::Feed>>,
    /// Its reader of the stream, which is there as long as this one is listed.
    reader: OnceLock<ReaderId>,
    /// Where its stream ends, as what follows is another server's.
    end: AtomicU64,
}

impl Replica {
    /// How far it is.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Relaxed) {
            0 => Stage::Waits,
            1 => Stage::Promised,
            2 => Stage::Streams,
            3 => Stage::Receives,
            _ => Stage::Online,
        }
    }

    fn read_by(&self, reader: &Reader) {
        self.reader.set(reader.id()).expect("a replica goes on, or gets one snapshot");
    }

    fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Relaxed);
    }

    /// The offset that it has said to have.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Relaxed)
    }

    /// Seconds since it said so.
    pub fn lag(&self, now: u64) -> u64 {
        now.saturating_sub(self.acknowledged_at.load(Relaxed)) / 1000
    }

    /// Where it says it can be reached.
    pub fn address(&self) -> String {
        let announced = self.follower.address.clone();
        announced.unwrap_or_else(|| self.client.addr.rsplit_once(':').map_or_else(String::new, |(ip, _)| ip.to_owned()))
    }

    fn is_at(&self, (host, port): &(String, u16)) -> bool {
        let connected_from = self.client.addr.rsplit_once(':').map_or("", |(ip, _)| ip);
        self.follower.port == *port && (self.address() == *host || connected_from == host)
    }

    fn is_online(&self) -> bool {
        self.stage() == Stage::Online && !self.follower.wants_snapshot_only
    }
}

impl Default for Replication {
    fn default() -> Self {
        let state = State {
            id: new_id(),
            second: None,
            has_backlog: false,
            replicas: BTreeMap::new(),
            alone_since: 0,
            pinged_at: 0,
            primary: None,
            generation: 0,
            failover: failover::Failover::default(),
        };
        Self {
            state: Mutex::new(state),
            is_replica: AtomicBool::new(false),
            database: AtomicU64::new(0),
            waiting: Mutex::default(),
            receivers: Mutex::default(),
            local: local::LocalKeys::default(),
            figures: Figures::default(),
        }
    }
}

/// Forty hexadecimal digits that nothing else is named.
fn new_id() -> String {
    let mut id = (0..3u64).map(|part| format!("{:016x}", RandomState::new().hash_one(part))).collect::<String>();
    id.truncate(40);
    id
}

/// Where a primary's stream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Its name.
    pub id: String,
    /// How far it was followed.
    pub offset: u64,
    /// The database of the next command, if it says nothing else.
    pub db: usize,
}

/// The names of the stream, now and before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Its name.
    pub id: String,
    /// Its name before, and the offset up to which that was it.
    pub second: Option<(String, u64)>,
}

impl Replication {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream's names.
    pub fn ids(&self) -> Ids {
        let state = self.state();
        Ids { id: state.id.clone(), second: state.second.clone() }
    }

    /// Whether the end of the stream is kept for replicas that come back.
    pub fn has_backlog(&self) -> bool {
        self.state().has_backlog
    }

    /// All replicas, in the order of their connections.
    pub fn replicas(&self) -> Vec<Arc<Replica>> {
        self.state().replicas.values().cloned().collect()
    }

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

    /// A replica's connection is over.
    fn leave(&self, replica: &Replica, now: u64) {
        let mut state = self.state();
        state.replicas.remove(&replica.client.id);
        if state.replicas.is_empty() {
            state.alone_since = now;
        }
    }

    /// Where the stream is, if there is one.
    pub fn position(&self, instance: &Instance, _: &Still) -> Option<Position> {
        self.position_of_locked(instance)
    }

    /// [`Replication::position`] for a caller that has locked all shards, [between units](Units).
    pub fn position_of_locked(&self, instance: &Instance) -> Option<Position> {
        let (state, db) = (self.state(), instance.journal.database());
        state.has_backlog.then(|| Position {
            id: state.id.clone(),
            offset: instance.journal.offset(),
            db: db.unwrap_or(0),
        })
    }

    /// The snapshot that is loaded says for which database the next command is.
    pub fn note_database(&self, db: u64) {
        self.database.store(db, Relaxed);
    }

    fn database(&self, instance: &Instance) -> usize {
        let db = usize::try_from(self.database.swap(0, Relaxed)).unwrap_or(0);
        if db < instance.databases().len() { db } else { 0 }
    }

    /// Whether this server follows another.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.is_replica.load(Relaxed)
    }

    /// A client of this replica, which is writable, has changed a key.
    #[cold]
    pub(crate) fn note_local(&self, db: usize, key: &[u8]) {
        self.local.note(db, key);
    }

    /// Keys that this replica expires by its own clock.
    pub fn local_expires(&self) -> usize {
        self.local.len()
    }

    /// Removes keys whose time is over and of which the primary knows nothing; the caller is at work with the data.
    pub fn expire_local(&self, instance: &Instance, now: u64) {
        self.local.expire(instance, now);
    }

    /// Whether clients change nothing, as it follows another (`replica-read-only`).
    pub fn is_read_only(&self, config: &Config) -> bool {
        self.is_replica() && config.is_on(settings::REPLICA_READ_ONLY)
    }

    /// Whether the stream of the one that it follows comes.
    pub fn is_in_sync(&self) -> bool {
        self.state().primary.as_ref().is_some_and(|primary| primary.stage == LinkStage::Connected)
    }

    /// Whether this is a replica whose data may be old, and which must not show them then.
    pub fn is_stale(&self, config: &Config) -> bool {
        self.is_replica() && !config.is_on(settings::REPLICA_SERVE_STALE_DATA) && !self.is_in_sync()
    }

    /// The primary that it follows.
    pub fn primary(&self) -> Option<Primary> {
        self.state().primary.clone()
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
        if let Err(error) = instance.oom_score.apply(instance) {
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

    /// Has the link to the primary end, unless `target` is that; returns whether it is another one. A role change follows, which could
    /// not begin before: a snapshot that the link loads keeps all others out.
    pub fn end_link(&self, target: Option<&(String, u16)>) -> bool {
        let mut state = self.state();
        if state.follows(target) {
            return false;
        }
        state.generation += 1;
        let generation = state.generation;
        state.primary.iter_mut().for_each(|primary| primary.end_link(generation));
        true
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

    /// Has each connection look at the clock.
    fn wake_all(&self) {
        self.state().replicas.values().for_each(|replica| replica.client.wake());
    }

    /// How many replicas have the stream up to `offset`.
    pub fn acknowledged(&self, offset: u64) -> usize {
        let has = |replica: &&Arc<Replica>| replica.is_online() && replica.acknowledged() >= offset;
        self.state().replicas.values().filter(has).count()
    }

    /// How many replicas have the stream up to `offset` on disk.
    pub fn durable(&self, offset: u64) -> usize {
        let has = |replica: &&Arc<Replica>| {
            replica.is_online() && replica.durable.load(Relaxed).checked_sub(1).is_some_and(|durable| durable >= offset)
        };
        self.state().replicas.values().filter(has).count()
    }

    /// How many replicas have spoken within so many seconds.
    pub fn good(&self, most: u64, now: u64) -> usize {
        self.state().replicas.values().filter(|replica| replica.is_online() && replica.lag(now) <= most).count()
    }

    /// Tells replicas of a call that changes no data, if there are some.
    pub fn tell(&self, instance: &Instance, args: Args<'_>) {
        if instance.journal.is_on_for(User::Replicas) && !self.is_replica() {
            instance.journal.tell_replicas(&args.iter().collect::<Vec<_>>());
        }
    }

    /// Whether writes depend on how many replicas there are (`min-replicas-to-write`).
    #[inline]
    pub fn limits_writes(&self, config: &Config) -> bool {
        config.int(settings::MIN_REPLICAS_TO_WRITE) != 0 && config.int(settings::MIN_REPLICAS_MAX_LAG) != 0
    }

    /// Whether there are too few replicas for writes at present.
    pub fn refuses_writes(&self, config: &Config, now: u64) -> bool {
        self.good(config.uint(settings::MIN_REPLICAS_MAX_LAG), now) < config.size(settings::MIN_REPLICAS_TO_WRITE)
    }
}

#[cfg(test)]
mod tests;
