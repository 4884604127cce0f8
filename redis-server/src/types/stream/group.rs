//! Consumer groups: the entries that were delivered to each consumer and not acknowledged yet.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

use super::{Log, StreamId};

/// How servers count the entries that a group has read, and still has to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counting {
    /// Redis 7.0 and 7.2: a gap counts only behind the first entry.
    Lenient,
    /// Valkey 9: no entry before a gap is counted.
    Strict,
    /// Redis 8.0: strict, and a group before the first entry and behind all gaps lags by the length of the stream.
    ByLength,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug)]
pub struct Pending {
    /// When it was delivered last, in milliseconds of Unix time.
    pub delivered_at: u64,
    /// How often it was delivered.
    pub deliveries: u64,
    consumer: Arc<[u8]>,
}

impl Pending {
    /// Name of the consumer that has it.
    pub fn consumer(&self) -> &[u8] {
        &self.consumer
    }
}

/// One delivery more, as far as XCLAIM can say it, by which an append-only file does.
pub fn once_more(deliveries: u64) -> u64 {
    deliveries.saturating_add(1).min(i64::MAX as u64)
}

/// One reader of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// When it was last heard of, in milliseconds of Unix time.
    pub seen_at: u64,
    /// When it was last given an entry.
    pub active_at: Option<u64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Ids of the entries that it has not acknowledged.
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

/// Readers that share the entries of a stream among them.
#[derive(Clone, Debug)]
pub struct Group {
    /// Id of the last entry that was delivered.
    pub last_id: StreamId,
    /// Number of entries delivered, where it is known.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
    /// Pending entries by the time of their delivery, since somebody asks for those that have been idle: groups of which
    /// nobody does are spared it. Those that the stream was found to have lost are not in it.
    by_time: Option<BTreeSet<(u64, StreamId)>>,
}

impl Group {
    /// A group whose next entry is the one behind `last_id`.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Self {
        Self { last_id, entries_read, pending: BTreeMap::new(), consumers: BTreeMap::new(), by_time: None }
    }

    /// Entries that were delivered and not acknowledged.
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    /// The consumers by name.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = (&[u8], &Consumer)> {
        self.consumers.iter().map(|(name, consumer)| (&**name, consumer))
    }

    /// The consumer of this name.
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// Makes a consumer; false if there is one of this name.
    pub fn add_consumer(&mut self, name: &[u8], now: u64) -> bool {
        let btree_map::Entry::Vacant(vacant) = self.consumers.entry(name.into()) else { return false };
        vacant.insert(Consumer { seen_at: now, active_at: None, pending: BTreeSet::new() });
        true
    }

    /// Notes that a consumer was heard of; true if it was made for that.
    pub fn see(&mut self, name: &[u8], now: u64) -> bool {
        match self.consumers.get_mut(name) {
            Some(consumer) => {
                consumer.seen_at = now;
                false
            }
            None => self.add_consumer(name, now),
        }
    }

    /// Notes that a consumer was given an entry.
    pub fn note_active(&mut self, name: &[u8], at: u64) {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.active_at = Some(at);
        }
    }

    /// Removes a consumer with all that is pending for it; how much that was.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            if let Some(record) = self.pending.remove(id)
                && let Some(index) = &mut self.by_time
            {
                index.remove(&(record.delivered_at, *id));
            }
        }
        Some(consumer.pending.len())
    }

    /// Makes the entry `id` pending for a consumer, whoever had it before; false if there is no such consumer. `deliveries`
    /// makes of the number of deliveries what it is from now on; a new record counts one.
    pub fn assign(
        &mut self,
        id: StreamId,
        name: &[u8],
        delivered_at: u64,
        deliveries: impl FnOnce(u64) -> u64,
    ) -> bool {
        let Some((name, consumer)) = self.consumers.get_key_value(name) else { return false };
        let name = Arc::clone(name);
        let owned = consumer.pending.contains(&id);
        let record = self.pending.entry(id).or_insert_with(|| Pending {
            delivered_at,
            deliveries: 1,
            consumer: Arc::clone(&name),
        });
        record.deliveries = deliveries(record.deliveries);
        let earlier = std::mem::replace(&mut record.delivered_at, delivered_at);
        if !owned {
            let before = std::mem::replace(&mut record.consumer, Arc::clone(&name));
            if let Some(before) = self.consumers.get_mut(&before) {
                before.pending.remove(&id);
            }
            if let Some(consumer) = self.consumers.get_mut(&name) {
                consumer.pending.insert(id);
            }
        }
        self.note_delivery(id, earlier, delivered_at);
        true
    }

    /// Notes that a pending entry was delivered to its consumer once more; whether there is one.
    pub fn deliver_again(&mut self, id: StreamId, now: u64) -> bool {
        let Some(record) = self.pending.get_mut(&id) else { return false };
        record.deliveries = once_more(record.deliveries);
        let earlier = std::mem::replace(&mut record.delivered_at, now);
        self.note_delivery(id, earlier, now);
        true
    }

    fn note_delivery(&mut self, id: StreamId, earlier: u64, now: u64) {
        if let Some(index) = &mut self.by_time {
            index.remove(&(earlier, id));
            index.insert((now, id));
        }
    }

    fn by_time(&mut self) -> &mut BTreeSet<(u64, StreamId)> {
        let pending = &self.pending;
        self.by_time.get_or_insert_with(|| pending.iter().map(|(id, record)| (record.delivered_at, *id)).collect())
    }

    /// Up to `most` pending entries of `log` that were delivered at `until` or before, those first that have been idle for
    /// longest.
    pub fn idle_since(&mut self, until: u64, log: &Log, most: usize) -> Vec<StreamId> {
        let (mut idle, mut lost) = (Vec::new(), Vec::new());
        let index = self.by_time();
        for &(at, id) in index.range(..=(until, StreamId::MAX)) {
            if idle.len() == most {
                break;
            }
            if log.get(id).is_some() { idle.push(id) } else { lost.push((at, id)) }
        }
        lost.iter().for_each(|place| _ = index.remove(place));
        idle
    }

    /// When the pending entry was delivered that has been idle for longest, as far as [`Group::idle_since`] knows.
    pub fn idle_longest(&mut self) -> Option<u64> {
        self.by_time().first().map(|(at, _)| *at)
    }

    /// Whether an entry that is there is still to be delivered, or to be acknowledged.
    pub fn refers_to(&self, id: StreamId) -> bool {
        id > self.last_id || self.pending.contains_key(&id)
    }

    /// How many pending entries would have to be looked at before [`Group::idle_since`] can answer at once.
    pub fn unsorted(&self) -> usize {
        if self.by_time.is_some() { 0 } else { self.pending.len() }
    }

    /// Forgets that an entry is pending; whether it was.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(record) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&record.consumer) {
            consumer.pending.remove(&id);
        }
        if let Some(index) = &mut self.by_time {
            index.remove(&(record.delivered_at, id));
        }
        true
    }

    /// Notes that the entry `id` of `log` is delivered, if it is a new one.
    pub fn advance(&mut self, log: &Log, id: StreamId, counting: Counting) {
        if id <= self.last_id {
            return;
        }
        let strict = counting >= Counting::Strict;
        let goes_on = if strict {
            self.last_id >= log.first_id() && !log.has_gap_behind(self.last_id, true)
        } else {
            !log.has_gap_behind(id, false)
        };
        self.entries_read = match self.entries_read {
            Some(read) if goes_on => Some(read.saturating_add(1)),
            _ if log.entries_added() > 0 => log.added_until(id, strict).map(|added| added as i64),
            read => read,
        };
        self.last_id = id;
    }

    /// Number of entries of `log` that are still to be delivered, where that can be told.
    pub fn lag(&self, log: &Log, counting: Counting) -> Option<i64> {
        let added = log.entries_added() as i64;
        if added == 0 {
            return Some(0);
        }
        if counting == Counting::ByLength {
            let first = log.first_id();
            if log.is_empty() || self.last_id < first && log.max_deleted_id() < first {
                return Some(log.len() as i64);
            }
        }
        let strict = counting >= Counting::Strict;
        let read = match self.entries_read {
            Some(read) if !log.has_gap_behind(self.last_id, strict) => Some(read),
            _ => log.added_until(self.last_id, strict).map(|read| read as i64),
        };
        read.map(|read| added.wrapping_sub(read))
    }

    /// Heap bytes, about.
    pub fn memory(&self) -> usize {
        const RECORD: usize = size_of::<StreamId>() * 2 + size_of::<Pending>();
        const CONSUMER: usize = size_of::<Arc<[u8]>>() * 2 + size_of::<Consumer>();
        let names: usize = self.consumers.keys().map(|name| CONSUMER + name.len()).sum();
        let index = self.by_time.as_ref().map_or(0, BTreeSet::len);
        self.pending.len() * RECORD + names + index * size_of::<(u64, StreamId)>()
    }
}
