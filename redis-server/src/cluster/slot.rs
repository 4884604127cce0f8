//! The hash slot of a key (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model>).

use std::ops::ControlFlow::{self, Break, Continue};

use crate::protocol::error::Error;
use crate::protocol::number::parse_i64;

/// Parts of the keyspace, each of which belongs to one primary.
pub const SLOTS: usize = 16_384;

/// Bytes that are taken in one step.
const STEP: usize = 8;
/// CRC16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

/// `TABLES[k][byte]`: what `byte` with `k` zeros behind it makes of an empty sum.
static TABLES: [[u16; 256]; STEP] = tables();

const fn tables() -> [[u16; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            sum = sum << 1 ^ if sum & 0x8000 != 0 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = before << 8 ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The slot of a key: that of its tag, the text between its first `{` and the next `}`, where there is some, else that of the
/// whole key.
#[inline]
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    let hashed = match find(key, b'{') {
        None => key,
        Some(open) => tag(key, open),
    };
    crc16(hashed) % SLOTS as u16
}

/// A client's word as a slot.
///
/// # Errors
/// It is none.
pub fn parse(word: &[u8]) -> Result<u16, Error> {
    let slot = parse_i64(word).and_then(|slot| u16::try_from(slot).ok());
    slot.filter(|slot| usize::from(*slot) < SLOTS).ok_or(Error::Static("ERR Invalid or out of range slot"))
}

/// What is hashed of a key with a `{` at `open`.
#[cold]
fn tag(key: &[u8], open: usize) -> &[u8] {
    let inside = &key[open + 1..];
    match find(inside, b'}') {
        None | Some(0) => key,
        Some(len) => &inside[..len],
    }
}

/// Where `byte` first is.
#[inline]
fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    let wanted = ONES * u64::from(byte);
    let (chunks, rest) = bytes.as_chunks::<STEP>();
    // Of keys, which are short, most have none: it is only asked whether a whole chunk has one.
    let looked = chunks.iter().try_fold(0, |at, chunk| -> ControlFlow<usize, usize> {
        let differ = u64::from_le_bytes(*chunk) ^ wanted;
        let zeros = differ.wrapping_sub(ONES) & !differ & ONES << 7;
        if zeros == 0 { Continue(at + STEP) } else { Break(at + zeros.trailing_zeros() as usize / 8) }
    });
    match looked {
        Break(at) => Some(at),
        Continue(at) => rest.iter().position(|&other| other == byte).map(|offset| at + offset),
    }
}

#[inline]
fn crc16(bytes: &[u8]) -> u16 {
    let (chunks, rest) = bytes.as_chunks::<STEP>();
    let of = |zeros: usize, byte: u8| TABLES[zeros][usize::from(byte)];
    let sum = chunks.iter().fold(0u16, |sum, &[a, b, c, d, e, f, g, h]| {
        let [high, low] = sum.to_be_bytes();
        of(7, a ^ high) ^ of(6, b ^ low) ^ of(5, c) ^ of(4, d) ^ of(3, e) ^ of(2, f) ^ of(1, g) ^ of(0, h)
    });
    rest.iter().fold(sum, |sum, byte| sum << 8 ^ of(0, (sum >> 8) as u8 ^ byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the specification says it.
    fn plainly(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |sum, &byte| {
            (0..8).fold(sum ^ u16::from(byte) << 8, |sum: u16, _| {
                sum << 1 ^ if sum & 0x8000 != 0 { POLYNOMIAL } else { 0 }
            })
        })
    }

    #[test]
    fn the_sum_is_the_specification_s() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let bytes: Vec<u8> = (0..200u32).map(|at| (at * 167 + 13) as u8).collect();
        for from in 0..16 {
            for to in from..bytes.len() {
                assert_eq!(crc16(&bytes[from..to]), plainly(&bytes[from..to]), "{from}..{to}");
            }
        }
    }

    #[test]
    fn a_tag_stands_for_its_key() {
        let check = |key: &str, hashed: &str| {
            assert_eq!(slot_of(key.as_bytes()), plainly(hashed.as_bytes()) % SLOTS as u16, "{key}");
        };
        assert_eq!((slot_of(b"foo"), slot_of(b""), slot_of(b"somekey")), (12182, 0, 11058));
        for (key, hashed) in [
            ("user:1000", "user:1000"),
            ("{user1000}.following", "user1000"),
            ("a long prefix{user1000}.followers", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("}{", "}{"),
            ("a}b{c}d", "c"),
            ("{", "{"),
            ("12345678{x}", "x"),
            ("1234567{x}", "x"),
        ] {
            check(key, hashed);
        }
    }

    #[test]
    fn a_byte_is_found_where_it_first_is() {
        for len in 0..40 {
            let mut bytes = vec![b'|'; len];
            assert_eq!(find(&bytes, b'{'), None, "{len}");
            for at in (0..len).rev() {
                bytes[at] = b'{';
                assert_eq!(find(&bytes, b'{'), Some(at), "{at} of {len}");
            }
        }
    }

    #[test]
    fn words_that_are_slots() {
        for (word, expected) in [("0", Some(0)), ("16383", Some(16383)), ("16384", None), ("-1", None), ("x", None)] {
            assert_eq!(parse(word.as_bytes()).ok(), expected, "{word}");
        }
    }
}
