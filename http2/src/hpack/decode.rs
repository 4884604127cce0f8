//! Header blocks to fields.

use std::fmt;

use super::table::Table;
use super::{Fields, MOST_TABLE_SIZE, OVERHEAD, TABLE_SIZE, huffman, pattern};

/// A header block that is none: no later block of its connection can be decoded (RFC 7541 section 2.3.3, RFC 9113 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed header block")
    }
}

impl std::error::Error for Malformed {}

/// The properties of a block beside its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Whether all fields are there; otherwise the list was larger than allowed, and its end is missing.
    pub is_whole: bool,
    /// Whether the block left the header table as it was: as long as the table's version stays, the same bytes mean the same.
    pub is_repeatable: bool,
}

/// One direction's header table, at the end where blocks arrive.
#[derive(Clone, Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table size that the peer may set.
    most: usize,
}

impl Decoder {
    /// A decoder whose table may have so many bytes: as our settings tell the peer, from [`TABLE_SIZE`] to
    /// [`MOST_TABLE_SIZE`].
    pub fn new(table_size: usize) -> Self {
        // It has the usual size until the peer says that it uses another one.
        Self { table: Table::new(TABLE_SIZE), most: table_size.clamp(TABLE_SIZE, MOST_TABLE_SIZE) }
    }

    /// Changes whenever the same bytes may mean something else than before.
    #[inline]
    pub fn version(&self) -> u64 {
        self.table.version()
    }

    /// Decodes a whole block. `fields` are filled up to a size of `limit` bytes (see [`Fields::size`]).
    ///
    /// # Errors
    /// When the block is malformed.
    pub fn decode(&mut self, block: &[u8], limit: usize, fields: &mut Fields) -> Result<Decoded, Malformed> {
        fields.clear();
        let version = self.table.version();
        let mut input = Input(block);
        let mut may_resize = true;
        let mut is_whole = true;
        while let Some(&first) = input.0.first() {
            if !is_whole && input.skip_indexed(self.table.last_index()) {
                // They are not wanted any more, and change nothing.
                continue;
            }
            let start = fields.text.len();
            if first & pattern::INDEXED != 0 {
                let (name, value) = self.table.get(input.integer(7)?).ok_or(Malformed)?;
                if is_whole && fields.size() + name.len() + value.len() + OVERHEAD <= limit {
                    fields.push(name, value);
                } else {
                    is_whole = false;
                }
            } else if first & pattern::WITH_INDEXING != 0 {
                let name = self.literal(&mut input, 6, fields)?;
                let (name_text, value_text) = fields.text[start..].split_at(name - start);
                self.table.insert(name_text, value_text);
                is_whole &= accept(fields, start, name, limit, is_whole);
            } else if first & pattern::SIZE_UPDATE != 0 {
                let size = input.integer(5)?;
                if !may_resize || size > self.most {
                    return Err(Malformed);
                }
                self.table.set_limit(size);
                continue;
            } else {
                // Without indexing, and never indexed, which is the same to those who do not pass it on.
                let name = self.literal(&mut input, 4, fields)?;
                is_whole &= accept(fields, start, name, limit, is_whole);
            }
            // Sizes change at the beginning of a block alone (RFC 7541 section 4.2).
            may_resize = false;
        }
        Ok(Decoded { is_whole, is_repeatable: version == self.table.version() })
    }

    /// Appends name and value of a literal to the text; where the name ends.
    fn literal(&self, input: &mut Input<'_>, prefix: u32, fields: &mut Fields) -> Result<usize, Malformed> {
        match input.integer(prefix)? {
            0 => input.string(&mut fields.text)?,
            index => fields.text.extend_from_slice(self.table.get(index).ok_or(Malformed)?.0),
        }
        let name = fields.text.len();
        input.string(&mut fields.text)?;
        Ok(name)
    }
}

/// Takes the text from `start` on as a field if there is room for it.
fn accept(fields: &mut Fields, start: usize, name: usize, limit: usize, is_whole: bool) -> bool {
    let fits = is_whole && fields.size() + fields.text.len() - start + OVERHEAD <= limit;
    if fits {
        fields.end(name);
    } else {
        fields.text.truncate(start);
    }
    fits
}

/// The rest of a block.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    /// An integer whose first bits are the last ones of a byte (RFC 7541 section 5.1).
    #[inline]
    fn integer(&mut self, prefix: u32) -> Result<usize, Malformed> {
        let most = (1 << prefix) - 1;
        let first = usize::from(self.byte()?) & most;
        if first < most {
            return Ok(first);
        }
        let (mut value, mut shift) = (most, 0);
        loop {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            // Nothing that is right here needs more than four bytes.
            if shift > 21 {
                return Err(Malformed);
            }
        }
    }

    /// Skips fields that are a byte each, which stands for one of so many in both tables; whether there were any.
    fn skip_indexed(&mut self, known: usize) -> bool {
        // The next one says that more bytes follow.
        let last = pattern::INDEXED | u8::try_from(known).map_or(0x7e, |known| known.min(0x7e));
        let count = self.0.iter().take_while(|byte| (pattern::INDEXED + 1..=last).contains(*byte)).count();
        self.0 = &self.0[count..];
        count > 0
    }

    /// A string (RFC 7541 section 5.2).
    fn string(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let is_coded = self.0.first().ok_or(Malformed)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        if is_coded {
            return huffman::decode(text, out).ok_or(Malformed);
        }
        out.extend_from_slice(text);
        Ok(())
    }
}
