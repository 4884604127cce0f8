//! `cmsgpack`: MessagePack to and from Lua values, as in antirez' lua-cmsgpack 0.4.0.

use mlua::{Error, Lua, MultiValue, Result, Table, Value};

use super::call::{Call, MAX_DEPTH, MAX_OUTPUT, as_number, table_of};
use super::raise::{raise, values};

/// Tables within tables beyond this depth are written as nil.
const MAX_NESTING: usize = 16;

/// How many values may be returned: the most that fit on Lua's stack from C.
const MAX_RESULTS: usize = 7998;

const TOO_MANY: &str = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";

/// The library's table.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    let table = table_of(
        lua,
        &[("pack", pack), ("unpack", unpack), ("unpack_one", unpack_one), ("unpack_limit", unpack_limit)],
    )?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}

fn pack(call: &Call<'_>) -> Result<MultiValue> {
    if call.is_empty() {
        return Err(call.bad_argument(0, "MessagePack pack needs input."));
    }
    let mut writer = Writer { lua: call.lua, out: Vec::new() };
    for value in call.iter() {
        writer.value(value, 0)?;
    }
    Ok(values([Value::String(call.lua.create_string(writer.out)?)]))
}

struct Writer<'a> {
    lua: &'a Lua,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<()> {
        if self.out.len() > MAX_OUTPUT {
            return Err(raise(self.lua, "not enough memory"));
        }
        match value {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Boolean(value) => self.out.push(if *value { 0xc3 } else { 0xc2 }),
            Value::Integer(int) => self.int(*int),
            Value::Number(number) => self.number(*number),
            Value::Table(table) if level < MAX_NESTING => self.table(table, level)?,
            _ => self.out.push(0xc0),
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) {
        self.head(text.len(), (0xa0, 31), Some(0xd9), (0xda, 0xdb));
        self.out.extend_from_slice(text);
    }

    /// A type with its length, by the shortest of its forms.
    fn head(&mut self, len: usize, (fixed, most): (u8, usize), byte: Option<u8>, (short, long): (u8, u8)) {
        match (len, byte) {
            (..) if len <= most => self.out.push(fixed | len as u8),
            (0..=0xff, Some(byte)) => self.out.extend_from_slice(&[byte, len as u8]),
            (0..=0xffff, _) => {
                self.out.push(short);
                self.out.extend_from_slice(&(len as u16).to_be_bytes());
            }
            _ => {
                self.out.push(long);
                self.out.extend_from_slice(&(len as u32).to_be_bytes());
            }
        }
    }

    fn number(&mut self, number: f64) {
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
            return self.int(number as i64);
        }
        let single = number as f32;
        if f64::from(single) == number {
            self.out.push(0xca);
            self.out.extend_from_slice(&single.to_be_bytes());
        } else {
            self.out.push(0xcb);
            self.out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn int(&mut self, int: i64) {
        let bytes = int.to_be_bytes();
        let (kind, width) = match int {
            -32..=0x7f => (None, 1),
            0x80..=0xff => (Some(0xcc), 1),
            0x100..=0xffff => (Some(0xcd), 2),
            0x1_0000..=0xffff_ffff => (Some(0xce), 4),
            0x1_0000_0000.. => (Some(0xcf), 8),
            -0x80..=-33 => (Some(0xd0), 1),
            -0x8000..=-0x81 => (Some(0xd1), 2),
            -0x8000_0000..=-0x8001 => (Some(0xd2), 4),
            _ => (Some(0xd3), 8),
        };
        self.out.extend(kind);
        self.out.extend_from_slice(&bytes[8 - width..]);
    }

    fn table(&mut self, table: &Table, level: usize) -> Result<()> {
        let (count, is_array) = shape(table)?;
        if is_array {
            let len = table.raw_len();
            self.head(len, (0x90, 15), None, (0xdc, 0xdd));
            for at in 1..=len {
                self.value(&table.get(at)?, level + 1)?;
            }
            return Ok(());
        }
        self.head(count, (0x80, 15), None, (0xde, 0xdf));
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.value(&key, level + 1)?;
            self.value(&value, level + 1)?;
        }
        Ok(())
    }
}

/// How many entries a table has, and whether their keys are the numbers from 1.
fn shape(table: &Table) -> Result<(usize, bool)> {
    let (mut count, mut most, mut is_array) = (0usize, 0.0f64, true);
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair?;
        count += 1;
        match as_number(&key) {
            Some(key) if key > 0.0 && key.fract() == 0.0 => most = most.max(key),
            _ => is_array = false,
        }
    }
    Ok((count, is_array && most == count as f64))
}

fn unpack(call: &Call<'_>) -> Result<MultiValue> {
    unpack_some(call, 0, 0)
}

fn unpack_one(call: &Call<'_>) -> Result<MultiValue> {
    let offset = if call.is_nil(2) { 0 } else { call.int(2)? };
    unpack_some(call, 1, offset)
}

fn unpack_limit(call: &Call<'_>) -> Result<MultiValue> {
    let limit = call.int(2)?;
    let offset = if call.is_nil(3) { 0 } else { call.int(3)? };
    unpack_some(call, limit, offset)
}

/// Up to `limit` values from `offset` on, behind the offset of what follows them; all values if both are zero.
fn unpack_some(call: &Call<'_>, limit: i32, offset: i32) -> Result<MultiValue> {
    let data = call.string(1)?;
    let data = data.as_bytes();
    let len = data.len();
    let (Ok(most), Ok(start)) = (usize::try_from(limit), usize::try_from(offset)) else {
        // The genuine text has the length where it says limit.
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(raise(call.lua, text));
    };
    if start > len {
        let text = format!("Start offset {start} greater than input length {len}.");
        return Err(raise(call.lua, text));
    }
    let all = most == 0 && start == 0;
    let mut reader = Reader { lua: call.lua, rest: &data[start..] };
    let mut results = Vec::new();
    if !all {
        results.push(Value::Nil);
    }
    let values = if all { usize::MAX } else { most };
    let first = results.len();
    while !reader.rest.is_empty() && results.len() - first < values {
        if results.len() - first >= MAX_RESULTS {
            return Err(raise(call.lua, TOO_MANY));
        }
        results.push(reader.value()?);
    }
    if !all {
        let next = if reader.rest.is_empty() { -1 } else { (len - reader.rest.len()) as i64 };
        results[0] = Value::Integer(next);
    }
    Ok(MultiValue::from_vec(results))
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

/// A table that is being filled.
struct Open {
    table: Table,
    /// How many values, keys counted, are still to come.
    left: usize,
    /// Of an array the last position, of a map the key that waits for its value.
    place: Place,
}

enum Place {
    Array(i64),
    Map(Option<Value>),
}

enum Item {
    Value(Value),
    Table(Open),
}

impl<'a> Reader<'a> {
    /// One value. No recursion: the input decides how deep it goes.
    fn value(&mut self) -> Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            if open.len() >= MAX_DEPTH {
                return Err(raise(self.lua, "stack overflow (in function mp_decode_to_lua_array)"));
            }
            let mut value = match self.item()? {
                Item::Value(value) => value,
                Item::Table(new) => {
                    if new.left > 0 {
                        open.push(new);
                        continue;
                    }
                    Value::Table(new.table)
                }
            };
            // Puts the value into the innermost table, and that into its own if it is full by this.
            loop {
                let Some(inner) = open.last_mut() else { return Ok(value) };
                inner.put(value)?;
                if inner.left > 0 {
                    break;
                }
                let full = open.pop().expect("it was the last one");
                value = Value::Table(full.table);
            }
        }
    }

    fn item(&mut self) -> Result<Item> {
        let kind = self.take(1)?[0];
        let value = match kind {
            0x00..=0x7f => Value::Integer(i64::from(kind)),
            0xe0..=0xff => Value::Integer(i64::from(kind as i8)),
            0x80..=0x8f => return self.map(usize::from(kind & 0x0f)),
            0x90..=0x9f => return self.array(usize::from(kind & 0x0f)),
            0xa0..=0xbf => self.text(usize::from(kind & 0x1f))?,
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(kind == 0xc3),
            0xca => Value::Number(f64::from(f32::from_bits(self.uint(4)? as u32))),
            0xcb => Value::Number(f64::from_bits(self.uint(8)?)),
            0xcc => Value::Integer(self.uint(1)? as i64),
            0xcd => Value::Integer(self.uint(2)? as i64),
            0xce => Value::Integer(self.uint(4)? as i64),
            // The genuine library reads it as a signed integer.
            0xcf | 0xd3 => Value::Number(self.uint(8)? as i64 as f64),
            0xd0 => Value::Integer(i64::from(self.uint(1)? as i8)),
            0xd1 => Value::Integer(i64::from(self.uint(2)? as i16)),
            0xd2 => Value::Integer(i64::from(self.uint(4)? as i32)),
            0xd9..=0xdb => {
                let len = self.uint(1 << (kind - 0xd9))?;
                self.text(len as usize)?
            }
            0xdc | 0xdd => {
                let len = self.uint(2 << (kind - 0xdc))?;
                return self.array(len as usize);
            }
            0xde | 0xdf => {
                let len = self.uint(2 << (kind - 0xde))?;
                return self.map(len as usize);
            }
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => return Err(raise(self.lua, "Bad data format in input.")),
        };
        Ok(Item::Value(value))
    }

    fn array(&self, len: usize) -> Result<Item> {
        Ok(Item::Table(Open { table: self.lua.create_table()?, left: len, place: Place::Array(0) }))
    }

    fn map(&self, len: usize) -> Result<Item> {
        Ok(Item::Table(Open { table: self.lua.create_table()?, left: len * 2, place: Place::Map(None) }))
    }

    fn text(&mut self, len: usize) -> Result<Value> {
        let text = self.take(len)?;
        Ok(Value::String(self.lua.create_string(text)?))
    }

    fn uint(&mut self, width: usize) -> Result<u64> {
        Ok(self.take(width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| raise(self.lua, "Missing bytes in input."))?;
        self.rest = rest;
        Ok(taken)
    }
}

impl Open {
    fn put(&mut self, value: Value) -> Result<()> {
        self.left -= 1;
        match &mut self.place {
            Place::Array(at) => {
                *at += 1;
                self.table.raw_set(*at, value)
            }
            Place::Map(key @ None) => {
                *key = Some(value);
                Ok(())
            }
            Place::Map(key) => match key.take().expect("the other arm has the case without a key") {
                Value::Nil => Err(Error::runtime("table index is nil")),
                Value::Number(number) if number.is_nan() => Err(Error::runtime("table index is NaN")),
                key => self.table.raw_set(key, value),
            },
        }
    }
}
