//! Vector queries: which documents are near enough, and their distances.

use super::build::Context;
use super::matches::{Boxed, Collected, Empty};
use crate::index::postings::DocNumber;
use crate::index::{FieldIndex, Index};
use crate::query::{HybridPolicy, Kind, Near, Node, VectorQuery};
use crate::vector::{Nearest, Neighbour, VectorIndex, Within};

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
        let Some(name) = name.cloned() else { return };
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
        let Some(FieldIndex::Vectors(vectors)) = query.field.id.map(|field| self.index.field_index(field)) else {
            return Box::new(Empty);
        };
        let found = match (query.near, node.children.first()) {
            (Near::Nearest { k, ef_runtime, policy, .. }, Some(filter)) => {
                let numbers = self.matching(filter);
                self.filtered(vectors, query, &numbers, Nearest { ef_runtime, ..Nearest::new(k) }, policy)
            }
            (near, _) => self.unfiltered(vectors, query, near),
        };
        self.is_over();
        self.distances.borrow_mut().add(query.yields.as_ref(), &found);
        let numbers = found.iter().map(|found| found.label).collect();
        Box::new(Collected::new(numbers, node.weight, true))
    }

    /// The live documents that a filter matches.
    fn matching(&self, filter: &Node) -> Vec<DocNumber> {
        let (mut matches, mut numbers, mut target) = (self.build(filter), Vec::new(), 1);
        while let Some(number) = matches.seek(target) {
            target = number + 1;
            if number.is_multiple_of(ASK_EVERY) && self.is_over() {
                break;
            }
            numbers.extend(self.index.docs().get(number).is_some().then_some(number));
        }
        numbers
    }

    fn unfiltered(&self, vectors: &VectorIndex, query: &VectorQuery, near: Near) -> Vec<Neighbour> {
        let is_live = live(self.index);
        let (accept, is_over) = (is_live.as_deref(), self.is_over);
        match near {
            Near::Nearest { k, ef_runtime, .. } => {
                vectors.nearest(&query.vector, &Nearest { k, ef_runtime, accept, is_over })
            }
            Near::Within { radius, epsilon } => {
                vectors.within(&query.vector, &Within { radius, epsilon, accept, is_over })
            }
        }
    }

    /// The nearest of some documents.
    fn filtered(
        &self,
        vectors: &VectorIndex,
        query: &VectorQuery,
        numbers: &[DocNumber],
        search: Nearest<'_>,
        policy: Option<HybridPolicy>,
    ) -> Vec<Neighbour> {
        let is_cheap = || vectors.scan_is_cheaper(numbers.len(), &search);
        if policy == Some(HybridPolicy::AdHoc) || policy.is_none() && is_cheap() {
            return vectors.nearest_of(&query.vector, search.k, numbers, self.is_over);
        }
        let accept = |number: DocNumber| numbers.binary_search(&number).is_ok();
        let search = Nearest { accept: Some(&accept), is_over: self.is_over, ..search };
        vectors.nearest(&query.vector, &search)
    }
}

/// Whether a document is live; `None` if all are.
fn live(index: &Index) -> Option<Box<dyn Fn(DocNumber) -> bool + '_>> {
    if index.is_compact() { None } else { Some(Box::new(|number| index.docs().get(number).is_some())) }
}

/// Documents between two questions whether the query is over.
const ASK_EVERY: u64 = 128;

/// Whether a query's answer is the nearest documents, and the name of their distance.
pub(super) fn nearest_name(root: &Node) -> Option<&str> {
    match &root.kind {
        Kind::Vector(query) if matches!(query.near, Near::Nearest { .. }) => query.yields.as_deref(),
        _ => None,
    }
}
