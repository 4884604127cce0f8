//! CLIENT: what a connection is called, and who it is.

use super::hello;
use crate::command::{Args, Ctx, Result};

/// CLIENT ID
pub(super) fn id(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.int(cx.client.shared.id as i64);
    Ok(())
}

/// CLIENT GETNAME
pub(super) fn getname(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let labels = cx.client.shared.labels();
    if labels.name.is_empty() {
        cx.reply.null();
    } else {
        cx.reply.bulk(labels.name.as_bytes());
    }
    Ok(())
}

/// CLIENT SETNAME connection-name
pub(super) fn setname(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    hello::set_name(cx, args.at(2))?;
    cx.reply.ok();
    Ok(())
}
