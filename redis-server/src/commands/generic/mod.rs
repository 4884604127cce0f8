//! Keys of any type (<https://redis.io/docs/latest/commands/?group=generic>).

mod dump;
mod expire;
mod migrate;
mod object;
mod rename;

pub(super) use self::expire::{Condition, over};
use super::scan::{self, Extra, ScanOptions};
use crate::command::{
    Args, Categories, Find, Flags, Footprint, KeySpec, Reach, Result, Role, Weight, optional, read, reads, update,
    weight, write, writes,
};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Access, Entry};
use crate::protocol::error::{Error, shown};
use crate::protocol::glob;

/// `DEL key [key …]`
fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let in_background = cx.config().is_on(settings::LAZYFREE_LAZY_USER_DEL);
    delete(cx, args, in_background)
}

/// `UNLINK key [key …]`
fn unlink(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    delete(cx, args, true)
}

fn delete(cx: &mut Ctx<'_>, args: Args<'_>, in_background: bool) -> Result {
    let mut removed = 0;
    for key in args.keys() {
        if let Some(entry) = cx.db.remove(key) {
            cx.discard(entry, in_background);
            cx.changed(key, Event::DEL);
            removed += 1;
        }
    }
    cx.reply.int(removed);
    Ok(())
}

/// `EXISTS key [key …]`
fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let found = args.keys().iter().filter(|key| cx.db.look(key).is_some()).count();
    cx.reply.count(found);
    Ok(())
}

/// `TOUCH key [key …]`
fn touch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    // Since Redis 7.2 also for a client that leaves no traces otherwise.
    if cx.config().level().is_72() {
        cx.db.touch();
    }
    let found = args.keys().iter().filter(|key| cx.db.get(key).is_some()).count();
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
    cx.db.for_each_shown(|entry| {
        if pattern == b"*" || glob::matches(pattern, entry.key(), false) {
            reply.bulk(entry.key());
            found += 1;
        }
        true
    });
    reply.array_at(mark, found);
    Ok(())
}

/// RANDOMKEY
fn randomkey(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let random = cx.random();
    match cx.db.random_key(|| random.number()) {
        Some(key) => cx.reply.bulk(&key),
        None => cx.reply.null(),
    }
    Ok(())
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
fn scan_keys(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    let cursor = scan::cursor(args.at(1), level)?;
    let options = ScanOptions::parse(args, 2, Extra::Type, level)?;
    if let Some(name) = options.type_name
        && level.is_valkey()
        && !TYPES.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
    {
        return Err(Error::Message(format!("ERR unknown type name '{}'", shown(name))));
    }
    let wanted = |entry: &Entry| {
        let type_name = entry.value().type_name();
        options.selects(entry.key()) && options.type_name.is_none_or(|t| type_name.as_bytes().eq_ignore_ascii_case(t))
    };
    let reply = &mut *cx.reply;
    let start = reply.mark();
    let mut found = 0;
    // Of those that are over Valkey removes what was asked for, Redis all.
    let some = level.is_valkey();
    let next = cx.db.scan(
        cursor,
        options.count,
        |entry| !some || wanted(entry),
        |entry| {
            if wanted(entry) {
                reply.bulk(entry.key());
                found += 1;
            }
        },
    );
    reply.array_at(start, found);
    reply.bulk_at(start, itoa::Buffer::new().format(next).as_bytes());
    reply.array_at(start, 2);
    Ok(())
}

/// The names of all types.
const TYPES: [&str; 9] = ["string", "list", "set", "zset", "hash", "stream", "ReJSON-RL", "MBbloom--", "vectorset"];

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const STORE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);

const DELETE: KeySpec = writes(1, -1, 1).flags("RM delete");
const LOOK: KeySpec = reads(1, -1, 1).flags("RO");
const EXPIRE: KeySpec = update(1).flags("RW update");
const FROM: KeySpec = update(1).flags("RW access delete");

const FROM_3: KeySpec = update(3).flags("RW access delete");
const FROM_KEYS: KeySpec = KeySpec {
    find: Find::Range { last: -1, step: 1, limit: 0 },
    ..optional("KEYS", -2, Access::Write, "RW access delete incomplete")
};

const SUM: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const VARIES: &[&str] = &["nondeterministic_output"];

#[rustfmt::skip]
const OBJECT: &[Definition] = &[
    sub("encoding", 3, object::encoding,    Flags::READONLY, &[read(2).flags("RO")]).tips(VARIES),
    sub("freq",     3, object::freq,        Flags::READONLY, &[read(2).flags("RO")]).tips(VARIES),
    sub("help",     2, object::object_help, ANY_TIME,        &[]),
    sub("idletime", 3, object::idletime,    Flags::READONLY, &[read(2).flags("RO")]).tips(VARIES),
    sub("refcount", 3, object::refcount,    Flags::READONLY, &[read(2).flags("RO")]).tips(VARIES),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: Categories::KEYSPACE, commands: &[
    cmd("copy",        -3, rename::copy,        STORE,           &[read(1), write(2)]).locks(Footprint::Depends(rename::copy_footprint)).reaches(Reach::Named(rename::copied_to)).weighs(Weight::Of(weight::values)),
    cmd("del",         -2, del,                 Flags::WRITE,    &[DELETE]).tips(SUM).weighs(Weight::Of(weight::values)),
    cmd("dump",         2, dump::dump,          Flags::READONLY, &[read(1)]).tips(VARIES).weighs(Weight::Of(weight::values)),
    cmd("exists",      -2, exists,              READ,            &[LOOK]).tips(SUM),
    cmd("expire",      -3, expire::expire,      WRITE,           &[EXPIRE]),
    cmd("expireat",    -3, expire::expireat,    WRITE,           &[EXPIRE]),
    cmd("expiretime",   2, expire::expiretime,  READ,            &[read(1)]),
    cmd("keys",         2, keys,                Flags::READONLY, &[]).also(Categories::DANGEROUS).tips(&["request_policy:all_shards", "nondeterministic_output_order"]).locks(Footprint::Walk).weighs(Weight::Much),
    cmd("migrate",     -6, migrate::migrate,    Flags::WRITE,    &[FROM_3, FROM_KEYS]).role(Role::Migrate).also(Categories::DANGEROUS).tips(VARIES).finder(migrate::migrate_keys).weighs(Weight::Much),
    cmd("move",         3, rename::move_key,    WRITE,           &[update(1)]).locks(Footprint::Everything).reaches(Reach::Named(rename::moved_to)),
    container("object", -2, OBJECT),
    cmd("persist",      2, expire::persist,     WRITE,           &[EXPIRE]),
    cmd("pexpire",     -3, expire::pexpire,     WRITE,           &[EXPIRE]),
    cmd("pexpireat",   -3, expire::pexpireat,   WRITE,           &[EXPIRE]),
    cmd("pexpiretime",  2, expire::pexpiretime, READ,            &[read(1)]),
    cmd("pttl",         2, expire::pttl,        READ,            &[read(1)]).tips(VARIES),
    cmd("randomkey",    1, randomkey,           Flags::READONLY, &[]).tips(&["request_policy:all_shards", "nondeterministic_output"]).locks(Footprint::Walk),
    cmd("rename",       3, rename::rename,      Flags::WRITE,    &[FROM, write(2)]).weighs(Weight::Of(weight::values)),
    cmd("renamenx",     3, rename::renamenx,    WRITE,           &[FROM, write(2).flags("OW insert")]),
    cmd("restore",     -4, dump::restore,       STORE,           &[write(1)]).also(Categories::DANGEROUS).weighs(Weight::Of(weight::payload)),
    cmd("restore-asking", -4, dump::restore,    STORE.and(Flags::ASKING), &[write(1)]).also(Categories::DANGEROUS),
    cmd("scan",        -2, scan_keys,           Flags::READONLY, &[]).tips(&["nondeterministic_output", "request_policy:special"]).locks(Footprint::Walk).weighs(Weight::Of(weight::scanned)),
    cmd("touch",       -2, touch,               READ,            &[LOOK]).tips(SUM),
    cmd("ttl",          2, expire::ttl,         READ,            &[read(1)]).tips(VARIES),
    cmd("type",         2, type_of,             READ,            &[read(1).flags("RO")]),
    cmd("unlink",      -2, unlink,              WRITE,           &[DELETE]).tips(SUM),
] };
