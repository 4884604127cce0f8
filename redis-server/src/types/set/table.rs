//! The large form of a set: a table of its integers, eight bytes each, beside one of its other members. A member never goes from one to the
//! other, so that no addition costs more for the kind of what is there.

use super::super::dense::{Dense, DenseIter, Keyed};
use super::super::listpack::Text;
use super::super::small_bytes::SmallBytes;
use crate::protocol::number::parse_i64;

/// Where a scan goes on with members that are no integers: behind all positions in a [`Dense`] table.
const WORDS: u64 = 1 << 32;

#[derive(Clone, Default)]
pub(super) struct Table {
    numbers: Option<Box<Dense<i64>>>,
    words: Option<Box<Dense<SmallBytes>>>,
}

impl Keyed for i64 {
    type Key = Self;

    #[inline]
    fn key(&self) -> &Self {
        self
    }
}

impl Keyed for SmallBytes {
    type Key = [u8];

    #[inline]
    fn key(&self) -> &[u8] {
        self
    }
}

impl Table {
    /// Room for so many integers and so many other members.
    pub(super) fn with_capacity(numbers: usize, words: usize) -> Self {
        Self {
            numbers: (numbers > 0).then(|| Box::new(Dense::with_capacity(numbers))),
            words: (words > 0).then(|| Box::new(Dense::with_capacity(words))),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count_numbers() + self.words.as_ref().map_or(0, |words| words.len())
    }

    #[inline]
    fn count_numbers(&self) -> usize {
        self.numbers.as_ref().map_or(0, |numbers| numbers.len())
    }

    #[inline]
    pub(super) fn contains(&self, member: &[u8]) -> bool {
        match parse_i64(member) {
            Some(number) => self.numbers.as_ref().is_some_and(|numbers| numbers.find(&number).is_some()),
            None => self.words.as_ref().is_some_and(|words| words.find(member).is_some()),
        }
    }

    /// Adds `member`; true if it is new.
    #[inline]
    pub(super) fn add(&mut self, member: &[u8]) -> bool {
        match parse_i64(member) {
            Some(number) => {
                let numbers = self.numbers.get_or_insert_with(|| Box::new(Dense::with_capacity(0)));
                numbers.find_or_insert_with(&number, || number).1
            }
            None => {
                let words = self.words.get_or_insert_with(|| Box::new(Dense::with_capacity(0)));
                words.find_or_insert_with(member, || SmallBytes::new(member)).1
            }
        }
    }

    /// Removes `member`; true if it was there.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        match parse_i64(member) {
            Some(number) => self.numbers.as_mut().is_some_and(|numbers| numbers.remove(&number).is_some()),
            None => self.words.as_mut().is_some_and(|words| words.remove(member).is_some()),
        }
    }

    /// The member at a place from 0 to `len() - 1`.
    pub(super) fn at(&self, place: usize) -> Option<Text<'_>> {
        match place.checked_sub(self.count_numbers()) {
            None => self.numbers.as_ref()?.at(place).map(|&number| Text::int(number)),
            Some(place) => self.words.as_ref()?.at(place).map(|word| Text::Bytes(word)),
        }
    }

    /// Removes the member at a place from 0 to `len() - 1`, which must exist, and hands it to `take`.
    pub(super) fn pop_at<R>(&mut self, place: usize, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match place.checked_sub(self.count_numbers()) {
            None => self.numbers.as_mut().map(|numbers| take(&Text::int(numbers.remove_id(place as u32)))),
            Some(place) => self.words.as_mut().map(|words| take(&words.remove_id(place as u32))),
        }
    }

    pub(super) fn iter(&self) -> TableIter<'_> {
        TableIter {
            numbers: self.numbers.as_ref().map(|numbers| numbers.iter()),
            words: self.words.as_ref().map(|words| words.iter()),
        }
    }

    /// As [`Dense::scan`]: first the integers, then the others.
    pub(super) fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> u64 {
        let (mut cursor, mut left) = (cursor, count.max(1));
        if cursor < WORDS {
            let mut visit = |_, number: &i64| {
                left = left.saturating_sub(1);
                visit(&Text::int(*number));
            };
            cursor = self.numbers.as_ref().map_or(0, |numbers| numbers.scan(cursor, count, &mut visit));
            if cursor > 0 || self.words.as_ref().is_none_or(|words| words.len() == 0) {
                return cursor;
            }
            cursor = WORDS;
        }
        if left == 0 {
            return cursor;
        }
        let Some(words) = &self.words else { return 0 };
        match words.scan(cursor - WORDS, left, &mut |_, word| visit(word)) {
            0 => 0,
            next => WORDS + next,
        }
    }

    /// Heap bytes.
    pub(super) fn memory(&self) -> usize {
        let numbers = self.numbers.as_ref().map_or(0, |numbers| size_of::<Dense<i64>>() + numbers.memory());
        let words = self.words.as_ref().map_or(0, |words| {
            size_of::<Dense<SmallBytes>>() + words.memory() + words.iter().map(SmallBytes::memory).sum::<usize>()
        });
        numbers + words
    }
}

#[derive(Clone)]
pub(super) struct TableIter<'a> {
    numbers: Option<DenseIter<'a, i64>>,
    words: Option<DenseIter<'a, SmallBytes>>,
}

impl<'a> Iterator for TableIter<'a> {
    type Item = Text<'a>;

    #[inline]
    fn next(&mut self) -> Option<Text<'a>> {
        if let Some(numbers) = &mut self.numbers {
            if let Some(&number) = numbers.next() {
                return Some(Text::int(number));
            }
            self.numbers = None;
        }
        self.words.as_mut()?.next().map(|word| Text::Bytes(word))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let numbers = self.numbers.as_ref().map_or(0, ExactSizeIterator::len);
        let left = numbers + self.words.as_ref().map_or(0, ExactSizeIterator::len);
        (left, Some(left))
    }
}
