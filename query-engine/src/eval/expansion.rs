//! The words that a pattern stands for, read in windows of documents: a heap of two hundred words would be sorted anew for each document.

use super::matches::{Matches, Words};
use super::profile::{IteratorKind, IteratorProfile};
use super::record::{Data, Record};
use super::score::Scoring;
use crate::index::docs::Brief;
use crate::index::postings::DocNumber;

/// Documents of the first window, and of one behind a leap.
const SHORTEST: u64 = 64;
/// Documents of the longest window. Its slots fill the first level of a processor's cache.
const LONGEST: u64 = 2048;

/// The first word that a document has.
#[derive(Clone, Copy)]
struct Slot<'i> {
    word: usize,
    frequency: u32,
    positions: &'i [u8],
}

/// Documents with any of some words. The first of these that a document has is its record, as in RediSearch.
pub(super) struct Expansion<'i> {
    words: Vec<Words<'i>>,
    /// The document where each word stands, behind the window; `None` at its end.
    standing: Vec<Option<DocNumber>>,
    /// The window: its first document, and one slot for each.
    first: DocNumber,
    slots: Vec<Slot<'i>>,
    /// Which of them are taken.
    taken: Vec<u64>,
    /// Documents of the window, a multiple of 64; 0 before the first one.
    length: u64,
    current: usize,
    weight: f64,
    /// The part of the query that it stands for.
    name: String,
}

impl<'i> Expansion<'i> {
    pub(super) fn new(words: Vec<Words<'i>>, weight: f64, name: String) -> Self {
        let standing = vec![Some(0); words.len()];
        let (first, length, current) = (0, 0, 0);
        Self { words, standing, first, slots: Vec::new(), taken: Vec::new(), length, current, weight, name }
    }

    /// Reads the documents of a window that begins at the first one from `target` on. False if there is none.
    fn fill(&mut self, target: DocNumber) -> bool {
        let follows = self.length > 0 && target == self.first + self.length;
        let length = if follows { (self.length * 2).min(LONGEST) } else { SHORTEST };
        let mut first = DocNumber::MAX;
        for (word, standing) in self.words.iter_mut().zip(&mut self.standing) {
            if standing.is_some_and(|at| at < target) {
                *standing = word.seek(target);
            }
            first = first.min(standing.unwrap_or(DocNumber::MAX));
        }
        // A window that follows another one begins at its end, so that the next one follows, too.
        self.first = if follows && first < target + length { target } else { first };
        self.length = length;
        self.taken.clear();
        self.taken.resize((length / 64) as usize, 0);
        self.slots.resize(length as usize, Slot { word: 0, frequency: 0, positions: &[] });
        if first == DocNumber::MAX {
            return false;
        }
        for (word, (words, standing)) in self.words.iter_mut().zip(&mut self.standing).enumerate() {
            while let Some(number) = standing.filter(|number| number - self.first < length) {
                let at = (number - self.first) as usize;
                let (taken, bit) = (&mut self.taken[at / 64], 1 << (at % 64));
                if *taken & bit == 0 {
                    *taken |= bit;
                    let (frequency, positions) = (words.cursor.frequency(), words.cursor.positions());
                    self.slots[at] = Slot { word, frequency, positions };
                }
                *standing = words.seek(number + 1);
            }
        }
        true
    }

    /// The first taken slot of the window from a place on.
    fn next_taken(&self, from: u64) -> Option<usize> {
        let words = self.taken.iter().enumerate().skip((from / 64) as usize);
        words
            .map(|(at, word)| (at, if at as u64 == from / 64 { word >> (from % 64) << (from % 64) } else { *word }))
            .find(|(_, word)| *word != 0)
            .map(|(at, word)| at * 64 + word.trailing_zeros() as usize)
    }

    fn slot(&self) -> (&Words<'i>, &Slot<'i>) {
        let slot = &self.slots[self.current];
        (&self.words[slot.word], slot)
    }
}

impl Matches for Expansion<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let mut from = target;
        loop {
            if self.length > 0 && from < self.first.saturating_add(self.length) {
                if let Some(at) = self.next_taken(from.saturating_sub(self.first)) {
                    self.current = at;
                    return Some(self.first + at as u64);
                }
                from = self.first.saturating_add(self.length);
            }
            if !self.fill(from) {
                return None;
            }
        }
    }

    fn estimate(&self) -> u64 {
        self.words.iter().map(Matches::estimate).sum()
    }

    fn record(&self) -> Record<'_> {
        let (words, slot) = self.slot();
        let data = Data::Word { word: &words.word, positions: slot.positions };
        Record::any(self.weight, vec![Record { weight: words.weight, frequency: slot.frequency, data }])
    }

    fn bm25std(&self, scoring: &Scoring<'_>, brief: Brief) -> f64 {
        let (words, slot) = self.slot();
        self.weight * scoring.bm25std(words.weight, words.word.bm25_idf, f64::from(slot.frequency), brief)
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Union(self.name.clone())
    }

    fn child_profiles(&self) -> Vec<IteratorProfile> {
        self.words.iter().map(Matches::profile).collect()
    }
}
