//! Counting and finding bits.

use super::bits;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// Bits `start..end`.
type BitRange = std::ops::Range<u64>;

/// `BITCOUNT key [start [end [BYTE | BIT]]]`; the start alone is what Valkey takes.
pub(super) fn bitcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    if level.is_72() {
        check_range(args, 2, level.is_valkey())?;
    }
    let Some(value) = cx.db.string(args.key(0))? else {
        cx.reply.int(0);
        return Ok(());
    };
    let len = value.len() as u64;
    let range = match args.len() {
        2 => 0..len * 8,
        3 if level.is_valkey() => clamp(args.int(2)?, -1, false, len),
        4 | 5 => {
            let (start, end) = (args.int(2)?, args.int(3)?);
            if start < 0 && end < 0 && start > end { 0..0 } else { clamp(start, end, is_bit_unit(args, 4)?, len) }
        }
        _ => return Err(Error::Syntax),
    };
    let count = value.with(|bytes| count_range(bytes, range));
    cx.reply.int(count as i64);
    Ok(())
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub(super) fn bitpos(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let bit = match args.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(Error::Static("ERR The bit argument must be 1 or 0.")),
    };
    if cx.config().level().is_72() {
        check_range(args, 3, true)?;
    }
    let Some(value) = cx.db.string(args.key(0))? else {
        cx.reply.int(if bit { -1 } else { 0 });
        return Ok(());
    };
    let len = value.len() as u64;
    let range = match args.len() {
        3 => 0..len * 8,
        4..=6 => {
            let start = args.int(3)?;
            let unit = is_bit_unit(args, 5)?;
            let end = if args.len() > 4 { args.int(4)? } else { -1 };
            clamp(start, end, unit, len)
        }
        _ => return Err(Error::Syntax),
    };
    let found = value.with(|bytes| find_in_range(bytes, range.clone(), bit));
    // Without an end the string goes on with zeros for ever.
    let endless = !bit && args.len() < 5 && !range.is_empty();
    let found = found.or_else(|| endless.then_some(len * 8));
    cx.reply.int(found.map_or(-1, |at| at as i64));
    Ok(())
}

/// Refuses a bad range from argument `first` on before the key is looked at, as Redis does since 7.2.
fn check_range(args: Args<'_>, first: usize, start_alone: bool) -> Result {
    let given = args.len() - first;
    if given == 0 {
        return Ok(());
    }
    if given > 3 || given == 1 && !start_alone {
        return Err(Error::Syntax);
    }
    args.int(first)?;
    is_bit_unit(args, first + 2)?;
    if given > 1 {
        args.int(first + 1)?;
    }
    Ok(())
}

/// Whether argument `index` says that a range is in bits, not in bytes.
fn is_bit_unit(args: Args<'_>, index: usize) -> Result<bool> {
    match args.get(index) {
        None => Ok(false),
        Some(unit) if unit.eq_ignore_ascii_case(b"BIT") => Ok(true),
        Some(unit) if unit.eq_ignore_ascii_case(b"BYTE") => Ok(false),
        Some(_) => Err(Error::Syntax),
    }
}

/// The bits from `start` to `end`, both included, negative ones counted from the end, of `len` bytes.
fn clamp(start: i64, end: i64, in_bits: bool, len: u64) -> BitRange {
    let (total, size) = if in_bits { (len * 8, 1) } else { (len, 8) };
    let from_start = |at: i64| if at < 0 { at.saturating_add_unsigned(total).max(0) as u64 } else { at as u64 };
    let start = from_start(start);
    let end = from_start(end).saturating_add(1).min(total);
    if start < end { start * size..end * size } else { 0..0 }
}

fn count_range(bytes: &[u8], range: BitRange) -> u64 {
    let bytes = &bytes[(range.start / 8) as usize..range.end.div_ceil(8) as usize];
    let [first, ..] = bytes else { return 0 };
    // Counts whole bytes, and subtracts their bits outside of the range.
    let before = first & !(0xff >> (range.start % 8));
    let behind = bytes[bytes.len() - 1] & !(0xff << (range.end.next_multiple_of(8) - range.end));
    bits::count(bytes) - u64::from(before.count_ones() + behind.count_ones())
}

fn find_in_range(bytes: &[u8], range: BitRange, bit: bool) -> Option<u64> {
    let first = range.start / 8;
    let (head, rest) = bytes[first as usize..range.end.div_ceil(8) as usize].split_first()?;
    let inside = 0xff >> (range.start % 8);
    let head = if bit { head & inside } else { head | !inside };
    let in_head = bits::find(&[head], bit).map(|at| first * 8 + at);
    let found = in_head.or_else(|| bits::find(rest, bit).map(|at| (first + 1) * 8 + at));
    found.filter(|&at| at < range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_a_few_bytes() {
        let bytes = b"\x00\x5a\xff\x01\x80";
        let bit = |at: &u64| bytes[(at / 8) as usize] >> (7 - at % 8) & 1 == 1;
        for start in 0..40 {
            for end in start..=40 {
                let ones = (start..end).filter(bit).count();
                assert_eq!(count_range(bytes, start..end), ones as u64, "{start}..{end}");
                for one in [false, true] {
                    let first = (start..end).find(|at| bit(at) == one);
                    assert_eq!(find_in_range(bytes, start..end, one), first, "{one} in {start}..{end}");
                }
            }
        }
    }
}
