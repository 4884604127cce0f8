//! Seeded runs of everything that changes databases, with a snapshot in the making that is walked in slices between them: it
//! must show what there was at the cut, each key once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use foldhash::quality::RandomState;

use super::super::loan::lend_alone;
use super::super::*;
use super::{Cut, Saver, Walk};
use crate::types::{Hash, HashLimits, ListLimits};

const DATABASES: usize = 3;
const LIMITS: ListLimits = ListLimits { max_listpack_size: -2 };

/// Database and key → value and deadline.
type Shown = BTreeMap<(usize, Vec<u8>), (String, Option<u64>)>;

#[derive(Default)]
struct Recorder {
    shown: Mutex<Shown>,
    removed: Mutex<Vec<(usize, Vec<Removed>)>>,
}

impl Recorder {
    fn record(&self, db: usize, entry: &Entry) {
        let shown = (format!("{:?}", describe(entry)), entry.expire_at());
        let twice = self.shown.lock().unwrap().insert((db, entry.key().to_vec()), shown);
        assert!(twice.is_none(), "saved twice: {:?} of database {db}", String::from_utf8_lossy(entry.key()));
    }

    fn take_removed(&self) {
        for (db, removed) in std::mem::take(&mut *self.removed.lock().unwrap()) {
            removed.iter().flat_map(Removed::unsaved).for_each(|entry| self.record(db, entry));
        }
    }
}

impl Saver for Recorder {
    fn save(&self, db: usize, entry: &Entry) {
        self.record(db, entry);
    }

    fn save_removed(&self, db: usize, entries: Vec<Removed>) {
        self.removed.lock().unwrap().push((db, entries));
    }
}

fn describe(entry: &Entry) -> Vec<Vec<u8>> {
    match entry.value() {
        ValueRef::Str(text) => vec![text.to_vec()],
        ValueRef::List(list) => list.iter().map(|item| item.to_vec()).collect(),
        ValueRef::Hash(_)
        | ValueRef::Set(_)
        | ValueRef::SortedSet(_)
        | ValueRef::Stream(_)
        | ValueRef::Json(_)
        | ValueRef::Bloom(_)
        | ValueRef::VectorSet(_) => unreachable!(),
    }
}

fn shown(databases: &[Database], now: u64) -> Shown {
    let mut shown = Shown::new();
    for (number, database) in databases.iter().enumerate() {
        let view = database.lock_all(Access::Read, now);
        for shard in 0..database.shards() {
            view.with_shard_entries(shard, |entry| {
                shown.insert((number, entry.key().to_vec()), (format!("{:?}", describe(entry)), entry.expire_at()));
            });
        }
    }
    shown
}

struct World {
    databases: Vec<Database>,
    seed: u64,
    now: u64,
}

impl World {
    fn below(&mut self, bound: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.seed >> 33) % bound
    }

    /// One random change.
    fn step(&mut self) {
        self.now += self.below(3);
        let now = self.now;
        let db = self.below(DATABASES as u64) as usize;
        let bytes = format!("key:{}", self.below(60)).into_bytes();
        let value = "v".repeat(self.below(40) as usize) + &self.below(9).to_string();
        let deadline = (self.below(3) == 0).then(|| now + 1 + self.below(40));
        let choice = self.below(100);
        let other = (db + 1 + self.below(DATABASES as u64 - 1) as usize) % DATABASES;
        let database = &self.databases[db];
        let key = database.key(&bytes);
        let mut view = database.lock([(key.shard(), Access::Write)].into_iter(), now);
        match choice {
            0..30 => view.set(&key, Value::Bytes(value.as_bytes()), deadline),
            30..40 => {
                if let Some(entry) = view.get_mut(&key) {
                    entry.append(b"tail");
                }
            }
            40..50 => drop(view.remove(&key)),
            50..58 => drop(view.expire(&key, deadline)),
            58..70 => {
                let make = || Value::Object(Object::List(Box::default()));
                if let Some(Object::List(list)) = view.get_or_insert_with(&key, make).object_mut() {
                    list.push_back(value.as_bytes(), LIMITS);
                }
            }
            70..76 => {
                // The same steps as COPY and MOVE.
                let copy = view.peek(&key).map(|entry| entry.copied(&bytes));
                drop(view);
                if let Some(copy) = copy {
                    let there = &self.databases[other];
                    drop(there.lock([(key.shard(), Access::Write)].into_iter(), now).put(&key, copy));
                }
            }
            76..82 => {
                // A reader that meets what has expired.
                drop(view);
                let _ = database.lock([(key.shard(), Access::Read)].into_iter(), now).get(&key);
            }
            82..90 => {
                drop(view);
                for shard in 0..database.shards() {
                    drop(database.expire_shard(shard, now, 10).entries);
                }
            }
            90..95 => {
                drop(view);
                let (mut seed, mut spot) = (self.seed, None);
                let mut random = || {
                    seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    seed >> 33
                };
                database.sample(false, 1, &mut random, &mut |found, _| spot = Some(found));
                drop(spot.and_then(|spot| database.evict(spot, |_| true)));
            }
            95..98 => {
                drop(view);
                let (low, high) = (db.min(other), db.max(other));
                let mut a = self.databases[low].lock_all(Access::Write, now);
                let mut b = self.databases[high].lock_all(Access::Write, now);
                Database::swap(&mut a, &mut b);
            }
            _ => {
                drop(view);
                let removed = database.lock_all(Access::Write, now).clear();
                drop(database.save_removed(removed));
            }
        }
    }
}

#[test]
fn a_snapshot_shows_the_databases_at_its_cut() {
    for seed in 0..300 {
        let (hasher, cut) = (RandomState::default(), Arc::<Cut>::default());
        let database = || Database::new(4, hasher.clone()).with_cut(Arc::clone(&cut));
        let databases = (0..DATABASES).map(|_| database()).collect();
        let mut world = World { databases, seed, now: 1000 };
        for round in 0..4 {
            for _ in 0..world.below(300) {
                world.step();
            }
            let expected = shown(&world.databases, world.now);
            let recorder = Arc::<Recorder>::default();
            Cut::begin(&world.databases, Arc::<Recorder>::clone(&recorder));
            // The last one is given up half-way: its entries must not wait to be saved for ever.
            let is_given_up = round == 2;
            loop {
                let swaps = Cut::swaps(&world.databases);
                for db in 0..DATABASES {
                    for shard in 0..world.databases[db].shards() {
                        let mut cursor = 0;
                        loop {
                            let database = &world.databases[db];
                            let save = |entry: &Entry| {
                                if !is_given_up {
                                    recorder.record(database.number_at_cut(), entry);
                                }
                                true
                            };
                            match database.walk_unsaved(shard, cursor, 3, save) {
                                Walk::Done => break,
                                Walk::At(next) => cursor = next,
                                Walk::Busy => unreachable!("nobody else is here"),
                            }
                            for _ in 0..world.below(4) {
                                world.step();
                            }
                            recorder.take_removed();
                        }
                    }
                }
                if Cut::swaps(&world.databases) == swaps {
                    break;
                }
            }
            recorder.take_removed();
            Cut::end(&world.databases);
            let found = std::mem::take(&mut *recorder.shown.lock().unwrap());
            if !is_given_up {
                assert_eq!(found, expected, "seed {seed}, round {round}");
            }
            // Nothing is handed over between two snapshots.
            for _ in 0..50 {
                world.step();
            }
            assert!(recorder.shown.lock().unwrap().is_empty());
        }
    }
}

/// A large value is not saved under the lock of its shard. So a large value that has expired, is to be evicted or belongs to a lost slot
/// stays until it is saved, by the walk or by a call that has borrowed it.
#[test]
fn vast_values_stay_until_they_are_saved() {
    const BYTES: usize = 2 << 20;
    let databases = vec![Database::by_slot(RandomState::default())];
    let db = &databases[0];
    let names: [&[u8]; 5] = [b"{a}due", b"{a}met", b"{a}written", b"{a}fields", b"{a}lost"];
    let [due, met, written, fields, lost] = names.map(|name| db.key(name));
    let mut view = db.lock([(due.shard(), Access::Write)].into_iter(), 1);
    for (key, deadline) in [(due, Some(10)), (met, Some(50)), (written, Some(90)), (lost, None)] {
        view.set(&key, Value::Bytes(&vec![b'v'; BYTES]), deadline);
    }
    let mut hash = Hash::default();
    for number in 0..100_000_u32 {
        hash.set(&number.to_le_bytes(), &[b'v'; 64], HashLimits::default());
    }
    hash.expire(&7_u32.to_le_bytes(), Some(10));
    view.replace(&fields, Value::Object(Object::Hash(Box::new(hash))));
    view.fields_expire(&fields);
    for key in [due, met, written, fields, lost] {
        assert!(view.peek(&key).unwrap().is_vast(), "{:?}", key.bytes);
    }
    drop(view);

    let names_of = |shown: &Mutex<Vec<Vec<u8>>>| std::mem::take(&mut *shown.lock().unwrap());
    let recorder = Arc::<Names>::default();
    Cut::begin(&databases, Arc::<Names>::clone(&recorder));
    let expire = |now| _ = db.expire_shard(due.shard() as usize, now, 16);
    expire(20);
    assert!(db.lock([(met.shard(), Access::Read)].into_iter(), 60).get(&met).is_none());
    let slot = due.shard() as u16;
    assert!(db.drop_slot(slot, 100).unwrap().is_empty());
    assert_eq!((names_of(&recorder.0), db.len(), db.expired_fields()), (Vec::new(), 5, 0));

    // A call that writes to what has expired: nothing is locked while it is saved.
    let mut view = db.lock_none(100);
    lend_alone(&mut view, &[(written, Access::Write)]);
    assert!(view.get(&written).is_none());
    drop(view);
    assert_eq!((names_of(&recorder.0), db.len()), (vec![b"{a}written".to_vec()], 4));
    assert!(Cut::is_settled(&databases));

    let mut saved = Vec::new();
    let walk = db.walk_unsaved(slot.into(), 0, 100, |entry| {
        saved.push(entry.key().to_vec());
        true
    });
    saved.sort();
    assert_eq!(
        (walk, saved),
        (Walk::Done, [b"{a}due".to_vec(), b"{a}fields".into(), b"{a}lost".into(), b"{a}met".into()].into())
    );
    expire(60);
    assert_eq!((db.len(), db.expired_fields()), (2, 1));
    assert_eq!(db.drop_slot(slot, 100).unwrap().len(), 2);
    assert_eq!(names_of(&recorder.0), Vec::<Vec<u8>>::new());
    Cut::end(&databases);
}

/// The names of the entries that were saved before they changed.
#[derive(Default)]
struct Names(Mutex<Vec<Vec<u8>>>);

impl Saver for Names {
    fn save(&self, _: usize, entry: &Entry) {
        self.0.lock().unwrap().push(entry.key().to_vec());
    }

    fn save_removed(&self, _: usize, _: Vec<Removed>) {
        unreachable!("no database is emptied");
    }
}
