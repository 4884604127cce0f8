//! Between the units of a primary's stream: what was run of it was passed on, too.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// How long [`Units::try_lock`] waits between two looks.
const NAP: Duration = Duration::from_millis(1);

/// Held while a primary's commands are run and passed on, and by whoever wants that nobody does.
///
/// Who wants to be alone with the data holds this first, as who runs a unit may want to be alone. Then it waits for commands,
/// one of which may be REPLICAOF, which wants this too; so it is lent to them for as long as that takes.
#[derive(Debug, Default)]
pub struct Units {
    held: Mutex<()>,
    /// Whether the holder does nothing but wait, and lends.
    lent: Mutex<bool>,
}

/// No unit is run until this is dropped.
#[derive(Debug)]
pub struct BetweenUnits<'a> {
    _guard: Guard<'a>,
}

#[derive(Debug)]
enum Guard<'a> {
    Held { _held: MutexGuard<'a, ()> },
    Borrowed { _lent: MutexGuard<'a, bool> },
}

impl<'a> From<MutexGuard<'a, ()>> for BetweenUnits<'a> {
    fn from(held: MutexGuard<'a, ()>) -> Self {
        Self { _guard: Guard::Held { _held: held } }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Units {
    /// Waits until no unit is run, and keeps it so.
    pub fn lock(&self) -> BetweenUnits<'_> {
        lock(&self.held).into()
    }

    /// [`Units::lock`], then `wait`, which only waits for others. What they have borrowed is back when this returns.
    pub fn lock_and_wait<T>(&self, wait: impl FnOnce() -> T) -> (BetweenUnits<'_>, T) {
        /// Ends with a panic too.
        struct Lending<'a>(&'a Units);
        impl Drop for Lending<'_> {
            fn drop(&mut self) {
                *lock(&self.0.lent) = false;
            }
        }
        let held = self.lock();
        *lock(&self.lent) = true;
        let lending = Lending(self);
        let waited = wait();
        drop(lending);
        (held, waited)
    }

    /// [`Units::lock`], for who holds what commands may need: not for ever. Who holds it and only waits lends it.
    pub fn try_lock(&self, patience: Duration) -> Option<BetweenUnits<'_>> {
        let end = Instant::now() + patience;
        loop {
            match self.held.try_lock() {
                Ok(held) => return Some(held.into()),
                Err(TryLockError::Poisoned(held)) => return Some(held.into_inner().into()),
                Err(TryLockError::WouldBlock) => {}
            }
            let lent = lock(&self.lent);
            if *lent {
                return Some(BetweenUnits { _guard: Guard::Borrowed { _lent: lent } });
            }
            drop(lent);
            if Instant::now() > end {
                return None;
            }
            thread::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const SHORT: Duration = Duration::from_millis(5);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_waits_for_others_lends_to_them_what_they_want() {
        let units = Units::default();
        let (begin, began) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::scope(|scope| {
            let units = &units;
            scope.spawn(move || {
                let (_held, ()) = units.lock_and_wait(|| {
                    begin.send(()).unwrap();
                    ended.recv().unwrap();
                });
                assert!(units.try_lock(SHORT).is_none(), "it waits no longer, and has it alone");
            });
            began.recv().unwrap();
            let borrowed = units.try_lock(LONG).expect("REPLICAOF has what it waits for");
            assert!(matches!(borrowed._guard, Guard::Borrowed { .. }));
            end.send(()).unwrap();
            drop(borrowed);
        });
        assert!(units.try_lock(SHORT).is_some_and(|units| matches!(units._guard, Guard::Held { .. })));
    }

    #[test]
    fn who_runs_a_unit_lends_nothing() {
        let units = Units::default();
        let unit = units.lock();
        assert!(units.try_lock(SHORT).is_none());
        drop(unit);
        assert!(units.try_lock(SHORT).is_some());
    }
}
