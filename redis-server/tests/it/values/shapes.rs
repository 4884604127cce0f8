//! Shapes of values in which writers and loaders have disagreed, or might, by name.

use std::collections::BTreeMap;

use redis_server::keyspace::ValueRef;
use redis_server::types::hyperloglog;
use redis_server::types::vector_set::{Quantization, VectorSet};
use redis_server::types::{Group, Hash, Stream, StreamId};

/// A value, as tests of shapes look at it.
pub(super) struct Seen<'a> {
    pub(super) value: ValueRef<'a>,
    pub(super) expires: bool,
    /// Elements at which a collection leaves its compact form.
    pub(super) limit: usize,
    /// In milliseconds of Unix time.
    pub(super) now: u64,
}

/// A shape: its type as TYPE prints it, its name, and whether a value has it.
type Shape = (&'static str, &'static str, fn(&Seen<'_>) -> bool);

const SHAPES: &[Shape] = &[
    ("string", "empty", |seen| text(seen, <[u8]>::is_empty)),
    ("string", "integer of 8 bits, its limit", |seen| is_text(seen, b"127") || is_text(seen, b"-128")),
    ("string", "integer just beyond 8 bits", |seen| is_text(seen, b"128") || is_text(seen, b"-129")),
    ("string", "integer of 16 bits, its limit", |seen| is_text(seen, b"32767")),
    ("string", "integer of 32 bits, its limit", |seen| is_text(seen, b"2147483647") || is_text(seen, b"-2147483648")),
    ("string", "integer just beyond 32 bits", |seen| is_text(seen, b"2147483648") || is_text(seen, b"-2147483649")),
    ("string", "largest integer", |seen| is_text(seen, b"9223372036854775807")),
    ("string", "smallest integer", |seen| is_text(seen, b"-9223372036854775808")),
    ("string", "just beyond the integers", |seen| is_text(seen, b"9223372036854775808")),
    ("string", "leading zeros", |seen| is_text(seen, b"007")),
    ("string", "minus zero", |seen| is_text(seen, b"-0")),
    ("string", "no text", |seen| text(seen, |text| text.contains(&0xff) && !is_hll(text))),
    ("string", "44 bytes", |seen| text(seen, |text| text.len() == 44)),
    ("string", "45 bytes", |seen| text(seen, |text| text.len() == 45)),
    ("string", "large", |seen| text(seen, |text| text.len() > 16 * 1024)),
    ("string", "expires", |seen| seen.expires && text(seen, |_| true)),
    ("string", "sparse HyperLogLog", |seen| text(seen, |text| is_hll(text) && text[4] == 1)),
    ("string", "sparse HyperLogLog without elements", |seen| {
        text(seen, |text| is_hll(text) && text[16..] == *b"\x7f\xff")
    }),
    ("string", "dense HyperLogLog", |seen| text(seen, |text| is_hll(text) && text[4] == 0)),
    ("list", "single element", |seen| list(seen, |len, _| len == 1)),
    ("list", "empty element", |seen| list(seen, |_, element| element.is_empty())),
    ("list", "element as large as a node", |seen| list(seen, |_, element| element.len() > 8182)),
    ("list", "element one byte smaller than a node", |seen| list(seen, |_, element| element.len() == 8181)),
    (
        "list",
        "several nodes",
        |seen| matches!(seen.value, ValueRef::List(list) if list.iter().map(|element| element.len()).sum::<usize>() > 20_000),
    ),
    ("set", "single integer", |seen| set(seen, |len, encoding| len == 1 && encoding == "intset")),
    ("set", "single text", |seen| set(seen, |len, encoding| len == 1 && encoding != "intset")),
    ("set", "intset at its limit", |seen| set(seen, |len, encoding| len == seen.limit && encoding == "intset")),
    ("set", "one more than an intset has", |seen| {
        set(seen, |len, encoding| len == seen.limit + 1 && encoding != "intset")
    }),
    ("set", "integers of 64 bits", |seen| has_member(seen, b"-9223372036854775808", "intset")),
    (
        "set",
        "integers of 16 bits",
        |seen| matches!(seen.value, ValueRef::Set(set) if set.is_intset() && set.iter().all(|member| member.len() < 4)),
    ),
    ("set", "empty member", |seen| has_member(seen, b"", "hashtable")),
    ("set", "a number that no integer holds", |seen| has_member(seen, b"9223372036854775808", "hashtable")),
    ("hash", "single field", |seen| hash(seen, |hash| hash.len() == 1)),
    ("hash", "listpack at its limit", |seen| {
        hash(seen, |hash| hash.len() == seen.limit && hash.encoding() == "listpack")
    }),
    ("hash", "one more than a listpack has", |seen| {
        hash(seen, |hash| hash.len() == seen.limit + 1 && hash.encoding() == "hashtable")
    }),
    ("hash", "table of one field", |seen| hash(seen, |hash| hash.len() == 1 && hash.encoding() == "hashtable")),
    ("hash", "empty field and value", |seen| {
        hash(seen, |hash| hash.at(0).get(b"").is_some_and(|value| value.is_empty()))
    }),
    ("hash", "value at the listpack's limit", |seen| has_value(seen, 64, "listpack")),
    ("hash", "value beyond the listpack's limit", |seen| has_value(seen, 65, "hashtable")),
    ("hash", "a field expires", |seen| deadlines(seen, |over, live, lasting| live > 0 && over + lasting > 0)),
    ("hash", "all fields expire", |seen| deadlines(seen, |over, live, lasting| live > 0 && over + lasting == 0)),
    ("hash", "some fields' time is in the past", |seen| {
        deadlines(seen, |over, live, lasting| over > 0 && live + lasting > 0)
    }),
    ("hash", "all fields' time is in the past", |seen| {
        deadlines(seen, |over, live, lasting| over > 0 && live + lasting == 0)
    }),
    ("hash", "fields expire at the last moment that is kept", |seen| {
        hash(seen, |hash| hash.at(0).iter_timed().any(|(.., at)| at == Some((1 << 46) - 1)))
    }),
    ("zset", "single member", |seen| zset(seen, |len, _| len == 1)),
    ("zset", "infinite", |seen| zset(seen, |_, score| score == f64::INFINITY)),
    ("zset", "minus infinite", |seen| zset(seen, |_, score| score == f64::NEG_INFINITY)),
    ("zset", "minus zero", |seen| zset(seen, |_, score| score == 0.0 && score.is_sign_negative())),
    ("zset", "smallest score that is not zero", |seen| zset(seen, |_, score| score == 5e-324)),
    ("zset", "largest score", |seen| zset(seen, |_, score| score == f64::MAX)),
    ("zset", "listpack at its limit", |seen| {
        zset_as(seen, |len, encoding| len == seen.limit && encoding == "listpack")
    }),
    ("zset", "one more than a listpack has", |seen| {
        zset_as(seen, |len, encoding| len == seen.limit + 1 && encoding == "skiplist")
    }),
    ("zset", "skiplist of one member", |seen| zset_as(seen, |len, encoding| len == 1 && encoding == "skiplist")),
    (
        "zset",
        "equal scores",
        |seen| matches!(seen.value, ValueRef::SortedSet(set) if set.iter().zip(set.iter().skip(1)).any(|(a, b)| a.1 == b.1)),
    ),
    ("stream", "never had an entry", |seen| {
        stream(seen, |stream| stream.log.entries_added() == 0 && stream.log.is_empty())
    }),
    ("stream", "all entries deleted", |seen| {
        stream(seen, |stream| stream.log.is_empty() && stream.log.max_deleted_id() > StreamId::MIN)
    }),
    ("stream", "all entries trimmed", |seen| {
        stream(seen, |stream| {
            stream.log.is_empty() && stream.log.entries_added() > 0 && stream.log.max_deleted_id() == StreamId::MIN
        })
    }),
    ("stream", "single entry", |seen| stream(seen, |stream| stream.log.len() == 1)),
    ("stream", "only an empty block", |seen| blocks(seen, |live, _, of| of == 1 && live == 0)),
    ("stream", "empty block in front of others", |seen| blocks(seen, |live, at, of| of > 1 && at == 0 && live == 0)),
    ("stream", "block of one entry", |seen| blocks(seen, |live, _, _| live == 1)),
    ("stream", "several blocks", |seen| blocks(seen, |_, at, _| at > 1)),
    ("stream", "first of a block deleted", |seen| flags(seen, |flags| flags.first() == Some(&true))),
    ("stream", "last of a block deleted", |seen| flags(seen, |flags| flags.last() == Some(&true))),
    ("stream", "inner of a block deleted", |seen| {
        flags(seen, |flags| matches!(flags, [false, .., false] if flags.contains(&true)))
    }),
    ("stream", "entry with names of its own", |seen| names(seen, |names| names.len() > 1 && names[0] != "f")),
    ("stream", "name that occurs twice", |seen| names(seen, |names| names.len() == 2 && names[0] == names[1])),
    ("stream", "first id of all", |seen| has_id(seen, StreamId { ms: 0, seq: 1 })),
    ("stream", "last id of all", |seen| has_id(seen, StreamId::MAX)),
    ("stream", "last id ahead of the last entry", |seen| {
        stream(seen, |stream| stream.log.last_entry_id().is_some_and(|id| id < stream.log.last_id()))
    }),
    ("stream", "last id behind one that is pending", |seen| {
        groups(seen, |stream, group| group.pending().keys().any(|id| *id > stream.log.last_id()))
    }),
    ("stream", "last id behind a deleted one", |seen| {
        stream(seen, |stream| stream.log.last_id() < stream.log.max_deleted_id())
    }),
    ("stream", "pending entry behind a live one, and lost", |seen| {
        groups(seen, |stream, group| {
            let is_lost = |id: &StreamId| stream.log.get(*id).is_none();
            group.pending().keys().any(|id| is_lost(id) && *id > stream.log.first_id() && !stream.log.is_empty())
        })
    }),
    ("stream", "last deleted id is the last", |seen| {
        stream(seen, |stream| !stream.log.is_empty() && stream.log.max_deleted_id() == stream.log.last_id())
    }),
    ("stream", "the most added", |seen| stream(seen, |stream| stream.log.entries_added() >= i64::MAX as u64)),
    ("stream", "group without consumers", |seen| groups(seen, |_, group| group.consumers().len() == 0)),
    ("stream", "group with an empty name", |seen| stream(seen, |stream| stream.groups.contains_key(&b""[..]))),
    ("stream", "consumer without pending entries", |seen| {
        groups(seen, |_, group| group.consumers().any(|(_, consumer)| consumer.pending().is_empty()))
    }),
    ("stream", "pending entry that is deleted", |seen| {
        groups(seen, |stream, group| group.pending().keys().any(|id| stream.log.get(*id).is_none()))
    }),
    ("stream", "pending entry that was trimmed", |seen| {
        groups(seen, |stream, group| {
            group.pending().keys().any(|id| stream.log.get(*id).is_none() && *id > stream.log.max_deleted_id())
        })
    }),
    ("stream", "pending for two groups", |seen| {
        stream(seen, |stream| stream.groups.values().filter(|group| !group.pending().is_empty()).count() > 1)
    }),
    ("stream", "group ahead of the stream", |seen| groups(seen, |stream, group| group.last_id > stream.log.last_id())),
    ("stream", "group that does not know what it has read", |seen| {
        groups(seen, |_, group| group.entries_read.is_none())
    }),
    ("stream", "group that has read the most", |seen| groups(seen, |_, group| group.entries_read == Some(i64::MAX))),
    ("stream", "delivered never", |seen| pending(seen, |times, _| times == 0)),
    ("stream", "delivered the most times", |seen| pending(seen, |times, _| times >= i64::MAX as u64)),
    ("stream", "delivered at the first moment", |seen| pending(seen, |_, at| at == 0)),
    ("stream", "producers", |seen| {
        stream(seen, |stream| stream.idempotence.as_ref().is_some_and(|it| it.records().count() > 1))
    }),
    ("stream", "producers without records", |seen| {
        stream(seen, |stream| stream.idempotence.as_ref().is_some_and(|it| it.records().count() == 0))
    }),
    ("ReJSON-RL", "scalar", |seen| json(seen, |text| matches!(text, "null" | "true" | "0"))),
    ("ReJSON-RL", "empty object", |seen| json(seen, |text| text == "{}")),
    ("ReJSON-RL", "empty array", |seen| json(seen, |text| text == "[]")),
    ("ReJSON-RL", "empty string", |seen| json(seen, |text| text == "\"\"")),
    ("ReJSON-RL", "empty name", |seen| json(seen, |text| text.contains("\"\":"))),
    ("ReJSON-RL", "as deep as may be", |seen| json(seen, |text| text.contains(&"[".repeat(128)))),
    ("ReJSON-RL", "minus zero", |seen| json(seen, |text| text.contains("-0"))),
    ("ReJSON-RL", "largest integer", |seen| json(seen, |text| text.contains("18446744073709551615"))),
    ("ReJSON-RL", "smallest integer", |seen| json(seen, |text| text.contains("-9223372036854775808"))),
    ("ReJSON-RL", "smallest double", |seen| json(seen, |text| text.contains("5e-324"))),
    ("ReJSON-RL", "escapes", |seen| json(seen, |text| text.contains("\\u0000"))),
    ("ReJSON-RL", "content at a head's limit", |seen| json(seen, |text| text.contains(&"x".repeat(250)))),
    ("MBbloom--", "single filter", |seen| bloom(seen, |filters, _, _| filters == 1)),
    ("MBbloom--", "several filters", |seen| bloom(seen, |filters, _, _| filters > 3)),
    ("MBbloom--", "without elements", |seen| bloom(seen, |_, items, _| items == 0)),
    (
        "MBbloom--",
        "full, and does not grow",
        |seen| matches!(seen.value, ValueRef::Bloom(it) if it.growth().is_none() && it.items() >= it.capacity()),
    ),
    ("vectorset", "single element", |seen| vectors(seen, |set| set.len() == 1)),
    ("vectorset", "several levels", |seen| vectors(seen, |set| set.max_level() > 0)),
    ("vectorset", "with attributes", |seen| vectors(seen, |set| set.attributed() > 0)),
    ("vectorset", "without attributes", |seen| vectors(seen, |set| set.attributed() == 0)),
    ("vectorset", "floats", |seen| vectors(seen, |set| set.options().quantization == Quantization::None)),
    ("vectorset", "bytes", |seen| vectors(seen, |set| set.options().quantization == Quantization::Q8)),
    ("vectorset", "bits", |seen| vectors(seen, |set| set.options().quantization == Quantization::Binary)),
    ("vectorset", "projection", |seen| vectors(seen, |set| set.options().projection.is_some())),
    ("vectorset", "more links than fit in rows", |seen| vectors(seen, |set| set.options().m > 64)),
    ("vectorset", "element without a name", |seen| vectors(seen, |set| set.contains(b""))),
    ("vectorset", "element that is an integer", |seen| vectors(seen, |set| set.contains(b"127"))),
    ("vectorset", "numbers with gaps", |seen| vectors(seen, |set| set.last_id() > set.len() as u64)),
    ("MBbloom--", "grows to the same size", |seen| bloom(seen, |_, _, growth| growth == Some(1))),
];

/// How often each shape was reached, and each type.
pub(super) struct Counters {
    shapes: Vec<u64>,
    values: BTreeMap<&'static str, u64>,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self { shapes: vec![0; SHAPES.len()], values: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, seen: &Seen<'_>) {
        let name = seen.value.type_name();
        *self.values.entry(name).or_default() += 1;
        for (count, (of, _, has)) in self.shapes.iter_mut().zip(SHAPES) {
            *count += u64::from(*of == name && has(seen));
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.shapes.iter_mut().zip(&other.shapes).for_each(|(sum, count)| *sum += count);
        other.values.iter().for_each(|(name, count)| *self.values.entry(name).or_default() += count);
    }

    /// The shapes that were not reached.
    pub(super) fn missing(&self) -> Vec<String> {
        let missed = self.shapes.iter().zip(SHAPES).filter(|(count, _)| **count == 0);
        missed.map(|(_, (of, name, _))| format!("{of}: {name}")).collect()
    }

    /// How many values of each type, and of each shape.
    pub(super) fn print(&self) {
        for (name, count) in &self.values {
            println!("{name}: {count} values");
            let of_type = self.shapes.iter().zip(SHAPES).filter(|(_, (of, ..))| of == name);
            of_type.for_each(|(count, (_, shape, _))| println!("  {shape}: {count}"));
        }
    }
}

fn text(seen: &Seen<'_>, has: impl Fn(&[u8]) -> bool) -> bool {
    matches!(seen.value, ValueRef::Str(text) if text.with(has))
}

fn is_text(seen: &Seen<'_>, wanted: &[u8]) -> bool {
    text(seen, |text| text == wanted)
}

fn is_hll(text: &[u8]) -> bool {
    hyperloglog::encoding(text).is_some()
}

fn list(seen: &Seen<'_>, has: impl Fn(usize, &[u8]) -> bool) -> bool {
    matches!(seen.value, ValueRef::List(list) if list.iter().any(|element| has(list.len(), &element)))
}

fn set(seen: &Seen<'_>, has: impl Fn(usize, &str) -> bool) -> bool {
    matches!(seen.value, ValueRef::Set(set) if has(set.len(), set.encoding()))
}

fn has_member(seen: &Seen<'_>, member: &[u8], encoding: &str) -> bool {
    matches!(seen.value, ValueRef::Set(set) if set.contains(member) && set.encoding() == encoding)
}

fn hash(seen: &Seen<'_>, has: impl Fn(&Hash) -> bool) -> bool {
    matches!(seen.value, ValueRef::Hash(hash) if has(hash))
}

fn has_value(seen: &Seen<'_>, len: usize, encoding: &str) -> bool {
    hash(seen, |hash| hash.encoding() == encoding && hash.iter().any(|(_, value)| value.len() == len))
}

/// Fields whose time is over, that expire later, and that do not.
fn deadlines(seen: &Seen<'_>, has: impl Fn(usize, usize, usize) -> bool) -> bool {
    hash(seen, |hash| {
        let (mut over, mut live, mut lasting) = (0, 0, 0);
        hash.at(0).iter_timed().for_each(|(.., at)| match at {
            Some(at) if at <= seen.now => over += 1,
            Some(_) => live += 1,
            None => lasting += 1,
        });
        has(over, live, lasting)
    })
}

fn zset(seen: &Seen<'_>, has: impl Fn(usize, f64) -> bool) -> bool {
    matches!(seen.value, ValueRef::SortedSet(set) if set.iter().any(|(_, score)| has(set.len(), score)))
}

fn zset_as(seen: &Seen<'_>, has: impl Fn(usize, &str) -> bool) -> bool {
    matches!(seen.value, ValueRef::SortedSet(set) if has(set.len(), set.encoding()))
}

fn stream(seen: &Seen<'_>, has: impl Fn(&Stream) -> bool) -> bool {
    matches!(seen.value, ValueRef::Stream(stream) if has(stream))
}

/// Whether a block has this number of live entries, place, and number of blocks.
fn blocks(seen: &Seen<'_>, has: impl Fn(u64, usize, usize) -> bool) -> bool {
    stream(seen, |stream| {
        let live = |list: &redis_server::types::Listpack| {
            let count = list.iter().next().map(|count| String::from_utf8_lossy(&count).parse());
            count.expect("a block has a head").expect("it begins with a count")
        };
        let all: Vec<u64> = stream.log.packed_blocks().map(|(_, list)| live(list)).collect();
        all.iter().enumerate().any(|(at, live)| has(*live, at, all.len()))
    })
}

/// Whether the flags of a block's entries, which tell the deleted, are such.
fn flags(seen: &Seen<'_>, has: impl Fn(&[bool]) -> bool) -> bool {
    stream(seen, |stream| {
        stream.log.packed_blocks().any(|(_, list)| {
            let all: Vec<Vec<u8>> = list.iter().map(|element| element.to_vec()).collect();
            let number = |at: usize| String::from_utf8_lossy(&all[at]).parse::<usize>().expect("a number");
            let names = number(2);
            let (mut at, mut flags) = (3 + names + 1, Vec::new());
            while at < all.len() {
                let flag = number(at);
                flags.push(flag & 1 != 0);
                at += if flag & 2 != 0 { 3 + names + 1 } else { 3 + 1 + 2 * number(at + 3) + 1 };
            }
            has(&flags)
        })
    })
}

fn names(seen: &Seen<'_>, has: impl Fn(&[String]) -> bool) -> bool {
    stream(seen, |stream| {
        stream.log.range(StreamId::MIN, StreamId::MAX).any(|entry| {
            let names: Vec<_> = entry.fields.map(|(name, _)| String::from_utf8_lossy(&name).into_owned()).collect();
            has(&names)
        })
    })
}

fn has_id(seen: &Seen<'_>, id: StreamId) -> bool {
    stream(seen, |stream| stream.log.get(id).is_some())
}

fn groups(seen: &Seen<'_>, has: impl Fn(&Stream, &Group) -> bool) -> bool {
    stream(seen, |stream| stream.groups.values().any(|group| has(stream, group)))
}

fn pending(seen: &Seen<'_>, has: impl Fn(u64, u64) -> bool) -> bool {
    groups(seen, |_, group| group.pending().values().any(|it| has(it.deliveries, it.delivered_at)))
}

fn json(seen: &Seen<'_>, has: impl Fn(&str) -> bool) -> bool {
    matches!(seen.value, ValueRef::Json(json) if has(&json.root().to_text()))
}

fn vectors(seen: &Seen<'_>, has: impl Fn(&VectorSet) -> bool) -> bool {
    matches!(seen.value, ValueRef::VectorSet(set) if has(set))
}

fn bloom(seen: &Seen<'_>, has: impl Fn(usize, u64, Option<u32>) -> bool) -> bool {
    matches!(seen.value, ValueRef::Bloom(it) if has(it.filters(), it.items(), it.growth()))
}
