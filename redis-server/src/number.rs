//! Numbers as text: the integers.

use std::ops::Deref;

/// The text of an integer, without an allocation.
#[derive(Clone, Copy)]
pub struct IntText {
    bytes: [u8; 20],
    len: u8,
}

impl IntText {
    /// The decimal text of `value`.
    #[inline]
    pub fn new(value: i64) -> Self {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(value).as_bytes();
        let mut bytes = [0; 20];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, len: text.len() as u8 }
    }
}

impl Deref for IntText {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Reads a signed 64-bit integer as Redis does: the only text accepted is the one that it would print itself, so no
/// `+`, no leading zeros, no `-0`, no spaces.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0; // 19 digits always fit
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}
