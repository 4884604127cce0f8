//! CLUSTER: which keys are in a slot.

use super::enabled;
use crate::cluster::{SLOTS, slot_of};
use crate::command::{Args, Result};
use crate::exec::Ctx;
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

fn valid(slot: i64) -> Option<u16> {
    u16::try_from(slot).ok().filter(|&slot| usize::from(slot) < SLOTS)
}
