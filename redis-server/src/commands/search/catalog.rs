//! FT._LIST, aliases, and FT.TAGVALS.

use super::{UNKNOWN_INDEX, default_deadline, index_for, refresh};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::search::CatalogError;

/// `FT._LIST`
pub(super) fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let indexes = cx.instance().search.indexes();
    cx.reply.set(indexes.len());
    indexes.iter().for_each(|index| cx.reply.bulk(index.name()));
    Ok(())
}

fn answer(cx: &mut Ctx<'_>, result: std::result::Result<(), CatalogError>) -> Result {
    result.map_err(|error| Error::Message(error.to_string()))?;
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// `FT.ALIASADD alias index`
pub(super) fn alias_add(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let result = cx.instance().search.add_alias(args.at(1), args.at(2), false);
    answer(cx, result)
}

/// `FT.ALIASUPDATE alias index`
pub(super) fn alias_update(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let result = cx.instance().search.add_alias(args.at(1), args.at(2), true);
    answer(cx, result)
}

/// `FT.ALIASDEL alias`
pub(super) fn alias_del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let result = cx.instance().search.remove_alias(args.at(1));
    answer(cx, result)
}

/// Entries and vectors of one step, after which queries may go on.
const STEP: u64 = 100_000;

/// `FT.DEBUG GC_FORCEINVOKE index [timeout]`: removes what documents that are gone have left in an index.
pub(super) fn compact(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args.from(1), UNKNOWN_INDEX)?;
    refresh(cx, default_deadline(cx));
    while index.engine_mut().compact(STEP) {}
    cx.reply.simple("DONE");
    Ok(())
}

/// `FT.TAGVALS index field`
pub(super) fn tag_values(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, UNKNOWN_INDEX)?;
    refresh(cx, default_deadline(cx));
    let engine = index.engine();
    let field = engine.schema().find(args.at(2)).ok_or(Error::Static("No such field"))?;
    let values: Vec<&[u8]> = engine.tag_values(field).ok_or(Error::Static("Not a tag field"))?.collect();
    cx.reply.set(values.len());
    values.iter().for_each(|value| cx.reply.bulk(value));
    Ok(())
}
