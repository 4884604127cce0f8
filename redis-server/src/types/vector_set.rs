//! Vector sets: named vectors in a graph of similar ones. The engine is [`query_engine::vector_set`].

use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

pub use query_engine::vector_set::{
    Filter, FilterError, MAX_DIMENSIONS, MAX_M, Match, Node, Projection, Quantization, Similar, Target,
    VectorSetBuilder, VectorSetError, VectorSetOptions,
};

/// The number of the next set.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Bytes of a vector that take as long as one element of a collection.
const VECTOR_UNIT: usize = 256;

/// Factors of a projection that take as long as one element of a collection.
pub const FACTORS_UNIT: usize = 64;

/// A set with a number of its own.
#[derive(Debug)]
pub struct VectorSet {
    uid: u64,
    set: query_engine::vector_set::VectorSet,
}

impl VectorSet {
    /// An empty set of vectors of so many dimensions.
    ///
    /// # Errors
    /// When a parameter is out of its range, or the projection is for other vectors.
    pub fn new(dimensions: usize, options: VectorSetOptions) -> Result<Self, VectorSetError> {
        Ok(query_engine::vector_set::VectorSet::new(dimensions, options)?.into())
    }

    /// A number that no other set of this process has.
    pub fn uid(&self) -> u64 {
        self.uid
    }

    /// The work of a search with `ef` candidates, in elements of other collections.
    pub fn work_of_search(&self, ef: usize) -> usize {
        let comparisons = ef.saturating_mul(self.options().m).min(self.len());
        comparisons.saturating_mul(1 + self.vector_size() / VECTOR_UNIT)
    }

    /// The work of a projection of a vector, in elements of other collections.
    pub fn work_of_projection(&self) -> usize {
        let projection = self.options().projection.as_ref();
        projection.map_or(0, |projection| projection.input() * projection.output() / FACTORS_UNIT)
    }

    /// The work of passing all elements on.
    pub fn work(&self) -> usize {
        self.len().saturating_mul(2 + self.vector_size() / VECTOR_UNIT)
    }

    /// Bytes of a vector as it is kept.
    fn vector_size(&self) -> usize {
        match self.options().quantization {
            Quantization::None => self.dimensions() * size_of::<f32>(),
            Quantization::Q8 => self.dimensions(),
            Quantization::Binary => self.dimensions() / 8,
        }
    }
}

impl From<query_engine::vector_set::VectorSet> for VectorSet {
    fn from(set: query_engine::vector_set::VectorSet) -> Self {
        Self { uid: NEXT.fetch_add(1, Relaxed), set }
    }
}

impl Clone for VectorSet {
    fn clone(&self) -> Self {
        self.set.clone().into()
    }
}

impl Default for VectorSet {
    /// A set that stands for another one for a while.
    fn default() -> Self {
        let set = query_engine::vector_set::VectorSet::new(1, VectorSetOptions::default());
        Self { uid: 0, set: set.expect("one dimension is within the limits") }
    }
}

impl Deref for VectorSet {
    type Target = query_engine::vector_set::VectorSet;

    fn deref(&self) -> &Self::Target {
        &self.set
    }
}

impl DerefMut for VectorSet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.set
    }
}
