//! TEMPORARY indexes: their end, and the commands of tests that look at it.

use std::sync::Arc;

use super::lookup::NO_INDEX;
use crate::command::{Args, Result};
use crate::exec::core::clock::{now_ms, steady_ms};
use crate::exec::core::{Call, Ctx, Worker};
use crate::exec::run::slow::call::send;
use crate::protocol::error::Error;
use crate::search::SearchIndex;

/// How long the end of an index may take until it is asked for again.
const AGAIN_MS: u64 = 60_000;

/// The periodic work.
pub(crate) fn look_after(worker: &Worker) {
    super::cluster::look_around(worker);
    end_idle(worker);
}

/// Removes indexes that were not used for long, with their documents. A replica leaves that to its primary, and counts from the moment at which it
/// becomes one.
fn end_idle(worker: &Worker) {
    let (instance, now) = (&worker.instance, steady_ms());
    if !instance.search.has_indexes() {
        return;
    }
    if instance.replication.is_replica() {
        return instance.search.touch_all(now);
    }
    if instance.holds_back(now_ms()) {
        return;
    }
    for name in instance.search.take_idle(now, now + AGAIN_MS) {
        let args = [b"FT.DROPINDEX".as_slice(), &name, b"DD"].into_iter().collect::<crate::command::OwnedArgs>();
        let Some(row) = instance.registry.lookup(b"FT.DROPINDEX") else { continue };
        tracing::debug!("the temporary index {} ends", crate::protocol::error::shown(&name));
        // The answer has no reader.
        drop(send(worker, &mut worker.unconnected_client(), Call { row, args: args.args() }));
    }
}

/// The temporary index that a call names, without being a use of it.
fn temporary(cx: &Ctx<'_>, args: Args<'_>) -> Result<Arc<SearchIndex>> {
    let index = cx.instance().search.index(args.at(2)).ok_or(Error::Static(NO_INDEX))?;
    if index.is_temporary() { Ok(index) } else { Err(Error::Static("Index is not temporary")) }
}

/// `FT.DEBUG TTL index`: seconds until the end of an index that nobody uses.
pub(super) fn time_left(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = temporary(cx, args)?;
    cx.reply.int((index.time_left(steady_ms()).unwrap_or(0) / 1000) as i64);
    Ok(())
}

/// `FT.DEBUG TTL_PAUSE index`: the index stays until it is used the next time.
pub(super) fn pause(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = temporary(cx, args)?;
    if index.time_left(steady_ms()).is_none() {
        return Err(Error::Static("Index does not have a timer"));
    }
    index.end_at(None);
    cx.reply.ok();
    Ok(())
}

/// `FT.DEBUG TTL_EXPIRE index`: the index ends at once.
pub(super) fn expire(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    temporary(cx, args)?.end_at(Some(steady_ms()));
    cx.reply.ok();
    Ok(())
}
