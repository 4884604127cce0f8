//! Keys whose waiting commands are to be run again at a moment, though no client changes the keys. The commands wait for
//! something that only time brings, as entries of a group that have been pending for long enough (`XREADGROUP … CLAIM`).

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Ready;

type Places = HashMap<(usize, Box<[u8]>), u64>;

/// The keys by database, each with the first moment at which a command wants it looked after, in milliseconds of Unix
/// time.
#[derive(Debug, Default)]
pub struct Later {
    places: Mutex<Places>,
    len: AtomicUsize,
}

impl Later {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a key to be looked after at a moment. A command that still waits then schedules it again.
    pub fn look_after(&self, db: usize, key: &[u8], at: u64) {
        let mut places = self.places();
        let due = places.entry((db, key.into())).or_insert(at);
        *due = at.min(*due);
        self.len.store(places.len(), Relaxed);
    }

    /// Whether there are any.
    pub(in crate::exec) fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    /// Takes out the keys that are due.
    pub(in crate::exec) fn due(&self, now: u64) -> Vec<Ready> {
        let mut places = self.places();
        let due = places.extract_if(|_, at| *at <= now);
        let due = due.map(|((db, key), _)| Ready { db, key, needs: Vec::new() }).collect();
        self.len.store(places.len(), Relaxed);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_due_once_at_the_first_moment() {
        let later = Later::default();
        later.look_after(0, b"a", 30);
        later.look_after(0, b"a", 20);
        later.look_after(0, b"a", 40);
        later.look_after(1, b"a", 50);
        let due = |now| later.due(now).into_iter().map(|ready| ready.db).collect::<Vec<_>>();
        assert_eq!(due(19), [0usize; 0]);
        assert_eq!(due(20), [0]);
        assert_eq!(due(45), [0usize; 0]);
        assert_eq!(due(50), [1]);
        assert_eq!(later.len.load(Relaxed), 0);
    }
}
