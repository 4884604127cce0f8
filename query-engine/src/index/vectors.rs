//! The vectors of one field: a document may have several, of which the nearest one counts.

use std::collections::{HashMap, HashSet};

use super::postings::DocNumber;
use crate::vector::{IsOver, Nearest, Neighbour, Vector, VectorIndex, VectorOptions, Within};

/// The bits of a label that number a document's vectors; the others are the document's number.
const PLACE_BITS: u32 = 16;

/// The most vectors of one field of a document.
pub const MAX_VECTORS: usize = 1 << PLACE_BITS;

/// Labels are a document's number and the place of the vector in it.
#[derive(Clone, Debug)]
pub(crate) struct FieldVectors {
    index: VectorIndex,
    /// Documents with several vectors, until these are removed.
    several: HashMap<DocNumber, u32>,
}

/// True if a query may find a document.
type Accept<'a> = Option<&'a dyn Fn(DocNumber) -> bool>;

impl FieldVectors {
    pub(super) fn new(options: VectorOptions) -> Self {
        Self { index: VectorIndex::of_field(options), several: HashMap::new() }
    }

    /// Adds a document's vectors, at most [`MAX_VECTORS`].
    pub(super) fn insert(&mut self, number: DocNumber, vectors: &[Vector]) {
        for (place, vector) in vectors.iter().take(MAX_VECTORS).enumerate() {
            // An index is full at 2^32 vectors, long after the memory is.
            let _ = self.index.insert(label(number, place as u32), vector);
        }
        if vectors.len() > 1 {
            self.several.insert(number, vectors.len() as u32);
        }
    }

    /// Vectors, with those of documents that are gone and not yet compacted away.
    pub(super) fn count(&self) -> usize {
        self.index.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.index.memory() + self.several.capacity() * (size_of::<(DocNumber, u32)>() + 1) * 8 / 7
    }

    /// [`VectorIndex::retain`].
    pub(super) fn retain(&mut self, at: &mut Option<usize>, work: u64, is_live: impl Fn(DocNumber) -> bool) -> bool {
        let is_done = self.index.retain(at, work, |label| is_live(document(label)));
        if is_done {
            self.several.retain(|number, _| is_live(*number));
        }
        is_done
    }

    /// The nearest documents, the nearest first. `accept` finds only some.
    pub(crate) fn nearest(
        &self,
        query: &Vector,
        (k, ef_runtime): (usize, Option<usize>),
        accept: Accept<'_>,
        is_over: Option<&IsOver<'_>>,
    ) -> Vec<Neighbour> {
        let accepts = accept.map(|accept| move |label: u64| accept(document(label)));
        let accept = accepts.as_ref().map(|accept| accept as &dyn Fn(u64) -> bool);
        self.distinct(k, is_over, |k| {
            self.index.nearest(query, &Nearest { k, ef_runtime, accept, is_over, max_visits: None })
        })
    }

    /// The exact nearest of these documents, the nearest first.
    pub(crate) fn nearest_of(
        &self,
        query: &Vector,
        k: usize,
        numbers: &[DocNumber],
        is_over: Option<&IsOver<'_>>,
    ) -> Vec<Neighbour> {
        let count = |number: &DocNumber| self.several.get(number).copied().unwrap_or(1);
        let labels = numbers.iter().flat_map(|number| (0..count(number)).map(|place| label(*number, place)));
        let labels: Vec<u64> = labels.collect();
        self.distinct(k, is_over, |k| self.index.nearest_of(query, k, &labels, is_over))
    }

    /// All documents that are near enough, the nearest first.
    pub(crate) fn within(
        &self,
        query: &Vector,
        (radius, epsilon): (f64, Option<f64>),
        accept: Accept<'_>,
        is_over: Option<&IsOver<'_>>,
    ) -> Vec<Neighbour> {
        let accepts = accept.map(|accept| move |label: u64| accept(document(label)));
        let accept = accepts.as_ref().map(|accept| accept as &dyn Fn(u64) -> bool);
        documents(self.index.within(query, &Within { radius, epsilon, accept, is_over }))
    }

    /// [`VectorIndex::scan_is_cheaper`].
    pub(crate) fn scan_is_cheaper(&self, matches: usize, k: usize, ef_runtime: Option<usize>) -> bool {
        self.index.scan_is_cheaper(matches, &Nearest { ef_runtime, ..Nearest::new(k) })
    }

    /// Looks for more vectors until they are of `k` documents, or there are no more.
    fn distinct(
        &self,
        k: usize,
        is_over: Option<&IsOver<'_>>,
        find: impl Fn(usize) -> Vec<Neighbour>,
    ) -> Vec<Neighbour> {
        let mut wanted = k.min(self.index.len());
        loop {
            let vectors = find(wanted);
            let count = vectors.len();
            let mut found = documents(vectors);
            let is_all = count < wanted || wanted == self.index.len();
            if found.len() >= k || is_all || self.several.is_empty() || is_over.is_some_and(|is_over| is_over()) {
                found.truncate(k);
                return found;
            }
            wanted = wanted.saturating_mul(2).min(self.index.len());
        }
    }
}

fn label(number: DocNumber, place: u32) -> u64 {
    number << PLACE_BITS | u64::from(place)
}

fn document(label: u64) -> DocNumber {
    label >> PLACE_BITS
}

/// Each document once, with the distance of its nearest vector.
fn documents(mut neighbours: Vec<Neighbour>) -> Vec<Neighbour> {
    let mut seen = HashSet::with_capacity(neighbours.len());
    neighbours.retain_mut(|found| {
        found.label = document(found.label);
        seen.insert(found.label)
    });
    neighbours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{Algorithm, ElementType, Metric};

    #[test]
    fn the_nearest_vector_of_a_document_counts() {
        for algorithm in [Algorithm::FLAT, Algorithm::HNSW] {
            let options = VectorOptions::new(ElementType::Float64, 1, Metric::L2, algorithm);
            let vector = |value: f64| options.vector(&value.to_le_bytes()).expect("the size is right");
            let mut vectors = FieldVectors::new(options);
            // Document n has the vectors n, n + 1, … n + 9, so that the nearest ten vectors are of few documents.
            for number in 1..=100_u64 {
                let each: Vec<Vector> = (0..10).map(|at| vector((number + at) as f64)).collect();
                vectors.insert(number, &each);
            }
            let found =
                |found: Vec<Neighbour>| found.iter().map(|found| (found.label, found.distance)).collect::<Vec<_>>();
            let near = found(vectors.nearest(&vector(1.0), (3, None), None, None));
            assert_eq!(near, [(1, 0.0), (2, 1.0), (3, 4.0)]);
            let near = found(vectors.nearest(&vector(1.0), (500, None), None, None));
            assert_eq!((near.len(), near[99]), (100, (100, 9801.0)));
            let odd = |number: DocNumber| number % 2 == 1;
            let near = found(vectors.nearest(&vector(2.0), (2, Some(50)), Some(&odd), None));
            assert_eq!(near, [(1, 0.0), (3, 1.0)]);
            assert_eq!(found(vectors.nearest_of(&vector(20.0), 2, &[3, 30, 40], None)), [(3, 64.0), (30, 100.0)]);
            let near = found(vectors.within(&vector(0.0), (9.0, None), None, None));
            assert_eq!(near, [(1, 1.0), (2, 4.0), (3, 9.0)]);
            let mut at = None;
            while !vectors.retain(&mut at, 1, |number| number > 99) {}
            assert_eq!((vectors.count(), vectors.several.len()), (10, 1));
            assert_eq!(found(vectors.nearest(&vector(1.0), (3, None), None, None)), [(100, 9801.0)]);
        }
    }
}
