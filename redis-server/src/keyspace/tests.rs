//! The keyspace against a model of it: a map and a clock.

use std::collections::{BTreeMap, HashSet};

use foldhash::quality::RandomState;

use super::*;
use crate::types::{Hash, HashLimits, List, ListLimits};

const SHARDS: usize = 4;
const LIMITS: ListLimits = ListLimits { max_listpack_size: -2 };

/// Windows read a database's other fields.
#[test]
fn database_counts_and_changes_cause_no_false_sharing() {
    use crate::{cache_lines::assert_apart, keyspace::parts::Changes};
    assert_apart!(Database, counts);
    assert_apart!(Changes, parts);
    assert_apart!(Changes, count);
}

fn database() -> Database {
    Database::new(SHARDS, RandomState::default())
}

/// A small deterministic generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn set(db: &Database, now: u64, key: &[u8], value: &[u8], expire_at: Option<u64>) {
    let key = db.key(key);
    db.lock([(key.shard(), Access::Write)].into_iter(), now).set(&key, Value::Bytes(value), expire_at);
}

fn with<R>(db: &Database, now: u64, key: &[u8], run: impl FnOnce(&mut View<'_>, &Key<'_>) -> R) -> R {
    let key = db.key(key);
    run(&mut db.lock([(key.shard(), Access::Write)].into_iter(), now), &key)
}

fn text(value: ValueRef<'_>) -> Vec<u8> {
    let ValueRef::Str(string) = value else { return b"a collection".to_vec() };
    string.to_vec()
}

/// Every key that a whole scan returns.
fn scan_all(db: &Database, now: u64, count: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = db.lock_none(now).scan(cursor, count, |_| true, |entry| found.push(entry.key().to_vec()));
        if cursor == 0 {
            return found;
        }
    }
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn check(db: &Database, model: &Model, now: u64) {
    for (key, (value, expire_at)) in model {
        let live = expire_at.is_none_or(|at| at > now);
        with(db, now, key, |view, key| {
            let entry = view.peek(key);
            assert_eq!(entry.is_some(), live, "{:?} at {now}", key.bytes.escape_ascii().to_string());
            if let Some(entry) = entry {
                assert_eq!(text(entry.value()), *value);
                assert_eq!(entry.expire_at(), *expire_at);
            }
        });
    }
    let live: Vec<_> = model.iter().filter(|(_, (_, at))| at.is_none_or(|at| at > now)).map(|(key, _)| key).collect();
    let mut found = scan_all(db, now, 7);
    found.sort();
    // Expired entries that the scan meets are removed behind it, and a table that shrinks in between shows some again.
    found.dedup();
    assert_eq!(found.iter().collect::<Vec<_>>(), live, "a scan returns what is there");
    let mut walked = Vec::new();
    db.lock_all(Access::Read, now).for_each(|entry| {
        walked.push(entry.key().to_vec());
        true
    });
    walked.sort();
    assert_eq!(walked, found);
}

#[test]
fn does_what_a_map_does_while_it_grows_shrinks_and_expires() {
    let db = database();
    let mut model = Model::new();
    let mut random = Random(1);
    let mut now = 1_000_000;
    for round in 0..40 {
        // Growing for half of the rounds, then shrinking.
        let removes = if round < 20 { 2 } else { 8 };
        for _ in 0..500 {
            let key = format!("key:{}", random.below(3000)).into_bytes();
            now += random.below(3);
            let live = model.get(&key).is_some_and(|(_, at)| at.is_none_or(|at| at > now));
            match random.below(16) {
                0..2 => {
                    let at = now + random.below(2000);
                    assert_eq!(with(&db, now, &key, |view, key| view.expire(key, Some(at))), live);
                    model.entry(key).and_modify(|(_, expire_at)| *expire_at = if live { Some(at) } else { *expire_at });
                }
                2 => {
                    assert_eq!(with(&db, now, &key, |view, key| view.expire(key, None)), live);
                    model.entry(key).and_modify(|(_, expire_at)| *expire_at = if live { None } else { *expire_at });
                }
                n if n < 3 + removes => {
                    assert_eq!(with(&db, now, &key, |view, key| view.remove(key)).is_some(), live);
                    model.remove(&key);
                }
                n => {
                    let value = vec![b'v'; random.below(40) as usize];
                    let at = (n % 4 == 0).then(|| now + 1 + random.below(5000));
                    set(&db, now, &key, &value, at);
                    model.insert(key, (value, at));
                }
            }
        }
        check(&db, &model, now);
        if round % 3 == 0 {
            for shard in 0..SHARDS {
                while !db.expire_shard(shard, now, 16).is_done {}
            }
            model.retain(|_, (_, at)| at.is_none_or(|at| at > now));
            assert_eq!(db.len(), model.len(), "only live entries are left");
            assert_eq!(db.expiring(), model.values().filter(|(_, at)| at.is_some()).count());
        }
    }
}

#[test]
fn values_are_replaced_in_place_and_elsewhere() {
    let db = database();
    let long = [b'x'; 20_000];
    let values: &[&[u8]] = &[b"", b"7", b"12345678", b"-9223372036854775808", b"abcdefgh", b"short", &long, b"007"];
    for first in values {
        for second in values {
            for (before, after) in [(None, None), (Some(5), None), (None, Some(6)), (Some(5), Some(6))] {
                set(&db, 1, b"key", first, before);
                set(&db, 1, b"key", second, after);
                with(&db, 1, b"key", |view, key| {
                    let entry = view.peek(key).expect("just set");
                    assert_eq!(text(entry.value()), *second);
                    assert_eq!((entry.key(), entry.expire_at()), (&b"key"[..], after));
                });
                assert_eq!((db.len(), db.expiring()), (1, usize::from(after.is_some())));
            }
        }
    }
}

#[test]
fn entries_go_to_other_keys_whole() {
    let mut list = List::default();
    (0..100).for_each(|i| list.push_back(format!("element {i}").as_bytes(), LIMITS));
    for expire_at in [None, Some(77)] {
        let object = Value::Object(Object::List(Box::new(list.clone())));
        for value in [Value::Int(-5), Value::Bytes(b"text"), Value::Raw(b"12"), object] {
            let entry = Entry::new(b"from", value, expire_at);
            entry.set_access(1234);
            let shown =
                |entry: &Entry| (text(entry.value()), entry.value().encoding(), entry.expire_at(), entry.access());
            let expected = shown(&entry);
            let copy = entry.copied(b"a longer key");
            assert_eq!((copy.key(), shown(&copy)), (&b"a longer key"[..], expected.clone()));
            let moved = entry.renamed(b"to");
            assert_eq!((moved.key(), shown(&moved)), (&b"to"[..], expected));
        }
    }
}

#[test]
fn a_copied_list_is_another_list() {
    let mut list = List::default();
    list.push_back(b"a", LIMITS);
    let entry = Entry::new(b"from", Value::Object(Object::List(Box::new(list))), None);
    let mut copy = entry.copied(b"to");
    if let Some(Object::List(list)) = copy.object_mut() {
        list.push_back(b"b", LIMITS);
    }
    let len = |entry: &Entry| match entry.value() {
        ValueRef::List(list) => list.len(),
        _ => 0,
    };
    assert_eq!((len(&entry), len(&copy)), (1, 2));
}

#[test]
fn expired_entries_are_removed_behind_the_reader() {
    let db = database();
    for key in ["a", "b", "c"] {
        set(&db, 1, key.as_bytes(), b"v", Some(10));
    }
    set(&db, 1, b"stays", b"v", None);
    let keys = [db.key(b"a"), db.key(b"b")];
    let view = db.lock(keys.iter().map(|key| (key.shard(), Access::Read)), 10);
    assert!(keys.iter().all(|key| view.get(key).is_none()));
    assert_eq!(view.take_lookups(), (0, 2));
    drop(view);
    assert_eq!((db.len(), db.expiring(), db.expired_count()), (2, 1, 2));
    assert_eq!(scan_all(&db, 10, 10), [b"stays"]);
    assert_eq!((db.len(), db.expiring(), db.expired_count()), (1, 0, 3));
}

#[test]
fn expired_entries_stay_while_told_to() {
    let db = database();
    set(&db, 1, b"a", b"v", Some(10));
    let key = db.key(b"a");
    let mut view = db.lock([(key.shard(), Access::Read)].into_iter(), 10);
    view.keep_expired();
    assert!(view.get(&key).is_none());
    drop(view);
    assert_eq!((db.len(), db.expired_count()), (1, 0));
}

#[test]
fn memory_returns_after_mass_removal() {
    let db = database();
    let key = |i: u32| format!("key:{i}").into_bytes();
    (0..10_000).for_each(|i| set(&db, 1, &key(i), b"v", Some(100)));
    let full = db.capacity();
    for i in 0..9_990 {
        with(&db, 1, &key(i), |view, key| view.remove(key));
    }
    assert_eq!((db.len(), db.expiring()), (10, 10));
    assert!(db.capacity() < full / 20, "{} of {full} places are left", db.capacity());
    assert_eq!(scan_all(&db, 1, 10).len(), 10);
}

#[test]
fn deadlines_that_changed_are_not_heeded() {
    let db = database();
    set(&db, 1, b"key", b"v", Some(10));
    (11..2000).for_each(|at| assert!(with(&db, 1, b"key", |view, key| view.expire(key, Some(at)))));
    let removed = |now| (0..SHARDS).map(|shard| db.expire_shard(shard, now, 10_000).entries.len()).sum::<usize>();
    assert_eq!(removed(1998), 0);
    assert_eq!(removed(1999), 1);
    assert!(db.is_empty());
}

#[test]
fn mean_time_to_live() {
    let db = database();
    assert_eq!(db.average_ttl(1), 0);
    (0..1000).for_each(|i| set(&db, 1, format!("{i}").as_bytes(), b"v", Some(1_001)));
    assert_eq!(db.average_ttl(1), 1000);
    assert_eq!(db.average_ttl(5000), 0);
}

#[test]
fn random_keys_come_about_equally_often() {
    let db = Database::new(64, RandomState::default());
    let mut random = Random(3);
    assert_eq!(db.lock_none(1).random_key(|| random.next()), None);
    (0..8).for_each(|i| set(&db, 1, format!("{i}").as_bytes(), b"v", None));
    set(&db, 1, b"expired", b"v", Some(2));
    let view = db.lock_none(2);
    let mut counts = BTreeMap::<Vec<u8>, u32>::new();
    (0..8000).for_each(|_| *counts.entry(view.random_key(|| random.next()).expect("keys are there")).or_default() += 1);
    assert_eq!(counts.len(), 8);
    // Two keys in one shard of 64 share its part.
    assert!(counts.values().all(|&count| count > 150), "{counts:?}");
}

#[test]
fn whole_databases_are_emptied_and_exchanged() {
    let hasher = RandomState::default();
    let [a, b] = [(); 2].map(|()| Database::new(SHARDS, hasher.clone()));
    (0..100).for_each(|i| set(&a, 1, format!("a{i}").as_bytes(), b"v", Some(10)));
    (0..50).for_each(|i| set(&b, 1, format!("b{i}").as_bytes(), b"v", None));
    Database::swap(&mut a.lock_all(Access::Write, 1), &mut b.lock_all(Access::Write, 1));
    assert_eq!((a.len(), a.expiring(), b.len(), b.expiring()), (50, 0, 100, 100));
    let prefix = |db: &Database| scan_all(db, 1, 10).iter().map(|key| key[0]).collect::<HashSet<_>>();
    assert_eq!((prefix(&a), prefix(&b)), (HashSet::from([b'b']), HashSet::from([b'a'])));
    let removed = b.lock_all(Access::Write, 1).clear();
    assert_eq!(removed.iter().map(Removed::len).sum::<usize>(), 100);
    assert_eq!((b.len(), b.expiring()), (0, 0));
}

#[test]
fn keys_of_a_window_find_their_shards() {
    let mut random = Random(5);
    for shards in [2, 64, 4096, 8192] {
        let db = Database::new(shards, RandomState::default());
        for len in [2, 3, 32, 5000] {
            let names: Vec<_> = (0..len).map(|_| format!("key:{}", random.below(1000)).into_bytes()).collect();
            let access = |at: usize| if at.is_multiple_of(3) { Access::Write } else { Access::Read };
            let mut keys: Vec<_> = names.iter().enumerate().map(|(at, name)| (db.key(name), access(at))).collect();
            names.iter().for_each(|name| set(&db, 1, name, name, None));
            let mut view = db.lock_keys(&mut keys, 1);
            for (key, access) in &keys {
                assert_eq!(view.peek(key).map(|entry| text(entry.value())).as_deref(), Some(key.bytes));
                if *access == Access::Write {
                    view.set(key, Value::Bytes(key.bytes), None);
                }
            }
        }
        let distinct = scan_all(&db, 1, 100).into_iter().collect::<HashSet<_>>();
        assert_eq!(db.len(), distinct.len());
    }
}

/// Of a few keys in many shards, most of the memory is the shards' buckets and records of deadlines.
#[test]
fn eviction_gives_back_what_shards_held() {
    let db = Database::new(4096, RandomState::default());
    (0..1000).for_each(|i| set(&db, 1, format!("key:{i}").as_bytes(), b"v", Some(1_000_000)));
    assert!(db.capacity() > 4096 + 1000 && db.lock_none(1).overhead().1 > 0);
    let mut random = Random(7);
    while !db.is_empty() {
        let mut spots = Vec::new();
        db.sample(true, 1, &mut || random.below(u64::MAX), &mut |spot, _| spots.push(spot));
        spots.iter().for_each(|&spot| drop(db.evict(spot, |_| true)));
    }
    // A table without buckets counts as one.
    assert_eq!((db.capacity(), db.lock_none(1).overhead().1), (4096, 0));
}

#[test]
fn few_keys_in_many_shards_are_one_call_of_scan() {
    let db = Database::new(4096, RandomState::default());
    (0..10).for_each(|i| set(&db, 1, &[i], b"v", None));
    let mut seen = 0;
    assert_eq!(db.lock_none(1).scan(0, 11, |_| true, |_| seen += 1), 0);
    assert_eq!((seen, db.len(), db.lock_none(1).len()), (10, 10, 10));
}

/// Operations on whole databases allocate nothing in unused ones. A lock on all of an unused database excludes other threads, although it
/// has no shards to lock.
#[test]
fn an_untouched_database_costs_nothing() {
    let hasher = RandomState::default();
    let [a, b] = [(); 2].map(|()| Database::new(SHARDS, hasher.clone()));
    Database::swap(&mut a.lock_all(Access::Write, 1), &mut b.lock_all(Access::Write, 1));
    let mut view = a.lock_all(Access::Write, 1);
    assert!(view.peek(&a.key(b"key")).is_none() && view.is_empty() && view.clear().is_empty());
    view.for_each(|_| unreachable!("there is nothing"));
    drop(view);
    assert!(scan_all(&a, 1, 10).is_empty() && a.lock_none(1).random_key(|| 0).is_none());
    assert!(!a.sample(false, 5, &mut || 0, &mut |_, _| ()));
    assert_eq!((a.len(), a.expiring(), a.average_ttl(1), a.expire_shard(0, 9, 9).entries.len()), (0, 0, 0, 0));
    assert!(a.made().is_none() && b.made().is_none());
    for round in 0..200 {
        let db = Database::new(SHARDS, hasher.clone());
        let mut view = db.lock_all(Access::Write, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| set(&db, 1, b"other", b"late", None));
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            let (key, other) = (db.key(b"key"), db.key(b"other"));
            view.set(&key, Value::Bytes(b"v"), None);
            assert!(view.peek(&other).is_none(), "somebody has come in between in round {round}");
            drop(view);
        });
        assert_eq!(db.len(), 2);
    }
}

/// Processor time of this thread: others may run on this machine.
fn cpu_nanos() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// How long an insertion takes that makes a table grow, and so for how long its shard is locked; printed, not judged:
/// `cargo test -p redis-server --release -- --ignored --nocapture pauses`.
#[test]
#[ignore = "prints figures, judges nothing"]
fn pauses_of_growth() {
    for shards in [256, 4096] {
        let db = Database::new(shards, RandomState::default());
        let mut pauses = Vec::new();
        for i in 0..10_000_000u64 {
            let name = i.to_be_bytes();
            let key = db.key(&name);
            let mut view = db.lock([(key.shard(), Access::Write)].into_iter(), 1);
            if !view.grows_next(&key) {
                view.set(&key, Value::Bytes(b"value"), None);
                continue;
            }
            let began = cpu_nanos();
            view.set(&key, Value::Bytes(b"value"), None);
            pauses.push((cpu_nanos() - began) / 1000);
        }
        // The last ones are those of the largest tables; the longest of all also shows disturbances of the machine.
        let mut last = pauses.split_off(pauses.len() - shards / 2);
        last.sort_unstable();
        let [median, most] = [last[last.len() / 2], last[last.len() - 1]];
        println!("10 M keys in {shards} shards: a table's last growth takes {median} us, the longest {most} us");
    }
}

/// A buffer that tells the thread on which it is freed.
struct Tells(Vec<u8>, std::sync::mpsc::Sender<Option<String>>);

impl AsRef<[u8]> for Tells {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Tells {
    fn drop(&mut self) {
        // The test may have failed meanwhile.
        let _ = self.1.send(std::thread::current().name().map(str::to_owned));
    }
}

/// A thread that overwrites a large value, or finds an expired one, does not free it, because it holds a lock.
#[test]
fn large_values_are_freed_without_a_lock() {
    type Way = fn(&Database, &[u8]);
    let ways: [(&str, Way); 6] = [
        ("set", |db, key| set(db, 1, key, b"small", None)),
        ("set_keep_ttl", |db, key| with(db, 1, key, |view, key| view.set_keep_ttl(key, Value::Int(1)))),
        ("get_mut of an expired one", |db, key| with(db, 10, key, |view, key| assert!(view.get_mut(key).is_none()))),
        ("set over an expired one", |db, key| set(db, 10, key, b"small", None)),
        ("get_or_insert_with", |db, key| {
            with(db, 10, key, |view, key| _ = view.get_or_insert_with(key, || Value::Int(1)));
        }),
        ("a reader", |db, key| with(db, 10, key, |view, key| assert!(view.get(key).is_none()))),
    ];
    for (name, way) in ways {
        let (sender, freed) = std::sync::mpsc::channel();
        let reaper = std::sync::Arc::new(Reaper::default());
        let db = database().with_reaper(std::sync::Arc::clone(&reaper));
        let value = bytes::Bytes::from_owner(Tells(vec![0; 1024 * 1024], sender));
        with(&db, 1, b"key", |view, key| view.set(key, Value::Shared(value), Some(10)));
        way(&db, b"key");
        let thread = freed.recv_timeout(std::time::Duration::from_secs(60)).expect("it is freed");
        assert_eq!(thread.as_deref(), Some("reaper"), "{name}");
        assert_eq!((reaper.pending(), reaper.freed()), (0, 0), "nobody has asked for it");
    }
}

/// Fields `0` to `fields - 1`, of which each second one expires, the first of those at `at`.
fn hash(fields: u64, at: u64) -> Value<'static> {
    let mut hash = Hash::default();
    for i in 0..fields {
        let name = i.to_string();
        hash.set(name.as_bytes(), b"v", HashLimits::default());
        hash.expire(name.as_bytes(), (i % 2 == 0).then_some(at + i));
    }
    Value::Object(Object::Hash(Box::new(hash)))
}

/// Fields that have expired: the key, how many, and whether they were the last.
type ExpiredFields = std::sync::Arc<std::sync::Mutex<Vec<(Vec<u8>, usize, bool)>>>;

/// The events about expired fields from now on.
fn told_of_fields(db: &Database) -> ExpiredFields {
    let told = ExpiredFields::default();
    let teller = std::sync::Arc::clone(&told);
    db.on_happening(move |happening, key| {
        if let Happening::FieldsExpired { fields, is_last } = happening {
            teller.lock().unwrap().push((key.to_vec(), fields.len(), is_last));
        }
    });
    told
}

fn expire_all(db: &Database, now: u64, limit: usize) {
    (0..SHARDS).for_each(|shard| while !db.expire_shard(shard, now, limit).is_done {});
}

#[test]
fn fields_expire_in_slices() {
    let db = database();
    let told = told_of_fields(&db);
    with(&db, 1, b"h", |view, key| drop(view.replace(key, hash(1000, 10))));
    assert_eq!((db.with_fields(), db.expired_fields()), (1, 0));
    expire_all(&db, 9, 16);
    assert_eq!(db.expired_fields(), 0);
    let shard = db.key(b"h").shard() as usize;
    assert!(!db.expire_shard(shard, 2000, 16).is_done);
    assert!((1..=17).contains(&db.expired_fields()), "{} at once", db.expired_fields());
    expire_all(&db, 509, 16);
    // Of 0, 2 … 498 the time is over.
    assert_eq!((db.expired_fields(), db.with_fields()), (250, 1));
    assert!(told.lock().unwrap().iter().all(|(key, count, is_last)| key == b"h" && *count <= 17 && !is_last));
    expire_all(&db, 2000, 16);
    // The others stay, and cost nothing any more.
    assert_eq!((db.expired_fields(), db.with_fields(), db.len()), (500, 0, 1));
}

#[test]
fn the_last_field_takes_the_key_with_it() {
    let db = database();
    let told = told_of_fields(&db);
    with(&db, 1, b"h", |view, key| {
        drop(view.replace(key, hash(1, 10)));
        view.expire(key, Some(500));
    });
    expire_all(&db, 10, 16);
    assert_eq!((db.len(), db.expiring(), db.with_fields()), (0, 0, 0));
    assert_eq!(*told.lock().unwrap(), [(b"h".to_vec(), 1, true)]);
}

/// Wherever a hash goes, its fields expire once; where it was, nothing does.
#[test]
fn fields_expire_where_the_hash_has_gone() {
    let hasher = RandomState::default();
    let (db, other) = (Database::new(SHARDS, hasher.clone()), Database::new(SHARDS, hasher));
    with(&db, 1, b"a", |view, key| drop(view.replace(key, hash(4, 10))));
    let copy = with(&db, 1, b"a", |view, key| view.get(key).unwrap().copied(b"b"));
    with(&db, 1, b"b", |view, key| drop(view.put(key, copy)));
    assert_eq!(db.with_fields(), 2);
    let moved = with(&db, 1, b"a", |view, key| view.remove(key)).unwrap();
    with(&other, 1, b"a", |view, key| assert!(view.add(key, moved)));
    assert_eq!((db.with_fields(), other.with_fields()), (1, 1));
    Database::swap(&mut db.lock_all(Access::Write, 1), &mut other.lock_all(Access::Write, 1));
    assert_eq!((db.with_fields(), other.with_fields()), (1, 1));
    expire_all(&db, 100, 16);
    assert_eq!((db.expired_fields(), other.expired_fields()), (2, 0));
    expire_all(&other, 100, 16);
    assert_eq!((db.expired_fields(), other.expired_fields()), (2, 2));
    assert_eq!((db.with_fields(), other.with_fields()), (0, 0));
}

#[test]
fn field_deadlines_of_removed_hashes_are_dropped() {
    let db = database();
    for round in 0..2000 {
        with(&db, 1, b"h", |view, key| {
            drop(view.replace(key, hash(2, 1_000_000 - round)));
            view.remove(key)
        });
    }
    let view = db.lock_all(Access::Read, 1);
    assert!(view.overhead().1 < 200 * size_of::<(u64, u64)>(), "{} bytes", view.overhead().1);
    assert_eq!(db.with_fields(), 0);
}
