//! The names of a stream's entries: a time in milliseconds and a number within it.

use std::fmt;

/// Longest text that is read as an id, as in the genuine server.
const MAX_TEXT: usize = 127;

/// An entry's id. Ids only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    /// Milliseconds of Unix time, or whatever the writer takes for it.
    pub ms: u64,
    /// Number among the entries of that millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The smallest id, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The largest id.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// The id right behind this one.
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The id right before this one.
    pub fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Reads `ms-seq`, or `ms` with `missing_seq` for the rest.
    pub fn parse(text: &[u8], missing_seq: u64) -> Option<Self> {
        let (ms, seq) = halves(text)?;
        Some(Self { ms: parse_u64(ms)?, seq: seq.map_or(Some(missing_seq), parse_u64)? })
    }

    /// Reads the milliseconds of `ms-*`.
    pub fn parse_open(text: &[u8]) -> Option<u64> {
        match halves(text)? {
            (ms, Some(b"*")) => parse_u64(ms),
            _ => None,
        }
    }

    /// [`StreamId::to_be_bytes`], backwards.
    pub fn from_be_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { ms: (both >> 64) as u64, seq: both as u64 }
    }

    /// The id as 16 bytes that sort like it.
    pub fn to_be_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// The parts before and behind the first `-`.
fn halves(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    if text.len() > MAX_TEXT {
        return None;
    }
    Some(match memchr::memchr(b'-', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    })
}

/// Reads an unsigned number as the genuine server does, by C's `strtoull`: blanks before it, a sign, leading zeros. Only
/// a negative number in its shortest form is refused; others count down from the largest.
fn parse_u64(text: &[u8]) -> Option<u64> {
    if let Some(value) = crate::protocol::number::parse_i64(text) {
        return u64::try_from(value).ok();
    }
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { value.wrapping_neg() } else { value })
}

#[test]
fn ids_are_read_and_step() {
    let check = |text: &str, expected: Option<(u64, u64)>| {
        let expected = expected.map(|(ms, seq)| StreamId { ms, seq });
        assert_eq!(StreamId::parse(text.as_bytes(), 7), expected, "{text}");
    };
    check("1-2", Some((1, 2)));
    check("1", Some((1, 7)));
    check("18446744073709551615-18446744073709551615", Some((u64::MAX, u64::MAX)));
    check("18446744073709551616", None);
    check("007-+3", Some((7, 3)));
    check("1-2-3", None);
    for text in ["", "-", "1-", "-1", "a", "1-a", "*", "1-*", "(1"] {
        check(text, None);
    }
    assert_eq!(StreamId::parse_open(b"5-*"), Some(5));
    assert_eq!(StreamId::parse_open(b"5-1"), None);
    assert_eq!(StreamId::MAX.next(), None);
    assert_eq!(StreamId::MIN.previous(), None);
    let edge = StreamId { ms: 1, seq: u64::MAX };
    assert_eq!(edge.next().and_then(StreamId::previous), Some(edge));
}
