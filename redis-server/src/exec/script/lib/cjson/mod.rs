//! `cjson`: JSON to and from Lua values, as in Mark Pulford's lua-cjson 2.1.0.

mod decode;
mod encode;
mod settings;

use std::sync::{Arc, Mutex};

use mlua::{Function, Lua, Result, Table, Value};

use super::call::Call;
use super::raise::values;
use crate::exec::script::lib::cjson::settings::null;
use settings::Settings;

/// The library's table, with settings of its own.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    let settings = Arc::new(Mutex::new(Settings::default()));
    let table = lua.create_table()?;
    for &(name, function) in settings::FUNCTIONS {
        let settings = Arc::clone(&settings);
        let function = lua.create_function(move |lua, arguments| {
            let mut settings = settings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            function(&Call::new(lua, arguments), &mut settings)
        })?;
        table.raw_set(name, function)?;
    }
    let shared = Arc::clone(&settings);
    let next: Function = lua.globals().raw_get("next")?;
    let encode = lua.create_function(move |lua, arguments| {
        let settings = *shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = encode::encode(&Call::new(lua, arguments), &settings, &next)?;
        lua.create_string(text)
    })?;
    let decode = lua.create_function(move |lua, arguments| {
        let settings = *settings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        decode::decode(&Call::new(lua, arguments), &settings)
    })?;
    let new = lua.create_function(|lua, ()| Ok(values([Value::Table(library(lua)?)])))?;
    table.raw_set("encode", encode)?;
    table.raw_set("decode", decode)?;
    table.raw_set("new", new)?;
    table.raw_set("null", null())?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}
