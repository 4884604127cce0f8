//! Sorted sets (<https://redis.io/docs/latest/commands/?group=sorted-set>).

mod add;
mod algebra;
mod parse;
mod pop;
mod random;
mod range;
mod read;

pub(super) use add::{AddRule, add_scored};

use crate::command::{Categories, Flags, KeySpec, Weight, keynum, numkeys, read, update, weight, write, writes};
use crate::commands::definition::{Family, cmd};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Access, Key, Object};
use crate::protocol::Reply;
use crate::types::SortedSet;

/// Appends a member with its score: a pair of its own where `nested` (RESP3), else two values of the list around.
#[inline]
fn reply_pair(reply: &mut Reply, member: &[u8], score: f64, nested: bool) {
    if nested {
        reply.array(2);
    }
    reply.bulk(member);
    reply.double(score);
}

/// Head of a list of `len` members, whose scores follow them or not.
#[inline]
fn reply_head(reply: &mut Reply, len: usize, with_scores: bool) {
    let flat = with_scores && !reply.is_resp3();
    reply.array(if flat { len * 2 } else { len });
}

/// Puts a computed set in the place of `key` and answers its size.
fn store(cx: &mut Ctx<'_>, key: &Key<'_>, set: SortedSet, event: Event) {
    super::store::store(cx, key, set.len(), Object::SortedSet(Box::new(set)), event);
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
const READ_MOVABLE: Flags = Flags::READONLY.and(Flags::MOVABLEKEYS);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);
const GROW_FAST: Flags = GROW.and(Flags::FAST);
const GROW_MOVABLE: Flags = GROW.and(Flags::MOVABLEKEYS);
const WRITE: Flags = Flags::WRITE;
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const WRITE_MOVABLE: Flags = Flags::WRITE.and(Flags::MOVABLEKEYS);
const WAIT: Flags = WRITE_FAST.and(Flags::BLOCKING).and(Flags::NOSCRIPT);

const ADD_KEY: KeySpec = update(1).flags("RW update");
const REM_KEY: KeySpec = update(1).flags("RW delete");
const POP: &str = "RW access delete";
const POP_KEY: KeySpec = update(1).flags(POP);
const RANDOM: &[&str] = &["nondeterministic_output"];
const STORE_KEYS: &[KeySpec] = &[write(1), numkeys(2)];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "sorted_set", category: Categories::SORTEDSET, commands: &[
    cmd("bzmpop",           -5, pop::bzmpop,             WRITE_MOVABLE.and(Flags::BLOCKING), &[keynum(2, Access::Write, POP)]),
    cmd("bzpopmax",         -3, pop::bzpopmax,           WAIT,          &[writes(1, -2, 1).flags(POP)]),
    cmd("bzpopmin",         -3, pop::bzpopmin,           WAIT,          &[writes(1, -2, 1).flags(POP)]),
    cmd("zadd",             -4, add::zadd,               GROW_FAST,     &[ADD_KEY]),
    cmd("zcard",             2, read::zcard,             READ_FAST,     &[read(1).flags("RO")]),
    cmd("zcount",            4, read::zcount,            READ_FAST,     &[read(1)]),
    cmd("zdiff",            -3, algebra::zdiff,          READ_MOVABLE,  &[numkeys(1)]).weighs(Weight::Of(weight::values)),
    cmd("zdiffstore",       -4, algebra::zdiffstore,     GROW_MOVABLE,  STORE_KEYS).weighs(Weight::Of(weight::values)),
    cmd("zincrby",           4, add::zincrby,            GROW_FAST,     &[update(1)]),
    cmd("zinter",           -3, algebra::zinter,         READ_MOVABLE,  &[numkeys(1)]).weighs(Weight::Of(weight::values)),
    cmd("zintercard",       -3, algebra::zintercard,     READ_MOVABLE,  &[numkeys(1)]).weighs(Weight::Of(weight::values)),
    cmd("zinterstore",      -4, algebra::zinterstore,    GROW_MOVABLE,  STORE_KEYS).weighs(Weight::Of(weight::values)),
    cmd("zlexcount",         4, read::zlexcount,         READ_FAST,     &[read(1)]),
    cmd("zmpop",            -4, pop::zmpop,              WRITE_MOVABLE, &[keynum(1, Access::Write, POP)]).weighs(Weight::Of(weight::limits)),
    cmd("zmscore",          -3, read::zmscore,           READ_FAST,     &[read(1)]),
    cmd("zpopmax",          -2, pop::zpopmax,            WRITE_FAST,    &[POP_KEY]).weighs(Weight::Of(weight::count)).batched_up_to(2),
    cmd("zpopmin",          -2, pop::zpopmin,            WRITE_FAST,    &[POP_KEY]).weighs(Weight::Of(weight::count)).batched_up_to(2),
    cmd("zrandmember",      -2, random::zrandmember,     READ,          &[read(1)]).tips(RANDOM).weighs(Weight::Of(weight::count)),
    cmd("zrange",           -4, range::zrange,           READ,          &[read(1)]).weighs(Weight::Of(weight::positions)),
    cmd("zrangebylex",      -4, range::zrangebylex,      READ,          &[read(1)]).weighs(Weight::Of(weight::limits)),
    cmd("zrangebyscore",    -4, range::zrangebyscore,    READ,          &[read(1)]).weighs(Weight::Of(weight::limits)),
    cmd("zrangestore",      -5, range::zrangestore,      GROW,          &[write(1), read(2)]).weighs(Weight::Of(weight::limits)),
    cmd("zrank",            -3, read::zrank,             READ_FAST,     &[read(1)]),
    cmd("zrem",             -3, add::zrem,               WRITE_FAST,    &[REM_KEY]),
    cmd("zremrangebylex",    4, range::zremrangebylex,   WRITE,         &[REM_KEY]).weighs(Weight::Of(weight::limits)),
    cmd("zremrangebyrank",   4, range::zremrangebyrank,  WRITE,         &[REM_KEY]).weighs(Weight::Of(weight::positions)),
    cmd("zremrangebyscore",  4, range::zremrangebyscore, WRITE,         &[REM_KEY]).weighs(Weight::Of(weight::limits)),
    cmd("zrevrange",        -4, range::zrevrange,        READ,          &[read(1)]).weighs(Weight::Of(weight::positions)),
    cmd("zrevrangebylex",   -4, range::zrevrangebylex,   READ,          &[read(1)]).weighs(Weight::Of(weight::limits)),
    cmd("zrevrangebyscore", -4, range::zrevrangebyscore, READ,          &[read(1)]).weighs(Weight::Of(weight::limits)),
    cmd("zrevrank",         -3, read::zrevrank,          READ_FAST,     &[read(1)]),
    cmd("zscan",            -3, read::zscan,             READ,          &[read(1)]).tips(RANDOM).weighs(Weight::Of(weight::scanned)),
    cmd("zscore",            3, read::zscore,            READ_FAST,     &[read(1)]),
    cmd("zunion",           -3, algebra::zunion,         READ_MOVABLE,  &[numkeys(1)]).weighs(Weight::Of(weight::values)),
    cmd("zunionstore",      -4, algebra::zunionstore,    GROW_MOVABLE,  STORE_KEYS).weighs(Weight::Of(weight::values)),
] };
