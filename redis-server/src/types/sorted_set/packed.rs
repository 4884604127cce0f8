//! The small form of a sorted set: a listpack of members, each followed by its score, in order.

use super::super::listpack::{Entry, Form, Listpack, ListpackIter, Text};

#[derive(Clone, Default)]
pub(super) struct Packed(Listpack);

/// Integers up to here are exact; beyond, and for fractions, a score is kept as its eight bytes. As in Redis, -0 becomes 0.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn score_form(score: f64, bits: &[u8; 8]) -> Form<'_> {
    let int = score as i64;
    if score.abs() <= EXACT && int as f64 == score { Form::int(int) } else { Form::bytes(bits) }
}

fn score_of(entry: Entry<'_>) -> f64 {
    match entry {
        Entry::Int(int) => int as f64,
        Entry::Bytes(bytes) => bytes.try_into().map_or(0.0, f64::from_le_bytes),
    }
}

impl Packed {
    pub(super) fn len(&self) -> usize {
        self.0.len() / 2
    }

    pub(super) fn memory(&self) -> usize {
        self.0.memory()
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(member).map(|(_, score)| score)
    }

    /// Adds a member that is known to be absent.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        let mut position = 0;
        while position < self.0.end() {
            let score_position = self.0.next(position);
            let other = score_of(self.0.get(score_position));
            if other > score || (other == score && *Text::from(self.0.get(position)) > *member) {
                break;
            }
            position = self.0.next(score_position);
        }
        self.0.insert(position, &[Form::new(member), score_form(score, &score.to_le_bytes())]);
    }

    /// Adds a member that belongs behind all others.
    pub(super) fn push(&mut self, member: &[u8], score: f64) {
        self.0.push_back(&[Form::new(member), score_form(score, &score.to_le_bytes())]);
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let (position, score) = self.find(member)?;
        self.0.remove(position, 2);
        Some(score)
    }

    pub(super) fn remove_range(&mut self, start: usize, end: usize) {
        self.0.remove(self.0.seek(start * 2), (end - start) * 2);
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let mut entries = self.0.iter();
        let mut rank = 0;
        while let (Some(other), Some(score)) = (entries.next(), entries.next_entry()) {
            if *other == *member {
                return Some((rank, score_of(score)));
            }
            rank += 1;
        }
        None
    }

    /// How many elements, from the first on, satisfy `wanted`.
    pub(super) fn count_while(&self, wanted: impl Fn(f64, &[u8]) -> bool) -> usize {
        self.range(0, self.len()).take_while(|(member, score)| wanted(*score, member)).count()
    }

    pub(super) fn range(&self, start: usize, end: usize) -> PackedIter<'_> {
        PackedIter(self.0.range(start * 2, end * 2))
    }

    fn find(&self, member: &[u8]) -> Option<(usize, f64)> {
        let position = self.0.find(&Form::new(member), 2)?;
        Some((position, score_of(self.0.get(self.0.next(position)))))
    }
}

#[derive(Clone)]
pub(super) struct PackedIter<'a>(ListpackIter<'a>);

impl<'a> Iterator for PackedIter<'a> {
    type Item = (Text<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, score_of(self.0.next_entry()?)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len() / 2, Some(self.0.len() / 2))
    }
}

impl DoubleEndedIterator for PackedIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let score = score_of(self.0.next_back_entry()?);
        Some((self.0.next_back()?, score))
    }
}
