//! The head of a frame (RFC 6455 section 5.2), and masking.

use std::fmt;

/// Bytes of a control frame's payload, at most (section 5.5).
pub const MAX_CONTROL: usize = 125;

/// Bytes of a close frame's reason, at most: its code takes two.
pub const MAX_REASON: usize = MAX_CONTROL - 2;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A further part of a message.
    Continuation = 0x0,
    /// A text, or its first part.
    Text = 0x1,
    /// Bytes, or their first part.
    Binary = 0x2,
    /// The end of the connection.
    Close = 0x8,
    /// A question for a sign of life.
    Ping = 0x9,
    /// Its answer.
    Pong = 0xa,
}

impl Opcode {
    fn of(nibble: u8) -> Option<Self> {
        Some(match nibble {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xa => Self::Pong,
            _ => return None,
        })
    }

    pub(super) fn is_control(self) -> bool {
        self as u8 >= Self::Close as u8
    }
}

/// A breach of the protocol by the client, or of a limit. The connection ends with this close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 1002 (protocol error), 1007 (invalid data) or 1009 (message too big).
    pub code: u16,
    /// The reason in the close frame.
    pub reason: &'static str,
}

impl Failure {
    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self { code: 1002, reason }
    }

    pub(super) const fn data(reason: &'static str) -> Self {
        Self { code: 1007, reason }
    }

    pub(super) const fn size(reason: &'static str) -> Self {
        Self { code: 1009, reason }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (close code {})", self.reason, self.code)
    }
}

impl std::error::Error for Failure {}

/// A client's frame up to its payload.
pub(super) struct Header {
    pub(super) is_final: bool,
    pub(super) is_compressed: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: Option<[u8; 4]>,
    /// Bytes of the head.
    pub(super) head: usize,
    /// Bytes of the payload.
    pub(super) len: u64,
}

impl Header {
    /// The head at the beginning of `input`. `None` if it is incomplete.
    ///
    /// # Errors
    /// When no further byte can make the head one that RFC 6455 allows.
    #[inline]
    pub(super) fn parse(input: &[u8]) -> Result<Option<Self>, Failure> {
        let &[first, second, ref rest @ ..] = input else { return Ok(None) };
        if first & 0x30 != 0 {
            return Err(Failure::protocol("a reserved bit is set"));
        }
        let Some(opcode) = Opcode::of(first & 0x0f) else { return Err(Failure::protocol("the opcode is reserved")) };
        let (is_final, is_compressed) = (first & 0x80 != 0, first & 0x40 != 0);
        let short = second & 0x7f;
        if opcode.is_control() && (!is_final || usize::from(short) > MAX_CONTROL) {
            return Err(Failure::protocol("a control frame is fragmented or longer than 125 bytes"));
        }
        let (len, rest) = match short {
            126 => {
                let Some((len, rest)) = rest.split_first_chunk() else { return Ok(None) };
                (u64::from(u16::from_be_bytes(*len)), rest)
            }
            127 => {
                let Some((len, rest)) = rest.split_first_chunk() else { return Ok(None) };
                (u64::from_be_bytes(*len), rest)
            }
            short => (u64::from(short), rest),
        };
        if (short == 126 && len < 126) || (short == 127 && (len <= 0xffff || len >> 63 != 0)) {
            return Err(Failure::protocol("the length is not in its shortest form"));
        }
        let (mask, rest) = if second & 0x80 == 0 {
            (None, rest)
        } else {
            let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
            (Some(*mask), rest)
        };
        Ok(Some(Self { is_final, is_compressed, opcode, mask, head: input.len() - rest.len(), len }))
    }
}

/// Masks, or unmasks, by words.
#[inline]
pub(super) fn mask(bytes: &mut [u8], mask: [u8; 4]) {
    let word = u32::from_ne_bytes(mask);
    let long = u64::from(word) << 32 | u64::from(word);
    let mut words = bytes.chunks_exact_mut(8);
    for bytes in &mut words {
        let masked = u64::from_ne_bytes((&*bytes).try_into().expect("a chunk of eight bytes")) ^ long;
        bytes.copy_from_slice(&masked.to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

/// Appends the head of a server's frame of `len` bytes, which is a whole message or a control frame.
#[inline]
pub fn put_head(opcode: Opcode, is_compressed: bool, len: usize, out: &mut Vec<u8>) {
    let first = 0x80 | u8::from(is_compressed) << 6 | opcode as u8;
    match len {
        0..=125 => out.extend_from_slice(&[first, len as u8]),
        126..=0xffff => {
            let [high, low] = (len as u16).to_be_bytes();
            out.extend_from_slice(&[first, 126, high, low]);
        }
        _ => {
            out.extend_from_slice(&[first, 127]);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

/// Appends a server's frame, which is a whole message or a control frame.
#[inline]
pub fn put(opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
    put_head(opcode, false, payload.len(), out);
    out.extend_from_slice(payload);
}

/// Appends a close frame. A reason longer than [`MAX_REASON`] is cut between two characters.
pub fn put_close(reason: Option<(u16, &str)>, out: &mut Vec<u8>) {
    let Some((code, text)) = reason else { return put(Opcode::Close, &[], out) };
    let text = &text[..text.floor_char_boundary(MAX_REASON)];
    put_head(Opcode::Close, false, 2 + text.len(), out);
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Whether a close frame may have this code (section 7.4, and the registry that it begins).
pub fn close_code_is_valid(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_by_words_is_masking_by_bytes() {
        for len in 0..40_u8 {
            let mut bytes: Vec<u8> = (0..len).collect();
            let key = [1, 0x20, 0xff, 7];
            let expected: Vec<u8> = (0..len).map(|byte| byte ^ key[usize::from(byte) % 4]).collect();
            mask(&mut bytes, key);
            assert_eq!(bytes, expected, "{len} bytes");
        }
    }

    #[test]
    fn lengths_are_written_in_their_shortest_form() {
        for (len, expected) in [
            (0, &[0x82, 0][..]),
            (125, &[0x82, 125]),
            (126, &[0x82, 126, 0, 126]),
            (0xffff, &[0x82, 126, 0xff, 0xff]),
            (0x1_0000, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            put_head(Opcode::Binary, false, len, &mut out);
            assert_eq!(out, expected, "{len} bytes");
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let mut out = Vec::new();
        put_close(Some((1000, &"€".repeat(100))), &mut out);
        assert_eq!((out.len(), out[1]), (2 + 2 + 123, 125));
        assert_eq!(std::str::from_utf8(&out[4..]).unwrap(), "€".repeat(41));
    }
}
