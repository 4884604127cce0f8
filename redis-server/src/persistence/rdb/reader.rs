//! The elements of the format: lengths, strings, numbers.

use std::borrow::Cow;

use super::lzf;
use crate::protocol::number::IntText;

/// The rest of a payload, or of the available part of a file.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes that the file has behind those that are here.
    beyond: u64,
    /// How many of them are needed to go on.
    short: usize,
    /// Whether more was wanted than the file has.
    past_end: bool,
}

/// A length, or in its place how a string is encoded.
enum Length {
    Is(u64),
    Encoded(u8),
}

impl<'a> Reader<'a> {
    /// One of all that there is.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self::of_part(bytes, 0)
    }

    /// One of a part of a file, behind which there are `beyond` bytes more.
    pub(super) fn of_part(rest: &'a [u8], beyond: u64) -> Self {
        Self { rest, beyond, short: 0, past_end: false }
    }

    /// Bytes that are here and were not read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The available bytes that were not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether it has given up because more was wanted than the file has.
    pub(super) fn is_past_end(&self) -> bool {
        self.past_end
    }

    /// Of how many bytes that the file has the want made this reader give up; 0 if that was for another reason.
    pub(super) fn short(&self) -> usize {
        self.short
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.rest.split_off(..len);
        if taken.is_none() {
            self.miss(len);
        }
        taken
    }

    #[cold]
    fn miss(&mut self, len: usize) {
        let missing = len - self.rest.len();
        if missing as u64 <= self.beyond {
            self.short = missing;
        } else {
            self.past_end = true;
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn length(&mut self) -> Option<Length> {
        let first = self.byte()?;
        Some(match first >> 6 {
            0 => Length::Is(u64::from(first)),
            1 => Length::Is(u64::from(first & 63) << 8 | u64::from(self.byte()?)),
            2 if first == 0x80 => Length::Is(u32::from_be_bytes(self.array()?).into()),
            2 if first == 0x81 => Length::Is(u64::from_be_bytes(self.array()?)),
            2 => return None,
            _ => Length::Encoded(first & 63),
        })
    }

    /// A length, or another number that is written like one.
    pub(super) fn len(&mut self) -> Option<u64> {
        match self.length()? {
            Length::Is(len) => Some(len),
            Length::Encoded(_) => None,
        }
    }

    /// A length that is read again later.
    pub(super) fn peek_len(&mut self) -> Option<u64> {
        let rest = self.rest;
        let len = self.len();
        self.rest = rest;
        len
    }

    /// A string, however it is encoded.
    pub(super) fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        let int = |value: i64| Cow::Owned(IntText::new(value).to_vec());
        Some(match self.length()? {
            Length::Is(len) => Cow::Borrowed(self.take(usize::try_from(len).ok()?)?),
            Length::Encoded(0) => int(i8::from_le_bytes(self.array()?).into()),
            Length::Encoded(1) => int(i16::from_le_bytes(self.array()?).into()),
            Length::Encoded(2) => int(i32::from_le_bytes(self.array()?).into()),
            Length::Encoded(3) => {
                let compressed = usize::try_from(self.len()?).ok()?;
                let len = usize::try_from(self.len()?).ok()?;
                Cow::Owned(lzf::expand(self.take(compressed)?, len)?)
            }
            Length::Encoded(_) => return None,
        })
    }

    /// A string that is read again later.
    pub(super) fn peek_string(&mut self) -> Option<Cow<'a, [u8]>> {
        let rest = self.rest;
        let text = self.string();
        self.rest = rest;
        text
    }

    /// A string that nobody wants to see.
    pub(super) fn skip_string(&mut self) -> Option<()> {
        let len = match self.length()? {
            Length::Is(len) => len,
            Length::Encoded(width @ 0..=2) => 1 << width,
            Length::Encoded(3) => {
                let compressed = self.len()?;
                self.len()?;
                compressed
            }
            Length::Encoded(_) => return None,
        };
        self.take(usize::try_from(len).ok()?).map(drop)
    }

    /// A double in its eight bytes; not NaN.
    pub(super) fn double(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.array()?)).filter(|value| !value.is_nan())
    }

    /// A time in milliseconds.
    pub(super) fn time(&mut self) -> Option<u64> {
        Some(i64::from_le_bytes(self.array()?).max(0) as u64)
    }
}
