//! The parts of a call that other nodes of a cluster have done, for its handler.

use super::query::TIME_IS_OVER;
use super::scope::is_local;
use crate::clients::client::Part;
use crate::command::{Args, Result};
use crate::exec::core::{Ctx, Handler};
use crate::exec::search::definitions;
use crate::exec::search::shards;
use crate::protocol::error::Error;

/// The parts of all nodes; `None` if this node answers alone.
///
/// # Errors
/// A node has failed to do its part. Or nobody was asked, as the call must not wait: it is one of a transaction or a script.
pub(super) fn parts(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<Option<Vec<Vec<u8>>>> {
    match std::mem::take(&mut cx.client.part) {
        Part::Gathered(parts) => parts.map(Some),
        Part::Own => {
            cx.client.part = Part::Own;
            Ok(None)
        }
        Part::Whole => {
            let instance = cx.instance();
            let is_alone = cx.is_told_by_others() || instance.search.is_restoring() || !instance.cluster.has_others();
            let name = String::from_utf8_lossy(args.at(0)).into_owned();
            let is_local = cx.config().level().is_valkey() && is_local(&name.to_ascii_lowercase(), args);
            if is_alone || is_local {
                Ok(None)
            } else {
                Err(Error::Message(format!("Cannot perform `{name}`: Cannot block")))
            }
        }
    }
}

/// [`parts`] of an answer that cannot be partial.
///
/// # Errors
/// As [`parts`], or a node is late.
pub(super) fn all_parts(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<Option<Vec<Vec<u8>>>> {
    let parts = parts(cx, args)?;
    let is_late = parts.iter().flatten().any(Vec::is_empty);
    if is_late { Err(TIME_IS_OVER) } else { Ok(parts) }
}

/// Runs a call that changes definitions, unless the leader of the cluster has done so.
pub(super) fn changed(cx: &mut Ctx<'_>, args: Args<'_>, change: Handler) -> Result {
    if let Some(replies) = parts(cx, args)? {
        return relay(cx, &replies);
    }
    change(cx, args)?;
    let instance = cx.instance();
    let is_told = cx.is_told_by_others() || instance.search.is_restoring();
    if instance.cluster.is_enabled() && matches!(cx.client.part, Part::Whole) && !is_told {
        definitions::count(instance);
    }
    Ok(())
}

/// Answers with another node's reply.
fn relay(cx: &mut Ctx<'_>, replies: &[Vec<u8>]) -> Result {
    match replies.first() {
        Some(reply) if reply.starts_with(b"-") => Err(shards::refusal(reply.trim_ascii_end())),
        Some(reply) => {
            cx.reply.raw(reply);
            Ok(())
        }
        None => {
            cx.reply.ok();
            Ok(())
        }
    }
}
