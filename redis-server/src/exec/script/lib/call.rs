//! The arguments of a call, checked as Lua's auxiliary library checks them.

use mlua::{Error, Lua, LuaString, MultiValue, Result, Table, Value};

use super::raise::raise;

/// A call of one of our functions by a script.
pub(super) struct Call<'a> {
    /// The state that it runs in.
    pub(super) lua: &'a Lua,
    arguments: MultiValue,
}

impl<'a> Call<'a> {
    /// A call with these arguments.
    pub(super) fn new(lua: &'a Lua, arguments: MultiValue) -> Self {
        Self { lua, arguments }
    }

    /// How many arguments there are.
    pub(super) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// The argument at this position from 1; nil where there is none.
    pub(super) fn get(&self, at: usize) -> &Value {
        self.arguments.get(at.wrapping_sub(1)).unwrap_or(&Value::Nil)
    }

    /// All arguments.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.arguments.iter()
    }

    /// Whether the argument is missing or nil.
    pub(super) fn is_nil(&self, at: usize) -> bool {
        self.get(at).is_nil()
    }

    /// A string, or a number as text.
    ///
    /// # Errors
    /// For every other type.
    pub(super) fn string(&self, at: usize) -> Result<LuaString> {
        match self.get(at) {
            Value::String(text) => Ok(text.clone()),
            number @ (Value::Integer(_) | Value::Number(_)) => {
                let text = super::number::general(as_number(number).unwrap_or_default(), 14);
                self.lua.create_string(text)
            }
            _ => Err(self.type_error(at, "string")),
        }
    }

    /// A number, or a string that reads as one.
    ///
    /// # Errors
    /// For everything else.
    pub(super) fn number(&self, at: usize) -> Result<f64> {
        to_number(self.lua, self.get(at)).ok_or_else(|| self.type_error(at, "number"))
    }

    /// A number without its fraction, in the low 32 bits of it as C converts it.
    ///
    /// # Errors
    /// As [`Call::number`].
    pub(super) fn int(&self, at: usize) -> Result<i32> {
        Ok(super::number::to_i64(self.number(at)?) as i32)
    }

    /// An error that blames this argument.
    pub(super) fn bad_argument(&self, at: usize, reason: &str) -> Error {
        let names = |debug: &mlua::debug::Debug<'_>| {
            let names = debug.names();
            (names.name.map(|name| name.into_owned()), names.name_what == Some("method"))
        };
        let (name, is_method) = self.lua.inspect_stack(0, names).unwrap_or_default();
        let name = name.as_deref().unwrap_or("?");
        match at.checked_sub(usize::from(is_method)) {
            Some(0) if is_method => raise(self.lua, format!("calling '{name}' on bad self ({reason})")),
            Some(at) => raise(self.lua, format!("bad argument #{at} to '{name}' ({reason})")),
            None => raise(self.lua, format!("bad argument #-1 to '{name}' ({reason})")),
        }
    }

    /// An error that says which type this argument should have.
    pub(super) fn type_error(&self, at: usize, expected: &str) -> Error {
        let found = if at > self.len() { "no value" } else { type_name(self.get(at)) };
        self.bad_argument(at, &format!("{expected} expected, got {found}"))
    }
}

/// The name of a type as scripts know it; mlua tells integers, light userdata and errors apart.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) | Value::Error(_) => "userdata",
        other => other.type_name(),
    }
}

/// The number that a value of type number is.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(int) => Some(*int as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// A number, or what a string reads as.
pub(super) fn to_number(lua: &Lua, value: &Value) -> Option<f64> {
    as_number(value).or_else(|| match value {
        Value::String(_) => lua.coerce_number(value.clone()).ok().flatten(),
        _ => None,
    })
}

/// The most bytes that one call may produce: half of what Redis allows a string to have. A small table that holds itself
/// many times over would otherwise fill the memory.
pub(in crate::exec::script::lib) const MAX_OUTPUT: usize = if cfg!(test) { 1024 * 1024 } else { 256 * 1024 * 1024 };

/// How deep tables may lie in each other where a script has allowed more than the default of 1000. The genuine libraries
/// go on to 3999 or 7998, where Lua's stack ends; ours refer to open tables from a stack of mlua's, which ends earlier.
pub(in crate::exec::script::lib) const MAX_DEPTH: usize = 1500;

/// A function of a library.
pub(in crate::exec::script::lib) type Function = fn(&Call<'_>) -> Result<mlua::MultiValue>;

/// A table with these functions.
pub(in crate::exec::script::lib) fn table_of(lua: &Lua, functions: &[(&str, Function)]) -> Result<Table> {
    let table = lua.create_table()?;
    for &(name, function) in functions {
        let function = lua.create_function(move |lua, arguments| function(&Call::new(lua, arguments)))?;
        table.raw_set(name, function)?;
    }
    Ok(table)
}
