//! The writer of the files: one thread at a time has it, the first that comes.

use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

use super::lock::lock;
use super::state::{Aof, Cut, Order, Pen, Until};
use super::{PATIENCE, now};
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::gate::Alone;
use crate::persistence::aof::{Layout, Log, Now, Writer};
use crate::persistence::disk::Disk;
use crate::threads::Vital;

/// The files' end is unknown if a panic leaves the pen in the middle of a line.
const WRITING: Vital = Vital("what writes the append-only file");

impl Pen {
    /// Reads the journal from now on.
    pub(super) fn read(&mut self, instance: &Instance) {
        let bell = Arc::clone(&instance.aof.bell);
        self.journal = Some(instance.journal.reader(move || bell.ring_if_wanted()));
    }

    /// Writes nothing until a base of these files has its cut.
    pub(super) fn begin(&mut self, instance: &Instance, log: Box<Log>) {
        // The stream may have become another one since the last files.
        self.read(instance);
        (self.begun, self.writer, self.awaits) = (Some(log), None, None);
    }

    /// Awaits the cut of this rewrite. Returns where its base is to be, and whether it is the first of these files; `None`, if there are no
    /// files.
    pub(super) fn await_cut(&mut self, rewrite: u64) -> Option<(Arc<dyn Disk>, Layout, bool)> {
        self.awaits = Some(rewrite);
        let is_first = self.begun.is_some();
        let log = self.begun.as_deref_mut().or_else(|| self.writer.as_mut().map(Writer::log))?;
        Some((Arc::clone(log.disk()), log.layout().clone(), is_first))
    }

    /// Abandons files that still wait for their first base. Returns the writer, which the caller must finish.
    pub(super) fn end(&mut self, aof: &Aof) -> Option<Writer> {
        self.awaits = None;
        if let Some(log) = &mut self.begun.take() {
            log.abandon();
        }
        self.fill(aof);
        self.writer.take()
    }

    /// Writes to these files what the journal says from this offset on.
    pub(super) fn keep(&mut self, aof: &Aof, log: Log, offset: u64) {
        self.writer = Some(Writer::new(log, offset));
        aof.written.store(offset, Relaxed);
        aof.durable.store(offset, Relaxed);
        aof.durable_at.store(now().steady, Relaxed);
    }

    /// Takes what the journal has said. Returns whether there was anything.
    pub(super) fn fill(&mut self, aof: &Aof) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        let at = journal.take(&mut self.bytes, &mut self.apart);
        // Looked at behind what was taken: a cut that is among that is here by then.
        let cut = lock(&aof.cut).take();
        if let Some(cut) = cut.filter(|cut| self.awaits == Some(cut.rewrite)) {
            self.cut(aof, &cut);
        }
        let is_new = !self.bytes.is_empty();
        match &mut self.writer {
            Some(writer) => pass_on((&mut self.bytes, &mut self.apart), at, writer),
            None => {
                self.bytes.clear();
                self.apart.clear();
            }
        }
        is_new
    }

    fn cut(&mut self, aof: &Aof, cut: &Cut) {
        self.awaits = None;
        if let Some(log) = self.begun.take() {
            self.keep(aof, *log, cut.offset);
            if let Some(writer) = &mut self.writer {
                writer.begin_in(cut.db);
            }
        } else if let Some(writer) = &mut self.writer {
            writer.switch_at(cut.offset, cut.db);
        }
    }
}

/// Gives what stands at `at` in the journal to what writes it: without what was said before it began to, which is in the base.
fn pass_on((bytes, apart): (&mut Vec<u8>, &mut Vec<Range<u64>>), at: u64, writer: &mut Writer) {
    let before = (writer.end().saturating_sub(at) as usize).min(bytes.len());
    bytes.drain(..before);
    writer.take(bytes, apart);
}

impl Aof {
    /// Waits for the pen, for as long as another thread writes with it.
    pub(super) fn pen(&self) -> MutexGuard<'_, Pen> {
        lock(&self.pen)
    }

    /// Does something with the pen, and says what has come of it.
    pub(super) fn with_pen<R>(&self, instance: &Instance, work: impl FnOnce(&mut Pen) -> R) -> R {
        let _vital = WRITING;
        let mut pen = self.pen();
        let result = work(&mut pen);
        self.publish(&mut pen, instance);
        result
    }

    /// Writes the journal's new bytes, if replies need no more than that and no other thread is writing. Such a thread looks for waiting
    /// clients after its write.
    pub(super) fn catch_up(&self, instance: &Instance) {
        let mut expects_more = false;
        while self.until() == Until::Written && self.delay.load(Relaxed) == 0 {
            let now = now();
            if now.steady > self.durable_at.load(Relaxed) + PATIENCE {
                self.review(instance);
                if self.until() != Until::Written {
                    return;
                }
            }
            let Some((is_new, end)) = self.try_write(instance, now) else { return };
            // Some may have come behind what was taken, and found the pen in use.
            let has_more = self.release(instance).left > 0 && instance.journal.offset() > end;
            if !has_more || expects_more && !is_new {
                return;
            }
            expects_more = true;
        }
    }

    /// Writes what the journal has said, unless another thread has the pen. Returns whether there was anything, and where that ends.
    fn try_write(&self, instance: &Instance, now: Now) -> Option<(bool, u64)> {
        let _vital = WRITING;
        let mut pen = match self.pen.try_lock() {
            Ok(pen) => pen,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return None,
        };
        let is_new = pen.fill(self);
        let writer = pen.writer.as_mut()?;
        writer.write(now, instance.config.is_on(settings::AOF_TIMESTAMP_ENABLED));
        let end = writer.end();
        self.publish(&mut pen, instance);
        Some((is_new, end))
    }

    /// The base of this rewrite has the data as it is now.
    pub(super) fn cut(&self, instance: &Instance, rewrite: u64, alone: &Alone) {
        // Another thread may add bytes for replicas only and take them from the journal meanwhile; the taking thread waits here for the
        // cut.
        let mut cut = lock(&self.cut);
        let (offset, db) = instance.journal.reset_db(alone);
        *cut = Some(Cut { rewrite, offset, db });
        drop(cut);
        self.order(Order::Cut(rewrite));
    }

    /// Says what is written, and what is on disk.
    fn publish(&self, pen: &mut Pen, instance: &Instance) {
        self.has_writer.store(pen.writer.is_some(), Relaxed);
        let Some(writer) = &mut pen.writer else { return self.review(instance) };
        let written = writer.written();
        self.written.store(written, Release);
        // Without fdatasync, replies wait for the file alone.
        let durable = if self.forces_nothing(instance) { written } else { writer.durable() };
        let is_more = durable > self.durable.load(Relaxed);
        if is_more {
            self.durable.store(durable, Release);
        }
        if durable == instance.journal.offset() {
            self.durable_at.store(now().steady, Relaxed);
        }
        let (size, base_size) = writer.log().sizes();
        self.figures.size.store(size, Relaxed);
        self.figures.base_size.store(base_size, Relaxed);
        self.figures.buffer.store(writer.pending() as u64, Relaxed);
        if writer.failure().is_some() != self.is_failing() {
            *lock(&self.failure) = writer.failure().map(str::to_owned).unwrap_or_default();
            self.is_failing.store(writer.failure().is_some(), Relaxed);
            self.review(instance);
        }
        if is_more {
            instance.replication.serve_waits(instance);
        }
    }
}
