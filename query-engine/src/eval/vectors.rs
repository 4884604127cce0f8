//! Vector queries: which documents are near enough, and their distances.

use super::build::Context;
use super::matches::{Boxed, Collected, Empty, Matches};
use super::profile::{IteratorKind, IteratorProfile};
use super::record::Record;
use super::score::Scoring;
use crate::index::FieldIndex;
use crate::index::docs::Brief;
use crate::index::postings::DocNumber;
use crate::index::vectors::FieldVectors;
use crate::query::{HybridPolicy, Near, Node, VectorQuery};
use crate::vector::{Neighbour, Vector};

/// The distances that one vector query gave to documents.
#[derive(Clone, Debug)]
struct Yield {
    name: String,
    /// By number, rising.
    distances: Vec<(DocNumber, f64)>,
}

/// The distances of a whole query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distances(Vec<Yield>);

impl Distances {
    fn add(&mut self, name: Option<&String>, neighbours: &[Neighbour]) {
        // The filter of the nearest documents is evaluated twice: to find them, and for their scores.
        let Some(name) = name.filter(|name| self.0.iter().all(|known| known.name != **name)).cloned() else { return };
        let mut distances: Vec<_> = neighbours.iter().map(|found| (found.label, found.distance)).collect();
        distances.sort_unstable_by_key(|(number, _)| *number);
        self.0.push(Yield { name, distances });
    }

    /// The distance of a name that a document has.
    pub(crate) fn get(&self, name: &str, number: DocNumber) -> Option<f64> {
        let found = self.0.iter().find(|found| found.name == name)?;
        let at = found.distances.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(found.distances[at].1)
    }

    /// All distances that a document has.
    pub(crate) fn of(&self, number: DocNumber) -> Vec<(String, f64)> {
        let names = self.0.iter().map(|found| &found.name);
        names.filter_map(|name| Some((name.clone(), self.get(name, number)?))).collect()
    }
}

impl<'i> Context<'i, '_> {
    pub(super) fn vector(&self, node: &Node, query: &VectorQuery) -> Boxed<'i> {
        let field = query.field.id.map(|field| self.index.field_index(field));
        let (Some(FieldIndex::Vectors(vectors)), Some(vector)) = (field, &query.vector) else {
            return Box::new(Empty);
        };
        let filter = node.children.first();
        let found = match (query.near, filter) {
            (Near::Nearest { k, ef_runtime, policy, .. }, Some(filter)) => {
                let numbers = self.matching(filter);
                self.filtered(vectors, vector, &numbers, (k, ef_runtime), policy)
            }
            (near, _) => self.unfiltered(vectors, vector, near),
        };
        self.is_over();
        self.distances.borrow_mut().add(query.yields.as_ref(), &found);
        // A distance is no score; the filter's is.
        let kind =
            if matches!(query.near, Near::Nearest { .. }) { IteratorKind::Nearest } else { IteratorKind::Within };
        let near = Collected::new(found.iter().map(|found| found.label).collect(), 0.0, kind);
        match filter {
            Some(filter) => Box::new(Among { near, filter: self.build(filter) }),
            None => Box::new(near),
        }
    }

    /// The live documents that a filter matches.
    fn matching(&self, filter: &Node) -> Vec<DocNumber> {
        let (mut matches, mut numbers, mut target) = (self.build(filter), Vec::new(), 1);
        let is_live = self.live();
        while let Some(number) = matches.seek(target) {
            target = number + 1;
            if number.is_multiple_of(ASK_EVERY) && self.is_over() {
                break;
            }
            if is_live.as_deref().is_none_or(|is_live| is_live(number)) {
                numbers.push(number);
            }
        }
        numbers
    }

    /// The document is live, and the query is about it.
    fn is_kept(&self, number: DocNumber) -> bool {
        self.index.docs().find(number).is_some_and(|found| self.keeps.is_none_or(|keeps| keeps(&found.doc().id)))
    }

    /// [`Self::is_kept`]; `None` if all documents are.
    fn live(&self) -> Option<Box<dyn Fn(DocNumber) -> bool + '_>> {
        let are_all = self.index.is_compact() && self.keeps.is_none();
        if are_all { None } else { Some(Box::new(|number| self.is_kept(number))) }
    }

    fn unfiltered(&self, vectors: &FieldVectors, vector: &Vector, near: Near) -> Vec<Neighbour> {
        let is_live = self.live();
        let (accept, is_over) = (is_live.as_deref(), self.is_over);
        match near {
            Near::Nearest { k, ef_runtime, .. } => vectors.nearest(vector, (k, ef_runtime), accept, is_over),
            Near::Within { radius, epsilon } => vectors.within(vector, (radius, epsilon), accept, is_over),
        }
    }

    /// The nearest of some documents.
    fn filtered(
        &self,
        vectors: &FieldVectors,
        vector: &Vector,
        numbers: &[DocNumber],
        (k, ef_runtime): (usize, Option<usize>),
        policy: Option<HybridPolicy>,
    ) -> Vec<Neighbour> {
        let is_cheap = || vectors.scan_is_cheaper(numbers.len(), k, ef_runtime);
        if policy == Some(HybridPolicy::AdHoc) || policy.is_none() && is_cheap() {
            return vectors.nearest_of(vector, k, numbers, self.is_over);
        }
        let accept = |number: DocNumber| numbers.binary_search(&number).is_ok();
        vectors.nearest(vector, (k, ef_runtime), Some(&accept), self.is_over)
    }
}

/// Documents between two questions whether the query is over.
const ASK_EVERY: u64 = 128;

/// The nearest documents of a filter: they match as the filter's do.
struct Among<'i> {
    near: Collected,
    filter: Boxed<'i>,
}

impl Matches for Among<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let found = self.near.seek(target)?;
        self.filter.seek(found)
    }

    fn estimate(&self) -> u64 {
        self.near.estimate()
    }

    fn record(&self) -> Record<'_> {
        self.filter.record()
    }

    fn bm25std(&self, scoring: &Scoring<'_>, brief: Brief) -> f64 {
        self.filter.bm25std(scoring, brief)
    }

    fn kind(&self) -> IteratorKind {
        self.near.kind()
    }

    fn child_profiles(&self) -> Vec<IteratorProfile> {
        vec![self.filter.profile()]
    }
}
