//! WAIT: how many replicas have what this connection wrote.

use std::sync::atomic::Ordering::Relaxed;

use crate::command::{Args, Categories, Flags, Result};
use crate::commands::definition::{Family, cmd};
use crate::exec::{Ctx, InVain};
use crate::protocol::error::Error;

/// WAIT numreplicas timeout
fn wait(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let wanted = args.int(1)?;
    let timeout = args.int(2).map_err(|_| Error::Static("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Error::Static("ERR timeout is negative"))?;
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let offset = cx.client.shared.journal_offset.load(Relaxed);
    let count = cx.instance().replication.acknowledged(offset);
    if count < wanted && cx.may_wait() {
        if let Some(block) = cx.block(timeout, 0..0, false) {
            block.in_vain = InVain::Replicas { offset, wanted };
        }
    } else {
        cx.reply.int(count as i64);
    }
    Ok(())
}

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: Categories::CONNECTION, commands: &[
    cmd("wait", 3, wait, Flags::NOSCRIPT, &[]).tips(&["request_policy:all_shards", "response_policy:agg_min"]),
] };
