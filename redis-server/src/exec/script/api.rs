//! The functions of `redis` that run no command, and those of Lua's that Redis replaces.

use std::sync::Mutex;

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::lock::lock;
use super::shebang::ScriptFlags;
use super::vm::Registered;
use super::{call, raw};
use crate::config::Level;

/// The result of a function that may fail: the text of its error, code first, or its value.
pub(super) type Outcome = mlua::Result<Result<Value, String>>;

/// A function that a library has registered.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) name: Vec<u8>,
    pub(super) description: Option<Vec<u8>>,
    pub(super) flags: ScriptFlags,
    pub(super) callback: Function,
}

/// A function whose errors are raised as the server's are: tables, at the place of the caller. A text that begins with
/// `!` is raised as a text.
pub(super) fn fallible<F>(lua: &Lua, function: F) -> mlua::Result<Function>
where
    F: Fn(&Lua, &[Value]) -> Outcome + Send + 'static,
{
    let inner = lua.create_function(move |lua, arguments: MultiValue| match function(lua, &arguments.into_vec())? {
        Ok(value) => Ok((Value::Nil, value)),
        Err(text) => Ok((Value::String(lua.create_string(in_words_of(lua, text))?), Value::Nil)),
    })?;
    raw::closure(lua, raw::fallible, inner)
}

/// An error's text, with the names that Valkey has for things.
fn in_words_of(lua: &Lua, text: String) -> String {
    if !lua.app_data_ref::<Level>().is_some_and(|level| level.is_valkey()) {
        return text;
    }
    let text = text.replace("redis.", "server.").replace("Lua redis lib command arguments", "Command arguments");
    let text = text.replace("this redis lib call", "this call");
    text.replace("Library names can", "Function names can")
}

/// The value that stands for an error of mlua's.
pub(super) fn plain(lua: &Lua, value: Value) -> mlua::Result<Value> {
    match value {
        Value::Error(error) => Ok(Value::String(lua.create_string(message(&error))?)),
        other => Ok(other),
    }
}

fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => message(cause),
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The table `redis`; `is_eval`: with what only scripts for EVAL have.
pub(super) fn redis(lua: &Lua, is_eval: bool, level: Level) -> mlua::Result<Table> {
    let redis = library_redis(lua, level)?;
    redis.raw_set("call", raw::closure(lua, raw::redis_call, ())?)?;
    redis.raw_set("pcall", raw::closure(lua, raw::redis_pcall, ())?)?;
    redis.raw_set("setresp", fallible(lua, set_resp)?)?;
    redis.raw_set("sha1hex", fallible(lua, sha1hex)?)?;
    redis.raw_set("error_reply", fallible(lua, error_reply)?)?;
    redis.raw_set("status_reply", fallible(lua, status_reply)?)?;
    redis.raw_set("set_repl", fallible(lua, set_repl)?)?;
    redis.raw_set("acl_check_cmd", fallible(lua, acl_check_cmd)?)?;
    for (name, value) in [("NONE", 0), ("AOF", 1), ("SLAVE", 2), ("REPLICA", 2), ("ALL", 3)] {
        redis.raw_set(format!("REPL_{name}"), value)?;
    }
    if is_eval {
        redis.raw_set("breakpoint", lua.create_function(|_, _: MultiValue| Ok(false))?)?;
        redis.raw_set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
        redis.raw_set("replicate_commands", lua.create_function(|_, _: MultiValue| Ok(true))?)?;
    }
    Ok(redis)
}

/// The part of `redis` that a library has while it is loaded, too.
pub(super) fn library_redis(lua: &Lua, level: Level) -> mlua::Result<Table> {
    let redis = lua.create_table()?;
    redis.raw_set("log", fallible(lua, log)?)?;
    for (level, name) in ["DEBUG", "VERBOSE", "NOTICE", "WARNING"].into_iter().enumerate() {
        redis.raw_set(format!("LOG_{name}"), level)?;
    }
    let number = |version: &str| version.split('.').fold(0u32, |sum, part| sum << 8 | part.parse().unwrap_or(0));
    redis.raw_set("REDIS_VERSION", level.redis_version())?;
    redis.raw_set("REDIS_VERSION_NUM", number(level.redis_version()))?;
    if level.is_valkey() {
        let (name, version) = level.server();
        redis.raw_set("SERVER_NAME", name)?;
        redis.raw_set("SERVER_VERSION", version)?;
        redis.raw_set("SERVER_VERSION_NUM", number(version))?;
    }
    Ok(redis)
}

/// A string, or a number as text.
fn text(lua: &Lua, value: &Value) -> mlua::Result<Option<Vec<u8>>> {
    match value {
        Value::String(_) | Value::Integer(_) | Value::Number(_) => {
            Ok(lua.coerce_string(value.clone())?.map(|text| text.as_bytes().to_vec()))
        }
        _ => Ok(None),
    }
}

/// A number, or a string that reads as one.
fn number(lua: &Lua, value: Option<&Value>) -> mlua::Result<Option<f64>> {
    value.map_or(Ok(None), |value| lua.coerce_number(value.clone()))
}

fn sha1hex(lua: &Lua, arguments: &[Value]) -> Outcome {
    let [value] = arguments else { return Ok(Err("ERR wrong number of arguments".to_owned())) };
    let bytes = text(lua, value)?.unwrap_or_default();
    Ok(Ok(Value::String(lua.create_string(super::sha::sha1(&bytes))?)))
}

fn single_field(lua: &Lua, name: &str, value: impl AsRef<[u8]>) -> Outcome {
    let table = lua.create_table()?;
    table.raw_set(name, lua.create_string(value)?)?;
    Ok(Ok(Value::Table(table)))
}

const WRONG: &str = "ERR wrong number or type of arguments";

fn error_reply(lua: &Lua, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else { return single_field(lua, "err", WRONG) };
    let text = text.as_bytes().to_vec();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    // A text without a code, a word before a blank, gets the general one.
    let (code, rest) = match memchr::memchr(b' ', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (&b"ERR"[..], text),
    };
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = rest.iter().position(|byte| !is_end(byte)).unwrap_or(rest.len());
    let end = rest.iter().rposition(|byte| !is_end(byte)).map_or(start, |last| last + 1);
    single_field(lua, "err", [code, b" ", &rest[start..end]].concat())
}

fn status_reply(lua: &Lua, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::String(text)] => single_field(lua, "ok", text.as_bytes()),
        _ => single_field(lua, "err", WRONG),
    }
}

fn log(lua: &Lua, arguments: &[Value]) -> Outcome {
    if arguments.len() < 2 {
        return Ok(Err("ERR redis.log() requires two arguments or more.".to_owned()));
    }
    let Some(level) = number(lua, arguments.first())? else {
        return Ok(Err("ERR First argument must be a number (log level).".to_owned()));
    };
    let mut line = Vec::new();
    for (at, value) in arguments[1..].iter().enumerate() {
        let Some(part) = text(lua, value)? else { continue };
        if at > 0 {
            line.push(b' ');
        }
        line.extend_from_slice(&part);
    }
    let line = String::from_utf8_lossy(&line);
    match level as i64 {
        0 => tracing::debug!(target: "redis_server::script", "{line}"),
        1 | 2 => tracing::info!(target: "redis_server::script", "{line}"),
        3 => tracing::warn!(target: "redis_server::script", "{line}"),
        _ => return Ok(Err("ERR Invalid debug level.".to_owned())),
    }
    Ok(Ok(Value::Nil))
}

fn set_resp(lua: &Lua, arguments: &[Value]) -> Outcome {
    if !call::is_script() {
        return Ok(Err("ERR redis.setresp can only be called inside a script invocation".to_owned()));
    }
    if arguments.len() != 1 {
        return Ok(Err("ERR redis.setresp() requires one argument.".to_owned()));
    }
    let version = number(lua, arguments.first())?.unwrap_or_default() as i64;
    if !matches!(version, 2 | 3) {
        return Ok(Err("ERR RESP version must be 2 or 3.".to_owned()));
    }
    call::with(|running| running.into_iter().for_each(|running| running.set_resp3(version == 3)));
    Ok(Ok(Value::Nil))
}

fn set_repl(lua: &Lua, arguments: &[Value]) -> Outcome {
    if !call::is_script() {
        return Ok(Err("ERR redis.set_repl can only be called inside a script invocation".to_owned()));
    }
    if arguments.len() != 1 {
        return Ok(Err("ERR redis.set_repl() requires two arguments.".to_owned()));
    }
    let flags = number(lua, arguments.first())?.unwrap_or_default() as i64;
    if flags & !3 != 0 {
        let text = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Ok(Err(text.to_owned()));
    }
    Ok(Ok(Value::Nil))
}

fn acl_check_cmd(lua: &Lua, arguments: &[Value]) -> Outcome {
    if !call::is_script() {
        return Ok(Err("ERR redis.acl_check_cmd can only be called inside a script invocation".to_owned()));
    }
    if arguments.is_empty() {
        return Ok(Err("ERR Please specify at least one argument for this redis lib call".to_owned()));
    }
    let mut words = crate::command::OwnedArgs::default();
    for value in arguments {
        match text(lua, value)? {
            Some(word) => words.push(&word),
            None => return Ok(Err("ERR Lua redis lib command arguments must be strings or integers".to_owned())),
        }
    }
    let may = call::with(|running| running.and_then(|running| running.may(words.args())));
    Ok(may.map(Value::Boolean).ok_or_else(|| "ERR Invalid command passed to redis.acl_check_cmd()".to_owned()))
}

/// The state of `math.random`: the 48-bit generator of POSIX, the same in every script of the same seed.
static RANDOM: Mutex<u64> = Mutex::new(0x1234_abcd_330e);

const RANDOM_MASK: u64 = (1 << 48) - 1;

/// 31 random bits.
fn next_random() -> i32 {
    let mut state = lock(&RANDOM);
    *state = (*state).wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & RANDOM_MASK;
    (*state >> 17) as i32
}

pub(super) fn random(lua: &Lua, arguments: &[Value]) -> Outcome {
    if !call::is_script() {
        return Ok(Err("!math.random can only be called inside a script invocation".to_owned()));
    }
    let share = f64::from(next_random() % i32::MAX) / f64::from(i32::MAX);
    let mut bounds = [0; 2];
    if arguments.len() > bounds.len() {
        return Ok(Err("!wrong number of arguments".to_owned()));
    }
    for (at, value) in arguments.iter().enumerate() {
        let Some(bound) = number(lua, Some(value))? else {
            let got = value.type_name();
            return Ok(Err(format!("!bad argument #{} to 'random' (number expected, got {got})", at + 1)));
        };
        bounds[at] = bound as i64;
    }
    let (low, high) = match arguments.len() {
        0 => return Ok(Ok(Value::Number(share))),
        1 => (1, bounds[0]),
        _ => (bounds[0], bounds[1]),
    };
    if low > high {
        return Ok(Err(format!("!bad argument #{} to 'random' (interval is empty)", arguments.len())));
    }
    Ok(Ok(Value::Number((share * (high - low + 1) as f64).floor() + low as f64)))
}

pub(super) fn random_seed(lua: &Lua, arguments: &[Value]) -> Outcome {
    if !call::is_script() {
        return Ok(Err("!math.randomseed can only be called inside a script invocation".to_owned()));
    }
    let Some(seed) = number(lua, arguments.first())? else {
        let got = arguments.first().map_or("no value", Value::type_name);
        return Ok(Err(format!("!bad argument #1 to 'randomseed' (number expected, got {got})")));
    };
    *lock(&RANDOM) = u64::from(seed as i64 as u32) << 16 | 0x330e;
    Ok(Ok(Value::Nil))
}

/// `redis.register_function(name, callback)`, or with a table of named arguments.
pub(super) fn register_function(lua: &Lua, registered: &Registered, arguments: &[Value]) -> Outcome {
    if lock(registered).is_none() {
        return refuse("redis.register_function can only be called on FUNCTION LOAD command");
    }
    let registration = match arguments {
        [Value::Table(named)] => read_named(lua, named)?,
        [_] => {
            Err("calling redis.register_function with a single argument is only applicable to Lua table (representing \
            named arguments).")
        }
        [name, callback] => match (text(lua, name)?, callback) {
            (None, _) => Err("first argument to redis.register_function must be a string"),
            (Some(name), Value::Function(callback)) => {
                Ok(Registration { name, description: None, flags: ScriptFlags::default(), callback: callback.clone() })
            }
            _ => Err("second argument to redis.register_function must be a function"),
        },
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let registration = match registration {
        Ok(registration) => registration,
        Err(text) => return refuse(text),
    };
    if !super::library::is_name(&registration.name) {
        return refuse(super::library::BAD_NAME);
    }
    let mut registered = lock(registered);
    let all = registered.get_or_insert_default();
    if all.iter().any(|other| other.name == registration.name) {
        return refuse("Function already exists in the library");
    }
    all.push(registration);
    Ok(Ok(Value::Nil))
}

fn refuse(text: &str) -> Outcome {
    Ok(Err(format!("ERR {text}")))
}

fn read_named(lua: &Lua, named: &Table) -> mlua::Result<Result<Registration, &'static str>> {
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, ScriptFlags::default());
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Some(key) = text(lua, &key)? else {
            return Ok(Err("named argument key given to redis.register_function is not a string"));
        };
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => match text(lua, &value)? {
                Some(text) => name = Some(text),
                None => {
                    return Ok(Err("function_name argument given to redis.register_function must be a string"));
                }
            },
            b"description" => match text(lua, &value)? {
                Some(text) => description = Some(text),
                None => return Ok(Err("description argument given to redis.register_function must be a string")),
            },
            b"callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => return Ok(Err("callback argument given to redis.register_function must be a function")),
            },
            b"flags" => match value {
                Value::Table(names) => match read_flags(lua, &names)? {
                    Some(read) => flags = read,
                    None => return Ok(Err("unknown flag given")),
                },
                _ => {
                    let text = "flags argument to redis.register_function must be a table representing function flags";
                    return Ok(Err(text));
                }
            },
            _ => return Ok(Err("unknown argument given to redis.register_function")),
        }
    }
    let Some(name) = name else { return Ok(Err("redis.register_function must get a function name argument")) };
    let Some(callback) = callback else { return Ok(Err("redis.register_function must get a callback argument")) };
    Ok(Ok(Registration { name, description, flags, callback }))
}

fn read_flags(lua: &Lua, names: &Table) -> mlua::Result<Option<ScriptFlags>> {
    let mut flags = ScriptFlags::default();
    for name in names.sequence_values::<Value>() {
        let Some(flag) = text(lua, &name?)?.and_then(|name| ScriptFlags::named(&name, true)) else { return Ok(None) };
        flags.0 |= flag.0;
    }
    Ok(Some(flags))
}
