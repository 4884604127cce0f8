//! `struct`: C structures to and from strings, as in Roberto Ierusalimschy's library with Redis' checks.

use mlua::{Error, Lua, MultiValue, Result, Table, Value};

use super::call::{Call, MAX_OUTPUT, table_of, to_number};
use super::number::{to_i64, to_u64};
use super::raise::{raise, values};

/// The largest integer of a format, in bytes.
const MAX_INTEGER: usize = 32;

/// The alignment that `!` alone stands for.
const MAX_ALIGNMENT: usize = 8;

/// How many results Lua's stack takes from C.
const MAX_RESULTS: usize = 7997;

/// The library's table.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    table_of(lua, &[("pack", pack), ("unpack", unpack), ("size", size)])
}

/// A format as it is read.
struct Format<'a> {
    text: &'a [u8],
    at: usize,
    big: bool,
    alignment: usize,
}

/// A letter of a format with the size that it stands for.
#[derive(Clone, Copy)]
struct Item {
    letter: u8,
    size: usize,
}

impl<'a> Format<'a> {
    /// C strings end at a zero byte.
    fn new(text: &'a [u8]) -> Self {
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        Self { text: &text[..end], at: 0, big: false, alignment: 1 }
    }

    fn next(&mut self, call: &Call<'_>) -> Result<Option<Item>> {
        let Some(&letter) = self.text.get(self.at) else { return Ok(None) };
        self.at += 1;
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.count(call, 1)?,
            b'i' | b'I' => self.integer_size(call)?,
            _ => 0,
        };
        Ok(Some(Item { letter, size }))
    }

    fn integer_size(&mut self, call: &Call<'_>) -> Result<usize> {
        let size = self.count(call, 4)?;
        if size > MAX_INTEGER {
            let text = format!("integral size {size} is larger than limit of {MAX_INTEGER}");
            return Err(raise(call.lua, text));
        }
        Ok(size)
    }

    /// The number at this place, which must be an `int` of C.
    fn count(&mut self, call: &Call<'_>, default: usize) -> Result<usize> {
        if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut number = 0i32;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            let next = number.checked_mul(10).and_then(|number| number.checked_add(i32::from(digit - b'0')));
            number = next.ok_or_else(|| raise(call.lua, "integral size overflow"))?;
            self.at += 1;
        }
        Ok(number as usize)
    }

    /// How many bytes stand before an item that would begin at `position`.
    fn padding(&self, position: usize, item: Item) -> usize {
        if item.size == 0 || item.letter == b'c' {
            return 0;
        }
        let size = item.size.min(self.alignment);
        size.wrapping_sub(position & size.wrapping_sub(1)) & size.wrapping_sub(1)
    }

    /// Handles letters that are no items: byte order, alignment, space.
    fn control(&mut self, call: &Call<'_>, letter: u8) -> Result<()> {
        match letter {
            b' ' => {}
            b'>' => self.big = true,
            b'<' => self.big = false,
            b'!' => {
                let alignment = self.count(call, MAX_ALIGNMENT)?;
                if !alignment.is_power_of_two() {
                    return Err(raise(call.lua, format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            _ => return Err(call.bad_argument(1, &format!("invalid format option '{}'", char::from(letter)))),
        }
        Ok(())
    }
}

fn is_integer(letter: u8) -> bool {
    matches!(letter, b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I')
}

fn pack(call: &Call<'_>) -> Result<MultiValue> {
    let text = call.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let mut out = Vec::new();
    let mut at = 2;
    while let Some(item) = format.next(call)? {
        // The C library counts what it has written; that is the length so far.
        out.resize(out.len() + format.padding(out.len(), item), 0);
        let takes = is_integer(item.letter) || matches!(item.letter, b'f' | b'd' | b'c' | b's');
        if takes && at > call.len() {
            // The C library has put a nil behind the arguments.
            let expected = if matches!(item.letter, b'c' | b's') { "string" } else { "number" };
            return Err(call.bad_argument(at, &format!("{expected} expected, got nil")));
        }
        match item.letter {
            letter if is_integer(letter) => put_integer(&mut out, call.number(at)?, format.big, item.size),
            b'x' => out.push(0),
            b'f' => put_bytes(&mut out, &(call.number(at)? as f32).to_le_bytes(), format.big),
            b'd' => put_bytes(&mut out, &call.number(at)?.to_le_bytes(), format.big),
            b'c' | b's' => {
                let value = call.string(at)?;
                let value = value.as_bytes();
                let size = if item.size == 0 { value.len() } else { item.size };
                let value = value.get(..size).ok_or_else(|| call.bad_argument(at + 1, "string too short"))?;
                out.extend_from_slice(value);
                if item.letter == b's' {
                    out.push(0);
                }
            }
            letter => format.control(call, letter)?,
        }
        at += usize::from(takes);
        if out.len() > MAX_OUTPUT {
            return Err(raise(call.lua, "not enough memory"));
        }
    }
    Ok(values([Value::String(call.lua.create_string(out)?)]))
}

/// Bytes beyond the eighth are zero, also of negative numbers.
fn put_integer(out: &mut Vec<u8>, number: f64, big: bool, size: usize) {
    let value = if number < 0.0 { to_i64(number) as u64 } else { to_u64(number) };
    let mut bytes = [0; MAX_INTEGER];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    put_bytes(out, &bytes[..size], big);
}

fn put_bytes(out: &mut Vec<u8>, little: &[u8], big: bool) {
    let start = out.len();
    out.extend_from_slice(little);
    if big {
        out[start..].reverse();
    }
}

fn unpack(call: &Call<'_>) -> Result<MultiValue> {
    let text = call.string(1)?;
    let text = text.as_bytes();
    let data = call.string(2)?;
    let data = data.as_bytes();
    let position = if call.is_nil(3) { 1 } else { to_i64(call.number(3)?) as usize };
    if position == 0 {
        return Err(call.bad_argument(3, "offset must be 1 or greater"));
    }
    let too_short = || call.bad_argument(2, "data string too short");
    let mut position = position - 1;
    let mut format = Format::new(&text);
    let mut results = Vec::new();
    while let Some(item) = format.next(call)? {
        position = position.wrapping_add(format.padding(position, item));
        let rest = data.get(position..).ok_or_else(too_short)?;
        let bytes = rest.get(..item.size).ok_or_else(too_short)?;
        if results.len() >= MAX_RESULTS {
            return Err(raise(call.lua, "stack overflow (too many results)"));
        }
        let mut used = item.size;
        match item.letter {
            letter if is_integer(letter) => {
                results.push(Value::Number(integer(bytes, format.big, letter.is_ascii_lowercase())));
            }
            b'x' => {}
            b'f' => results.push(Value::Number(f64::from(f32::from_bits(unsigned(bytes, format.big) as u32)))),
            b'd' => results.push(Value::Number(f64::from_bits(unsigned(bytes, format.big)))),
            b'c' => {
                if item.size == 0 {
                    used = counted(call, &mut results)?;
                }
                let bytes = rest.get(..used).ok_or_else(too_short)?;
                results.push(Value::String(call.lua.create_string(bytes)?));
            }
            b's' => {
                let end = memchr::memchr(0, rest).ok_or_else(|| raise(call.lua, "unfinished string in data"))?;
                used = end + 1;
                results.push(Value::String(call.lua.create_string(&rest[..end])?));
            }
            letter => format.control(call, letter)?,
        }
        position += used;
    }
    results.push(Value::Number(position.wrapping_add(1) as i64 as f64));
    Ok(MultiValue::from_vec(results))
}

/// Takes the last result as the size of the string that `c0` stands for.
fn counted(call: &Call<'_>, results: &mut Vec<Value>) -> Result<usize> {
    let missing = || -> Error { raise(call.lua, "format 'c0' needs a previous size") };
    let size = results.pop().and_then(|value| to_number(call.lua, &value)).ok_or_else(missing)?;
    Ok(to_u64(size) as usize)
}

/// The number in these bytes, of which only eight fit into C's integer.
fn unsigned(bytes: &[u8], big: bool) -> u64 {
    let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
}

fn integer(bytes: &[u8], big: bool, signed: bool) -> f64 {
    let mut value = unsigned(bytes, big);
    if !signed {
        return value as f64;
    }
    // The processor takes shifts modulo 64, and so the C library sees the sign of wide integers there.
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32).wrapping_mul(8).wrapping_sub(1));
    if value & mask != 0 {
        value |= mask;
    }
    value as i64 as f64
}

fn size(call: &Call<'_>) -> Result<MultiValue> {
    let text = call.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let mut position = 0usize;
    while let Some(item) = format.next(call)? {
        position = position.wrapping_add(format.padding(position, item));
        match item.letter {
            b's' => return Err(call.bad_argument(1, "option 's' has no fixed size")),
            b'c' if item.size == 0 => return Err(call.bad_argument(1, "option 'c0' has no fixed size")),
            letter if !letter.is_ascii_alphanumeric() => format.control(call, letter)?,
            _ => {}
        }
        position = position.wrapping_add(item.size);
    }
    Ok(values([Value::Number(position as i64 as f64)]))
}
