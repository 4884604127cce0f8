//! Who may touch the data: all workers at the same time, each under the locks of its keys; or one alone.
//!
//! A script's keys are not known before it runs, so it runs alone. Locking every shard of every database would cost more
//! than most scripts do; instead each worker says when it is at work, in a place of its own that costs it no contention,
//! and who wants to be alone waits until no other is.
//!
//! There is no other door: eviction, the removal of expired keys that nobody asks for, and commands all enter by it.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::exec::instance::Instance;

/// Looks at a flag before a thread goes to sleep: most windows of commands, and most scripts, are shorter.
const SPINS: u32 = 500;
/// How long a thread that wants to be alone sleeps between two looks at a worker that is at work.
const NAP: Duration = Duration::from_micros(50);

/// Nobody is alone.
const OPEN: u32 = 0;
/// Somebody is, or waits for the others to finish.
const ALONE: u32 = 1;
/// Somebody is, and has been for so long that nobody waits for it any more.
const BUSY: u32 = 2;

/// The state that all workers look at.
#[derive(Debug, Default)]
pub struct World {
    state: CachePadded<AtomicU32>,
    /// Of all workers, and of some that are gone.
    gates: Mutex<Vec<Arc<Gate>>>,
    sleepers: AtomicU32,
    /// Nanoseconds that somebody was alone.
    alone_nanos: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

/// Where one worker says whether it is at work.
#[derive(Debug, Default)]
pub struct Gate(CachePadded<AtomicBool>);

/// Somebody is alone, and takes too long to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// A worker is at work until this is dropped.
#[derive(Debug)]
pub struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Release);
    }
}

/// Somebody is alone with the data until this is dropped.
#[derive(Debug)]
pub struct Alone(Arc<Instance>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.scripts.world.open();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// A place for one more worker.
    pub fn gate(&self) -> Arc<Gate> {
        let gate = Arc::<Gate>::default();
        let mut gates = lock(&self.gates);
        gates.retain(|gate| Arc::strong_count(gate) > 1);
        gates.push(Arc::clone(&gate));
        gate
    }

    /// Begins a worker's work, when nobody is alone any more.
    ///
    /// # Errors
    /// [`Busy`].
    #[inline]
    pub fn enter<'a>(&self, gate: &'a Gate) -> Result<Inside<'a>, Busy> {
        loop {
            // Both sides write their own flag before they look at the other's: one of them sees the other.
            gate.0.store(true, SeqCst);
            let inside = Inside(gate);
            if self.state.load(SeqCst) == OPEN {
                return Ok(inside);
            }
            drop(inside);
            self.wait()?;
        }
    }

    /// Begins a worker's work, unless somebody is alone: for what has time until later.
    pub fn try_enter<'a>(&self, gate: &'a Gate) -> Option<Inside<'a>> {
        gate.0.store(true, SeqCst);
        let inside = Inside(gate);
        (self.state.load(SeqCst) == OPEN).then_some(inside)
    }

    /// Waits until nobody is alone.
    #[cold]
    fn wait(&self) -> Result<(), Busy> {
        for _ in 0..SPINS {
            match self.state.load(Relaxed) {
                OPEN => return Ok(()),
                BUSY => return Err(Busy),
                _ => spin_loop(),
            }
        }
        let mut guard = lock(&self.lock);
        self.sleepers.fetch_add(1, SeqCst);
        let state = loop {
            match self.state.load(SeqCst) {
                ALONE => guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
                state => break state,
            }
        };
        self.sleepers.fetch_sub(1, SeqCst);
        if state == BUSY { Err(Busy) } else { Ok(()) }
    }

    /// Waits until no worker is at work; none begins until the guard is dropped.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn stop(instance: &Arc<Instance>) -> Result<Alone, Busy> {
        let world = &instance.scripts.world;
        while world.state.compare_exchange(OPEN, ALONE, SeqCst, SeqCst).is_err() {
            world.wait()?;
        }
        let alone = Alone(Arc::clone(instance));
        for gate in lock(&world.gates).iter() {
            let mut spins = 0;
            while gate.0.load(SeqCst) {
                spins += 1;
                if spins < SPINS { spin_loop() } else { std::thread::sleep(NAP) }
            }
        }
        Ok(alone)
    }

    /// Whether somebody is alone, and who else comes waits.
    pub fn is_stopped(&self) -> bool {
        self.state.load(Relaxed) != OPEN
    }

    /// Whether somebody is alone for too long.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.state.load(Relaxed) == BUSY
    }

    /// Has nobody wait any longer. Only who is alone may call this.
    pub fn make_busy(&self) {
        self.change(BUSY);
    }

    /// Counts time that somebody was alone. Only who is alone may call this.
    pub fn add_alone(&self, nanos: u64) {
        self.alone_nanos.store(self.alone_nanos.load(Relaxed) + nanos, Relaxed);
    }

    /// Nanoseconds that somebody was alone, so far.
    pub fn alone_nanos(&self) -> u64 {
        self.alone_nanos.load(Relaxed)
    }

    fn open(&self) {
        self.change(OPEN);
    }

    fn change(&self, state: u32) {
        self.state.store(state, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            // A sleeper that counts itself has the lock until it sleeps, or sees the new state.
            drop(lock(&self.lock));
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn who_is_alone_is_alone() {
        let instance = Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE));
        let (turns, shared) = (2000u64, AtomicU64::new(0));
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (instance, shared) = (&instance, &shared);
                scope.spawn(move || {
                    let gate = instance.scripts.world.gate();
                    for turn in 0..turns {
                        if (turn + worker) % 8 == 0 {
                            let _alone = World::stop(instance).expect("nobody makes it busy");
                            let before = shared.load(Relaxed);
                            std::thread::yield_now();
                            shared.store(before + 1, Relaxed);
                        } else if (turn + worker) % 8 == 1 {
                            while instance
                                .scripts
                                .world
                                .try_enter(&gate)
                                .map(|_inside| shared.fetch_add(1, Relaxed))
                                .is_none()
                            {
                                std::thread::yield_now();
                            }
                        } else {
                            let _inside = instance.scripts.world.enter(&gate).expect("nobody makes it busy");
                            shared.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(shared.into_inner(), 4 * turns, "no addition was lost to somebody who was not alone");
        assert!(!instance.scripts.world.is_stopped());
    }

    #[test]
    fn nobody_waits_for_who_is_busy() {
        let instance = Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE));
        let gate = instance.scripts.world.gate();
        let alone = World::stop(&instance).expect("nobody is alone yet");
        instance.scripts.world.make_busy();
        assert_eq!(instance.scripts.world.enter(&gate).err(), Some(Busy));
        assert!(instance.scripts.world.try_enter(&gate).is_none());
        assert!(World::stop(&instance).is_err());
        drop(alone);
        assert!(instance.scripts.world.enter(&gate).is_ok());
    }
}
