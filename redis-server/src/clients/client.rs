//! A client's session: the state of its connection, and the part that other threads see and change.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use indexmap::IndexSet;

use crate::clients::acl::{Account, Identity};
use crate::clients::tracking;
use crate::cluster::NodeId;
use crate::command::{OwnedArgs, Row};
use crate::keyspace::Watched;
use crate::protocol::error::Error;

/// Bytes that a subscription, a watched key or a prefix takes, here and among all of them, besides its text.
const NAME: u64 = 128;

/// The mode of `CLIENT REPLY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every reply is sent.
    #[default]
    On,
    /// None is.
    Off,
    /// The next one is not (`SKIP` itself has just been answered with nothing).
    SkipNext,
    /// This one is not.
    Skip,
}

/// How far what `ASKING` has said is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// It was not said.
    #[default]
    No,
    /// It has just been said.
    Said,
    /// It holds for the next command.
    Holds,
}

impl Asking {
    /// Whether it holds.
    pub fn is_on(self) -> bool {
        self != Self::No
    }
}

/// The part of a cluster's answer that a call gives.
#[derive(Debug, Default)]
pub enum Part {
    /// All: other nodes have not been asked.
    #[default]
    Whole,
    /// That of this node, for a call that gathers. The user was judged before.
    Own,
    /// All, from the answers of the nodes.
    Gathered(Result<Vec<Vec<u8>>, Error>),
}

/// A transaction that is being put together.
#[derive(Debug, Default)]
pub struct Multi {
    /// The commands so far.
    pub queue: Vec<(&'static Row, OwnedArgs)>,
    /// Whether a command was refused: EXEC will fail.
    pub aborted: bool,
    /// The database that the queued commands choose, if any does.
    pub db: Option<usize>,
}

/// The options of a replica (`REPLCONF`) before it asks for the replication stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follower {
    /// Port on which it serves.
    pub port: u16,
    /// Address at which it serves, if not that of its connection.
    pub address: Option<String>,
    /// Whether it reads snapshots whose end a mark tells (`capa eof`).
    pub takes_snapshots_of_unknown_length: bool,
    /// Whether it learns new names of the stream (`capa psync2`).
    pub knows_second_ids: bool,
    /// Whether it wants no more than a snapshot (`rdb-only`).
    pub wants_snapshot_only: bool,
    /// Whether that is to have the function libraries, and no data (`rdb-filter-only functions`).
    pub wants_functions_only: bool,
    /// The replica's request, which its connection serves from then on.
    pub request: Option<SyncRequest>,
}

/// A replica's request for the stream of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncRequest {
    /// PSYNC: the stream of this name, from this offset on, of which the first is 1.
    Partial(String, i64),
    /// SYNC, of old replicas: a snapshot, and the stream behind it, without a word about either.
    Full,
}

/// The subscriptions of a client.
#[derive(Debug, Default)]
pub struct Subscriptions {
    /// Channels, patterns and shard channels, each in its place (see [`count`]). Patterns stand in the order in which they came.
    pub sets: [IndexSet<Bytes>; 3],
}

impl Subscriptions {
    /// Their number.
    pub fn len(&self) -> usize {
        self.sets.iter().map(IndexSet::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The session's state, which only its own connection touches.
#[derive(Debug)]
pub struct Client {
    /// The state that other threads see.
    pub shared: Arc<ClientShared>,
    /// Number of the selected database.
    pub db: usize,
    /// Whether replies are in RESP3.
    pub resp3: bool,
    /// Its user, with the permissions.
    pub identity: Identity,
    /// The transaction since MULTI.
    pub multi: Option<Box<Multi>>,
    /// Watched keys with their database.
    pub watching: HashSet<(usize, Box<[u8]>)>,
    /// When the first of them expires, in milliseconds of Unix time.
    pub watch_until: Option<u64>,
    /// The client's subscriptions, if it has any.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// Its client-side caching, if it tracks what it reads.
    pub tracking: Option<Box<tracking::Own>>,
    /// The mode of CLIENT REPLY.
    pub reply_mode: ReplyMode,
    /// Whether reads leave the access clock alone (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// Whether its next command may use a slot that is on its way to this node (`ASKING`).
    pub asking: Asking,
    /// Whether a replica may answer what it reads (`READONLY`).
    pub reads_from_replicas: bool,
    /// Since when a command waits that has to be alone, in milliseconds of Unix time.
    pub held_since: Option<u64>,
    /// Whether memory was short when its latest command was admitted, and eviction could not help. Scripts go by this
    /// verdict: copies of their arguments must not change it.
    pub out_of_memory: bool,
    /// The move whose slots it brings, from when its connection has nothing else to do.
    pub importing: Option<Box<NodeId>>,
    /// The part of a cluster's answer that the present call gives.
    pub part: Part,
    /// Its options as a replica.
    pub follower: Option<Box<Follower>>,
    /// Whether the connection ends when the reply is sent.
    pub close: bool,
}

impl Client {
    /// A session that has just begun.
    pub fn new(shared: Arc<ClientShared>, identity: Identity) -> Self {
        Self {
            shared,
            db: 0,
            resp3: false,
            identity,
            multi: None,
            watching: HashSet::new(),
            watch_until: None,
            subscriptions: None,
            tracking: None,
            reply_mode: ReplyMode::On,
            no_touch: false,
            asking: Asking::No,
            reads_from_replicas: false,
            held_since: None,
            out_of_memory: false,
            importing: None,
            part: Part::Whole,
            follower: None,
            close: false,
        }
    }

    /// Ends the connection when the reply is sent. Behind the reply nothing more is sent: no message, no line of MONITOR.
    pub fn end_with_reply(&mut self) {
        self.close = true;
        self.shared.set_flag(flag::CLOSING, true);
    }

    /// Makes it act for somebody else.
    pub fn become_user(&mut self, identity: Identity) {
        self.shared.labels().account = Some(Arc::clone(identity.account()));
        self.identity = identity;
    }

    /// A command has run: ASKING held for it, or holds until the transaction ends that has begun.
    pub fn end_asking(&mut self) {
        self.asking = match self.asking {
            Asking::Said => Asking::Holds,
            Asking::Holds if self.multi.is_some() => Asking::Holds,
            Asking::Holds | Asking::No => Asking::No,
        };
    }

    /// Shows others which command ran last.
    pub fn note_command(&self, row: &Row) {
        self.shared.last_command.store(u32::from(row.id) + 1, Ordering::Relaxed);
    }

    /// Shows others how many subscriptions there are.
    pub fn note_subscriptions(&mut self) {
        let subscriptions = self.subscriptions.take().filter(|subscriptions| !subscriptions.is_empty());
        for (kind, count) in self.shared.counts.iter().take(3).enumerate() {
            count.store(subscriptions.as_ref().map_or(0, |all| all.sets[kind].len() as u32), Ordering::Relaxed);
        }
        self.shared.set_flag(flag::PUBSUB, subscriptions.is_some());
        self.subscriptions = subscriptions;
    }

    /// Whether the client has subscribed to anything.
    #[inline]
    pub fn is_subscribed(&self) -> bool {
        self.subscriptions.as_ref().is_some_and(|subscriptions| !subscriptions.is_empty())
    }
}

/// A command that waits, as far as others may end its wait (`CLIENT UNBLOCK`).
pub trait Unblock: std::fmt::Debug + Send + Sync {
    /// Ends the wait as its time-out would; false when it has ended already.
    fn time_out(&self) -> bool;
    /// Ends the wait with this reply; false when it has ended already.
    fn finish(&self, reply: Vec<u8>) -> bool;
    /// Ends the wait with an error; false when it has ended already.
    fn fail(&self, error: &Error) -> bool;
    /// The command.
    fn row(&self) -> &'static Row;
    /// Calls `visit` with each key that is waited for.
    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8]));
}

/// The part of a client that other threads see, and by which they reach it.
#[derive(Debug)]
pub struct ClientShared {
    /// Number, unique since the start.
    pub id: u64,
    /// Address of the peer, as CLIENT LIST prints it.
    pub addr: String,
    /// Address it connected to.
    pub laddr: String,
    /// Descriptor number of its socket.
    pub fd: i32,
    /// When it connected, in milliseconds of Unix time.
    pub connected_at: u64,
    /// When it last sent something, in milliseconds of Unix time.
    pub active_at: AtomicU64,
    /// Number of its database.
    pub db: AtomicU32,
    /// Id of its last command in the registry, plus one.
    pub last_command: AtomicU32,
    /// Bytes of input that wait.
    pub input: AtomicU64,
    /// Bytes of its own buffer for input.
    pub input_room: AtomicU64,
    /// Bytes of output that wait.
    pub output: AtomicU64,
    /// Bytes of the commands in its transaction.
    pub queued: AtomicU64,
    /// Bytes that [`ClientMemory`](crate::exec::core::client_memory::ClientMemory) has counted of it.
    pub counted: AtomicU64,
    /// Bytes that it held when it was cut off, until its connection has freed them.
    pub leaving: AtomicU64,
    /// Where what it has changed last ends in the journal.
    pub journal_offset: AtomicU64,
    /// The bytes that it has sent and received, and the number of its commands.
    pub traffic: Traffic,
    /// Bits of [`flag`].
    pub flags: AtomicU32,
    /// Numbers of names and commands, each in its place (see [`count`]).
    pub counts: [AtomicU32; 6],
    /// Set when a watched key is touched.
    pub watched: Watched,
    /// Names and versions.
    pub labels: Mutex<Labels>,
    /// The command that waits for keys.
    pub blocked: Mutex<Option<Arc<dyn Unblock>>>,
    mailbox: Mutex<Mailbox>,
    has_mail: AtomicBool,
    waker: AtomicWaker,
}

/// Sums since a client's arrival, written by the worker that serves it.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Bytes that have come from it.
    pub received: Total,
    /// Bytes that it was sent.
    pub sent: Total,
    /// Commands that it has called, itself or by scripts, and that have ended.
    pub commands: Total,
}

/// A sum that one thread at a time adds to.
#[derive(Debug, Default)]
pub struct Total(AtomicU64);

impl Total {
    /// Adds to it.
    #[inline]
    pub fn add(&self, more: u64) {
        // Cheaper than an addition that others might disturb: there are none.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The names that a client gives itself.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// `CLIENT SETNAME`.
    pub name: String,
    /// `CLIENT SETINFO LIB-NAME`.
    pub lib_name: String,
    /// `CLIENT SETINFO LIB-VER`.
    pub lib_version: String,
    /// For whom it acts; the default user, where none is named.
    pub account: Option<Arc<Account>>,
}

/// Bits of [`ClientShared::flags`].
pub mod flag {
    /// Waits for keys.
    pub const BLOCKED: u32 = 1;
    /// In a transaction.
    pub const MULTI: u32 = 1 << 1;
    /// Subscribed to something.
    pub const PUBSUB: u32 = 1 << 2;
    /// Held back by `CLIENT PAUSE`.
    pub const PAUSED: u32 = 1 << 3;
    /// `CLIENT NO-EVICT`.
    pub const NO_EVICT: u32 = 1 << 4;
    /// `CLIENT NO-TOUCH`.
    pub const NO_TOUCH: u32 = 1 << 5;
    /// On a Unix socket.
    pub const UNIX: u32 = 1 << 6;
    /// Speaks RESP3.
    pub const RESP3: u32 = 1 << 7;
    /// Closes when its output is sent.
    pub const CLOSING: u32 = 1 << 8;
    /// Is shown every command.
    pub const MONITOR: u32 = 1 << 9;
    /// `CLIENT TRACKING ON`.
    pub const TRACKING: u32 = 1 << 10;
    /// Tracks by prefix.
    pub const TRACKING_BCAST: u32 = 1 << 11;
    /// The client that it redirects invalidations to is gone.
    pub const TRACKING_BROKEN: u32 = 1 << 12;
    /// All that is about tracking.
    pub const TRACKING_ALL: u32 = TRACKING | TRACKING_BCAST | TRACKING_BROKEN;
    /// Is no longer listed.
    pub const GONE: u32 = 1 << 13;
    /// Is a replica, which follows this server.
    pub const REPLICA: u32 = 1 << 14;
    /// Came by TLS.
    pub const TLS: u32 = 1 << 15;
    /// Has said READONLY.
    pub const READONLY: u32 = 1 << 16;
    /// A command of its own runs elsewhere, or waits for one that does.
    pub const AWAITS: u32 = 1 << 17;
    /// Is woken when the disk has more.
    pub const AWAITS_DISK: u32 = 1 << 18;
    /// It is the server that this one follows.
    pub const PRIMARY: u32 = 1 << 19;
    /// Its connection is to end at once.
    pub const KILLED: u32 = 1 << 20;
    /// Follows redirections from a replica to its primary (`CLIENT CAPA REDIRECT`).
    pub const REDIRECTS: u32 = 1 << 21;
    /// Sees keys whose time is over, while data is imported (`CLIENT IMPORT-SOURCE`).
    pub const IMPORTS: u32 = 1 << 22;
    /// Was cut off by `client-output-buffer-limit`.
    pub const OVER_OUTPUT_LIMIT: u32 = 1 << 23;
    /// Was cut off by `client-query-buffer-limit`.
    pub const OVER_INPUT_LIMIT: u32 = 1 << 24;

    /// Each is a bit of its own.
    const _: () = {
        let all = [
            BLOCKED,
            MULTI,
            PUBSUB,
            PAUSED,
            NO_EVICT,
            NO_TOUCH,
            UNIX,
            RESP3,
            CLOSING,
            MONITOR,
            TRACKING,
            TRACKING_BCAST,
            TRACKING_BROKEN,
            GONE,
            REPLICA,
            TLS,
            READONLY,
            AWAITS,
            AWAITS_DISK,
            PRIMARY,
            KILLED,
            REDIRECTS,
            IMPORTS,
            OVER_OUTPUT_LIMIT,
            OVER_INPUT_LIMIT,
        ];
        let (mut union, mut at) = (0, 0);
        while at < all.len() {
            assert!(union & all[at] == 0);
            union |= all[at];
            at += 1;
        }
    };
}

/// Index into [`ClientShared::counts`].
pub mod count {
    /// Channels.
    pub const CHANNELS: usize = 0;
    /// Patterns.
    pub const PATTERNS: usize = 1;
    /// Shard channels.
    pub const SHARD_CHANNELS: usize = 2;
    /// Queued commands plus one; 0 outside of a transaction.
    pub const MULTI: usize = 3;
    /// Watched keys.
    pub const WATCHED: usize = 4;
    /// Prefixes by which it tracks.
    pub const PREFIXES: usize = 5;
}

/// The messages that other threads leave for a client.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// Messages, ready to be sent.
    pub messages: Vec<Bytes>,
    /// Their bytes.
    pub bytes: usize,
    /// Shard channels of which another node has the slot now.
    pub lost_channels: Vec<Bytes>,
    /// Whether the connection is to be closed.
    pub end: End,
}

/// How a connection is to be closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Not at all.
    #[default]
    No,
    /// When its output is sent.
    WhenSent,
    /// At once.
    Now,
}

impl ClientShared {
    /// A client as it connects; `now` in milliseconds of Unix time.
    pub fn new(id: u64, addr: String, laddr: String, fd: i32, now: u64) -> Self {
        Self {
            id,
            addr,
            laddr,
            fd,
            connected_at: now,
            active_at: AtomicU64::new(now),
            db: AtomicU32::new(0),
            last_command: AtomicU32::new(0),
            input: AtomicU64::new(0),
            input_room: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            leaving: AtomicU64::new(0),
            output: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            journal_offset: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            counts: Default::default(),
            watched: Watched::default(),
            labels: Mutex::default(),
            blocked: Mutex::default(),
            mailbox: Mutex::default(),
            traffic: Traffic::default(),
            has_mail: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().expect("no code that holds a mailbox panics")
    }

    /// Leaves a message, ready to be sent. Returns the bytes that wait here.
    pub fn post(&self, message: Bytes) -> usize {
        let mut mailbox = self.mailbox();
        if mailbox.end == End::Now {
            return 0;
        }
        mailbox.bytes += message.len();
        mailbox.messages.push(message);
        let bytes = mailbox.bytes;
        drop(mailbox);
        self.ring();
        bytes
    }

    /// Ends a subscription to a shard channel, as another node has its slot now.
    pub fn lose_channel(&self, name: Bytes) {
        self.mailbox().lost_channels.push(name);
        self.ring();
    }

    /// Asks the connection to close at once, and drops its messages.
    pub fn kill(&self) {
        *self.mailbox() = Mailbox { end: End::Now, ..Mailbox::default() };
        self.set_flag(flag::KILLED, true);
        self.ring();
    }

    /// Asks the connection to close when its output is sent.
    pub fn close(&self) {
        let mut mailbox = self.mailbox();
        mailbox.end = mailbox.end.max(End::WhenSent);
        drop(mailbox);
        self.ring();
    }

    /// Has the connection look around: a pause is over, or a limit may have been passed.
    pub fn wake(&self) {
        self.waker.wake();
    }

    fn ring(&self) {
        self.has_mail.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether something was left since the last [`ClientShared::take_mail`].
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Wakes this task when something is left.
    pub fn wake_by(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    /// Takes what was left.
    pub fn take_mail(&self) -> Mailbox {
        self.has_mail.store(false, Ordering::Release);
        std::mem::take(&mut *self.mailbox())
    }

    /// Number of its last command in the table, if it has called any.
    pub fn last_command(&self) -> Option<usize> {
        (self.last_command.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Bytes of the messages that wait here.
    pub fn mail_bytes(&self) -> usize {
        self.mailbox().bytes
    }

    /// Bytes that the client holds: its session, its buffers, its transaction, and the names that it has given.
    pub fn memory(&self) -> u64 {
        self.memory_with([&self.input_room, &self.output].map(|bytes| bytes.load(Ordering::Relaxed)))
    }

    /// [`ClientShared::memory`] with buffers of these sizes, for input and for output.
    pub fn memory_with(&self, [input_room, output]: [u64; 2]) -> u64 {
        let session = size_of::<Self>() + size_of::<Client>();
        let names = [count::CHANNELS, count::PATTERNS, count::SHARD_CHANNELS, count::WATCHED, count::PREFIXES];
        let names: u64 = names.iter().map(|&which| u64::from(self.counts[which].load(Ordering::Relaxed))).sum();
        let queued = self.queued.load(Ordering::Relaxed);
        session as u64 + NAME * names + input_room + output + queued + self.mail_bytes() as u64
    }

    /// Takes only the messages.
    pub fn take_messages(&self) -> Vec<Bytes> {
        let mut mailbox = self.mailbox();
        mailbox.bytes = 0;
        std::mem::take(&mut mailbox.messages)
    }

    /// Whether bits of [`flag`] are set.
    pub fn has_flag(&self, bits: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & bits != 0
    }

    /// Whether it acts for this account.
    pub fn acts_for(&self, account: &Arc<Account>) -> bool {
        self.labels().account.as_ref().is_some_and(|own| Arc::ptr_eq(own, account))
    }

    /// Whether the client speaks RESP3.
    pub fn is_resp3(&self) -> bool {
        self.has_flag(flag::RESP3)
    }

    /// Sets or clears bits of [`flag`].
    pub fn set_flag(&self, bits: u32, on: bool) {
        if on {
            self.flags.fetch_or(bits, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Names and versions.
    pub fn labels(&self) -> MutexGuard<'_, Labels> {
        self.labels.lock().expect("no code that holds labels panics")
    }

    /// The command that waits for keys, if any.
    pub fn blocked(&self) -> MutexGuard<'_, Option<Arc<dyn Unblock>>> {
        self.blocked.lock().expect("no code that holds the parked command panics")
    }
}
