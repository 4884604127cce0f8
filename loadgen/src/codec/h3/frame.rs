//! HTTP/3's frames (RFC 9114, section 7).

/// Frame types.
pub(super) mod kind {
    pub(in super::super) const DATA: u64 = 0x0;
    pub(in super::super) const HEADERS: u64 = 0x1;
    pub(in super::super) const CANCEL_PUSH: u64 = 0x3;
    pub(in super::super) const SETTINGS: u64 = 0x4;
    pub(in super::super) const PUSH_PROMISE: u64 = 0x5;
    pub(in super::super) const GOAWAY: u64 = 0x7;
    pub(in super::super) const MAX_PUSH_ID: u64 = 0xd;
}

/// Types of streams that go one way (RFC 9114, 6.2; RFC 9204, 4.2).
pub(super) mod stream_kind {
    pub(in super::super) const CONTROL: u64 = 0x0;
    pub(in super::super) const PUSH: u64 = 0x1;
}

/// Settings.
pub(super) mod setting {
    pub(in super::super) const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
}

/// Error codes.
pub(super) mod error {
    pub(in super::super) const NO_ERROR: u32 = 0x100;
    pub(in super::super) const GENERAL_PROTOCOL_ERROR: u32 = 0x101;
    pub(in super::super) const REQUEST_REJECTED: u32 = 0x10b;
    pub(in super::super) const REQUEST_CANCELLED: u32 = 0x10c;
    pub(in super::super) const MESSAGE_ERROR: u32 = 0x10e;
}

/// The names of error codes from 0x100 on (RFC 9114, 8.1).
const NAMES: [&str; 17] = [
    "NO_ERROR",
    "GENERAL_PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "STREAM_CREATION_ERROR",
    "CLOSED_CRITICAL_STREAM",
    "FRAME_UNEXPECTED",
    "FRAME_ERROR",
    "EXCESSIVE_LOAD",
    "ID_ERROR",
    "SETTINGS_ERROR",
    "MISSING_SETTINGS",
    "REQUEST_REJECTED",
    "REQUEST_CANCELLED",
    "REQUEST_INCOMPLETE",
    "MESSAGE_ERROR",
    "CONNECT_ERROR",
    "VERSION_FALLBACK",
];

/// An error code for people.
pub(super) fn error_name(code: u64) -> String {
    let name = code.checked_sub(0x100).and_then(|place| NAMES.get(usize::try_from(place).ok()?));
    name.map_or_else(|| format!("error {code:#x}"), |name| format!("H3_{name}"))
}

/// True for frames that no stream of an answer has, nor the control stream (RFC 9114, 7.2.8: those of HTTP/2).
pub(super) fn is_reserved(kind: u64) -> bool {
    matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
}

/// Reads a number of QUIC (RFC 9000, section 16), and gives how long it is. None if it is cut off.
#[inline]
pub(super) fn read_number(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let length = 1 << (first >> 6);
    let bytes = input.get(..length)?;
    let value = bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

/// Appends a number below 2^30, as all lengths here are.
pub(super) fn append_number(out: &mut Vec<u8>, value: usize) {
    match value {
        0..64 => out.push(value as u8),
        64..16_384 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        _ => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
    }
}

/// Appends a frame's type and length.
pub(super) fn append_head(out: &mut Vec<u8>, kind: u64, length: usize) {
    append_number(out, kind as usize);
    append_number(out, length);
}

/// A frame's type and length, and how many bytes they take. None if they are cut off.
#[inline]
pub(super) fn read_head(input: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, first) = read_number(input)?;
    let (length, second) = read_number(&input[first..])?;
    Some((kind, length, first + second))
}

/// The longest head of a frame.
pub(super) const LONGEST_HEAD: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read() {
        for value in [0, 1, 63, 64, 16_383, 16_384, (1 << 30) - 1] {
            let mut out = Vec::new();
            append_number(&mut out, value);
            assert_eq!(read_number(&out), Some((value as u64, out.len())));
            assert_eq!(read_number(&out[..out.len() - 1]), None);
        }
        // RFC 9000, A.1.
        let long = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(read_number(&long), Some((151_288_809_941_952_652, 8)));
    }

    #[test]
    fn errors_have_names() {
        assert_eq!(
            [0x100, 0x110, 0x111, 3].map(error_name),
            ["H3_NO_ERROR", "H3_VERSION_FALLBACK", "error 0x111", "error 0x3"]
        );
    }
}
