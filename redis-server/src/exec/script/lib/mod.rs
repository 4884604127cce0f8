//! The libraries that scripts of Redis 7.0 have besides Lua's own: `cjson`, `cmsgpack`, `bit` and `struct`.
//!
//! Each is a table of functions in Rust. Their results, their refusals and the texts of these equal those of the C
//! libraries that the genuine server loads. Errors are mlua's `RuntimeError`, whose text is all that a script is to see.

mod bit;
mod call;
mod cjson;
mod cmsgpack;
mod number;
mod raise;
mod structs;

use mlua::{Lua, Result, Table};

use call::Call;

/// The most bytes that one call may produce: half of what Redis allows a string to have. A small table that holds itself
/// many times over would otherwise fill the memory.
const MAX_OUTPUT: usize = if cfg!(test) { 1024 * 1024 } else { 256 * 1024 * 1024 };

/// How deep tables may lie in each other where a script has allowed more than the default of 1000. The genuine libraries
/// go on to 3999 or 7998, where Lua's stack ends; ours refer to open tables from a stack of mlua's, which ends earlier.
const MAX_DEPTH: usize = 1500;

/// Adds the libraries to the globals of `lua`.
///
/// # Errors
/// When Lua's memory does not suffice.
pub fn register(lua: &Lua) -> Result<()> {
    let globals = lua.globals();
    globals.raw_set("cjson", cjson::library(lua)?)?;
    globals.raw_set("cmsgpack", cmsgpack::library(lua)?)?;
    globals.raw_set("bit", bit::library(lua)?)?;
    globals.raw_set("struct", structs::library(lua)?)
}

/// A function of a library.
type Function = fn(&Call<'_>) -> Result<mlua::MultiValue>;

/// A table with these functions.
fn library(lua: &Lua, functions: &[(&str, Function)]) -> Result<Table> {
    let table = lua.create_table()?;
    for &(name, function) in functions {
        let function = lua.create_function(move |lua, arguments| function(&Call::new(lua, arguments)))?;
        table.raw_set(name, function)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
