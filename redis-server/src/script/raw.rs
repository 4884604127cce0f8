//! What mlua has no safe form for: functions that raise Lua errors as C functions do, without a Rust frame that owns
//! anything between the error and who catches it; the way of a call through Lua's stack; and leaving the stack of a
//! script that takes too long.
//!
//! What holds for every function here that Lua calls (`extern "C-unwind"`): Lua passes a valid state whose stack has room
//! for `LUA_MINSTACK` (20) more values. A function of Lua's may raise an error, which drops our frames by `longjmp`, so
//! where one may, no frame holds a value with a destructor; what owns memory lies in the [`Request`] or in the script of
//! the thread ([`call`]), which outlive the call. Rust code that may panic is behind `catch_unwind`.
#![allow(unsafe_code, reason = "Lua's C interface; each block has its proof")]

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use corosensei::Yielder;
use mlua::ffi::{
    LUA_GCSTEP, LUA_MASKCOUNT, LUA_MASKLINE, LUA_REGISTRYINDEX, LUA_TBOOLEAN, LUA_TNIL, LUA_TNUMBER, LUA_TSTRING,
    LUA_TTABLE, LUA_TUSERDATA, lua_Debug, lua_State, lua_call, lua_checkstack, lua_concat, lua_cpcall, lua_createtable,
    lua_error, lua_gc, lua_getinfo, lua_getmetatable, lua_getstack, lua_gettop, lua_insert, lua_next, lua_pcall,
    lua_pop, lua_pushboolean, lua_pushcclosure, lua_pushnil, lua_pushnumber, lua_pushvalue, lua_rawset, lua_remove,
    lua_replace, lua_sethook, lua_settop, lua_toboolean, lua_tocfunction, lua_tolstring, lua_tonumber, lua_touserdata,
    lua_type, lua_upvalueindex, luaL_loadbuffer, luaL_ref, luaL_unref, luaL_where,
};
use mlua::{Function, IntoLuaMulti, Lua};

use super::call::{self, Interrupt, Ran, Refused};
use crate::command::Args;
use crate::resp::Reply;

/// Instructions between two looks at the time.
const HOOK_PERIOD: c_int = 100_000;
/// Scripts between two steps of Lua's garbage collector, and the size of the steps, as in the genuine server.
const GC_PERIOD: u32 = 50;
/// Longest reply of a script: a table that holds itself many times over would fill the memory.
const MAX_REPLY: usize = 512 * 1024 * 1024;
/// Key of what the table behind a read-only one is marked with.
static MARK: u8 = 0;

thread_local! {
    /// How the script of this thread leaves its stack for a while.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
    /// The main state of the script that runs.
    static MAIN: Cell<*mut lua_State> = const { Cell::new(ptr::null_mut()) };
}

/// Runs `work` on the stack of `yielder`'s coroutine; [`suspend`] leaves it.
pub(super) fn interruptible<R>(yielder: &Yielder<(), ()>, work: impl FnOnce() -> R) -> R {
    YIELDER.set(yielder);
    let result = work();
    YIELDER.set(ptr::null());
    result
}

/// Leaves the stack of the script of this thread, until somebody lets it go on.
pub(super) fn suspend() {
    let (yielder, main, running) = (YIELDER.replace(ptr::null()), MAIN.get(), call::leave());
    if !yielder.is_null() {
        // SAFETY: the pointer was set by `interruptible` on this very stack, whose frame has not returned, since it resets
        // the pointer when it does; other stacks that run in between set and reset it for themselves.
        unsafe { (*yielder).suspend(()) };
    }
    YIELDER.set(yielder);
    MAIN.set(main);
    running.into_iter().for_each(call::enter);
}

/// A function in Lua's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref(c_int);

/// A call of a script, and what it comes to.
pub(super) struct Request<'a> {
    /// The function that makes a table of an error, if one shall.
    pub(super) handler: Option<Ref>,
    /// Where KEYS and ARGV go; `None` hands them to the function.
    pub(super) globals: Option<Ref>,
    /// The script.
    pub(super) function: Ref,
    /// The arguments that are keys.
    pub(super) keys: Args<'a>,
    /// The others.
    pub(super) args: Args<'a>,
    /// Where the result goes.
    pub(super) reply: &'a mut Reply,
    /// The result.
    pub(super) failed: Option<Failure>,
    /// Errors in a result that has succeeded, which are to be counted.
    pub(super) errors: Vec<Vec<u8>>,
}

/// Why a script has failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure {
    /// The error, code first; or, without a table, its text.
    pub(super) text: Vec<u8>,
    /// Whether the error was a table.
    pub(super) is_table: bool,
    /// Where it was raised: source and line.
    pub(super) place: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether it is counted already.
    pub(super) is_counted: bool,
}

/// Compiles a script.
///
/// # Errors
/// Lua's message.
pub(super) fn compile(lua: &Lua, code: &[u8], name: &CStr) -> Result<Ref, Vec<u8>> {
    struct Source<'a>(&'a [u8], &'a CStr, Result<Ref, Vec<u8>>);
    unsafe extern "C-unwind" fn load(state: *mut lua_State) -> c_int {
        // SAFETY: `protected` passes the address of a `Source` that outlives the call; luaL_loadbuffer leaves a function or
        // a message on the stack.
        unsafe {
            let source = &mut *lua_touserdata(state, 1).cast::<Source<'_>>();
            if luaL_loadbuffer(state, source.0.as_ptr().cast(), source.0.len(), source.1.as_ptr()) == 0 {
                source.2 = Ok(Ref(luaL_ref(state, LUA_REGISTRYINDEX)));
            } else {
                source.2 = Err(text(state, -1).unwrap_or_default().to_vec());
            }
        }
        0
    }
    if code.first() == Some(&0x1b) {
        // Compiled code is not checked by Lua, and could do anything to the process.
        return Err(b"user_script:1: unexpected symbol near 'char(27)'".to_vec());
    }
    let mut source = Source(code, name, Err(b"not enough memory".to_vec()));
    protected(lua, load, ptr::from_mut(&mut source).cast());
    source.2
}

/// Forgets a function.
pub(super) fn release(lua: &Lua, function: Ref) {
    // SAFETY: luaL_unref changes two slots of the registry that exist; it allocates nothing and raises nothing.
    unsafe { luaL_unref(lua.state(), LUA_REGISTRYINDEX, function.0) }
}

/// Puts the function or table that is `value` into the registry.
///
/// # Errors
/// When Lua's memory does not suffice.
pub(super) fn remember(lua: &Lua, value: impl IntoLuaMulti) -> mlua::Result<Ref> {
    // SAFETY: exec_raw passes a state with the value on top, and catches the error that luaL_ref may raise.
    let reference: i32 = unsafe {
        lua.exec_raw(value, |state| {
            let reference = luaL_ref(state, LUA_REGISTRYINDEX);
            lua_pushnumber(state, f64::from(reference));
        })
    }?;
    Ok(Ref(reference))
}

/// Calls `function` with the address `data` so that no error leaves it; false if one was raised.
fn protected(lua: &Lua, function: unsafe extern "C-unwind" fn(*mut lua_State) -> c_int, data: *mut c_void) -> bool {
    let state = lua.state();
    // SAFETY: the state is valid as long as `lua`; lua_cpcall catches every error and leaves its value on the stack, which
    // is cut back to where it was.
    unsafe {
        let top = lua_gettop(state);
        let status = lua_cpcall(state, function, data);
        lua_settop(state, top);
        status == 0
    }
}

/// Runs a script; what it comes to is in `request` and its reply.
pub(super) fn run(lua: &Lua, request: &mut Request<'_>, turn: u32) {
    let state = lua.state();
    let before = MAIN.replace(state);
    // SAFETY: the state is valid; setting a hook and a step of the collector raise no errors (there are no finalizers but
    // mlua's, which raise none).
    unsafe {
        lua_sethook(state, Some(hook), LUA_MASKCOUNT, HOOK_PERIOD);
    }
    let done = protected(lua, enter, ptr::from_mut(request).cast());
    // SAFETY: as above.
    unsafe {
        lua_sethook(state, None, 0, 0);
        if turn.is_multiple_of(GC_PERIOD) {
            lua_gc(state, LUA_GCSTEP, GC_PERIOD as c_int);
        }
    }
    MAIN.set(before);
    if !done {
        request.failed = Some(Failure { text: b"not enough memory".to_vec(), ..Failure::default() });
    }
}

/// Runs the function with the request's arguments.
unsafe extern "C-unwind" fn enter(state: *mut lua_State) -> c_int {
    // SAFETY: `run` passes the address of its request, which outlives the call, and nobody else uses it meanwhile. The
    // references are in the registry as long as the engine lives.
    unsafe {
        let request = &mut *lua_touserdata(state, 1).cast::<Request<'_>>();
        lua_settop(state, 0);
        match request.handler {
            Some(handler) => push_ref(state, handler),
            None => lua_pushnil(state),
        }
        let catcher = c_int::from(request.handler.is_some());
        let status = if let Some(globals) = request.globals {
            push_ref(state, globals);
            for (name, words) in [(c"KEYS", request.keys), (c"ARGV", request.args)] {
                push_bytes(state, name.to_bytes());
                push_list(state, words);
                lua_rawset(state, -3);
            }
            lua_settop(state, 1);
            push_ref(state, request.function);
            lua_pcall(state, 0, 1, catcher)
        } else {
            push_ref(state, request.function);
            push_list(state, request.keys);
            push_list(state, request.args);
            lua_pcall(state, 2, 1, catcher)
        };
        if status == 0 {
            push_reply(state, request);
        } else {
            request.failed = Some(failure(state));
        }
    }
    0
}

unsafe fn push_ref(state: *mut lua_State, reference: Ref) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        mlua::ffi::lua_rawgeti(state, LUA_REGISTRYINDEX, reference.0 as _);
    }
}

unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: the caller has room on the stack; Lua copies the bytes.
    unsafe {
        mlua::ffi::lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len());
    }
}

unsafe fn push_list(state: *mut lua_State, words: Args<'_>) {
    // SAFETY: two slots of the stack, which every caller has; nothing of ours has a destructor.
    unsafe {
        lua_createtable(state, words.len() as c_int, 0);
        for (at, word) in words.iter().enumerate() {
            push_bytes(state, word);
            mlua::ffi::lua_rawseti(state, -2, (at + 1) as _);
        }
    }
}

/// The bytes of a string on the stack; they live as long as it is there.
unsafe fn text<'a>(state: *mut lua_State, at: c_int) -> Option<&'a [u8]> {
    // SAFETY: the type is looked at first, because converting a number would change it in place.
    unsafe {
        if lua_type(state, at) != LUA_TSTRING {
            return None;
        }
        let mut len = 0;
        let bytes = lua_tolstring(state, at, &mut len);
        Some(std::slice::from_raw_parts(bytes.cast(), len))
    }
}

/// Pushes the field `name` of the table at the top, raw.
unsafe fn push_field(state: *mut lua_State, name: &CStr) {
    // SAFETY: the callers know that there is a table at the top, and have room for one more value.
    unsafe {
        push_bytes(state, name.to_bytes());
        mlua::ffi::lua_rawget(state, -2);
    }
}

/// Takes the error at the top of the stack apart.
unsafe fn failure(state: *mut lua_State) -> Failure {
    // SAFETY: raw look-ups of short names, which exist already in the tables that have them; were one to fail for lack of
    // memory, at worst this small value would not be freed.
    unsafe {
        if lua_type(state, -1) != LUA_TTABLE {
            let text = number_or_text(state, -1).unwrap_or_else(|| b"execution failure".to_vec());
            return Failure { text, ..Failure::default() };
        }
        let field = |name: &CStr| {
            push_field(state, name);
            let found = number_or_text(state, -1);
            lua_pop(state, 1);
            found
        };
        let text = field(c"err").unwrap_or_else(|| b"(null)".to_vec());
        let place = field(c"source").zip(field(c"line"));
        push_field(state, c"ignore_error_stats_update");
        let is_counted = lua_toboolean(state, -1) != 0;
        lua_pop(state, 1);
        Failure { text, is_table: true, place, is_counted }
    }
}

unsafe fn number_or_text(state: *mut lua_State, at: c_int) -> Option<Vec<u8>> {
    // SAFETY: reads a value that the callers know to be there.
    unsafe {
        if lua_type(state, at) == LUA_TNUMBER {
            return Some(lua_tonumber(state, at).to_string().into_bytes());
        }
        text(state, at).map(<[u8]>::to_vec)
    }
}

/// Writes the value at the top of the stack as a reply, and pops it.
unsafe fn push_reply(state: *mut lua_State, request: &mut Request<'_>) {
    // SAFETY: `lua_checkstack` makes sure of the room for what is pushed on this level; raw look-ups call nothing.
    unsafe {
        if lua_checkstack(state, 4) == 0 {
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
    // SAFETY: as in `push_reply`, which has made room for four values.
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
            mlua::ffi::lua_rawgeti(state, -1, (len + 1) as _);
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
                request.reply.error(&String::from_utf8_lossy(&failure.text));
                if !failure.is_counted {
                    request.errors.push(failure.text);
                }
            }
            b"ok" => request.reply.simple(&one_line(bytes)),
            b"double" => request.reply.double(lua_tonumber(state, -1)),
            b"big_number" => request.reply.big_number(&one_line(bytes)),
            b"verbatim_string" => {
                push_field(state, c"format");
                lua_pushvalue(state, -2);
                push_field(state, c"string");
                lua_remove(state, -2);
                let parts = text(state, -2).zip(text(state, -1));
                if let Some((format, string)) = parts {
                    let mut padded = *b"   ";
                    format.iter().zip(&mut padded).for_each(|(from, to)| *to = *from);
                    request.reply.verbatim(&String::from_utf8_lossy(&padded), string);
                }
                lua_pop(state, 2);
                return parts.is_some();
            }
            other => push_entries(state, request, other == b"map"),
        }
        true
    }
}

fn one_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(['\r', '\n'], " ")
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

/// Runs every so many instructions of a script.
unsafe extern "C-unwind" fn hook(state: *mut lua_State, _: *mut lua_Debug) {
    let Interrupt::End(reason) = call::interrupt() else { return };
    // SAFETY: Lua calls hooks with room on the stack. From here on every line raises the error again, also in the main
    // state if this one is a coroutine's: a script that catches it gets nowhere.
    unsafe {
        lua_sethook(state, Some(hook), LUA_MASKLINE, 0);
        lua_sethook(MAIN.get(), Some(hook), LUA_MASKLINE, 0);
        raise(state, reason.as_bytes(), false);
    }
}

/// Raises an error that is a table, as all of the server's are.
unsafe fn raise(state: *mut lua_State, error: &[u8], is_counted: bool) -> ! {
    // SAFETY: the callers are called by Lua, with room on the stack, and hold nothing that has a destructor.
    unsafe {
        push_error(state, error, is_counted);
        lua_error(state)
    }
}

unsafe fn push_error(state: *mut lua_State, error: &[u8], is_counted: bool) {
    // SAFETY: three slots, which the callers have.
    unsafe {
        lua_createtable(state, 0, 2);
        push_bytes(state, b"err");
        push_bytes(state, error);
        lua_rawset(state, -3);
        if is_counted {
            push_bytes(state, b"ignore_error_stats_update");
            lua_pushboolean(state, 1);
            lua_rawset(state, -3);
        }
    }
}

/// `redis.call`
pub(super) unsafe extern "C-unwind" fn redis_call(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { command(state, true) }
}

/// `redis.pcall`
pub(super) unsafe extern "C-unwind" fn redis_pcall(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { command(state, false) }
}

unsafe fn command(state: *mut lua_State, raises: bool) -> c_int {
    // SAFETY: Lua has called one of the two functions above. Whatever owns memory is in the script of this thread; the
    // bytes of its reply stay as they are while Lua copies them, because Lua runs no code of the script meanwhile (there
    // are no finalizers in it: tables have none in Lua 5.1, and `newproxy` is not offered).
    unsafe {
        if let Err(refused) = take_arguments(state) {
            let (error, raises) = match refused {
                Refused::NoScript => (NO_SCRIPT, true),
                Refused::Nothing => ("ERR Please specify at least one argument for this redis lib call", raises),
                Refused::Type => ("ERR Lua redis lib command arguments must be strings or integers", raises),
            };
            if raises {
                raise(state, error.as_bytes(), false);
            }
            push_error(state, error.as_bytes(), false);
            return 1;
        }
        lua_settop(state, 0);
        let (reply, ran) = run_command();
        let reply: &[u8] = &*reply;
        match ran {
            Outcome::Killed => {
                lua_sethook(state, Some(hook), LUA_MASKLINE, 0);
                lua_sethook(MAIN.get(), Some(hook), LUA_MASKLINE, 0);
                raise(state, b"ERR Script killed by user with SCRIPT KILL...", false);
            }
            Outcome::Refused => push_error(state, reply, true),
            Outcome::Replied => {
                let mut left = reply;
                push_value(state, &mut left);
            }
        }
        let failed = matches!(ran, Outcome::Refused) || reply.first() == Some(&b'-');
        if failed && raises {
            lua_error(state);
        }
    }
    1
}

const NO_SCRIPT: &str = "ERR redis.call/pcall can only be called inside a script invocation";

/// [`Ran`], whose texts are elsewhere.
#[derive(Clone, Copy)]
enum Outcome {
    Replied,
    Refused,
    Killed,
}

/// Takes the arguments on the stack over to the script of this thread.
unsafe fn take_arguments(state: *mut lua_State) -> Result<(), Refused> {
    call::with(|running| {
        let Some(running) = running.filter(|running| running.kind() != call::Kind::Load) else {
            return Err(Refused::NoScript);
        };
        running.args.clear();
        // SAFETY: reads the arguments, which stay where they are; nothing here allocates in Lua or raises an error.
        unsafe {
            let count = lua_gettop(state);
            if count == 0 {
                return Err(Refused::Nothing);
            }
            for at in 1..=count {
                if let Some(bytes) = text(state, at) {
                    running.args.push(bytes);
                } else if lua_type(state, at) == LUA_TNUMBER {
                    super::call::push_number(&mut running.args, lua_tonumber(state, at));
                } else {
                    return Err(Refused::Type);
                }
            }
        }
        Ok(())
    })
}

/// Runs the command whose arguments were taken over. The bytes are its reply, or why it was refused; they stay until the
/// next command.
fn run_command() -> (*const [u8], Outcome) {
    call::with(|running| {
        let Some(running) = running else { return (ptr::from_ref(NO_SCRIPT.as_bytes()), Outcome::Refused) };
        match running.call() {
            Ran::Replied => (ptr::from_ref(running.reply()), Outcome::Replied),
            Ran::Refused(error) => (ptr::from_ref(running.keep(error)), Outcome::Refused),
            Ran::Killed => (ptr::from_ref(&[][..]), Outcome::Killed),
        }
    })
}

/// Pushes the value at the head of RESP bytes that the server has written itself, and takes it off them.
unsafe fn push_value(state: *mut lua_State, left: &mut &[u8]) {
    // SAFETY: `lua_checkstack` makes sure of the room on this level.
    unsafe {
        if lua_checkstack(state, 6) == 0 {
            raise(state, b"ERR the reply is nested too deeply for Lua", false);
        }
        let Some((kind, line)) = take_line(left) else { return lua_pushnil(state) };
        let number = || crate::number::parse_i64(line);
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
                        mlua::ffi::lua_rawseti(state, -2, at as _);
                    }
                }
                None => lua_pushboolean(state, 0),
            },
            b'_' => lua_pushnil(state),
            b'#' => lua_pushboolean(state, c_int::from(line == b"t")),
            b',' => push_named(state, c"double", |state| {
                lua_pushnumber(state, crate::number::parse_f64(line).unwrap_or_default());
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

/// The redis 7 `pcall`: of an error that is a table, the script gets the text. Upvalue 1 makes a plain value of mlua's
/// errors.
pub(super) unsafe extern "C-unwind" fn plain_pcall(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; the values that it moves are those that it has found or pushed.
    unsafe {
        let count = lua_gettop(state);
        lua_pushboolean(state, 1);
        lua_insert(state, 1);
        if count == 0 {
            lua_settop(state, 0);
            return argument_error(state, b"bad argument #1 to 'pcall' (value expected)");
        }
        if lua_pcall(state, count - 1, mlua::ffi::LUA_MULTRET, 0) != 0 {
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
pub(super) unsafe extern "C-unwind" fn fallible(state: *mut lua_State) -> c_int {
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
pub(super) unsafe extern "C-unwind" fn error_handler(state: *mut lua_State) -> c_int {
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
            other => push_bytes(state, CStr::from_ptr(mlua::ffi::lua_typename(state, other)).to_bytes()),
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
pub(super) unsafe extern "C-unwind" fn read_only(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe { argument_error(state, b"Attempt to modify a readonly table") }
}

/// `__index` behind the last table of globals.
pub(super) unsafe extern "C-unwind" fn missing(state: *mut lua_State) -> c_int {
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
        mlua::ffi::lua_pushlightuserdata(state, mark());
        mlua::ffi::lua_rawget(state, -2);
        let is_marked = lua_type(state, -1) == LUA_TTABLE;
        lua_remove(state, -2);
        if !is_marked {
            lua_pop(state, 1);
        }
        is_marked
    }
}

/// Key of the real table in the metatable of a read-only one.
pub(super) fn mark() -> *mut c_void {
    ptr::from_ref(&MARK).cast_mut().cast()
}

/// A function of Lua's own (upvalue 1) that changes its first argument, which must not be read-only.
pub(super) unsafe extern "C-unwind" fn guarded(state: *mut lua_State) -> c_int {
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
pub(super) unsafe extern "C-unwind" fn seeing(state: *mut lua_State) -> c_int {
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

/// `pairs`: upvalue 1 is our `next`.
pub(super) unsafe extern "C-unwind" fn pairs(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it.
    unsafe {
        if lua_type(state, 1) != LUA_TTABLE {
            mlua::ffi::luaL_checktype(state, 1, LUA_TTABLE);
        }
        lua_settop(state, 1);
        lua_pushvalue(state, lua_upvalueindex(1));
        lua_insert(state, 1);
        lua_pushnil(state);
    }
    3
}

/// A function in Lua with these upvalues.
///
/// # Errors
/// When Lua's memory does not suffice.
pub(super) fn closure(
    lua: &Lua,
    function: unsafe extern "C-unwind" fn(*mut lua_State) -> c_int,
    upvalues: impl IntoLuaMulti,
) -> mlua::Result<Function> {
    // SAFETY: exec_raw passes a state with the upvalues on the stack, and catches errors.
    unsafe { lua.exec_raw(upvalues, |state| lua_pushcclosure(state, function, lua_gettop(state))) }
}
