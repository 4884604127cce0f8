//! CLUSTER: which keys are in a slot.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use super::enabled;
use crate::cluster::{NOBODY, SLOTS, parse_slot, slot_of};
use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Garbage;
use crate::protocol::error::Error;

/// `CLUSTER KEYSLOT key`
pub(super) fn slot(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    cx.reply.int(slot_of(args.at(2)).into());
    Ok(())
}

/// `CLUSTER COUNTKEYSINSLOT slot`
pub(super) fn count(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let slot = valid(args.int(2)?).ok_or(Error::Static("ERR Invalid slot"))?;
    cx.reply.count(cx.instance.database(0).keys_in_slot(slot));
    Ok(())
}

/// `CLUSTER GETKEYSINSLOT slot count`
pub(super) fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let (slot, most) = (args.int(2)?, args.int(3)?);
    let asked = valid(slot).zip(usize::try_from(most).ok());
    let (slot, most) = asked.ok_or(Error::Static("ERR Invalid slot or number of keys"))?;
    let keys = cx.instance.database(0).slot_keys(slot, most);
    cx.reply.array(keys.len());
    keys.iter().for_each(|key| cx.reply.bulk(key));
    Ok(())
}

/// `CLUSTER FLUSHSLOT slot [ASYNC|SYNC]`
pub(super) fn flush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    if args.len() > 4 {
        return Err(Error::subcommand_syntax(args));
    }
    let slot = parse_slot(args.at(2))?;
    let in_background = match args.len() {
        3 => cx.config().is_on(settings::LAZYFREE_LAZY_USER_FLUSH),
        _ if args.is(3, "ASYNC") => true,
        _ if args.is(3, "SYNC") => false,
        _ => return Err(Error::Syntax),
    };
    // Without a listener for single keys, the slot is cleared as a whole.
    let keys = if cx.is_heard() { cx.db.slot_keys(slot) } else { Vec::new() };
    let removed = cx.db.clear_slot(slot);
    cx.count_changes((removed.len() - keys.len()) as u64);
    for removed in cx.database().save_removed(vec![removed]) {
        cx.discard_all(Garbage::Entries(removed), in_background);
    }
    for key in &keys {
        let key = cx.db.key(key);
        cx.changed(&key, Event::DEL);
    }
    cx.instance().cluster.slot_flushed(cx.instance(), slot);
    cx.reply.ok();
    Ok(())
}

/// How CLUSTER SLOT-STATS orders slots.
#[derive(Debug, Default)]
struct Order {
    limit: Option<usize>,
    is_ascending: Option<bool>,
}

impl Order {
    /// `[LIMIT limit] [ASC|DESC]` from argument `at` on, in any order.
    fn parse(args: Args<'_>, mut at: usize) -> Result<Self> {
        const TWICE: Error = Error::Static("ERR Multiple filters of the same type are disallowed.");
        let mut order = Self::default();
        while at < args.len() {
            if args.is(at, "LIMIT") && at + 1 < args.len() {
                if order.limit.is_some() {
                    return Err(TWICE);
                }
                let limit = args.int(at + 1).ok().and_then(|limit| usize::try_from(limit).ok());
                let limit = limit.filter(|limit| (1..=SLOTS).contains(limit));
                let range = "ERR Limit has to lie in between 1 and 16384 (maximum number of slots).";
                order.limit = Some(limit.ok_or(Error::Static(range))?);
                at += 2;
            } else if args.is(at, "ASC") || args.is(at, "DESC") {
                if order.is_ascending.is_some() {
                    return Err(TWICE);
                }
                order.is_ascending = Some(args.is(at, "ASC"));
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(order)
    }
}

/// `CLUSTER SLOT-STATS SLOTSRANGE start end | ORDERBY key-count [LIMIT limit] [ASC|DESC]`: of the slots that are this node's.
pub(super) fn stats(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let routing = cx.instance.cluster.routing();
    let owner = if routing.primary == NOBODY { routing.me } else { routing.primary };
    let mine = |slots: RangeInclusive<u16>| slots.filter(|slot| routing.owners[usize::from(*slot)] == owner);
    let database = cx.instance.database(0);
    let counted = |slot| (slot, database.keys_in_slot(slot));
    let found: Vec<(u16, usize)> = if args.is(2, "SLOTSRANGE") && args.len() == 5 {
        let slot = |at| args.int(at).ok().and_then(valid).ok_or(Error::Static("ERR Invalid or out of range slot"));
        let (start, end) = (slot(3)?, slot(4)?);
        if start > end {
            let text = format!("ERR Start slot number {start} is greater than end slot number {end}");
            return Err(Error::Message(text));
        }
        mine(start..=end).map(counted).collect()
    } else if args.is(2, "ORDERBY") {
        if !args.is(3, "key-count") {
            return Err(Error::Static("ERR Unrecognized sort metric for ORDERBY."));
        }
        let order = Order::parse(args, 4)?;
        let mut all: Vec<_> = mine(0..=SLOTS as u16 - 1).map(counted).collect();
        match order.is_ascending {
            Some(true) => all.sort_by_key(|(_, keys)| *keys),
            _ => all.sort_by_key(|(_, keys)| Reverse(*keys)),
        }
        all.truncate(order.limit.unwrap_or(SLOTS));
        all
    } else {
        return Err(Error::subcommand_syntax(args));
    };
    cx.reply.array(found.len());
    for (slot, keys) in found {
        cx.reply.array(2);
        cx.reply.int(slot.into());
        cx.reply.map(1);
        cx.reply.bulk(b"key-count");
        cx.reply.count(keys);
    }
    Ok(())
}

fn valid(slot: i64) -> Option<u16> {
    u16::try_from(slot).ok().filter(|&slot| usize::from(slot) < SLOTS)
}
