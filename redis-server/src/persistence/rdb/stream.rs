//! Streams, both ways: blocks as they are, what the stream remembers, and its groups.

use super::kind;
use super::reader::Reader;
use super::save::{Sink, bytes, len};
use crate::types::{Group, Idempotence, IdmpLimits, IdmpRecord, Listpack, Log, LogParts, Stream, StreamId};

/// How a group writes that it does not know what it has read.
const UNKNOWN: u64 = u64::MAX;

pub(super) fn save(out: &mut impl Sink, stream: &Stream) {
    let log = &stream.log;
    len(out, log.blocks() as u64);
    for (key, block) in log.packed_blocks() {
        bytes(out, &key.to_be_bytes());
        bytes(out, &block.to_redis());
    }
    len(out, log.len());
    for id in [log.last_id(), log.first_id(), log.max_deleted_id()] {
        save_id(out, id);
    }
    len(out, log.entries_added());
    len(out, stream.groups.len() as u64);
    for (name, group) in &stream.groups {
        bytes(out, name);
        save_group(out, group);
    }
}

fn save_id(out: &mut impl Sink, id: StreamId) {
    len(out, id.ms);
    len(out, id.seq);
}

fn save_group(out: &mut impl Sink, group: &Group) {
    save_id(out, group.last_id);
    len(out, group.entries_read.map_or(UNKNOWN, |read| read as u64));
    len(out, group.pending().len() as u64);
    for (id, record) in group.pending() {
        out.put(&id.to_be_bytes());
        out.put(&record.delivered_at.to_le_bytes());
        len(out, record.deliveries);
    }
    len(out, group.consumers().len() as u64);
    for (name, consumer) in group.consumers() {
        bytes(out, name);
        out.put(&consumer.seen_at.to_le_bytes());
        len(out, consumer.pending().len() as u64);
        consumer.pending().iter().for_each(|id| out.put(&id.to_be_bytes()));
    }
}

pub(super) fn load(kind: u8, reader: &mut Reader<'_>) -> Option<Stream> {
    let mut blocks = Vec::new();
    for _ in 0..reader.len()? {
        let key: [u8; 16] = reader.string()?.as_ref().try_into().ok()?;
        blocks.push((StreamId::from_be_bytes(key), Listpack::from_redis(&reader.string()?)?));
    }
    let len = reader.len()?;
    let last_id = load_id(reader)?;
    let (mut max_deleted_id, mut entries_added) = (StreamId::MIN, len);
    if kind != kind::STREAM {
        // The first entry's id follows from the entries.
        load_id(reader)?;
        max_deleted_id = load_id(reader)?;
        entries_added = reader.len()?;
    }
    let log = Log::from_parts(LogParts { blocks, len, last_id, max_deleted_id, entries_added })?;
    let mut stream = Stream { log, ..Stream::default() };
    for _ in 0..reader.len()? {
        let name = reader.string()?;
        let group = load_group(kind, reader, &stream)?;
        if stream.groups.insert(name.into(), group).is_some() {
            return None;
        }
    }
    Some(stream)
}

fn load_id(reader: &mut Reader<'_>) -> Option<StreamId> {
    Some(StreamId { ms: reader.len()?, seq: reader.len()? })
}

fn raw_id(reader: &mut Reader<'_>) -> Option<StreamId> {
    reader.array().map(StreamId::from_be_bytes)
}

fn load_group(kind: u8, reader: &mut Reader<'_>, stream: &Stream) -> Option<Group> {
    let last_id = load_id(reader)?;
    let entries_read = if kind == kind::STREAM {
        stream.log.added_until(last_id, false)
    } else {
        Some(reader.len()?).filter(|&read| read != UNKNOWN)
    };
    let mut group = Group::new(last_id, entries_read.map(|read| i64::try_from(read).unwrap_or(i64::MAX)));
    let mut pending = std::collections::BTreeMap::new();
    for _ in 0..reader.len()? {
        pending.insert(raw_id(reader)?, (reader.time()?, reader.len()?.min(i64::MAX as u64)));
    }
    for _ in 0..reader.len()? {
        let name = reader.string()?;
        let seen_at = reader.time()?;
        // Older servers do not keep when a consumer was last given something; of one that was given nothing it is -1.
        let active_at = match kind {
            kind::STREAM_3 => u64::try_from(i64::from_le_bytes(reader.array()?)).ok(),
            _ => Some(seen_at),
        };
        if !group.add_consumer(&name, seen_at) {
            return None;
        }
        if let Some(active_at) = active_at {
            group.note_active(&name, active_at);
        }
        for _ in 0..reader.len()? {
            let id = raw_id(reader)?;
            let (delivered_at, deliveries) = pending.remove(&id)?;
            group.assign(id, &name, delivered_at, |_| deliveries);
        }
    }
    // Every pending entry is somebody's.
    pending.is_empty().then_some(group)
}

/// The idempotent ids of a stream's producers, in the form of a note.
pub(super) fn idempotence(known: &Idempotence) -> Vec<u8> {
    let mut out = Vec::new();
    let (limits, (added, duplicates)) = (known.limits(), known.totals());
    for number in [limits.duration_s, limits.maxsize, added, duplicates, known.records().count() as u64] {
        len(&mut out, number);
    }
    for IdmpRecord { pid, iid, id, since } in known.records() {
        bytes(&mut out, pid);
        bytes(&mut out, iid);
        save_id(&mut out, id);
        len(&mut out, since);
    }
    out
}

pub(super) fn load_idempotence(text: &[u8]) -> Option<Idempotence> {
    let mut reader = Reader::new(text);
    let limits = IdmpLimits::new(reader.len()?, reader.len()?)?;
    let totals = (reader.len()?, reader.len()?);
    let mut records = Vec::new();
    for _ in 0..reader.len()? {
        records.push((reader.string()?, reader.string()?, load_id(&mut reader)?, reader.len()?));
    }
    let records = records.iter().map(|(pid, iid, id, since)| IdmpRecord { pid, iid, id: *id, since: *since });
    (reader.left() == 0).then_some(())?;
    Idempotence::from_parts(limits, totals, records)
}
