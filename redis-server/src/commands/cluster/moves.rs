//! CLUSTER: slots that move as a whole, for operators, and what nodes say to each other for that.

use super::{ask, enabled};
use crate::cluster::moves::{MoveInfo, Ranges};
use crate::cluster::{NodeId, SLOTS, SlotSet};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::protocol::number;

/// `CLUSTER MIGRATESLOTS SLOTSRANGE start end [start end …] NODE id [SLOTSRANGE start end [start end …] NODE id …]`
pub(super) fn migrate(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let (mut wanted, mut at) = (Vec::new(), 2);
    while at < args.len() {
        if !args.is(at, "SLOTSRANGE") {
            return Err(Error::Syntax);
        }
        let (slots, next) = ranges(args, at + 1)?;
        if !args.is(next, "NODE") || next + 1 >= args.len() {
            return Err(Error::Syntax);
        }
        wanted.push((slots, args.at(next + 1)));
        at = next + 2;
    }
    ask(cx, |machine, now| machine.migrate_slots(&wanted, now))??;
    cx.reply.ok();
    Ok(())
}

/// CLUSTER CANCELSLOTMIGRATIONS
pub(super) fn cancel(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    ask(cx, |machine, now| machine.cancel_moves(now))??;
    cx.reply.ok();
    Ok(())
}

/// CLUSTER GETSLOTMIGRATIONS
pub(super) fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let moves = ask(cx, |machine, _| machine.moves())?;
    cx.reply.array(moves.len());
    moves.iter().for_each(|info| tell(cx, info));
    Ok(())
}

fn tell(cx: &mut Ctx<'_>, info: &MoveInfo) {
    let reply = &mut *cx.reply;
    reply.map(if info.nodes.is_some() { 11 } else { 9 });
    let mut text = |name: &str, value: &str| {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    };
    text("name", info.name.as_str());
    text("operation", if info.is_import { "IMPORT" } else { "EXPORT" });
    text("slot_ranges", &Ranges(&info.slots).to_string());
    if let Some((source, target)) = info.nodes {
        text("target_node", target.as_str());
        text("source_node", source.as_str());
    }
    let times =
        [("create_time", info.created), ("last_update_time", info.updated), ("last_ack_time", info.acknowledged)];
    for (name, at) in times {
        cx.reply.bulk(name.as_bytes());
        cx.reply.count((at / 1000) as usize);
    }
    for (name, value) in [("state", info.state), ("message", info.message.as_str())] {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    }
    // Nothing is copied on write.
    cx.reply.bulk(b"cow_size");
    cx.reply.int(0);
}

/// `CLUSTER SYNCSLOTS`: with ESTABLISH, another node begins to bring slots. A primary also reports its moves with ESTABLISH and FINISH. The
/// other words belong on a connection that began with ESTABLISH.
pub(super) fn sync(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    match args.at(2).to_ascii_lowercase().as_slice() {
        b"establish" => establish(cx, args),
        b"finish" => finish(cx, args),
        b"capa" => {
            cx.reply.ok();
            Ok(())
        }
        b"ack" | b"snapshot-eof" | b"request-pause" | b"paused" | b"request-failover" | b"failover-granted" => {
            let word = String::from_utf8_lossy(args.at(2)).to_ascii_uppercase();
            let text = format!("ERR CLUSTER SYNCSLOTS {word} should only be used by slot migration clients");
            Err(Error::Message(text))
        }
        _ => Err(Error::Syntax),
    }
}

/// The arguments of ESTABLISH and FINISH, in any order.
#[derive(Default)]
struct Said<'a> {
    source: Option<&'a [u8]>,
    name: Option<NodeId>,
    slots: Option<SlotSet>,
    state: Option<&'a [u8]>,
    message: Option<&'a [u8]>,
}

impl<'a> Said<'a> {
    fn parse(args: Args<'a>) -> Result<Self> {
        let (mut said, mut at) = (Self::default(), 3);
        while at < args.len() {
            if args.is(at, "SLOTSRANGE") && said.slots.is_none() {
                let (slots, next) = ranges(args, at + 1)?;
                said.slots = Some(slots);
                at = next;
                continue;
            }
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            let place = match args.at(at).to_ascii_lowercase().as_slice() {
                b"source" => &mut said.source,
                b"state" => &mut said.state,
                b"message" => &mut said.message,
                b"name" if said.name.is_none() => {
                    said.name = Some(NodeId::parse(value).ok_or(Error::Syntax)?);
                    at += 2;
                    continue;
                }
                _ => return Err(Error::Syntax),
            };
            if place.replace(value).is_some() {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        Ok(said)
    }
}

/// `CLUSTER SYNCSLOTS ESTABLISH SOURCE id NAME name SLOTSRANGE start end [start end …]`
fn establish(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Said { source, name: Some(name), slots: Some(slots), state: None, message: None } = Said::parse(args)? else {
        return Err(Error::Syntax);
    };
    if cx.is_told_by_others() {
        ask(cx, |machine, now| machine.watch_import(name, slots, now))??;
    } else {
        let source = source.ok_or(Error::Syntax)?;
        if !cx.may_wait() {
            return Err(Error::Static("ERR CLUSTER SYNCSLOTS ESTABLISH needs a connection of its own"));
        }
        cx.expect_import(name);
        let established = ask(cx, |machine, now| machine.establish(source, name, slots, now));
        if !matches!(established, Ok(Ok(()))) {
            cx.expect_no_import(name);
        }
        established??;
        cx.client.importing = Some(Box::new(name));
        // The connection is the move's when what was said before is sent.
        cx.client.close = true;
    }
    // Replicas, and a server that starts from the file, must not show arriving keys either.
    cx.verbatim(args);
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER SYNCSLOTS FINISH STATE success|failed NAME name [MESSAGE message]`
fn finish(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Said { name: Some(name), state: Some(state), message, source: None, slots: None } = Said::parse(args)? else {
        return Err(Error::Syntax);
    };
    let is_success = match state.to_ascii_lowercase().as_slice() {
        b"success" => true,
        b"failed" => false,
        _ => return Err(Error::Syntax),
    };
    let message = String::from_utf8_lossy(message.unwrap_or_default());
    ask(cx, |machine, now| machine.watched_import_ended(name, is_success, &message, now))??;
    cx.verbatim(args);
    cx.reply.ok();
    Ok(())
}

/// Pairs of slots from argument `at` on, and where they end.
fn ranges(args: Args<'_>, mut at: usize) -> Result<(SlotSet, usize)> {
    let mut slots = SlotSet::EMPTY;
    while let Some(first) = args.get(at).and_then(number::parse_i64) {
        let last = args.get(at + 1).ok_or(Error::Static("ERR No end slot for final slot range"))?;
        let slot = |number: i64| u16::try_from(number).ok().filter(|slot| usize::from(*slot) < SLOTS);
        let range = slot(first).zip(number::parse_i64(last).and_then(slot));
        let (first, last) = range.ok_or(Error::Static("ERR Invalid or out of range slot"))?;
        if first > last {
            let text = format!("ERR Start slot number {first} is greater than end slot number {last}.");
            return Err(Error::Message(text));
        }
        if let Some(twice) = (first..=last).find(|slot| slots.has(*slot)) {
            let text = format!("ERR Slot range {first}-{last} overlaps with a previous range at slot {twice}.");
            return Err(Error::Message(text));
        }
        slots.add_range(first, last);
        at += 2;
    }
    if slots.is_empty() { Err(Error::Static("ERR No slot ranges specified")) } else { Ok((slots, at)) }
}
