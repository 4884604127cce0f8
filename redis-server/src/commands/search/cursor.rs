//! FT.CURSOR: the rows of an aggregation in pieces.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Datum, Rows};

use super::lookup::{NO_INDEX, index_for};
use super::pipeline::CursorOptions;
use super::words::Words;
use super::{expand, show};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::steady_ms;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::search::Cursor;

/// Answers with the first rows, and keeps the others.
pub(super) fn begin(
    cx: &mut Ctx<'_>,
    index: &[u8],
    options: &CursorOptions,
    (mut rows, json): (Rows, Option<Box<[bool]>>),
) -> Result {
    let longest = cx.instance().search.options.cursor_idle_ms.load(Relaxed);
    let idle_ms = options.idle_ms.map_or(longest, |idle| idle.min(longest));
    let random = cx.random();
    cx.instance().search.with_cursors(|cursors| cursors.expire(steady_ms()));
    cx.reply.array(2);
    // As in RediSearch, a cursor ends with a piece that is not full.
    if show_expanded(cx.reply, &mut rows, options.count, json.as_deref()) < options.count {
        cx.reply.int(0);
        return Ok(());
    }
    let (index, count, used_at) = (index.into(), options.count, steady_ms());
    let cursor = Cursor { index, rows: Some(rows), json, count, idle_ms, used_at };
    let number = cx.instance().search.with_cursors(|cursors| cursors.add(|| random.number(), cursor));
    let number = number.ok_or(Error::Static("Too many cursors allocated for index"))?;
    cx.reply.int(number as i64);
    Ok(())
}

/// Writes the next rows and returns their number; `entries` more follow in the map of RESP3.
pub(super) fn show_rows(reply: &mut Reply, rows: &mut Rows, count: usize, entries: usize) -> usize {
    show(reply, rows, count, (entries, None))
}

/// [`show_rows`]; for FORMAT EXPAND, `json` says which columns show JSON.
pub(super) fn show_expanded(reply: &mut Reply, rows: &mut Rows, count: usize, json: Option<&[bool]>) -> usize {
    show(reply, rows, count, (0, json))
}

fn show(reply: &mut Reply, rows: &mut Rows, count: usize, (entries, json): (usize, Option<&[bool]>)) -> usize {
    let total = rows.total();
    let piece = rows.read(count);
    let is_map = reply.is_resp3();
    if is_map {
        show::begin_map(reply, total, (piece.len(), json.is_some()), entries);
    } else {
        reply.array(1 + piece.len());
        reply.int(total as i64);
    }
    for values in &piece {
        if is_map {
            reply.map(2);
            reply.simple("extra_attributes");
        }
        properties(reply, rows.columns(), values, json);
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

/// Writes the properties that a row has.
pub(super) fn properties(reply: &mut Reply, columns: &[String], values: &[Option<Datum>], json: Option<&[bool]>) {
    let columns = columns.iter().zip(values).enumerate();
    let given = columns.filter_map(|(at, (name, value))| Some((at, name, value.as_ref()?)));
    reply.map(given.clone().count());
    for (at, name, value) in given {
        reply.bulk(name.as_bytes());
        match json {
            Some(json) => expand::datum(reply, value, json.get(at).copied().unwrap_or(false)),
            None => datum(reply, value),
        }
    }
}

/// Writes the answer of rows whose content is not wanted.
pub(super) fn show_nothing(reply: &mut Reply, rows: &Rows) {
    let total = rows.total();
    if !reply.is_resp3() {
        reply.array(1);
        reply.int(total as i64);
        return;
    }
    show::begin_map(reply, total, (rows.left(), false), 0);
    for _ in 0..rows.left() {
        reply.map(1);
        reply.simple("values");
        reply.array(0);
    }
    let failure = rows.failure().map(ToString::to_string);
    show::end_map(reply, rows.is_partial(), failure.as_deref());
}

fn datum(reply: &mut Reply, value: &Datum) {
    match value {
        Datum::Null => reply.null(),
        Datum::List(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| datum(reply, item));
        }
        Datum::Number(_) | Datum::Text(_) | Datum::Shown(..) => reply.bulk(&value.bytes()),
    }
}

fn number(args: Args<'_>) -> Result<u64> {
    args.int(3).ok().and_then(|number| u64::try_from(number).ok()).ok_or(Error::Static("Bad cursor ID"))
}

/// `FT.CURSOR READ index cursor [COUNT rows]`
pub(super) fn read(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let number = number(args)?;
    // A cursor outlives its index, to tell that it is gone.
    let index = match index_for(cx, args.from(1), NO_INDEX) {
        Ok(index) => index.name().to_vec(),
        Err(_) if cx.instance().search.index(args.at(2)).is_none() => args.at(2).to_vec(),
        Err(error) => return Err(error),
    };
    let mut words = Words::new(args, 4);
    let count: Option<usize> = if words.take("COUNT") { Some(words.number("COUNT")?) } else { None };
    if !words.is_empty() {
        return Err(Error::Message(format!("Unknown argument `{}`", words.shown())));
    }
    let taken = cx.instance().search.with_cursors(|cursors| {
        cursors.expire(steady_ms());
        let cursor = cursors.take(number)?;
        if *cursor.index == *index {
            return Some(cursor);
        }
        cursors.put_back(number, cursor);
        None
    });
    let Some(mut cursor) = taken else {
        index_for(cx, args.from(1), NO_INDEX)?;
        return Err(Error::Static("Cursor not found"));
    };
    let Some(rows) = &mut cursor.rows else {
        return Err(Error::Static("The index was dropped while the cursor was idle"));
    };
    cx.reply.array(2);
    let count = count.filter(|count| *count > 0).unwrap_or(cursor.count);
    if show_expanded(cx.reply, rows, count, cursor.json.as_deref()) < count {
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
