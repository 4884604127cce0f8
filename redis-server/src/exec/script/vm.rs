//! A Lua state as scripts see it: sandboxed, with Redis' API, bounded in memory.

use std::fmt;
use std::sync::{Arc, Mutex};

use mlua::{Function, LightUserData, Lua, LuaOptions, LuaString, StdLib, Table, Value};

use super::api;
use super::lock::lock;
use super::raw::{self, Globals, Main, Ref, Request};
use crate::config::Level;

/// A Lua state with its sandbox.
pub(super) struct Vm {
    lua: Lua,
    main: Main,
    /// The function that runs every script.
    entry: Ref,
    /// Makes a table of every error that ends a script.
    pub(super) handler: Ref,
    /// The real table of globals, and what is put there.
    pub(super) globals: Globals,
    /// The metatable of the empty table that scripts have as theirs.
    meta: Table,
    real: Table,
    /// The globals that a library's code sees while it is loaded.
    library: Table,
    /// The functions that a library registers while it is loaded.
    registered: Registered,
    /// The names of compiled code, which Lua itself does not hold while it compiles.
    _names: [LuaString; 2],
    limit: u64,
    /// From so many bytes on the garbage is collected between two scripts. A round looks at all that lives, however little
    /// garbage there is, so it waits until that is as much.
    collect_at: usize,
}

/// Functions that the library being loaded has registered; `None` while none is.
pub(super) type Registered = Arc<Mutex<Option<Vec<api::Registration>>>>;

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vm").field("memory", &self.memory()).finish_non_exhaustive()
    }
}

/// A function in C's manner, as Lua calls it.
type Native = unsafe extern "C-unwind" fn(*mut mlua::lua_State) -> std::ffi::c_int;

impl Vm {
    /// A fresh state; `is_eval`: with what only scripts for EVAL have.
    pub(super) fn new(is_eval: bool, level: Level) -> mlua::Result<Self> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::new())?;
        lua.set_app_data(level);
        super::lib::register(&lua)?;
        let plain = lua.create_function(api::plain)?;
        let handler = raw::closure(&lua, raw::error_handler, plain.clone())?;
        let native = natives(&lua, plain)?;
        let redis = api::redis(&lua, is_eval, level)?;
        let server = level.is_valkey().then(|| redis.clone());
        let mark = LightUserData(raw::mark());
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (env, meta, real): (Table, Table, Table) = prelude.call((native, redis, mark, server))?;
        let registered = Registered::default();
        let library = library_globals(&lua, &registered, level)?;
        let entry = raw::closure(&lua, raw::enter, ())?;
        let (entry, handler) = (raw::remember(&lua, entry)?, raw::remember(&lua, handler)?);
        let names = [raw::remember(&lua, "KEYS")?, raw::remember(&lua, "ARGV")?];
        let globals = Globals { table: raw::remember(&lua, real.clone())?, names };
        lua.set_globals(env)?;
        let names = [lua.create_string("@user_script")?, lua.create_string("@user_function")?];
        let main = Main::of(&lua);
        Ok(Self {
            lua,
            main,
            entry,
            handler,
            globals,
            meta,
            real,
            library,
            registered,
            _names: names,
            limit: 0,
            collect_at: 0,
        })
    }

    /// Bytes that Lua has taken.
    pub(super) fn memory(&self) -> usize {
        self.main.memory()
    }

    /// Bounds the memory; 0 does not.
    pub(super) fn limit(&mut self, bytes: u64) {
        if self.limit != bytes {
            // The vendored Lua has an allocator that counts, so the limit is taken.
            let _ = self.lua.set_memory_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.limit = bytes;
        }
    }

    /// Compiles code under a name.
    ///
    /// # Errors
    /// Lua's message.
    pub(super) fn compile(&self, code: &[u8], name: &std::ffi::CStr) -> Result<Ref, Vec<u8>> {
        raw::compile(&self.lua, code, name)
    }

    /// Forgets a function.
    pub(super) fn release(&self, function: Ref) {
        raw::release(&self.lua, function);
    }

    /// Frees what is garbage.
    pub(super) fn collect(&mut self) {
        // An error of a finalizer: there are none.
        let _ = self.lua.gc_collect();
        self.collect_at = self.memory() * 2;
    }

    /// Runs a script.
    pub(super) fn run(&mut self, request: &mut Request<'_>) {
        raw::run(self.main, self.entry, request);
        let ran_out = request.failed.as_ref().is_some_and(|failure| failure.text.ends_with(b"not enough memory"));
        let memory = self.memory();
        let is_much = self.limit != 0 && memory as u64 > self.limit / 2;
        if ran_out || is_much || (self.collect_at..raw::SMALL).contains(&memory) {
            // The script's values are garbage now; the next one shall have the room.
            self.collect();
        } else {
            // Lua may have collected much by itself.
            self.collect_at = self.collect_at.min(memory * 2);
        }
    }

    /// Runs the code of a library, and gives the functions that it has registered.
    pub(super) fn load(&mut self, request: &mut Request<'_>) -> mlua::Result<Vec<(api::Registration, Ref)>> {
        self.meta.raw_set("__index", &self.library)?;
        *lock(&self.registered) = Some(Vec::new());
        self.run(request);
        let registered = lock(&self.registered).take().unwrap_or_default();
        self.meta.raw_set("__index", &self.real)?;
        let remember = |registration: api::Registration| {
            let callback = raw::remember(&self.lua, registration.callback.clone())?;
            Ok((registration, callback))
        };
        registered.into_iter().map(remember).collect()
    }
}

/// The functions that the prelude builds the sandbox with.
fn natives(lua: &Lua, plain: Function) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let add = |name: &str, function: Native| native.raw_set(name, raw::closure(lua, function, ())?);
    add("read_only", raw::read_only)?;
    add("missing", raw::missing)?;
    let globals = lua.globals();
    let next = raw::closure(lua, raw::seeing, globals.raw_get::<Function>("next")?)?;
    native.raw_set("pairs", raw::closure(lua, raw::pairs, next.clone())?)?;
    let unpack = globals.raw_get::<Function>("unpack")?;
    native.raw_set("unpack", raw::closure(lua, raw::unpack, unpack)?)?;
    native.raw_set("next", next)?;
    native.raw_set("plain", &plain)?;
    native.raw_set("pcall", raw::closure(lua, raw::plain_pcall, plain)?)?;
    let guarded = |lua: &Lua, function: Function| raw::closure(lua, raw::guarded, function);
    let seeing = |lua: &Lua, function: Function| raw::closure(lua, raw::seeing, function);
    native.raw_set("guarded", lua.create_function(guarded)?)?;
    native.raw_set("seeing", lua.create_function(seeing)?)?;
    native.raw_set("random", api::fallible(lua, api::random)?)?;
    native.raw_set("randomseed", api::fallible(lua, api::random_seed)?)?;
    Ok(native)
}

/// The globals that the code of a library sees: the `redis` that registers functions, and nothing else.
fn library_globals(lua: &Lua, registered: &Registered, level: Level) -> mlua::Result<Table> {
    let missing = raw::closure(lua, raw::missing, ())?;
    let read_only = raw::closure(lua, raw::read_only, ())?;
    let shield = |content: Table| -> mlua::Result<Table> {
        let behind = lua.create_table()?;
        behind.raw_set("__index", &missing)?;
        content.set_metatable(Some(behind))?;
        let meta = lua.create_table()?;
        meta.raw_set("__index", &content)?;
        meta.raw_set("__newindex", &read_only)?;
        meta.raw_set("__metatable", false)?;
        meta.raw_set(LightUserData(raw::mark()), content)?;
        let shield = lua.create_table()?;
        shield.set_metatable(Some(meta))?;
        Ok(shield)
    };
    let registered = Arc::clone(registered);
    let register = move |lua: &Lua, arguments: &[Value]| api::register_function(lua, &registered, arguments);
    let redis = api::library_redis(lua, level)?;
    redis.raw_set("register_function", api::fallible(lua, register)?)?;
    let globals = lua.create_table()?;
    let redis = shield(redis)?;
    if level.is_valkey() {
        globals.raw_set("server", &redis)?;
    }
    globals.raw_set("redis", redis)?;
    shield(globals)
}
