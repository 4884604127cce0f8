//! Streams (<https://redis.io/docs/latest/commands/?group=stream>).

mod add;
mod claim;
mod delete;
mod entries;
mod group;
mod idempotence;
mod info;
mod parse;
mod pending;
mod range;
mod read;

use crate::command::{Begin, Categories, Find, Flags, KeySpec, Use, Weight, read as reads, update, weight};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::keyspace::Access;

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const FAST: Flags = Flags::FAST;
const GROW: Flags = WRITE.and(Flags::DENYOOM);
const HELP: Flags = Flags::LOADING.and(Flags::STALE);

const LEN: KeySpec = reads(1).flags("RO");
const CHANGE: KeySpec = update(1).flags("RW update");
const DELETE: KeySpec = update(1).flags("RW delete");
const OUTPUT: &[&str] = &["nondeterministic_output"];

/// The keys between `STREAMS` and as many ids.
const fn streams(from: i8, access: Access) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword { word: "STREAMS", from },
        find: Find::Range { last: -1, step: 1, limit: 2 },
        usage: Use { access, flags: "RO access" },
    }
}

#[rustfmt::skip]
const XGROUP: &[Definition] = &[
    sub("create",         -5, group::create,          GROW,  &[update(2).flags("RW insert")]),
    sub("createconsumer",  5, group::create_consumer, GROW,  &[update(2).flags("RW insert")]),
    sub("delconsumer",     5, group::del_consumer,    WRITE, &[update(2).flags("RW delete")]),
    sub("destroy",         4, group::destroy,         WRITE, &[update(2).flags("RW delete")]),
    sub("help",            2, group::xgroup_help,     HELP,  &[]),
    sub("setid",          -5, group::set_id,          WRITE, &[update(2).flags("RW update")]),
];

#[rustfmt::skip]
const XINFO: &[Definition] = &[
    sub("consumers", 4, info::consumers,  READ, &[reads(2)]).tips(OUTPUT),
    sub("groups",    3, info::groups,     READ, &[reads(2)]),
    sub("help",      2, info::xinfo_help, HELP, &[]),
    sub("stream",   -3, info::stream,     READ, &[reads(2)]).weighs(Weight::Of(weight::limits)),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "stream", category: Categories::STREAM, commands: &[
    cmd("xack",       -4, group::xack,       WRITE.and(FAST), &[CHANGE]),
    cmd("xackdel",    -6, delete::xackdel,   WRITE.and(FAST), &[update(1).flags("RW update delete")]),
    cmd("xadd",       -5, add::xadd,         GROW.and(FAST),  &[CHANGE]).tips(OUTPUT),
    cmd("xautoclaim", -6, claim::xautoclaim, WRITE.and(FAST), &[DELETE]).tips(OUTPUT),
    cmd("xcfgset",    -2, idempotence::xcfgset, WRITE.and(FAST), &[CHANGE]),
    cmd("xclaim",     -6, claim::xclaim,     WRITE.and(FAST), &[CHANGE]).tips(OUTPUT),
    cmd("xdel",       -3, delete::xdel,      WRITE.and(FAST), &[DELETE]),
    cmd("xdelex",     -5, delete::xdelex,    WRITE.and(FAST), &[DELETE]),
    container("xgroup", -2, XGROUP),
    cmd("xidmprecord", 5, idempotence::xidmprecord, GROW.and(FAST), &[CHANGE]),
    container("xinfo",  -2, XINFO),
    cmd("xlen",        2, range::xlen,       READ.and(FAST),  &[LEN]),
    cmd("xpending",   -3, pending::xpending, READ,            &[reads(1)]).tips(OUTPUT).weighs(Weight::Of(weight::limits)),
    cmd("xrange",     -4, range::xrange,     READ,            &[reads(1)]).weighs(Weight::Of(weight::limits)),
    cmd("xread",      -4, read::xread,       READ.and(Flags::BLOCKING),  &[streams(1, Access::Read)]).finder(read::xread_keys).weighs(Weight::Of(weight::unread)),
    cmd("xreadgroup", -7, read::xreadgroup,  WRITE.and(Flags::BLOCKING), &[streams(4, Access::Write)]).finder(read::xreadgroup_keys).weighs(Weight::Of(read::weight_of_group)),
    cmd("xrevrange",  -4, range::xrevrange,  READ,            &[reads(1)]).weighs(Weight::Of(weight::limits)),
    cmd("xsetid",     -3, add::xsetid,       GROW.and(FAST),  &[CHANGE]),
    cmd("xtrim",      -4, add::xtrim,        WRITE,           &[DELETE]).tips(OUTPUT).weighs(Weight::Of(weight::limits)),
] };
