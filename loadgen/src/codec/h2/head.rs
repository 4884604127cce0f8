//! The header blocks of answers, read and remembered.
//!
//! Answers repeat: the same few bytes come back with every one. A block that does not change the table means the same as
//! long as the table stays, so its meaning is kept, and found again by comparing bytes.

use super::hpack::{Decoder, Invalid};

/// The head of an answer, or its trailers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status; 0 in trailers.
    pub status: u16,
    /// How long the body is, where the head says so.
    pub content_length: Option<u64>,
    /// The gRPC status of the call.
    pub grpc_status: Option<u16>,
    /// Its text, percent-decoded.
    pub grpc_message: Option<Box<str>>,
    /// How gRPC's messages are compressed.
    pub grpc_encoding: Encoding,
    /// Whether the content is gRPC's.
    pub grpc: bool,
    /// The fault of the block.
    pub malformed: Option<&'static str>,
}

/// A compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// None.
    #[default]
    Identity,
    /// The coding that all servers have.
    Gzip,
    /// Another one.
    Other,
}

/// How many blocks are remembered: a head and trailers, each in two forms.
const REMEMBERED: usize = 4;

/// The longest block that is remembered. Servers that use no table send blocks of 60 to 200 bytes.
const LONGEST_REMEMBERED: usize = 512;

/// The header blocks of one connection.
#[derive(Debug, Default)]
pub(super) struct Heads {
    decoder: Decoder,
    known: KnownHeads,
}

/// Heads that are found again by the bytes of their blocks.
#[derive(Debug, Default)]
pub(in crate::codec) struct KnownHeads {
    remembered: [Remembered; REMEMBERED],
    /// Which is overwritten next.
    next: usize,
    /// The last block, which could not be remembered.
    latest: Head,
}

#[derive(Debug, Default)]
struct Remembered {
    block: Vec<u8>,
    generation: u32,
    head: Head,
}

impl Heads {
    /// Reads the next block.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8]) -> Result<&Head, Invalid> {
        match self.known.place(self.decoder.generation(), block) {
            Some(place) => Ok(self.known.head(place)),
            None => self.decode(block),
        }
    }

    fn decode(&mut self, block: &[u8]) -> Result<&Head, Invalid> {
        let generation = self.decoder.generation();
        let mut reader = Reader::default();
        self.decoder.decode(block, |name, value| reader.field(name, value))?;
        let is_lasting = self.decoder.generation() == generation;
        Ok(self.known.keep(is_lasting.then_some(generation), block, reader.head))
    }
}

impl KnownHeads {
    /// The place of a block's head, if that is known. A block means the same as long as the table has the same generation.
    #[inline]
    pub(in crate::codec) fn place(&self, generation: u32, block: &[u8]) -> Option<usize> {
        // An empty block is what a place holds that was never written.
        let found = self.remembered.iter().position(|old| old.generation == generation && old.block == block);
        found.filter(|_| !block.is_empty())
    }

    #[inline]
    pub(in crate::codec) fn head(&self, place: usize) -> &Head {
        &self.remembered[place].head
    }

    /// Remembers a block's head, unless the block has changed the table or is too long.
    pub(in crate::codec) fn keep(&mut self, generation: Option<u32>, block: &[u8], head: Head) -> &Head {
        let Some(generation) = generation.filter(|_| block.len() <= LONGEST_REMEMBERED) else {
            self.latest = head;
            return &self.latest;
        };
        let place = self.next;
        self.next = (place + 1) % REMEMBERED;
        let remembered = &mut self.remembered[place];
        remembered.block.clear();
        remembered.block.extend_from_slice(block);
        remembered.generation = generation;
        remembered.head = head;
        &remembered.head
    }
}

/// Takes a block's fields one by one.
#[derive(Default)]
pub(in crate::codec) struct Reader {
    pub(in crate::codec) head: Head,
    regular: bool,
}

impl Reader {
    pub(in crate::codec) fn field(&mut self, name: &[u8], value: &[u8]) {
        if name.first() == Some(&b':') {
            if name != b":status" || self.regular || self.head.status != 0 {
                self.head.malformed = Some("a pseudo-header field that is unknown, twice there or too late");
            }
            match status(value) {
                Some(status) => self.head.status = status,
                None => self.head.malformed = Some("a status that is not three digits"),
            }
            return;
        }
        self.regular = true;
        let head = &mut self.head;
        match name {
            b"content-length" => match number(value) {
                None => head.malformed = Some("a content-length that is not a number"),
                length => head.content_length = length,
            },
            b"content-type" => head.grpc = value.starts_with(b"application/grpc"),
            b"grpc-status" => head.grpc_status = Some(number(value).map_or(UNKNOWN, |code| code.min(999) as u16)),
            b"grpc-message" => head.grpc_message = Some(percent_decoded(value)),
            b"grpc-encoding" => {
                head.grpc_encoding = match value {
                    b"identity" => Encoding::Identity,
                    b"gzip" => Encoding::Gzip,
                    _ => Encoding::Other,
                }
            }
            _ if name.is_empty() || name.iter().any(u8::is_ascii_uppercase) => {
                head.malformed = Some("a field's name that is empty or in upper case");
            }
            b"connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
                head.malformed = Some("a field that belongs to HTTP/1.1's connections");
            }
            _ => (),
        }
    }
}

/// gRPC's status of an answer whose status is not a number.
const UNKNOWN: u16 = 2;

fn status(value: &[u8]) -> Option<u16> {
    let status = number(value).filter(|_| value.len() == 3)?;
    (status >= 100).then_some(status as u16)
}

/// A number of up to 18 digits.
fn number(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// A text in gRPC's percent-encoding; what is not well encoded stays as it is.
fn percent_decoded(value: &[u8]) -> Box<str> {
    let mut text = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        // `from_str_radix` would take a sign.
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                text.push(decoded);
                rest = &behind[2..];
            }
            None => {
                text.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&text).into()
}

#[cfg(test)]
mod tests {
    use super::super::hpack::append_literal;
    use super::*;

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            append_literal(&mut block, name, value.as_bytes());
        }
        block
    }

    #[test]
    fn heads_and_trailers_are_read() {
        #[track_caller]
        fn check(fields: &[(&str, &str)], expected: &Head) {
            assert_eq!(Heads::default().read(&block(fields)), Ok(expected));
        }
        let fields = [(":status", "200"), ("content-type", "text/plain"), ("content-length", "12")];
        check(&fields, &Head { status: 200, content_length: Some(12), ..Head::default() });
        let fields = [(":status", "200"), ("content-type", "application/grpc+proto"), ("grpc-encoding", "gzip")];
        check(&fields, &Head { status: 200, grpc: true, grpc_encoding: Encoding::Gzip, ..Head::default() });
        let message = Some("no such greeter, 100%, ü %".into());
        let fields = [("grpc-status", "5"), ("grpc-message", "no such greeter, 100%25, %c3%bc %")];
        check(&fields, &Head { grpc_status: Some(5), grpc_message: message, ..Head::default() });
    }

    #[test]
    fn malformed_heads_are_known() {
        #[track_caller]
        fn check(fields: &[(&str, &str)]) {
            let mut heads = Heads::default();
            let head = heads.read(&block(fields)).unwrap();
            assert!(head.malformed.is_some(), "{head:?}");
        }
        check(&[(":status", "20")]);
        check(&[(":status", "2000")]);
        check(&[(":status", "+20")]);
        check(&[(":status", "200"), (":status", "200")]);
        check(&[("a", "b"), (":status", "200")]);
        check(&[(":path", "200")]);
        check(&[(":status", "200"), ("Upper", "200")]);
        check(&[(":status", "200"), ("transfer-encoding", "chunked")]);
        check(&[(":status", "200"), ("content-length", "-1")]);
    }

    #[test]
    fn a_block_is_forgotten_when_the_table_changes() {
        let mut heads = Heads::default();
        // ":status: 201" enters the table; then it is entry 62, and again from memory.
        let enter = [0x48, 3, b'2', b'0', b'1'];
        assert_eq!(heads.read(&enter).unwrap().status, 201);
        assert_eq!(heads.read(&[0xbe]).unwrap().status, 201);
        assert_eq!(heads.read(&[0xbe]).unwrap().status, 201);
        let enter = [0x48, 3, b'4', b'0', b'2'];
        assert_eq!(heads.read(&enter).unwrap().status, 402);
        assert_eq!(heads.read(&[0xbe]).unwrap().status, 402);
        assert_eq!(heads.read(&[0xbf]).unwrap().status, 201);
        assert_eq!(heads.read(&[]).unwrap(), &Head::default());
    }
}
