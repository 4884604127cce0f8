//! The pause between the units of a primary's stream: commands that were run have been passed on, too.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Held while a primary's commands are run and passed on, and by threads that need that none is.
///
/// A thread that wants to be alone with the data holds this first, as a unit may have to be alone. Then it waits for commands,
/// one of which may be SAVE, which wants this too; so it is lent to them for as long as that takes.
#[derive(Debug, Default)]
pub struct Units(Arc<State>);

#[derive(Debug, Default)]
struct State {
    hold: Mutex<Hold>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Hold {
    is_held: bool,
    /// Whether the holder does nothing but wait, and lends.
    is_lent: bool,
    is_borrowed: bool,
}

impl Hold {
    fn can_be_borrowed(&self) -> bool {
        self.is_lent && !self.is_borrowed
    }
}

impl State {
    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, is_free: impl Fn(&Hold) -> bool) -> MutexGuard<'_, Hold> {
        let hold = self.changed.wait_while(self.hold(), |hold| !is_free(hold));
        hold.unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_within(&self, patience: Duration, is_free: impl Fn(&Hold) -> bool) -> MutexGuard<'_, Hold> {
        let waited = self.changed.wait_timeout_while(self.hold(), patience, |hold| !is_free(hold));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// No unit is run until this is dropped.
#[derive(Debug)]
pub struct BetweenUnits {
    state: Arc<State>,
    is_borrowed: bool,
}

impl Drop for BetweenUnits {
    fn drop(&mut self) {
        let mut hold = self.state.hold();
        if self.is_borrowed {
            hold.is_borrowed = false
        } else {
            hold.is_held = false
        }
        drop(hold);
        self.state.changed.notify_all();
    }
}

impl BetweenUnits {
    /// Calls `wait`, which only waits for others. All that they have borrowed is back when this returns.
    pub fn lend_during<T>(&self, wait: impl FnOnce() -> T) -> T {
        /// Ends with a panic too.
        struct Lending<'a>(&'a State);
        impl Drop for Lending<'_> {
            fn drop(&mut self) {
                self.0.wait_until(|hold| !hold.is_borrowed).is_lent = false;
            }
        }
        self.state.hold().is_lent = true;
        self.state.changed.notify_all();
        let _lending = Lending(&self.state);
        wait()
    }
}

impl Units {
    fn guard(&self, mut hold: MutexGuard<'_, Hold>) -> BetweenUnits {
        hold.is_held = true;
        BetweenUnits { state: Arc::clone(&self.0), is_borrowed: false }
    }

    /// Waits until no unit is run, and keeps it so.
    pub fn lock(&self) -> BetweenUnits {
        self.guard(self.0.wait_until(|hold| !hold.is_held))
    }

    /// [`Units::lock`], unless that takes longer than `patience`.
    pub fn lock_within(&self, patience: Duration) -> Option<BetweenUnits> {
        let hold = self.0.wait_within(patience, |hold| !hold.is_held);
        (!hold.is_held).then(|| self.guard(hold))
    }

    /// [`Units::lock_within`], for a command in a window: a thread that holds this and waits for the window lends it.
    pub fn borrow_within(&self, patience: Duration) -> Option<BetweenUnits> {
        let mut hold = self.0.wait_within(patience, |hold| !hold.is_held || hold.can_be_borrowed());
        if !hold.is_held {
            return Some(self.guard(hold));
        }
        if !hold.can_be_borrowed() {
            return None;
        }
        hold.is_borrowed = true;
        Some(BetweenUnits { state: Arc::clone(&self.0), is_borrowed: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    const SHORT: Duration = Duration::from_millis(5);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_waiting_holder_lends_to_one_command() {
        let units = Units::default();
        let (begin, began) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::scope(|scope| {
            let units = &units;
            scope.spawn(move || {
                let held = units.lock();
                held.lend_during(|| {
                    begin.send(()).unwrap();
                    ended.recv().unwrap();
                });
                assert!(units.borrow_within(SHORT).is_none(), "it waits no longer, and has it alone");
            });
            began.recv().unwrap();
            assert!(units.lock_within(SHORT).is_none(), "it is lent to windows alone");
            let borrowed = units.borrow_within(LONG).expect("SAVE has what it waits for");
            assert!(borrowed.is_borrowed);
            assert!(units.borrow_within(SHORT).is_none(), "another has it");
            end.send(()).unwrap();
            drop(borrowed);
        });
        assert!(units.borrow_within(SHORT).is_some_and(|units| !units.is_borrowed));
    }

    #[test]
    fn a_running_unit_lends_nothing() {
        let units = Units::default();
        let unit = units.lock();
        assert!(units.borrow_within(SHORT).is_none());
        drop(unit);
        assert!(units.borrow_within(SHORT).is_some());
    }
}
