//! CLUSTER: subcommands with which operators and their tools change the cluster.

use super::{ask, enabled};
use crate::cluster::{Failover, SetSlot, SlotSet, parse_slot};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::{Error, shown};
use crate::protocol::number;

/// How far the bus port is from the port, where nothing else is said.
const BUS_PORT: i64 = 10_000;

/// `CLUSTER MEET ip port [bus-port]`
pub(super) fn meet(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    if args.len() > 5 {
        return Err(Error::subcommand_syntax(args));
    }
    let number = |at: usize, what: &str| {
        number::parse_i64(args.at(at))
            .ok_or_else(|| Error::Message(format!("ERR Invalid {what} port specified: {}", shown(args.at(at)))))
    };
    let port = number(3, "TCP base")?;
    let bus_port = if args.len() == 5 { number(4, "bus")? } else { port.saturating_add(BUS_PORT) };
    ask(cx, |machine, now| machine.meet(args.at(2), port, bus_port, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER ADDSLOTS slot [slot …]`
pub(super) fn add_slots(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let slots = one_by_one(cx, args)?;
    ask(cx, |machine, now| machine.add_slots(&slots, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER ADDSLOTSRANGE start end [start end …]`
pub(super) fn add_slots_range(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let slots = ranges(cx, args)?;
    ask(cx, |machine, now| machine.add_slots(&slots, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER DELSLOTS slot [slot …]`
pub(super) fn delete_slots(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let slots = one_by_one(cx, args)?;
    ask(cx, |machine, now| machine.del_slots(&slots, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER DELSLOTSRANGE start end [start end …]`
pub(super) fn delete_slots_range(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let slots = ranges(cx, args)?;
    ask(cx, |machine, now| machine.del_slots(&slots, now))??;
    cx.reply.ok();
    Ok(())
}

fn one_by_one(cx: &Ctx<'_>, args: Args<'_>) -> Result<SlotSet> {
    enabled(cx)?;
    let mut slots = SlotSet::EMPTY;
    for word in args.from(2).iter() {
        add(&mut slots, parse_slot(word)?)?;
    }
    Ok(slots)
}

fn ranges(cx: &Ctx<'_>, args: Args<'_>) -> Result<SlotSet> {
    enabled(cx)?;
    if args.len() % 2 == 1 {
        let name = String::from_utf8_lossy(args.at(1)).to_ascii_lowercase();
        return Err(Error::WrongArity(format!("cluster|{name}").into()));
    }
    let mut slots = SlotSet::EMPTY;
    for at in (2..args.len()).step_by(2) {
        let (first, last) = (parse_slot(args.at(at))?, parse_slot(args.at(at + 1))?);
        if first > last {
            let text = format!("ERR start slot number {first} is greater than end slot number {last}");
            return Err(Error::Message(text));
        }
        (first..=last).try_for_each(|slot| add(&mut slots, slot))?;
    }
    Ok(slots)
}

fn add(slots: &mut SlotSet, slot: u16) -> Result {
    let is_new = slots.add(slot);
    if is_new { Ok(()) } else { Err(Error::Message(format!("ERR Slot {slot} specified multiple times"))) }
}

/// Whether this node has keys, which it must not have where it is to become another's.
fn has_keys(cx: &Ctx<'_>) -> bool {
    !cx.instance.database(0).is_empty()
}

/// CLUSTER FLUSHSLOTS
pub(super) fn flush_slots(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let has_keys = has_keys(cx);
    ask(cx, |machine, now| machine.flush_slots(has_keys, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER SETSLOT slot MIGRATING id | IMPORTING id | STABLE | NODE id`
pub(super) fn set_slot(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let instance = cx.instance;
    let routing = instance.cluster.routing();
    if routing.node(routing.me).is_some_and(|me| me.is_replica) {
        return Err(Error::Static("ERR Please use SETSLOT only with masters."));
    }
    let slot = parse_slot(args.at(2))?;
    let state = match (args.len(), args.at(3).to_ascii_lowercase().as_slice()) {
        (5, b"migrating") => SetSlot::Migrating(args.at(4)),
        (5, b"importing") => SetSlot::Importing(args.at(4)),
        (4, b"stable") => SetSlot::Stable,
        (5, b"node") => SetSlot::Node(args.at(4)),
        _ => {
            return Err(Error::Static("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP"));
        }
    };
    if matches!(state, SetSlot::Importing(_)) && !instance.cluster.drop_lost_slot(instance, slot) {
        return Err(Error::Static("ERR What is left of the keys that this slot had here is in use. Try again"));
    }
    // A client that adds a key to an open slot passed the redirection check before, so the count waits for its lock.
    let keys = instance.database(0).settled_keys_in_slot(slot);
    ask(cx, |machine, now| machine.set_slot(slot, state, keys, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER FORGET id`
pub(super) fn forget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    ask(cx, |machine, now| machine.forget_node(args.at(2), now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER REPLICATE id`
pub(super) fn replicate(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let has_keys = has_keys(cx);
    ask(cx, |machine, now| machine.replicate(args.at(2), has_keys, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER FAILOVER [FORCE|TAKEOVER]`
pub(super) fn failover(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let how = match args.len() {
        2 => Failover::Ask,
        3 if args.is(2, "force") => Failover::Force,
        3 if args.is(2, "takeover") => Failover::Takeover,
        3 => return Err(Error::Syntax),
        _ => return Err(Error::subcommand_syntax(args)),
    };
    ask(cx, |machine, now| machine.failover(how, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER RESET [HARD|SOFT]`
pub(super) fn reset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let is_hard = match args.len() {
        2 => false,
        3 if args.is(2, "hard") => true,
        3 if args.is(2, "soft") => false,
        3 => return Err(Error::Syntax),
        _ => return Err(Error::subcommand_syntax(args)),
    };
    let has_keys = has_keys(cx);
    ask(cx, |machine, now| machine.reset(is_hard, has_keys, now))??;
    cx.reply.ok();
    Ok(())
}

/// `CLUSTER SET-CONFIG-EPOCH epoch`
pub(super) fn set_config_epoch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    enabled(cx)?;
    let epoch = args.int(2)?;
    ask(cx, |machine, now| machine.set_config_epoch(epoch, now))??;
    cx.reply.ok();
    Ok(())
}

/// CLUSTER BUMPEPOCH
pub(super) fn bump_epoch(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let said = ask(cx, |machine, now| machine.bump_epoch(now))?;
    cx.reply.simple(&said);
    Ok(())
}

/// CLUSTER SAVECONFIG
pub(super) fn save_config(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    ask(cx, |machine, now| machine.save_config(now))?;
    cx.reply.ok();
    Ok(())
}
