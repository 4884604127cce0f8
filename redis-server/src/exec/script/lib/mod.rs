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

use mlua::{Lua, Result};

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

#[cfg(test)]
mod tests;
