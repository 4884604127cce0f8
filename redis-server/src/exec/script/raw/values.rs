//! Values on Lua's stack from replies, and replies from them.

use std::ffi::{CStr, c_int};

use mlua::ffi::*;

use super::{Request, failure, push_bytes, push_error, push_field, raise, text};
use crate::exec::script::call;
use crate::protocol::error::shown;

/// Longest reply of a script: a table that holds itself many times over would fill the memory.
const MAX_REPLY: usize = 512 * 1024 * 1024;

/// Writes the value at the top of the stack as a reply, and pops it.
pub(super) unsafe fn push_reply(state: *mut lua_State, request: &mut Request<'_>) {
    // SAFETY: `lua_checkstack` makes sure of the room for what is pushed on this level; raw look-ups call nothing.
    unsafe {
        if lua_checkstack(state, 8) == 0 {
            request.reply.error(&"ERR reached lua stack limit");
            return lua_pop(state, 1);
        }
        if request.reply.len() > MAX_REPLY {
            request.reply.error(&"ERR the reply of the script is too long");
            return lua_pop(state, 1);
        }
        match lua_type(state, -1) {
            LUA_TSTRING => request.reply.bulk(text(state, -1).unwrap_or_default()),
            LUA_TBOOLEAN => {
                let value = lua_toboolean(state, -1) != 0;
                match call::with(|running| running.is_some_and(|running| running.is_resp3())) {
                    true => request.reply.boolean(value),
                    false if value => request.reply.int(1),
                    false => request.reply.null(),
                }
            }
            LUA_TNUMBER => request.reply.int(truncated(lua_tonumber(state, -1))),
            LUA_TTABLE => push_table_reply(state, request),
            _ => request.reply.null(),
        }
        lua_pop(state, 1);
    }
}

/// A double without its fraction, as C converts it on x86-64.
fn truncated(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// Writes the table at the top of the stack, and leaves it there.
unsafe fn push_table_reply(state: *mut lua_State, request: &mut Request<'_>) {
    // SAFETY: as in `push_reply`, which has made room for eight values.
    unsafe {
        for (name, kind) in FORMS {
            push_field(state, name);
            let written = lua_type(state, -1) == kind && push_form(state, request, name);
            lua_pop(state, 1);
            if written {
                return;
            }
        }
        let mark = request.reply.mark();
        let mut len = 0;
        loop {
            lua_rawgeti(state, -1, (len + 1) as _);
            if lua_type(state, -1) == LUA_TNIL {
                lua_pop(state, 1);
                break;
            }
            push_reply(state, request);
            len += 1;
        }
        request.reply.array_at(mark, len);
    }
}

/// Fields that make another reply of a table than an array, in the order in which they are looked for, with their types.
const FORMS: [(&CStr, c_int); 7] = [
    (c"err", LUA_TSTRING),
    (c"ok", LUA_TSTRING),
    (c"double", LUA_TNUMBER),
    (c"big_number", LUA_TSTRING),
    (c"verbatim_string", LUA_TTABLE),
    (c"map", LUA_TTABLE),
    (c"set", LUA_TTABLE),
];

/// Writes the form `name` whose field is at the top of the stack, above its table; false if it is none after all.
unsafe fn push_form(state: *mut lua_State, request: &mut Request<'_>, name: &CStr) -> bool {
    // SAFETY: as in `push_reply`.
    unsafe {
        let bytes = text(state, -1).unwrap_or_default();
        match name.to_bytes() {
            b"err" => {
                lua_pushvalue(state, -2);
                let failure = failure(state);
                lua_pop(state, 1);
                request.reply.error(&shown(&failure.text));
                request.errors.push(failure);
            }
            b"ok" => request.reply.simple_bytes(bytes),
            b"double" => request.reply.double(lua_tonumber(state, -1)),
            b"big_number" => request.reply.big_number(bytes),
            b"verbatim_string" => {
                push_field(state, c"format");
                lua_pushvalue(state, -2);
                push_field(state, c"string");
                lua_remove(state, -2);
                let parts = text(state, -2).zip(text(state, -1));
                if let Some((format, string)) = parts {
                    let mut padded = *b"   ";
                    format.iter().zip(&mut padded).for_each(|(from, to)| *to = *from);
                    request.reply.verbatim(padded, string);
                }
                lua_pop(state, 2);
                return parts.is_some();
            }
            other => push_entries(state, request, other == b"map"),
        }
        true
    }
}

/// Writes the keys of the table at the top of the stack as a set, or with their values as a map.
unsafe fn push_entries(state: *mut lua_State, request: &mut Request<'_>, is_map: bool) {
    // SAFETY: as in `push_reply`; lua_next gets keys that it gave out, as `push_reply` pops copies only.
    unsafe {
        let mark = request.reply.mark();
        let mut len = 0;
        lua_pushnil(state);
        while lua_next(state, -2) != 0 {
            if lua_checkstack(state, 4) == 0 {
                lua_pop(state, 2);
                break;
            }
            lua_pushvalue(state, -2);
            push_reply(state, request);
            if is_map {
                push_reply(state, request)
            } else {
                lua_pop(state, 1)
            }
            len += 1;
        }
        if is_map { request.reply.map_at(mark, len) } else { request.reply.set_at(mark, len) }
    }
}

/// Pushes the value at the head of RESP bytes that the server has written itself, and takes it off them.
pub(super) unsafe fn push_value(state: *mut lua_State, left: &mut &[u8]) {
    // SAFETY: `lua_checkstack` makes sure of the room on this level.
    unsafe {
        if lua_checkstack(state, 6) == 0 {
            raise(state, b"ERR the reply is nested too deeply for Lua", false);
        }
        let Some((kind, line)) = take_line(left) else { return lua_pushnil(state) };
        let number = || crate::protocol::number::parse_i64(line);
        let count = || number().and_then(|count| usize::try_from(count).ok());
        match kind {
            b':' => lua_pushnumber(state, number().unwrap_or_default() as f64),
            b'$' => match count() {
                Some(len) => push_bytes(state, take_bytes(left, len)),
                None => lua_pushboolean(state, 0),
            },
            b'+' => push_named(state, c"ok", |state| push_bytes(state, line)),
            b'-' => push_error(state, line, true),
            b'*' | b'>' => match count() {
                Some(count) => {
                    lua_createtable(state, i32::try_from(count).unwrap_or(0), 0);
                    for at in 1..=count {
                        push_value(state, left);
                        lua_rawseti(state, -2, at as _);
                    }
                }
                None => lua_pushboolean(state, 0),
            },
            b'_' => lua_pushnil(state),
            b'#' => lua_pushboolean(state, c_int::from(line == b"t")),
            b',' => push_named(state, c"double", |state| {
                lua_pushnumber(state, crate::protocol::number::parse_f64(line).unwrap_or_default());
            }),
            b'(' => push_named(state, c"big_number", |state| push_bytes(state, line)),
            b'=' => {
                let bytes = take_bytes(left, count().unwrap_or_default());
                let (format, string) = bytes.split_at(bytes.len().min(3));
                lua_createtable(state, 0, 1);
                push_bytes(state, b"verbatim_string");
                push_named(state, c"format", |state| push_bytes(state, format));
                push_bytes(state, b"string");
                push_bytes(state, string.get(1..).unwrap_or_default());
                lua_rawset(state, -3);
                lua_rawset(state, -3);
            }
            b'%' | b'~' => push_nested(state, left, kind == b'%', count().unwrap_or_default()),
            b'|' => {
                // Attributes are not shown to scripts.
                for _ in 0..count().unwrap_or_default() * 2 {
                    push_value(state, left);
                    lua_pop(state, 1);
                }
                push_value(state, left);
            }
            _ => lua_pushnil(state),
        }
    }
}

/// Pushes a table with one field.
unsafe fn push_named(state: *mut lua_State, name: &CStr, push: impl FnOnce(*mut lua_State)) {
    // SAFETY: three slots, which `push_value` has made room for.
    unsafe {
        lua_createtable(state, 0, 1);
        push_bytes(state, name.to_bytes());
        push(state);
        lua_rawset(state, -3);
    }
}

/// Pushes RESP3's map or set of `count` entries.
unsafe fn push_nested(state: *mut lua_State, left: &mut &[u8], is_map: bool, count: usize) {
    // SAFETY: as in `push_value`. A key that Lua does not take (null, not a number) is left out.
    unsafe {
        lua_createtable(state, 0, 1);
        push_bytes(state, if is_map { b"map" } else { b"set" });
        lua_createtable(state, 0, i32::try_from(count).unwrap_or(0));
        for _ in 0..count {
            push_value(state, left);
            if is_map {
                push_value(state, left)
            } else {
                lua_pushboolean(state, 1)
            }
            let key = lua_type(state, -2);
            if key == LUA_TNIL || key == LUA_TNUMBER && lua_tonumber(state, -2).is_nan() {
                lua_pop(state, 2);
            } else {
                lua_rawset(state, -3);
            }
        }
        lua_rawset(state, -3);
    }
}

fn take_line<'a>(left: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let end = memchr::memchr(b'\r', left)?;
    let line = &left[..end];
    *left = left.get(end + 2..).unwrap_or_default();
    line.split_first().map(|(kind, rest)| (*kind, rest))
}

fn take_bytes<'a>(left: &mut &'a [u8], len: usize) -> &'a [u8] {
    let bytes = left.get(..len).unwrap_or_default();
    *left = left.get(len + 2..).unwrap_or_default();
    bytes
}
