//! Iterators over matching documents, in rising order of their numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::phrase;
use super::profile::{IteratorKind, IteratorProfile};
use super::record::{Data, Record, Word};
use super::score::Scoring;
use crate::index::docs::{Brief, Docs};
use crate::index::postings::{Cursor, DocNumber};
use crate::schema::FieldMask;

/// Documents that a node of the query matches. They may include deleted documents that postings still have.
pub(super) trait Matches {
    /// The first match from `target` on. Targets must rise from one call to the next.
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber>;

    /// At most so many matches, roughly.
    fn estimate(&self) -> u64;

    /// Returns true if each match takes several children.
    fn is_intersection(&self) -> bool {
        false
    }

    /// How the current document matches.
    fn record(&self) -> Record<'_>;

    /// BM25STD's score of the current document, without the document's own: as of its record, which takes memory.
    fn bm25std(&self, scoring: &Scoring<'_>, brief: Brief) -> f64 {
        scoring.bm25std_words(&self.record(), brief).0
    }

    /// Its kind, for FT.PROFILE.
    fn kind(&self) -> IteratorKind;

    /// Its work and that of its children. Only iterators that are watched have counted.
    fn profile(&self) -> IteratorProfile {
        IteratorProfile { kind: self.kind(), count: 0, micros: 0, children: self.child_profiles() }
    }

    /// The profiles of its children.
    fn child_profiles(&self) -> Vec<IteratorProfile> {
        Vec::new()
    }
}

pub(super) type Boxed<'i> = Box<dyn Matches + 'i>;

/// Behind all documents.
const END: DocNumber = DocNumber::MAX;

/// An iterator with the document where it stands: 0 at the beginning, [`END`] at the end.
struct Child<'i> {
    matches: Boxed<'i>,
    current: DocNumber,
}

impl<'i> Child<'i> {
    fn new(matches: Boxed<'i>) -> Self {
        Self { matches, current: 0 }
    }

    /// Goes on to `target` unless it already stands there or behind it.
    fn reach(&mut self, target: DocNumber) -> DocNumber {
        if self.current < target {
            self.current = self.matches.seek(target).unwrap_or(END);
        }
        self.current
    }
}

/// Nothing.
pub(super) struct Empty;

impl Matches for Empty {
    fn seek(&mut self, _: DocNumber) -> Option<DocNumber> {
        None
    }

    fn estimate(&self) -> u64 {
        0
    }

    fn record(&self) -> Record<'_> {
        Record { weight: 0.0, frequency: 0, data: Data::Virtual }
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Empty
    }
}

/// All documents.
pub(super) struct All<'i> {
    pub(super) docs: &'i Docs,
    pub(super) weight: f64,
}

impl Matches for All<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        self.docs.seek(target)
    }

    fn estimate(&self) -> u64 {
        self.docs.len() as u64
    }

    fn record(&self) -> Record<'_> {
        Record { weight: self.weight, frequency: 1, data: Data::Virtual }
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::All
    }
}

/// The documents of a word or tag.
pub(super) struct Words<'i> {
    pub(super) cursor: Cursor<'i>,
    pub(super) count: u64,
    pub(super) fields: FieldMask,
    pub(super) word: Word,
    pub(super) weight: f64,
}

impl Matches for Words<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let mut found = self.cursor.seek(target)?;
        while self.cursor.fields() & self.fields == 0 {
            found = self.cursor.next()?;
        }
        Some(found)
    }

    fn estimate(&self) -> u64 {
        self.count
    }

    fn record(&self) -> Record<'_> {
        let data = Data::Word { word: &self.word, positions: self.cursor.positions() };
        Record { weight: self.weight, frequency: self.cursor.frequency(), data }
    }

    fn bm25std(&self, scoring: &Scoring<'_>, brief: Brief) -> f64 {
        scoring.bm25std(self.weight, self.word.bm25_idf, f64::from(self.cursor.frequency()), brief)
    }

    fn kind(&self) -> IteratorKind {
        let kind = if self.word.is_tag { "TAG" } else { "TEXT" };
        let term = String::from_utf8_lossy(&self.word.text).into_owned();
        IteratorKind::Reader { kind, term, size: self.count }
    }
}

/// Documents that lack a field; they score nothing.
pub(super) struct Lacking<'i> {
    pub(super) cursor: Cursor<'i>,
    pub(super) count: u64,
}

impl Matches for Lacking<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        self.cursor.seek(target)
    }

    fn estimate(&self) -> u64 {
        self.count
    }

    fn record(&self) -> Record<'_> {
        Record { weight: 0.0, frequency: 1, data: Data::Virtual }
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Ids
    }
}

/// Documents that were collected before.
pub(super) struct Collected {
    /// Sorted, each once.
    numbers: Vec<DocNumber>,
    at: usize,
    weight: f64,
    kind: IteratorKind,
    frequency: u32,
}

impl Collected {
    /// Documents that score nothing, whatever their part of the query weighs.
    pub(super) fn without_score(numbers: Vec<DocNumber>, kind: IteratorKind) -> Self {
        Self { frequency: 0, ..Self::new(numbers, 0.0, kind) }
    }

    pub(super) fn new(mut numbers: Vec<DocNumber>, weight: f64, kind: IteratorKind) -> Self {
        sort(&mut numbers);
        Self { numbers, at: 0, weight, kind, frequency: 1 }
    }
}

/// Sorts numbers and leaves each once. Many numbers that lie near each other are marked in a map of bits and read from it.
fn sort(numbers: &mut Vec<DocNumber>) {
    let (least, greatest) =
        numbers.iter().fold((END, 0), |(least, greatest), number| (least.min(*number), greatest.max(*number)));
    let words = greatest.saturating_sub(least) / 64 + 1;
    if numbers.len() < 256 || words > 8 * numbers.len() as u64 {
        numbers.sort_unstable();
        numbers.dedup();
        return;
    }
    let mut bits = vec![0u64; words as usize];
    for number in numbers.iter().map(|number| number - least) {
        bits[(number / 64) as usize] |= 1 << (number % 64);
    }
    numbers.clear();
    for (at, mut word) in bits.into_iter().enumerate() {
        while word != 0 {
            numbers.push(least + at as u64 * 64 + u64::from(word.trailing_zeros()));
            word &= word - 1;
        }
    }
}

impl Matches for Collected {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let ahead = &self.numbers[self.at..];
        // The next one is mostly near: step, and halve only from farther on.
        let near = ahead.iter().take(8).position(|number| *number >= target);
        self.at += near.unwrap_or_else(|| ahead.partition_point(|number| *number < target));
        self.numbers.get(self.at).copied()
    }

    fn estimate(&self) -> u64 {
        self.numbers.len() as u64
    }

    fn record(&self) -> Record<'_> {
        let is_number = matches!(self.kind, IteratorKind::Reader { .. });
        let data = if is_number { Data::Number } else { Data::Virtual };
        Record { weight: self.weight, frequency: self.frequency, data }
    }

    fn kind(&self) -> IteratorKind {
        let mut kind = self.kind.clone();
        if let IteratorKind::Reader { size, .. } = &mut kind {
            *size = self.numbers.len() as u64;
        }
        kind
    }
}

/// Documents that all children match, near enough if that is asked.
pub(super) struct Intersection<'i> {
    children: Vec<Child<'i>>,
    /// The distance and order that are asked; `None` if there are none.
    near: Option<Near>,
    weight: f64,
}

#[derive(Clone, Copy)]
pub(super) struct Near {
    pub(super) slop: Option<u32>,
    pub(super) in_order: bool,
}

impl<'i> Intersection<'i> {
    /// Children are read from the rarest to the most frequent unless their order counts; of equal ones intersections first.
    pub(super) fn new(mut children: Vec<Boxed<'i>>, near: Option<Near>, weight: f64) -> Self {
        if !near.is_some_and(|near| near.in_order) {
            children.sort_by_key(|child| (child.estimate(), !child.is_intersection()));
        }
        Self { children: children.into_iter().map(Child::new).collect(), near, weight }
    }

    fn records(&self) -> Vec<Record<'_>> {
        self.children.iter().map(|child| child.matches.record()).collect()
    }

    fn is_near(&self) -> bool {
        self.near.is_none_or(|near| phrase::is_near(&self.records(), near.slop, near.in_order))
    }
}

impl Matches for Intersection<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let mut candidate = target;
        loop {
            let reached = self.children.iter_mut().map(|child| child.reach(candidate)).find(|at| *at > candidate);
            match reached {
                Some(END) => return None,
                Some(farther) => candidate = farther,
                None if self.is_near() => return Some(candidate),
                None => candidate += 1,
            }
        }
    }

    fn estimate(&self) -> u64 {
        self.children.iter().map(|child| child.matches.estimate()).min().unwrap_or(0)
    }

    fn is_intersection(&self) -> bool {
        true
    }

    fn record(&self) -> Record<'_> {
        Record::all(self.weight, self.records())
    }

    fn bm25std(&self, scoring: &Scoring<'_>, brief: Brief) -> f64 {
        self.weight * self.children.iter().map(|child| child.matches.bm25std(scoring, brief)).sum::<f64>()
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Intersection
    }

    fn child_profiles(&self) -> Vec<IteratorProfile> {
        self.children.iter().map(|child| child.matches.profile()).collect()
    }
}

/// Documents that any child matches.
pub(super) struct Union<'i> {
    children: Vec<Child<'i>>,
    /// Where children stand, the lowest first.
    heap: BinaryHeap<Reverse<(DocNumber, usize)>>,
    current: DocNumber,
    /// One matching child is enough for the record.
    first_alone: bool,
    weight: f64,
    /// The part of the query that it stands for.
    name: String,
}

impl<'i> Union<'i> {
    pub(super) fn new(children: Vec<Boxed<'i>>, first_alone: bool, weight: f64, name: String) -> Self {
        let heap = (0..children.len()).map(|at| Reverse((0, at))).collect();
        Self { children: children.into_iter().map(Child::new).collect(), heap, current: 0, first_alone, weight, name }
    }

    /// The children that the record is of.
    fn matching(&self) -> impl Iterator<Item = &Child<'i>> {
        let most = if self.first_alone { 1 } else { self.children.len() };
        self.children.iter().filter(|child| child.current == self.current).take(most)
    }
}

impl Matches for Union<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        while let Some(mut lowest) = self.heap.peek_mut() {
            let Reverse((current, at)) = *lowest;
            if current >= target {
                self.current = current;
                return (current < END).then_some(current);
            }
            *lowest = Reverse((self.children[at].reach(target), at));
        }
        None
    }

    fn estimate(&self) -> u64 {
        self.children.iter().map(|child| child.matches.estimate()).sum()
    }

    fn record(&self) -> Record<'_> {
        Record::any(self.weight, self.matching().map(|child| child.matches.record()).collect())
    }

    fn bm25std(&self, scoring: &Scoring<'_>, brief: Brief) -> f64 {
        self.weight * self.matching().map(|child| child.matches.bm25std(scoring, brief)).sum::<f64>()
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Union(self.name.clone())
    }

    fn child_profiles(&self) -> Vec<IteratorProfile> {
        self.children.iter().map(|child| child.matches.profile()).collect()
    }
}

/// Documents that the child does not match.
pub(super) struct Not<'i> {
    docs: &'i Docs,
    child: Child<'i>,
    weight: f64,
}

impl<'i> Not<'i> {
    pub(super) fn new(docs: &'i Docs, child: Boxed<'i>, weight: f64) -> Self {
        Self { docs, child: Child::new(child), weight }
    }
}

impl Matches for Not<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let mut candidate = self.docs.seek(target)?;
        while self.child.reach(candidate) == candidate {
            candidate = self.docs.seek(candidate + 1)?;
        }
        Some(candidate)
    }

    fn estimate(&self) -> u64 {
        self.docs.len() as u64
    }

    fn record(&self) -> Record<'_> {
        Record { weight: self.weight, frequency: 0, data: Data::Virtual }
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Not
    }

    fn child_profiles(&self) -> Vec<IteratorProfile> {
        vec![self.child.matches.profile()]
    }
}

/// All documents; those that the child matches have its record.
pub(super) struct Optional<'i> {
    docs: &'i Docs,
    child: Child<'i>,
    current: DocNumber,
    weight: f64,
}

impl<'i> Optional<'i> {
    pub(super) fn new(docs: &'i Docs, child: Boxed<'i>, weight: f64) -> Self {
        Self { docs, child: Child::new(child), current: 0, weight }
    }
}

impl Matches for Optional<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        self.current = self.docs.seek(target)?;
        self.child.reach(self.current);
        Some(self.current)
    }

    fn estimate(&self) -> u64 {
        self.docs.len() as u64
    }

    fn record(&self) -> Record<'_> {
        if self.child.current == self.current {
            return Record { weight: self.weight, ..self.child.matches.record() };
        }
        Record { weight: 0.0, frequency: 1, data: Data::Virtual }
    }

    fn kind(&self) -> IteratorKind {
        IteratorKind::Optional
    }

    fn child_profiles(&self) -> Vec<IteratorProfile> {
        vec![self.child.matches.profile()]
    }
}

/// A record for scorers that read none.
pub(super) fn virtual_record<'r>() -> Record<'r> {
    Record { weight: 1.0, frequency: 1, data: Data::Virtual }
}
