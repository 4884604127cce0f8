//! WAIT and WAITAOF: how many replicas have what this connection wrote, and whose disk has it.

use std::sync::atomic::Ordering::Relaxed;

use crate::command::{Args, Categories, Flags, Result};
use crate::commands::definition::{Family, cmd};
use crate::exec::core::{Ctx, InVain};
use crate::exec::replication::Copies;
use crate::protocol::error::Error;

/// WAIT numreplicas timeout
fn wait(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance.replication.is_replica() {
        return Err(Error::Static(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is \
             configured to be writable (which is not the default) writes to replicas are just local and are not propagated.",
        ));
    }
    let wanted = args.int(1)?;
    wait_for(cx, args, 2, usize::try_from(wanted).unwrap_or(0), None)
}

/// WAITAOF numlocal numreplicas timeout
fn waitaof(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let out_of_range = Error::Static("ERR value is out of range, must be positive");
    let local = args.int(1)?;
    if !(0..=1).contains(&local) {
        return Err(Error::Static("ERR value is out of range, value must between 0 and 1"));
    }
    let replicas = usize::try_from(args.int(2)?).map_err(|_| out_of_range)?;
    if cx.instance.replication.is_replica() {
        return Err(Error::Static(
            "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local \
             and are not propagated.",
        ));
    }
    if local == 1 && !cx.instance.aof.is_on() {
        return Err(Error::Static("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."));
    }
    wait_for(cx, args, 3, replicas, Some(local == 1))
}

fn wait_for(cx: &mut Ctx<'_>, args: Args<'_>, at: usize, replicas: usize, on_disk: Option<bool>) -> Result {
    let timeout = args.int(at).map_err(|_| Error::Static("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Error::Static("ERR timeout is negative"))?;
    let offset = cx.client.shared.journal_offset.load(Relaxed);
    let copies = Copies { offset, replicas, on_disk };
    let is_answered = copies.answer(cx.instance, cx.reply, !cx.may_wait());
    if !is_answered && let Some(block) = cx.block(timeout, 0..0, false) {
        block.in_vain = InVain::Copies(copies);
    }
    Ok(())
}

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: Categories::CONNECTION, commands: &[
    cmd("wait",    3, wait,    Flags::NOSCRIPT, &[]).tips(&["request_policy:all_shards", "response_policy:agg_min"]),
    cmd("waitaof", 4, waitaof, Flags::NOSCRIPT, &[]).tips(&["request_policy:all_shards", "response_policy:agg_min"]),
] };
