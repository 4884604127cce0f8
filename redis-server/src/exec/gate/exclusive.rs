//! The execution gate. All workers work with the data at the same time, each under the locks of its keys. Slow calls
//! work beside them, on threads of their own. Or one thread is alone.
//!
//! A script's keys are not known before it runs, so it runs alone. Locking every shard of every database would cost more
//! than most scripts do. Instead each worker says when it is at work, in a place of its own that costs it no contention.
//! A thread that wants to be alone waits until no other is at work.
//!
//! There is no other door: eviction, the active removal of expired keys, and commands all enter by it.
//!
//! No worker's thread waits for a slow call, neither for its locks nor for its end:
//!
//! - A slow call **marks** the keys, or databases, that it will work on. It waits until every worker has left its
//!   present window, and until earlier slow calls with the same marks are over. Then it borrows the keys, or locks all
//!   shards. A window that begins later sees the marks; where it wants what they forbid, it does not run, and its
//!   connection is [held](Held). Locks that are not marked are held for the time of a window, or of a walk's look at
//!   one shard.
//! - A call that must be alone is held too while slow calls are at work. No further slow call begins until all such
//!   calls have had their turn, so neither side starves.
//!
//! Nothing can wait in a circle. Windows wait for a thread that is alone. Such a thread waits for windows that have begun,
//! and these only for locks of other windows, in ascending order of the shards. Slow calls wait for all of these and for
//! earlier slow calls, and hold no lock while they wait to begin. Held connections hold nothing.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::marks::Marks;
use super::units::Units;
use crate::clients::client::ClientShared;
use crate::journal::Standstill;

/// Looks at a flag before a thread goes to sleep: most windows of commands, and most scripts, are shorter.
const SPINS: u32 = 500;
/// How long a thread that wants to be alone sleeps between two looks at a worker that is at work.
const NAP: Duration = Duration::from_micros(50);

/// No thread is alone.
const OPEN: u32 = 0;
/// A thread is alone, or waits for the others to finish.
const ALONE: u32 = 1;
/// A thread has been alone for so long that no other waits for it any more.
const BUSY: u32 = 2;
/// Data is loaded, and no thread waits for that.
const LOADING: u32 = 3;
/// The bits of these four.
const TURN: u32 = 3;
/// Slow calls have marked something.
const MARKED: u32 = 4;

/// The state that all workers look at.
#[derive(Debug, Default)]
pub struct Exclusive {
    state: CachePadded<AtomicU32>,
    /// Of all workers, and of some that are gone.
    activities: Mutex<Vec<Arc<Activity>>>,
    /// The marks of slow calls, by their numbers.
    marks: RwLock<Vec<(u64, Marks)>>,
    /// Nanoseconds for which a thread was alone.
    alone_nanos: AtomicU64,
    /// Slow calls that have ended.
    ended: AtomicU64,
    /// The state when no thread is alone: [`OPEN`], [`LOADING`], or [`BUSY`] where no thread enters any more.
    rest: AtomicU32,
    line: Mutex<Line>,
    changed: Condvar,
    /// Held while a primary's commands are run and passed on.
    pub units: Units,
}

/// The threads and clients that wait. `state` only changes under its lock.
#[derive(Debug, Default)]
struct Line {
    /// Those who want to be alone, in the order in which they came.
    stoppers: VecDeque<u64>,
    next: u64,
    /// Windows and slow calls that have waited for a thread that is alone, and come before the next such thread.
    entering: usize,
    /// Threads that sleep until something changes.
    sleepers: usize,
    /// Slow calls at work.
    slow: usize,
    /// Connections that are held because they want to be alone.
    scripts: usize,
    /// Connections that are held.
    held: Vec<Arc<ClientShared>>,
}

/// Where one worker says whether it is at work: the number of windows that it has begun and ended.
#[derive(Debug, Default)]
pub struct Activity(CachePadded<AtomicU32>);

impl Activity {
    /// Only the activity's own thread may call this, and [`Activity::end`].
    #[inline]
    fn begin(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), SeqCst);
    }

    #[inline]
    fn end(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Release);
    }

    /// Waits until the worker is not at work, or has begun something else since.
    fn pass_by(&self) {
        let seen = self.0.load(SeqCst);
        let mut spins = 0;
        while seen % 2 == 1 && self.0.load(SeqCst) == seen {
            spins += 1;
            if spins < SPINS { spin_loop() } else { std::thread::sleep(NAP) }
        }
    }
}

/// A thread is alone, and takes too long to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// The work that is alone with the data, and not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupation {
    /// A script that takes too long, or the save before the server ends.
    Script,
    /// Loading the data.
    Load,
}

/// Why no thread can be alone now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindered {
    /// A thread has been alone for too long.
    Busy,
    /// Slow calls are at work.
    Slow,
}

/// A worker is at work until this is dropped.
#[derive(Debug)]
pub struct Inside<'a> {
    activity: &'a Activity,
    /// Whether slow calls have marked something.
    pub marked: bool,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.activity.end();
    }
}

/// Its holder is alone with the data until this is dropped. Functions that change something for all windows at once take a
/// reference to it: a window sees such a change as a whole or not at all.
#[derive(Debug)]
pub struct Alone {
    gate: Arc<Exclusive>,
    standstill: Standstill,
    /// Whether windows go on when this is dropped: it is not a part of another stop.
    ends: bool,
}

impl Alone {
    fn new(gate: &Arc<Exclusive>, ends: bool) -> Self {
        Self { gate: Arc::clone(gate), standstill: Standstill::vouched(), ends }
    }
}

impl Deref for Alone {
    type Target = Standstill;

    fn deref(&self) -> &Standstill {
        &self.standstill
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if self.ends {
            self.gate.change(OPEN);
        }
    }
}

/// A slow call is at work until this is dropped.
#[derive(Debug)]
pub struct Slow {
    gate: Arc<Exclusive>,
    number: u64,
}

impl Drop for Slow {
    fn drop(&mut self) {
        let gate = &self.gate;
        // In the order in which a slow call begins: of two that end beside each other, the later one finds nothing marked.
        let mut line = lock(&gate.line);
        line.slow -= 1;
        let mut marks = gate.marks.write().unwrap_or_else(PoisonError::into_inner);
        marks.retain(|(number, _)| *number != self.number);
        if marks.is_empty() {
            gate.state.fetch_and(!MARKED, SeqCst);
        }
        drop(marks);
        // After the marks are gone: a call that saw them and is held later finds this changed.
        gate.ended.fetch_add(1, SeqCst);
        let held = std::mem::take(&mut line.held);
        gate.notify(&line);
        drop(line);
        held.iter().for_each(|client| client.wake());
    }
}

/// A connection whose command waits for slow calls. Nothing of it has run.
#[derive(Debug)]
pub struct Held {
    gate: Arc<Exclusive>,
    seen: u64,
    is_script: bool,
    /// When it is to try again at the latest, in milliseconds of Unix time.
    pub until: Option<u64>,
}

impl Held {
    /// Whether it is worth another try: a slow call has ended since.
    pub fn is_over(&self) -> bool {
        self.gate.ended() != self.seen
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_script {
            let mut line = lock(&self.gate.line);
            line.scripts -= 1;
            self.gate.notify(&line);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exclusive {
    /// A place for one more worker.
    pub fn activity(&self) -> Arc<Activity> {
        let activity = Arc::<Activity>::default();
        let mut activities = lock(&self.activities);
        activities.retain(|activity| Arc::strong_count(activity) > 1);
        activities.push(Arc::clone(&activity));
        activity
    }

    /// Begins a worker's work, when no thread is alone any more.
    ///
    /// # Errors
    /// [`Busy`].
    #[inline]
    pub fn enter<'a>(&self, activity: &'a Activity) -> Result<Inside<'a>, Busy> {
        // Both sides write their own flag before they look at the other's: one of them sees the other.
        activity.begin();
        let state = self.state.load(SeqCst);
        if state & TURN == OPEN {
            return Ok(Inside { activity, marked: state & MARKED != 0 });
        }
        activity.end();
        self.enter_later(activity)
    }

    /// Begins a worker's work, unless a thread is alone: for work that has time until later.
    pub fn try_enter<'a>(&self, activity: &'a Activity) -> Option<Inside<'a>> {
        activity.begin();
        let state = self.state.load(SeqCst);
        if state & TURN == OPEN {
            return Some(Inside { activity, marked: state & MARKED != 0 });
        }
        activity.end();
        None
    }

    /// Waits until no thread is alone, then begins before another thread is alone.
    #[cold]
    fn enter_later<'a>(&self, activity: &'a Activity) -> Result<Inside<'a>, Busy> {
        if self.is_loading() {
            return Err(Busy);
        }
        self.spin();
        let mut line = lock(&self.line);
        line.entering += 1;
        while self.turn() == ALONE {
            line = self.sleep(line);
        }
        let result = match self.turn() {
            BUSY | LOADING => Err(Busy),
            _ => {
                activity.begin();
                Ok(Inside { activity, marked: self.state.load(SeqCst) & MARKED != 0 })
            }
        };
        line.entering -= 1;
        self.notify(&line);
        result
    }

    /// Waits until no worker is at work; none begins until the guard is dropped.
    ///
    /// # Errors
    /// [`Hindered`].
    pub fn stop(self: &Arc<Self>) -> Result<Alone, Hindered> {
        self.spin();
        self.stop_behind(lock(&self.line))
    }

    /// [`Exclusive::stop`], which waits for slow calls; none begins meanwhile. Only a thread that serves nobody may call this.
    ///
    /// # Errors
    /// [`Hindered::Busy`].
    pub fn stop_after_slow_calls(self: &Arc<Self>) -> Result<Alone, Hindered> {
        let mut line = lock(&self.line);
        line.scripts += 1;
        while line.slow > 0 && !self.is_busy() {
            line = self.sleep(line);
        }
        let alone = self.stop_behind(line);
        let mut line = lock(&self.line);
        line.scripts -= 1;
        self.notify(&line);
        alone
    }

    fn stop_behind(self: &Arc<Self>, mut line: MutexGuard<'_, Line>) -> Result<Alone, Hindered> {
        let ticket = line.next;
        line.next += 1;
        line.stoppers.push_back(ticket);
        let hindered = loop {
            match self.turn() {
                BUSY | LOADING => break Some(Hindered::Busy),
                OPEN if line.slow > 0 => break Some(Hindered::Slow),
                OPEN if line.entering == 0 && line.stoppers.front() == Some(&ticket) => break None,
                _ => line = self.sleep(line),
            }
        };
        line.stoppers.retain(|other| *other != ticket);
        if let Some(hindered) = hindered {
            self.notify(&line);
            return Err(hindered);
        }
        self.state.store(ALONE, SeqCst);
        drop(line);
        let alone = Alone::new(self, true);
        lock(&self.activities).iter().for_each(|activity| activity.pass_by());
        Ok(alone)
    }

    /// Begins a slow call that will lock what it marks, when no thread is alone or waits to be. Only a thread of slow
    /// calls may call this; it may take long.
    ///
    /// # Errors
    /// [`Busy`], unless the caller is `patient`.
    pub fn enter_slow(self: &Arc<Self>, marks: Marks, patient: bool) -> Result<Slow, Busy> {
        let mut line = lock(&self.line);
        let mut is_counted = false;
        loop {
            let turn = self.turn();
            let may_enter = line.scripts == 0 && turn < BUSY;
            if may_enter != is_counted {
                line.entering = if may_enter { line.entering + 1 } else { line.entering - 1 };
                is_counted = may_enter;
                self.notify(&line);
            }
            match turn {
                BUSY | LOADING if !patient => return Err(Busy),
                OPEN if may_enter => break,
                _ => line = self.sleep(line),
            }
        }
        line.entering -= 1;
        Ok(self.begin_slow(line, marks))
    }

    /// [`Exclusive::enter_slow`], unless a thread is alone, or waits to be.
    pub fn try_enter_slow(self: &Arc<Self>, marks: Marks) -> Option<Slow> {
        let line = lock(&self.line);
        let may_enter = self.turn() == OPEN && line.scripts == 0 && line.stoppers.is_empty();
        may_enter.then(|| self.begin_slow(line, marks))
    }

    fn begin_slow(self: &Arc<Self>, mut line: MutexGuard<'_, Line>, marks: Marks) -> Slow {
        line.slow += 1;
        let number = line.next;
        line.next += 1;
        let is_marked = !matches!(marks, Marks::None);
        if is_marked {
            self.marks.write().unwrap_or_else(PoisonError::into_inner).push((number, marks));
            self.state.fetch_or(MARKED, SeqCst);
        }
        self.notify(&line);
        drop(line);
        let slow = Slow { gate: Arc::clone(self), number };
        if is_marked {
            lock(&self.activities).iter().for_each(|activity| activity.pass_by());
            let mut line = lock(&self.line);
            while self.must_wait(number) {
                line = self.sleep(line);
            }
        }
        slow
    }

    /// Whether a slow call that came earlier has marked what this one must not touch meanwhile.
    fn must_wait(&self, number: u64) -> bool {
        let marks = self.marks.read().unwrap_or_else(PoisonError::into_inner);
        let own = marks.iter().find(|(other, _)| *other == number);
        own.is_some_and(|(_, own)| marks.iter().any(|(other, marks)| *other < number && marks.forbid(own)))
    }

    /// Whether a slow call has marked what `wanted` must not touch meanwhile.
    pub fn forbids(&self, wanted: &Marks) -> bool {
        let marks = self.marks.read().unwrap_or_else(PoisonError::into_inner);
        marks.iter().any(|(_, marks)| marks.forbid(wanted))
    }

    /// Whether slow calls have marked anything.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.state.load(SeqCst) & MARKED != 0
    }

    /// Slow calls that have ended.
    pub fn ended(&self) -> u64 {
        self.ended.load(SeqCst)
    }

    /// Has the client woken when a slow call ends; `None` if one has ended since so many had. One that wants to be alone
    /// keeps further slow calls from beginning until the guard is dropped.
    pub fn hold(self: &Arc<Self>, client: &Arc<ClientShared>, seen: u64, is_script: bool) -> Option<Held> {
        let mut line = lock(&self.line);
        if self.ended() != seen || line.slow == 0 {
            return None;
        }
        line.held.push(Arc::clone(client));
        line.scripts += usize::from(is_script);
        Some(Held { gate: Arc::clone(self), seen, is_script, until: None })
    }

    #[inline]
    fn turn(&self) -> u32 {
        self.state.load(SeqCst) & TURN
    }

    /// Waits a little for the thread that is alone.
    fn spin(&self) {
        for _ in 0..SPINS {
            if self.state.load(Relaxed) & TURN != ALONE {
                return;
            }
            spin_loop();
        }
    }

    fn sleep<'l>(&self, mut line: MutexGuard<'l, Line>) -> MutexGuard<'l, Line> {
        line.sleepers += 1;
        let mut line = self.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        line.sleepers -= 1;
        line
    }

    fn notify(&self, line: &Line) {
        if line.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Whether a thread is alone, and all others wait.
    pub fn is_stopped(&self) -> bool {
        self.state.load(Relaxed) & TURN != OPEN
    }

    /// Whether a thread is alone for too long, or data is loaded.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.state.load(Relaxed) & TURN >= BUSY
    }

    /// The work that others do not wait for, if any.
    #[inline]
    pub fn occupation(&self) -> Option<Occupation> {
        match self.state.load(Relaxed) & TURN {
            BUSY => Some(Occupation::Script),
            LOADING => Some(Occupation::Load),
            _ => None,
        }
    }

    /// Whether data is loaded.
    pub fn is_loading(&self) -> bool {
        self.rest.load(Relaxed) == LOADING
    }

    /// Lets no thread enter before [`Exclusive::end_loading`]. Must be called before any thread could enter.
    pub fn begin_loading(&self) {
        self.rest.store(LOADING, SeqCst);
        self.change(LOADING);
    }

    /// Lets all threads enter.
    pub fn end_loading(&self) {
        self.rest.store(OPEN, SeqCst);
        self.change(OPEN);
    }

    /// For a thread that is at work without any other, as no client is served yet or as it is a part of a call that is
    /// alone.
    pub fn already_stopped(self: &Arc<Self>) -> Alone {
        Alone::new(self, false)
    }

    /// Fails all waiters with [`Busy`]. The caller must be alone.
    pub fn make_busy(&self) {
        self.change(BUSY);
    }

    /// Refuses all other threads from the moment at which the caller is no longer alone. The caller must be alone.
    pub fn close(&self) {
        self.rest.store(BUSY, SeqCst);
    }

    /// Counts time for which a thread was alone. The caller must be alone.
    pub fn add_alone(&self, nanos: u64) {
        self.alone_nanos.store(self.alone_nanos.load(Relaxed) + nanos, Relaxed);
    }

    /// Nanoseconds for which a thread was alone, so far.
    pub fn alone_nanos(&self) -> u64 {
        self.alone_nanos.load(Relaxed)
    }

    /// While a thread is alone nothing is marked.
    fn change(&self, state: u32) {
        let line = lock(&self.line);
        let rest = self.rest.load(SeqCst);
        let state = if rest == OPEN { state } else { rest };
        self.state.store(state, SeqCst);
        self.notify(&line);
    }
}

#[cfg(test)]
mod tests;
