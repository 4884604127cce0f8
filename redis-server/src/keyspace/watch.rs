//! Clients that watch keys of a database, wait for them, or have read them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::database::Database;
use super::interest::{Followed, Interest, Waiter, Watched, Watcher};
use super::key::Key;

impl Database {
    /// Whether anybody watches or waits for any key, or tracks what it reads: if not, a change concerns nobody.
    #[inline]
    pub fn is_of_interest(&self) -> bool {
        self.interests.count.load(Ordering::Relaxed) != 0
    }

    /// The interest in the shard of `key`, if there is any; exact under that shard's lock.
    #[inline]
    fn interest(&self, key: &Key<'_>) -> Option<&Interest> {
        if !self.is_of_interest() {
            return None;
        }
        Some(self.made()?.interest(key.shard as usize)).filter(|interest| !interest.is_empty())
    }

    fn change_interest(&self, key: &Key<'_>, change: impl FnOnce(&mut Followed)) {
        self.interests.add(self.made_or_make().interest(key.shard as usize).change(key, change));
    }

    /// Starts watching a key, whose time may be over; its shard must be locked exclusively.
    pub fn watch(&self, key: &Key<'_>, watched: &Watched, was_over: bool) {
        self.change_interest(key, |followed| followed.watchers.push(Watcher { mark: watched.clone(), was_over }));
    }

    /// Stops watching: from now on nobody sets the mark because of `key`.
    pub fn unwatch(&self, key: &Key<'_>, watched: &Watched) {
        self.change_interest(key, |followed| followed.watchers.retain(|other| !Arc::ptr_eq(&other.mark.0, &watched.0)));
    }

    /// A key was changed, which is locked exclusively: transactions that watch it fail.
    #[inline]
    pub fn touch(&self, key: &Key<'_>) {
        if let Some(interest) = self.interest(key) {
            interest.read(key, |followed| followed.watchers.iter().for_each(|watcher| watcher.mark.touch()));
        }
    }

    /// Touches every watched key for which `changed` says so; all shards are locked.
    pub fn touch_where(&self, changed: impl Fn(&Key<'_>) -> bool) {
        for interest in self.all_interest() {
            for followed in interest.lock().iter().flat_map(|keys| keys.iter()) {
                if !followed.watchers.is_empty() && changed(&self.key(&followed.key)) {
                    followed.watchers.iter().for_each(|watcher| watcher.mark.touch());
                }
            }
        }
    }

    /// The interest of every shard that has any.
    fn all_interest(&self) -> impl Iterator<Item = &Interest> {
        let shards = self.made().filter(|_| self.is_of_interest()).into_iter();
        let all = shards.flat_map(|shards| (0..self.shards()).map(|shard| shards.interest(shard)));
        all.filter(|interest| !interest.is_empty())
    }

    /// A client begins or ends to track what it reads.
    pub fn count_tracker(&self, begins: bool) {
        let more = if begins { 1 } else { -1 };
        self.interests.trackers.fetch_add(more as usize, Ordering::Relaxed);
        self.interests.add(more);
    }

    /// Whether a client tracks what it reads.
    #[inline]
    pub fn any_tracker(&self) -> bool {
        self.interests.trackers.load(Ordering::Relaxed) != 0
    }

    /// A place in the queues, behind all that were given out before; never 0.
    pub fn ticket(&self) -> u64 {
        self.interests.tickets.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Puts a parked command into the queue of `key`, whose shard must be locked exclusively.
    pub fn park(&self, key: &Key<'_>, ticket: u64, waiter: Arc<dyn Waiter>) {
        self.change_interest(key, |followed| _ = followed.waiters.insert(ticket, waiter));
    }

    /// Takes a parked command out of the queue of `key`.
    pub fn leave(&self, key: &Key<'_>, ticket: u64) {
        self.change_interest(key, |followed| _ = followed.waiters.remove(&ticket));
    }

    /// Whether anybody waits for `key`, which is locked.
    #[inline]
    pub fn has_waiters(&self, key: &Key<'_>) -> bool {
        let interest = self.interest(key);
        interest.is_some_and(|interest| interest.read(key, |followed| !followed.waiters.is_empty()) == Some(true))
    }

    /// The first command that waits for `key` behind `ticket`, and its own ticket; 0 is before all.
    pub fn waiter_behind(&self, key: &Key<'_>, ticket: u64) -> Option<(u64, Arc<dyn Waiter>)> {
        let next = |followed: &Followed| {
            followed.waiters.range(ticket + 1..).next().map(|(ticket, waiter)| (*ticket, Arc::clone(waiter)))
        };
        self.interest(key)?.read(key, next).flatten()
    }

    /// The keys that are waited for.
    pub fn awaited_keys(&self) -> Vec<Box<[u8]>> {
        let mut awaited = Vec::new();
        for interest in self.all_interest() {
            let keys = interest.lock();
            let followed = keys.iter().flat_map(|keys| keys.iter());
            awaited
                .extend(followed.filter(|followed| !followed.waiters.is_empty()).map(|followed| followed.key.clone()));
        }
        awaited
    }

    /// How many keys are waited for, and how many of them by somebody who goes with them.
    pub fn count_awaited(&self) -> (usize, usize) {
        let mut counts = (0, 0);
        for interest in self.all_interest() {
            let keys = interest.lock();
            for followed in keys.iter().flat_map(|keys| keys.iter()).filter(|followed| !followed.waiters.is_empty()) {
                counts.0 += 1;
                counts.1 += usize::from(followed.waiters.values().any(|waiter| waiter.goes_with_key()));
            }
        }
        counts
    }

    /// A key was removed without a command's doing; its shard is locked exclusively.
    pub(super) fn gone(&self, key: &Key<'_>) {
        if self.interest(key).is_none() {
            return;
        }
        self.change_interest(key, |followed| {
            for watcher in &mut followed.watchers {
                if !std::mem::take(&mut watcher.was_over) {
                    watcher.mark.touch();
                }
            }
        });
        let mut last = 0;
        // Each is called without the mutex: it may leave.
        while let Some((ticket, waiter)) = self.waiter_behind(key, last) {
            last = ticket;
            waiter.gone(key.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Sender, channel};
    use std::thread;
    use std::time::Duration;

    use foldhash::quality::RandomState;

    use super::*;
    use crate::keyspace::{Access, Value, View};

    // Miri takes its time.
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 1_000 };

    fn locked<'a>(db: &'a Database, key: &Key<'_>) -> View<'a> {
        db.lock([(key.shard(), Access::Write)].into_iter(), 1)
    }

    struct Parked(Sender<()>);

    impl Waiter for Parked {
        fn goes_with_key(&self) -> bool {
            false
        }

        fn gone(&self, _: &[u8]) {
            // The receiver may have left.
            let _ = self.0.send(());
        }
    }

    /// An idle transaction and an idle blocking command cost those who change other shards' keys no mutex.
    #[test]
    fn a_followed_key_concerns_its_own_shard_only() {
        let db = Database::new(64, RandomState::default());
        let (watched, waits) = (db.key(b"watched"), db.key(b"waits"));
        db.watch(&watched, &Watched::default(), false);
        db.park(&waits, db.ticket(), Arc::new(Parked(channel().0)));
        for i in 0..1000 {
            let name = format!("key:{i}").into_bytes();
            let key = db.key(&name);
            let same_shard = [watched.shard, waits.shard].contains(&key.shard);
            assert_eq!(db.interest(&key).is_some(), same_shard, "{}", name.escape_ascii());
            assert!(!db.has_waiters(&key));
        }
        assert!(db.has_waiters(&waits) && !db.has_waiters(&watched));
        assert_eq!(db.awaited_keys(), [b"waits".as_slice().into()]);
    }

    #[test]
    fn keys_without_waiters_and_watchers_are_forgotten() {
        let db = Database::new(4, RandomState::default());
        let (key, watched) = (db.key(b"key"), Watched::default());
        let tickets: Vec<u64> = (0..3).map(|_| db.ticket()).collect();
        tickets.iter().for_each(|&ticket| db.park(&key, ticket, Arc::new(Parked(channel().0))));
        db.watch(&key, &watched, false);
        let behind = |ticket| db.waiter_behind(&key, ticket).map(|(ticket, _)| ticket);
        assert_eq!([behind(0), behind(tickets[0]), behind(tickets[2])], [Some(tickets[0]), Some(tickets[1]), None]);
        tickets.iter().for_each(|&ticket| db.leave(&key, ticket));
        assert!(!db.has_waiters(&key) && db.is_of_interest());
        db.unwatch(&key, &watched);
        assert!(!db.is_of_interest() && db.made_or_make().interest(key.shard as usize).lock().is_none());
        db.touch(&key);
        assert!(!watched.is_touched());
    }

    /// Each change after a read under WATCH marks the transaction, while other threads watch and forget neighbours in the shard.
    #[test]
    fn no_change_of_a_watched_key_is_missed() {
        let db = Database::new(2, RandomState::default());
        let over = AtomicBool::new(false);
        let value = |view: &View<'_>, key: &Key<'_>| view.peek(key).and_then(|entry| entry.string()?.as_int());
        thread::scope(|scope| {
            for neighbour in [b"x", b"y"] {
                let (db, over) = (&db, &over);
                scope.spawn(move || {
                    let (key, watched) = (db.key(neighbour), Watched::default());
                    while !over.load(Ordering::Relaxed) {
                        let view = locked(db, &key);
                        db.watch(&key, &watched, false);
                        drop(view);
                        db.unwatch(&key, &watched);
                        thread::sleep(Duration::from_micros(10));
                    }
                });
            }
            scope.spawn(|| {
                let key = db.key(b"k");
                for i in 0.. {
                    locked(&db, &key).set(&key, Value::Int(i), None);
                    let mut view = locked(&db, &key);
                    view.set(&key, Value::Int(-i), None);
                    db.touch(&key);
                    drop(view);
                    thread::sleep(Duration::from_micros(10));
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let (key, watched) = (db.key(b"k"), Watched::default());
            let (mut touched, mut missed) = (0, None);
            // As many rounds as it takes to see the writer: on a busy core it may not run for whole rounds.
            for round in 0.. {
                if missed.is_some() || round >= ROUNDS && touched > 0 {
                    break;
                }
                let view = locked(&db, &key);
                let before = value(&view, &key);
                db.watch(&key, &watched, false);
                drop(view);
                thread::yield_now();
                let view = locked(&db, &key);
                // The writer touches only with its negative values.
                let after = value(&view, &key);
                if after != before && after.is_some_and(|after| after < 0) {
                    touched += 1;
                    missed = (!watched.is_touched()).then_some((before, after));
                }
                drop(view);
                db.unwatch(&key, &watched);
                watched.clear();
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(missed, None, "a change from the first to the second");
        });
        assert!(!db.is_of_interest());
    }

    /// A write finds each command that parked because its key was empty.
    #[test]
    fn no_waiter_is_overlooked() {
        let db = Database::new(2, RandomState::default());
        thread::scope(|scope| {
            scope.spawn(|| {
                let key = db.key(b"k");
                for _ in 0..ROUNDS {
                    // Brings one thing as soon as the last was taken.
                    loop {
                        let mut view = locked(&db, &key);
                        if view.peek(&key).is_none() {
                            view.set(&key, Value::Int(1), None);
                            if let Some((_, waiter)) = db.waiter_behind(&key, 0) {
                                waiter.gone(key.bytes);
                            }
                            break;
                        }
                        drop(view);
                        thread::yield_now();
                    }
                }
            });
            let key = db.key(b"k");
            for round in 0..ROUNDS {
                let mut view = locked(&db, &key);
                while view.peek(&key).is_none() {
                    let (sender, woken) = channel();
                    let ticket = db.ticket();
                    db.park(&key, ticket, Arc::new(Parked(sender)));
                    drop(view);
                    woken
                        .recv_timeout(Duration::from_secs(60))
                        .unwrap_or_else(|_| panic!("overlooked in round {round}"));
                    db.leave(&key, ticket);
                    view = locked(&db, &key);
                }
                view.remove(&key);
            }
        });
        assert!(!db.is_of_interest());
    }
}
