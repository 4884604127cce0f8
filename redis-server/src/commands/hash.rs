//! Hashes (<https://redis.io/docs/latest/commands/?group=hash>).

use super::random::{self, PairOptions};
use super::scan::{self, ScanOptions};
use crate::command::{Args, Categories, Flags, Result, read, update, write};
use crate::command::{Weight, weight};
use crate::commands::definition::{Family, cmd};
use crate::exec::{Ctx, Event};
use crate::protocol::error::Error;
use crate::protocol::number::{self, Extended, IntText};
use crate::types::{Hash, Text};

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
    let hash = cx.db.hash_or_new(key)?;
    let mut new = 0;
    for at in (2..args.len()).step_by(2) {
        new += usize::from(hash.set(args.at(at), args.at(at + 1), limits));
    }
    cx.changed(key, Event::HSET);
    Ok(new)
}

/// HSETNX key field value
fn hsetnx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let limits = cx.hash_limits();
    let hash = cx.db.hash_or_new(key)?;
    let new = !hash.contains(args.at(2));
    if new {
        hash.set(args.at(2), args.at(3), limits);
        cx.changed(key, Event::HSET);
    }
    cx.reply.int(new.into());
    Ok(())
}

/// HGET key field
fn hget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.hash(args.key(0))?;
    match hash.and_then(|hash| hash.get(args.at(2))) {
        Some(value) => cx.reply.bulk(&value),
        None => cx.reply.null(),
    }
    Ok(())
}

/// `HMGET key field [field …]`
fn hmget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.hash(args.key(0))?;
    cx.reply.array(args.len() - 2);
    for field in args.from(2).iter() {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => cx.reply.bulk(&value),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// HGETALL key
fn hgetall(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.hash(args.key(0))?;
    cx.reply.map(hash.map_or(0, Hash::len));
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
    let hash = cx.db.hash(args.key(0))?;
    cx.reply.array(hash.map_or(0, Hash::len));
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
    let removed = args.from(2).iter().filter(|field| hash.remove(field)).count();
    let empty = hash.is_empty();
    cx.taken(key, removed, empty, Event::HDEL);
    Ok(())
}

/// HEXISTS key field
fn hexists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let hash = cx.db.hash(args.key(0))?;
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
    let hash = cx.db.hash(args.key(0))?;
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
    let hash = cx.db.hash_or_new(key)?;
    let old = match hash.get(field) {
        Some(value) => number::parse_i64(&value).ok_or(Error::Static("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = old.checked_add(increment).ok_or(Error::Overflow)?;
    hash.set(field, &IntText::new(sum), limits);
    cx.changed(key, Event::HINCRBY);
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
    let hash = cx.db.hash_or_new(key)?;
    let sum = match hash.get(field) {
        Some(value) => Extended::parse(&value).ok_or(Error::Static("ERR hash value is not a float"))? + increment,
        None => increment,
    };
    if !sum.is_finite() {
        return Err(Error::NanOrInfinity);
    }
    let sum = sum.to_string();
    hash.set(field, sum.as_bytes(), limits);
    cx.changed(key, Event::HINCRBYFLOAT);
    cx.instead(&[b"HSET", key.bytes, field, sum.as_bytes()]);
    cx.reply.bulk(sum.as_bytes());
    Ok(())
}

/// `HRANDFIELD key [count [WITHVALUES]]`
fn hrandfield(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let random = cx.random();
    if args.len() == 2 {
        let hash = cx.db.hash(key)?;
        match hash.and_then(|hash| hash.at(random.below(hash.len()))) {
            Some((field, _)) => cx.reply.bulk(&field),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let options = PairOptions::parse(args, "WITHVALUES")?;
    let Some(hash) = cx.db.hash(key)? else {
        cx.reply.array(0);
        return Ok(());
    };
    options.head(cx.reply, hash.len());
    let below = |bound| random.below(bound);
    let at = |place| hash.at(place);
    random::sample(cx.reply, options.count, hash.iter(), at, below, |reply, (field, value)| {
        options.element_head(reply);
        reply.bulk(field);
        if options.with {
            reply.bulk(value);
        }
    })
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count]`
fn hscan(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let cursor = scan::cursor(args.at(2))?;
    let Some(hash) = cx.db.hash(args.key(0))? else {
        scan::reply_nothing(cx.reply);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 3, false)?;
    scan::reply(cx.reply, |reply| {
        let mut elements = 0;
        let next = hash.scan(cursor, options.count, &mut |field, value| {
            if options.selects(field) {
                reply.bulk(field);
                reply.bulk(value);
                elements += 2;
            }
        });
        (next, elements)
    });
    Ok(())
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
    cmd("hget",          3, hget,         READ_FAST,  &[read(1)]),
    cmd("hgetall",       2, hgetall,      READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("hincrby",       4, hincrby,      GROW_FAST,  &[update(1)]),
    cmd("hincrbyfloat",  4, hincrbyfloat, GROW_FAST,  &[update(1)]),
    cmd("hkeys",         2, hkeys,        READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("hlen",          2, hlen,         READ_FAST,  &[read(1).flags("RO")]),
    cmd("hmget",        -3, hmget,        READ_FAST,  &[read(1)]),
    cmd("hmset",        -4, hmset,        GROW_FAST,  &[write(1).flags("RW update")]),
    cmd("hrandfield",   -2, hrandfield,   READ,       &[read(1)]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::count)),
    cmd("hscan",        -3, hscan,        READ,       &[read(1)]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::scanned)),
    cmd("hset",         -4, hset,         GROW_FAST,  &[write(1).flags("RW update")]),
    cmd("hsetnx",        4, hsetnx,       GROW_FAST,  &[write(1).flags("RW insert")]),
    cmd("hstrlen",       3, hstrlen,      READ_FAST,  &[read(1).flags("RO")]),
    cmd("hvals",         2, hvals,        READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
] };
