//! Heads as nearly all clients send them, read in one pass. A head with anything unusual, an error included, is left to
//! httparse, which would read the others alike.

use httparse::Header;

use super::head::{Line, Room};

/// Methods by what a request begins with, in the order of their frequency.
const METHODS: [(&str, &[u8]); 7] = [
    ("GET", b"GET "),
    ("POST", b"POST "),
    ("HEAD", b"HEAD "),
    ("PUT", b"PUT "),
    ("DELETE", b"DELETE "),
    ("OPTIONS", b"OPTIONS "),
    ("PATCH", b"PATCH "),
];

/// The characters of fields' names (RFC 9110 section 5.6.2).
const TOKEN: [bool; 256] = super::alphanumerics_and(b"!#$%&'*+-.^_`|~");

/// The request line at the start of `bytes`, and up to `max` fields behind it in the empty `room`; `None` if the head is
/// incomplete or unusual. `room` holds anything then.
#[inline]
pub(super) fn read<'b>(bytes: &'b [u8], room: &mut Room<'b>, max: usize) -> Option<Line<'b>> {
    let (method, start) = METHODS.iter().find(|(_, start)| bytes.starts_with(start))?;
    let rest = &bytes[start.len()..];
    let (target, rest) = rest.split_at(rest.iter().position(|byte| !matches!(byte, b'!'..=b'~'))?);
    let target = std::str::from_utf8(target).ok().filter(|target| !target.is_empty())?;
    let (version, mut rest) = rest.split_at_checked(b" HTTP/1.1\r\n".len())?;
    let minor = match version {
        b" HTTP/1.1\r\n" => 1,
        b" HTTP/1.0\r\n" => 0,
        _ => return None,
    };
    while !rest.starts_with(b"\r\n") {
        let (header, behind) = field(rest)?;
        if room.len() == max {
            return None;
        }
        room.push(header);
        rest = behind;
    }
    Some(Line { method, target, minor, len: bytes.len() - rest.len() + 2 })
}

/// A field, and the bytes behind its line.
#[inline]
fn field(bytes: &[u8]) -> Option<(Header<'_>, &[u8])> {
    let colon = bytes.iter().position(|byte| !TOKEN[usize::from(*byte)])?;
    if colon == 0 || bytes[colon] != b':' {
        return None;
    }
    let name = std::str::from_utf8(&bytes[..colon]).ok()?;
    let value = &bytes[colon + 1..];
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let (value, behind) = value.split_at(text_len(value));
    let behind = behind.strip_prefix(b"\r\n")?;
    // More white space around a value is no part of it.
    if value.first() == Some(&b' ') || value.last() == Some(&b' ') {
        return None;
    }
    Some((Header { name, value }, behind))
}

/// Bytes in front of the first control character.
#[inline]
fn text_len(bytes: &[u8]) -> usize {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut len = 0;
    // Eight at a time. A bit says that a byte is below 0x20, or 0x7f; borrows reach only bytes behind the first such one.
    while let Some(chunk) = bytes[len..].first_chunk() {
        let word = u64::from_le_bytes(*chunk);
        let is_low = word.wrapping_sub(LOW * 0x20) & !word;
        let delete = word ^ (LOW * 0x7f);
        let is_delete = delete.wrapping_sub(LOW) & !delete;
        let found = (is_low | is_delete) & HIGH;
        if found != 0 {
            return len + found.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let is_control = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
    len + bytes[len..].iter().position(is_control).unwrap_or(bytes.len() - len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_found() {
        for at in 0..40 {
            for byte in 0..=255 {
                let mut bytes = vec![b'\xff'; at];
                bytes.push(byte);
                bytes.extend_from_slice(b" ~\x80\x1f\x7f\x00\t text behind it");
                let is_control = byte < 0x20 || byte == 0x7f;
                assert_eq!(text_len(&bytes), if is_control { at } else { at + 4 }, "{byte:#x} at {at}");
            }
            assert_eq!(text_len(&vec![b'a'; at]), at);
        }
    }
}
