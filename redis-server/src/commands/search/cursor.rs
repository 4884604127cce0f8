//! FT.CURSOR: the rows of an aggregation in pieces.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Datum, Rows};

use super::pipeline::CursorOptions;
use super::show;
use super::words::Words;
use super::{NO_INDEX, index_for};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::steady_ms;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::search::Cursor;

/// Answers with the first rows, and keeps the others.
pub(super) fn begin(cx: &mut Ctx<'_>, index: &[u8], options: &CursorOptions, rows: Rows) -> Result {
    let longest = cx.instance().search.options.cursor_idle_ms.load(Relaxed);
    let idle_ms = options.idle_ms.map_or(longest, |idle| idle.min(longest));
    let mut cursor = Cursor { index: index.into(), rows, count: options.count, idle_ms, used_at: steady_ms() };
    let random = cx.random();
    cx.instance().search.with_cursors(|cursors| cursors.expire(steady_ms()));
    cx.reply.array(2);
    // As in RediSearch, a cursor ends with a piece that is not full.
    if show_rows(cx.reply, &mut cursor.rows, cursor.count, 0) < cursor.count {
        cx.reply.int(0);
        return Ok(());
    }
    let number = cx.instance().search.with_cursors(|cursors| cursors.add(|| random.number(), cursor));
    let number = number.ok_or(Error::Static("Too many cursors allocated for index"))?;
    cx.reply.int(number as i64);
    Ok(())
}

/// Writes the next rows and returns their number; `entries` more follow in the map of RESP3.
pub(super) fn show_rows(reply: &mut Reply, rows: &mut Rows, count: usize, entries: usize) -> usize {
    let total = rows.total();
    let piece = rows.read(count);
    let is_map = reply.is_resp3();
    if is_map {
        show::begin_map(reply, total, piece.len(), entries);
    } else {
        reply.array(1 + piece.len());
        reply.int(total as i64);
    }
    for values in &piece {
        if is_map {
            reply.map(2);
            reply.simple("extra_attributes");
        }
        let given = rows.columns().iter().zip(values).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        reply.map(given.clone().count());
        for (name, value) in given {
            reply.bulk(name.as_bytes());
            datum(reply, value);
        }
        if is_map {
            reply.simple("values");
            reply.array(0);
        }
    }
    if is_map {
        let failure = rows.failure().map(ToString::to_string);
        show::end_map(reply, rows.is_partial(), failure.as_deref());
    }
    piece.len()
}

fn datum(reply: &mut Reply, value: &Datum) {
    match value {
        Datum::Null => reply.null(),
        Datum::List(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| datum(reply, item));
        }
        Datum::Number(_) | Datum::Text(_) => reply.bulk(&value.bytes()),
    }
}

fn number(args: Args<'_>) -> Result<u64> {
    args.int(3).ok().and_then(|number| u64::try_from(number).ok()).ok_or(Error::Static("Bad cursor ID"))
}

/// `FT.CURSOR READ index cursor [COUNT rows]`
pub(super) fn read(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let number = number(args)?;
    let index = index_for(cx, args.from(1), NO_INDEX)?;
    let mut words = Words::new(args, 4);
    let count: Option<usize> = if words.take("COUNT") { Some(words.number("COUNT")?) } else { None };
    if !words.is_empty() {
        return Err(Error::Message(format!("Unknown argument `{}`", words.shown())));
    }
    let taken = cx.instance().search.with_cursors(|cursors| {
        cursors.expire(steady_ms());
        let cursor = cursors.take(number)?;
        if *cursor.index == *index.name() {
            return Some(cursor);
        }
        cursors.put_back(number, cursor);
        None
    });
    let mut cursor = taken.ok_or(Error::Static("Cursor not found"))?;
    cx.reply.array(2);
    let count = count.filter(|count| *count > 0).unwrap_or(cursor.count);
    if show_rows(cx.reply, &mut cursor.rows, count, 0) < count {
        cx.reply.int(0);
        return Ok(());
    }
    cursor.used_at = steady_ms();
    cx.instance().search.with_cursors(|cursors| cursors.put_back(number, cursor));
    cx.reply.int(number as i64);
    Ok(())
}

/// `FT.CURSOR DEL index cursor`
pub(super) fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let number = number(args)?;
    let taken = cx.instance().search.with_cursors(|cursors| cursors.take(number));
    taken.ok_or(Error::Static("Cursor does not exist"))?;
    cx.reply.ok();
    Ok(())
}

/// `FT.CURSOR GC`: closes cursors that were not used for long.
pub(super) fn gc(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let closed = cx.instance().search.with_cursors(|cursors| {
        let before = cursors.len();
        cursors.expire(steady_ms());
        before - cursors.len()
    });
    cx.reply.count(closed);
    Ok(())
}
