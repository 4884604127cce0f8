//! Keys that clients of a writable replica have changed (`replica-read-only no`). They expire by the replica's own clock, as its
//! primary does not know of them.

use std::collections::HashSet;
use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::keyspace::{Access, Database};

/// Keys that are remembered; others stay until a client removes them.
const KEYS_MAX: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct LocalKeys {
    keys: Mutex<Keys>,
    any: AtomicBool,
}

#[derive(Debug, Default)]
struct Keys {
    set: HashSet<(usize, Box<[u8]>)>,
    /// How often all were forgotten.
    forgotten: u64,
}

impl LocalKeys {
    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, db: usize, key: &[u8]) {
        let mut keys = self.keys();
        if keys.set.len() < KEYS_MAX {
            keys.set.insert((db, key.into()));
            self.any.store(true, Relaxed);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys().set.len()
    }

    pub(super) fn forget(&self) {
        let mut keys = self.keys();
        keys.set.clear();
        keys.forgotten += 1;
        self.any.store(false, Relaxed);
    }

    /// Removes those whose time is over; the caller is at work with the data.
    pub(super) fn expire(&self, databases: &[Database], now: u64) {
        if !self.any.load(Relaxed) {
            return;
        }
        // A thread that notes a key has its shard's lock. So this lock must not be held while waiting for that one.
        let (mut noted, forgotten) = {
            let mut keys = self.keys();
            (mem::take(&mut keys.set), keys.forgotten)
        };
        noted.retain(|(db, key)| {
            let database = &databases[*db];
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
        let mut keys = self.keys();
        if keys.forgotten == forgotten {
            keys.set.extend(noted);
        }
        self.any.store(!keys.set.is_empty(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::config::Config;
    use crate::exec::core::Instance;

    /// A command that has a key's lock notes it, while keys are looked at whose time may be over.
    #[test]
    fn note_does_not_deadlock_with_expire() {
        let instance = Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE));
        let local = Arc::new(LocalKeys::default());
        local.note(0, b"key");
        let database = instance.database(0);
        let mut keys = [(database.key(b"key"), Access::Write)];
        let view = database.lock_keys(&mut keys, 0);
        let looks = thread::spawn({
            let (instance, local) = (Arc::clone(&instance), Arc::clone(&local));
            move || local.expire(instance.databases(), 1)
        });
        thread::sleep(Duration::from_millis(50));
        local.note(0, b"key");
        drop(view);
        looks.join().unwrap();
    }
}
