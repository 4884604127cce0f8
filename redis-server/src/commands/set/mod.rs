//! Sets (<https://redis.io/docs/latest/commands/?group=set>).

mod algebra;

use self::algebra::{sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore};
use super::random::{self, Count};
use super::scan::{self, Extra, ScanOptions};
use crate::command::{Args, Categories, Flags, Result, Weight, numkeys, read, reads, weight, write};
use crate::commands::definition::{Family, cmd};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, ValueRef};
use crate::protocol::error::Error;
use crate::protocol::number;
use crate::types::Set;

/// Popping so many times more members than stay moves those that stay to a new set instead.
const KEEP_SHARE: usize = 5;

/// `SADD key member [member …]`
fn sadd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let limits = cx.set_limits();
    let set = cx.db.set_or_new(key)?;
    let added = args.from(2).iter().filter(|member| set.add(member, limits)).count();
    if added > 0 {
        cx.changed(key, Event::SADD);
    }
    cx.reply.count(added);
    Ok(())
}

/// `SREM key member [member …]`
fn srem(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let Some(set) = cx.db.set_mut(key)? else {
        cx.reply.int(0);
        return Ok(());
    };
    let removed = args.from(2).iter().filter(|member| set.remove(member)).count();
    let empty = set.is_empty();
    cx.taken(key, removed, empty, Event::SREM);
    Ok(())
}

/// SISMEMBER key member
fn sismember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.set_at(args.key(0))?;
    cx.reply.int(set.is_some_and(|set| set.contains(args.at(2))).into());
    Ok(())
}

/// `SMISMEMBER key member [member …]`
fn smismember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.set_at(args.key(0))?;
    cx.reply.array(args.len() - 2);
    for member in args.from(2).iter() {
        cx.reply.int(set.is_some_and(|set| set.contains(member)).into());
    }
    Ok(())
}

/// SCARD key
fn scard(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.set_at(args.key(0))?;
    cx.reply.count(set.map_or(0, Set::len));
    Ok(())
}

/// SMEMBERS key
fn smembers(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.set_at(args.key(0))?;
    cx.reply.set(set.map_or(0, Set::len));
    for member in set.iter().flat_map(|set| set.iter()) {
        cx.reply.bulk(&member);
    }
    Ok(())
}

/// SMOVE source destination member
fn smove(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (source, target, member) = (args.key(0), args.key(1), args.at(3));
    let target_type = cx.db.set_mut(target).map(|_| ());
    let Some(set) = cx.db.set_mut(source)? else {
        cx.reply.int(0);
        return Ok(());
    };
    target_type?;
    let same = source.bytes == target.bytes;
    let found = if same { set.contains(member) } else { set.remove(member) };
    let empty = set.is_empty();
    if found && !same {
        cx.changed(source, Event::SREM);
        if empty {
            cx.drop_if_empty(source);
        }
        let limits = cx.set_limits();
        if cx.db.set_or_new(target)?.add(member, limits) {
            cx.changed(target, Event::SADD);
        }
    }
    cx.reply.int(found.into());
    Ok(())
}

/// `SPOP key [count]`
fn spop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    match args.len() {
        2 => pop_one(cx, args),
        3 => pop_many(cx, args),
        _ => Err(Error::Syntax),
    }
}

fn pop_one(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let mut popped = Popped::new(cx.is_journaled());
    let random = cx.random();
    let Some(set) = cx.db.set_mut(key)? else {
        cx.reply.null();
        return Ok(());
    };
    let place = random.below(set.len());
    set.pop_at(place, |member| {
        cx.reply.bulk(member);
        popped.add(member);
    });
    let empty = set.is_empty();
    cx.changed(key, Event::SPOP);
    popped.say(cx, key);
    if empty {
        cx.drop_if_empty(key);
    }
    Ok(())
}

fn pop_many(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let invalid = Error::Static("ERR value is out of range, must be positive");
    let count = number::parse_i64(args.at(2)).and_then(|count| usize::try_from(count).ok()).ok_or(invalid)?;
    let key = args.key(0);
    let limits = cx.set_limits();
    let (random, journaled) = (cx.random(), cx.is_journaled());
    let set = match cx.db.set_mut(key)? {
        Some(set) if count > 0 => set,
        _ => {
            cx.reply.set(0);
            return Ok(());
        }
    };
    if count >= set.len() {
        pop_all(cx, key);
        return Ok(());
    }
    let stay = set.len() - count;
    cx.reply.set(count);
    let mut popped = Popped::new(journaled);
    let reply = &mut *cx.reply;
    let mut take = |member: &[u8]| {
        reply.bulk(member);
        popped.add(member);
    };
    if stay * KEEP_SHARE <= count {
        let mut kept = Set::default();
        for _ in 0..stay {
            set.pop_at(random.below(set.len()), |member| kept.add(member, limits));
        }
        std::mem::swap(set, &mut kept);
        kept.iter().for_each(|member| take(&member));
    } else {
        for _ in 0..count {
            set.pop_at(random.below(set.len()), &mut take);
        }
    }
    cx.changed(key, Event::SPOP);
    popped.say(cx, key);
    Ok(())
}

/// Members that were popped, for the journal.
struct Popped(Option<Vec<Vec<u8>>>);

impl Popped {
    fn new(journaled: bool) -> Self {
        Self(journaled.then(Vec::new))
    }

    fn add(&mut self, member: &[u8]) {
        if let Some(members) = &mut self.0 {
            members.push(member.into());
        }
    }

    /// Records the removals in several commands, as a reader may limit the length of a command.
    fn say(self, cx: &Ctx<'_>, key: &Key<'_>) {
        const AT_ONCE: usize = 1024;
        for some in self.0.unwrap_or_default().chunks(AT_ONCE) {
            let words: Vec<&[u8]> = [b"SREM", key.bytes].into_iter().chain(some.iter().map(Vec::as_slice)).collect();
            cx.instead(&words);
        }
    }
}

fn pop_all(cx: &mut Ctx<'_>, key: &Key<'_>) {
    let Some(entry) = cx.db.remove(key) else { return };
    if let ValueRef::Set(set) = entry.value() {
        cx.reply.set(set.len());
        set.iter().for_each(|member| cx.reply.bulk(&member));
    }
    cx.changed(key, Event::SPOP);
    cx.changed(key, Event::DEL);
    cx.instead(&[b"DEL", key.bytes]);
    cx.discard(entry, false);
}

/// `SRANDMEMBER key [count]`
fn srandmember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let random = cx.random();
    if args.len() > 3 {
        return Err(Error::Syntax);
    }
    if args.len() == 2 {
        let set = cx.db.set_at(key)?;
        match set.and_then(|set| set.at(random.below(set.len()))) {
            Some(member) => cx.reply.bulk(&member),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let count = Count::parse(args, 2)?;
    let Some(set) = cx.db.set_at(key)? else {
        cx.reply.array(0);
        return Ok(());
    };
    cx.reply.array(count.of(set.len()));
    let below = |bound| random.below(bound);
    let at = |place| set.at(place);
    random::sample(cx.reply, count, set.iter(), at, below, |reply, member| reply.bulk(member))
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
fn sscan(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    let cursor = scan::cursor(args.at(2), level)?;
    let Some(set) = cx.db.set_at(args.key(0))? else {
        scan::reply_nothing(cx.reply);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 3, Extra::None, level)?;
    scan::reply(cx.reply, |reply| {
        let mut elements = 0;
        let next = set.scan(cursor, options.count, &mut |member| {
            if options.selects(member) {
                reply.bulk(member);
                elements += 1;
            }
        });
        (next, elements)
    });
    Ok(())
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);
const GROW_FAST: Flags = GROW.and(Flags::FAST);
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
const ANY_OUTPUT: &[&str] = &["nondeterministic_output"];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "set", category: Categories::SET, commands: &[
    cmd("sadd",        -3, sadd,        GROW_FAST,  &[write(1).flags("RW insert")]),
    cmd("scard",        2, scard,       READ_FAST,  &[read(1).flags("RO")]),
    cmd("sdiff",       -2, sdiff,       READ,       &[reads(1, -1, 1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("sdiffstore",  -3, sdiffstore,  GROW,       &[write(1), reads(2, -1, 1)]).weighs(Weight::Of(weight::values)),
    cmd("sinter",      -2, sinter,      READ,       &[reads(1, -1, 1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("sintercard",  -3, sintercard,  READ.and(Flags::MOVABLEKEYS), &[numkeys(1)]).weighs(Weight::Of(weight::values)),
    cmd("sinterstore", -3, sinterstore, GROW,       &[write(1).flags("RW update"), reads(2, -1, 1)]).weighs(Weight::Of(weight::values)),
    cmd("sismember",    3, sismember,   READ_FAST,  &[read(1).flags("RO")]),
    cmd("smembers",     2, smembers,    READ,       &[read(1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("smismember",  -3, smismember,  READ_FAST,  &[read(1)]),
    cmd("smove",        4, smove,       WRITE_FAST, &[write(1).flags("RW access delete"), write(2).flags("RW insert")]),
    cmd("spop",        -2, spop,        WRITE_FAST, &[write(1).flags("RW access delete")]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::count)).batched_up_to(2),
    cmd("srandmember", -2, srandmember, READ,       &[read(1)]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::count)),
    cmd("srem",        -3, srem,        WRITE_FAST, &[write(1).flags("RW delete")]),
    cmd("sscan",       -3, sscan,       READ,       &[read(1)]).tips(ANY_OUTPUT).weighs(Weight::Of(weight::scanned)),
    cmd("sunion",      -2, sunion,      READ,       &[reads(1, -1, 1)]).tips(ANY_ORDER).weighs(Weight::Of(weight::values)),
    cmd("sunionstore", -3, sunionstore, GROW,       &[write(1), reads(2, -1, 1)]).weighs(Weight::Of(weight::values)),
] };
