//! Errors as C functions raise them: a text, with the position of the caller in front of it.

use mlua::{Error, Lua, MultiValue, Value};

/// An error with this text behind the position of the Lua code that called the running function, as `luaL_error` has it.
pub(super) fn raise(lua: &Lua, text: impl AsRef<str>) -> Error {
    Error::runtime(format!("{}{}", position(lua, 1), text.as_ref()))
}

/// `source:line: ` of the function at this level of the stack, where 0 is the running one; empty if it is not in Lua.
fn position(lua: &Lua, level: usize) -> String {
    let describe = |debug: &mlua::debug::Debug<'_>| {
        let line = debug.current_line().filter(|line| *line > 0)?;
        Some(format!("{}:{line}: ", debug.source().short_src.as_deref().unwrap_or("?")))
    };
    lua.inspect_stack(level, describe).flatten().unwrap_or_default()
}

/// Values as a function returns them.
pub(super) fn values(values: impl IntoIterator<Item = Value>) -> MultiValue {
    values.into_iter().collect()
}
