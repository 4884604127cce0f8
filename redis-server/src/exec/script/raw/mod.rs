//! Functions for which mlua has no safe form. They raise Lua errors as C functions do, without a Rust frame that owns
//! anything between the error and its catcher. They take a call through Lua's stack, and leave the stack of a script
//! that takes too long.
//!
//! Every function here that Lua calls (`extern "C-unwind"`) relies on the following. Lua passes a valid state whose stack
//! has room for `LUA_MINSTACK` (20) more values. A function of Lua's may raise an error, which drops our frames by
//! `longjmp`, so where one may, no frame holds a value with a destructor. Values that own memory lie in the [`Request`]
//! or in the script of the thread ([`call`]), which outlive the call. Rust code that may panic is behind `catch_unwind`.
#![allow(unsafe_code, reason = "Lua's C interface; each block has its proof")]

mod sandbox;
mod values;

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use mlua::ffi::*;
use mlua::{Function, IntoLuaMulti, Lua};

use super::call::{self, Interrupt, Ran, Refused};
use crate::clients::client::Client;
use crate::command::Args;
use crate::exec::run::stack;
use crate::protocol::Reply;
use values::{push_reply, push_value};

pub(super) use sandbox::{
    error_handler, fallible, guarded, mark, missing, pairs, plain_pcall, read_only, seeing, unpack,
};

/// Instructions between two looks at the time.
const HOOK_PERIOD: c_int = 100_000;
/// To how many percent of what lives Lua's memory grows before its collector begins anew, as Lua itself has it.
const GC_PAUSE: c_int = 200;
/// The same while little lives, so that scripts that leave little garbage are not held up.
const GC_PAUSE_SMALL: c_int = 400;
/// Less memory than this is little, in bytes: `Vm` has it collected between two scripts.
pub(super) const SMALL: usize = 1024 * 1024;

thread_local! {
    /// The main state of the script that runs.
    static MAIN: Cell<*mut lua_State> = const { Cell::new(ptr::null_mut()) };
}

/// Leaves the stack of the script of this thread, until it is resumed; `deputy` stands in for its client.
pub(super) fn suspend(deputy: Client) {
    let (main, running) = (MAIN.get(), call::leave());
    stack::suspend(deputy);
    MAIN.set(main);
    running.into_iter().for_each(call::enter);
}

/// A value in Lua's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref(c_int);

/// Where a script for EVAL finds its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Globals {
    /// The table of globals.
    pub(super) table: Ref,
    /// The names `KEYS` and `ARGV`: to make a string of their bytes would take longer.
    pub(super) names: [Ref; 2],
}

/// The main thread of a Lua state, which mlua looks up under a lock.
#[derive(Clone, Copy)]
pub(super) struct Main(*mut lua_State);

// SAFETY: the owner of the state uses the pointer: `Vm` holds both and, as this is not `Sync`, is used by one thread at a
// time.
unsafe impl Send for Main {}

impl Main {
    /// Of a state at rest, in which no coroutine runs.
    pub(super) fn of(lua: &Lua) -> Self {
        Self(lua.state())
    }

    /// Bytes that Lua has taken.
    pub(super) fn memory(self) -> usize {
        // SAFETY: two figures are read; no collection begins.
        let (kib, rest) = unsafe { (lua_gc(self.0, LUA_GCCOUNT, 0), lua_gc(self.0, LUA_GCCOUNTB, 0)) };
        kib as usize * 1024 + rest as usize
    }
}

/// A call of a script, and what it comes to.
pub(super) struct Request<'a> {
    /// The function that makes a table of an error, if one shall.
    pub(super) handler: Option<Ref>,
    /// Where KEYS and ARGV go; `None` hands them to the function.
    pub(super) globals: Option<Globals>,
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
    /// Errors in a result that has succeeded.
    pub(super) errors: Vec<Failure>,
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

/// Runs a script by way of `entry`, which is [`enter`]. The outcome is in `request` and its reply.
pub(super) fn run(main: Main, entry: Ref, request: &mut Request<'_>) {
    let state = main.0;
    let before = MAIN.replace(state);
    let pause = if main.memory() < SMALL { GC_PAUSE_SMALL } else { GC_PAUSE };
    // SAFETY: the state is valid, and at rest: its stack has room. A hook and a figure are set without errors; lua_pcall
    // catches every error of `enter` and leaves it on the stack, which is emptied.
    let done = unsafe {
        lua_sethook(state, Some(hook), LUA_MASKCOUNT, HOOK_PERIOD);
        lua_gc(state, LUA_GCSETPAUSE, pause);
        let top = lua_gettop(state);
        push_ref(state, entry);
        lua_pushlightuserdata(state, ptr::from_mut(request).cast());
        let done = lua_pcall(state, 1, 0, 0) == 0;
        lua_settop(state, top);
        lua_sethook(state, None, 0, 0);
        done
    };
    MAIN.set(before);
    if !done {
        request.failed = Some(Failure { text: b"not enough memory".to_vec(), ..Failure::default() });
    }
}

/// Runs the function with the request's arguments.
pub(super) unsafe extern "C-unwind" fn enter(state: *mut lua_State) -> c_int {
    // SAFETY: only `run` calls it, and passes the address of its request, which outlives the call, and which no other code
    // uses meanwhile. The references are in the registry as long as the engine lives.
    unsafe {
        let request = &mut *lua_touserdata(state, 1).cast::<Request<'_>>();
        lua_settop(state, 0);
        match request.handler {
            Some(handler) => push_ref(state, handler),
            None => lua_pushnil(state),
        }
        let catcher = c_int::from(request.handler.is_some());
        let status = if let Some(globals) = request.globals {
            push_ref(state, globals.table);
            for (name, words) in globals.names.into_iter().zip([request.keys, request.args]) {
                push_ref(state, name);
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
        lua_rawgeti(state, LUA_REGISTRYINDEX, reference.0 as _);
    }
}

unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: the caller has room on the stack; Lua copies the bytes.
    unsafe {
        lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len());
    }
}

unsafe fn push_list(state: *mut lua_State, words: Args<'_>) {
    // SAFETY: two slots of the stack, which every caller has; nothing of ours has a destructor.
    unsafe {
        lua_createtable(state, words.len() as c_int, 0);
        for (at, word) in words.iter().enumerate() {
            push_bytes(state, word);
            lua_rawseti(state, -2, (at + 1) as _);
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
        lua_rawget(state, -2);
    }
}

/// Takes the error at the top of the stack apart. It needs room for six values.
unsafe fn failure(state: *mut lua_State) -> Failure {
    const FIELDS: [&CStr; 4] = [c"err", c"source", c"line", c"ignore_error_stats_update"];
    // SAFETY: raw look-ups. To make the string of a name may raise an error for lack of memory, so all are looked up before
    // anything is copied: from then on nothing allocates in Lua.
    unsafe {
        if lua_type(state, -1) != LUA_TTABLE {
            let text = number_or_text(state, -1).unwrap_or_else(|| b"execution failure".to_vec());
            return Failure { text, ..Failure::default() };
        }
        let table = lua_gettop(state);
        for name in FIELDS {
            push_bytes(state, name.to_bytes());
            lua_rawget(state, table);
        }
        let text = number_or_text(state, table + 1).unwrap_or_else(|| b"(null)".to_vec());
        let place = number_or_text(state, table + 2).zip(number_or_text(state, table + 3));
        let is_counted = lua_toboolean(state, table + 4) != 0;
        lua_settop(state, table);
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

/// Runs every so many instructions of a script.
unsafe extern "C-unwind" fn hook(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: a figure is set. A script that runs for long may fill much memory, of which much is garbage.
    unsafe { lua_gc(state, LUA_GCSETPAUSE, GC_PAUSE) };
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
    // SAFETY: Lua has called one of the two functions above. All values that own memory are in the script of this
    // thread. The bytes of its reply stay as they are while Lua copies them, because Lua runs no code of the script
    // meanwhile (there are no finalizers in it: tables have none in Lua 5.1, and `newproxy` is not offered).
    unsafe {
        if let Err(refused) = take_arguments(state) {
            let (error, raises) = match refused {
                Refused::NoScript => (NO_SCRIPT, true),
                Refused::Nothing if is_valkey() => ("ERR Please specify at least one argument for this call", raises),
                Refused::Nothing => ("ERR Please specify at least one argument for this redis lib call", raises),
                Refused::TooLong => {
                    ("ERR the arguments of a call from a script are longer than 4294967295 bytes", raises)
                }
                Refused::Type if is_valkey() => ("ERR Command arguments must be strings or integers", raises),
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

/// Whether the script of this thread is told what Valkey tells.
fn is_valkey() -> bool {
    call::with(|running| running.is_some_and(|running| running.level().is_valkey()))
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
                    if !running.args.has_room_for(bytes.len()) {
                        return Err(Refused::TooLong);
                    }
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
