//! The state that all workers share: the databases, the configuration, the clients, the counters.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crossbeam_utils::CachePadded;
use foldhash::quality::RandomState;

use super::links::Links;
use super::slow_calls::Threads;
use crate::clients::acl;
use crate::clients::client::{ClientShared, flag};
use crate::clients::notifications::{self, Event};
use crate::clients::pubsub::PubSub;
use crate::clients::tracking::Tracking;
use crate::command::{Flags, Registry, Row};
use crate::config::{Config, ConfigError, settings};
use crate::exec::aof::Aof;
use crate::exec::cluster::Cluster;
use crate::exec::core::client_memory::ClientMemory;
use crate::exec::core::clock::{LastLogged, now_ms};
use crate::exec::core::later::Later;
use crate::exec::core::loading::Loading;
use crate::exec::core::oom_score::OomScore;
use crate::exec::core::peers::Peers;
use crate::exec::core::workers::Workers;
use crate::exec::core::{CommandTable, Gather, Handler};
use crate::exec::eviction::{self, Shortage};
use crate::exec::gate::{Exclusive, Occupation, Still, stand_still};
use crate::exec::replication::Replication;
use crate::exec::script::Scripts;
use crate::exec::snapshot::{Background, Ending};
use crate::journal::Journal;
use crate::keyspace::{Cut, Database, Happening, Reaper};
use crate::observe::stats::{Stats, Totals};
use crate::observe::{Observers, memory};
use crate::persistence::Status;
use crate::process::{Process, Supervisor};
use crate::protocol::error::Error;

/// Default number of shards per database. With 10 M keys, a shard's table has some 2,500, which it moves under its lock
/// when it grows. Two windows of 32 keys rarely want the same shard.
const DEFAULT_SHARDS: usize = 4096;

/// Milliseconds after which a client looks again whether writes still wait, should nobody have woken it.
const HOLD_LOOK: u64 = 1000;

/// One server.
#[derive(Debug)]
pub struct Instance {
    /// The configuration in force.
    pub config: Arc<Config>,
    /// Its commands.
    pub registry: &'static Registry,
    /// The handler of each, by the number of its row.
    pub handlers: &'static [Handler],
    /// Does the part of other nodes of a call.
    pub gather: Gather,
    /// The counters.
    pub stats: Stats,
    /// When it started, in milliseconds of Unix time.
    pub started_at: u64,
    /// Frees on a thread of its own what takes long.
    pub reaper: Arc<Reaper>,
    /// The users and their rights.
    pub acl: acl::Table,
    /// The memory of all clients.
    pub client_memory: CachePadded<ClientMemory>,
    /// For how long memory has been short.
    pub shortage: Shortage,
    /// The subscriptions.
    pub pubsub: Arc<PubSub>,
    /// The execution gate.
    pub exclusive: Arc<Exclusive>,
    /// The script cache, the function libraries, and what runs them.
    pub scripts: Scripts,
    /// Bytes in use when the server had started.
    pub startup_memory: AtomicU64,
    /// The keys that clients have read and keep.
    pub tracking: Arc<Tracking>,
    /// Connections to other servers.
    pub peers: Peers,
    /// The state of its snapshots.
    pub snapshots: Status,
    /// The snapshot in the making.
    pub background: Background,
    /// The progress of loading.
    pub loading: Loading,
    /// Whether it is to end.
    pub ending: Ending,
    /// Connections that were ended because they spoke HTTP.
    pub(crate) attacks: LastLogged,
    /// The process, where this server is the only thing in it.
    process: OnceLock<Process>,
    /// How soon the kernel ends it when memory runs out.
    pub oom_score: OomScore,
    /// The append-only file.
    pub aof: Aof,
    /// Its replicas and its primary.
    pub replication: Replication,
    /// The owners of the slots, if it is a node of a cluster.
    pub cluster: Cluster,
    /// The changes that calls have made, for files and other servers.
    pub journal: Arc<Journal>,
    /// The workers.
    pub workers: Workers,
    /// The threads of slow calls.
    pub slow: Threads,
    /// The threads of calls that wait for other nodes of the cluster. These have threads of their own: calls of two nodes that wait for each other's
    /// would else take all threads of both.
    pub gathering: Threads,
    /// Connections to other nodes of the cluster.
    pub links: Links,
    /// The search indexes.
    #[cfg(feature = "search")]
    pub search: crate::search::Search,
    /// Keys whose waiting commands run again at a moment.
    pub later: Later,
    databases: Box<[Database]>,
    clients: CachePadded<Mutex<BTreeMap<u64, Arc<ClientShared>>>>,
    counts: CachePadded<Counts>,
    /// Until when commands wait, in milliseconds of Unix time, times two; plus one if only writes do. 0: not at all.
    pause: AtomicU64,
    /// For how many reasons of the server's own writes wait: it hands its place over, or ends.
    holds: AtomicU64,
    /// Whether expired keys are actively removed (`DEBUG SET-ACTIVE-EXPIRE`).
    active_expire: AtomicBool,
    runtime: OnceLock<server_runtime::Handle>,
    renamed: Renamed,
    /// The observers of single calls.
    pub observers: Observers,
    /// Forty hexadecimal digits that name this run of the server.
    pub run_id: String,
}

/// Figures that connections and calls that wait write. All windows read what stands beside them, so they have cache lines of their own.
#[derive(Debug, Default)]
struct Counts {
    /// The number of the last client.
    last_client: AtomicU64,
    blocked: AtomicI64,
    group_readers: AtomicI64,
    /// Clients that `client-query-buffer-limit` has cut off, since the start.
    over_input_limit: AtomicU64,
    /// Clients that `client-output-buffer-limit` has cut off, since the start.
    over_output_limit: AtomicU64,
}

/// The commands that `CLIENT PAUSE` holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Until when, in milliseconds of Unix time.
    pub until: u64,
    /// Whether reads go on.
    pub writes_only: bool,
}

impl Instance {
    /// An empty server.
    ///
    /// # Panics
    /// When the configuration names a file of users, or commands, that cannot be followed: [`Instance::try_new`] says why.
    pub fn new(config: Arc<Config>, commands: &'static CommandTable) -> Self {
        Self::try_new(config, commands).expect("the file of users, where there is one, is good")
    }

    /// An empty server.
    ///
    /// # Errors
    /// The users of the configuration cannot be made, or its commands not be renamed.
    pub fn try_new(config: Arc<Config>, commands: &'static CommandTable) -> Result<Self, acl::LoadError> {
        let acl = acl::Table::from_config(&config, &commands.registry)?;
        let renamed = renamed(&config, &commands.registry).map_err(acl::LoadError::Line)?;
        let observers = Observers::new(&config);
        let run_id =
            (0..3u64).map(|part| format!("{:016x}", RandomState::default().hash_one(part))).collect::<String>();
        let pubsub = Arc::<PubSub>::default();
        let tracking = Arc::<Tracking>::default();
        let reaper = Arc::new(Reaper::new(|| memory::give_back(true)));
        let journal = Arc::<Journal>::default();
        let databases = databases(&config, &reaper);
        for (number, database) in databases.iter().enumerate() {
            listen(database, number, (&config, &pubsub, &tracking, &journal));
        }
        let cluster = Cluster::new(&config);
        #[cfg(feature = "search")]
        let search = crate::search::Search::new(&config, crate::search::Meter(memory::of_thread));
        Ok(Self {
            acl,
            cluster,
            config,
            registry: &commands.registry,
            handlers: commands.handlers,
            gather: commands.gather,
            stats: Stats::new(commands.handlers.len()),
            started_at: now_ms(),
            reaper,
            client_memory: CachePadded::default(),
            shortage: Shortage::default(),
            startup_memory: AtomicU64::new(0),
            pubsub,
            exclusive: Arc::default(),
            scripts: Scripts::default(),
            tracking,
            peers: Peers::default(),
            snapshots: Status::new(now_ms() / 1000),
            background: Background::default(),
            loading: Loading::default(),
            ending: Ending::default(),
            attacks: LastLogged::default(),
            process: OnceLock::new(),
            oom_score: OomScore::default(),
            aof: Aof::default(),
            replication: Replication::default(),
            journal,
            workers: Workers::default(),
            slow: Threads::default(),
            gathering: Threads::default(),
            links: Links::default(),
            #[cfg(feature = "search")]
            search,
            later: Later::default(),
            databases,
            clients: CachePadded::default(),
            counts: CachePadded::default(),
            pause: AtomicU64::new(0),
            holds: AtomicU64::new(0),
            active_expire: AtomicBool::new(true),
            runtime: OnceLock::new(),
            renamed,
            observers,
            run_id: run_id[..40].to_owned(),
        })
    }

    /// Makes the process this server's own. Once.
    pub fn own_process(&self, process: Process) {
        // A second one would be that of the same process.
        let _ = self.process.set(process);
    }

    /// The process, where this server is the only thing in it.
    pub fn process(&self) -> Option<&Process> {
        self.process.get()
    }

    /// The service manager that has started the process and wants to know its state.
    pub fn supervisor(&self) -> Option<&Supervisor> {
        self.process.get().map(|process| &process.supervisor)
    }

    /// Database `index`, which must exist.
    #[inline]
    pub fn database(&self, index: usize) -> &Database {
        &self.databases[index]
    }

    /// All databases.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    fn clients_map(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientShared>>> {
        self.clients.lock().expect("no code that holds the clients panics")
    }

    /// A number for a new client.
    pub fn next_client_id(&self) -> u64 {
        self.counts.last_client.fetch_add(1, Relaxed) + 1
    }

    /// Lists a client.
    pub fn add_client(&self, client: &Arc<ClientShared>) {
        self.clients_map().insert(client.id, Arc::clone(client));
    }

    /// A client's connection is over, and what it held is freed.
    pub fn client_left(&self, client: &ClientShared) {
        let limits = [
            (flag::OVER_INPUT_LIMIT, &self.counts.over_input_limit),
            (flag::OVER_OUTPUT_LIMIT, &self.counts.over_output_limit),
        ];
        for (_, count) in limits.iter().filter(|(bit, _)| client.has_flag(*bit)) {
            count.fetch_add(1, Relaxed);
        }
        let listed = self.clients_map().remove(&client.id);
        if listed.is_some() {
            client.set_flag(flag::GONE, true);
            self.client_memory.forget(client);
        }
        self.client_memory.freed(client);
    }

    /// The error for a command that does not run now, because a thread is alone for too long, or data is loaded.
    pub fn refusal(&self, row: &Row) -> Option<Error> {
        match self.exclusive.occupation()? {
            Occupation::Script => (!row.command.flags.has(Flags::ALLOW_BUSY)).then(|| self.scripts.busy_error()),
            Occupation::Load => (!row.command.flags.has(Flags::LOADING)).then_some(Error::Loading),
        }
    }

    /// The error for a caller that would have to wait for either.
    pub fn busy_error(&self) -> Error {
        if self.exclusive.is_loading() { Error::Loading } else { self.scripts.busy_error() }
    }

    /// All clients by number.
    pub fn clients(&self) -> Vec<Arc<ClientShared>> {
        self.clients_map().values().cloned().collect()
    }

    /// Number of clients.
    pub fn clients_len(&self) -> usize {
        self.clients_map().len()
    }

    /// The client of this number.
    pub fn client(&self, id: u64) -> Option<Arc<ClientShared>> {
        self.clients_map().get(&id).cloned()
    }

    /// Counts clients that wait for keys.
    pub fn blocked_clients(&self, change: i64) -> i64 {
        self.counts.blocked.fetch_add(change, Relaxed) + change
    }

    /// Counts clients that wait for entries of a stream as members of a group.
    pub fn group_readers(&self, change: i64) -> i64 {
        self.counts.group_readers.fetch_add(change, Relaxed) + change
    }

    /// Whether `rename-command` has changed a name.
    #[inline]
    pub fn has_renamed(&self) -> bool {
        !self.renamed.is_empty()
    }

    /// The effect of `rename-command` on a name. `Some(None)`: it names nothing any more. `None`: it is as it was.
    #[inline]
    pub fn renamed(&self, name: &[u8]) -> Option<Option<&'static Row>> {
        self.renamed.get(name.to_ascii_lowercase().as_slice()).copied()
    }

    /// Whether `maxmemory` is passed. Never, where the process has an allocator that does not count.
    #[inline]
    pub fn is_short_of_memory(&self) -> bool {
        let limit = self.config.uint(settings::MAXMEMORY);
        limit != 0 && memory::used_here() > limit && self.stays_short(limit)
    }

    /// Whether commands that store `bytes` may pass `maxmemory` where nothing is evicted: the next command is refused then.
    #[inline]
    pub(crate) fn may_refuse_within(&self, bytes: u64) -> bool {
        let limit = self.config.uint(settings::MAXMEMORY);
        limit != 0 && memory::used_here() + bytes > limit && !eviction::evicts(&self.config)
    }

    /// Whether `limit` is passed without what others are about to free.
    #[cold]
    fn stays_short(&self, limit: u64) -> bool {
        // While files are loaded nothing is removed that they do not say, nor on a replica what its primary does not.
        !self.exclusive.is_loading()
            && !self.replication.is_replica()
            && memory::used_here().saturating_sub(self.memory_on_its_way()) > limit
    }

    /// Bytes in use that do not count against `maxmemory`, because others are about to free them: evicted values,
    /// their part of indexes, what clients held who are cut off, and changes that the slowest replica, or the disk, has not got yet.
    pub fn memory_on_its_way(&self) -> u64 {
        #[cfg(feature = "search")]
        let of_indexes = self.search.owed();
        #[cfg(not(feature = "search"))]
        let of_indexes = 0;
        self.reaper.evicted_bytes() + of_indexes + self.client_memory.leaving() + self.journal.beyond_backlog()
    }

    /// Bytes that wait for the slowest replica, and for the disk: they share one journal.
    pub(crate) fn unread(&self) -> (u64, u64) {
        let bytes = self.journal.beyond_backlog();
        if self.replication.replicas().is_empty() { (0, bytes) } else { (bytes, 0) }
    }

    /// Has entries remember of their use what the policy of eviction wants to know.
    pub fn refresh_usage(&self) {
        let usage = eviction::usage(&self.config);
        self.databases.iter().for_each(|database| database.set_usage(usage));
    }

    /// Figures that are counted outside of [`Stats`], since the start.
    pub fn totals(&self) -> Totals {
        Totals {
            accepted: self.runtime().map_or(0, server_runtime::Handle::accepted),
            refused: self.runtime().map_or(0, server_runtime::Handle::refused),
            expired: self.databases.iter().map(Database::expired_count).sum(),
            expired_fields: self.databases.iter().map(Database::expired_fields).sum(),
            evicted_clients: self.client_memory.evicted(),
            over_input_limit: self.counts.over_input_limit.load(Relaxed),
            over_output_limit: self.counts.over_output_limit.load(Relaxed),
            evicted: self.databases.iter().map(Database::evicted_count).sum(),
        }
    }

    /// Changes of keys since the start.
    pub fn changes(&self) -> u64 {
        self.stats.sum(|worker| worker.changes.get())
    }

    /// Whether CLIENT PAUSE was called and not taken back: it may be over by now.
    #[inline]
    pub fn may_be_paused(&self) -> bool {
        self.pause.load(Relaxed) != 0 || self.holds.load(Relaxed) != 0
    }

    /// The pause in force at `now`, if any.
    #[inline]
    pub fn paused(&self, now: u64) -> Option<Pause> {
        let asked = self.asked_pause(now);
        if self.holds.load(Relaxed) == 0 {
            return asked;
        }
        let until = asked.map_or(0, |asked| asked.until).max(now + HOLD_LOOK);
        Some(Pause { until, writes_only: asked.is_none_or(|asked| asked.writes_only) })
    }

    /// Whether some commands are held back at `now`: by a pause, or as their slots are about to be another node's.
    pub fn holds_back(&self, now: u64) -> bool {
        self.paused(now).is_some() || self.cluster.holds_slots()
    }

    /// The pause by CLIENT PAUSE at `now`, if any.
    pub(crate) fn asked_pause(&self, now: u64) -> Option<Pause> {
        let pause = self.pause.load(Relaxed);
        (pause != 0 && pause >> 1 > now).then_some(Pause { until: pause >> 1, writes_only: pause & 1 == 1 })
    }

    /// Holds writes back until [`Instance::release_writes`] is called as often. Writes that have begun go on to their
    /// end.
    pub fn hold_writes(&self) {
        self.holds.fetch_add(1, SeqCst);
    }

    /// Takes one [`Instance::hold_writes`] back.
    pub fn release_writes(&self) {
        self.holds.fetch_sub(1, SeqCst);
        self.wake_paused();
    }

    /// Holds commands back. Of two pauses, the longer time and the stricter kind count.
    pub fn pause(&self, pause: Pause, now: u64) {
        let before = self.asked_pause(now);
        let until = before.map_or(0, |before| before.until).max(pause.until).min(u64::MAX >> 1);
        let writes_only = pause.writes_only && before.is_none_or(|before| before.writes_only);
        self.pause.store(until << 1 | u64::from(writes_only), Relaxed);
    }

    /// Lets commands go on, those that are held back first.
    pub fn unpause(&self) {
        self.pause.store(0, Relaxed);
        self.wake_paused();
    }

    /// Has clients that are held back look whether they still are.
    pub(crate) fn wake_paused(&self) {
        fence(SeqCst);
        let held = |client: &&Arc<ClientShared>| client.flags.load(Relaxed) & flag::PAUSED != 0;
        self.clients().iter().filter(held).for_each(|client| client.wake());
    }

    /// Cuts a client off: it is no longer listed, and its connection ends soon.
    pub fn kill_client(&self, client: &ClientShared) {
        client.kill();
        let mut clients = self.clients_map();
        if clients.remove(&client.id).is_some() {
            client.set_flag(flag::GONE, true);
            // Still under the lock: a connection that ends by itself waits for it, and takes back what this adds.
            self.client_memory.dismiss(client);
        }
    }

    /// Whether data is imported (`import-mode`): only the client that imports removes any of it.
    #[inline]
    pub fn is_importing(&self) -> bool {
        self.config.is_on(settings::IMPORT_MODE) && !self.replication.is_replica()
    }

    /// Whether keys whose time is over stay where they are: a replica's primary, or the client that imports them, says when they go.
    #[inline]
    pub fn keeps_expired(&self) -> bool {
        self.replication.is_replica() || self.config.is_on(settings::IMPORT_MODE)
    }

    /// Whether expired keys are actively removed.
    pub fn active_expire(&self) -> bool {
        self.active_expire.load(Relaxed) && !self.is_importing()
    }

    /// `DEBUG SET-ACTIVE-EXPIRE`.
    pub fn set_active_expire(&self, on: bool) {
        self.active_expire.store(on, Relaxed);
    }

    /// Sets the process' score as the configuration and its role have it, where this server is the only thing in it.
    ///
    /// # Errors
    /// Those of [`OomScore::apply`].
    pub fn set_oom_score(&self) -> io::Result<()> {
        if !self.snapshots.is_automatic() {
            return Ok(());
        }
        self.oom_score.apply(&self.config, self.replication.is_replica())
    }

    /// Whether the server was told to end.
    pub fn is_ending(&self) -> bool {
        self.runtime().is_some_and(server_runtime::Handle::is_triggered)
    }

    /// Waits until the server is at rest, unless it ends. Only a thread that serves nobody may call this.
    ///
    /// # Errors
    /// The server ends.
    pub fn stand_still(&self) -> io::Result<Still> {
        let goes_on = || if self.is_ending() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) };
        stand_still(&self.exclusive, goes_on)
    }

    /// The handle of the runtime that serves this instance; none when nothing does.
    pub fn runtime(&self) -> Option<&server_runtime::Handle> {
        self.runtime.get()
    }

    /// Remembers the runtime; the first one stays.
    pub fn set_runtime(&self, runtime: server_runtime::Handle) {
        // A second start with the same instance keeps the first handle: there is one runtime per instance.
        let _ = self.runtime.set(runtime);
    }
}

/// The databases that the configuration wants, all of which hash alike and are shown together by snapshots.
fn databases(config: &Config, reaper: &Arc<Reaper>) -> Box<[Database]> {
    let shards = match config.size(settings::SHARDS) {
        0 => DEFAULT_SHARDS,
        // DashMap has two shards at least.
        shards => shards.max(2),
    };
    let is_node = config.is_on(settings::CLUSTER_ENABLED);
    let (hasher, cut) = (RandomState::default(), Arc::<Cut>::default());
    let database = |_| {
        let hasher = hasher.clone();
        let database = if is_node { Database::by_slot(hasher) } else { Database::new(shards, hasher) };
        database.set_usage(eviction::usage(config));
        database.with_reaper(Arc::clone(reaper)).with_cut(Arc::clone(&cut))
    };
    (0..config.size(settings::DATABASES)).map(database).collect()
}

/// Has those told of what happens to a database's keys whom that concerns.
fn listen(
    database: &Database,
    number: usize,
    (config, pubsub, tracking, journal): (&Arc<Config>, &Arc<PubSub>, &Arc<Tracking>, &Arc<Journal>),
) {
    let (config, pubsub) = (Arc::clone(config), Arc::clone(pubsub));
    let (tracking, journal) = (Arc::clone(tracking), Arc::clone(journal));
    database.on_happening(move |happening, key| {
        let is_on = |setting| config.is_on(setting);
        match happening {
            Happening::Gone { is_evicted } => {
                let lazily = [settings::LAZYFREE_LAZY_EXPIRE, settings::LAZYFREE_LAZY_EVICTION];
                journal.removed(number, key, is_on(lazily[usize::from(is_evicted)]));
                tracking.gone(&config, key);
            }
            Happening::FieldsExpired { fields, .. } => {
                journal.fields_removed(number, key, fields);
                tracking.gone(&config, key);
            }
            Happening::Met => journal.met(number, key, is_on(settings::LAZYFREE_LAZY_EXPIRE)),
            Happening::Expired | Happening::Evicted | Happening::Missed | Happening::Added => {}
        }
        let Some(event) = notifications::event_of(happening) else { return };
        if notifications::is_on(&config) {
            notifications::tell(&config, &pubsub, number, key, event);
            if matches!(happening, Happening::FieldsExpired { is_last: true, .. }) {
                notifications::tell(&config, &pubsub, number, key, Event::DEL);
            }
        }
    });
}

/// The commands by names that `rename-command` gives and takes.
pub type Renamed = HashMap<Box<[u8]>, Option<&'static Row>>;

/// Follows `rename-command`.
///
/// # Errors
/// A line names no command, or gives a name that another command has. If a mistyped name passed, the operator would believe that clients
/// cannot call the command.
pub fn renamed(config: &Config, registry: &Registry) -> Result<Renamed, ConfigError> {
    let mut names = Renamed::new();
    for (at, line) in config.lines(settings::RENAME_COMMAND).iter().enumerate() {
        let [old, new] = line.as_slice() else { continue };
        let (old, new): (Box<[u8]>, Box<[u8]>) = (old.to_ascii_lowercase().into(), new.to_ascii_lowercase().into());
        let find = |names: &Renamed, name: &[u8]| names.get(name).copied().unwrap_or_else(|| registry.lookup(name));
        let found = find(&names, &old);
        let row = found.ok_or_else(|| config.rename_error(at, "No such command in rename-command"))?;
        names.insert(old, None);
        if new.is_empty() {
            continue;
        }
        if find(&names, &new).is_some() {
            return Err(config.rename_error(at, "Target command name already exists"));
        }
        names.insert(new, Some(row));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_lines::assert_apart;

    /// All windows look at the pause, the holds and the services.
    #[test]
    fn connection_state_causes_no_false_sharing() {
        assert_apart!(Instance, clients);
        assert_apart!(Instance, counts);
        assert_apart!(Instance, client_memory);
    }
}
