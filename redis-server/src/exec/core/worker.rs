//! The state of one worker thread.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::clients::acl::Identity;
use crate::clients::client::{Client, ClientShared};
use crate::clients::tracking::ChangedKey;
use crate::command::{Args, Flags, Row};
use crate::exec::core::clock::{Clock, Tick, now_ms, now_us};
use crate::exec::core::rounds::Rounds;
use crate::exec::core::{Call, Ctx, Instance};
use crate::exec::eviction::Evictor;
use crate::exec::gate::{Activity, Still};
use crate::observe::stats::WorkerStats;
use crate::observe::{Measured, Observed, Shown};
use crate::protocol::error::Error;
use crate::protocol::{Reply, Span};

/// Bytes read from a socket at once: the size of one deep pipeline, and little enough to stay in the second-level
/// cache.
const INPUT: usize = 64 * 1024;

/// How the calls of a worker stand to those of other workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Calls run beside others, in windows that lock their keys.
    Beside,
    /// Slow calls run on what they have marked.
    Slow,
    /// Calls run alone with the data ([`Exclusive`](crate::exec::gate::Exclusive)), and each locks its keys.
    Alone,
    /// The same for what a script calls.
    Script,
}

/// One worker: its way to the server, its counters, its buffers.
#[derive(Debug)]
pub struct Worker {
    /// The server.
    pub instance: Arc<Instance>,
    /// This worker's counters.
    pub stats: Arc<WorkerStats>,
    /// Buffers that each connection uses while it runs and leaves empty.
    pub scratch: RefCell<Scratch>,
    /// Its state between evictions.
    pub evictor: RefCell<Evictor>,
    /// Keys that the window under way has changed, and by which client, while any client tracks by prefix.
    pub changed_keys: RefCell<Vec<ChangedKey>>,
    /// Whether this worker's clients are told when the server ends.
    pub watches_shutdown: Cell<bool>,
    /// Where this worker says that it is at work.
    pub activity: Arc<Activity>,
    mode: Mode,
    /// Whether it asks of each call if this node of a cluster serves its keys.
    pub routes: bool,
    /// Whether it runs commands of a source that alone decides which keys go when: files that are loaded, or a primary.
    pub loads: bool,
    /// True if that source is an append-only file.
    pub loads_file: bool,
    /// The standstill that a call holds.
    pub(crate) still: Option<Still>,
    /// The means to run a command alone, between two of them; `run::alone` knows their type.
    pub(in crate::exec) spare: RefCell<Box<dyn Any>>,
    /// The object that a script has left for the next one; `script` knows its type.
    pub(in crate::exec) script: RefCell<Option<Box<dyn Any>>>,
    /// Whether somebody goes on with a script that was interrupted because it takes too long.
    pub goes_on: Cell<bool>,
    /// True if a command of the present turn was alone with the data.
    pub was_alone: Cell<bool>,
    /// The command that has just panicked.
    pub(crate) panicked: Cell<Option<&'static Row>>,
    random: Cell<u64>,
    clock: Clock,
}

/// Buffers that a worker's connections share: an idle connection has none of its own.
#[derive(Debug)]
pub struct Scratch {
    /// Where sockets are read into.
    pub input: Box<[u8]>,
    /// Arguments of the commands in the input.
    pub spans: Vec<Span>,
    /// Replies of the batch.
    pub reply: Reply,
    /// The clients of each round.
    pub rounds: Rounds,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { input: vec![0; INPUT].into(), spans: Vec::new(), reply: Reply::default(), rounds: Rounds::default() }
    }
}

impl Worker {
    /// A worker of `instance`.
    pub fn new(instance: Arc<Instance>) -> Self {
        let stats = instance.stats.add_worker();
        Self::counting(instance, stats, Scratch::default())
    }

    fn counting(instance: Arc<Instance>, stats: Arc<WorkerStats>, scratch: Scratch) -> Self {
        let seed = foldhash::fast::RandomState::default();
        let random = std::hash::BuildHasher::hash_one(&seed, now_ms()) | 1;
        let activity = instance.exclusive.activity();
        let routes = instance.cluster.is_enabled();
        Self {
            instance,
            stats,
            routes,
            scratch: RefCell::new(scratch),
            evictor: RefCell::default(),
            changed_keys: RefCell::default(),
            watches_shutdown: Cell::new(false),
            activity,
            mode: Mode::Beside,
            loads: false,
            loads_file: false,
            still: None,
            spare: RefCell::new(Box::new(())),
            script: RefCell::new(None),
            goes_on: Cell::new(false),
            was_alone: Cell::new(false),
            panicked: Cell::new(None),
            random: Cell::new(random),
            clock: Clock::default(),
        }
    }

    /// One for slow calls, on a thread of its own that serves no connections.
    pub(crate) fn of_slow_calls(instance: Arc<Instance>, stats: Arc<WorkerStats>) -> Self {
        let scratch = Scratch { input: Box::default(), ..Scratch::default() };
        let worker = Self { mode: Mode::Slow, ..Self::counting(instance, stats, scratch) };
        worker.watches_shutdown.set(true);
        worker
    }

    /// A worker that loads an append-only file, which counts for no client.
    pub fn of_loader(instance: Arc<Instance>) -> Self {
        let stats = instance.stats.aside();
        Self { loads: true, loads_file: true, routes: false, ..Self::counting(instance, stats, Scratch::default()) }
    }

    /// [`Worker::alone`], for files that are loaded again.
    pub(crate) fn reloading(&self) -> Self {
        Self { loads: true, loads_file: true, routes: false, ..self.alone() }
    }

    /// One that runs what a primary says.
    pub(crate) fn of_link(instance: Arc<Instance>) -> Self {
        Self { loads: true, routes: false, ..Self::new(instance) }
    }

    /// One that runs what another node says of slots that come from it, or reads those that go.
    pub(crate) fn of_move(instance: Arc<Instance>) -> Self {
        let stats = instance.stats.aside();
        Self { loads: true, routes: false, ..Self::counting(instance, stats, Scratch::default()) }
    }

    /// Another one on the same thread, with the same counters, for commands that run alone with the data.
    pub(crate) fn alone(&self) -> Self {
        let (reply, rounds) = (Reply::default(), Rounds::default());
        let scratch = Scratch { input: Box::default(), spans: Vec::new(), reply, rounds };
        let clock = self.clock.clone();
        Self {
            instance: Arc::clone(&self.instance),
            stats: Arc::clone(&self.stats),
            scratch: RefCell::new(scratch),
            evictor: RefCell::default(),
            changed_keys: RefCell::default(),
            watches_shutdown: Cell::new(true),
            activity: Arc::clone(&self.activity),
            mode: if self.is_alone() { Mode::Script } else { Mode::Alone },
            loads: self.loads,
            loads_file: self.loads_file,
            // A call that runs alone is judged before it does, and a script's call by the script.
            routes: false,
            still: None,
            spare: RefCell::new(Box::new(())),
            script: RefCell::new(None),
            goes_on: Cell::new(false),
            was_alone: Cell::new(false),
            panicked: Cell::new(None),
            random: Cell::new(self.random() | 1),
            clock,
        }
    }

    /// True if its calls run alone with the data.
    #[inline]
    pub fn is_alone(&self) -> bool {
        matches!(self.mode, Mode::Alone | Mode::Script)
    }

    /// True if its calls are slow ones.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.mode == Mode::Slow
    }

    /// True if its calls are those of scripts.
    #[inline]
    pub fn is_script(&self) -> bool {
        self.mode == Mode::Script
    }

    /// Takes over the time of another worker of this thread.
    pub(crate) fn same_time_as(&self, other: &Self) {
        self.clock.set(&other.clock);
    }

    /// Replaces the shared buffers, which a panic has left in any state.
    pub fn renew_scratch(&self) {
        *self.scratch.borrow_mut() = Scratch::default();
    }

    /// Reads the clock; returns the nanoseconds since it was last read.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.clock.tick()
    }

    /// When the clock was last read.
    pub(crate) fn ticked(&self) -> Tick {
        self.clock.ticked()
    }

    /// The time of the last [`Worker::tick`], in milliseconds of Unix time.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// A client without a connection.
    pub(crate) fn unconnected_client(&self) -> Client {
        let shared = ClientShared::new(0, String::new(), String::new(), -1, self.now_ms());
        Client::new(Arc::new(shared), Identity::newcomer(&self.instance.acl))
    }

    /// A random number (xorshift64*: fast, not for secrets).
    pub fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A random number below `bound`, which is not 0.
    pub fn random_below(&self, bound: usize) -> usize {
        ((u128::from(self.random()) * bound as u128) >> 64) as usize
    }
}

/// Bytes of a request around its arguments and what stands between them, at most: `*count`, `$length` and line ends.
const REQUEST_HEAD: usize = 32;

impl Worker {
    /// Accounts for a call that has run, in `nanos` nanoseconds.
    #[inline]
    pub fn finished(&self, cx: &Ctx<'_>, call: &Call<'_>, nanos: u64) {
        self.all_finished(cx, std::slice::from_ref(call), nanos);
    }

    /// Accounts for calls that have run, in `nanos` nanoseconds each.
    #[inline]
    pub fn all_finished(&self, cx: &Ctx<'_>, calls: &[Call<'_>], nanos: u64) {
        let mut rest = calls;
        while let [first, ..] = rest {
            let same = rest.iter().position(|call| !std::ptr::eq(call.row, first.row)).unwrap_or(rest.len());
            self.stats.ran(first.row.id, same as u64, nanos);
            rest = &rest[same..];
        }
        // One that waits is counted when it has run to its end.
        cx.client.shared.traffic.commands.add(calls.len() as u64 - u64::from(cx.block.is_some()));
        let (hits, misses) = cx.db.take_lookups();
        self.stats.changes.add(cx.dirty.take());
        self.stats.hits.add(hits.into());
        self.stats.misses.add(misses.into());
        if nanos >= self.instance.observers.threshold() && !self.loads {
            calls.iter().for_each(|call| self.observe(cx, call, nanos));
        }
    }

    /// Records a call that is slow, or that an observer wants to see.
    #[cold]
    pub fn observe(&self, cx: &Ctx<'_>, call: &Call<'_>, nanos: u64) {
        let &Call { row, args } = call;
        // One that waits is recorded when it has run to its end.
        if cx.block.is_none() {
            let observed = Observed { row, args, nanos, by_script: self.is_script() };
            self.instance.observers.record(&self.instance.config, &cx.client.shared, observed, cx.now());
        }
        // MONITOR shows it when it begins to wait, and not again.
        if !cx.is_serving() && !row.command.flags.has(Flags::SKIP_MONITOR) && !row.command.flags.has(Flags::ADMIN) {
            self.show(cx, row, args);
        }
    }

    fn show(&self, cx: &Ctx<'_>, row: &'static Row, args: Args<'_>) {
        if self.instance.observers.has_monitors() && !self.instance.exclusive.is_loading() {
            let shown = Shown { row, args, db: cx.client.db, by_script: self.is_script() };
            self.instance.observers.show(&self.instance.config, &cx.client.shared, shown, now_us());
        }
    }

    /// Records a call whose request, or reply of so many bytes, is large.
    #[inline]
    pub(crate) fn sized(&self, cx: &Ctx<'_>, call: &Call<'_>, reply: usize) {
        let [large_request, large_reply] = self.instance.observers.large();
        if reply as u64 >= large_reply || (call.args.extent() + REQUEST_HEAD) as u64 >= large_request {
            self.record_size(cx, call, call.args.request_len(), reply);
        }
    }

    /// The same for a call whose request has come with another one.
    #[inline]
    pub(crate) fn replied(&self, cx: &Ctx<'_>, call: &Call<'_>, reply: usize) {
        if reply as u64 >= self.instance.observers.large()[1] {
            self.record_size(cx, call, 0, reply);
        }
    }

    /// The same for calls that have written the last so many bytes of the reply together.
    #[inline]
    pub(crate) fn all_sized(&self, cx: &Ctx<'_>, calls: &[Call<'_>], replies: usize) {
        let [large_request, large_reply] = self.instance.observers.large();
        let extent = match calls {
            [first, .., last] => first.args.extent_to(last.args),
            [call] => call.args.extent(),
            [] => 0,
        };
        if replies as u64 >= large_reply || (extent + REQUEST_HEAD) as u64 >= large_request {
            self.record_sizes(cx, calls, replies);
        }
    }

    #[cold]
    fn record_sizes(&self, cx: &Ctx<'_>, calls: &[Call<'_>], replies: usize) {
        // A reply may have half a gigabyte, and is not copied for this.
        let lens = cx.reply.last_lens(replies, calls.len());
        calls.iter().zip(lens).for_each(|(call, reply)| self.sized(cx, call, reply));
    }

    #[cold]
    fn record_size(&self, cx: &Ctx<'_>, call: &Call<'_>, request: usize, reply: usize) {
        // One that waits is recorded when it has run to its end.
        if cx.block.is_none() && !self.loads {
            let Call { row, args } = *call;
            let (request, reply, by_script) = (request as u64, reply as u64, self.is_script());
            let sized = Measured { row, args, request, reply, by_script };
            self.instance.observers.record_size(&self.instance.config, &cx.client.shared, sized, cx.now());
        }
    }

    /// Shows a command to clients that monitor before it runs.
    pub(crate) fn show_to_monitors(&self, cx: &Ctx<'_>, args: Args<'_>) {
        let observers = &self.instance.observers;
        if observers.threshold() == 0
            && let Some(row) = self.instance.registry.lookup(args.at(0))
        {
            self.show(cx, row, args);
        }
    }

    /// Accounts for a call that has run and failed.
    #[cold]
    pub fn failed(&self, row: &Row, error: &Error) {
        self.stats.commands[usize::from(row.id)].failed.add(1);
        self.error_sent(error);
    }

    /// Accounts for a call that was refused before it ran.
    #[cold]
    pub fn refused(&self, row: Option<&Row>, error: &Error) {
        if let Some(row) = row {
            self.stats.commands[usize::from(row.id)].rejected.add(1);
        }
        self.error_sent(error);
    }

    /// Counts an error reply.
    pub(crate) fn error_sent(&self, error: &Error) {
        self.stats.errors.add(1);
        self.instance.stats.count_error(&error.code());
    }
}
