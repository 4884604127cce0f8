//! Fields to header blocks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::fields::Indexing;
use super::statics::STATIC;
use super::table::Table;
use super::{Field, TABLE_SIZE, huffman, pattern};

/// Prepared blocks that a connection remembers in their shortest form: the usual answers of a service.
const REMEMBERED: usize = 4;

/// Fields that are sent again and again, such as the head of a usual answer. It can be shared by connections: each one encodes it
/// in full twice at most, and then copies a byte or so for each field.
#[derive(Debug)]
pub struct Block {
    id: u64,
    fields: Vec<Owned>,
}

#[derive(Debug)]
struct Owned {
    name: Box<[u8]>,
    value: Box<[u8]>,
    indexing: Indexing,
}

impl Block {
    /// A block of these fields.
    pub fn new<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let owned =
            |Field { name, value, indexing }: Field<'_>| Owned { name: name.into(), value: value.into(), indexing };
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), fields: fields.into_iter().map(owned).collect() }
    }

    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|Owned { name, value, indexing }| Field { name, value, indexing: *indexing })
    }
}

/// One direction's header table, at the end where blocks are made.
#[derive(Clone, Debug)]
pub struct Encoder {
    table: Table,
    /// The smallest size since the last block, and the last one, which the next block tells (RFC 7541 section 4.2).
    resized: Option<(usize, usize)>,
    remembered: [Remembered; REMEMBERED],
    /// The place that is written over next.
    next: usize,
}

/// A prepared block in its encoded form.
#[derive(Clone, Debug, Default)]
struct Remembered {
    block: u64,
    version: u64,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder with a table of the initial size.
    pub fn new() -> Self {
        Self { table: Table::new(TABLE_SIZE), resized: None, remembered: Default::default(), next: 0 }
    }

    /// Takes what the peer's settings say of its table; larger ones than usual are not made use of.
    pub fn set_table_size(&mut self, size: usize) {
        let size = size.min(TABLE_SIZE);
        if size != self.table.limit() {
            let least = self.resized.map_or(size, |(least, _)| least.min(size));
            self.resized = Some((least, size));
            self.table.set_limit(size);
        }
    }

    /// Appends a block of these fields, or its next ones.
    pub fn encode<'a>(&mut self, fields: impl Iterator<Item = Field<'a>>, out: &mut Vec<u8>) {
        self.tell_size(out);
        fields.for_each(|field| self.field(field, out));
    }

    /// Sizes stand at the beginning of a block (RFC 7541 section 4.2).
    #[inline]
    fn tell_size(&mut self, out: &mut Vec<u8>) {
        let Some((least, last)) = self.resized.take() else { return };
        integer(pattern::SIZE_UPDATE, 5, least, out);
        if last != least {
            integer(pattern::SIZE_UPDATE, 5, last, out);
        }
    }

    /// Appends a prepared block.
    #[inline]
    pub fn encode_block(&mut self, block: &Block, out: &mut Vec<u8>) {
        self.tell_size(out);
        let version = self.table.version();
        if let Some(known) = self.remembered.iter().find(|known| known.block == block.id && known.version == version) {
            return out.extend_from_slice(&known.bytes);
        }
        self.encode_anew(block, version, out);
    }

    fn encode_anew(&mut self, block: &Block, version: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode(block.fields(), out);
        // The first time it fills the table; the second time it is only indices, which hold as long as the table does.
        if version == self.table.version() {
            let stale = self.remembered.iter().position(|known| known.block == block.id || known.version != version);
            let known = &mut self.remembered[stale.unwrap_or(self.next)];
            (known.block, known.version) = (block.id, version);
            known.bytes.clear();
            known.bytes.extend_from_slice(&out[start..]);
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    fn field(&mut self, field: Field<'_>, out: &mut Vec<u8>) {
        let Field { name, value, indexing } = field;
        let (whole, named) = statics(name, value);
        let (whole, named) = match (whole, named) {
            (Some(_), _) => (whole, named),
            _ => {
                let (whole, later) = self.table.search(name, value);
                (whole, named.or(later))
            }
        };
        let is_indexed = indexing != Indexing::Never;
        if let Some(index) = whole.filter(|_| is_indexed) {
            return integer(pattern::INDEXED, 7, index, out);
        }
        let is_kept = indexing == Indexing::Yes && self.table.takes(name.len() + value.len());
        let (first, prefix) = match indexing {
            Indexing::Yes if is_kept => (pattern::WITH_INDEXING, 6),
            Indexing::Yes | Indexing::No => (0, 4),
            Indexing::Never => (pattern::NEVER_INDEXED, 4),
        };
        integer(first, prefix, named.unwrap_or(0), out);
        if named.is_none() {
            string(name, out);
        }
        string(value, out);
        if is_kept {
            self.table.insert(name, value);
        }
    }
}

/// The index of a field, or else of its name, in the static table.
fn statics(name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
    let mut named = None;
    for (place, (known, known_value)) in STATIC.iter().enumerate() {
        if *known == name {
            if *known_value == value {
                return (Some(place + 1), Some(place + 1));
            }
            named = named.or(Some(place + 1));
        } else if named.is_some() {
            // Those of one name stand together.
            break;
        }
    }
    (None, named)
}

/// Appends an integer behind the first bits of a byte (RFC 7541 section 5.1).
fn integer(first: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string, in Huffman's code where that is shorter (RFC 7541 section 5.2).
fn string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_length(text);
    if coded < text.len() {
        integer(0x80, 7, coded, out);
        huffman::encode(text, out);
    } else {
        integer(0, 7, text.len(), out);
        out.extend_from_slice(text);
    }
}
