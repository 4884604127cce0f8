//! Keys of any type (<https://redis.io/docs/latest/commands/?group=generic>).

use crate::command::{Args, Categories, Ctx, Event, Family, Flags, KeySpec, Result, cmd, read, reads, update, writes};
use crate::db::Entry;
use crate::error::Error;
use crate::glob;

/// DEL key [key …]
fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let mut removed = 0;
    for key in args.keys() {
        if cx.db.remove(key).is_some() {
            cx.changed(key, Event("del"));
            removed += 1;
        }
    }
    cx.reply.int(removed);
    Ok(())
}

/// EXISTS key [key …]
fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let found = args.keys().iter().filter(|key| cx.db.look(key).is_some()).count();
    cx.reply.count(found);
    Ok(())
}

/// TYPE key
fn type_of(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let name = cx.db.look(args.key(0)).map_or("none", |entry| entry.value().type_name());
    cx.reply.simple(name);
    Ok(())
}

/// KEYS pattern
fn keys(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let pattern = args.at(1);
    let mark = cx.reply.mark();
    let (reply, mut found) = (&mut *cx.reply, 0);
    cx.db.for_each(|entry| {
        if pattern == b"*" || glob::matches(pattern, entry.key(), false) {
            reply.bulk(entry.key());
            found += 1;
        }
        true
    });
    reply.array_at(mark, found);
    Ok(())
}

/// When a key's time may be changed (options of EXPIRE and its kin).
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Condition {
    fn parse(options: Args<'_>) -> Result<Self> {
        let mut condition = Self::default();
        for at in 0..options.len() {
            let flag = match () {
                () if options.is(at, "NX") => &mut condition.nx,
                () if options.is(at, "XX") => &mut condition.xx,
                () if options.is(at, "GT") => &mut condition.gt,
                () if options.is(at, "LT") => &mut condition.lt,
                () => {
                    let option = String::from_utf8_lossy(options.at(at));
                    return Err(Error::Message(format!("ERR Unsupported option {option}")));
                }
            };
            *flag = true;
        }
        if condition.nx && (condition.xx || condition.gt || condition.lt) {
            return Err(Error::Static("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if condition.gt && condition.lt {
            return Err(Error::Static("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(condition)
    }

    /// Whether `at` may take the place of `current`; a key without expiry counts as one that lives for ever.
    fn allows(self, current: Option<u64>, at: i64) -> bool {
        let current = current.map(|current| current as i64);
        !(self.nx && current.is_some()
            || self.xx && current.is_none()
            || self.gt && current.is_none_or(|current| at <= current)
            || self.lt && current.is_some_and(|current| at >= current))
    }
}

/// EXPIRE key seconds [NX|XX|GT|LT]
fn expire(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    expire_at(cx, args, "expire", 1000, now)
}

/// Argument 2 in units of `unit` milliseconds, counted from `base`, becomes the key's time.
fn expire_at(cx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, unit: i64, base: u64) -> Result {
    let condition = Condition::parse(args.from(3))?;
    let at = args.int(2)?.checked_mul(unit).and_then(|at| at.checked_add(base as i64));
    let at = at.ok_or(Error::InvalidExpire(name))?;
    let key = args.key(0);
    let allowed = match cx.db.get_mut(key) {
        Some(entry) => condition.allows(entry.expire_at(), at),
        None => false,
    };
    if allowed {
        match u64::try_from(at).ok().filter(|&at| at > cx.now()) {
            Some(at) => {
                cx.db.expire(key, Some(at));
                cx.changed(key, Event("expire"));
            }
            None => {
                cx.db.remove(key);
                cx.changed(key, Event("del"));
            }
        }
    }
    cx.reply.int(allowed.into());
    Ok(())
}

/// Answers with what `show` makes of a key's time; -1: it has none, -2: there is no key.
fn reply_time(cx: &mut Ctx<'_>, args: Args<'_>, show: impl Fn(u64) -> u64) -> Result {
    let time = match cx.db.look(args.key(0)).map(Entry::expire_at) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => show(at) as i64,
    };
    cx.reply.int(time);
    Ok(())
}

/// TTL key
fn ttl(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    reply_time(cx, args, |at| (at - now + 500) / 1000)
}

/// PTTL key
fn pttl(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    reply_time(cx, args, |at| at - now)
}

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const DELETE: KeySpec = writes(1, -1, 1).flags("RM delete");
const LOOK: KeySpec = reads(1, -1, 1).flags("RO");
const EXPIRE: KeySpec = update(1).flags("RW update");
const SUM: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const VARIES: &[&str] = &["nondeterministic_output"];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: Categories::KEYSPACE, commands: &[
    cmd("del",    -2, del,     Flags::WRITE,    &[DELETE]).tips(SUM),
    cmd("exists", -2, exists,  READ,            &[LOOK]).tips(SUM),
    cmd("expire", -3, expire,  WRITE,           &[EXPIRE]),
    cmd("keys",    2, keys,    Flags::READONLY, &[]).also(Categories::DANGEROUS).tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    cmd("pttl",    2, pttl,    READ,            &[read(1)]).tips(VARIES),
    cmd("ttl",     2, ttl,     READ,            &[read(1)]).tips(VARIES),
    cmd("type",    2, type_of, READ,            &[read(1).flags("RO")]),
] };
