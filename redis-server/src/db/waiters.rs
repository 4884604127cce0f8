//! Clients that wait for keys: the queues behind BLPOP and its kin.
//!
//! A blocking command that finds nothing is parked in the queue of each of its keys, under the locks of those keys.
//! Whoever makes such a key ready runs the parked commands again, first come, first served.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

type Queues<T> = HashMap<Box<[u8]>, VecDeque<Arc<T>>>;

/// The queues of a database, by key; `T` is a parked command.
#[derive(Debug)]
pub struct Waiters<T> {
    queues: Mutex<Queues<T>>,
    /// Number of keys waited for: writers look here first.
    count: AtomicUsize,
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self { queues: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<T> Waiters<T> {
    fn queues(&self) -> MutexGuard<'_, Queues<T>> {
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

    /// Appends a parked command to the queue of each of its keys, whose shards must be locked.
    pub fn park<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, parked: &Arc<T>) {
        let mut queues = self.queues();
        for key in keys {
            let queue = queues.entry(key.into()).or_default();
            // The same key given twice is one place in its queue.
            if !queue.back().is_some_and(|last| Arc::ptr_eq(last, parked)) {
                queue.push_back(Arc::clone(parked));
            }
        }
        self.count.store(queues.len(), Ordering::Relaxed);
    }

    /// Takes a parked command out of the queues of its keys.
    pub fn leave<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, parked: &Arc<T>) {
        let mut queues = self.queues();
        for key in keys {
            if let Some(queue) = queues.get_mut(key) {
                queue.retain(|other| !Arc::ptr_eq(other, parked));
                if queue.is_empty() {
                    queues.remove(key);
                }
            }
        }
        self.count.store(queues.len(), Ordering::Relaxed);
    }

    /// The commands that wait for `key`, first come first.
    pub fn queue(&self, key: &[u8]) -> Vec<Arc<T>> {
        self.queues().get(key).map(|queue| queue.iter().cloned().collect()).unwrap_or_default()
    }

    /// The keys that are waited for.
    pub fn keys(&self) -> Vec<Box<[u8]>> {
        self.queues().keys().cloned().collect()
    }
}
