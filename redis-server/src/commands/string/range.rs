//! Parts of strings.

use std::ops::Range;

use super::{check_len, new_string};
use crate::command::{Args, Result, weight};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{StrRef, View};
use crate::protocol::error::Error;

/// The work of APPEND.
pub(super) fn append_weight(view: &View<'_>, args: Args<'_>) -> usize {
    let tail = args.at(2).len();
    // A missing key takes a large value over as it is.
    weight::filling(view, args, |old| (old > 0).then_some((old + tail) as u64))
}

/// APPEND key value
pub(super) fn append(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let tail = args.at(2);
    let instance = cx.instance();
    let len = match cx.db.string_mut(key)? {
        Some(entry) => {
            let old = entry.string().map_or(0, StrRef::len);
            check_len(instance, old as u64 + tail.len() as u64)?;
            entry.append(tail).ok_or(Error::WrongType)?
        }
        None => {
            cx.db.set(key, new_string(args, 2), None);
            tail.len()
        }
    };
    cx.changed(key, Event::APPEND);
    cx.reply.count(len);
    Ok(())
}

/// The work of SETRANGE.
pub(super) fn setrange_weight(view: &View<'_>, args: Args<'_>) -> usize {
    let len = || u64::try_from(args.int(2).ok()?).ok()?.checked_add(args.at(3).len() as u64);
    let is_nothing = args.at(3).is_empty();
    weight::filling(view, args, |_| if is_nothing { None } else { len() })
}

/// SETRANGE key offset value
pub(super) fn setrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let value = args.at(3);
    let offset = u64::try_from(args.int(2)?).map_err(|_| Error::Static("ERR offset is out of range"))?;
    let instance = cx.instance();
    let found = cx.db.string_mut(key)?;
    let old = found.as_ref().and_then(|entry| entry.string()).map_or(0, StrRef::len);
    if value.is_empty() {
        cx.reply.count(old);
        return Ok(());
    }
    check_len(instance, offset.saturating_add(value.len() as u64))?;
    let range = offset as usize..offset as usize + value.len();
    let len = range.end.max(old);
    match found {
        Some(entry) => entry.bytes_mut(len).ok_or(Error::WrongType)?[range].copy_from_slice(value),
        None => cx.db.write_string(key, len, |bytes| bytes[range].copy_from_slice(value))?.0,
    }
    cx.changed(key, Event::SETRANGE);
    cx.reply.count(len);
    Ok(())
}

/// GETRANGE key start end, SUBSTR key start end
pub(super) fn getrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (start, end) = (args.int(2)?, args.int(3)?);
    match cx.db.string(args.key(0))? {
        None => cx.reply.bulk(b""),
        Some(value @ (StrRef::Shared(_) | StrRef::Buffer(_))) => {
            cx.reply.blob(&value.share().slice(clamp(start, end, value.len())));
        }
        Some(value) => value.with(|bytes| cx.reply.bulk(&bytes[clamp(start, end, bytes.len())])),
    }
    Ok(())
}

/// The part from `start` to `end`, both included, negative ones counted from the end, of a string of `len` bytes.
fn clamp(start: i64, end: i64, len: usize) -> Range<usize> {
    // Both before the beginning would become 0, the first byte.
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let from_start =
        |at: i64| if at < 0 { at.saturating_add_unsigned(len as u64).max(0) as usize } else { at as usize };
    let start = from_start(start);
    let end = from_start(end).saturating_add(1).min(len);
    if start < end { start..end } else { 0..0 }
}
