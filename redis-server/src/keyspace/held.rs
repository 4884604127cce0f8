//! The order of locks, checked by debug builds: a thread that waits for a shard holds none of the same database but lower ones. A second
//! shared lock of a shard would wait for ever, too: behind a writer that waits for the first. Debug builds, and those with the feature
//! `lock-times`, also measure for how long locks are held.

use std::time::Duration;
#[cfg(debug_assertions)]
use std::{cell::RefCell, collections::VecDeque};

/// A lock of a shard that a thread holds.
pub(super) struct Held {
    #[cfg(debug_assertions)]
    place: Place,
    #[cfg(any(debug_assertions, feature = "lock-times"))]
    _time: times::Time,
}

/// For how long any lock of a shard has been held at most, in all databases of the process, since the last
/// [`forget_holds`]. `None` in builds that do not measure it.
pub fn longest_hold() -> Option<Duration> {
    #[cfg(any(debug_assertions, feature = "lock-times"))]
    return Some(times::longest());
    #[cfg(not(any(debug_assertions, feature = "lock-times")))]
    return None;
}

/// Begins anew with [`longest_hold`].
pub fn forget_holds() {
    #[cfg(any(debug_assertions, feature = "lock-times"))]
    times::forget();
}

#[cfg(any(debug_assertions, feature = "lock-times"))]
mod times {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::{Duration, Instant};

    /// In nanoseconds.
    static LONGEST: AtomicU64 = AtomicU64::new(0);

    /// Since when a lock is held.
    pub(super) struct Time(Instant);

    impl Time {
        pub(super) fn now() -> Self {
            Self(Instant::now())
        }
    }

    impl Drop for Time {
        fn drop(&mut self) {
            let held = u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if held > LONGEST.load(Relaxed) {
                LONGEST.fetch_max(held, Relaxed);
            }
        }
    }

    pub(super) fn longest() -> Duration {
        Duration::from_nanos(LONGEST.load(Relaxed))
    }

    pub(super) fn forget() {
        LONGEST.store(0, Relaxed);
    }
}

/// A database's shards, by their address, and one of them.
#[cfg(debug_assertions)]
type Place = (usize, usize);

/// Shards of one database that a thread holds, in ascending order; a shard is there as often as it is held. A thread that is alone with
/// the data holds thousands, takes them in order and drops them in order: both ends are cheap.
#[cfg(debug_assertions)]
type Shards = VecDeque<usize>;

#[cfg(debug_assertions)]
thread_local! {
    /// The databases, by their address, of which this thread holds shards: a few.
    static HELD: RefCell<Vec<(usize, Shards)>> = const { RefCell::new(Vec::new()) };
}

/// That this thread may wait for a shard.
#[inline]
pub(super) fn assert_may_wait<S>(shards: &S, shard: usize) {
    #[cfg(debug_assertions)]
    HELD.with_borrow(|held| {
        let address = std::ptr::from_ref(shards).addr();
        let highest = held.iter().find(|(database, _)| *database == address).and_then(|(_, shards)| shards.back());
        assert!(highest.is_none_or(|held| *held < shard), "a thread that holds shard {highest:?} waits for {shard}");
    });
    #[cfg(not(debug_assertions))]
    let _ = (shards, shard);
}

impl Held {
    #[inline]
    pub(super) fn new<S>(shards: &S, shard: usize) -> Self {
        #[cfg(debug_assertions)]
        {
            let address = std::ptr::from_ref(shards).addr();
            HELD.with_borrow_mut(|held| {
                let database = held.iter().position(|(database, _)| *database == address).unwrap_or_else(|| {
                    held.push((address, Shards::new()));
                    held.len() - 1
                });
                let shards = &mut held[database].1;
                match shards.back() {
                    // A lock that was taken without waiting may be of any shard.
                    Some(highest) if *highest > shard => {
                        shards.insert(shards.partition_point(|held| *held < shard), shard)
                    }
                    _ => shards.push_back(shard),
                }
            });
            Self { place: (address, shard), _time: times::Time::now() }
        }
        #[cfg(not(debug_assertions))]
        {
            let _ = (shards, shard);
            Self {
                #[cfg(feature = "lock-times")]
                _time: times::Time::now(),
            }
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        let (address, shard) = self.place;
        HELD.with_borrow_mut(|held| {
            let database = held.iter().position(|(database, _)| *database == address).expect("what is held was noted");
            let shards = &mut held[database].1;
            let place = shards.partition_point(|held| *held < shard);
            assert_eq!(shards.remove(place), Some(shard), "what is held was noted");
            if shards.is_empty() {
                held.swap_remove(database);
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
    fn the_longest_hold_is_known() {
        let held = Held::new(&0, 1);
        std::thread::sleep(Duration::from_millis(20));
        drop(held);
        // Other tests hold locks, too.
        assert!(longest_hold().unwrap() >= Duration::from_millis(20));
    }

    #[test]
    fn locks_ascend() {
        assert!(waits(&[], 0));
        assert!(waits(&[1, 2], 3));
        assert!(!waits(&[1, 3], 2));
        assert!(!waits(&[2], 2));
        assert!(waits(&[], 1), "nothing is held any more");
        assert!(!waits(&[3, 1, 1, 2], 3));
        assert!(waits(&[3, 1, 1, 2], 4));
        let (one, other) = (0, 1);
        let _held = Held::new(&one, 5);
        assert_may_wait(&other, 1);
    }
}
