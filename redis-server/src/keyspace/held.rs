//! The order of locks, checked by debug builds: a thread that waits for a shard holds none of the same database but lower ones. A second
//! shared lock of a shard would wait for ever, too: behind a writer that waits for the first.

#[cfg(debug_assertions)]
use std::{cell::RefCell, collections::BTreeMap};

/// A lock of a shard that a thread holds.
pub(super) struct Held {
    #[cfg(debug_assertions)]
    place: Place,
}

/// A database's shards, by their address, and one of them.
#[cfg(debug_assertions)]
type Place = (usize, usize);

#[cfg(debug_assertions)]
thread_local! {
    /// How many locks of a place this thread holds: thousands of places, if it is alone with the data.
    static HELD: RefCell<BTreeMap<Place, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// That this thread may wait for a shard.
#[inline]
pub(super) fn assert_may_wait<S>(shards: &S, shard: usize) {
    #[cfg(debug_assertions)]
    HELD.with_borrow(|held| {
        let address = std::ptr::from_ref(shards).addr();
        let highest = held.range((address, 0)..=(address, usize::MAX)).next_back().map(|((_, shard), _)| *shard);
        assert!(highest.is_none_or(|held| held < shard), "a thread that holds shard {highest:?} waits for {shard}");
    });
    #[cfg(not(debug_assertions))]
    let _ = (shards, shard);
}

impl Held {
    #[inline]
    pub(super) fn new<S>(shards: &S, shard: usize) -> Self {
        #[cfg(debug_assertions)]
        {
            let place = (std::ptr::from_ref(shards).addr(), shard);
            HELD.with_borrow_mut(|held| *held.entry(place).or_default() += 1);
            Self { place }
        }
        #[cfg(not(debug_assertions))]
        {
            let _ = (shards, shard);
            Self {}
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| {
            let count = held.get_mut(&self.place).expect("what is held was noted");
            *count -= 1;
            if *count == 0 {
                held.remove(&self.place);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(held: &[usize], shard: usize) -> bool {
        let shards = 0;
        let held: Vec<_> = held.iter().map(|shard| Held::new(&shards, *shard)).collect();
        let waits = std::panic::catch_unwind(|| assert_may_wait(&shards, shard)).is_ok();
        drop(held);
        waits
    }

    #[test]
    fn locks_ascend() {
        assert!(waits(&[], 0));
        assert!(waits(&[1, 2], 3));
        assert!(!waits(&[1, 3], 2));
        assert!(!waits(&[2], 2));
        assert!(waits(&[], 1), "nothing is held any more");
        let (one, other) = (0, 1);
        let _held = Held::new(&one, 5);
        assert_may_wait(&other, 1);
    }
}
