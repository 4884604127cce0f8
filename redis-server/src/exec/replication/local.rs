//! Keys that clients of a writable replica have changed (`replica-read-only no`): whose time is over there goes by the replica's own
//! clock, as its primary does not know of them.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exec::instance::Instance;
use crate::keyspace::Access;

/// Keys that are remembered; others stay until somebody removes them.
const KEYS_MAX: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct LocalKeys {
    keys: Mutex<HashSet<(usize, Box<[u8]>)>>,
    any: AtomicBool,
}

impl LocalKeys {
    fn keys(&self) -> MutexGuard<'_, HashSet<(usize, Box<[u8]>)>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, db: usize, key: &[u8]) {
        let mut keys = self.keys();
        if keys.len() < KEYS_MAX {
            keys.insert((db, key.into()));
            self.any.store(true, Relaxed);
        }
    }

    pub(super) fn forget(&self) {
        self.keys().clear();
        self.any.store(false, Relaxed);
    }

    /// Removes those whose time is over; the caller is at work with the data.
    pub(super) fn expire(&self, instance: &Instance, now: u64) {
        if !self.any.load(Relaxed) {
            return;
        }
        let mut keys = self.keys();
        keys.retain(|(db, key)| {
            let database = instance.database(*db);
            let key = database.key(key);
            let mut keys = [(key, Access::Read)];
            let deadline = {
                let view = database.lock_keys(&mut keys, now);
                view.stored(&keys[0].0).and_then(|entry| entry.expire_at())
            };
            match deadline {
                Some(deadline) if deadline <= now => {
                    database.expire_key(&key, now);
                    true
                }
                deadline => deadline.is_some(),
            }
        });
        self.any.store(!keys.is_empty(), Relaxed);
    }
}
