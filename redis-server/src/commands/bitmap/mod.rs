//! Bitmaps (<https://redis.io/docs/latest/commands/?group=bitmap>): bits of strings, the highest of the first byte
//! first.

mod bits;
mod combine;
mod count;
mod field;

use crate::command::{Args, Categories, Flags, KeySpec, Result, Weight, read, reads, update, weight, write};
use crate::commands::definition::{Family, cmd};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{StrRef, View};
use crate::protocol::error::Error;
use crate::protocol::number;

const BAD_OFFSET: Error = Error::Static("ERR bit offset is not an integer or out of range");

/// A bit's offset; `#n`, where `unit` is given, is the `n`th group of so many bits. Strings longer than
/// `max_len` bytes have no bits there.
fn bit_offset(max_len: u64, text: &[u8], unit: Option<u64>) -> Result<u64> {
    let (text, unit) = match (text, unit) {
        ([b'#', rest @ ..], Some(unit)) => (rest, unit),
        _ => (text, 1),
    };
    let number = number::parse_i64(text).and_then(|number| u64::try_from(number).ok());
    let offset = number.and_then(|number| number.checked_mul(unit)).ok_or(BAD_OFFSET)?;
    if offset / 8 < max_len { Ok(offset) } else { Err(BAD_OFFSET) }
}

/// Bytes that a string may have.
fn max_len(cx: &Ctx<'_>) -> u64 {
    cx.config().uint(settings::PROTO_MAX_BULK_LEN)
}

/// Bytes that no string has, for estimates without a configuration. Sums of such offsets still have room in 64 bits.
const BEYOND_ALL: u64 = 1 << 48;

/// The work of SETBIT.
fn setbit_weight(view: &View<'_>, args: Args<'_>) -> usize {
    let offset = bit_offset(BEYOND_ALL, args.at(2), None);
    weight::filling(view, args, |_| Some(offset.ok()? / 8 + 1))
}

/// SETBIT key offset value
fn setbit(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let offset = bit_offset(max_len(cx), args.at(2), None)?;
    let on = match args.at(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(Error::Static("ERR bit is not an integer or out of range")),
    };
    let key = args.key(0);
    let index = (offset / 8) as usize;
    let mask = 0x80 >> (offset % 8);
    let write = |bytes: &mut [u8]| {
        let old = bytes[index] & mask != 0;
        bytes[index] = if on { bytes[index] | mask } else { bytes[index] & !mask };
        old
    };
    let (old, grown) = cx.db.write_string(key, index + 1, write)?;
    if grown || old != on {
        cx.changed(key, Event::SETBIT);
    }
    cx.reply.int(i64::from(old));
    Ok(())
}

/// GETBIT key offset
fn getbit(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let offset = bit_offset(max_len(cx), args.at(2), None)?;
    let value = cx.db.string(args.key(0))?.unwrap_or(EMPTY);
    let byte = value.with(|bytes| bytes.get((offset / 8) as usize).copied().unwrap_or(0));
    cx.reply.int(i64::from(byte >> (7 - offset % 8) & 1));
    Ok(())
}

/// The value of a missing key.
const EMPTY: StrRef<'_> = StrRef::Bytes { bytes: b"", raw: false };

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const FIELD: KeySpec = update(1).flags("RW access update variable_flags");

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "bitmap", category: Categories::BITMAP, commands: &[
    cmd("bitcount",    -2, count::bitcount,    READ,      &[read(1)]).weighs(Weight::Of(weight::values)),
    cmd("bitfield",    -2, field::bitfield,    WRITE,     &[FIELD]).batched_if_light(field::bitfield_weight),
    cmd("bitfield_ro", -2, field::bitfield_ro, READ_FAST, &[read(1)]),
    cmd("bitop",       -4, combine::bitop,     WRITE,     &[write(2), reads(3, -1, 1)]).weighs(Weight::Of(weight::values)),
    cmd("bitpos",      -3, count::bitpos,      READ,      &[read(1)]).weighs(Weight::Of(weight::values)),
    cmd("getbit",       3, getbit,             READ_FAST, &[read(1)]),
    cmd("setbit",       4, setbit,             WRITE,     &[update(1)]).batched_if_light(setbit_weight),
] };
