//! Header fields in one block of memory.

use super::OVERHEAD;

/// A field to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// In lower case.
    pub name: &'a [u8],
    /// Without spaces around it.
    pub value: &'a [u8],
    pub(super) indexing: Indexing,
}

/// Whether a field goes to the header table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexing {
    /// It is expected again.
    Yes,
    /// It hardly comes again: it would push out what does.
    No,
    /// Intermediaries must not compress it (RFC 7541 section 7.1.3).
    Never,
}

impl<'a> Field<'a> {
    /// A field that may be sent again with the same value.
    pub const fn new(name: &'a [u8], value: &'a [u8]) -> Self {
        Self { name, value, indexing: Indexing::Yes }
    }

    /// A field whose value is another one each time.
    pub const fn once(name: &'a [u8], value: &'a [u8]) -> Self {
        Self { name, value, indexing: Indexing::No }
    }

    /// A field that must not be guessed from the lengths of messages.
    pub const fn secret(name: &'a [u8], value: &'a [u8]) -> Self {
        Self { name, value, indexing: Indexing::Never }
    }
}

/// Fields as they came, in their order, in two allocations that are used again.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// All names and values, one behind the other.
    pub(super) text: Vec<u8>,
    /// Where each one's name ends, and where its value does.
    ends: Vec<(u32, u32)>,
    size: usize,
}

impl Fields {
    /// None.
    pub const fn new() -> Self {
        Self { text: Vec::new(), ends: Vec::new(), size: 0 }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Names and values in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.spans().map(|(start, name, value)| (&self.text[start..name], &self.text[name..value]))
    }

    /// Where names begin, where they end, and where values do.
    pub(crate) fn spans(&self) -> impl ExactSizeIterator<Item = (usize, usize, usize)> {
        let mut start = 0;
        self.ends
            .iter()
            .map(move |&(name, value)| (std::mem::replace(&mut start, value as usize), name as usize, value as usize))
    }

    /// All names and values, one behind the other.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The first value of this name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// One more.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.text.extend_from_slice(name);
        let name = self.text.len();
        self.text.extend_from_slice(value);
        self.end(name);
    }

    /// Takes the text behind the last field as one more, whose name ends there.
    pub(super) fn end(&mut self, name: usize) {
        let start = self.ends.last().map_or(0, |(_, value)| *value as usize);
        // A header block is shorter than 4 GiB by far: its frames are bounded.
        self.ends.push((name as u32, self.text.len() as u32));
        self.size += self.text.len() - start + OVERHEAD;
    }

    /// As a header list is measured.
    pub fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.size = 0;
    }

    /// Whether there is room for more than so many bytes.
    #[inline]
    pub(crate) fn is_larger_than(&self, bytes: usize) -> bool {
        self.text.capacity() > bytes || self.ends.capacity() > bytes / size_of::<(u32, u32)>()
    }

    /// Forgets all, and room that only a large list needs.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.clear();
        self.text.shrink_to(bytes);
        self.ends.shrink_to(bytes / size_of::<(u32, u32)>());
    }
}
