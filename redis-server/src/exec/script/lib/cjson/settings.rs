//! The settings that scripts can change, and the functions that set and tell them.

use mlua::{MultiValue, Result, Value};

use crate::exec::script::lib::call::Call;
use crate::exec::script::lib::raise::values;

/// How values become text, and text values.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    /// Whether an array with too many holes is written as an object, instead of being refused.
    pub(super) sparse_convert: i32,
    /// An array is sparse if its last position is beyond this multiple of its entries; 0: never.
    pub(super) sparse_ratio: i32,
    /// Positions up to this one never make an array sparse.
    pub(super) sparse_safe: i32,
    pub(super) encode_max_depth: i32,
    pub(super) decode_max_depth: i32,
    pub(super) number_precision: i32,
    /// 0: NaN and infinity are refused; 1: written as such; 2: written as null.
    pub(super) encode_invalid_numbers: i32,
    pub(super) decode_invalid_numbers: i32,
    keep_buffer: i32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: 0,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_max_depth: 1000,
            decode_max_depth: 1000,
            number_precision: 14,
            encode_invalid_numbers: 0,
            decode_invalid_numbers: 1,
            keep_buffer: 1,
        }
    }
}

type Function = fn(&Call<'_>, &mut Settings) -> Result<MultiValue>;

const OFF_ON: &[&str] = &["off", "on"];
const OFF_ON_NULL: &[&str] = &["off", "on", "null"];

/// By name. Each takes new values, or nil for what is to stay, and returns what holds now.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("encode_sparse_array", |call, settings| {
        at_most(call, 3)?;
        let convert = choice(call, 1, &mut settings.sparse_convert, OFF_ON)?;
        let ratio = integer(call, 2, &mut settings.sparse_ratio, 0, i32::MAX)?;
        let safe = integer(call, 3, &mut settings.sparse_safe, 0, i32::MAX)?;
        Ok(values([convert, ratio, safe]))
    }),
    ("encode_max_depth", |call, settings| one_integer(call, &mut settings.encode_max_depth, i32::MAX)),
    ("decode_max_depth", |call, settings| one_integer(call, &mut settings.decode_max_depth, i32::MAX)),
    ("encode_number_precision", |call, settings| one_integer(call, &mut settings.number_precision, 14)),
    ("encode_keep_buffer", |call, settings| one_choice(call, &mut settings.keep_buffer, OFF_ON)),
    ("encode_invalid_numbers", |call, settings| one_choice(call, &mut settings.encode_invalid_numbers, OFF_ON_NULL)),
    ("decode_invalid_numbers", |call, settings| one_choice(call, &mut settings.decode_invalid_numbers, OFF_ON)),
];

fn one_integer(call: &Call<'_>, setting: &mut i32, most: i32) -> Result<MultiValue> {
    at_most(call, 1)?;
    Ok(values([integer(call, 1, setting, 1, most)?]))
}

fn one_choice(call: &Call<'_>, setting: &mut i32, names: &[&str]) -> Result<MultiValue> {
    at_most(call, 1)?;
    Ok(values([choice(call, 1, setting, names)?]))
}

fn at_most(call: &Call<'_>, most: usize) -> Result<()> {
    if call.len() <= most { Ok(()) } else { Err(call.bad_argument(most + 1, "found too many arguments")) }
}

fn integer(call: &Call<'_>, at: usize, setting: &mut i32, least: i32, most: i32) -> Result<Value> {
    if !call.is_nil(at) {
        let value = call.int(at)?;
        if !(least..=most).contains(&value) {
            // The library blames its first argument, whichever it was.
            return Err(call.bad_argument(1, &format!("expected integer between {least} and {most}")));
        }
        *setting = value;
    }
    Ok(Value::Integer(i64::from(*setting)))
}

/// One of the names, of which the first two are also false and true.
fn choice(call: &Call<'_>, at: usize, setting: &mut i32, names: &[&str]) -> Result<Value> {
    match call.get(at) {
        Value::Nil => {}
        Value::Boolean(value) => *setting = i32::from(*value),
        _ => {
            let text = call.string(at)?;
            let text = text.as_bytes();
            let found = names.iter().position(|name| name.as_bytes() == &*text);
            let invalid = || call.bad_argument(at, &format!("invalid option '{}'", String::from_utf8_lossy(&text)));
            *setting = found.ok_or_else(invalid)? as i32;
        }
    }
    match *setting {
        0 | 1 => Ok(Value::Boolean(*setting == 1)),
        other => Ok(Value::String(call.lua.create_string(names[other as usize])?)),
    }
}

/// The value that stands for JSON's null, because a table holds no nil.
pub(super) fn null() -> Value {
    Value::LightUserData(mlua::LightUserData(std::ptr::null_mut()))
}

/// The one argument of `encode` and `decode`.
pub(super) fn only_argument(call: &Call<'_>) -> Result<()> {
    if call.len() == 1 { Ok(()) } else { Err(call.bad_argument(1, "expected 1 argument")) }
}
