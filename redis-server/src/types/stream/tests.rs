//! Streams against a plain list of entries, and what the layout promises.

use super::*;
use crate::types::testing::Rng;

type Plain = Vec<(StreamId, Vec<(Vec<u8>, Vec<u8>)>)>;

fn id(ms: u64, seq: u64) -> StreamId {
    StreamId { ms, seq }
}

fn append(stream: &mut Stream, at: StreamId, fields: &[(&[u8], &[u8])], limits: StreamLimits) {
    stream.log.append(at, fields.iter().copied(), limits);
}

fn plain<'a>(entries: impl Iterator<Item = StreamEntry<'a>>) -> Plain {
    entries.map(|e| (e.id, e.fields.map(|(name, value)| (name.to_vec(), value.to_vec())).collect())).collect()
}

/// Random operations of every kind, each checked against a list.
fn check(seed: u64, limits: StreamLimits) {
    let mut rng = Rng::new(seed);
    let mut stream = Stream::default();
    let mut model: Plain = Vec::new();
    let mut last = StreamId::MIN;
    for _ in 0..2000 {
        match rng.below(10) {
            0..6 => {
                last = if rng.below(3) == 0 { id(last.ms + 1, 0) } else { id(last.ms, last.seq + 1 + rng.next() % 3) };
                let count = 1 + rng.below(3);
                let text = |rng: &mut Rng| format!("{}", rng.next() >> rng.below(64)).into_bytes();
                let fields: Vec<_> = (0..count).map(|n| (format!("f{n}").into_bytes(), text(&mut rng))).collect();
                stream.log.append(last, fields.iter().map(|(n, v)| (&n[..], &v[..])), limits);
                model.push((last, fields));
            }
            6 | 7 if !model.is_empty() => {
                let victim = model.remove(rng.below(model.len())).0;
                assert!(stream.log.delete(victim));
                assert!(!stream.log.delete(victim));
                assert!(stream.log.max_deleted_id() >= victim);
            }
            8 => {
                let to = model.len().saturating_sub(rng.below(5)) as u64;
                let gone = stream.log.trim(&Trim { to: TrimTo::Len(to), approximate: false, limit: 0 });
                model.drain(..gone as usize);
                assert_eq!(model.len() as u64, to);
            }
            _ if !model.is_empty() => {
                let bound = model[rng.below(model.len()) / 8].0;
                let gone = stream.log.trim(&Trim { to: TrimTo::MinId(bound), approximate: false, limit: 0 });
                model.drain(..gone as usize);
                assert_eq!(model[0].0, bound);
            }
            _ => {}
        }
        assert_eq!(stream.log.len(), model.len() as u64);
        assert_eq!(stream.log.first_id(), model.first().map_or(StreamId::MIN, |(id, _)| *id));
        assert_eq!(stream.log.last_entry_id(), model.last().map(|(id, _)| *id));
        assert_eq!(stream.log.last_id(), last);
        let (a, b) = (id(rng.next() % (last.ms + 2), rng.next() % 4), id(rng.next() % (last.ms + 2), rng.next() % 9));
        let mut expected: Plain = model.iter().filter(|(id, _)| (a..=b).contains(id)).cloned().collect();
        assert_eq!(plain(stream.log.range(a, b)), expected, "{a} {b}");
        expected.reverse();
        assert_eq!(plain(stream.log.range_backwards(a, b)), expected, "{a} {b}");
    }
}

#[test]
fn entries_are_those_of_a_list() {
    for seed in 1..4 {
        check(seed, StreamLimits::default());
        check(seed, StreamLimits { node_max_bytes: 0, node_max_entries: 3 });
        check(seed, StreamLimits { node_max_bytes: 64, node_max_entries: 0 });
    }
}

#[test]
fn approximate_trimming_takes_whole_blocks() {
    let limits = StreamLimits { node_max_bytes: 0, node_max_entries: 10 };
    let full = || {
        let mut stream = Stream::default();
        (1..=100).for_each(|n| append(&mut stream, id(n, 0), &[(b"f", b"v")], limits));
        stream
    };
    let check = |to: TrimTo, limit: u64, left: u64| {
        let mut stream = full();
        stream.log.trim(&Trim { to, approximate: true, limit });
        assert_eq!(stream.log.len(), left, "{to:?} {limit}");
    };
    check(TrimTo::Len(55), 0, 60);
    check(TrimTo::Len(55), 25, 80);
    check(TrimTo::Len(0), 0, 0);
    check(TrimTo::MinId(id(45, 0)), 0, 60);
    check(TrimTo::MinId(id(41, 0)), 30, 70);
}

#[test]
fn groups_keep_both_lists_of_pending_entries_alike() {
    let mut group = Group::new(StreamId::MIN, Some(0));
    assert!(group.see(b"ann", 1));
    assert!(!group.see(b"ann", 2));
    assert!(group.add_consumer(b"bob", 3));
    assert!(!group.assign(id(1, 0), b"nobody", 5, |count| count));
    for n in 1..=3 {
        assert!(group.assign(id(n, 0), b"ann", 10 * n, |count| count));
    }
    assert!(group.assign(id(2, 0), b"bob", 20, |count| count + 1));
    assert_eq!(group.pending()[&id(2, 0)].deliveries, 2);
    let owned =
        |group: &Group, name: &[u8]| group.consumer(name).unwrap().pending().iter().map(|id| id.ms).collect::<Vec<_>>();
    assert_eq!(owned(&group, b"ann"), [1, 3]);
    assert_eq!(owned(&group, b"bob"), [2]);
    assert_eq!(group.pending()[&id(2, 0)].consumer(), b"bob");
    assert!(group.acknowledge(id(1, 0)));
    assert!(!group.acknowledge(id(1, 0)));
    assert_eq!(group.remove_consumer(b"ann"), Some(1));
    assert_eq!(group.pending().keys().map(|id| id.ms).collect::<Vec<_>>(), [2]);
}

#[test]
fn idle_entries_are_found_by_the_time_of_their_delivery() {
    let mut stream = Stream::default();
    (1..=5).for_each(|n| append(&mut stream, id(n, 0), &[(b"f", b"v")], StreamLimits::default()));
    let mut group = Group::new(id(5, 0), Some(5));
    group.add_consumer(b"ann", 0);
    group.add_consumer(b"bob", 0);
    for (n, at) in [(1, 30), (2, 10), (3, 20), (4, 40), (5, 20)] {
        assert!(group.assign(id(n, 0), b"ann", at, |count| count));
    }
    let idle = |group: &mut Group, until: u64, most: usize| {
        group.idle_since(until, &stream.log, most).iter().map(|id| id.ms).collect::<Vec<_>>()
    };
    assert_eq!(group.unsorted(), 5);
    assert_eq!(idle(&mut group, 30, usize::MAX), [2, 3, 5, 1]);
    assert_eq!(group.unsorted(), 0);
    assert_eq!(idle(&mut group, 30, 2), [2, 3]);
    // Later changes keep the order.
    assert!(group.deliver_again(id(2, 0), 50));
    assert!(group.assign(id(3, 0), b"bob", 5, |count| count));
    assert!(group.acknowledge(id(5, 0)));
    assert_eq!(idle(&mut group, 100, usize::MAX), [3, 1, 4, 2]);
    assert_eq!(group.idle_longest(), Some(5));
    group.remove_consumer(b"bob");
    assert_eq!(idle(&mut group, 100, usize::MAX), [1, 4, 2]);
    stream.log.delete(id(1, 0));
    assert_eq!(group.idle_since(100, &stream.log, 1), [id(4, 0)]);
    assert_eq!(group.idle_longest(), Some(40), "an entry that is lost is looked at once");
    assert!(group.pending().contains_key(&id(1, 0)));
}

#[test]
fn trimming_minds_what_groups_have_not_acknowledged() {
    let limits = StreamLimits { node_max_bytes: 0, node_max_entries: 2 };
    // Of six entries one group has acknowledged 1, 3 and 4, and has been given all but the last; another is through.
    let full = || {
        let mut stream = Stream::default();
        (1..=6).for_each(|n| append(&mut stream, id(n, 0), &[(b"f", b"v")], limits));
        let mut group = Group::new(id(5, 0), Some(5));
        group.add_consumer(b"ann", 0);
        [2, 5].iter().for_each(|&n| assert!(group.assign(id(n, 0), b"ann", 0, |count| count)));
        stream.groups.insert((*b"a").into(), group);
        stream.groups.insert((*b"b").into(), Group::new(id(9, 0), None));
        stream
    };
    let check = |to: TrimTo, approximate: bool, limit: u64, references: References, left: &[u64], pending: &[u64]| {
        let mut stream = full();
        let trimmed = stream.trim(&Trim { to, approximate, limit }, references);
        let ids = |ids: Vec<StreamId>| ids.iter().map(|id| id.ms).collect::<Vec<_>>();
        let entries: Vec<_> = stream.log.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect();
        let case = format!("{to:?} {approximate} {limit} {references:?}");
        assert_eq!(trimmed.count, 6 - left.len() as u64, "{case}");
        assert_eq!(stream.log.len(), left.len() as u64, "{case}");
        assert_eq!(ids(entries), left, "{case}");
        assert_eq!(ids(stream.groups[&b"a"[..]].pending().keys().copied().collect()), pending, "{case}");
        assert_eq!(trimmed.left, 6 - (trimmed.count - trimmed.between.len() as u64), "{case}");
        assert_eq!(stream.log.max_deleted_id(), trimmed.between.last().copied().unwrap_or(StreamId::MIN), "{case}");
    };
    use References::{Acknowledged, Delete, Keep};
    check(TrimTo::Len(3), false, 0, Keep, &[4, 5, 6], &[2, 5]);
    check(TrimTo::Len(3), false, 0, Delete, &[4, 5, 6], &[5]);
    check(TrimTo::Len(0), false, 0, Delete, &[], &[]);
    check(TrimTo::Len(4), false, 0, Acknowledged, &[2, 4, 5, 6], &[2, 5]);
    check(TrimTo::Len(0), false, 0, Acknowledged, &[2, 5, 6], &[2, 5]);
    check(TrimTo::MinId(id(4, 0)), false, 0, Acknowledged, &[2, 4, 5, 6], &[2, 5]);
    check(TrimTo::MinId(id(4, 0)), false, 0, Delete, &[4, 5, 6], &[5]);
    // Blocks of two: 1 2, 3 4, 5 6.
    check(TrimTo::Len(3), true, 0, Delete, &[3, 4, 5, 6], &[5]);
    check(TrimTo::Len(1), true, 0, Acknowledged, &[2, 5, 6], &[2, 5]);
    check(TrimTo::MinId(id(4, 0)), true, 0, Acknowledged, &[2, 3, 4, 5, 6], &[2, 5]);
    check(TrimTo::Len(0), true, 3, Delete, &[3, 4, 5, 6], &[5]);
    // Without groups, a stream has no references.
    let mut stream = full();
    stream.groups.clear();
    assert_eq!(stream.trim(&Trim { to: TrimTo::Len(2), approximate: false, limit: 0 }, Acknowledged).count, 4);
}

#[test]
fn a_dense_stream_costs_little_more_than_its_values() {
    let mut stream = Stream::default();
    (1..=100_000).for_each(|n| append(&mut stream, id(n, 0), &[(b"field", b"0123456789")], StreamLimits::default()));
    // The value takes 12 bytes, flags and ids take 7 to 8, the count 2.
    assert!(stream.memory() / 100_000 < 26, "{}", stream.memory() / 100_000);
}

/// The block of a stream whose last entry was deleted, and all others were trimmed by their ids, stays, as in the genuine server.
#[test]
fn a_block_without_a_live_entry_is_read_again() {
    let mut stream = Stream::default();
    (1..=3).for_each(|ms| append(&mut stream, id(ms, 0), &[(b"f", b"v")], StreamLimits::default()));
    assert!(stream.log.delete(id(3, 0)));
    let trim = Trim { to: TrimTo::MinId(id(3, 0)), approximate: false, limit: 0 };
    assert_eq!((stream.log.trim(&trim), stream.log.blocks()), (2, 1));
    let blocks = stream.log.packed_blocks().map(|(key, block)| (key, block.clone())).collect();
    let parts = LogParts { blocks, len: 0, last_id: id(3, 0), max_deleted_id: id(3, 0), entries_added: 3 };
    let mut again = Log::from_parts(parts).expect("it was written");
    assert_eq!((again.blocks(), again.first_id(), again.last_entry_id()), (1, StreamId::MIN, None));
    again.append(id(4, 0), [(&b"f"[..], &b"v"[..])].into_iter(), StreamLimits::default());
    assert_eq!((again.blocks(), again.first_id()), (1, id(4, 0)));
}
