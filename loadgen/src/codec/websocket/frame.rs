//! Frames (RFC 6455 section 5.2).

pub(super) const OPCODE_CONTINUATION: u8 = 0;
pub(super) const OPCODE_TEXT: u8 = 1;
pub(super) const OPCODE_BINARY: u8 = 2;
pub(super) const OPCODE_CLOSE: u8 = 8;
pub(super) const OPCODE_PING: u8 = 9;
pub(super) const OPCODE_PONG: u8 = 10;

/// The last frame of a message, in the first byte.
const FIN: u8 = 0x80;
/// That the payload is masked, in the second byte.
const MASKED: u8 = 0x80;

/// The bytes before a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: u8,
    pub(super) is_last: bool,
    /// Of the payload.
    pub(super) length: u64,
    /// Its own length.
    pub(super) head: usize,
}

impl Header {
    /// Reads a header that a server sent, if it is complete.
    ///
    /// # Errors
    /// The expected bytes.
    pub(super) fn parse(input: &[u8]) -> Result<Option<Self>, &'static str> {
        let [first, second, rest @ ..] = input else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err("a frame without extensions");
        }
        let opcode = first & 0x0f;
        if !matches!(opcode, OPCODE_CONTINUATION..=OPCODE_BINARY | OPCODE_CLOSE..=OPCODE_PONG) {
            return Err("a frame of a kind that is known");
        }
        if second & MASKED != 0 {
            return Err("a frame that is not masked");
        }
        let (length, head) = match second {
            126 => match rest {
                [high, low, ..] => (u64::from(u16::from_be_bytes([*high, *low])), 4),
                _ => return Ok(None),
            },
            127 => match rest.first_chunk() {
                Some(bytes) => (u64::from_be_bytes(*bytes), 10),
                None => return Ok(None),
            },
            length => (u64::from(*length), 2),
        };
        Ok(Some(Self { opcode, is_last: first & FIN != 0, length, head }))
    }
}

/// Appends a client's frame, which is a message or control frame of its own.
pub(super) fn append(opcode: u8, payload: &[u8], key: [u8; 4], out: &mut Vec<u8>) {
    begin(opcode, payload.len(), key, out);
    let start = out.len();
    out.extend_from_slice(payload);
    mask(&mut out[start..], key);
}

/// Appends what stands before a payload of that length.
pub(super) fn begin(opcode: u8, length: usize, key: [u8; 4], out: &mut Vec<u8>) {
    out.push(FIN | opcode);
    match length {
        0..=125 => out.push(MASKED | length as u8),
        126..=0xffff => {
            out.push(MASKED | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&key);
}

/// Masks a payload (section 5.3).
pub(super) fn mask(payload: &mut [u8], key: [u8; 4]) {
    for (byte, key) in payload.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_are_written_and_read() {
        #[track_caller]
        fn check(length: usize, head: usize) {
            let payload: Vec<u8> = (0..length).map(|place| place as u8).collect();
            let mut out = b"before".to_vec();
            append(OPCODE_BINARY, &payload, [1, 2, 3, 4], &mut out);
            let frame = &mut out[6..];
            assert_eq!((frame.len(), frame[1] & MASKED), (head + 4 + length, MASKED));
            assert_eq!(frame[head..head + 4], [1, 2, 3, 4]);
            let unmasked = frame[head + 4..].iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, mask)| byte ^ mask);
            assert!(unmasked.eq(payload.iter().copied()));
            // As a server would say it.
            frame[1] &= !MASKED;
            let expected = Header { opcode: OPCODE_BINARY, is_last: true, length: length as u64, head };
            assert_eq!(Header::parse(frame), Ok(Some(expected)));
            for cut in 0..head {
                assert_eq!(Header::parse(&frame[..cut]), Ok(None), "{cut}");
            }
        }
        check(0, 2);
        check(125, 2);
        check(126, 4);
        check(65_535, 4);
        check(65_536, 10);
    }

    #[test]
    fn invalid_server_frames_are_refused() {
        assert_eq!(Header::parse(&[0x81, 0x80]), Err("a frame that is not masked"));
        assert_eq!(Header::parse(&[0xc1, 0]), Err("a frame without extensions"));
        assert_eq!(Header::parse(&[0x83, 0]), Err("a frame of a kind that is known"));
        assert_eq!(Header::parse(&[0x8b, 0]), Err("a frame of a kind that is known"));
    }

    /// The masked text `Hello` of section 5.7.
    #[test]
    fn the_specifications_example() {
        let mut out = Vec::new();
        append(OPCODE_TEXT, b"Hello", [0x37, 0xfa, 0x21, 0x3d], &mut out);
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }
}
