//! The sparse form of a HyperLogLog: runs of equal registers.
//!
//! ```text
//! 00zzzzzz                z + 1 zeros
//! 01zzzzzz zzzzzzzz       z + 1 zeros
//! 1vvvvvll                l + 1 times v + 1
//! ```

use std::fmt::Write as _;

use smallvec::SmallVec;

use super::{Corrupt, HEADER, REGISTERS};

/// The largest register that a run can hold.
const MAX_VALUE: u8 = 32;
/// The longest run of a value, and of zeros in one byte.
const MAX_VALUES: usize = 4;
const MAX_ZEROS: usize = 64;
/// Runs that are looked at for neighbours of the same value, from the one before a change on.
const MERGE_RUNS: usize = 5;

/// A run: its registers, their value, and the bytes that it takes.
#[derive(Clone, Copy, Debug)]
struct Run {
    len: usize,
    value: u8,
    size: usize,
}

/// The run at the start of `bytes`, which are not empty. A last byte that announces another one has a zero there, as the
/// genuine server sees its strings' end.
fn run(bytes: &[u8]) -> Run {
    let first = bytes[0];
    match first >> 6 {
        0 => Run { len: usize::from(first) + 1, value: 0, size: 1 },
        1 => {
            let second = bytes.get(1).copied().unwrap_or(0);
            Run { len: (usize::from(first & 63) << 8 | usize::from(second)) + 1, value: 0, size: 2 }
        }
        _ => Run { len: usize::from(first & 3) + 1, value: (first >> 2 & 31) + 1, size: 1 },
    }
}

/// Calls `visit` with the first register of each run, and the run.
fn walk(mut bytes: &[u8], mut visit: impl FnMut(usize, Run)) -> Result<(), Corrupt> {
    let mut index = 0;
    while !bytes.is_empty() {
        let run = run(bytes);
        if index + run.len > REGISTERS {
            return Err(Corrupt);
        }
        visit(index, run);
        index += run.len;
        bytes = &bytes[run.size.min(bytes.len())..];
    }
    if index == REGISTERS { Ok(()) } else { Err(Corrupt) }
}

/// Calls `visit` with every register that is not zero.
pub(super) fn for_each(bytes: &[u8], mut visit: impl FnMut(usize, u8)) -> Result<(), Corrupt> {
    walk(bytes, |index, run| {
        if run.value > 0 {
            (index..index + run.len).for_each(|index| visit(index, run.value));
        }
    })
}

/// Counts the registers of each value.
pub(super) fn histogram(bytes: &[u8], histogram: &mut [u32; 64]) -> Result<(), Corrupt> {
    walk(bytes, |_, run| histogram[usize::from(run.value)] += run.len as u32)
}

/// The runs in words, for `PFDEBUG DECODE`: `Z:` and `z:` are zeros, `v:` is a value and how often.
pub fn describe(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = &bytes[HEADER..];
    while !rest.is_empty() {
        let run = run(rest);
        let space = if text.is_empty() { "" } else { " " };
        let written = match (run.value, run.size) {
            (0, 1) => write!(text, "{space}z:{}", run.len),
            (0, _) => write!(text, "{space}Z:{}", run.len),
            (value, _) => write!(text, "{space}v:{value},{}", run.len),
        };
        written.expect("a String takes any write");
        rest = &rest[run.size.min(rest.len())..];
    }
    text
}

/// Appends `len` zeros.
pub(super) fn push_zeros(bytes: &mut impl Extend<u8>, len: usize) {
    match len {
        0 => {}
        1..=MAX_ZEROS => bytes.extend([len as u8 - 1]),
        _ => bytes.extend([0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
    }
}

/// Appends `value` `len` times.
fn push_values(bytes: &mut impl Extend<u8>, value: u8, len: usize) {
    if len > 0 {
        bytes.extend([values(value, len)]);
    }
}

fn values(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len as u8 - 1)
}

/// Raises register `index` to `count`; whether it was lower. `None` if only the dense form can hold that, or would be
/// longer than `max` bytes otherwise.
pub(super) fn raise(bytes: &mut Vec<u8>, index: usize, count: u8, max: usize) -> Result<Option<bool>, Corrupt> {
    if count > MAX_VALUE {
        return Ok(None);
    }
    let (mut before, mut at, mut first) = (HEADER, HEADER, 0);
    let old = loop {
        if at >= bytes.len() {
            return Err(Corrupt);
        }
        let run = run(&bytes[at..]);
        if index < first + run.len {
            break run;
        }
        before = at;
        at += run.size;
        first += run.len;
    };
    if old.value >= count {
        return Ok(Some(false));
    }
    let (left, right) = (index - first, first + old.len - 1 - index);
    let mut new: SmallVec<[u8; 8]> = SmallVec::new();
    if old.value == 0 {
        push_zeros(&mut new, left);
        push_values(&mut new, count, 1);
        push_zeros(&mut new, right);
    } else {
        push_values(&mut new, old.value, left);
        push_values(&mut new, count, 1);
        push_values(&mut new, old.value, right);
    }
    let end = (at + old.size).min(bytes.len());
    let size = end - at;
    if new.len() > size && bytes.len() + new.len() - size > max {
        return Ok(None);
    }
    bytes.splice(at..end, new);
    join(bytes, before);
    super::set_cached(bytes, None);
    Ok(Some(true))
}

/// Makes one of neighbouring runs of the same value, from `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGE_RUNS {
        if at >= bytes.len() {
            return;
        }
        let this = run(&bytes[at..]);
        let next = bytes.get(at + 1).filter(|_| this.value > 0).map(|_| run(&bytes[at + 1..]));
        match next {
            Some(next) if next.value == this.value && this.len + next.len <= MAX_VALUES => {
                bytes[at + 1] = values(this.value, this.len + next.len);
                bytes.remove(at);
            }
            _ => at += this.size,
        }
    }
}
