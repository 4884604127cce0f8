//! WAIT: how many replicas have what this connection wrote. There are none.

use crate::command::{Args, Categories, Flags, Result};
use crate::commands::definition::{Family, cmd};
use crate::exec::{Ctx, InVain};
use crate::protocol::error::Error;

/// WAIT numreplicas timeout
fn wait(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let replicas = args.int(1)?;
    let timeout = args.int(2).map_err(|_| Error::Static("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Error::Static("ERR timeout is negative"))?;
    if replicas > 0 && cx.may_block {
        cx.block(timeout, 0..0, false);
        if let Some(block) = &mut cx.block {
            block.in_vain = InVain::Zero;
        }
    } else {
        cx.reply.int(0);
    }
    Ok(())
}

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: Categories::CONNECTION, commands: &[
    cmd("wait", 3, wait, Flags::NOSCRIPT, &[]).tips(&["request_policy:all_shards", "response_policy:agg_min"]),
] };
