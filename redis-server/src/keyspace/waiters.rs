//! Clients that wait for keys: the queues behind BLPOP and its kin.
//!
//! A blocking command that finds nothing is parked in the queue of each of its keys, under the locks of those keys.
//! Whoever makes such a key ready runs the parked commands again, first come, first served.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A queue: parked commands by ticket, so that any of them leaves it quickly.
type Queue<T> = BTreeMap<u64, Arc<T>>;

/// The queues of a database, by key; `T` is a parked command.
#[derive(Debug)]
pub struct Waiters<T> {
    queues: Mutex<HashMap<Box<[u8]>, Queue<T>>>,
    /// Number of keys waited for: writers look here first.
    count: AtomicUsize,
    tickets: AtomicU64,
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self { queues: Mutex::default(), count: AtomicUsize::new(0), tickets: AtomicU64::new(1) }
    }
}

impl<T> Waiters<T> {
    fn queues(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Queue<T>>> {
        self.queues.lock().expect("no code that holds the queues panics")
    }

    /// Whether anybody waits for `key`; exact under the key's lock.
    #[inline]
    pub fn any(&self, key: &[u8]) -> bool {
        self.count.load(Ordering::Relaxed) != 0 && self.queues().contains_key(key)
    }

    /// Number of keys that are waited for.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether nobody waits for anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A place in the queues, behind all that were given out before; never 0.
    pub fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts a parked command into the queue of each of its keys, whose shards must be locked.
    pub fn park<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, ticket: u64, parked: &Arc<T>) {
        let mut queues = self.queues();
        for key in keys {
            queues.entry(key.into()).or_default().insert(ticket, Arc::clone(parked));
        }
        self.count.store(queues.len(), Ordering::Relaxed);
    }

    /// Takes a parked command out of the queues of its keys.
    pub fn leave<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, ticket: u64) {
        let mut queues = self.queues();
        for key in keys {
            if let Some(queue) = queues.get_mut(key) {
                queue.remove(&ticket);
                if queue.is_empty() {
                    queues.remove(key);
                }
            }
        }
        self.count.store(queues.len(), Ordering::Relaxed);
    }

    /// The first command that waits for `key` behind `ticket`; 0 is before all.
    pub fn behind(&self, key: &[u8], ticket: u64) -> Option<Arc<T>> {
        self.queues().get(key)?.range(ticket + 1..).next().map(|(_, parked)| Arc::clone(parked))
    }

    /// The keys that are waited for.
    pub fn keys(&self) -> Vec<Box<[u8]>> {
        self.queues().keys().cloned().collect()
    }
}
