//! The index that a call names, with all changes in it as far as there is time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::query::Common;
use super::words;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::steady_ms;
use crate::exec::run::permission;
use crate::exec::search::catch_up;
use crate::protocol::error::{Error, echo};
use crate::search::SearchIndex;

/// The error of most commands for an index that there is not.
pub(super) const NO_INDEX: &str = "Unknown index name";

/// The same error as other commands have it.
pub(super) const UNKNOWN_INDEX: &str = "Unknown Index name";

/// The index that a call names.
///
/// # Errors
/// There is none, or the client must not read keys.
pub(super) fn index_for(cx: &Ctx<'_>, args: Args<'_>, unknown: &str) -> Result<Arc<SearchIndex>> {
    let index = cx.instance().search.index(args.at(1));
    let index = index.ok_or_else(|| absent(cx, args, unknown))?;
    permitted(cx, args)?;
    index.touch(steady_ms());
    Ok(index)
}

/// The error for an index that there is not; valkey-search has one text for all commands.
pub(super) fn absent(cx: &Ctx<'_>, args: Args<'_>, unknown: &str) -> Error {
    if !cx.config().level().is_valkey() {
        return Error::Message(unknown.to_owned());
    }
    Error::Message(format!("Index with name '{}' not found in database 0", echo(args.at(1), words::MAX_ECHO)))
}

/// [`index_for`] for a query, whose error names the index.
pub(super) fn queried(cx: &Ctx<'_>, args: Args<'_>) -> Result<Arc<SearchIndex>> {
    let index = found(cx, args)?;
    index.uses.fetch_add(1, Relaxed);
    Ok(index)
}

/// [`queried`] for a node's part of a query, which counts at the node that was asked.
pub(super) fn found(cx: &Ctx<'_>, args: Args<'_>) -> Result<Arc<SearchIndex>> {
    index_for(cx, args, &format!("{}: no such index", echo(args.at(1), words::MAX_ECHO)))
}

/// Refuses a client that must not read all keys: an index shows what they hold.
pub(super) fn permitted(cx: &Ctx<'_>, args: Args<'_>) -> Result {
    if permission::reads_all_keys(cx, args) {
        return Ok(());
    }
    if cx.config().level().is_valkey() {
        return Err(Error::Static("NOPERM The user does not have permission to access the key prefix"));
    }
    Err(Error::Static("NOPERM User does not have the required permissions to query the index"))
}

/// When a query's time is over.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Option<u64>);

impl Deadline {
    /// In so many milliseconds; 0: never.
    pub(super) fn after(ms: u64) -> Self {
        Self((ms > 0).then(|| steady_ms().saturating_add(ms)))
    }

    /// Over from the beginning: answered writes are indexed all the same, scans go on later.
    pub(super) fn over() -> Self {
        Self(Some(0))
    }

    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|at| steady_ms() >= at)
    }
}

/// Has all indexes show each change until now, as far as there is time.
pub(super) fn refresh(cx: &Ctx<'_>, deadline: Deadline) {
    catch_up(cx.instance(), cx.now(), &|| deadline.is_over());
}

/// Has all indexes show the documents that were written before the schema changes, as RediSearch has done already. Scans go on later. A file
/// brings no such documents.
pub(super) fn settle(cx: &Ctx<'_>) {
    if !cx.instance().search.is_restoring() {
        refresh(cx, Deadline::over());
    }
}

/// Has all indexes show each change until now, and returns the deadline of the query itself: the wait has as much time again.
pub(super) fn current(cx: &Ctx<'_>, common: &Common<'_>) -> Deadline {
    refresh(cx, common.deadline());
    common.deadline()
}

/// The default deadline of commands without TIMEOUT.
pub(super) fn default_deadline(cx: &Ctx<'_>) -> Deadline {
    Deadline::after(cx.instance().search.options.timeout_ms.load(Relaxed))
}
