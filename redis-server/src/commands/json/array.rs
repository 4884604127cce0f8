//! Commands on arrays.

use super::args::{MAX_TEXT, TOO_LONG, answer, change, integer, no_path, path, refused, value, values};
use super::look::wrong_type;
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::json::{Edits, Kind, Node};

const ARRAY: &str = "an array";

/// Elements of a value that is an array.
fn len(value: Node<'_>) -> Option<usize> {
    match value.kind() {
        Kind::Array(elements) => Some(elements.len()),
        _ => None,
    }
}

/// An index within an array, counted from the end if it is negative, and limited to the array's ends.
fn place(index: i64, len: usize) -> usize {
    let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    if index < 0 { len.saturating_sub(distance) } else { distance.min(len) }
}

/// `JSON.ARRAPPEND key path value [value …]`
pub(super) fn arrappend(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let values = values(args, 3)?;
    let results = change(cx, args, &path, Event::JSON_ARRAPPEND, |edits, index| {
        let Some(len) = len(edits.value(index)) else { return Ok(None) };
        edits.insert(index, len, &values).map_err(refused)?;
        Ok(Some(len + values.len()))
    })?;
    answer(cx.reply, &path, ARRAY, results, Reply::count)
}

/// `JSON.ARRINSERT key path index value [value …]`
pub(super) fn arrinsert(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let before = integer(args, 3, "index")?;
    let values = values(args, 4)?;
    let results = change(cx, args, &path, Event::JSON_ARRINSERT, |edits, index| {
        let Some(len) = len(edits.value(index)) else { return Ok(None) };
        if !(-(len as i64)..=len as i64).contains(&before) {
            return Err(Error::Static("ERR index out of bounds"));
        }
        edits.insert(index, place(before, len), &values).map_err(refused)?;
        Ok(Some(len + values.len()))
    })?;
    answer(cx.reply, &path, ARRAY, results, Reply::count)
}

/// `JSON.ARRPOP key [path [index]]`
pub(super) fn arrpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 4 {
        return Err(Error::WrongArity("json.arrpop".into()));
    }
    let path = path(args, 2)?;
    // As in RedisJSON, what is no integer is the last element, too.
    let index = if args.len() == 4 { args.int(3).unwrap_or(-1) } else { -1 };
    let mut total = 0;
    let pop = |edits: &mut Edits<'_>, at: usize| {
        let Kind::Array(mut elements) = edits.value(at).kind() else { return Ok(None) };
        let place = place(index, elements.len()).min(elements.len().saturating_sub(1));
        let Some(element) = elements.nth(place) else { return Ok(Some(None)) };
        let text = element.to_text();
        total += text.len();
        if total > MAX_TEXT {
            return Err(TOO_LONG);
        }
        edits.remove_element(at, place);
        Ok(Some(Some(text)))
    };
    let results = change(cx, args, &path, Event::JSON_ARRPOP, pop)?;
    answer(cx.reply, &path, ARRAY, results, |reply, text| match text {
        Some(text) => reply.bulk(text.as_bytes()),
        None => reply.null(),
    })
}

/// JSON.ARRTRIM key path start stop
pub(super) fn arrtrim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let (start, stop) = (integer(args, 3, "start")?, integer(args, 4, "stop")?);
    let results = change(cx, args, &path, Event::JSON_ARRTRIM, |edits, index| {
        let Some(len) = len(edits.value(index)) else { return Ok(None) };
        // Behind the last element that stays; a stop in front of the first is the first, as in RedisJSON.
        let end = (place(stop, len) + 1).min(len);
        let start = place(start, len);
        let kept = start..end.max(start);
        let left = kept.len();
        if left < len {
            edits.keep(index, kept);
        }
        Ok(Some(left))
    })?;
    answer(cx.reply, &path, ARRAY, results, Reply::count)
}

/// `JSON.ARRINDEX key path value [start [stop]]`
pub(super) fn arrindex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 6 {
        return Err(Error::WrongArity("json.arrindex".into()));
    }
    let path = path(args, 2)?;
    let wanted = value(args, 3)?;
    let bound = |at: usize, name| args.get(at).map_or(Ok(0), |_| integer(args, at, name));
    let (start, stop) = (bound(4, "start")?, bound(5, "stop")?);
    let Some(json) = cx.db.json(args.key(0))? else { return Err(no_path(path.text())) };
    let find = |array: Node<'_>| {
        let Kind::Array(elements) = array.kind() else { return None };
        let len = elements.len();
        let start = place(start, len).min(len.saturating_sub(1));
        let stop = if stop == 0 { len } else { place(stop, len) };
        // Up to the one before the stop; 0 is the end.
        let found = elements.take(stop).enumerate().skip(start).find(|(_, element)| *element == wanted.root());
        Some(found.map_or(-1, |(at, _)| at as i64))
    };
    let mut found = json.find(&path).map_err(refused)?;
    if path.is_legacy() {
        let array = found.next().ok_or_else(|| no_path(path.text()))?;
        cx.reply.int(find(array).ok_or_else(|| wrong_type("array", array))?);
        return Ok(());
    }
    cx.reply.array(found.len());
    for array in found {
        match find(array) {
            Some(at) => cx.reply.int(at),
            None => cx.reply.null(),
        }
    }
    Ok(())
}
