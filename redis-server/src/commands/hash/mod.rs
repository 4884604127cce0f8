//! Hashes (<https://redis.io/docs/latest/commands/?group=hash>).
//!
//! A field whose time is over is not there, but stays in the hash, and in `HLEN`, until it is removed: when it is due, or by a
//! command that sets it anew.

mod expire;
mod get_set;

use super::random::{self, PairOptions};
use super::scan::{self, Extra, ScanOptions};
use crate::command::{Args, Categories, Flags, Result, Weight, read, update, weight, write};
use crate::commands::definition::{Family, cmd};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::protocol::number::{self, Extended, IntText};
use crate::types::{Hash, LiveHash, Text};

/// `HSET key field value [field value …]`
fn hset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let new = set_fields(cx, args, "hset")?;
    cx.reply.count(new);
    Ok(())
}

/// `HMSET key field value [field value …]`
fn hmset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    set_fields(cx, args, "hmset")?;
    cx.reply.ok();
    Ok(())
}

/// Sets the pairs from argument 2 on; returns how many fields are new.
fn set_fields(cx: &mut Ctx<'_>, args: Args<'_>, name: &'static str) -> Result<usize> {
    if args.len() % 2 == 1 {
        return Err(Error::WrongArity(name.into()));
    }
    let key = args.key(0);
    let limits = cx.hash_limits();
    let now = cx.db.over_by();
    let hash = cx.db.hash_or_new(key)?;
    let over = hash.take_over_of(now, (2..args.len()).step_by(2).map(|at| args.at(at)));
    let mut new = 0;
    for at in (2..args.len()).step_by(2) {
        new += usize::from(hash.set(args.at(at), args.at(at + 1), limits));
    }
    cx.fields_expired(key, &over);
    cx.changed(key, Event::HSET);
    Ok(new)
}

/// HSETNX key field value
fn hsetnx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let limits = cx.hash_limits();
    let now = cx.db.over_by();
    let hash = cx.db.hash_or_new(key)?;
    let new = !hash.at(now).contains(args.at(2));
    if new {
        let over = hash.take_over_of(now, std::iter::once(args.at(2)));
        hash.set(args.at(2), args.at(3), limits);
        cx.fields_expired(key, &over);
        cx.changed(key, Event::HSET);
        if !over.is_empty() {
            cx.instead(&[b"HSET", key.bytes, args.at(2), args.at(3)]);
        }
    }
    cx.reply.int(new.into());
    Ok(())
}

/// HGET key field
fn hget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.live_hash(args.key(0))?;
    match hash.and_then(|hash| hash.get(args.at(2))) {
        Some(value) => cx.reply.bulk(&value),
        None => cx.reply.null(),
    }
    Ok(())
}

/// `HMGET key field [field …]`
fn hmget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.live_hash(args.key(0))?;
    reply_values(cx.reply, hash, args.from(2));
    Ok(())
}

/// HGETALL key
fn hgetall(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.live_hash(args.key(0))?;
    cx.reply.map(hash.map_or(0, |hash| hash.len()));
    for (field, value) in hash.iter().flat_map(|hash| hash.iter()) {
        cx.reply.bulk(&field);
        cx.reply.bulk(&value);
    }
    Ok(())
}

/// HKEYS key
fn hkeys(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    list_halves(cx, args, |(field, _)| field)
}

/// HVALS key
fn hvals(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    list_halves(cx, args, |(_, value)| value)
}

/// Appends one half of every pair.
fn list_halves(cx: &mut Ctx<'_>, args: Args<'_>, half: for<'t> fn((Text<'t>, Text<'t>)) -> Text<'t>) -> Result {
    let hash = cx.db.live_hash(args.key(0))?;
    cx.reply.array(hash.map_or(0, |hash| hash.len()));
    for pair in hash.iter().flat_map(|hash| hash.iter()) {
        cx.reply.bulk(&half(pair));
    }
    Ok(())
}

/// `HDEL key field [field …]`
fn hdel(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let Some(hash) = cx.db.hash_mut(key)? else {
        cx.reply.int(0);
        return Ok(());
    };
    if hash.expires() {
        return hdel_live(cx, args);
    }
    let removed = args.from(2).iter().filter(|field| hash.remove(field)).count();
    let empty = hash.is_empty();
    cx.taken(key, removed, empty, Event::HDEL);
    Ok(())
}

/// HDEL of a hash of which fields expire: those whose time is over stay until they are removed for that.
fn hdel_live(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, now) = (args.key(0), cx.db.over_by());
    let Some(hash) = cx.db.hash_mut(key)? else { return Ok(()) };
    let is_removed = |field: &&[u8]| hash.at(now).contains(field) && hash.remove(field);
    let removed: Vec<&[u8]> = args.from(2).iter().filter(is_removed).collect();
    let empty = hash.is_empty();
    cx.taken(key, removed.len(), empty, Event::HDEL);
    if !removed.is_empty() {
        cx.instead_hdel(key, &removed);
    }
    Ok(())
}

/// HEXISTS key field
fn hexists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.live_hash(args.key(0))?;
    cx.reply.int(hash.is_some_and(|hash| hash.contains(args.at(2))).into());
    Ok(())
}

/// HLEN key
fn hlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.hash(args.key(0))?;
    cx.reply.count(hash.map_or(0, Hash::len));
    Ok(())
}

/// HSTRLEN key field
fn hstrlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.live_hash(args.key(0))?;
    let value = hash.and_then(|hash| hash.get(args.at(2)));
    cx.reply.count(value.map_or(0, |value| value.len()));
    Ok(())
}

/// HINCRBY key field increment
fn hincrby(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let increment = args.int(3)?;
    let (key, field) = (args.key(0), args.at(2));
    let limits = cx.hash_limits();
    // A hash that is made here takes any increment: no error leaves it empty.
    let now = cx.db.over_by();
    let hash = cx.db.hash_or_new(key)?;
    let old = match hash.at(now).get(field) {
        Some(value) => number::parse_i64(&value).ok_or(Error::Static("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = old.checked_add(increment).ok_or(Error::Overflow)?;
    let over = hash.take_over_of(now, std::iter::once(field));
    hash.update(field, &IntText::new(sum), limits);
    cx.fields_expired(key, &over);
    cx.changed(key, Event::HINCRBY);
    if !over.is_empty() {
        cx.instead(&[b"HSET", key.bytes, field, &IntText::new(sum)]);
    }
    cx.reply.int(sum);
    Ok(())
}

/// HINCRBYFLOAT key field increment
fn hincrbyfloat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let increment = Extended::parse(args.at(3)).ok_or(Error::NotFloat)?;
    if !increment.is_finite() {
        return Err(Error::Static("ERR value is NaN or Infinity"));
    }
    let (key, field) = (args.key(0), args.at(2));
    let limits = cx.hash_limits();
    // A hash that is made here takes any finite increment: no error leaves it empty.
    let now = cx.db.over_by();
    let hash = cx.db.hash_or_new(key)?;
    let sum = match hash.at(now).get(field) {
        Some(value) => Extended::parse(&value).ok_or(Error::Static("ERR hash value is not a float"))? + increment,
        None => increment,
    };
    if !sum.is_finite() {
        return Err(Error::NanOrInfinity);
    }
    let sum = sum.to_string();
    let over = hash.take_over_of(now, std::iter::once(field));
    hash.update(field, sum.as_bytes(), limits);
    let expires_at = hash.at(now).deadline(field).flatten();
    cx.fields_expired(key, &over);
    cx.changed(key, Event::HINCRBYFLOAT);
    match expires_at {
        None => cx.instead(&[b"HSET", key.bytes, field, sum.as_bytes()]),
        Some(at) => {
            let at = IntText::new(at as i64);
            cx.instead(&[b"HSETEX", key.bytes, b"PXAT", &at, b"FIELDS", b"1", field, sum.as_bytes()]);
        }
    }
    cx.reply.bulk(sum.as_bytes());
    Ok(())
}

/// `HRANDFIELD key [count [WITHVALUES]]`
fn hrandfield(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let random = cx.random();
    if args.len() == 2 {
        let places = cx.db.live_hash(key)?.map(|hash| hash.places()).filter(|places| !places.is_empty());
        match places.and_then(|places| places.at(random.below(places.len()))) {
            Some((field, _)) => cx.reply.bulk(&field),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let options = PairOptions::parse(args, "WITHVALUES")?;
    let Some(hash) = cx.db.live_hash(key)?.filter(|hash| !hash.is_empty()) else {
        cx.reply.array(0);
        return Ok(());
    };
    let places = hash.places();
    options.head(cx.reply, places.len());
    let below = |bound| random.below(bound);
    let at = |place| places.at(place);
    random::sample(cx.reply, options.count, hash.iter(), at, below, |reply, (field, value)| {
        options.element_head(reply);
        reply.bulk(field);
        if options.with {
            reply.bulk(value);
        }
    })
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
fn hscan(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    let cursor = scan::cursor(args.at(2), level)?;
    let Some(hash) = cx.db.live_hash(args.key(0))? else {
        scan::reply_nothing(cx.reply);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 3, Extra::Bare("NOVALUES"), level)?;
    scan::reply(cx.reply, |reply| {
        let mut elements = 0;
        let next = hash.scan(cursor, options.count, &mut |field, value| {
            if options.selects(field) {
                reply.bulk(field);
                elements += 1;
                if !options.bare {
                    reply.bulk(value);
                    elements += 1;
                }
            }
        });
        (next, elements)
    });
    Ok(())
}

/// The fields that a command names behind the word `FIELDS` and their number, and the options in front of it.
struct Fields<'a> {
    options: Args<'a>,
    fields: Args<'a>,
}

impl<'a> Fields<'a> {
    /// The number says something else than there is.
    const MISMATCH: Error =
        Error::Static("ERR numfields should be greater than 0 and match the provided number of fields");

    /// Fields behind options, which begin with argument `first` and are looked at by `check` before the number is.
    fn find(args: Args<'a>, first: usize, check: impl Fn(Args<'a>) -> Result) -> Result<Self> {
        Self::find_each(args, first, 1, check)
    }

    /// [`Fields::find`] for fields with their values.
    fn find_pairs(args: Args<'a>, first: usize, check: impl Fn(Args<'a>) -> Result) -> Result<Self> {
        Self::find_each(args, first, 2, check)
    }

    fn find_each(args: Args<'a>, first: usize, each: usize, check: impl Fn(Args<'a>) -> Result) -> Result<Self> {
        let word = (first..args.len() - 1).find(|&at| args.is(at, "FIELDS")).ok_or(Self::MISMATCH)?;
        let options = args.first(word).from(first);
        check(options)?;
        let count = usize::try_from(args.int(word + 1)?).ok().and_then(|count| count.checked_mul(each));
        let fields = args.from(word + 2);
        match count {
            Some(count) if count > 0 && count == fields.len() => Ok(Self { options, fields }),
            _ => Err(Self::MISMATCH),
        }
    }

    /// Fields without options in front of them; `mismatch` is what a wrong number is answered.
    fn at_once(args: Args<'a>, mismatch: Error) -> Result<Args<'a>> {
        if !args.is(2, "FIELDS") {
            return Err(Error::Syntax);
        }
        let (count, fields) = (args.int(3)?, args.from(4));
        if count > 0 && count as usize == fields.len() { Ok(fields) } else { Err(mismatch) }
    }
}

/// Answers with the fields' values.
fn reply_values(reply: &mut Reply, hash: Option<LiveHash<'_>>, fields: Args<'_>) {
    reply.array(fields.len());
    for field in fields.iter() {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => reply.bulk(&value),
            None => reply.null(),
        }
    }
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const GROW_FAST: Flags = Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST);
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
const ANY_OUTPUT: &[&str] = &["nondeterministic_output"];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "hash", category: Categories::HASH, commands: &[
    cmd("hdel",         -3, hdel,         WRITE_FAST, &[write(1).flags("RW delete")]),
    cmd("hexists",       3, hexists,      READ_FAST,  &[read(1).flags("RO")]),
    cmd("hexpire",      -6, expire::hexpire,   WRITE_FAST, &[write(1).flags("RW update")]),
    cmd("hexpireat",    -6, expire::hexpireat, WRITE_FAST, &[write(1).flags("RW update")]),
    cmd("hexpiretime",  -5, expire::hexpiretime, READ_FAST, &[read(1)]),
    cmd("hget",          3, hget,         READ_FAST,  &[read(1)]),
    cmd("hgetall",       2, hgetall,      READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("hgetdel",      -5, get_set::hgetdel, WRITE_FAST, &[write(1).flags("RW access delete")]),
    cmd("hgetex",       -5, get_set::hgetex,  WRITE_FAST, &[update(1)]),
    cmd("hincrby",       4, hincrby,      GROW_FAST,  &[update(1)]),
    cmd("hincrbyfloat",  4, hincrbyfloat, GROW_FAST,  &[update(1)]),
    cmd("hkeys",         2, hkeys,        READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("hlen",          2, hlen,         READ_FAST,  &[read(1).flags("RO")]),
    cmd("hmget",        -3, hmget,        READ_FAST,  &[read(1)]),
    cmd("hmset",        -4, hmset,        GROW_FAST,  &[write(1).flags("RW update")]),
    cmd("hpersist",     -5, expire::hpersist,  WRITE_FAST, &[write(1).flags("RW update")]),
    cmd("hpexpire",     -6, expire::hpexpire,  WRITE_FAST, &[write(1).flags("RW update")]),
    cmd("hpexpireat",   -6, expire::hpexpireat, WRITE_FAST, &[write(1).flags("RW update")]),
    cmd("hpexpiretime", -5, expire::hpexpiretime, READ_FAST, &[read(1)]),
    cmd("hpttl",        -5, expire::hpttl,     READ_FAST,  &[read(1)]),
    cmd("hrandfield",   -2, hrandfield,   READ,       &[read(1)]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::count)),
    cmd("hscan",        -3, hscan,        READ,       &[read(1)]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::scanned)),
    cmd("hset",         -4, hset,         GROW_FAST,  &[write(1).flags("RW update")]),
    cmd("hsetex",       -6, get_set::hsetex,   GROW_FAST,  &[write(1).flags("RW insert")]),
    cmd("hsetnx",        4, hsetnx,       GROW_FAST,  &[write(1).flags("RW insert")]),
    cmd("hstrlen",       3, hstrlen,      READ_FAST,  &[read(1).flags("RO")]),
    cmd("httl",         -5, expire::httl,      READ_FAST,  &[read(1)]),
    cmd("hvals",         2, hvals,        READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
] };
