//! QPACK (RFC 9204) without its dynamic table, which no side need use: each block means the same wherever it stands.

use super::table::STATIC;
use crate::codec::h2::hpack::{Field, Invalid, append_integer, append_text, count, read_integer, read_text};
use crate::codec::h2::{Head, KnownHeads, Reader};

/// The prefix of a block that needs no dynamic table: a Required Insert Count and a Base of 0.
const PREFIX: [u8; 2] = [0, 0];

/// A request's fields that are known before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::codec) struct Block {
    pub(super) bytes: Box<[u8]>,
    /// Where the pseudo-header fields end: a `:path` that is new with every request goes there.
    pub(super) split: usize,
}

impl Block {
    /// The block of these fields. Pseudo-header fields come first.
    pub(in crate::codec) fn new(fields: &[Field]) -> Self {
        let pseudo = fields.iter().take_while(|field| field.name.starts_with(':')).count();
        let (mut bytes, mut split) = (PREFIX.to_vec(), PREFIX.len());
        for (place, field) in fields.iter().enumerate() {
            append(&mut bytes, field);
            if place < pseudo {
                split = bytes.len();
            }
        }
        Self { bytes: bytes.into(), split }
    }
}

fn append(out: &mut Vec<u8>, field: &Field) {
    let is_same = |(name, value): &(&str, &str)| *name == field.name && value.as_bytes() == field.value;
    if let Some(index) = STATIC.iter().position(is_same) {
        append_integer(out, 0b1100_0000, 6, index);
        return;
    }
    append_name(out, &field.name);
    append_text(out, &field.value);
}

/// Appends a field that is new with every request, not in Huffman code.
pub(in crate::codec) fn append_literal(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    append_name(out, name);
    append_integer(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

fn append_name(out: &mut Vec<u8>, name: &str) {
    if let Some(index) = STATIC.iter().position(|(known, _)| *known == name) {
        append_integer(out, 0b0101_0000, 4, index);
    } else {
        append_integer(out, 0b0010_0000, 3, name.len());
        out.extend_from_slice(name.as_bytes());
    }
}

/// The blocks of one connection's answers.
#[derive(Debug, Default)]
pub(super) struct Heads {
    known: KnownHeads,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Heads {
    /// Reads a block.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8]) -> Result<&Head, Invalid> {
        match self.known.place(0, block) {
            Some(place) => Ok(self.known.head(place)),
            None => self.decode(block),
        }
    }

    fn decode(&mut self, block: &[u8]) -> Result<&Head, Invalid> {
        let mut reader = Reader::default();
        let (inserts, rest) = read_integer(block, 8).ok_or(Invalid::Truncated)?;
        if inserts != 0 {
            return Err(Invalid::Index(inserts));
        }
        let (_, mut rest) = read_integer(rest, 7).ok_or(Invalid::Truncated)?;
        let mut size = 0;
        while let Some(&first) = rest.first() {
            rest = self.field(rest, first, &mut size, &mut reader)?;
        }
        Ok(self.known.keep(Some(0), block, reader.head))
    }

    /// Reads one field, and gives what is behind it.
    fn field<'a>(
        &mut self,
        input: &'a [u8],
        first: u8,
        size: &mut usize,
        reader: &mut Reader,
    ) -> Result<&'a [u8], Invalid> {
        if first & 0b1000_0000 != 0 {
            let (index, rest) = read_integer(input, 6).ok_or(Invalid::Truncated)?;
            let (name, value) = entry(index, first & 0b0100_0000 != 0)?;
            count(size, name.as_bytes(), value.as_bytes())?;
            reader.field(name.as_bytes(), value.as_bytes());
            return Ok(rest);
        }
        self.name.clear();
        let rest = if first & 0b0100_0000 != 0 {
            let (index, rest) = read_integer(input, 4).ok_or(Invalid::Truncated)?;
            let (name, _) = entry(index, first & 0b0001_0000 != 0)?;
            self.name.extend_from_slice(name.as_bytes());
            rest
        } else if first & 0b0010_0000 != 0 {
            read_text(input, 3, &mut self.name)?
        } else {
            // Behind the Base: there is no dynamic table.
            return Err(Invalid::Index(usize::from(first)));
        };
        self.value.clear();
        let rest = read_text(rest, 7, &mut self.value)?;
        count(size, &self.name, &self.value)?;
        reader.field(&self.name, &self.value);
        Ok(rest)
    }
}

/// An entry of the static table.
fn entry(index: usize, is_static: bool) -> Result<(&'static str, &'static str), Invalid> {
    STATIC.get(index).filter(|_| is_static).copied().ok_or(Invalid::Index(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back() {
        let fields = [
            Field::own(":status", "200"),
            Field::own(":status", "404"),
            Field::own("content-length", "12"),
            Field::own("x-unknown", "a value, and more of it"),
        ];
        let block = Block::new(&fields[..1]);
        assert_eq!((&*block.bytes, block.split), (&[0, 0, 0xd9][..], 3));
        let mut heads = Heads::default();
        assert_eq!(heads.read(&block.bytes).unwrap(), &Head { status: 200, ..Head::default() });
        let block = Block::new(&fields[1..]);
        let mut bytes = block.bytes.into_vec();
        append_literal(&mut bytes, "x-late", b"1");
        let expected = Head { status: 404, content_length: Some(12), ..Head::default() };
        assert_eq!(heads.read(&bytes), Ok(&expected));
        // From memory.
        assert_eq!(heads.read(&bytes), Ok(&expected));
    }

    #[test]
    fn literals_of_the_rfc() {
        // RFC 9204, B.1: a literal of `:path` by name reference.
        let mut out = PREFIX.to_vec();
        append_literal(&mut out, ":path", b"/index.html");
        assert_eq!(out, *b"\0\0\x51\x0b/index.html");
    }

    #[test]
    fn blocks_that_need_a_dynamic_table_are_refused() {
        #[track_caller]
        fn check(block: &[u8], expected: Invalid) {
            assert_eq!(Heads::default().read(block), Err(expected));
        }
        check(&[], Invalid::Truncated);
        check(&[0], Invalid::Truncated);
        check(&[2, 0, 0x80], Invalid::Index(2));
        check(&[0, 0, 0x80], Invalid::Index(0));
        check(&[0, 0, 0x10], Invalid::Index(16));
        check(&[0, 0, 0xff, 99 - 63], Invalid::Index(99));
        check(&[0, 0, 0x27, 1, b'a'], Invalid::Truncated);
        check(&[0, 0, 0x51, 2, b'/'], Invalid::Truncated);
    }
}
