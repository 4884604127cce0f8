//! The state of replication that all threads share.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender};

use super::local::LocalKeys;
use crate::clients::client::{ClientShared, Follower, Unblock};
use crate::config::{Config, settings};
use crate::journal::{Reader, ReaderId};

/// The replicas of this server, and its primary.
#[derive(Debug)]
pub struct Replication {
    pub(super) state: Mutex<State>,
    pub(super) is_replica: AtomicBool,
    /// The database of the next command behind the snapshot that was loaded last.
    pub(super) database: AtomicU64,
    pub(super) waiting: Mutex<Vec<Wait>>,
    /// Those whom the snapshot in the making is sent to.
    pub(super) receivers: Mutex<Receivers>,
    pub(super) local: LocalKeys,
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
pub(super) struct State {
    /// Names the stream.
    pub(super) id: String,
    /// The name that it had before, up to this offset.
    pub(super) second: Option<(String, u64)>,
    pub(super) has_backlog: bool,
    pub(super) replicas: BTreeMap<u64, Arc<Replica>>,
    /// Since when there has been none, in milliseconds of Unix time.
    pub(super) alone_since: u64,
    /// When replicas were sent a PING last.
    pub(super) pinged_at: u64,
    /// The primary that this server follows.
    pub(super) primary: Option<Primary>,
    /// How often that has changed.
    pub(super) generation: u64,
    pub(super) failover: Failover,
}

impl State {
    /// Whether this server follows `target`, or none if that is none.
    pub(super) fn follows(&self, target: Option<&(String, u16)>) -> bool {
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
    pub(super) is_told: bool,
    /// Since when it waits for a snapshot, in milliseconds of Unix time.
    pub(super) asked_at: u64,
    pub(super) stage: AtomicU8,
    pub(super) acknowledged: AtomicU64,
    /// The offset up to which it has it on disk, plus one; 0: it has said nothing of that.
    pub(super) durable: AtomicU64,
    /// When it said so, in milliseconds of Unix time.
    pub(super) acknowledged_at: AtomicU64,
    pub(super) feed: Mutex<Option<Feed>>,
    /// Its reader of the stream, which is there as long as this one is listed.
    pub(super) reader: OnceLock<ReaderId>,
    /// Where its stream ends, as what follows is another server's.
    pub(super) end: AtomicU64,
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

    pub(super) fn read_by(&self, reader: &Reader) {
        self.reader.set(reader.id()).expect("a replica goes on, or gets one snapshot");
    }

    pub(super) fn set_stage(&self, stage: Stage) {
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

    pub(super) fn is_at(&self, (host, port): &(String, u16)) -> bool {
        let connected_from = self.client.addr.rsplit_once(':').map_or("", |(ip, _)| ip);
        self.follower.port == *port && (self.address() == *host || connected_from == host)
    }

    pub(super) fn is_online(&self) -> bool {
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
            failover: Failover::default(),
        };
        Self {
            state: Mutex::new(state),
            is_replica: AtomicBool::new(false),
            database: AtomicU64::new(0),
            waiting: Mutex::default(),
            receivers: Mutex::default(),
            local: LocalKeys::default(),
            figures: Figures::default(),
        }
    }
}

/// Forty hexadecimal digits that nothing else is named.
pub(super) fn new_id() -> String {
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

/// How long it waits before it tries again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// How often that time doubles, at most, while snapshots come that cannot be loaded: up to 64 s.
pub(super) const DOUBLINGS: u32 = 6;

/// How far the link to the primary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkStage {
    /// It is to be made.
    Connect,
    /// They introduce themselves.
    Handshake,
    /// A snapshot comes.
    Sync,
    /// The stream comes.
    Connected,
}

impl LinkStage {
    /// As ROLE calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Handshake => "handshake",
            Self::Sync => "sync",
            Self::Connected => "connected",
        }
    }
}

/// The primary that this server follows.
#[derive(Clone, Debug)]
pub struct Primary {
    /// Where it is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How far the link is.
    pub stage: LinkStage,
    /// When it said something last, in milliseconds of Unix time.
    pub heard_at: u64,
    /// Since when there is no stream, in milliseconds of Unix time.
    pub down_since: u64,
    /// Bytes of the snapshot that comes, and how many have come.
    pub sync: (u64, u64),
    /// Bytes of the stream that have come, and wait until clients are no longer paused.
    pub held: u64,
    /// Whether this server has had its stream, and the data is what it said.
    pub had_stream: bool,
    /// Snapshots in a row that could not be loaded.
    pub failed_syncs: FailedSyncs,
    /// The number of this choice of a primary: a thread that follows another one ends.
    pub(super) generation: u64,
    /// The connection to it.
    pub(super) connection: Option<Arc<ClientShared>>,
}

/// Snapshots that a primary has sent, one after the other, and that could not be loaded.
#[derive(Clone, Debug, Default)]
pub struct FailedSyncs {
    /// How many.
    pub count: u32,
    /// Why the last one was not loaded.
    pub why: String,
    /// When the primary is asked for another, in milliseconds of Unix time.
    pub retry_at: u64,
}

impl FailedSyncs {
    /// Counts one more at `now`. Returns how long to wait: for each, the primary saves and sends all its data.
    pub(super) fn add(&mut self, why: &str, now: u64) -> Duration {
        self.count += 1;
        why.clone_into(&mut self.why);
        let wait = RETRY * (1 << self.count.min(DOUBLINGS));
        self.retry_at = now + wait.as_millis() as u64;
        wait
    }
}

impl State {
    pub(super) fn primary_of(&mut self, generation: u64) -> Option<&mut Primary> {
        self.primary.as_mut().filter(|primary| primary.generation == generation)
    }
}

impl Primary {
    pub(super) fn new(host: String, port: u16, generation: u64, now: u64) -> Self {
        Self {
            host,
            port,
            stage: LinkStage::Connect,
            heard_at: now,
            down_since: now,
            sync: (0, 0),
            held: 0,
            had_stream: false,
            failed_syncs: FailedSyncs::default(),
            generation,
            connection: None,
        }
    }

    /// Notes that its stream comes.
    pub(super) fn connected(&mut self) {
        self.stage = LinkStage::Connected;
        self.had_stream = true;
        self.failed_syncs = FailedSyncs::default();
    }

    /// Has the thread that follows it end, now that another generation counts.
    pub(super) fn end_link(&mut self, generation: u64) {
        self.hang_up();
        self.generation = generation;
    }

    /// Ends the connection at once: the primary must not show a replica that has left.
    pub(super) fn hang_up(&self) {
        self.connection.iter().for_each(|connection| connection.kill());
    }
}

/// How far a failover is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailoverStage {
    /// There is none.
    #[default]
    None,
    /// Writes wait until the replica has what is there.
    WaitsForSync,
    /// This server asks the replica to be its primary.
    InProgress,
}

impl FailoverStage {
    /// As INFO calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no-failover",
            Self::WaitsForSync => "waiting-for-sync",
            Self::InProgress => "failover-in-progress",
        }
    }
}

/// The state of a primary's failover.
#[derive(Debug, Default)]
pub(super) struct Failover {
    pub(super) stage: FailoverStage,
    /// How many there have been: a thread whose failover is over ends.
    pub(super) number: u64,
    pub(super) target: Option<(String, u16)>,
}

/// A part of what comes before the stream.
#[derive(Debug)]
pub(super) enum Part {
    Bytes(Bytes),
    /// All is said; of a snapshot without a length the replica knows so only when it has answered.
    End {
        is_measured: bool,
    },
}

/// The bytes for a replica: the snapshot, whose end is [`Part::End`] if it is whole, and then the stream.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) head: String,
    pub(super) parts: Receiver<Part>,
    pub(super) stream: Reader,
}

/// Those whom one snapshot is sent to.
pub(super) type Receivers = Arc<Mutex<Vec<(Sender<Part>, Arc<Replica>)>>>;

/// The copies that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The stream up to here.
    pub offset: u64,
    /// How many replicas are to have it.
    pub replicas: usize,
    /// Whether on disk, and whether on this server's too.
    pub on_disk: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Wait {
    pub(super) parked: Weak<dyn Unblock>,
    pub(super) copies: Copies,
}

impl Replication {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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

    /// A replica's connection is over.
    pub(super) fn leave(&self, replica: &Replica, now: u64) {
        let mut state = self.state();
        state.replicas.remove(&replica.client.id);
        if state.replicas.is_empty() {
            state.alone_since = now;
        }
    }

    /// The snapshot that is loaded says for which database the next command is.
    pub fn note_database(&self, db: u64) {
        self.database.store(db, Relaxed);
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

    /// Has each connection look at the clock.
    pub(super) fn wake_all(&self) {
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

impl Replication {
    /// How far a failover is.
    pub fn failover(&self) -> FailoverStage {
        self.state().failover.stage
    }

    pub(super) fn end_failover(&self) -> Option<(FailoverStage, Option<(String, u16)>)> {
        let mut state = self.state();
        let stage = std::mem::take(&mut state.failover.stage);
        (stage != FailoverStage::None).then(|| (stage, state.failover.target.take()))
    }
}
