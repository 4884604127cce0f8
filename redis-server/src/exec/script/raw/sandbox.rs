//! The parts of the sandbox: read-only tables, `pcall`, the handler of errors, functions that raise errors.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use mlua::ffi::*;

use super::{push_bytes, push_field, raise, text};

/// Its address is the key of the real table in the metatable of a read-only one.
static MARK: u8 = 0;

/// The redis 7 `pcall`: of an error that is a table, the script gets the text. Upvalue 1 makes a plain value of mlua's
/// errors.
pub(in crate::exec::script) unsafe extern "C-unwind" fn plain_pcall(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; the values that it moves are those that it has found or pushed.
    unsafe {
        let count = lua_gettop(state);
        lua_pushboolean(state, 1);
        lua_insert(state, 1);
        if count == 0 {
            lua_settop(state, 0);
            return argument_error(state, b"bad argument #1 to 'pcall' (value expected)");
        }
        if lua_pcall(state, count - 1, LUA_MULTRET, 0) != 0 {
            make_plain(state);
            if lua_type(state, -1) == LUA_TTABLE {
                push_field(state, c"err");
                if lua_type(state, -1) == LUA_TSTRING { lua_replace(state, -2) } else { lua_pop(state, 1) }
            }
            lua_pushboolean(state, 0);
            lua_replace(state, 1);
        }
        lua_gettop(state)
    }
}

/// Replaces an error of mlua's at the top of the stack by the value that stands for it, with upvalue 1.
unsafe fn make_plain(state: *mut lua_State) {
    // SAFETY: upvalue 1 is a function of one argument and one result, as `vm` makes these closures.
    unsafe {
        if lua_type(state, -1) == LUA_TUSERDATA {
            lua_pushvalue(state, lua_upvalueindex(1));
            lua_insert(state, -2);
            lua_call(state, 1, 1);
        }
    }
}

/// A function (upvalue 1) that gives an error's text, or nil, and a value: raises the one or returns the other.
pub(in crate::exec::script) unsafe extern "C-unwind" fn fallible(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; upvalue 1 is a function of any number of arguments and two results, as `api` makes it.
    unsafe {
        let count = lua_gettop(state);
        lua_pushvalue(state, lua_upvalueindex(1));
        lua_insert(state, 1);
        lua_call(state, count, 2);
        if let Some(error) = text(state, -2) {
            if let Some(plain) = error.strip_prefix(b"!") {
                return argument_error(state, plain);
            }
            raise(state, error, false);
        }
    }
    1
}

/// Makes a table of every error that ends a script, with the place where it was raised.
pub(in crate::exec::script) unsafe extern "C-unwind" fn error_handler(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it with the error as its only argument. `lua_Debug` is plain data that `lua_getinfo` fills, and
    // its strings live as long as the function that they describe, which is on the stack.
    unsafe {
        lua_settop(state, 1);
        make_plain(state);
        let mut info: lua_Debug = std::mem::zeroed();
        let mut found = describe(state, 1, &mut info);
        if found && CStr::from_ptr(info.what) == c"C" {
            found = describe(state, 2, &mut info);
        }
        if lua_type(state, 1) != LUA_TTABLE {
            lua_createtable(state, 0, 3);
            push_bytes(state, b"err");
            push_bytes(state, b"ERR ");
            push_described(state, 1);
            lua_concat(state, 2);
            lua_rawset(state, -3);
            lua_replace(state, 1);
        }
        if found {
            push_bytes(state, b"source");
            push_bytes(state, CStr::from_ptr(info.source).to_bytes());
            lua_rawset(state, 1);
            push_bytes(state, b"line");
            lua_pushnumber(state, f64::from(info.currentline));
            lua_rawset(state, 1);
        }
        lua_settop(state, 1);
    }
    1
}

unsafe fn describe(state: *mut lua_State, level: c_int, info: &mut lua_Debug) -> bool {
    // SAFETY: fills plain data.
    unsafe { lua_getstack(state, level, info) != 0 && lua_getinfo(state, c"nSl".as_ptr(), info) != 0 }
}

/// Pushes the value at `at` as text, as far as it has one.
unsafe fn push_described(state: *mut lua_State, at: c_int) {
    // SAFETY: one slot more, which the caller has.
    unsafe {
        match lua_type(state, at) {
            LUA_TSTRING | LUA_TNUMBER => lua_pushvalue(state, at),
            LUA_TBOOLEAN => push_bytes(state, if lua_toboolean(state, at) != 0 { b"true" } else { b"false" }),
            LUA_TNIL => push_bytes(state, b"nil"),
            other => push_bytes(state, CStr::from_ptr(lua_typename(state, other)).to_bytes()),
        }
    }
}

/// Raises an error with the place of the Lua code that has called.
unsafe fn argument_error(state: *mut lua_State, message: &[u8]) -> c_int {
    // SAFETY: Lua has called the function that calls this one, with room on the stack.
    unsafe {
        luaL_where(state, 1);
        push_bytes(state, message);
        lua_concat(state, 2);
        lua_error(state)
    }
}

/// `__newindex` of what scripts must not change.
pub(in crate::exec::script) unsafe extern "C-unwind" fn read_only(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { argument_error(state, b"Attempt to modify a readonly table") }
}

/// `__index` behind the last table of globals.
pub(in crate::exec::script) unsafe extern "C-unwind" fn missing(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it with the table and the key; the slots are few, and nothing of ours has a destructor.
    unsafe {
        luaL_where(state, 1);
        push_bytes(state, b"Script attempted to access nonexistent global variable '");
        push_described(state, 2);
        push_bytes(state, b"'");
        lua_concat(state, 4);
        lua_error(state)
    }
}

/// Pushes the table behind the read-only one at `at`; nothing, and false, if that is an ordinary value.
unsafe fn push_behind(state: *mut lua_State, at: c_int) -> bool {
    // SAFETY: up to three slots, which the callers have; raw look-ups.
    unsafe {
        if lua_type(state, at) != LUA_TTABLE || lua_getmetatable(state, at) == 0 {
            return false;
        }
        lua_pushlightuserdata(state, mark());
        lua_rawget(state, -2);
        let is_marked = lua_type(state, -1) == LUA_TTABLE;
        lua_remove(state, -2);
        if !is_marked {
            lua_pop(state, 1);
        }
        is_marked
    }
}

/// Key of the real table in the metatable of a read-only one.
pub(in crate::exec::script) fn mark() -> *mut c_void {
    ptr::from_ref(&MARK).cast_mut().cast()
}

/// A function of Lua's own (upvalue 1) that changes its first argument, which must not be read-only.
pub(in crate::exec::script) unsafe extern "C-unwind" fn guarded(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; upvalue 1 is a C function without upvalues, which finds its arguments where it expects them.
    unsafe {
        if push_behind(state, 1) {
            // Without the place, as the genuine Lua raises it from here.
            push_bytes(state, b"Attempt to modify a readonly table");
            lua_error(state);
        }
        match lua_tocfunction(state, lua_upvalueindex(1)) {
            Some(function) => function(state),
            None => 0,
        }
    }
}

/// A function of Lua's own (upvalue 1) that reads its first argument: a read-only table's content, though it is elsewhere.
pub(in crate::exec::script) unsafe extern "C-unwind" fn seeing(state: *mut lua_State) -> c_int {
    // SAFETY: as in `guarded`.
    unsafe {
        if push_behind(state, 1) {
            lua_replace(state, 1);
        }
        match lua_tocfunction(state, lua_upvalueindex(1)) {
            Some(function) => function(state),
            None => 0,
        }
    }
}

/// `unpack`, with Lua's own as upvalue 1, which counts the values in a sum that may overflow.
pub(in crate::exec::script) unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> c_int {
    const MAX: f64 = 8000.0;
    // SAFETY: as in `guarded`; the arguments are only read.
    unsafe {
        let bound =
            |at: c_int, default: f64| if lua_isnumber(state, at) != 0 { lua_tonumber(state, at) } else { default };
        let first = bound(2, 1.0);
        let len = if lua_type(state, 1) == LUA_TTABLE { lua_objlen(state, 1) as f64 } else { 0.0 };
        let last = bound(3, len);
        let is_int = |value: f64| value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
        if !is_int(first) || !is_int(last) || last - first >= MAX {
            return argument_error(state, b"too many results to unpack");
        }
        match lua_tocfunction(state, lua_upvalueindex(1)) {
            Some(function) => function(state),
            None => 0,
        }
    }
}

/// `pairs`: upvalue 1 is our `next`.
pub(in crate::exec::script) unsafe extern "C-unwind" fn pairs(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        if lua_type(state, 1) != LUA_TTABLE {
            luaL_checktype(state, 1, LUA_TTABLE);
        }
        lua_settop(state, 1);
        lua_pushvalue(state, lua_upvalueindex(1));
        lua_insert(state, 1);
        lua_pushnil(state);
    }
    3
}
