//! Frames (RFC 9113, 4 and 6): their heads, and writing those that a client sends.

use super::hpack::Form;

/// The length of a frame's head.
pub(super) const HEAD: usize = 9;

/// The longest payload that we take: what every peer keeps to unless told otherwise.
pub(super) const MAX_PAYLOAD: usize = 16_384;

/// The client's first bytes.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The frames' types.
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// The frames' flags.
pub(super) mod flag {
    pub(in super::super) const END_STREAM: u8 = 1;
    pub(in super::super) const ACK: u8 = 1;
    pub(in super::super) const END_HEADERS: u8 = 4;
    pub(in super::super) const PADDED: u8 = 8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// The settings' identifiers.
pub(super) mod setting {
    pub(in super::super) const HEADER_TABLE_SIZE: u16 = 1;
    pub(in super::super) const ENABLE_PUSH: u16 = 2;
    pub(in super::super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in super::super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in super::super) const MAX_FRAME_SIZE: u16 = 5;
    pub(in super::super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// A frame's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    /// The head that the input begins with, if all of it is there.
    #[inline]
    pub(super) fn read(input: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD] = input.first_chunk()?;
        let length = usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
        // The highest bit of the stream is reserved.
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & 0x7fff_ffff;
        Some(Self { length, kind: bytes[3], flags: bytes[4], stream })
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame's head.
#[inline]
pub(super) fn append_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, d, e, f, g]);
}

/// Appends a frame whose payload is one number.
pub(super) fn append_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    append_head(out, 4, kind, 0, stream);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends SETTINGS.
pub(super) fn append_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    append_head(out, 6 * settings.len(), kind::SETTINGS, 0, 0);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// A header block that is made of pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces<'a> {
    /// A change of the table's size.
    pub(super) before: &'a [u8],
    /// The fields that were known before the run.
    pub(super) form: &'a Form,
    /// The `:path`, if it is new with every request: a literal field.
    pub(super) path: &'a [u8],
    /// Literal fields that are new with every request.
    pub(super) after: &'a [u8],
}

impl Pieces<'_> {
    /// Appends HEADERS, and CONTINUATION where the block is longer than a frame.
    #[inline]
    pub(super) fn append(&self, out: &mut Vec<u8>, stream: u32, end: bool, max_payload: usize) {
        let (form, end) = (self.form, if end { flag::END_STREAM } else { 0 });
        let length = self.before.len() + form.bytes.len() + self.path.len() + self.after.len();
        if length > max_payload {
            return self.append_pieces(out, stream, end, max_payload);
        }
        append_head(out, length, kind::HEADERS, end | flag::END_HEADERS, stream);
        if length == form.bytes.len() {
            out.extend_from_slice(&form.bytes);
        } else {
            self.append_block(out);
        }
    }

    fn append_block(&self, out: &mut Vec<u8>) {
        let (pseudo, regular) = self.form.bytes.split_at(self.form.split);
        for piece in [self.before, pseudo, self.path, regular, self.after] {
            out.extend_from_slice(piece);
        }
    }

    #[cold]
    fn append_pieces(&self, out: &mut Vec<u8>, stream: u32, end: u8, max_payload: usize) {
        let mut block = Vec::new();
        self.append_block(&mut block);
        let last = block.chunks(max_payload).count() - 1;
        for (place, piece) in block.chunks(max_payload).enumerate() {
            let (kind, flags) = if place == 0 { (kind::HEADERS, end) } else { (kind::CONTINUATION, 0) };
            let flags = flags | if place == last { flag::END_HEADERS } else { 0 };
            append_head(out, piece.len(), kind, flags, stream);
            out.extend_from_slice(piece);
        }
    }
}

/// The name of an error code (RFC 9113, 7).
pub(super) fn error_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).map_or_else(|| format!("error {code:#x}"), |name| (*name).to_owned())
}

/// Error codes that we send.
pub(super) mod error {
    pub(in super::super) const NO_ERROR: u32 = 0;
    pub(in super::super) const PROTOCOL_ERROR: u32 = 1;
    pub(in super::super) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(in super::super) const CANCEL: u32 = 8;
}

#[cfg(test)]
mod tests {
    use super::super::hpack::{Block, Field};
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_its_reserved_bit_is_ignored() {
        let mut bytes = Vec::new();
        append_head(&mut bytes, 0x01_02_03, kind::DATA, flag::END_STREAM, 0x7fff_fffe);
        let head = Head { length: 0x01_02_03, kind: kind::DATA, flags: flag::END_STREAM, stream: 0x7fff_fffe };
        assert_eq!(Head::read(&bytes), Some(head));
        bytes[5] |= 0x80;
        assert_eq!(Head::read(&bytes), Some(head));
        assert_eq!(Head::read(&bytes[..HEAD - 1]), None);
    }

    #[test]
    fn long_header_blocks_are_continued() {
        let block = Block::new(&[Field::own("x-long", vec![b'~'; 100])]);
        let pieces = Pieces { before: &[], form: &block.plain, path: &[], after: &[1, 2, 3] };
        let mut out = Vec::new();
        pieces.append(&mut out, 5, true, 50);
        let (mut rest, mut kinds, mut joined) = (&out[..], Vec::new(), Vec::new());
        while let Some(head) = Head::read(rest) {
            kinds.push((head.kind, head.flags, head.stream));
            joined.extend_from_slice(&rest[HEAD..HEAD + head.length]);
            rest = &rest[HEAD + head.length..];
        }
        assert_eq!(kinds, [(1, 1, 5), (9, 0, 5), (9, 4, 5)]);
        assert_eq!(joined, [&block.plain.bytes[..], &[1, 2, 3]].concat());
    }
}
