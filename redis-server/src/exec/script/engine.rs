//! The engine: the script cache, the libraries, and the two Lua states that run them.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::Ordering::Relaxed;

use foldhash::quality::RandomState;

use super::call::{self, Kind, Running};
use super::library::{BAD_NAME, Function, Libraries, Library, is_name};
use super::lock::lock;
use super::raw::{Failure, Ref, Request};
use super::sha::{SHA_LEN, Sha, sha1};
use super::shebang::{self, ScriptFlags};
use super::state::Scripts;
use super::status::Figures;
use super::vm::Vm;
use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::exec::run::tracking;
use crate::protocol::Reply;
use crate::protocol::error::{Error, shown};

/// Runs scripts and functions; one at a time.
#[derive(Debug, Default)]
pub struct Engine {
    eval: Option<Vm>,
    functions: Option<Vm>,
    scripts: Cache,
    libraries: Libraries,
}

/// Most scripts that are kept of those that EVAL has brought, as in Redis 7.4. Scripts that SCRIPT LOAD has brought
/// stay.
const MAX_EVAL_SCRIPTS: usize = 500;
/// How Lua says that its memory does not suffice.
const OUT_OF_MEMORY: &[u8] = b"not enough memory";

/// The scripts that EVAL and SCRIPT LOAD have brought, by name.
#[derive(Debug, Default)]
pub struct Cache {
    scripts: HashMap<Sha, Script, RandomState>,
    /// Names by hash of the source: SHA-1 takes longer.
    by_source: HashMap<u64, Sha>,
    /// Those that EVAL alone has brought, and when each was used last, counted in uses.
    passing: HashMap<Sha, u64, RandomState>,
    uses: u64,
    hasher: RandomState,
    bytes: usize,
}

/// A compiled script.
#[derive(Debug)]
struct Script {
    source: Box<[u8]>,
    flags: Option<ScriptFlags>,
    function: Ref,
}

impl Cache {
    /// Their number.
    pub fn count(&self) -> usize {
        self.scripts.len()
    }

    /// Bytes that their sources take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is a script of this name.
    pub fn holds(&self, name: &[u8]) -> bool {
        <&Sha>::try_from(name).is_ok_and(|sha| self.scripts.contains_key(sha))
    }

    /// The source of the script of this name.
    pub fn source(&self, name: &[u8]) -> Option<&[u8]> {
        self.scripts.get(<&Sha>::try_from(name).ok()?).map(|script| &*script.source)
    }

    /// The name of the script with this source, if it is here.
    fn find(&self, source: &[u8]) -> Option<Sha> {
        let sha = self.by_source.get(&self.hasher.hash_one(source))?;
        (*self.scripts.get(sha)?.source == *source).then_some(*sha)
    }

    fn add(&mut self, sha: Sha, script: Script) {
        self.by_source.insert(self.hasher.hash_one(&script.source), sha);
        self.bytes += script.bytes();
        self.scripts.insert(sha, script);
    }

    /// A script is used. If SCRIPT LOAD does, it stays from now on.
    fn note_use(&mut self, sha: &Sha, is_load: bool) {
        if is_load {
            self.passing.remove(sha);
        } else if let Some(last) = self.passing.get_mut(sha) {
            self.uses += 1;
            *last = self.uses;
        }
    }

    /// Takes out the script of EVAL that has not been used for the longest time.
    fn evict(&mut self) -> Option<(Sha, Script)> {
        let (&sha, _) = self.passing.iter().min_by_key(|(_, last)| **last)?;
        self.passing.remove(&sha);
        let script = self.scripts.remove(&sha)?;
        self.by_source.remove(&self.hasher.hash_one(&script.source));
        self.bytes -= script.bytes();
        Some((sha, script))
    }
}

impl Script {
    /// Bytes that it takes outside of Lua.
    fn bytes(&self) -> usize {
        self.source.len() + SHA_LEN + size_of::<Self>()
    }
}

impl Scripts {
    /// Calls `work` with the engine. The caller must be alone with the data.
    pub(crate) fn with_engine<R>(&self, work: impl FnOnce(&mut Engine) -> R) -> R {
        let engine =
            lock(&self.engine).take().map(|engine| engine.downcast::<Engine>().expect("it was put there below"));
        let mut engine = engine.unwrap_or_default();
        let result = work(&mut engine);
        self.figures.take(&engine);
        *lock(&self.engine) = Some(engine);
        result
    }
}

impl Figures {
    fn take(&self, engine: &Engine) {
        let Self { scripts, functions, libraries, eval_vm, functions_vm, scripts_bytes, libraries_bytes, evicted: _ } =
            self;
        scripts.store(engine.scripts().count() as u64, Relaxed);
        functions.store(engine.libraries().functions() as u64, Relaxed);
        libraries.store(engine.libraries().count() as u64, Relaxed);
        eval_vm.store(engine.eval_memory() as u64, Relaxed);
        functions_vm.store(engine.functions_memory() as u64, Relaxed);
        scripts_bytes.store(engine.scripts().bytes() as u64, Relaxed);
        libraries_bytes.store(engine.libraries().bytes() as u64, Relaxed);
    }
}

/// The parameters of an attempt to run a script, besides its arguments.
#[derive(Clone, Copy, Debug)]
struct Wanted<'a> {
    kind: Kind,
    name: &'a str,
    flags: Option<ScriptFlags>,
    function: Ref,
    read_only: bool,
}

/// EVALSHA's error for a name that no script has.
fn no_script(cx: &Ctx<'_>) -> Error {
    let advice = if cx.config().level().is_valkey() { "" } else { " Please use EVAL." };
    Error::Message(format!("NOSCRIPT No matching script.{advice}"))
}

fn no_memory(error: &mlua::Error) -> Error {
    Error::Message(format!("ERR there is not enough memory for Lua: {error}").replace(['\r', '\n'], " "))
}

impl Engine {
    /// The script cache.
    pub fn scripts(&self) -> &Cache {
        &self.scripts
    }

    /// The function libraries.
    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// Bytes of Lua for EVAL.
    pub fn eval_memory(&self) -> usize {
        self.eval.as_ref().map_or(0, Vm::memory)
    }

    /// Bytes of Lua for functions.
    pub fn functions_memory(&self) -> usize {
        self.functions.as_ref().map_or(0, Vm::memory)
    }

    /// `EVAL script numkeys [key …] [arg …]`, and with `is_sha` EVALSHA.
    ///
    /// # Errors
    /// Those of the script, and of the call.
    pub fn eval(&mut self, cx: &mut Ctx<'_>, args: Args<'_>, is_sha: bool, read_only: bool) -> Result {
        if is_sha && args.at(1).len() != SHA_LEN {
            return Err(no_script(cx));
        }
        let keys = number_of_keys(args, Error::NotInteger)?;
        let sha = if is_sha {
            let mut sha = [0; SHA_LEN];
            sha.copy_from_slice(args.at(1));
            sha.make_ascii_lowercase();
            self.scripts.note_use(&sha, false);
            sha
        } else {
            self.add_script(cx, args.at(1), false)?
        };
        let script = self.scripts.scripts.get(&sha).ok_or_else(|| no_script(cx))?;
        let name = std::str::from_utf8(&sha).unwrap_or_default();
        let (flags, function) = (script.flags, script.function);
        self.run(cx, args, keys, Wanted { kind: Kind::Eval, name, flags, function, read_only })
    }

    /// Adds a script to the cache, if it is not there; until SCRIPT LOAD does, it may have to make room for others.
    ///
    /// # Errors
    /// It does not compile.
    pub fn add_script(&mut self, cx: &Ctx<'_>, source: &[u8], is_load: bool) -> Result<Sha> {
        if let Some(sha) = self.scripts.find(source) {
            self.scripts.note_use(&sha, is_load);
            return Ok(sha);
        }
        let sha = sha1(source);
        let shebang = shebang::parse(source).map_err(Error::Message)?;
        let mut compiled = self.compile(cx, &source[shebang.len..])?;
        if compiled.as_ref().is_err_and(|message| message.ends_with(OUT_OF_MEMORY)) {
            self.evict_scripts(cx, 0);
            compiled = self.compile(cx, &source[shebang.len..])?;
        }
        let function = compiled.map_err(|message| {
            let message = shown(&message);
            Error::Message(format!("ERR Error compiling script (new function): {message}"))
        })?;
        self.scripts.add(sha, Script { source: source.into(), flags: shebang.flags, function });
        if let Some(flags) = shebang.flags {
            cx.instance.scripts.declare(&sha, flags);
        }
        if !is_load {
            self.evict_scripts(cx, MAX_EVAL_SCRIPTS - 1);
            self.scripts.passing.insert(sha, 0);
            self.scripts.note_use(&sha, false);
        }
        Ok(sha)
    }

    fn compile(&mut self, cx: &Ctx<'_>, code: &[u8]) -> Result<std::result::Result<Ref, Vec<u8>>> {
        Ok(vm(&mut self.eval, true, cx)?.compile(code, c"@user_script"))
    }

    /// Forgets scripts of EVAL until no more than `kept` are left.
    fn evict_scripts(&mut self, cx: &Ctx<'_>, kept: usize) {
        while self.scripts.passing.len() > kept
            && let Some((sha, script)) = self.scripts.evict()
        {
            cx.instance.scripts.figures.evicted.fetch_add(1, Relaxed);
            if script.flags.is_some() {
                cx.instance.scripts.undeclare(|name| name != sha);
            }
            if let Some(vm) = &self.eval {
                vm.release(script.function);
            }
        }
        if kept == 0
            && let Some(vm) = &mut self.eval
        {
            vm.collect();
        }
    }

    /// Forgets every script of EVAL.
    pub fn flush_scripts(&mut self, cx: &Ctx<'_>) {
        let libraries = &self.libraries;
        cx.instance.scripts.undeclare(|name| libraries.find(name).is_some());
        self.scripts = Cache::default();
        self.eval = None;
    }

    /// `FCALL function numkeys [key …] [arg …]`
    ///
    /// # Errors
    /// Those of the function, and of the call.
    pub fn call_function(&mut self, cx: &mut Ctx<'_>, args: Args<'_>, read_only: bool) -> Result {
        let function = self.libraries.find(args.at(1)).ok_or(Error::Static("ERR Function not found"))?;
        let keys = number_of_keys(args, Error::Static("ERR Bad number of keys provided"))?;
        let name = String::from_utf8_lossy(&function.name).into_owned();
        let (flags, function) = (Some(function.flags), function.callback);
        self.run(cx, args, keys, Wanted { kind: Kind::Function, name: &name, flags, function, read_only })
    }

    fn run(&mut self, cx: &mut Ctx<'_>, args: Args<'_>, keys: usize, wanted: Wanted<'_>) -> Result {
        let Wanted { kind, name, flags, function, read_only } = wanted;
        may_run(cx, flags, read_only)?;
        let is_eval = kind == Kind::Eval;
        let vm = vm(if is_eval { &mut self.eval } else { &mut self.functions }, is_eval, cx)?;
        let mut running = Running::take(cx.worker);
        running.begin(cx, kind, name, flags, read_only);
        running.called_by(args);
        call::enter(running);
        let mut request = Request {
            handler: Some(vm.handler),
            globals: is_eval.then_some(vm.globals),
            function,
            keys: args.from(3).first(keys),
            args: args.from(3 + keys),
            reply: &mut *cx.reply,
            failed: None,
            errors: Vec::new(),
        };
        vm.run(&mut request);
        let (failed, errors) = (request.failed, request.errors);
        if let Some(mut running) = call::leave() {
            let has_read = running.end(cx);
            Running::store(cx.worker, running);
            if has_read && cx.client.tracking.is_some() {
                let database = cx.instance.database(cx.client.db);
                let keys: Vec<_> = args.from(3).first(keys).iter().map(|key| database.key(key)).collect();
                tracking::read_by_script(cx, args.with_keys(&keys));
            }
        }
        if !errors.is_empty() {
            count_errors(cx, args, &errors);
        }
        let Some(failure) = failed else { return Ok(()) };
        if is_eval && failure.text.ends_with(OUT_OF_MEMORY) {
            // Cached scripts must not stand in the way of later ones.
            self.evict_scripts(cx, 0);
        }
        if failure.is_counted {
            count_errors(cx, args, std::slice::from_ref(&failure));
        }
        fail(cx, name, failure)
    }

    /// Adds a library, in place of one of the same name if it may.
    ///
    /// # Errors
    /// The texts of the genuine server.
    pub fn load_library(&mut self, cx: &mut Ctx<'_>, code: &[u8], replace: bool) -> Result<Vec<u8>> {
        if let Ok((engine, name, _)) = shebang::parse_library(code)
            && is_lua(&engine)
            && self.libraries.get(&name).is_some()
            && !replace
        {
            let name = shown(&name);
            return Err(Error::Message(format!("ERR Library '{name}' already exists")));
        }
        let library = self.make_library(cx, code)?;
        let name = library.name.clone();
        let taken = |libraries: &Libraries, library: &Library| {
            let taken = library.functions.iter().find(|function| {
                libraries.find_with_library(&function.name).is_some_and(|owner| owner != library.name)
            });
            taken.map(|function| text_error("Function", &function.name, "already exists"))
        };
        if let Some(error) = taken(&self.libraries, &library) {
            self.forget(&library);
            return Err(error);
        }
        self.remove_library(&name);
        self.add_library(cx, library);
        Ok(name)
    }

    fn add_library(&mut self, cx: &Ctx<'_>, library: Library) {
        for function in &library.functions {
            cx.instance.scripts.declare(&function.name, function.flags);
        }
        self.libraries.add(library);
    }

    /// Compiles a library and has it register its functions.
    fn make_library(&mut self, cx: &mut Ctx<'_>, code: &[u8]) -> Result<Library> {
        let (engine, name, first_line) = shebang::parse_library(code).map_err(Error::Message)?;
        if !is_name(&name) {
            return Err(Error::Message(format!("ERR {BAD_NAME}")));
        }
        if !is_lua(&engine) {
            return Err(Error::Message(format!("ERR Engine '{}' not found", shown(&engine))));
        }
        let vm = vm(&mut self.functions, false, cx)?;
        let compiled = vm.compile(&code[first_line..], c"@user_function");
        let function =
            compiled.map_err(|message| Error::Message(format!("ERR Error compiling function: {}", shown(&message))))?;
        let mut running = Running::take(cx.worker);
        running.begin(cx, Kind::Load, &String::from_utf8_lossy(&name), None, true);
        call::enter(running);
        let mut reply = Reply::default();
        let none = Args::new(&[], &[]);
        let mut request = Request {
            handler: None,
            globals: None,
            function,
            keys: none,
            args: none,
            reply: &mut reply,
            failed: None,
            errors: Vec::new(),
        };
        let loaded = vm.load(&mut request);
        let failed = request.failed;
        if let Some(mut running) = call::leave() {
            running.end(cx);
            Running::store(cx.worker, running);
        }
        vm.release(function);
        let functions = loaded.map_err(|error| no_memory(&error))?.into_iter();
        let functions = functions.map(|(registered, callback)| Function {
            name: registered.name,
            description: registered.description,
            flags: registered.flags,
            callback,
        });
        let library = Library { name, code: code.into(), functions: functions.collect() };
        let refusal = match failed {
            Some(failure) => {
                let code = if failure.is_table { "" } else { "ERR " };
                let text = shown(&failure.text);
                Some(format!("ERR Error registering functions: {code}{text}"))
            }
            None if library.functions.is_empty() => Some("ERR No functions registered".to_owned()),
            None => None,
        };
        let Some(refusal) = refusal else { return Ok(library) };
        self.forget(&library);
        Err(Error::Message(refusal))
    }

    /// Has Lua forget the functions of a library that is not among [`Engine::libraries`].
    fn forget(&self, library: &Library) {
        if let Some(vm) = &self.functions {
            library.functions.iter().for_each(|function| vm.release(function.callback));
        }
    }

    /// Removes a library; false if there is none of this name.
    pub fn remove_library(&mut self, name: &[u8]) -> bool {
        let removed = self.libraries.remove(name);
        removed.iter().for_each(|library| self.forget(library));
        removed.is_some()
    }

    /// Removes every library.
    pub fn flush_libraries(&mut self, cx: &Ctx<'_>) {
        for library in self.libraries.take() {
            self.forget(&library);
        }
        let scripts = &self.scripts;
        cx.instance.scripts.undeclare(|name| scripts.holds(name));
    }

    /// Adds the libraries with this code, all or none: in place of all others, or of those of the same names.
    ///
    /// # Errors
    /// The texts of the genuine server.
    pub fn restore(&mut self, cx: &mut Ctx<'_>, codes: &[Vec<u8>], flush: bool, replace: bool) -> Result {
        let mut added: Vec<Library> = Vec::new();
        let mut check = |engine: &mut Self, cx: &mut Ctx<'_>, code: &[u8]| {
            let library = engine.make_library(cx, code)?;
            let error = clash(&added, &library);
            added.push(library);
            error.map_or(Ok(()), Err)
        };
        let mut result = codes.iter().try_for_each(|code| check(self, cx, code));
        if result.is_ok() && !flush {
            result = self.fits(&added, replace);
        }
        if let Err(error) = result {
            added.iter().for_each(|library| self.forget(library));
            return Err(error);
        }
        if flush {
            self.flush_libraries(cx);
        }
        for library in added {
            self.remove_library(&library.name);
            self.add_library(cx, library);
        }
        Ok(())
    }

    /// Whether these libraries can be added to those that there are.
    fn fits(&self, added: &[Library], replace: bool) -> Result {
        let is_replaced = |name: &[u8]| added.iter().any(|library| library.name == name);
        for library in added {
            if self.libraries.get(&library.name).is_some() && !replace {
                return Err(text_error("Library", &library.name, "already exists"));
            }
        }
        for function in added.iter().flat_map(|library| &library.functions) {
            if self.libraries.find_with_library(&function.name).is_some_and(|owner| !is_replaced(owner)) {
                return Err(text_error("Function", &function.name, "already exists"));
            }
        }
        Ok(())
    }
}

/// Why a library cannot be restored together with others.
fn clash(added: &[Library], library: &Library) -> Option<Error> {
    if added.iter().any(|other| other.name == library.name) {
        let name = shown(&library.name);
        return Some(Error::Message(format!("ERR Library '{name}' already exists")));
    }
    let is_there =
        |function: &&Function| added.iter().flat_map(|other| &other.functions).any(|other| other.name == function.name);
    let function = library.functions.iter().find(is_there)?;
    Some(text_error("Function", &function.name, "already exists"))
}

/// The only engine.
fn is_lua(engine: &[u8]) -> bool {
    engine.eq_ignore_ascii_case(b"lua")
}

fn text_error(what: &str, name: &[u8], how: &str) -> Error {
    Error::Message(format!("ERR {what} {} {how}", shown(name)))
}

/// The Lua state in this place, with the limit that the configuration sets.
fn vm<'a>(place: &'a mut Option<Vm>, is_eval: bool, cx: &Ctx<'_>) -> Result<&'a mut Vm> {
    if place.is_none() {
        *place = Some(Vm::new(is_eval, cx.instance.config.level()).map_err(|error| no_memory(&error))?);
    }
    let vm = place.as_mut().expect("it was made a moment ago");
    vm.limit(cx.instance.config.uint(settings::SCRIPT_MEMORY_LIMIT));
    Ok(vm)
}

/// The number of keys that a call announces, checked.
fn number_of_keys(args: Args<'_>, not_a_number: Error) -> Result<usize> {
    let keys = args.int(2).map_err(|_| not_a_number)?;
    if keys > (args.len() - 3) as i64 {
        return Err(Error::Static("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(keys).map_err(|_| Error::Static("ERR Number of keys can't be negative"))
}

/// Whether a script may run: one that has declared flags where these allow it, any other not on stale data.
fn may_run(cx: &Ctx<'_>, flags: Option<ScriptFlags>, read_only: bool) -> Result {
    let Some(flags) = flags else {
        let is_stale = cx.instance.replication.is_stale(&cx.instance.config);
        return if is_stale { Err(Error::STALE) } else { Ok(()) };
    };
    if flags.has(ScriptFlags::NO_CLUSTER) && cx.instance.cluster.is_enabled() {
        return Err(Error::Static("ERR Can not run script on cluster, 'no-cluster' flag is set."));
    }
    let writes = !flags.has(ScriptFlags::NO_WRITES);
    if writes && read_only {
        return Err(Error::Static("ERR Can not execute a script with write flag using *_ro command."));
    }
    if writes && !flags.has(ScriptFlags::ALLOW_OOM) && cx.client.out_of_memory {
        return Err(Error::Static(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    Ok(())
}

/// Counts errors that a script has returned as part of its reply.
fn count_errors(cx: &Ctx<'_>, args: Args<'_>, errors: &[Failure]) {
    if let Some(row) = cx.instance.registry.lookup(args.at(0)) {
        cx.worker.stats.commands[usize::from(row.id)].failed.add(1);
    }
    for error in errors.iter().filter(|error| !error.is_counted) {
        cx.worker.error_sent(&Error::Message(shown(&error.text).into_owned()));
    }
}

/// Longest part of an error that is no table, in a reply.
const MAX_TEXT: usize = 100;

/// Answers with the error that has ended a script.
fn fail(cx: &mut Ctx<'_>, name: &str, failure: Failure) -> Result {
    let Failure { text, is_table, place, is_counted } = failure;
    let text = match (is_table, place) {
        (false, _) => {
            let text = shown(&text[..text.len().min(MAX_TEXT)]);
            format!("ERR Error running script {name}, {text}")
        }
        (true, None) => shown(&text).into_owned(),
        (true, Some((source, line))) => {
            let (text, source) = (shown(&text), shown(&source));
            let name = if cx.config().level().is_valkey() { String::new() } else { format!("{name}, ") };
            format!("{text} script: {name}on {source}:{}.", shown(&line))
        }
    };
    if is_counted {
        cx.reply.error(&text);
        return Ok(());
    }
    Err(Error::Message(text))
}
