//! Commands that tell of values without their text: types, lengths, names, RESP, memory.

use super::args::{NO_DOCUMENT, check_len, no_path, path, refused};
use crate::command::{Args, Result};
use crate::commands::help::help;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::json::{Kind, Node, Number};

/// Tells of what a path leads to: `look` gives what is answered for a value, if it is of the kind that is `expected`.
/// Where a legacy path leads nowhere, the answer is an error, or null if that `may_miss`.
fn tell<T>(
    cx: &mut Ctx<'_>,
    args: Args<'_>,
    (expected, may_miss): (&str, bool),
    look: impl Fn(Node<'_>) -> Option<T>,
    write: impl Fn(&mut Reply, T),
) -> Result {
    let path = path(args, 2)?;
    let reply = &mut *cx.reply;
    let Some(json) = cx.db.json(args.key(0))? else {
        if !path.is_legacy() {
            return Err(NO_DOCUMENT);
        }
        reply.null();
        return Ok(());
    };
    let mut found = json.find(&path).map_err(refused)?;
    if path.is_legacy() {
        let Some(value) = found.next() else {
            if !may_miss {
                return Err(no_path(path.text()));
            }
            reply.null();
            return Ok(());
        };
        write(reply, look(value).ok_or_else(|| wrong_type(expected, value))?);
        return Ok(());
    }
    let before = reply.len();
    reply.array(found.len());
    for value in found {
        match look(value) {
            Some(told) => write(reply, told),
            None => reply.null(),
        }
        check_len(reply, before)?;
    }
    Ok(())
}

/// A legacy path leads to a value of another type.
pub(super) fn wrong_type(expected: &str, found: Node<'_>) -> Error {
    let found = found.type_name();
    Error::Message(format!("WRONGTYPE wrong type of path value - expected {expected} but found {found}"))
}

/// `JSON.STRLEN key [path]`
pub(super) fn strlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = |value: Node<'_>| match value.kind() {
        Kind::String(text) => Some(text.len()),
        _ => None,
    };
    tell(cx, args, ("string", false), len, Reply::count)
}

/// `JSON.ARRLEN key [path]`
pub(super) fn arrlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = |value: Node<'_>| match value.kind() {
        Kind::Array(elements) => Some(elements.len()),
        _ => None,
    };
    tell(cx, args, ("array", false), len, Reply::count)
}

/// `JSON.OBJLEN key [path]`
pub(super) fn objlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = |value: Node<'_>| match value.kind() {
        Kind::Object(members) => Some(members.len()),
        _ => None,
    };
    tell(cx, args, ("object", true), len, Reply::count)
}

/// `JSON.OBJKEYS key [path]`
pub(super) fn objkeys(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let members = |value: Node<'_>| match value.kind() {
        Kind::Object(members) => Some(members.map(|(name, _)| name.to_vec()).collect::<Vec<_>>()),
        _ => None,
    };
    tell(cx, args, ("object", true), members, |reply, names| {
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
    })
}

/// `JSON.TYPE key [path]`; in RESP3 the answer stands in a list of its own.
pub(super) fn type_of(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let json = cx.db.json(args.key(0))?;
    if cx.reply.is_resp3() {
        cx.reply.array(1);
    }
    let Some(json) = json else {
        cx.reply.null();
        return Ok(());
    };
    let mut found = json.find(&path).map_err(refused)?;
    if path.is_legacy() {
        match found.next() {
            Some(value) => cx.reply.bulk(value.type_name().as_bytes()),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    cx.reply.array(found.len());
    found.for_each(|value| cx.reply.bulk(value.type_name().as_bytes()));
    Ok(())
}

/// `JSON.RESP key [path]`
pub(super) fn resp(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let Some(json) = cx.db.json(args.key(0))? else {
        cx.reply.null();
        return Ok(());
    };
    let mut found = json.find(&path).map_err(refused)?;
    if path.is_legacy() {
        let value = found.next().ok_or_else(|| no_path(path.text()))?;
        write(cx.reply, value);
        return Ok(());
    }
    let before = cx.reply.len();
    cx.reply.array(found.len());
    for value in found {
        write(cx.reply, value);
        check_len(cx.reply, before)?;
    }
    Ok(())
}

/// A value in RESP: containers begin with their bracket. Recurses as deep as documents are.
fn write(reply: &mut Reply, value: Node<'_>) {
    match value.kind() {
        Kind::Null => reply.null(),
        Kind::Bool(value) => reply.simple(if value { "true" } else { "false" }),
        Kind::Number(Number::Int(int)) => reply.int(int),
        Kind::Number(number) => reply.double(number.to_f64()),
        Kind::String(text) => reply.bulk(text),
        Kind::Array(elements) => {
            reply.array(1 + elements.len());
            reply.simple("[");
            elements.for_each(|element| write(reply, element));
        }
        Kind::Object(members) => {
            reply.array(1 + 2 * members.len());
            reply.simple("{");
            for (name, value) in members {
                reply.bulk(name);
                write(reply, value);
            }
        }
    }
}

/// `JSON.DEBUG MEMORY key [path]`
pub(super) fn debug_memory(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 3)?;
    let Some(json) = cx.db.json(args.key(0))? else {
        if path.is_legacy() {
            cx.reply.int(0)
        } else {
            cx.reply.array(0)
        }
        return Ok(());
    };
    let memory = |value: Node<'_>| if path.is_root() { json.memory() } else { value.raw().len() };
    let mut found = json.find(&path).map_err(refused)?;
    if path.is_legacy() {
        let value = found.next().ok_or_else(|| no_path(path.text()))?;
        cx.reply.count(memory(value));
        return Ok(());
    }
    cx.reply.array(found.len());
    found.for_each(|value| cx.reply.count(memory(value)));
    Ok(())
}

/// JSON.DEBUG HELP
pub(super) fn debug_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(cx, "JSON.DEBUG", &["MEMORY <key> [<path>]", "    Return the bytes that a value takes."]);
    Ok(())
}
