//! A compact sequence of byte strings and integers in one buffer: the small form of every collection.
//!
//! Entries are laid out as in Redis' listpack (a header with type and length, the payload, and the entry's length once
//! more for walking backwards), so limits counted in bytes agree and a dump needs no second encoding. Unlike Redis'
//! there may be a gap before the first entry, which makes both ends cheap.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::protocol::number::{IntText, parse_i64};

/// Ends a listpack in Redis' own layout.
const END: u8 = 0xff;

/// The bytes of a listpack besides its entries in Redis' own layout (header and end mark).
const OVERHEAD: usize = 7;

/// A gap larger than this is closed at once; it keeps the offset within 32 bits.
const MAX_GAP: usize = 1 << 20;
/// Bytes from which on a listpack, or a piece of a table, grows by no more than it must: the room to spare of a million hashes is worth more than
/// what moving them now and then costs.
pub(crate) const GROWS_SLOWLY: usize = 1 << 10;

/// An element as it is read: borrowed bytes, or the text of an element that is kept as an integer.
#[derive(Clone)]
pub enum Text<'a> {
    /// Bytes that lie in the structure.
    Bytes(&'a [u8]),
    /// The text of an integer.
    Int(IntText),
}

impl Text<'_> {
    pub(super) fn int(value: i64) -> Self {
        Self::Int(IntText::new(value))
    }
}

impl Deref for Text<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Int(text) => text,
        }
    }
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<'a> From<Text<'a>> for Cow<'a, [u8]> {
    fn from(text: Text<'a>) -> Self {
        match text {
            Text::Bytes(bytes) => Cow::Borrowed(bytes),
            Text::Int(text) => Cow::Owned(text.to_vec()),
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Entry<'a> {
    Bytes(&'a [u8]),
    Int(i64),
}

impl<'a> From<Entry<'a>> for Text<'a> {
    #[inline]
    fn from(entry: Entry<'a>) -> Self {
        match entry {
            Entry::Bytes(bytes) => Text::Bytes(bytes),
            Entry::Int(value) => Text::int(value),
        }
    }
}

/// A value in the form in which it is stored, without its trailing length. The form is canonical: equal values have
/// equal forms, so searching compares forms.
#[derive(Clone, Copy)]
pub(super) struct Form<'a> {
    head: [u8; 9],
    head_len: u8,
    body: &'a [u8],
}

impl<'a> Form<'a> {
    /// The form of `value`: an integer where its text is one.
    #[inline]
    pub(super) fn new(value: &'a [u8]) -> Self {
        match parse_i64(value) {
            Some(int) => Self::int(int),
            None => Self::bytes(value),
        }
    }

    /// The form of what an entry holds.
    fn of(entry: Entry<'a>) -> Self {
        match entry {
            Entry::Bytes(value) => Self::new(value),
            Entry::Int(value) => Self::int(value),
        }
    }

    /// The form of `value` as bytes, whatever they are.
    #[inline]
    pub(super) fn bytes(value: &'a [u8]) -> Self {
        let len = value.len();
        if len < 64 {
            Self::with_head(&[0x80 | len as u8], value)
        } else if len < 4096 {
            Self::with_head(&[0xE0 | (len >> 8) as u8, len as u8], value)
        } else if let Ok(len) = u32::try_from(len) {
            let [a, b, c, d] = len.to_le_bytes();
            Self::with_head(&[0xF0, a, b, c, d], value)
        } else {
            // Beyond what Redis' layout can say; it has no F5.
            let mut head = [0xF5, 0, 0, 0, 0, 0, 0, 0, 0];
            head[1..].copy_from_slice(&(len as u64).to_le_bytes());
            Self::with_head(&head, value)
        }
    }

    #[inline]
    pub(super) fn int(value: i64) -> Self {
        let bytes = value.to_le_bytes();
        match value {
            0..=127 => Self::with_head(&[value as u8], &[]),
            -4096..=4095 => Self::with_head(&[0xC0 | (value >> 8) as u8 & 0x1F, value as u8], &[]),
            -0x8000..=0x7FFF => Self::with_head(&[0xF1, bytes[0], bytes[1]], &[]),
            -0x80_0000..=0x7F_FFFF => Self::with_head(&[0xF2, bytes[0], bytes[1], bytes[2]], &[]),
            -0x8000_0000..=0x7FFF_FFFF => Self::with_head(&[0xF3, bytes[0], bytes[1], bytes[2], bytes[3]], &[]),
            _ => {
                let mut head = [0xF4; 9];
                head[1..].copy_from_slice(&bytes);
                Self::with_head(&head, &[])
            }
        }
    }

    #[inline]
    fn with_head(head: &[u8], body: &'a [u8]) -> Self {
        let mut form = Self { head: [0; 9], head_len: head.len() as u8, body };
        form.head[..head.len()].copy_from_slice(head);
        form
    }

    #[inline]
    fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    /// Bytes that the entry takes, its trailing length included.
    #[inline]
    pub(super) fn size(&self) -> usize {
        let len = usize::from(self.head_len) + self.body.len();
        len + tail_size(len)
    }

    /// Whether the entry at the start of `bytes` is this value.
    #[inline]
    fn matches(&self, bytes: &[u8]) -> bool {
        let head_len = usize::from(self.head_len);
        bytes[0] == self.head[0] && bytes.starts_with(self.head()) && bytes[head_len..].starts_with(self.body)
    }

    /// Writes the whole entry to the front of `to`, and returns the rest.
    #[inline]
    fn write<'b>(&self, to: &'b mut [u8]) -> &'b mut [u8] {
        let len = usize::from(self.head_len) + self.body.len();
        let (entry, rest) = to.split_at_mut(len + tail_size(len));
        let (head, body) = entry.split_at_mut(usize::from(self.head_len));
        head.copy_from_slice(self.head());
        let (body, tail) = body.split_at_mut(self.body.len());
        body.copy_from_slice(self.body);
        write_tail(tail, len);
        rest
    }
}

/// Bytes that the trailing length takes for an entry of `len` bytes.
#[inline]
fn tail_size(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Seven bits a byte, the least significant last; all but the first say that another one precedes.
#[inline]
fn write_tail(tail: &mut [u8], mut len: usize) {
    for byte in tail[1..].iter_mut().rev() {
        *byte = 0x80 | (len & 0x7F) as u8;
        len >>= 7;
    }
    tail[0] = (len & 0x7F) as u8;
}

/// The size of the entry that ends where `bytes` ends.
fn size_backwards(bytes: &[u8]) -> usize {
    let mut len = 0;
    for (count, &byte) in bytes.iter().rev().enumerate() {
        len |= usize::from(byte & 0x7F) << (7 * count);
        if byte & 0x80 == 0 {
            return len + count + 1;
        }
    }
    unreachable!("every entry ends with its length")
}

/// Header bytes and payload bytes of the entry at the start of `bytes`.
#[inline]
fn lengths(bytes: &[u8]) -> (usize, usize) {
    match bytes[0] {
        0x00..=0x7F => (1, 0),
        byte @ 0x80..=0xBF => (1, usize::from(byte & 0x3F)),
        0xC0..=0xDF => (2, 0),
        byte @ 0xE0..=0xEF => (2, usize::from(byte & 0x0F) << 8 | usize::from(bytes[1])),
        0xF0 => (5, little_endian(&bytes[1..5]) as usize),
        0xF1 => (3, 0),
        0xF2 => (4, 0),
        0xF3 => (5, 0),
        0xF4 => (9, 0),
        _ => (9, little_endian(&bytes[1..9]) as usize),
    }
}

#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The low `bits` of `value` as a signed number.
#[inline]
fn sign_extend(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

#[inline]
fn decode(bytes: &[u8]) -> Entry<'_> {
    let (head, body) = lengths(bytes);
    match bytes[0] {
        byte @ 0x00..=0x7F => Entry::Int(i64::from(byte)),
        byte @ 0xC0..=0xDF => Entry::Int(sign_extend(u64::from(byte) << 8 | u64::from(bytes[1]), 13)),
        0xF1..=0xF4 => Entry::Int(sign_extend(little_endian(&bytes[1..head]), 8 * (head as u32 - 1))),
        _ => Entry::Bytes(&bytes[head..head + body]),
    }
}

/// A sequence of byte strings and integers in one buffer. Positions are byte offsets of entries; `end()` is the
/// position after the last one.
#[derive(Clone, Default)]
pub struct Listpack {
    buf: Vec<u8>,
    /// Where the first entry begins.
    start: u32,
    count: u32,
}

impl Listpack {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The size that Redis' own listpack of the same entries has.
    pub fn bytes(&self) -> usize {
        self.end() + OVERHEAD
    }

    /// The entries as Redis lays them out, without header and end mark.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf[self.start as usize..]
    }

    /// The whole listpack as Redis lays it out.
    pub fn to_redis(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        // A listpack of 4 GiB and more never exists, because its sources have limits.
        bytes.extend_from_slice(&(self.bytes() as u32).to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(self.count).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend_from_slice(self.as_bytes());
        bytes.push(END);
        bytes
    }

    /// Reads a whole listpack of Redis; `None` if it is none. Elements in a longer form than they need, which no server writes, get the
    /// shortest one, because changes in place rely on its length.
    pub fn from_redis(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(OVERHEAD - 1)?;
        let (&end, entries) = rest.split_last()?;
        let total = u32::from_le_bytes(header[..4].try_into().ok()?);
        if end != END || total as usize != bytes.len() {
            return None;
        }
        let (mut count, mut left, mut is_canonical) = (0u32, entries, true);
        while !left.is_empty() {
            let (entry, rest) = left.split_at(checked_size(left)?);
            let form = Form::of(decode(entry));
            is_canonical &= form.size() == entry.len() && form.matches(entry);
            left = rest;
            count += 1;
        }
        let counted = u16::from_le_bytes([header[4], header[5]]);
        // A count that does not fit is not told.
        let fits = counted == u16::MAX || u32::from(counted) == count;
        let list = fits.then(|| Self { buf: entries.to_vec(), start: 0, count })?;
        Some(if is_canonical { list } else { list.in_canonical_form() })
    }

    /// The same elements, each in its own form.
    fn in_canonical_form(&self) -> Self {
        let (mut list, mut left) = (Self::default(), self.iter());
        while let Some(entry) = left.next_entry() {
            list.push_back(&[Form::of(entry)]);
        }
        list
    }

    /// Adds a value at the end, as an integer where its text is one.
    pub fn push(&mut self, value: &[u8]) {
        self.push_back(&[Form::new(value)]);
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        self.buf.capacity()
    }

    /// All entries in order.
    pub fn iter(&self) -> ListpackIter<'_> {
        ListpackIter { bytes: self.as_bytes(), left: self.len() }
    }

    /// The entries from number `from` up to before number `to`.
    pub(super) fn range(&self, from: usize, to: usize) -> ListpackIter<'_> {
        let from_position = self.seek(from);
        let to_position = if to == from { from_position } else { self.seek(to) };
        ListpackIter { bytes: &self.as_bytes()[from_position..to_position], left: to - from }
    }

    pub(super) fn end(&self) -> usize {
        self.buf.len() - self.start as usize
    }

    #[inline]
    pub(super) fn get(&self, position: usize) -> Entry<'_> {
        decode(&self.as_bytes()[position..])
    }

    /// The position after the entry at `position`.
    #[inline]
    pub(super) fn next(&self, position: usize) -> usize {
        position + size(&self.as_bytes()[position..])
    }

    /// The position of the entry before `position`, which must not be the first.
    pub(super) fn previous(&self, position: usize) -> usize {
        position - size_backwards(&self.as_bytes()[..position])
    }

    /// The position of the entry number `index`, or the end; found from the nearer end.
    pub(super) fn seek(&self, index: usize) -> usize {
        if index <= self.len() / 2 {
            (0..index).fold(0, |position, _| self.next(position))
        } else {
            (index..self.len()).fold(self.end(), |position, _| self.previous(position))
        }
    }

    /// The position of the first entry equal to `form` among every `stride`-th one.
    #[inline]
    pub(super) fn find(&self, form: &Form<'_>, stride: usize) -> Option<usize> {
        let bytes = self.as_bytes();
        let mut position = 0;
        while position < bytes.len() {
            if form.matches(&bytes[position..]) {
                return Some(position);
            }
            for _ in 0..stride {
                position += size(&bytes[position..]);
            }
        }
        None
    }

    #[inline]
    pub(super) fn is_at(&self, position: usize, form: &Form<'_>) -> bool {
        form.matches(&self.as_bytes()[position..])
    }

    pub(super) fn push_back(&mut self, forms: &[Form<'_>]) {
        self.insert(self.end(), forms);
    }

    /// Puts entries before the one at `position`.
    pub(super) fn insert(&mut self, position: usize, forms: &[Form<'_>]) {
        let size = forms.iter().map(Form::size).sum();
        let mut room = self.splice(position, 0, size);
        for form in forms {
            room = form.write(room);
        }
        self.count += forms.len() as u32;
    }

    pub(super) fn replace(&mut self, position: usize, form: &Form<'_>) {
        let old = size(&self.as_bytes()[position..]);
        form.write(self.splice(position, old, form.size()));
    }

    /// Removes `count` entries from `position` on; there must be as many.
    pub(super) fn remove(&mut self, position: usize, count: usize) {
        let end = (0..count).fold(position, |position, _| self.next(position));
        self.splice(position, end - position, 0);
        self.count -= count as u32;
    }

    /// Moves the entries from number `index` (at `position`) on to a new listpack.
    pub(super) fn split_off(&mut self, position: usize, index: usize) -> Self {
        let count = self.count - index as u32;
        self.count = index as u32;
        Self { buf: self.buf.split_off(self.start as usize + position), start: 0, count }
    }

    /// Gives back what is not in use.
    pub(super) fn shrink(&mut self) {
        self.close_gap();
        if self.buf.capacity() > self.buf.len() {
            // Shrunk in place, it would keep the allocator's block: that of a list's full node was half as large again.
            self.buf = self.buf.as_slice().to_vec();
        }
    }

    /// Makes `new` bytes out of `old` bytes at `position`, to be written.
    fn splice(&mut self, position: usize, old: usize, new: usize) -> &mut [u8] {
        let start = self.start as usize;
        if position == 0 && old == 0 && self.end() > 0 {
            return self.open_front(new);
        }
        if position == 0 && new == 0 {
            self.start += old as u32;
            if start + old > MAX_GAP || start + old >= self.end() {
                self.close_gap();
            }
            return &mut [];
        }
        let from = start + position + old;
        let to = start + position + new;
        let len = self.buf.len();
        if to > from {
            self.reserve(to - from);
            self.buf.resize(len + to - from, 0);
        }
        if from != to && from != len {
            self.buf.copy_within(from..len, to);
        }
        self.buf.truncate(len + to - from);
        &mut self.buf[start + position..to]
    }

    /// Room for `size` bytes before the first entry; a new gap is as large as half the content, so that pushing at
    /// the front costs the same as at the back.
    fn open_front(&mut self, size: usize) -> &mut [u8] {
        let start = self.start as usize;
        if start < size {
            let gap = size + (self.end() / 2).min(MAX_GAP / 2);
            let mut buf = Vec::with_capacity(gap + self.end());
            buf.resize(gap, 0);
            buf.extend_from_slice(self.as_bytes());
            self.buf = buf;
            self.start = (gap - size) as u32;
            return &mut self.buf[gap - size..gap];
        }
        self.start = (start - size) as u32;
        &mut self.buf[start - size..start]
    }

    fn close_gap(&mut self) {
        self.buf.drain(..self.start as usize);
        self.start = 0;
    }

    /// Grows by half, not to the double, and to the allocator's next size once it is as large as most ever get: there are many of
    /// them. All of what the allocator gives is made use of.
    fn reserve(&mut self, more: usize) {
        let (len, least) = (self.buf.len(), self.buf.len() + more);
        if self.buf.capacity() < least {
            let wanted = if len < GROWS_SLOWLY { least.max(len + len / 2) } else { least };
            self.buf.reserve_exact(allocated(wanted) - len);
        }
    }
}

/// The size of the block that the allocator returns for `bytes`: it has four sizes to a doubling, at least 16 bytes apart.
pub(crate) fn allocated(bytes: usize) -> usize {
    const LEAST_STEP: usize = 16;
    let doubling = bytes.saturating_sub(1).max(LEAST_STEP).ilog2();
    bytes.next_multiple_of((1 << (doubling - 2)).max(LEAST_STEP))
}

/// The size of the entry at the start of `bytes`, its trailing length included.
#[inline]
fn size(bytes: &[u8]) -> usize {
    let (head, body) = lengths(bytes);
    head + body + tail_size(head + body)
}

/// [`size`] of what may be no entry at all.
fn checked_size(bytes: &[u8]) -> Option<usize> {
    let head = match *bytes.first()? {
        0x00..=0xBF => 1,
        0xC0..=0xEF => 2,
        0xF1 => 3,
        0xF2 => 4,
        0xF0 | 0xF3 => 5,
        0xF4 => 9,
        0xF5..=0xFF => return None,
    };
    bytes.get(..head)?;
    let (head, body) = lengths(bytes);
    let len = head.checked_add(body)?;
    let tail = bytes.get(len..len + tail_size(len))?;
    let mut expected = [0; 5];
    write_tail(&mut expected[..tail.len()], len);
    (tail == &expected[..tail.len()]).then_some(len + tail.len())
}

impl fmt::Debug for Listpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Listpack {
    type Item = Text<'a>;
    type IntoIter = ListpackIter<'a>;

    fn into_iter(self) -> ListpackIter<'a> {
        self.iter()
    }
}

/// Walks the entries of a [`Listpack`], from both ends.
#[derive(Clone, Debug, Default)]
pub struct ListpackIter<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> ListpackIter<'a> {
    #[inline]
    pub(super) fn next_entry(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (entry, rest) = self.bytes.split_at(size(self.bytes));
        self.bytes = rest;
        Some(decode(entry))
    }

    pub(super) fn next_back_entry(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (rest, entry) = self.bytes.split_at(self.bytes.len() - size_backwards(self.bytes));
        self.bytes = rest;
        Some(decode(entry))
    }
}

impl<'a> Iterator for ListpackIter<'a> {
    type Item = Text<'a>;

    #[inline]
    fn next(&mut self) -> Option<Text<'a>> {
        self.next_entry().map(Text::from)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for ListpackIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_back_entry().map(Text::from)
    }
}

impl ExactSizeIterator for ListpackIter<'_> {}

#[cfg(test)]
mod tests {
    use super::super::testing::Rng;
    use super::*;

    /// Values around every border of the layout.
    fn value(rng: &mut Rng) -> Vec<u8> {
        let lengths = [0, 1, 5, 22, 62, 63, 64, 126, 127, 128, 4095, 4096, 16_378, 16_379, 16_380, 70_000];
        let ints =
            [0, 127, 128, -1, 4095, 4096, -4096, -4097, 32_767, -32_769, 8_388_607, -8_388_609, 1 << 31, i64::MIN];
        match rng.below(4) {
            0 => vec![b'x'; lengths[rng.below(lengths.len())]],
            1 => (ints[rng.below(ints.len())] + rng.below(3) as i64).to_string().into_bytes(),
            2 => format!("0{}", rng.below(100)).into_bytes(),
            _ => rng.below(1000).to_string().into_bytes(),
        }
    }

    fn check(list: &Listpack, model: &[Vec<u8>]) {
        assert_eq!(list.len(), model.len());
        assert!(list.iter().map(|text| text.to_vec()).eq(model.iter().cloned()));
        assert!(list.iter().rev().map(|text| text.to_vec()).eq(model.iter().rev().cloned()));
    }

    #[test]
    fn overlong_redis_elements_become_canonical() {
        // 2 in three bytes, 127 in two, -1 in eight, "12" as text, a text of two bytes with a head of two, one with a head of five.
        let entries: [&[u8]; 6] = [
            &[0xf1, 2, 0, 3],
            &[0xc0, 127, 2],
            &[0xf4, 255, 255, 255, 255, 255, 255, 255, 255, 9],
            &[0x82, b'1', b'2', 3],
            &[0xe0, 2, b'a', b'b', 4],
            &[0xf0, 2, 0, 0, 0, b'c', b'd', 7],
        ];
        let body = entries.concat();
        let total = (body.len() + OVERHEAD) as u32;
        let bytes = [&total.to_le_bytes()[..], &[6, 0], &body, &[END]].concat();
        let list = Listpack::from_redis(&bytes).unwrap();
        let mut expected = Listpack::default();
        [&b"2"[..], b"127", b"-1", b"12", b"ab", b"cd"].iter().for_each(|element| expected.push(element));
        assert_eq!(list.as_bytes(), expected.as_bytes());
        assert_eq!(Listpack::from_redis(&expected.to_redis()).unwrap().as_bytes(), expected.as_bytes());
    }

    #[test]
    fn behaves_like_a_vec() {
        let mut rng = Rng::new(1);
        for _ in 0..20 {
            let (mut list, mut model) = (Listpack::default(), Vec::<Vec<u8>>::new());
            for _ in 0..400 {
                let value = value(&mut rng);
                let form = Form::new(&value);
                let index = [0, model.len(), rng.below(model.len() + 1)][rng.below(3)];
                let position = list.seek(index);
                match rng.below(5) {
                    0..=2 => {
                        list.insert(position, &[form]);
                        model.insert(index, value);
                    }
                    3 if index < model.len() => {
                        list.remove(position, 1);
                        model.remove(index);
                    }
                    4 if index < model.len() => {
                        list.replace(position, &form);
                        model[index] = value;
                    }
                    _ => {
                        let found = list.find(&form, 1).map(|position| Text::from(list.get(position)).to_vec());
                        assert_eq!(found, model.contains(&value).then_some(value));
                    }
                }
                check(&list, &model);
            }
            let middle = model.len() / 2;
            let rest = list.split_off(list.seek(middle), middle);
            check(&rest, &model[middle..]);
            list.shrink();
            check(&list, &model[..middle]);
        }
    }
}
