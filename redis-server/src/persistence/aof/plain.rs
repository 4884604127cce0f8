//! Data as commands: of a base that is no snapshot (`aof-use-rdb-preamble no`), and of slots that move.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::{Deref, RangeInclusive};

use crate::keyspace::ValueRef;
use crate::persistence::rdb::{self, Encoded, Fork};
use crate::protocol::number;
use crate::types::bloom::Bloom;
use crate::types::{Group, Idempotence, IdmpRecord, Stream, StreamId};

/// Elements that one command adds.
const ELEMENTS: usize = 64;
/// Bytes that go to the file at once.
const BUFFER: usize = 256 * 1024;

/// Takes the bytes of commands.
pub trait Put {
    /// More of them.
    fn put(&mut self, bytes: &[u8]);
}

impl Put for Encoded {
    fn put(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }
}

impl<P: Put> Put for &mut P {
    fn put(&mut self, bytes: &[u8]) {
        (**self).put(bytes);
    }
}

/// A file that gets many bytes at once.
pub struct Buffered<W> {
    file: W,
    buffer: Vec<u8>,
    failed: Option<io::Error>,
}

/// Writes commands that make what there is of nothing.
pub struct PlainWriter<P>(P);

impl<W: Write> PlainWriter<Buffered<W>> {
    /// One to this file.
    pub fn to_file(file: W) -> Self {
        Self(Buffered { file, buffer: Vec::with_capacity(BUFFER), failed: None })
    }

    /// Commands that are encoded already.
    pub fn commands(&mut self, bytes: &[u8]) {
        self.0.put(bytes);
    }

    /// Whether the file could not be written; later data is dropped.
    pub fn has_failed(&self) -> bool {
        self.0.failed.is_some()
    }

    /// Nothing, as long as the file can be written.
    ///
    /// # Errors
    /// The first one of the file, once.
    pub fn check(&mut self) -> io::Result<()> {
        self.0.failed.take().map_or(Ok(()), Err)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first one of the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush();
        self.0.failed.map_or(Ok(self.0.file), Err)
    }
}

impl<W: Write> Buffered<W> {
    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.file.write_all(&self.buffer).err();
        }
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
    }
}

impl<W: Write> Put for Buffered<W> {
    fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush();
        }
        self.buffer.extend_from_slice(bytes);
    }
}

impl<P: Put> PlainWriter<P> {
    /// One that writes there.
    pub fn new(to: P) -> Self {
        Self(to)
    }

    /// When this is written, in seconds of Unix time.
    pub fn timestamp(&mut self, now: u64) {
        self.0.put(format!("#TS:{now}\r\n").as_bytes());
    }

    /// The code of a function library.
    pub fn function(&mut self, code: &[u8]) {
        self.command(&[b"FUNCTION", b"LOAD", code]);
    }

    /// Slots are on their way to this node: their keys are nobody's to see.
    pub fn import(&mut self, name: &str, slots: &[RangeInclusive<u16>]) {
        let ends: Vec<String> =
            slots.iter().flat_map(|range| [range.start().to_string(), range.end().to_string()]).collect();
        let mut words: Vec<&[u8]> =
            vec![b"CLUSTER", b"SYNCSLOTS", b"ESTABLISH", b"NAME", name.as_bytes(), b"SLOTSRANGE"];
        words.extend(ends.iter().map(|end| end.as_bytes()));
        self.command(&words);
    }

    /// The next commands belong to database `number`.
    pub fn database(&mut self, number: usize) {
        self.command(&[b"SELECT", number.to_string().as_bytes()]);
    }

    /// A key with its value; `expire_at` in milliseconds of Unix time.
    pub fn record(&mut self, key: &[u8], value: ValueRef<'_>, expire_at: Option<u64>) {
        match value {
            ValueRef::Str(text) => text.with(|text| self.command(&[b"SET", key, text])),
            ValueRef::List(list) => self.elements(b"RPUSH", key, 1, list.iter().map(|element| element.to_vec())),
            ValueRef::Set(set) => self.elements(b"SADD", key, 1, set.iter().map(|member| member.to_vec())),
            ValueRef::Hash(hash) => {
                self.elements(b"HSET", key, 2, hash.iter().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]));
                for (field, _, at) in hash.at(0).iter_timed() {
                    if let Some(at) = at {
                        self.command(&[b"HPEXPIREAT", key, at.to_string().as_bytes(), b"FIELDS", b"1", &field]);
                    }
                }
            }
            ValueRef::SortedSet(set) => {
                let pairs =
                    set.iter().flat_map(|(member, score)| [number::format_f64(score).to_vec(), member.to_vec()]);
                self.elements(b"ZADD", key, 2, pairs);
            }
            ValueRef::Stream(stream) => self.stream(key, stream),
            // Without the commands of its type only RESTORE makes a value.
            // No command says where an element stands in the graph, nor how it is quantised.
            ValueRef::VectorSet(_) => self.restore(key, value),
            ValueRef::Json(_) if cfg!(not(feature = "json")) => self.restore(key, value),
            ValueRef::Bloom(_) if cfg!(not(feature = "bloom")) => self.restore(key, value),
            ValueRef::Json(json) => {
                self.command(&[b"JSON.SET", key, b"$", json.root().to_text().as_bytes()]);
            }
            ValueRef::Bloom(filter) => self.bloom(key, filter),
        }
        if let Some(at) = expire_at {
            self.command(&[b"PEXPIREAT", key, at.to_string().as_bytes()]);
        }
    }

    /// Adds words, `each` of which are an element, in commands of a bounded length.
    fn elements(&mut self, name: &[u8], key: &[u8], each: usize, words: impl Iterator<Item = Vec<u8>>) {
        let mut words = words.peekable();
        while words.peek().is_some() {
            let some: Vec<_> = words.by_ref().take(ELEMENTS * each).collect();
            let all: Vec<&[u8]> = [name, key].into_iter().chain(some.iter().map(Vec::as_slice)).collect();
            self.command(&all);
        }
    }

    fn restore(&mut self, key: &[u8], value: ValueRef<'_>) {
        self.command(&[b"RESTORE", key, b"0", &rdb::dump(value, Fork::default())]);
    }

    /// A filter, piece by piece: each names where the next one would begin, counted from 1.
    fn bloom(&mut self, key: &[u8], filter: &Bloom) {
        self.command(&[b"BF.LOADCHUNK", key, b"1", &filter.header()]);
        let mut at = 0;
        while let Some(chunk) = filter.chunk(at) {
            at += chunk.len() as u64;
            self.command(&[b"BF.LOADCHUNK", key, (at + 1).to_string().as_bytes(), chunk]);
        }
    }

    fn stream(&mut self, key: &[u8], stream: &Stream) {
        let log = &stream.log;
        let lost = lost(stream);
        if let Some(last) = lost.last() {
            self.lost(key, stream, &lost, *last);
        }
        log.range(StreamId::MIN, StreamId::MAX).for_each(|entry| self.entry(key, entry.id, entry.fields));
        if log.is_empty() && lost.is_empty() {
            // One that is there and has nothing.
            let last =
                if log.last_id() == StreamId::MIN { b"0-1".to_vec() } else { log.last_id().to_string().into_bytes() };
            self.command(&[b"XADD", key, b"MAXLEN", b"0", &last, b"x", b"y"]);
        }
        self.position(key, stream);
        for (name, group) in &stream.groups {
            if lost.is_empty() {
                self.group(key, name, group);
            }
            self.claims(key, name, group, |id| !lost.contains(id));
        }
        if let Some(known) = &stream.idempotence {
            self.idempotence(key, known);
        }
    }

    /// Makes the groups of a stream, with the pending entries that the stream has lost. Others stand in for these until they are
    /// claimed. They come before the stream's own entries: XSETID may have set the last id of an empty stream back, so that a lost id
    /// can be larger than the id of an entry.
    fn lost(&mut self, key: &[u8], stream: &Stream, lost: &BTreeSet<StreamId>, last: StreamId) {
        lost.iter().for_each(|id| self.stand_in(key, *id));
        // Newer servers bound what a group has read by what was added.
        let added = stream.log.entries_added().max(lost.len() as u64).to_string();
        let last = last.to_string();
        self.command(&[b"XSETID", key, last.as_bytes(), b"ENTRIESADDED", added.as_bytes(), b"MAXDELETEDID", b"0-0"]);
        for (name, group) in &stream.groups {
            self.group(key, name, group);
            self.claims(key, name, group, |id| lost.contains(id));
        }
        self.command(&[b"XTRIM", key, b"MAXLEN", b"0"]);
        self.command(&[b"XSETID", key, b"0-0"]);
    }

    fn entry<T: Deref<Target = [u8]>>(&mut self, key: &[u8], id: StreamId, fields: impl Iterator<Item = (T, T)>) {
        let (id, fields) = (id.to_string(), fields.collect::<Vec<_>>());
        let mut words: Vec<&[u8]> = vec![b"XADD", key, id.as_bytes()];
        words.extend(fields.iter().flat_map(|(name, value)| [&**name, &**value]));
        self.command(&words);
    }

    /// A placeholder for a pending entry that the stream no longer has; it is deleted after all claims.
    fn stand_in(&mut self, key: &[u8], id: StreamId) {
        self.command(&[b"XADD", key, id.to_string().as_bytes(), b"", b""]);
    }

    /// The stream's last id, its count of added entries and its largest deleted id.
    fn position(&mut self, key: &[u8], stream: &Stream) {
        let log = &stream.log;
        let [last, deleted] = [log.last_id(), log.max_deleted_id()].map(|id| id.to_string().into_bytes());
        let added = log.entries_added().to_string();
        if log.last_id() < log.max_deleted_id() {
            // Redis 7.0 lets XSETID set the last id of an empty stream back behind one that was deleted, but not say both at once.
            let both = [b"XSETID", key, &deleted, b"ENTRIESADDED", added.as_bytes(), b"MAXDELETEDID", &deleted];
            self.command(&both);
            return self.command(&[b"XSETID", key, &last]);
        }
        self.command(&[b"XSETID", key, &last, b"ENTRIESADDED", added.as_bytes(), b"MAXDELETEDID", &deleted]);
    }

    /// The idempotent ids of the stream's producers.
    fn idempotence(&mut self, key: &[u8], known: &Idempotence) {
        let [duration, maxsize] = [known.limits().duration_s, known.limits().maxsize].map(|it| it.to_string());
        self.command(&[b"XCFGSET", key, b"IDMP-DURATION", duration.as_bytes(), b"IDMP-MAXSIZE", maxsize.as_bytes()]);
        for IdmpRecord { pid, iid, id, .. } in known.records() {
            self.command(&[b"XIDMPRECORD", key, pid, iid, id.to_string().as_bytes()]);
        }
    }

    fn group(&mut self, key: &[u8], name: &[u8], group: &Group) {
        let text = |text: &dyn std::fmt::Display| text.to_string().into_bytes();
        let (last, read) = (text(&group.last_id), text(&group.entries_read.unwrap_or(-1)));
        self.command(&[b"XGROUP", b"CREATE", key, name, &last, b"ENTRIESREAD", &read]);
        for (consumer, _) in group.consumers() {
            self.command(&[b"XGROUP", b"CREATECONSUMER", key, name, consumer]);
        }
    }

    /// The pending entries of a group that are `wanted`.
    fn claims(&mut self, key: &[u8], name: &[u8], group: &Group, wanted: impl Fn(&StreamId) -> bool) {
        let text = |text: &dyn std::fmt::Display| text.to_string().into_bytes();
        for (id, pending) in group.pending().iter().filter(|(id, _)| wanted(id)) {
            let [id, at, times] = [text(id), text(&pending.delivered_at), text(&pending.deliveries)];
            self.command(&[
                b"XCLAIM",
                key,
                name,
                pending.consumer(),
                b"0",
                &id,
                b"TIME",
                &at,
                b"RETRYCOUNT",
                &times,
                b"JUSTID",
                b"FORCE",
            ]);
        }
    }

    fn command(&mut self, words: &[&[u8]]) {
        self.line(b'*', words.len());
        for word in words {
            self.line(b'$', word.len());
            self.0.put(word);
            self.0.put(b"\r\n");
        }
    }

    fn line(&mut self, kind: u8, count: usize) {
        self.0.put(&[kind]);
        self.0.put(itoa::Buffer::new().format(count).as_bytes());
        self.0.put(b"\r\n");
    }
}

/// Entries that are pending in a group, and that the stream has lost: they can only be claimed while something stands in for
/// them.
fn lost(stream: &Stream) -> BTreeSet<StreamId> {
    let pending = stream.groups.values().flat_map(|group| group.pending().keys().copied());
    pending.filter(|id| stream.log.get(*id).is_none()).collect()
}
