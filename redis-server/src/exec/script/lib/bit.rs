//! `bit`: operations on 32-bit integers, as in Lua BitOp 1.0.2.

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::call::{Call, table_of, to_number};
use super::raise::values;

/// The library's table.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    table_of(
        lua,
        &[
            ("tobit", |call| number(bits(call, 1)?)),
            ("bnot", |call| number(!bits(call, 1)?)),
            ("band", |call| combine(call, |a, b| a & b)),
            ("bor", |call| combine(call, |a, b| a | b)),
            ("bxor", |call| combine(call, |a, b| a ^ b)),
            ("lshift", |call| shift(call, |value, by| value << by)),
            ("rshift", |call| shift(call, |value, by| value >> by)),
            ("arshift", |call| shift(call, |value, by| ((value as i32) >> by) as u32)),
            ("rol", |call| shift(call, u32::rotate_left)),
            ("ror", |call| shift(call, u32::rotate_right)),
            ("bswap", |call| number(bits(call, 1)?.swap_bytes())),
            ("tohex", to_hex),
        ],
    )
}

/// A number's low 32 bits: rounded to the nearest integer, halves to the even one, modulo 2^32.
fn bits(call: &Call<'_>, at: usize) -> Result<u32> {
    /// 2^52 + 2^51: added to a double, it leaves the integer in the low bits of the sum.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let number = to_number(call.lua, call.get(at)).ok_or_else(|| call.type_error(at, "number"))?;
    Ok((number + MAGIC).to_bits() as u32)
}

/// Results are signed.
fn number(bits: u32) -> Result<MultiValue> {
    Ok(values([Value::Number(f64::from(bits as i32))]))
}

/// Folds all arguments; the C library looks at the first one first, and at the others from the end.
fn combine(call: &Call<'_>, operation: fn(u32, u32) -> u32) -> Result<MultiValue> {
    let mut result = bits(call, 1)?;
    for at in (2..=call.len()).rev() {
        result = operation(result, bits(call, at)?);
    }
    number(result)
}

fn shift(call: &Call<'_>, operation: fn(u32, u32) -> u32) -> Result<MultiValue> {
    let value = bits(call, 1)?;
    number(operation(value, bits(call, 2)? & 31))
}

/// The last digits of a number, eight unless it is said how many; capital ones for a negative count.
fn to_hex(call: &Call<'_>) -> Result<MultiValue> {
    let value = bits(call, 1)?;
    let count = if call.len() < 2 { 8 } else { bits(call, 2)? as i32 };
    let text = if count < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let digits = count.unsigned_abs().min(8) as usize;
    Ok(values([Value::String(call.lua.create_string(&text[8 - digits..])?)]))
}
