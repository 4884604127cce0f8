//! Which messages a stream was given lately, and by whom: one that its producer sends again is not added again.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use super::StreamId;

/// Seconds for which an idempotent id may be kept.
pub const IDMP_DURATION: RangeInclusive<u64> = 1..=86_400;
/// How many idempotent ids of each producer may be kept.
pub const IDMP_MAXSIZE: RangeInclusive<u64> = 1..=10_000;

/// How long idempotent ids are kept, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdmpLimits {
    /// Seconds, of [`IDMP_DURATION`].
    pub duration_s: u64,
    /// The most of each producer, of [`IDMP_MAXSIZE`]: it goes before the duration.
    pub maxsize: u64,
}

impl IdmpLimits {
    /// These limits, if they are within their bounds.
    pub fn new(duration_s: u64, maxsize: u64) -> Option<Self> {
        let is_valid = IDMP_DURATION.contains(&duration_s) && IDMP_MAXSIZE.contains(&maxsize);
        is_valid.then_some(Self { duration_s, maxsize })
    }
}

/// A message that was added, as it is told to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdmpRecord<'a> {
    /// Its producer.
    pub pid: &'a [u8],
    /// Its idempotent id, which is its producer's.
    pub iid: &'a [u8],
    /// The entry's id.
    pub id: StreamId,
    /// Since when it is known, in milliseconds of Unix time.
    pub since: u64,
}

/// The idempotent ids of a stream.
#[derive(Clone, Debug)]
pub struct Idempotence {
    limits: IdmpLimits,
    /// By producer; none of them is without ids.
    producers: BTreeMap<Box<[u8]>, Producer>,
    added: u64,
    duplicates: u64,
}

/// The ids of one producer.
#[derive(Clone, Debug, Default)]
struct Producer {
    known: BTreeMap<Arc<[u8]>, StreamId>,
    /// The same ids from the oldest on, and since when they are known.
    order: VecDeque<(u64, Arc<[u8]>)>,
}

impl Idempotence {
    /// One without ids.
    pub fn new(limits: IdmpLimits) -> Self {
        Self { limits, producers: BTreeMap::new(), added: 0, duplicates: 0 }
    }

    /// Restores the ids of a file; `None` if the file is not consistent.
    pub fn from_parts<'a>(
        limits: IdmpLimits,
        (added, duplicates): (u64, u64),
        records: impl Iterator<Item = IdmpRecord<'a>>,
    ) -> Option<Self> {
        let mut all = Self { added, duplicates, ..Self::new(limits) };
        for IdmpRecord { pid, iid, id, since } in records {
            let producer = all.producers.entry(pid.into()).or_default();
            let is_valid = !pid.is_empty() && !iid.is_empty() && (producer.order.len() as u64) < limits.maxsize;
            if !is_valid || !producer.add(iid, id, since) {
                return None;
            }
        }
        Some(all)
    }

    /// Its limits.
    pub fn limits(&self) -> IdmpLimits {
        self.limits
    }

    /// Sets the limits. A change forgets all ids.
    pub fn set_limits(&mut self, limits: IdmpLimits) {
        if limits != self.limits {
            self.limits = limits;
            self.producers.clear();
        }
    }

    /// How many messages were ever added, and how many were not because they had been.
    pub fn totals(&self) -> (u64, u64) {
        (self.added, self.duplicates)
    }

    /// How many producers are known at a moment, and how many ids of theirs.
    pub fn tracked(&self, now: u64) -> (usize, usize) {
        let oldest = self.oldest(now);
        let live = self.producers.values().map(|producer| producer.order.len() - producer.outlived(oldest));
        live.filter(|&ids| ids > 0).fold((0, 0), |(pids, iids), ids| (pids + 1, iids + ids))
    }

    /// All that is known, producer by producer, from the oldest on.
    pub fn records(&self) -> impl Iterator<Item = IdmpRecord<'_>> {
        self.producers.iter().flat_map(|(pid, producer)| {
            let known = |iid: &Arc<[u8]>| producer.known.get(iid).copied();
            producer
                .order
                .iter()
                .filter_map(move |(since, iid)| Some(IdmpRecord { pid, iid, id: known(iid)?, since: *since }))
        })
    }

    /// The entry of a message that was added before; it counts as a duplicate.
    pub fn find_duplicate(&mut self, pid: &[u8], iid: &[u8], now: u64) -> Option<StreamId> {
        let found = self.find(pid, iid, now)?;
        self.duplicates += 1;
        Some(found)
    }

    /// The entry of a message, if it is known.
    pub fn find(&mut self, pid: &[u8], iid: &[u8], now: u64) -> Option<StreamId> {
        self.forget(pid, now);
        self.producers.get(pid)?.known.get(iid).copied()
    }

    /// Notes that a message was added as the entry `id`, whose producer may have to give up an older one for it. Nothing is done
    /// about one that is known.
    pub fn add(&mut self, pid: &[u8], iid: &[u8], id: StreamId, now: u64) {
        self.forget(pid, now);
        let producer = self.producers.entry(pid.into()).or_default();
        while producer.order.len() as u64 >= self.limits.maxsize {
            producer.pop();
        }
        // An entry may have an id of the future; its message is not known for longer because of that.
        if producer.add(iid, id, id.ms.min(now)) {
            self.added += 1;
        }
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        const ID: usize = size_of::<(Arc<[u8]>, StreamId)>() + size_of::<(u64, Arc<[u8]>)>() + 2 * size_of::<usize>();
        const PRODUCER: usize = size_of::<(Box<[u8]>, Producer)>();
        let ids = |producer: &Producer| producer.order.iter().map(|(_, iid)| ID + iid.len()).sum::<usize>();
        size_of::<Self>() + self.producers.iter().map(|(pid, it)| PRODUCER + pid.len() + ids(it)).sum::<usize>()
    }

    /// Since when an id must be known to be still of use at `now`.
    fn oldest(&self, now: u64) -> u64 {
        (now + 1).saturating_sub(self.limits.duration_s * 1000)
    }

    /// Forgets what this producer and the next one have outlived. Each call also visits the next producer, so that calls of active
    /// producers remove inactive ones, once all their ids are too old.
    fn forget(&mut self, pid: &[u8], now: u64) {
        let oldest = self.oldest(now);
        let behind = (Bound::Excluded(pid), Bound::Unbounded);
        let next = self.producers.range::<[u8], _>(behind).next().or_else(|| self.producers.first_key_value());
        let next = next.map(|(next, _)| next.clone());
        for pid in [Some(pid), next.as_deref()].into_iter().flatten() {
            let Some(producer) = self.producers.get_mut(pid) else { continue };
            for _ in 0..producer.outlived(oldest) {
                producer.pop();
            }
            if producer.order.is_empty() {
                self.producers.remove(pid);
            }
        }
    }
}

impl Producer {
    /// How many ids, from the oldest on, are not known since `oldest` or later.
    fn outlived(&self, oldest: u64) -> usize {
        self.order.iter().take_while(|(since, _)| *since < oldest).count()
    }

    /// Adds an id; false if it is there.
    fn add(&mut self, iid: &[u8], id: StreamId, since: u64) -> bool {
        if self.known.contains_key(iid) {
            return false;
        }
        let iid: Arc<[u8]> = iid.into();
        self.known.insert(Arc::clone(&iid), id);
        self.order.push_back((since, iid));
        true
    }

    /// Forgets the oldest id.
    fn pop(&mut self) {
        if let Some((_, iid)) = self.order.pop_front() {
            self.known.remove(&iid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(duration_s: u64, maxsize: u64) -> IdmpLimits {
        IdmpLimits::new(duration_s, maxsize).expect("within their bounds")
    }

    fn id(ms: u64) -> StreamId {
        StreamId { ms, seq: 0 }
    }

    #[test]
    fn limits_have_bounds() {
        for (duration_s, maxsize, expected) in
            [(1, 1, true), (86_400, 10_000, true), (0, 1, false), (1, 0, false), (86_401, 1, false), (1, 10_001, false)]
        {
            assert_eq!(IdmpLimits::new(duration_s, maxsize).is_some(), expected, "{duration_s} {maxsize}");
        }
    }

    #[test]
    fn a_message_is_known_for_so_long_and_by_its_producer_alone() {
        let mut known = Idempotence::new(limits(2, 10));
        known.add(b"p", b"1", id(1000), 1000);
        assert_eq!(known.find_duplicate(b"p", b"1", 2999), Some(id(1000)));
        assert_eq!(known.find_duplicate(b"q", b"1", 2999), None);
        assert_eq!((known.tracked(2999), known.tracked(3000), known.totals()), ((1, 1), (0, 0), (1, 1)));
        assert_eq!(known.find_duplicate(b"p", b"1", 3000), None);
        // An entry whose id is of the future.
        known.add(b"p", b"2", id(99_000), 4000);
        assert_eq!((known.find(b"p", b"2", 5999), known.find(b"p", b"2", 6000)), (Some(id(99_000)), None));
    }

    #[test]
    fn a_producer_gives_up_its_oldest_message() {
        let mut known = Idempotence::new(limits(100, 2));
        for (number, iid) in [b"1", b"2", b"3"].into_iter().enumerate() {
            known.add(b"p", iid, id(number as u64), 5);
            known.add(b"q", b"1", id(9), 5);
        }
        let found = [b"1", b"2", b"3"].map(|iid| known.find(b"p", iid, 5));
        assert_eq!(found, [None, Some(id(1)), Some(id(2))]);
        assert_eq!((known.tracked(5), known.totals()), ((2, 3), (4, 0)));
    }

    #[test]
    fn other_limits_forget_all_and_the_same_ones_nothing() {
        let mut known = Idempotence::new(limits(100, 2));
        known.add(b"p", b"1", id(1), 1);
        known.set_limits(limits(100, 2));
        assert_eq!(known.tracked(1), (1, 1));
        known.set_limits(limits(100, 3));
        assert_eq!((known.tracked(1), known.totals()), ((0, 0), (1, 0)));
    }

    #[test]
    fn producers_that_are_gone_take_no_room() {
        let mut known = Idempotence::new(limits(1, 2));
        for number in 0..1000 {
            known.add(format!("p{number}").as_bytes(), b"1", id(number), number);
        }
        for now in 10_000..11_000 {
            known.add(b"stays", now.to_string().as_bytes(), id(now), now);
        }
        assert_eq!(known.producers.len(), 1);
    }

    #[test]
    fn producer_records_round_trip() {
        let mut known = Idempotence::new(limits(100, 3));
        for (pid, iid, ms) in [(b"p", b"1", 1), (b"q", b"1", 2), (b"p", b"2", 3)] {
            known.add(pid, iid, id(ms), 5);
        }
        known.find_duplicate(b"p", b"1", 5);
        let again = Idempotence::from_parts(known.limits(), known.totals(), known.records()).expect("it is valid");
        assert_eq!(again.records().collect::<Vec<_>>(), known.records().collect::<Vec<_>>());
        assert_eq!((again.totals(), again.records().count()), ((3, 1), 3));
    }

    #[test]
    fn invalid_producer_records_are_refused() {
        let record = |pid, iid| IdmpRecord { pid, iid, id: id(1), since: 1 };
        let (p, one, two): (&[u8], &[u8], &[u8]) = (b"p", b"1", b"2");
        let cases: [&[IdmpRecord<'_>]; 4] = [
            &[record(b"", one)],
            &[record(p, b"")],
            &[record(p, one), record(p, one)],
            &[record(p, one), record(p, two)],
        ];
        for records in cases {
            let found = Idempotence::from_parts(limits(1, 1), (0, 0), records.iter().copied());
            assert!(found.is_none(), "{records:?}");
        }
    }
}
