//! Snapshots that are written while the server goes on: BGSAVE, save points, and what a rewritten append-only file begins with.
//!
//! The cut takes microseconds and needs exclusive access to the data. A thread of its own then goes through the entries, some at a time
//! under the lock of their shard ([`walk`]). A write to an entry that the thread has not reached first hands over the old value
//! ([`Handover`], copy-before-write). Another thread compresses and writes the encoded entries ([`file`](super::file)): it holds no lock
//! and gives way to the workers.

use std::io::{self};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

use super::encoder::{Encoder, Format};
use super::handover::Handover;
use super::save::{Told, libraries, options};
use super::stand_in::StandIn;
use super::walk;
use crate::cluster::{NodeId, SlotSet};
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Instance, priority};
use crate::exec::gate::{Alone, Still, stand_still};
use crate::exec::replication::Position;
use crate::exec::search;
use crate::exec::snapshot::{Occupied, Purpose, Target};
use crate::keyspace::Cut;
use crate::persistence::rdb::WriteOptions;
use crate::threads::{self, OnPanic};

/// Makes the file.
pub type Create = Box<dyn FnOnce(&Instance) -> io::Result<Box<dyn Target>> + Send>;

/// Further work at the cut.
pub type AtCut = Box<dyn FnOnce(&Instance, &Alone) + Send>;

/// Records the outcome of a snapshot: an error of the kind [`io::ErrorKind::Interrupted`] says that it was
/// [aborted](super::state::Background::abort).
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

    /// Returns true if the snapshot is urgent because replicas wait for it. Meanwhile the server keeps their stream in memory. A client
    /// that writes too fast for that memory would make the replicas begin again and again.
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
        instance.oom_score.apply_to_child(&instance.config, stand_in.pid())?;
        Ok(stand_in)
    });
    started.inspect_err(|error| tracing::warn!("no process stands for the snapshot: {error}")).ok()
}
