//! Values to JSON.

use mlua::{Error, Function, Lua, Result, Table, Value};

use super::settings::{Settings, only_argument};
use crate::exec::script::lib::call::{Call, MAX_DEPTH, MAX_OUTPUT, as_number, type_name};
use crate::exec::script::lib::number::general;
use crate::exec::script::lib::raise::raise;

/// The text of the argument. `next` is Lua's function of this name.
pub(super) fn encode(call: &Call<'_>, settings: &Settings, next: &Function) -> Result<Vec<u8>> {
    only_argument(call)?;
    let mut writer = Writer { lua: call.lua, settings, out: Vec::new(), open: Vec::new() };
    writer.value(call.get(1))?;
    while let Some(value) = writer.step(next)? {
        writer.value(&value)?;
    }
    Ok(writer.out)
}

/// A table that is being written.
enum Open {
    Array { table: Table, at: u64, len: u64 },
    Object { table: Table, key: Value },
}

/// No recursion: scripts decide how deep it goes.
struct Writer<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    out: Vec<u8>,
    open: Vec<Open>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Result<()> {
        if self.out.len() > MAX_OUTPUT {
            return Err(raise(self.lua, "not enough memory"));
        }
        match value {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => self.number(value)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Table(table) => self.begin(table)?,
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            _ => return Err(self.refused(value, "type not supported")),
        }
        Ok(())
    }

    fn refused(&self, value: &Value, reason: &str) -> Error {
        raise(self.lua, format!("Cannot serialise {}: {reason}", type_name(value)))
    }

    fn text(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut plain = 0;
        for (at, &byte) in text.iter().enumerate() {
            let escape: &[u8] = match byte {
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                b'/' => b"\\/",
                0x08 => b"\\b",
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                0x0c => b"\\f",
                b'\r' => b"\\r",
                0..0x20 | 0x7f => b"",
                _ => continue,
            };
            self.out.extend_from_slice(&text[plain..at]);
            self.out.extend_from_slice(escape);
            if escape.is_empty() {
                self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            }
            plain = at + 1;
        }
        self.out.extend_from_slice(&text[plain..]);
        self.out.push(b'"');
    }

    fn number(&mut self, value: &Value) -> Result<()> {
        let number = as_number(value).unwrap_or_default();
        if !number.is_finite() {
            match self.settings.encode_invalid_numbers {
                0 => return Err(self.refused(value, "must not be NaN or Inf")),
                // Without the sign that C may print.
                1 if number.is_nan() => self.out.extend_from_slice(b"nan"),
                1 => self.out.extend_from_slice(&general(number, 14)),
                _ => self.out.extend_from_slice(b"null"),
            }
            return Ok(());
        }
        match value {
            // An integer that has no more digits than the precision is printed as it is.
            Value::Integer(int) if int.unsigned_abs() < 10u64.pow(self.settings.number_precision as u32) => {
                self.out.extend_from_slice(itoa::Buffer::new().format(*int).as_bytes());
            }
            _ => self.out.extend_from_slice(&general(number, self.settings.number_precision as usize)),
        }
        Ok(())
    }

    fn begin(&mut self, table: &Table) -> Result<()> {
        let depth = self.open.len() + 1;
        if depth > MAX_DEPTH.min(self.settings.encode_max_depth as usize) {
            return Err(raise(self.lua, format!("Cannot serialise, excessive nesting ({depth})")));
        }
        let table = table.clone();
        match self.array_len(&table)? {
            Some(len) if len > 0 => {
                self.out.push(b'[');
                self.open.push(Open::Array { table, at: 0, len });
            }
            _ => {
                self.out.push(b'{');
                self.open.push(Open::Object { table, key: Value::Nil });
            }
        }
        Ok(())
    }

    /// Goes on with the innermost table: writes what stands before its next value and returns that. Closes those that
    /// are complete; nothing is left to write when all are.
    fn step(&mut self, next: &Function) -> Result<Option<Value>> {
        loop {
            match self.open.last_mut() {
                None => return Ok(None),
                Some(Open::Array { table, at, len }) => {
                    if at < len {
                        if *at > 0 {
                            self.out.push(b',');
                        }
                        *at += 1;
                        return table.raw_get(*at as i64).map(Some);
                    }
                    self.out.push(b']');
                }
                Some(Open::Object { table, key }) => {
                    let is_first = key.is_nil();
                    let (found, value): (Value, Value) = next.call((&*table, &*key))?;
                    if !found.is_nil() {
                        *key = found.clone();
                        if !is_first {
                            self.out.push(b',');
                        }
                        self.key(&found)?;
                        return Ok(Some(value));
                    }
                    self.out.push(b'}');
                }
            }
            self.open.pop();
        }
    }

    fn key(&mut self, key: &Value) -> Result<()> {
        match key {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.number(key)?;
                self.out.push(b'"');
            }
            _ => return Err(self.refused(key, "table key must be a number or string")),
        }
        self.out.push(b':');
        Ok(())
    }

    /// The last position of a table whose keys are all positions; none of one that is to be an object.
    fn array_len(&self, table: &Table) -> Result<Option<u64>> {
        let (mut last, mut items) = (0i32, 0u32);
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair?;
            match as_number(&key) {
                Some(key) if key >= 1.0 && key.fract() == 0.0 => {
                    // An `int` in C, into which x86-64 converts what does not fit as the smallest one.
                    if key > f64::from(last) {
                        last = if key > f64::from(i32::MAX) { i32::MIN } else { key as i32 };
                    }
                }
                _ => return Ok(None),
            }
            items = items.saturating_add(1);
        }
        let settings = self.settings;
        let (ratio, safe) = (settings.sparse_ratio, settings.sparse_safe);
        if ratio > 0 && i64::from(last) > i64::from(items) * i64::from(ratio) && last > safe {
            if settings.sparse_convert == 0 {
                return Err(raise(self.lua, "Cannot serialise table: excessively sparse array"));
            }
            return Ok(None);
        }
        let len = u64::try_from(last).unwrap_or(0);
        // Every value has a byte at least, and its comma.
        if len as usize > MAX_OUTPUT / 2 {
            return Err(raise(self.lua, "not enough memory"));
        }
        Ok(Some(len))
    }
}
