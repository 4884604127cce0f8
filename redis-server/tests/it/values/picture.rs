//! A value as text, with the properties that no command shows.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

use redis_server::keyspace::{Entry, ValueRef};
use redis_server::types::vector_set::Node;
use redis_server::types::{Group, Stream, StreamId};

/// How much of a value a way of passing it on keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    /// All.
    All,
    /// All but what a stream's producers have added: Redis has no payload of DUMP for that.
    NoProducers,
    /// Commands do not say when a consumer was seen, nor since when an idempotent id is known.
    NoMoments,
}

/// Nothing, for a key that is not there at `now`.
pub(super) const NONE: &str = "none";

/// The picture of an entry at `now`, in milliseconds of Unix time.
pub(super) fn picture(entry: Option<&Entry>, now: u64, keeps: Keeps) -> String {
    let Some(entry) = entry.filter(|entry| !entry.is_expired(now)) else { return NONE.to_owned() };
    let mut out = String::new();
    if let Some(at) = entry.expire_at() {
        _ = writeln!(out, "expires at {at}");
    }
    let value = entry.value();
    // A value that outgrew its compact form and shrank again is compact after loading, as in the genuine server.
    _ = writeln!(out, "{}", value.type_name());
    match value {
        ValueRef::Str(text) => text.with(|text| _ = writeln!(out, "{}", Shown(text))),
        ValueRef::List(list) => list.iter().for_each(|element| _ = writeln!(out, "{}", Shown(&element))),
        ValueRef::Set(set) => sorted(&mut out, set.iter().map(|member| Shown(&member).to_string())),
        ValueRef::Hash(hash) => {
            if hash.is_over(now) {
                return NONE.to_owned();
            }
            let fields = hash
                .at(now)
                .iter_timed()
                .map(|(field, value, at)| format!("{} {} until {at:?}", Shown(&field), Shown(&value)));
            sorted(&mut out, fields);
        }
        ValueRef::SortedSet(set) => {
            // Bits tell 0 from -0.
            // As in Redis, -0 becomes 0 in the compact form.
            let bits = |score: f64| (score + 0.0).to_bits();
            set.iter().for_each(|(member, score)| _ = writeln!(out, "{:x} {}", bits(score), Shown(&member)));
        }
        ValueRef::Stream(stream) => stream_in(&mut out, stream, keeps),
        ValueRef::Json(json) => out.push_str(&json.root().to_text()),
        ValueRef::VectorSet(set) => {
            _ = writeln!(out, "{} dimensions, {:?}", set.dimensions(), set.options());
            let names: BTreeMap<u64, &[u8]> = set.nodes().map(|node| (node.id, node.name)).collect();
            let links = |ids: &Vec<u64>| {
                let mut linked: Vec<String> = ids.iter().map(|id| names[id].escape_ascii().to_string()).collect();
                linked.sort_unstable();
                linked.join(" ")
            };
            let node = |node: Node<'_>| {
                let levels: Vec<String> = node.levels.iter().map(links).collect();
                let (name, attributes) = (Shown(node.name).to_string(), Shown(node.attributes).to_string());
                let (length, range) = (node.length.to_bits(), node.range.to_bits());
                format!("{} {name} {attributes} {} {length:x} {range:x} {levels:?}", node.id, Shown(&node.vector))
            };
            sorted(&mut out, set.nodes().map(node));
        }
        ValueRef::Bloom(filter) => {
            _ = writeln!(out, "{:?}", filter.shape());
            filter.parts().for_each(|(shape, bits)| _ = writeln!(out, "{shape:?} {}", Shown(bits)));
        }
    }
    out
}

/// Bytes that are told from others; long ones by a digest.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONG: usize = 80;
        if self.0.len() <= LONG {
            return self.0.escape_ascii().fmt(f);
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(self.0);
        write!(f, "({} bytes, {:x})", self.0.len(), hasher.finish())
    }
}

fn sorted(out: &mut String, lines: impl Iterator<Item = String>) {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    out.push_str(&lines.join("\n"));
}

fn stream_in(out: &mut String, stream: &Stream, keeps: Keeps) {
    let log = &stream.log;
    _ = writeln!(
        out,
        "{} entries from {}, last {}, deleted {}, added {}",
        log.len(),
        log.first_id(),
        log.last_id(),
        log.max_deleted_id(),
        log.entries_added()
    );
    for entry in log.range(StreamId::MIN, StreamId::MAX) {
        _ = write!(out, "{}", entry.id);
        entry.fields.for_each(|(name, value)| _ = write!(out, " {} {}", Shown(&name), Shown(&value)));
        out.push('\n');
    }
    // Commands make blocks of their own.
    if keeps != Keeps::NoMoments {
        log.packed_blocks().for_each(|(key, block)| _ = writeln!(out, "block {key} of {}", block.len()));
    }
    for (name, group) in &stream.groups {
        _ = writeln!(out, "group {} at {}, read {:?}", name.escape_ascii(), group.last_id, group.entries_read);
        group_in(out, group, keeps);
    }
    if let Some(known) = stream.idempotence.as_ref().filter(|_| keeps != Keeps::NoProducers) {
        let totals = (keeps == Keeps::All).then(|| known.totals());
        _ = writeln!(out, "{:?} {totals:?}", known.limits());
        for mut record in known.records() {
            if keeps == Keeps::NoMoments {
                record.since = 0;
            }
            _ = writeln!(out, "{record:?}");
        }
    }
}

fn group_in(out: &mut String, group: &Group, keeps: Keeps) {
    for (name, consumer) in group.consumers() {
        _ = write!(out, "consumer {}", name.escape_ascii());
        if keeps != Keeps::NoMoments {
            _ = write!(out, " seen {}", consumer.seen_at);
        }
        consumer.pending().iter().for_each(|id| _ = write!(out, " {id}"));
        out.push('\n');
    }
    for (id, pending) in group.pending() {
        let (at, times, name) = (pending.delivered_at, pending.deliveries, pending.consumer().escape_ascii());
        _ = writeln!(out, "pending {id} of {name}, {times} times, at {at}");
    }
}
