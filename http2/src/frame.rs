//! Frames as bytes (RFC 9113 sections 4 and 6): checked views of those that come, and the heads of those that go.
//!
//! ```
//! use http2::frame::{Head, Kind, head};
//!
//! let bytes = head(8, Kind::Ping, 0, 0);
//! assert_eq!(Head::parse(&bytes), Head { length: 8, kind: Kind::Ping, flags: 0, stream: 0 });
//! ```

use crate::reason::Reason;

/// Bytes of a frame's head.
pub const HEAD: usize = 9;

/// The least size of a frame's payload that every peer takes, and the default until settings say otherwise.
pub const LEAST_MAX_FRAME: u32 = 16_384;

/// The most that settings can allow as a frame's payload.
pub const MOST_MAX_FRAME: u32 = (1 << 24) - 1;

/// The largest window, and the largest number of a stream.
pub const MOST: u32 = (1 << 31) - 1;

/// The frame ends its sender's half of the stream: DATA, HEADERS.
pub const END_STREAM: u8 = 0x1;
/// The frame is an answer to one of the same type: SETTINGS, PING.
pub const ACK: u8 = 0x1;
/// The frame ends its header block: HEADERS, CONTINUATION.
pub const END_HEADERS: u8 = 0x4;
/// The payload has padding: DATA, HEADERS.
pub const PADDED: u8 = 0x8;
/// The payload has a priority: HEADERS.
pub const PRIORITY: u8 = 0x20;

/// A frame's type, with its number on the wire; `Unknown` has a number that no type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A piece of a body.
    Data = 0x0,
    /// The beginning of a header block.
    Headers = 0x1,
    /// RFC 7540's priorities, which mean nothing any more.
    Priority = 0x2,
    /// The end of a stream.
    RstStream = 0x3,
    /// Settings, or that they were taken.
    Settings = 0x4,
    /// Sent by servers alone.
    PushPromise = 0x5,
    /// Asks for its like.
    Ping = 0x6,
    /// The end of the connection is near.
    GoAway = 0x7,
    /// The receiver may send more.
    WindowUpdate = 0x8,
    /// More of a header block.
    Continuation = 0x9,
    /// A stream's priority (RFC 9218 section 7.1).
    PriorityUpdate = 0x10,
    /// A type to ignore (RFC 9113 section 5.5).
    Unknown = 0xff,
}

impl Kind {
    fn of(code: u8) -> Self {
        match code {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x2 => Self::Priority,
            0x3 => Self::RstStream,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x6 => Self::Ping,
            0x7 => Self::GoAway,
            0x8 => Self::WindowUpdate,
            0x9 => Self::Continuation,
            0x10 => Self::PriorityUpdate,
            _ => Self::Unknown,
        }
    }
}

/// The first nine bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the payload behind it.
    pub length: usize,
    /// The frame's type.
    pub kind: Kind,
    /// The meaning of the flags depends on the type.
    pub flags: u8,
    /// The stream it belongs to; 0 is the connection.
    pub stream: u32,
}

impl Head {
    /// Every nine bytes are a head.
    #[inline]
    pub fn parse(bytes: &[u8; HEAD]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Self {
            length: usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low),
            kind: Kind::of(kind),
            flags,
            // The reserved bit is ignored.
            stream: u32::from_be_bytes(stream) & MOST,
        }
    }

    /// Whether the flag is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A frame's head as bytes.
///
/// # Panics
/// In debug builds, when the length has more than 24 bits.
#[inline]
pub fn head(length: usize, kind: Kind, flags: u8, stream: u32) -> [u8; HEAD] {
    debug_assert!(length <= MOST_MAX_FRAME as usize);
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    let [a, b, c, d] = stream.to_be_bytes();
    [high, middle, low, kind as u8, flags, a, b, c, d]
}

/// Appends a whole frame.
pub fn put(out: &mut Vec<u8>, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&head(payload.len(), kind, flags, stream));
    out.extend_from_slice(payload);
}

/// The payload of HEADERS without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    /// The piece of the header block.
    pub fragment: &'a [u8],
    /// The stream that RFC 7540's priority names, if there is one.
    pub dependency: Option<u32>,
}

/// The payload of DATA or HEADERS without its padding.
///
/// # Errors
/// When the padding is longer than the payload.
#[inline]
pub fn unpadded(head: Head, payload: &[u8]) -> Result<&[u8], Reason> {
    if !head.has(PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(Reason::FRAME_SIZE_ERROR)?;
    let length = rest.len().checked_sub(usize::from(*padding)).ok_or(Reason::PROTOCOL_ERROR)?;
    Ok(&rest[..length])
}

/// The payload of HEADERS.
///
/// # Errors
/// When padding or priority are longer than the payload.
#[inline]
pub fn headers(head: Head, payload: &[u8]) -> Result<Headers<'_>, Reason> {
    let rest = unpadded(head, payload)?;
    if !head.has(PRIORITY) {
        return Ok(Headers { fragment: rest, dependency: None });
    }
    let (priority, fragment) = rest.split_first_chunk::<5>().ok_or(Reason::FRAME_SIZE_ERROR)?;
    Ok(Headers { fragment, dependency: Some(dependency(priority)) })
}

/// The stream that a PRIORITY frame's payload names.
///
/// # Errors
/// When it does not have five bytes.
pub fn priority(payload: &[u8]) -> Result<u32, Reason> {
    let payload: &[u8; 5] = payload.try_into().map_err(|_| Reason::FRAME_SIZE_ERROR)?;
    Ok(dependency(payload))
}

fn dependency([a, b, c, d, _weight]: &[u8; 5]) -> u32 {
    u32::from_be_bytes([*a, *b, *c, *d]) & MOST
}

/// The number that is the whole payload of RST_STREAM, and of WINDOW_UPDATE with its reserved bit.
///
/// # Errors
/// When the payload does not have four bytes.
#[inline]
pub fn number(payload: &[u8]) -> Result<u32, Reason> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Reason::FRAME_SIZE_ERROR)
}

/// The pairs of identifier and value in SETTINGS.
///
/// # Errors
/// When the payload is no whole number of pairs.
pub fn settings(payload: &[u8]) -> Result<impl Iterator<Item = (u16, u32)>, Reason> {
    let (pairs, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() {
        return Err(Reason::FRAME_SIZE_ERROR);
    }
    Ok(pairs.iter().map(|[a, b, c, d, e, f]| (u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f]))))
}

/// The last stream and the reason in GOAWAY.
///
/// # Errors
/// When the payload has fewer than eight bytes.
pub fn go_away(payload: &[u8]) -> Result<(u32, Reason), Reason> {
    let ([a, b, c, d, e, f, g, h], _debug) = payload.split_first_chunk().ok_or(Reason::FRAME_SIZE_ERROR)?;
    Ok((u32::from_be_bytes([*a, *b, *c, *d]) & MOST, Reason(u32::from_be_bytes([*e, *f, *g, *h]))))
}

/// The stream and the priority in PRIORITY_UPDATE.
///
/// # Errors
/// When the payload has fewer than four bytes.
pub fn priority_update(payload: &[u8]) -> Result<(u32, &[u8]), Reason> {
    let (stream, value) = payload.split_first_chunk().ok_or(Reason::FRAME_SIZE_ERROR)?;
    Ok((u32::from_be_bytes(*stream) & MOST, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_go_and_come() {
        let kinds = (0..=0x11).map(Kind::of);
        for kind in kinds {
            let found = Head::parse(&head(0x01_02_03, kind, 0x25, MOST));
            assert_eq!(found, Head { length: 0x01_02_03, kind, flags: 0x25, stream: MOST });
        }
    }

    #[test]
    fn padding_and_priority() {
        fn check(flags: u8, payload: &[u8], expected: Result<(&[u8], Option<u32>), Reason>) {
            let head = Head { length: payload.len(), kind: Kind::Headers, flags, stream: 1 };
            let found = headers(head, payload).map(|found| (found.fragment, found.dependency));
            assert_eq!(found, expected, "{flags:#x} {payload:?}");
        }
        check(0, b"abc", Ok((b"abc", None)));
        check(PADDED, &[2, b'a', 0, 0], Ok((b"a", None)));
        check(PADDED, &[3, 0, 0, 0], Ok((b"", None)));
        check(PADDED, &[4, 0, 0, 0], Err(Reason::PROTOCOL_ERROR));
        check(PADDED, &[], Err(Reason::FRAME_SIZE_ERROR));
        check(PRIORITY, &[0x80, 0, 0, 3, 16, b'a'], Ok((b"a", Some(3))));
        check(PRIORITY, &[0, 0, 0, 3], Err(Reason::FRAME_SIZE_ERROR));
        check(PRIORITY | PADDED, &[1, 0, 0, 0, 5, 16, b'a', 0], Ok((b"a", Some(5))));
        check(PRIORITY | PADDED, &[4, 0, 0, 0, 5, 16, b'a', 0], Err(Reason::FRAME_SIZE_ERROR));
    }

    #[test]
    fn lengths() {
        assert_eq!(number(&[0, 0, 1, 0]), Ok(256));
        assert_eq!(number(&[0, 0, 1]), Err(Reason::FRAME_SIZE_ERROR));
        assert_eq!(priority(&[0; 4]), Err(Reason::FRAME_SIZE_ERROR));
        assert_eq!(settings(&[0, 4, 0, 0, 0, 9]).unwrap().collect::<Vec<_>>(), [(4, 9)]);
        assert!(settings(&[0; 7]).is_err());
        assert_eq!(go_away(&[0, 0, 0, 7, 0, 0, 0, 2, b'x']), Ok((7, Reason::INTERNAL_ERROR)));
        assert!(go_away(&[0; 7]).is_err());
        assert_eq!(priority_update(b"\0\0\0\x07u=1"), Ok((7, &b"u=1"[..])));
        assert!(priority_update(&[0; 3]).is_err());
    }
}
