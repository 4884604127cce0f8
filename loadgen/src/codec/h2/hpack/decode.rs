//! Reading header blocks.

use std::fmt;

use super::huffman;
use super::integer::read_integer;
use super::table::{DEFAULT_TABLE_SIZE, Dynamic, ENTRY_OVERHEAD};

/// The largest list of header fields that is accepted, counted as SETTINGS_MAX_HEADER_LIST_SIZE does. Servers in use stop at
/// 8 to 64 KiB.
pub(crate) const MAX_HEADER_LIST: usize = 256 * 1024;

/// Reads the header blocks of one connection, in the order of their arrival.
#[derive(Debug)]
pub struct Decoder {
    table: Dynamic,
    /// Counts changes of the table: as long as it is the same, so is the meaning of an index.
    generation: u32,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Why a header block cannot be read. The tables of both sides differ from then on, so the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A number or a text is cut off, or a number is too large.
    Truncated,
    /// An index beyond the tables.
    Index(usize),
    /// A bad Huffman code.
    Huffman,
    /// A table size that was not allowed, or not at the block's beginning.
    TableSize,
    /// More than the largest list.
    TooLarge,
}

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => formatter.write_str("a header block is cut off"),
            Self::Index(index) => write!(formatter, "a header block names entry {index}, which is not in the table"),
            Self::Huffman => formatter.write_str("a header block holds a bad Huffman code"),
            Self::TableSize => formatter.write_str("a header block sets a table size that was not allowed"),
            Self::TooLarge => write!(formatter, "header fields of more than {MAX_HEADER_LIST} bytes"),
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A new connection's.
    #[must_use]
    pub fn new() -> Self {
        Self { table: Dynamic::new(DEFAULT_TABLE_SIZE), generation: 0, name: Vec::new(), value: Vec::new() }
    }

    /// A number that changes with the table. A block that was decoded without changing it means the same as long as it
    /// stays the same.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Reads a whole block, giving each field by name and value.
    ///
    /// # Errors
    /// When the block is not HPACK, or longer than is accepted.
    pub fn decode(&mut self, block: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<(), Invalid> {
        let (mut rest, mut size, mut may_resize) = (block, 0, true);
        while let Some(&first) = rest.first() {
            if first & 0b1110_0000 == 0b0010_0000 {
                let (most, behind) = read_integer(rest, 5).ok_or(Invalid::Truncated)?;
                if !may_resize || most > DEFAULT_TABLE_SIZE {
                    return Err(Invalid::TableSize);
                }
                self.table.resize(most);
                self.generation = self.generation.wrapping_add(1);
                rest = behind;
                continue;
            }
            may_resize = false;
            rest = self.field(rest, first, &mut size, &mut field)?;
        }
        Ok(())
    }

    /// Reads one field, and gives what is behind it.
    fn field<'a>(
        &mut self,
        input: &'a [u8],
        first: u8,
        size: &mut usize,
        field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<&'a [u8], Invalid> {
        if first & 0b1000_0000 != 0 {
            let (index, rest) = read_integer(input, 7).ok_or(Invalid::Truncated)?;
            let (name, value) = self.table.field(index).ok_or(Invalid::Index(index))?;
            count(size, name, value)?;
            field(name, value);
            return Ok(rest);
        }
        let indexed = first & 0b0100_0000 != 0;
        let (index, mut rest) = read_integer(input, if indexed { 6 } else { 4 }).ok_or(Invalid::Truncated)?;
        self.name.clear();
        if index == 0 {
            rest = read_text(rest, 7, &mut self.name)?;
        } else {
            let (name, _) = self.table.field(index).ok_or(Invalid::Index(index))?;
            self.name.extend_from_slice(name);
        }
        self.value.clear();
        rest = read_text(rest, 7, &mut self.value)?;
        count(size, &self.name, &self.value)?;
        field(&self.name, &self.value);
        if indexed {
            self.table.insert(&self.name, &self.value);
            self.generation = self.generation.wrapping_add(1);
        }
        Ok(rest)
    }
}

/// Adds a field to the size of a header list.
pub(in crate::codec) fn count(size: &mut usize, name: &[u8], value: &[u8]) -> Result<(), Invalid> {
    *size += name.len() + value.len() + ENTRY_OVERHEAD;
    if *size > MAX_HEADER_LIST { Err(Invalid::TooLarge) } else { Ok(()) }
}

/// Appends a text, plain or in Huffman code, whose length begins in the `prefix` low bits, and gives what is behind it.
pub(in crate::codec) fn read_text<'a>(input: &'a [u8], prefix: u32, out: &mut Vec<u8>) -> Result<&'a [u8], Invalid> {
    let coded = input.first().ok_or(Invalid::Truncated)? & (1 << prefix) != 0;
    let (length, rest) = read_integer(input, prefix).ok_or(Invalid::Truncated)?;
    let (text, rest) = rest.split_at_checked(length).ok_or(Invalid::Truncated)?;
    if coded {
        huffman::decode(text, out).ok_or(Invalid::Huffman)?;
    } else {
        out.extend_from_slice(text);
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    /// Decodes blocks one after the other; each gives `name: value` lines and the size of the table after it.
    #[track_caller]
    fn check(decoder: &mut Decoder, block: &str, expected: &str, size: usize) {
        let mut lines = Vec::new();
        let read = decoder.decode(&bytes(block), |name, value| {
            lines.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        });
        assert_eq!(read, Ok(()));
        assert_eq!(lines.join("\n"), expected);
        assert_eq!(decoder.table.size(), size);
    }

    const REQUEST_1: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com";
    const REQUEST_2: &str =
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache";
    const REQUEST_3: &str =
        ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value";

    #[test]
    fn literals_of_the_rfc() {
        let decoder = &mut Decoder::new();
        // C.2.1 to C.2.4.
        let with_indexing = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
        check(decoder, with_indexing, "custom-key: custom-header", 55);
        check(decoder, "040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 55);
        check(decoder, "1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 55);
        check(decoder, "82", ":method: GET", 55);
    }

    #[test]
    fn requests_of_the_rfc() {
        let plain = &mut Decoder::new();
        check(plain, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", REQUEST_1, 57);
        check(plain, "8286 84be 5808 6e6f 2d63 6163 6865", REQUEST_2, 110);
        let third = "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65";
        check(plain, third, REQUEST_3, 164);
        let coded = &mut Decoder::new();
        check(coded, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", REQUEST_1, 57);
        check(coded, "8286 84be 5886 a8eb 1064 9cbf", REQUEST_2, 110);
        check(coded, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", REQUEST_3, 164);
    }

    #[test]
    fn answers_of_the_rfc_evict() {
        let first = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
                     location: https://www.example.com";
        let second = first.replace("302", "307");
        let third = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n\
                     location: https://www.example.com\ncontent-encoding: gzip\n\
                     set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        // C.6, whose table is 256 bytes small: set by an update before the first block.
        let decoder = &mut Decoder::new();
        let update = "3fe1 01";
        let block = "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d \
                     29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
        check(decoder, &format!("{update}{block}"), first, 222);
        check(decoder, "4883 640e ffc1 c0bf", &second, 222);
        let block = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d \
                     d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 \
                     3d50 07";
        check(decoder, block, third, 215);
    }

    #[test]
    fn the_generation_tells_whether_the_table_changed() {
        let decoder = &mut Decoder::new();
        let before = decoder.generation();
        check(decoder, "8286", ":method: GET\n:scheme: http", 0);
        assert_eq!(decoder.generation(), before);
        check(decoder, "4001 6101 62", "a: b", 34);
        assert_ne!(decoder.generation(), before);
        let before = decoder.generation();
        check(decoder, "20", "", 0);
        assert_ne!(decoder.generation(), before);
    }

    #[test]
    fn malformed_hpack_blocks_are_refused() {
        #[track_caller]
        fn check(block: &str, expected: Invalid) {
            assert_eq!(Decoder::new().decode(&bytes(block), |_, _| ()), Err(expected));
        }
        check("80", Invalid::Index(0));
        check("be", Invalid::Index(62));
        check("7f00 00", Invalid::Index(63));
        check("400a 6375", Invalid::Truncated);
        check("ff", Invalid::Truncated);
        check("ffff ffff ffff ff", Invalid::Truncated);
        check("0401", Invalid::Truncated);
        check("0481 00", Invalid::Huffman);
        check("3fe2 1f", Invalid::TableSize);
        check("8220", Invalid::TableSize);
        let long = format!("007f81 01{}", "61".repeat(256));
        // A name of 256 bytes, cut off before its value.
        check(&long, Invalid::Truncated);
    }

    #[test]
    fn a_small_block_cannot_become_a_large_list() {
        let decoder = &mut Decoder::new();
        let mut block = vec![0x40, 1, b'a', 0x7f];
        super::super::integer::append_integer(&mut block, 0, 7, 4000);
        block.remove(3);
        block.extend_from_slice(&[b'b'; 4000]);
        assert_eq!(decoder.decode(&block, |_, _| ()), Ok(()));
        assert_eq!(decoder.decode(&[0xbe; 10_000], |_, _| ()), Err(Invalid::TooLarge));
    }
}
