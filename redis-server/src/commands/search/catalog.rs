//! FT._LIST, aliases, and FT.TAGVALS.

use std::collections::BTreeSet;

use super::gathered;
use super::lookup::{UNKNOWN_INDEX, default_deadline, index_for, refresh};
use super::wire::{Reader, Writer};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::steady_ms;
use crate::protocol::error::Error;
use crate::search::CatalogError;

/// `FT._LIST`
pub(super) fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let indexes = cx.instance().search.indexes();
    cx.reply.set(indexes.len());
    indexes.iter().for_each(|index| cx.reply.bulk(index.name()));
    Ok(())
}

/// Answers a change of aliases, which is a use of the index `name`.
fn answer(cx: &mut Ctx<'_>, name: Option<&[u8]>, result: std::result::Result<(), CatalogError>) -> Result {
    result.map_err(|error| Error::Message(error.to_string()))?;
    let index = name.and_then(|name| cx.instance().search.index(name));
    index.iter().for_each(|index| index.touch(steady_ms()));
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// `FT.ALIASADD alias index`
pub(super) fn alias_add(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let result = cx.instance().search.add_alias(args.at(1), args.at(2), false);
    answer(cx, Some(args.at(2)), result)
}

/// `FT.ALIASUPDATE alias index`
pub(super) fn alias_update(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let result = cx.instance().search.add_alias(args.at(1), args.at(2), true);
    answer(cx, Some(args.at(2)), result)
}

/// `FT.ALIASDEL alias`
pub(super) fn alias_del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let result = cx.instance().search.remove_alias(args.at(1));
    answer(cx, None, result)
}

/// Entries and vectors of one step, after which queries may go on.
const STEP: u64 = 100_000;

/// `FT.DEBUG GC_FORCEINVOKE index [timeout]`: removes what documents that are gone have left in an index.
pub(super) fn compact(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args.from(1), UNKNOWN_INDEX)?;
    refresh(cx, default_deadline(cx));
    // A round that was under way leaves what has gone since it began.
    while index.with_engine(|engine| engine.compact(STEP) || engine.uncompacted() > 0) {}
    cx.reply.simple("DONE");
    Ok(())
}

/// `FT.DEBUG DUMP_GEOMIDX index field`: how many shapes a field has.
pub(super) fn shapes(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args.from(1), UNKNOWN_INDEX)?;
    refresh(cx, default_deadline(cx));
    let engine = index.engine();
    let count = engine.schema().find(args.at(3)).and_then(|field| engine.shape_count(field));
    let count = count.ok_or(Error::Static("Could not find given field in index spec"))?;
    cx.reply.array(4);
    cx.reply.bulk(b"type");
    cx.reply.bulk(b"cells");
    cx.reply.bulk(b"num_docs");
    cx.reply.count(count);
    Ok(())
}

/// `FT.TAGVALS index field`
pub(super) fn tag_values(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let values: BTreeSet<Box<[u8]>> = match gathered::all_parts(cx, args)? {
        None => tags(cx, args)?.into_iter().collect(),
        Some(parts) => {
            let mut values = BTreeSet::new();
            for part in &parts {
                values.extend(Reader::new(part).list(|reader| Ok(Box::from(reader.text()?)))?);
            }
            values
        }
    };
    cx.reply.set(values.len());
    values.iter().for_each(|value| cx.reply.bulk(value));
    Ok(())
}

/// This node's part of FT.TAGVALS.
pub(super) fn tag_part(cx: &Ctx<'_>, args: Args<'_>, writer: &mut Writer) -> Result {
    writer.list(&tags(cx, args)?, |writer, value| writer.text(value));
    Ok(())
}

/// The values of a tag field.
fn tags(cx: &Ctx<'_>, args: Args<'_>) -> Result<Vec<Box<[u8]>>> {
    let index = index_for(cx, args, UNKNOWN_INDEX)?;
    refresh(cx, default_deadline(cx));
    let engine = index.engine();
    let field = engine.schema().find(args.at(2)).ok_or(Error::Static("No such field"))?;
    let values = engine.tag_values(field).ok_or(Error::Static("Not a tag field"))?;
    Ok(values.map(Box::from).collect())
}
