//! Keys that transactions watch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A transaction's mark: set when one of its watched keys has been touched.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<AtomicBool>);

impl Watched {
    /// Whether a watched key was touched.
    pub fn is_touched(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Clears the mark, when no key is watched.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Marks the transaction as touched.
    pub fn touch(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The watched keys of a database. Keys are added and touched under their shard's lock, so that no change is missed.
#[derive(Debug, Default)]
pub struct WatchedKeys {
    keys: Mutex<HashMap<Box<[u8]>, Vec<Watched>>>,
    /// Number of watched keys, and of clients that track what they read: writers look here first.
    count: AtomicUsize,
    trackers: AtomicUsize,
}

impl WatchedKeys {
    fn keys(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Vec<Watched>>> {
        self.keys.lock().expect("no code that holds the watched keys panics")
    }

    /// Starts watching; the key's shard must be locked.
    pub fn add(&self, key: &[u8], watched: &Watched) {
        let mut keys = self.keys();
        keys.entry(key.into()).or_default().push(watched.clone());
        self.count(&keys);
    }

    /// Stops watching.
    pub fn remove(&self, key: &[u8], watched: &Watched) {
        let mut keys = self.keys();
        let Some(watchers) = keys.get_mut(key) else { return };
        watchers.retain(|other| !Arc::ptr_eq(&other.0, &watched.0));
        if watchers.is_empty() {
            keys.remove(key);
        }
        self.count(&keys);
    }

    /// A client begins or ends to track what it reads ([`crate::tracking`]).
    pub fn count_tracker(&self, begins: bool) {
        let keys = self.keys();
        // Wraps to a subtraction.
        self.trackers.fetch_add(if begins { 1 } else { usize::MAX }, Ordering::Relaxed);
        self.count(&keys);
    }

    fn count(&self, keys: &HashMap<Box<[u8]>, Vec<Watched>>) {
        self.count.store(keys.len() + self.trackers.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether anybody watches a key or tracks what it reads: if not, a change concerns nobody.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Whether a client tracks what it reads.
    pub fn any_tracker(&self) -> bool {
        self.trackers.load(Ordering::Relaxed) != 0
    }

    /// A key was changed; its shard is locked exclusively.
    #[inline]
    pub fn touch(&self, key: &[u8]) {
        if self.any() {
            self.touch_watchers(key);
        }
    }

    #[cold]
    fn touch_watchers(&self, key: &[u8]) {
        self.keys().get(key).into_iter().flatten().for_each(Watched::touch);
    }

    /// Touches every watched key for which `changed` says so; all shards are locked.
    pub fn touch_where(&self, changed: impl Fn(&[u8]) -> bool) {
        let keys = self.keys();
        keys.iter().filter(|(key, _)| changed(key)).flat_map(|(_, watchers)| watchers).for_each(Watched::touch);
    }
}
