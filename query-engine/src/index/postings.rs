//! The documents of one word or tag, in compressed blocks.
//!
//! A block holds up to [`BLOCK`] documents in rising order; its first and last number stand beside it, so that a reader skips
//! blocks without decoding them. A document costs its distance to the one before and, as the index keeps them, frequency,
//! fields and positions, all in LEB128; positions follow their length, so that readers that need none pass over them.

use crate::schema::{FieldMask, Keeps};

/// A document's number inside an index. Numbers rise and are never used twice, so an old one cannot name a new document.
pub(crate) type DocNumber = u64;

/// Documents in a block: RediSearch's 100 rounded to a power of two.
const BLOCK: u16 = 128;

#[derive(Clone, Debug)]
struct Block {
    first: DocNumber,
    last: DocNumber,
    count: u16,
    bytes: Vec<u8>,
}

/// The data of one word in one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// How often the word occurs, by the weight of its fields.
    pub(crate) frequency: u32,
    /// The TEXT fields that have it.
    pub(crate) fields: FieldMask,
    /// Distances between positions in LEB128; [`Positions`] reads them.
    pub(crate) positions: Vec<u8>,
}

/// The documents of one word, in rising order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postings {
    blocks: Vec<Block>,
    /// Documents in all blocks, among them those that are gone and not yet compacted away.
    count: u64,
    /// The TEXT fields of all of them.
    fields: FieldMask,
}

impl Postings {
    /// Appends a document; numbers must rise.
    pub(crate) fn push(&mut self, number: DocNumber, entry: &Entry, keeps: Keeps) {
        if self.blocks.last().is_none_or(|block| block.count == BLOCK) {
            if let Some(full) = self.blocks.last_mut() {
                full.bytes.shrink_to_fit();
            }
            self.blocks.push(Block { first: number, last: number, count: 0, bytes: Vec::new() });
        }
        let block = self.blocks.last_mut().expect("one was just pushed if there was none");
        debug_assert!(number > block.last || block.count == 0, "numbers rise");
        write_number(&mut block.bytes, number - block.last);
        block.last = number;
        block.count += 1;
        if keeps.frequencies {
            write_number(&mut block.bytes, u64::from(entry.frequency));
        }
        if keeps.fields {
            write_mask(&mut block.bytes, entry.fields);
        }
        if keeps.positions {
            write_number(&mut block.bytes, entry.positions.len() as u64);
            block.bytes.extend_from_slice(&entry.positions);
        }
        self.count += 1;
        self.fields |= if keeps.fields { entry.fields } else { FieldMask::MAX };
    }

    pub(crate) fn fields(&self) -> FieldMask {
        self.fields
    }

    /// Documents, with those that are gone and not yet compacted away.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Blocks of documents.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Leaves only documents that `is_live` confirms.
    pub(crate) fn retain(&mut self, keeps: Keeps, is_live: impl Fn(DocNumber) -> bool) {
        let mut kept = Self::default();
        let mut cursor = Cursor::new(self, keeps);
        let mut next = cursor.seek(0);
        while let Some(number) = next {
            if is_live(number) {
                kept.push(number, &cursor.entry(), keeps);
            }
            next = cursor.next();
        }
        *self = kept;
    }

    /// Bytes in memory, without `self`.
    pub(crate) fn memory(&self) -> usize {
        let blocks = self.blocks.capacity() * size_of::<Block>();
        blocks + self.blocks.iter().map(|block| block.bytes.capacity()).sum::<usize>()
    }
}

/// Reads postings forwards.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'p> {
    postings: &'p Postings,
    keeps: Keeps,
    /// The block that is read next.
    block: usize,
    /// Documents left in it.
    left: u16,
    bytes: &'p [u8],
    number: DocNumber,
    frequency: u32,
    fields: FieldMask,
    positions: &'p [u8],
}

impl<'p> Cursor<'p> {
    /// Stands before the first document.
    pub(crate) fn new(postings: &'p Postings, keeps: Keeps) -> Self {
        let (frequency, fields) = (1, FieldMask::MAX);
        Self { postings, keeps, block: 0, left: 0, bytes: &[], number: 0, frequency, fields, positions: &[] }
    }

    /// The next document.
    pub(crate) fn next(&mut self) -> Option<DocNumber> {
        if self.left == 0 {
            self.enter(self.block)?;
        }
        self.left -= 1;
        self.number += read_number(&mut self.bytes);
        if self.keeps.frequencies {
            self.frequency = read_number(&mut self.bytes) as u32;
        }
        if self.keeps.fields {
            self.fields = read_mask(&mut self.bytes);
        }
        if self.keeps.positions {
            let length = read_number(&mut self.bytes) as usize;
            (self.positions, self.bytes) = self.bytes.split_at(length);
        }
        Some(self.number)
    }

    /// The first document from `target` on, which must not lie before the current one.
    pub(crate) fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let blocks = &self.postings.blocks;
        let current_ends_before = self.block == 0 || self.left == 0 || blocks[self.block - 1].last < target;
        if current_ends_before {
            let ahead = blocks[self.block..].partition_point(|block| block.last < target);
            self.enter(self.block + ahead)?;
        }
        loop {
            let number = self.next()?;
            if number >= target {
                return Some(number);
            }
        }
    }

    fn enter(&mut self, block: usize) -> Option<()> {
        let Some(entered) = self.postings.blocks.get(block) else {
            (self.block, self.left) = (self.postings.blocks.len(), 0);
            return None;
        };
        (self.block, self.left) = (block + 1, entered.count);
        (self.bytes, self.number) = (&entered.bytes, entered.first);
        Some(())
    }

    pub(crate) fn frequency(&self) -> u32 {
        self.frequency
    }

    pub(crate) fn fields(&self) -> FieldMask {
        self.fields
    }

    pub(crate) fn positions(&self) -> &'p [u8] {
        self.positions
    }

    fn entry(&self) -> Entry {
        Entry { frequency: self.frequency, fields: self.fields, positions: self.positions.to_vec() }
    }
}

/// The positions of a word in one document, rising, from 1 on.
#[derive(Clone, Debug)]
pub(crate) struct Positions<'p> {
    bytes: &'p [u8],
    last: u32,
}

impl<'p> Positions<'p> {
    pub(crate) fn new(bytes: &'p [u8]) -> Self {
        Self { bytes, last: 0 }
    }

    /// Appends a position behind `last`.
    pub(crate) fn write(bytes: &mut Vec<u8>, last: u32, position: u32) {
        write_number(bytes, u64::from(position - last));
    }
}

impl Iterator for Positions<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.bytes.is_empty() {
            return None;
        }
        self.last += read_number(&mut self.bytes) as u32;
        Some(self.last)
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads what [`write_number`] wrote. Most numbers are one byte.
#[inline]
fn read_number(bytes: &mut &[u8]) -> u64 {
    match bytes.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *bytes = rest;
            byte.into()
        }
        _ => read_long_number(bytes),
    }
}

/// The bytes are our own, so a number is whole.
fn read_long_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
}

fn write_mask(bytes: &mut Vec<u8>, mut mask: FieldMask) {
    while mask >= 0x80 {
        bytes.push(mask as u8 | 0x80);
        mask >>= 7;
    }
    bytes.push(mask as u8);
}

#[inline]
fn read_mask(bytes: &mut &[u8]) -> FieldMask {
    match bytes.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *bytes = rest;
            byte.into()
        }
        _ => read_long_mask(bytes),
    }
}

fn read_long_mask(bytes: &mut &[u8]) -> FieldMask {
    let (mut mask, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        mask |= FieldMask::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(numbers: impl Iterator<Item = u64>, keeps: Keeps) -> Postings {
        let mut postings = Postings::default();
        for number in numbers {
            let mut positions = Vec::new();
            Positions::write(&mut positions, 0, 3);
            Positions::write(&mut positions, 3, 300);
            let entry = Entry { frequency: number as u32 % 7 + 1, fields: 1 << (number % 128), positions };
            postings.push(number, &entry, keeps);
        }
        postings
    }

    #[test]
    fn readers_see_what_was_pushed() {
        let postings = filled((1..2000).map(|at| at * 3), Keeps::default());
        let mut cursor = Cursor::new(&postings, Keeps::default());
        for at in 1..2000 {
            assert_eq!(cursor.next(), Some(at * 3));
            assert_eq!(cursor.frequency(), (at * 3) as u32 % 7 + 1);
            assert_eq!(cursor.fields(), 1 << (at * 3 % 128));
            assert_eq!(Positions::new(cursor.positions()).collect::<Vec<_>>(), [3, 300]);
        }
        assert_eq!((cursor.next(), cursor.next(), cursor.seek(1)), (None, None, None));
    }

    #[test]
    fn seeking_finds_the_next_document() {
        let bare = Keeps { positions: false, frequencies: false, fields: false };
        for keeps in [Keeps::default(), bare] {
            let postings = filled((1..1000).map(|at| at * 10), keeps);
            for step in [1, 9, 10, 11, 1270, 1280, 1281, 5000] {
                let (mut cursor, mut target) = (Cursor::new(&postings, keeps), 1);
                while let Some(found) = cursor.seek(target) {
                    assert_eq!(found, target.div_ceil(10) * 10, "from {target} by {step}");
                    target = found + step;
                }
                assert!(target > 9990);
            }
        }
    }

    #[test]
    fn retain_compacts_removed_documents_away() {
        let mut postings = filled(1..1000, Keeps::default());
        let before = postings.memory();
        postings.retain(Keeps::default(), |number| number % 10 == 0);
        assert_eq!(postings.count(), 99);
        assert!(postings.memory() < before / 4, "{} of {before}", postings.memory());
        let mut cursor = Cursor::new(&postings, Keeps::default());
        assert_eq!((cursor.next(), cursor.seek(985), cursor.fields()), (Some(10), Some(990), 1 << (990 % 128)));
    }
}
