//! Snapshots that are written while the server goes on: BGSAVE, save points, and what a rewritten append-only file begins with.
//!
//! The cut takes microseconds and needs exclusive access to the data. A thread of its own then goes through the entries, some at a time
//! under the lock of their shard ([`walk`]). A write to an entry that the thread has not reached first hands over the old value
//! ([`Handover`], copy-before-write). Another thread compresses and writes the encoded entries ([`file`](super::file)): it holds no lock
//! and gives way to the workers.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::encoder::{Encoder, Format};
use super::handover::Handover;
use super::save::{Told, libraries, options};
use super::stand_in::StandIn;
use super::walk;
use crate::cluster::{NodeId, SlotSet};
use crate::config::settings;
use crate::exec::clock::now_ms;
use crate::exec::gate::Alone;
use crate::exec::gate::{Still, stand_still};
use crate::exec::instance::Instance;
use crate::exec::priority;
use crate::exec::replication::Position;
use crate::exec::search;
use crate::keyspace::Cut;
use crate::persistence::rdb::WriteOptions;
use crate::threads::{self, OnPanic};

/// How long the thread sleeps where nothing can be done, between two looks at whether it is to stop.
pub(super) const NAP: Duration = Duration::from_millis(1);

/// The purpose of a snapshot in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The snapshot file.
    Snapshot,
    /// The beginning of an append-only file.
    AofBase,
    /// Replicas, which are sent it as it is made.
    Replicas,
    /// None: another server's snapshot is loaded beside the data, and no cut may be made meanwhile ([`Background::keep_out`]).
    Load,
}

/// A file in the making that takes its place when it is complete, and leaves nothing behind if it is dropped before.
pub trait Target: Write {
    /// Puts it in its place.
    ///
    /// # Errors
    /// The disk's.
    fn commit(self: Box<Self>) -> io::Result<()>;
}

/// Makes the file.
pub type Create = Box<dyn FnOnce(&Instance) -> io::Result<Box<dyn Target>> + Send>;

/// Further work at the cut.
pub type AtCut = Box<dyn FnOnce(&Instance, &Alone) + Send>;

/// Records the outcome of a snapshot: an error of the kind [`io::ErrorKind::Interrupted`] says that it was
/// [aborted](Background::abort).
pub type Record = Box<dyn FnOnce(&Instance, &io::Result<()>) + Send>;

/// The callback at the end of a snapshot, with its outcome.
pub type Ended = Box<dyn FnOnce(&Instance, io::Result<()>) + Send>;

/// A snapshot to be made.
pub struct Job {
    /// Its purpose.
    pub purpose: Purpose,
    /// The format of its file.
    pub format: Format,
    /// Makes the file, on the thread that writes it.
    pub create: Create,
    /// Is called at the cut.
    pub at_cut: AtCut,
    /// Runs before the snapshot counts as ended: a client that sees its end sees its outcome.
    pub record: Record,
    /// Runs when the snapshot has ended and another may begin.
    pub ended: Ended,
}

/// The snapshot in the making, of which there is one at most.
#[derive(Debug, Default)]
pub struct Background {
    now: Mutex<Option<Running>>,
    is_aborted: AtomicBool,
    /// Whether the process was ended that stands for it.
    is_killed: AtomicBool,
    stand_in: Mutex<Option<StandIn>>,
    has_cut: AtomicBool,
    /// Whether entries wait to be saved.
    is_walking: AtomicBool,
    /// Entries that are saved, and how many there were at the cut.
    saved: AtomicU64,
    entries: AtomicU64,
    /// Bytes of old values that were handed over, now or of the last one.
    handed_over: AtomicU64,
    /// Snapshots that were begun so far, and how long the last cut stopped the world, in nanoseconds.
    begun: AtomicU64,
    stood_still: AtomicU64,
}

/// While this is there, no snapshot begins.
#[derive(Debug)]
pub struct NoSnapshot<'b>(&'b Background);

impl Drop for NoSnapshot<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The state of a snapshot in the making.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// Its purpose.
    pub purpose: Purpose,
    /// When it began.
    pub since: Instant,
}

/// There is a snapshot in the making already, for this purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied(pub Purpose);

impl Background {
    /// The snapshot in the making.
    pub fn running(&self) -> Option<Running> {
        *self.state()
    }

    /// Whether there is one, which goes on.
    pub fn is_running(&self, purpose: Purpose) -> bool {
        self.running().is_some_and(|running| running.purpose == purpose) && !self.is_aborted.load(SeqCst)
    }

    /// Has the snapshot in the making end soon, without a file, if it is for this.
    pub fn abort(&self, purpose: Purpose) {
        let state = self.state();
        if state.is_some_and(|running| running.purpose == purpose) {
            self.is_aborted.store(true, SeqCst);
        }
    }

    /// [`Background::abort`], whatever it is for, and waits until nothing of it is left; of one that has not made its cut nothing
    /// ever is. The caller holds no shard's lock, but may be alone with the data.
    pub fn abort_and_wait(&self) {
        while let Some(running) = self.running() {
            self.abort(running.purpose);
            if !self.has_cut.load(SeqCst) {
                return;
            }
            thread::sleep(NAP);
        }
    }

    /// Has no snapshot begin until what this returns is dropped; the one in the making is [aborted](Background::abort_and_wait).
    /// `None`: one is about to begin, it is to be tried again.
    pub fn keep_out(&self) -> Option<NoSnapshot<'_>> {
        self.abort_and_wait();
        self.begin(Purpose::Load).ok().map(|()| NoSnapshot(self))
    }

    /// Whether there are entries of the cut that wait to be saved.
    #[inline]
    pub fn is_walking(&self) -> bool {
        self.is_walking.load(Relaxed)
    }

    /// More entries are saved.
    pub(super) fn note_saved(&self, entries: u64) {
        self.saved.fetch_add(entries, Relaxed);
    }

    /// So many bytes were handed over so far.
    pub(super) fn note_handed_over(&self, bytes: u64) {
        self.handed_over.store(bytes, Relaxed);
    }

    /// Entries that are saved, and how many there were at the cut; both 0 while there is none in the making.
    pub fn progress(&self) -> (u64, u64) {
        if self.running().is_some() { (self.saved.load(Relaxed), self.entries.load(Relaxed)) } else { (0, 0) }
    }

    /// Bytes of old values that were handed over for the snapshot in the making, or for the last one.
    pub fn handed_over(&self) -> u64 {
        self.handed_over.load(Relaxed)
    }

    /// How long the last cut stopped the world, and the number of snapshots begun so far.
    pub fn cuts(&self) -> (Duration, u64) {
        (Duration::from_nanos(self.stood_still.load(Relaxed)), self.begun.load(Relaxed))
    }

    fn state(&self) -> MutexGuard<'_, Option<Running>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, purpose: Purpose) -> Result<(), Occupied> {
        let mut state = self.state();
        if let Some(running) = &*state {
            return Err(Occupied(running.purpose));
        }
        *state = Some(Running { purpose, since: Instant::now() });
        self.is_aborted.store(false, SeqCst);
        self.is_killed.store(false, SeqCst);
        self.has_cut.store(false, SeqCst);
        self.saved.store(0, Relaxed);
        self.entries.store(0, Relaxed);
        self.handed_over.store(0, Relaxed);
        self.begun.fetch_add(1, Relaxed);
        Ok(())
    }

    fn end(&self) {
        *self.place_of_stand_in() = None;
        *self.state() = None;
    }

    /// # Errors
    /// It is to end.
    pub fn check(&self) -> io::Result<()> {
        if self.is_aborted.load(SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.is_killed.load(SeqCst) { Err(io::Error::other("its process was ended")) } else { Ok(()) }
    }

    /// The number of the process that stands for the snapshot in the making.
    pub fn stand_in(&self) -> Option<u32> {
        self.place_of_stand_in().as_ref().map(StandIn::pid)
    }

    fn place_of_stand_in(&self) -> MutexGuard<'_, Option<StandIn>> {
        self.stand_in.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins a snapshot whose cut is made now; the caller holds no lock of a shard. Where there is no thread for it, it has ended when this
/// returns.
///
/// # Errors
/// [`Occupied`].
pub fn start_now(instance: &Arc<Instance>, job: Job, still: &Still) -> Result<(), Occupied> {
    instance.background.begin(job.purpose)?;
    let Job { purpose, format, create, at_cut, record, ended } = job;
    match spawn(instance, purpose) {
        Ok(thread) => {
            let moment = cut(instance, (purpose, format), at_cut, still);
            thread.run(move |instance| finish(instance, record, ended, || write(instance, &moment, create)));
        }
        Err(error) => finish(instance, record, ended, || Err(error)),
    }
    Ok(())
}

/// Begins a snapshot whose cut is made soon, when no command runs. Where there is no thread for it, it has ended when this returns.
///
/// # Errors
/// [`Occupied`].
pub fn start(instance: &Arc<Instance>, job: Job) -> Result<(), Occupied> {
    instance.background.begin(job.purpose)?;
    let Job { purpose, format, create, at_cut, record, ended } = job;
    match spawn(instance, purpose) {
        Ok(thread) => thread.run(move |instance| {
            finish(instance, record, ended, || {
                let still = stand_still(&instance.exclusive, || instance.background.check())?;
                let moment = cut(instance, (purpose, format), at_cut, &still);
                drop(still);
                write(instance, &moment, create)
            });
        }),
        Err(error) => finish(instance, record, ended, || Err(error)),
    }
    Ok(())
}

/// Does `work`, records its outcome, ends the snapshot and goes on with what follows.
fn finish(instance: &Instance, record: Record, ended: Ended, work: impl FnOnce() -> io::Result<()>) {
    let written = work();
    record(instance, &written);
    instance.background.end();
    ended(instance, written);
}

/// A thread that waits for something to do.
struct Idle(Sender<Work>);

type Work = Box<dyn FnOnce(&Arc<Instance>) + Send>;

impl Idle {
    fn run(self, work: impl FnOnce(&Arc<Instance>) + Send + 'static) {
        self.0.send(Box::new(work)).expect("the thread waits for this");
    }
}

/// A thread for a snapshot. It starts before the cut: after the cut, handed-over values wait to be saved.
fn spawn(instance: &Arc<Instance>, purpose: Purpose) -> io::Result<Idle> {
    let (sender, receiver) = mpsc::channel::<Work>();
    let instance = Arc::clone(instance);
    let run = move || {
        // The process that stands for the snapshot inherits it, whose start would keep workers waiting.
        priority::lower(priority::SNAPSHOT);
        *instance.background.place_of_stand_in() = stand_in(&instance, purpose);
        if let Ok(work) = receiver.recv() {
            work(&instance);
        }
    };
    // A panic of the writer is caught there; elsewhere nobody would end the snapshot.
    threads::spawn("snapshot", OnPanic::EndProcess, run).map(|_| Idle(sender))
}

/// The cut.
pub(super) struct Moment {
    pub(super) handover: Arc<Handover>,
    pub(super) purpose: Purpose,
    pub(super) format: Format,
    pub(super) at: u64,
    /// Keys of each database, and how many of them expire.
    pub(super) sizes: Vec<(usize, usize)>,
    pub(super) options: WriteOptions,
    pub(super) libraries: Vec<Box<[u8]>>,
    /// The search indexes, and what is kept beside them.
    pub(super) search: search::Kept,
    /// Where a primary's stream is that is followed.
    pub(super) position: Option<Position>,
    /// The slots that are on their way to this node, by the names of their moves.
    pub(super) imports: Vec<(NodeId, Arc<SlotSet>)>,
}

impl Moment {
    /// An encoder for the file.
    pub(super) fn encoder(&self) -> Encoder {
        Encoder::new(self.format, self.options)
    }

    /// Whether the snapshot should be made at once: while replicas wait for it, the stream that they need next is kept in memory, and a
    /// client that writes faster than that allows would make them begin again and again.
    pub(super) fn is_urgent(&self) -> bool {
        self.purpose == Purpose::Replicas
    }
}

/// Makes the cut.
fn cut(instance: &Instance, (purpose, format): (Purpose, Format), at_cut: AtCut, still: &Still) -> Moment {
    let began = Instant::now();
    instance.background.has_cut.store(true, SeqCst);
    let databases = instance.databases();
    let sizes: Vec<_> = databases.iter().map(|database| (database.len(), database.expiring())).collect();
    instance.background.entries.store(sizes.iter().map(|(keys, _)| *keys as u64).sum(), Relaxed);
    let (libraries, options) = (libraries(instance), options(&instance.config, databases));
    let told = databases.iter().map(|database| Told::of(instance.config.word(settings::MAXMEMORY_POLICY), database));
    let at = now_ms();
    let handover = Arc::new(Handover::new(told.collect(), at, Encoder::new(format, options)));
    Cut::begin(databases, Arc::<Handover>::clone(&handover));
    instance.background.is_walking.store(true, SeqCst);
    at_cut(instance, still);
    let position = instance.replication.position(instance, still);
    let imports = instance.cluster.imports(instance);
    let search = search::Kept::of(instance);
    instance.background.stood_still.store(began.elapsed().as_nanos() as u64, Relaxed);
    Moment { handover, purpose, format, at, sizes, options, libraries, search, position, imports }
}

/// Writes the snapshot of this moment. However that ends, no entry waits to be saved then.
fn write(instance: &Arc<Instance>, moment: &Moment, create: Create) -> io::Result<()> {
    let work = || walk::save(instance, moment, create);
    let written = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(io::Error::other("a panic")));
    if written.is_err() {
        walk::forget(instance, moment)?;
    }
    instance.background.is_walking.store(false, SeqCst);
    Cut::end(instance.databases());
    written
}

/// A process that stands for the snapshot, where the server is a process of its own and there can be one.
fn stand_in(instance: &Arc<Instance>, purpose: Purpose) -> Option<StandIn> {
    if !instance.snapshots.is_automatic() {
        return None;
    }
    let name = match purpose {
        Purpose::Snapshot | Purpose::Load => "redis-rdb-bgsave",
        Purpose::AofBase => "redis-aof-rewrite",
        Purpose::Replicas => "redis-rdb-to-slaves",
    };
    let shared = Arc::clone(instance);
    let started = StandIn::start(name, move || shared.background.is_killed.store(true, SeqCst)).and_then(|stand_in| {
        instance.oom_score.apply_to_child(instance, stand_in.pid())?;
        Ok(stand_in)
    });
    started.inspect_err(|error| tracing::warn!("no process stands for the snapshot: {error}")).ok()
}
