//! The hash slot of a key (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model>).

use crate::protocol::error::Error;
use crate::protocol::number::parse_i64;

/// Parts of the keyspace, each of which belongs to one primary.
pub const SLOTS: usize = 16_384;

/// CRC16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;
/// Bytes that are taken in one step, at most: many keys are shorter than two of them.
const STEP: usize = 16;
/// Bytes that are taken in one step of what is left.
const HALF: usize = STEP / 2;

/// `TABLES[k][byte]`: the checksum of `byte` with `k` zeros behind it.
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
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: the slot of every key in a pipeline is found here")]
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16::<true>(key).unwrap_or_else(|| sum_of_tag(key)) % SLOTS as u16
}

/// A client's word as a slot.
///
/// # Errors
/// It is none.
pub fn parse(word: &[u8]) -> Result<u16, Error> {
    let slot = parse_i64(word).and_then(|slot| u16::try_from(slot).ok());
    slot.filter(|slot| usize::from(*slot) < SLOTS).ok_or(Error::Static("ERR Invalid or out of range slot"))
}

/// The sum of what counts of a key with a `{`.
#[cold]
fn sum_of_tag(key: &[u8]) -> u16 {
    let find = |bytes: &[u8], byte| bytes.iter().position(|other| *other == byte);
    let inside = find(key, b'{').map_or(key, |open| &key[open + 1..]);
    let hashed = match find(inside, b'}') {
        None | Some(0) => key,
        Some(len) => &inside[..len],
    };
    crc16::<false>(hashed).expect("it does not stop")
}

/// The sum of these bytes; none if it `STOPS` because one of them is a `{`. Nearly no key has one: it is looked for on the way.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: as above")]
fn crc16<const STOPS: bool>(bytes: &[u8]) -> Option<u16> {
    let (rest, mut steps) = bytes.as_rchunks::<STEP>();
    let mut sum = 0;
    if rest.is_empty() {
        // A step from nothing is a shorter one, and has a place of its own in the program.
        let Some((first, others)) = steps.split_first() else { return Some(0) };
        (sum, steps) = (step::<STEP, STOPS>(0, first)?, others);
    } else {
        let (first, halves) = rest.as_rchunks::<HALF>();
        for byte in first {
            sum = step::<1, STOPS>(sum, &[*byte])?;
        }
        for half in halves {
            sum = step::<HALF, STOPS>(sum, half)?;
        }
    }
    // Loops, not folds: a fold's closure is a call again.
    for bytes in steps {
        sum = step::<STEP, STOPS>(sum, bytes)?;
    }
    Some(sum)
}

/// The checksum after some more bytes.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: as above")]
fn step<const N: usize, const STOPS: bool>(sum: u16, bytes: &[u8; N]) -> Option<u16> {
    // All of them are looked at, so that it is one comparison.
    if STOPS && bytes.iter().fold(false, |any, byte| any | (*byte == b'{')) {
        return None;
    }
    let of = |at: usize, byte: u8| TABLES[N - 1 - at][usize::from(byte)];
    let [high, low] = sum.to_be_bytes();
    let first = of(0, bytes[0] ^ high);
    if N == 1 {
        return Some(sum << 8 ^ first);
    }
    Some((2..N).fold(first ^ of(1, bytes[1] ^ low), |sum, at| sum ^ of(at, bytes[at])))
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
        assert_eq!(crc16::<true>(b"123456789"), Some(0x31c3));
        let bytes: Vec<u8> = (0..200u32).map(|at| (at * 167 + 13) as u8).collect();
        for from in 0..16 {
            for to in from..bytes.len() {
                assert_eq!(crc16::<false>(&bytes[from..to]), Some(plainly(&bytes[from..to])), "{from}..{to}");
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
            ("a key of 16 char", "a key of 16 char"),
            ("{a tag that is longer than 16} and more", "a tag that is longer than 16"),
        ] {
            check(key, hashed);
        }
    }

    #[test]
    fn an_open_brace_is_found_wherever_it_is() {
        for len in 0..40 {
            let mut bytes = vec![b'|'; len];
            assert!(crc16::<true>(&bytes).is_some(), "{len}");
            for at in 0..len {
                bytes[at] = b'{';
                assert_eq!(crc16::<true>(&bytes), None, "{at} of {len}");
                bytes[at] = b'z';
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
