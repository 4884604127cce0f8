//! The state of the snapshot in the making, and of the wish to end.

use std::io::{self};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::stand_in::StandIn;

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

/// The snapshot in the making, of which there is one at most.
#[derive(Debug, Default)]
pub struct Background {
    pub(super) now: Mutex<Option<Running>>,
    pub(super) is_aborted: AtomicBool,
    /// Whether the process was ended that stands for it.
    pub(super) is_killed: AtomicBool,
    pub(super) stand_in: Mutex<Option<StandIn>>,
    pub(super) has_cut: AtomicBool,
    /// Whether entries wait to be saved.
    pub(super) is_walking: AtomicBool,
    /// Entries that are saved, and how many there were at the cut.
    pub(super) saved: AtomicU64,
    pub(super) entries: AtomicU64,
    /// Bytes of old values that were handed over, now or of the last one.
    pub(super) handed_over: AtomicU64,
    /// Snapshots that were begun so far, and how long the last cut stopped the world, in nanoseconds.
    pub(super) begun: AtomicU64,
    pub(super) stood_still: AtomicU64,
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

    pub(super) fn state(&self) -> MutexGuard<'_, Option<Running>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, purpose: Purpose) -> Result<(), Occupied> {
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

    pub(super) fn end(&self) {
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

    pub(super) fn place_of_stand_in(&self) -> MutexGuard<'_, Option<StandIn>> {
        self.stand_in.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time between two tries to be alone with the data.
pub(super) const RETRY: Duration = Duration::from_millis(5);

/// The wish to end, which can be held up and taken back.
#[derive(Debug, Default)]
pub struct Ending {
    pub(super) is_wanted: AtomicBool,
    pub(super) is_held: AtomicBool,
    /// Until when replicas are waited for, in milliseconds of Unix time; 0: they are not.
    pub(super) until: AtomicU64,
}

impl Ending {
    /// Whether signals have to wait (`DEBUG PAUSE-CRON`).
    pub fn hold(&self, on: bool) {
        self.is_held.store(on, SeqCst);
    }

    /// A signal wants the server to end; waits as long as that is held up. Whether it was not taken back.
    pub fn wait(&self) -> bool {
        self.is_wanted.store(true, SeqCst);
        while self.is_held.load(SeqCst) && self.is_wanted.load(SeqCst) {
            thread::sleep(RETRY);
        }
        self.is_wanted.swap(false, SeqCst)
    }

    /// Replicas are waited for, until then, in milliseconds of Unix time.
    pub(crate) fn begin(&self, until: u64) {
        self.until.store(until, SeqCst);
        self.is_wanted.store(true, SeqCst);
    }

    /// Whether the server is to end, and can still go on.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(SeqCst)
    }

    /// Until when replicas are waited for, in milliseconds of Unix time.
    pub fn until(&self) -> Option<u64> {
        let until = self.until.load(SeqCst);
        (until > 0 && self.is_wanted()).then_some(until)
    }

    /// Takes the wish back; whether there was one.
    pub fn take_back(&self) -> bool {
        let was_wanted = self.is_wanted.swap(false, SeqCst);
        self.until.store(0, SeqCst);
        was_wanted
    }
}
