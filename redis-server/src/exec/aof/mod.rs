//! The append-only file of a server: the journal, in files.
//!
//! A reply waits in its connection's output until the change that it shows is safe (`Until`). Under `always`, safe means on disk. Under
//! `everysec` and `no`, it means written by write(2), so that a killed process loses no answered change. If the disk has not answered for
//! two seconds, `everysec` also waits for the disk.
//!
//! The first thread with changes takes the **pen** (`pen.rs`) and writes those of all threads. A worker does so before it sends the replies
//! of a round. One write then serves all clients of the round, and no thread has to be woken. The **keeper** is a thread for slow work: it
//! forces files to disk, and begins new ones. A worker never waits for the pen. If another thread has it, the clients wait, and that thread
//! writes again for them.
//!
//! Under `always` the keeper alone writes, and one fdatasync serves all waiting clients. While clients come, it waits for as many as
//! waited the last time, or came meanwhile (`group.rs`). If fifty clients wait, an fdatasync for the first five makes the others wait for
//! two.
//!
//! A rewrite begins with a **cut**: a thread that is alone with the data notes the journal's offset. Later changes go to the next file;
//! earlier ones are in the base, which a thread of its own writes. The manifest names the base only when it is on disk.

mod base;
mod group;
mod keeper;
mod load;
mod lock;
mod pen;
mod state;
#[cfg(test)]
mod tests;
mod waiters;

pub use load::LoadError;
pub use state::{Aof, Figures};

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;
use std::{io, thread};

use crate::clients::client::ClientShared;
use crate::config::{Config, settings};
use crate::exec::core::clock::{now_ms, steady_ms};
use crate::exec::core::{Ctx, Instance, Worker};
use crate::exec::gate::Alone;
use crate::exec::replication::Replication;
use crate::exec::snapshot;
use crate::journal::User;
use crate::keyspace::Access;
use crate::persistence::aof::{Fsync, Layout, Log, Now, Policy, find};
use crate::persistence::disk::{Disk, RealDisk};
use keeper::Keeper;
use lock::lock;
use state::{Order, Until};
use waiters::Released;

/// How long a disk may take under `everysec` before replies wait for it, in milliseconds.
const PATIENCE: u64 = 2000;

fn now() -> Now {
    Now { unix: now_ms(), steady: steady_ms() }
}

/// Where the configuration has the files.
pub fn layout(config: &Config) -> Layout {
    let text = |setting| config.string(setting).unwrap_or_default();
    Layout::new(Path::new(&text(settings::DIR)), &text(settings::APPENDDIRNAME), &text(settings::APPENDFILENAME))
}

fn policy(config: &Config) -> Policy {
    let fsync = match config.word(settings::APPENDFSYNC) {
        "always" => Fsync::Always,
        "no" => Fsync::No,
        _ => Fsync::EverySecond,
    };
    Policy { fsync, timestamps: config.is_on(settings::AOF_TIMESTAMP_ENABLED) }
}

/// Bytes of the files that there are.
pub fn size(config: &Config) -> u64 {
    let (disk, layout) = (RealDisk, layout(config));
    let len = |path: &Path| disk.len(path).unwrap_or(0);
    find(&disk, &layout).map_or(0, |manifest| manifest.parts().map(|part| len(&layout.path(part))).sum())
}

/// Loads the files of a server that does not serve clients yet, and keeps them from then on.
///
/// # Errors
/// [`LoadError`]. The server must not start then.
pub fn start(instance: &Arc<Instance>) -> Result<(), LoadError> {
    start_on(instance, Arc::new(RealDisk))
}

fn start_on(instance: &Arc<Instance>, disk: Arc<dyn Disk>) -> Result<(), LoadError> {
    let (manifest, position) = load::load(Worker::of_loader(Arc::clone(instance)), &disk)?;
    if manifest.parts().next().is_none() && snapshot::path(&instance.config).exists() {
        tracing::warn!(
            "appendonly is on, and there is no append-only file yet: the data of {} is not loaded, and the next snapshot \
             takes its place. To keep it, start with \"appendonly no\", then CONFIG SET appendonly yes.",
            snapshot::path(&instance.config).display()
        );
    }
    let is_rdb = instance.config.is_on(settings::AOF_USE_RDB_PREAMBLE);
    let log = Log::open(disk, layout(&instance.config), manifest, is_rdb, |file| base::write_empty(is_rdb, file));
    let log = log.map_err(|error| LoadError::opening(&error))?;
    if let Some(position) = position {
        instance.replication.go_on_from(instance, position, Replication::starts_as_replica(instance));
    }
    instance.journal.turn_on(User::Aof, &instance.exclusive.already_stopped());
    let offset = instance.journal.offset();
    instance.aof.is_on.store(true, Relaxed);
    instance.aof.spawn(instance).map_err(|error| LoadError::opening(&error))?;
    // Before any client is served.
    instance.aof.with_pen(instance, |pen| pen.keep(&instance.aof, log, offset));
    instance.aof.review(instance);
    Ok(())
}

/// Loads the files again, of which nothing is missing then, in the place of all data.
///
/// # Errors
/// [`LoadError`]. The part in front of the fault has been loaded then.
pub fn reload(cx: &Ctx<'_>, alone: &Alone) -> Result<(), LoadError> {
    let worker = cx.worker;
    let instance = &worker.instance;
    while instance.aof.is_on()
        && !instance.aof.is_failing()
        && instance.aof.written.load(Acquire) < instance.journal.offset()
    {
        instance.aof.bell.ring();
        thread::sleep(Duration::from_millis(1));
    }
    instance.journal.mute(true, alone);
    for database in instance.databases() {
        drop(database.lock_all(Access::Write, worker.now_ms()).clear());
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let loaded = load::load(worker.reloading(), &disk);
    instance.journal.mute(false, alone);
    loaded.map(drop)
}

impl Aof {
    /// Decides what replies wait for. To be called when anything has changed that it depends on, and now and then, as the time does.
    pub fn review(&self, instance: &Instance) {
        // Under this lock the last thread sees all changes of the others.
        let _one = lock(&self.reviewing);
        let policy = policy(&instance.config);
        let is_late = policy.fsync == Fsync::EverySecond
            && steady_ms() > self.durable_at.load(Relaxed) + PATIENCE
            && self.durable.load(Relaxed) < instance.journal.offset();
        let until = if !self.is_on() || !self.has_writer.load(Relaxed) || self.is_failing() {
            Until::Nothing
        } else if !self.forces_nothing(instance) && (is_late || policy.fsync == Fsync::Always) {
            Until::Durable
        } else {
            Until::Written
        };
        self.is_late.store(is_late, Relaxed);
        self.until.store(until as u8, Release);
        self.bell.is_wanted.store(until == Until::Durable, Relaxed);
    }

    /// Whether nothing is forced to disk at present, as the configuration says.
    fn forces_nothing(&self, instance: &Instance) -> bool {
        let config = &instance.config;
        policy(config).fsync == Fsync::No
            || self.figures.is_rewriting.load(Relaxed) && config.is_on(settings::NO_APPENDFSYNC_ON_REWRITE)
    }

    /// Up to where the journal must be written, or on disk, before a reply that is made now may leave; `None`, where it may at once. Writes
    /// what the journal has said, where that is all that is missing and no other thread does.
    #[inline]
    pub fn holds(&self, instance: &Instance) -> Option<u64> {
        if self.until() == Until::Nothing { None } else { self.holds_at(instance, instance.journal.offset()) }
    }

    /// [`Aof::holds`] for a reply that shows what the journal says up to `offset`, which is returned if it has to wait.
    pub fn holds_at(&self, instance: &Instance, offset: u64) -> Option<u64> {
        if self.is_safe(instance, offset) {
            return None;
        }
        self.catch_up(instance);
        (!self.is_safe(instance, offset)).then_some(offset)
    }

    /// Returns the journal's offset if a new reply must wait until the journal is safe up to there. The connection asks [`Aof::holds_at`]
    /// for it just before the reply leaves, so that one write serves all replies that were made meanwhile.
    #[inline]
    pub fn unsafe_at(&self, instance: &Instance) -> Option<u64> {
        if self.until() == Until::Nothing {
            return None;
        }
        let offset = instance.journal.offset();
        (!self.is_safe(instance, offset)).then_some(offset)
    }

    /// Whether what the journal says up to `offset` is as safe as it has to be.
    fn is_safe(&self, instance: &Instance, offset: u64) -> bool {
        let reached = match self.until() {
            Until::Nothing => return true,
            Until::Written => &self.written,
            Until::Durable => &self.durable,
        };
        // An offset that the journal does not have is one of another stream, which nothing is kept of any more.
        reached.load(Acquire) >= offset || offset > instance.journal.offset()
    }

    /// Has the client woken when what the journal says up to `offset` may be safe. To be looked at again behind this.
    pub fn wait(&self, instance: &Instance, client: &Arc<ClientShared>, offset: u64) {
        let Some(is_complete) = self.waiters.add(client, offset, || self.is_safe(instance, offset)) else { return };
        self.figures.delayed.fetch_add(u64::from(self.is_late.load(Relaxed)), Relaxed);
        if is_complete {
            self.bell.unpark();
        }
        // Either the thread that has the pen sees the client, or this one can have the pen.
        fence(SeqCst);
        if self.until() == Until::Written {
            if self.delay.load(Relaxed) == 0 { self.catch_up(instance) } else { self.bell.ring() }
        }
    }

    /// Wakes clients whose replies may leave.
    fn release(&self, instance: &Instance) -> Released {
        fence(SeqCst);
        let safe = match self.until() {
            Until::Nothing => u64::MAX,
            Until::Written => self.written.load(Acquire),
            Until::Durable => self.durable.load(Acquire),
        };
        self.waiters.release(safe, &instance.workers)
    }

    /// Begins to keep what changes, from some moment soon on. The files count when there is a base.
    ///
    /// # Errors
    /// There can be no files.
    pub fn turn_on(&self, instance: &Arc<Instance>) -> io::Result<()> {
        let log = Log::begin(Arc::new(RealDisk), layout(&instance.config))?;
        self.spawn(instance)?;
        self.is_on.store(true, Relaxed);
        self.review(instance);
        self.figures.is_rewriting.store(true, Relaxed);
        self.order(Order::Begin(Box::new(log)));
        Ok(())
    }

    /// No longer keeps what changes. Returns when everything so far is on disk, as far as it can be.
    pub fn turn_off(&self) {
        let (done, ended) = std::sync::mpsc::channel();
        self.order(Order::End(done));
        // The keeper drops its end when it is done; it may be gone by now.
        let _ = ended.recv();
    }

    /// Has the files rewritten, now or when what is in the way has ended. Where nothing is kept, they are a base alone.
    ///
    /// # Errors
    /// There can be no files.
    pub fn rewrite(&self, instance: &Arc<Instance>, is_put_off: bool) -> io::Result<()> {
        let order = if self.is_on() {
            Order::Rewrite
        } else {
            let log = Log::begin(Arc::new(RealDisk), layout(&instance.config))?;
            self.spawn(instance)?;
            Order::Begin(Box::new(log))
        };
        let figures = &self.figures;
        if is_put_off { &figures.is_scheduled } else { &figures.is_rewriting }.store(true, Relaxed);
        self.order(order);
        Ok(())
    }

    /// Removes files that belong to no state any more (`aof-disable-auto-gc no`). Returns when that is done.
    pub fn remove_history(&self) {
        if self.is_on() {
            let (done, ended) = std::sync::mpsc::channel();
            self.order(Order::RemoveHistory(done));
            // The keeper drops its end when it is done.
            let _ = ended.recv();
        }
    }

    /// The server ends: returns when everything so far is on disk, as far as it can be.
    pub fn finish(&self) {
        let keeper = lock(&self.keeper).take();
        if let Some(keeper) = keeper {
            self.turn_off();
            self.order(Order::Leave);
            // It has said in the log what went wrong.
            let _ = keeper.join();
        }
    }

    fn order(&self, order: Order) {
        lock(&self.orders).push(order);
        self.bell.ring();
    }

    fn spawn(&self, instance: &Arc<Instance>) -> io::Result<()> {
        let mut keeper = lock(&self.keeper);
        if keeper.is_none() {
            let thread = Keeper::spawn(Arc::clone(instance))?;
            // There is one keeper for as long as the server lives.
            let _ = self.bell.thread.set(thread.thread().clone());
            *keeper = Some(thread);
        }
        Ok(())
    }
}
