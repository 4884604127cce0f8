//! Consumer groups: who has been given which entry, and has not acknowledged it yet.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

use super::{Log, StreamId};

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

/// One reader of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// When it was last heard of, in milliseconds of Unix time.
    pub seen_at: u64,
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
}

impl Group {
    /// A group whose next entry is the one behind `last_id`.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Self {
        Self { last_id, entries_read, pending: BTreeMap::new(), consumers: BTreeMap::new() }
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
        vacant.insert(Consumer { seen_at: now, pending: BTreeSet::new() });
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

    /// Removes a consumer with all that is pending for it; how much that was.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Makes the entry `id` pending for a consumer, whoever had it before; `None` if there is no such consumer. A new
    /// record counts one delivery.
    pub fn assign(&mut self, id: StreamId, name: &[u8]) -> Option<&mut Pending> {
        let (name, consumer) = self.consumers.get_key_value(name)?;
        let name = Arc::clone(name);
        let owned = consumer.pending.contains(&id);
        let record = self.pending.entry(id).or_insert_with(|| Pending {
            delivered_at: 0,
            deliveries: 1,
            consumer: Arc::clone(&name),
        });
        if !owned {
            let before = std::mem::replace(&mut record.consumer, Arc::clone(&name));
            if let Some(before) = self.consumers.get_mut(&before) {
                before.pending.remove(&id);
            }
            self.consumers.get_mut(&name)?.pending.insert(id);
        }
        Some(record)
    }

    /// The record of a pending entry, to be changed.
    pub fn pending_mut(&mut self, id: StreamId) -> Option<&mut Pending> {
        self.pending.get_mut(&id)
    }

    /// Forgets that an entry is pending; whether it was.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(record) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&record.consumer) {
            consumer.pending.remove(&id);
        }
        true
    }

    /// Notes that the entry `id` of `log` is delivered, if it is a new one.
    pub fn advance(&mut self, log: &Log, id: StreamId) {
        if id <= self.last_id {
            return;
        }
        self.entries_read = match self.entries_read {
            Some(read) if !log.has_gap_behind(id) => Some(read.wrapping_add(1)),
            _ if log.entries_added() > 0 => log.added_until(id).map(|added| added as i64),
            read => read,
        };
        self.last_id = id;
    }

    /// Number of entries of `log` that are still to be delivered, where that can be told.
    pub fn lag(&self, log: &Log) -> Option<i64> {
        let added = log.entries_added() as i64;
        if added == 0 {
            return Some(0);
        }
        let read = match self.entries_read {
            Some(read) if !log.has_gap_behind(self.last_id) => Some(read),
            _ => log.added_until(self.last_id).map(|read| read as i64),
        };
        read.map(|read| added.wrapping_sub(read))
    }

    /// Heap bytes, about.
    pub fn memory(&self) -> usize {
        const RECORD: usize = size_of::<StreamId>() * 2 + size_of::<Pending>();
        const CONSUMER: usize = size_of::<Arc<[u8]>>() * 2 + size_of::<Consumer>();
        let names: usize = self.consumers.keys().map(|name| CONSUMER + name.len()).sum();
        self.pending.len() * RECORD + names
    }
}
