//! Vectors by number: the nearest ones by distance, exact (FLAT) or approximate (HNSW, and SVS-VAMANA by the same graph).
//!
//! ```
//! use query_engine::vector::{Algorithm, ElementType, Metric, Nearest, VectorIndex, VectorOptions};
//!
//! let options = VectorOptions::new(ElementType::Float32, 2, Metric::L2, Algorithm::HNSW);
//! let mut index = VectorIndex::new(options)?;
//! let blob = |x: f32, y: f32| [x.to_le_bytes(), y.to_le_bytes()].concat();
//! index.put(1, &blob(0.0, 0.0))?;
//! index.put(2, &blob(3.0, 4.0))?;
//!
//! let query = options.vector(&blob(3.0, 3.0))?;
//! let found = index.nearest(&query, &Nearest::new(1));
//! assert_eq!((found[0].label, found[0].distance), (2, 1.0));
//! # Ok::<(), query_engine::vector::VectorError>(())
//! ```

mod distance;
mod element;
mod graph;
mod store;

use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};

pub(crate) use distance::normalize;
pub use element::{ElementType, Metric};
pub(crate) use graph::MAX_LEVEL;
use graph::{Found, Graph, Rules};
pub(crate) use store::Format;
use store::Vectors;
pub use store::{Storage, Vector};

/// The most elements of a vector, as many as RediSearch allows.
pub const MAX_DIMENSIONS: usize = 32_768;

/// The most links per node that may be asked for.
pub const MAX_M: usize = 512;

/// The most links per node of SVS-VAMANA that may be asked for: the graph keeps twice [`MAX_M`] on its lowest level.
pub const MAX_DEGREE: usize = 2 * MAX_M;

/// The most candidates of an insertion that may be asked for.
pub const MAX_EF_CONSTRUCTION: usize = 4096;

/// Vectors of a block if nothing else is asked.
const BLOCK_SIZE: usize = 1024;

/// Bytes of a block of HNSW's vectors, at least one vector: an insertion copies no more when memory grows.
const MAX_BLOCK: usize = 1 << 20;

// The square of the greatest distance of two bytes, summed over all dimensions, fits into an i32.
const _: () = assert!(255 * 255 * MAX_DIMENSIONS <= i32::MAX as usize);

/// How an index finds neighbours, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Algorithm {
    /// Compares all vectors.
    Flat {
        /// Vectors of a block of memory, rounded up to a power of two (BLOCK_SIZE).
        block_size: usize,
    },
    /// Walks a graph of near vectors.
    Hnsw {
        /// Links that a new vector asks for; twice as many are kept on the lowest level (M).
        m: usize,
        /// Candidates that an insertion looks at (EF_CONSTRUCTION).
        ef_construction: usize,
        /// Candidates that a query keeps, at least its k (EF_RUNTIME).
        ef_runtime: usize,
        /// How far beyond its radius, relative to it, a range query walks (EPSILON).
        epsilon: f64,
    },
    /// The parameters of SVS-VAMANA. The index is that of [`Algorithm::Hnsw`] whose lowest level has as many links: it finds what a graph of one
    /// level finds, and vectors are kept whole, so distances are exact.
    Vamana {
        /// The most links of a node (GRAPH_MAX_DEGREE).
        degree: usize,
        /// Candidates that an insertion looks at (CONSTRUCTION_WINDOW_SIZE).
        construction_window: usize,
        /// Candidates that a query keeps, at least its k (SEARCH_WINDOW_SIZE).
        search_window: usize,
        /// How far beyond its radius, relative to it, a range query walks (EPSILON).
        epsilon: f64,
    },
}

/// A graph's parameters in the terms of HNSW.
struct Walk {
    m: usize,
    ef_construction: usize,
    ef_runtime: usize,
    epsilon: f64,
}

impl Algorithm {
    /// FLAT with the default block size.
    pub const FLAT: Self = Self::Flat { block_size: BLOCK_SIZE };
    /// HNSW with RediSearch's defaults.
    pub const HNSW: Self = Self::Hnsw { m: 16, ef_construction: 200, ef_runtime: 10, epsilon: 0.01 };
    /// SVS-VAMANA with RediSearch's defaults.
    pub const VAMANA: Self = Self::Vamana { degree: 32, construction_window: 200, search_window: 10, epsilon: 0.01 };

    /// The parameters of the graph; `None` if the algorithm has none.
    fn walk(self) -> Option<Walk> {
        match self {
            Self::Flat { .. } => None,
            Self::Hnsw { m, ef_construction, ef_runtime, epsilon } => {
                Some(Walk { m, ef_construction, ef_runtime, epsilon })
            }
            Self::Vamana { degree, construction_window, search_window, epsilon } => Some(Walk {
                m: degree.div_ceil(2).max(2),
                ef_construction: construction_window,
                ef_runtime: search_window,
                epsilon,
            }),
        }
    }
}

/// The vectors of an index and how it finds them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorOptions {
    /// The type of elements (TYPE).
    pub element: ElementType,
    /// Elements of a vector (DIM).
    pub dimensions: usize,
    /// How far vectors are apart (DISTANCE_METRIC).
    pub metric: Metric,
    /// How neighbours are found.
    pub algorithm: Algorithm,
}

impl VectorOptions {
    /// Options of an index.
    #[must_use]
    pub fn new(element: ElementType, dimensions: usize, metric: Metric, algorithm: Algorithm) -> Self {
        Self { element, dimensions, metric, algorithm }
    }

    /// Bytes of a vector.
    #[must_use]
    pub fn blob_size(&self) -> usize {
        self.dimensions.saturating_mul(self.element.size())
    }

    /// Reads a vector: little-endian elements without anything between.
    ///
    /// # Errors
    /// When the blob has another size.
    pub fn vector(&self, blob: &[u8]) -> Result<Vector, VectorError> {
        let (given, expected) = (blob.len(), self.blob_size());
        self.format().read(blob).ok_or(VectorError::Size { given, expected })
    }

    /// The blob of numbers, of JSON for example. Integers are cut and saturate.
    #[must_use]
    pub fn blob(&self, numbers: &[f64]) -> Vec<u8> {
        let element = |number: &f64| match self.element {
            ElementType::Float32 => (*number as f32).to_le_bytes().to_vec(),
            ElementType::Float64 => number.to_le_bytes().to_vec(),
            ElementType::Float16 => element::to_half(*number as f32).to_le_bytes().to_vec(),
            ElementType::Bfloat16 => element::to_brain(*number as f32).to_le_bytes().to_vec(),
            ElementType::Int8 => (*number as i8).to_le_bytes().to_vec(),
            ElementType::Uint8 => (*number as u8).to_le_bytes().to_vec(),
        };
        numbers.iter().flat_map(element).collect()
    }

    /// Checks that all parameters are within their limits.
    ///
    /// # Errors
    /// When one is not.
    pub fn check(&self) -> Result<(), VectorError> {
        within("DIM", self.dimensions, 1, MAX_DIMENSIONS)?;
        match self.algorithm {
            Algorithm::Flat { block_size } => within("BLOCK_SIZE", block_size, 1, 1 << 20),
            Algorithm::Hnsw { m, ef_construction, ef_runtime, epsilon } => {
                within("M", m, 2, MAX_M)?;
                within("EF_CONSTRUCTION", ef_construction, 1, MAX_EF_CONSTRUCTION)?;
                within("EF_RUNTIME", ef_runtime, 1, usize::MAX)?;
                check_epsilon(epsilon)
            }
            Algorithm::Vamana { degree, construction_window, search_window, epsilon } => {
                let is_float = matches!(self.element, ElementType::Float32 | ElementType::Float16);
                if !is_float {
                    return Err(VectorError::Element(self.element));
                }
                within("GRAPH_MAX_DEGREE", degree, 1, MAX_DEGREE)?;
                within("CONSTRUCTION_WINDOW_SIZE", construction_window, 1, MAX_EF_CONSTRUCTION)?;
                within("SEARCH_WINDOW_SIZE", search_window, 1, usize::MAX)?;
                check_epsilon(epsilon)
            }
        }
    }

    fn format(&self) -> Format {
        Format { dimensions: self.dimensions, storage: Storage::Plain(self.element), metric: self.metric }
    }
}

fn check_epsilon(epsilon: f64) -> Result<(), VectorError> {
    let is_valid = epsilon.is_finite() && epsilon >= 0.0;
    if is_valid { Ok(()) } else { Err(VectorError::Epsilon(epsilon.to_string())) }
}

fn within(name: &'static str, value: usize, least: usize, most: usize) -> Result<(), VectorError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(VectorError::Parameter { name, value, least, most }) }
}

/// Why vectors or their options are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorError {
    /// A blob has another size than the index' vectors.
    Size {
        /// Its bytes.
        given: usize,
        /// The bytes of a vector.
        expected: usize,
    },
    /// A parameter is out of its range.
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The least that is allowed.
        least: usize,
        /// The most that is allowed.
        most: usize,
    },
    /// EPSILON is negative or no number.
    Epsilon(String),
    /// SVS-VAMANA does not take vectors of this type.
    Element(ElementType),
    /// The index has 2^32 − 1 vectors.
    Full,
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { given, expected } => {
                write!(f, "Could not add vector with blob size {given} (expected size {expected})")
            }
            Self::Parameter { name, value, least, most } => {
                write!(f, "Invalid value {value} for {name}: expected {least} to {most}")
            }
            Self::Epsilon(value) => write!(f, "Invalid value {value} for EPSILON: expected a number of at least 0"),
            Self::Element(element) => {
                write!(f, "Invalid value {} for TYPE of SVS-VAMANA: expected FLOAT32 or FLOAT16", element.name())
            }
            Self::Full => write!(f, "The index has {} vectors and takes no more", u32::MAX),
        }
    }
}

impl std::error::Error for VectorError {}

/// A vector that a query found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The number that it was put under.
    pub label: u64,
    /// How far it is.
    pub distance: f64,
}

/// Whether a query may find the vector of a slot.
type Accept<'a> = dyn Fn(u32) -> bool + 'a;

/// Ends a query when it returns `true`.
pub type IsOver<'a> = dyn Fn() -> bool + 'a;

/// A search for the nearest vectors.
#[derive(Clone, Copy, Default)]
pub struct Nearest<'a> {
    /// The most vectors that are found.
    pub k: usize,
    /// Candidates that a walk of the graph keeps, instead of the index' EF_RUNTIME.
    pub ef_runtime: Option<usize>,
    /// Finds only vectors of labels for which it returns `true`.
    pub accept: Option<&'a dyn Fn(u64) -> bool>,
    /// Ends the search when it returns `true`, with what was found until then; the clock is the caller's.
    pub is_over: Option<&'a IsOver<'a>>,
    /// The most nodes of HNSW whose neighbours are looked at; without it a search that finds too few compares all vectors.
    pub max_visits: Option<usize>,
}

impl Nearest<'_> {
    /// The `k` nearest of all.
    #[must_use]
    pub fn new(k: usize) -> Self {
        Self { k, ..Self::default() }
    }
}

/// A search for all vectors that are near enough.
#[derive(Clone, Copy, Default)]
pub struct Within<'a> {
    /// The greatest distance.
    pub radius: f64,
    /// How far beyond it HNSW walks, instead of its EPSILON.
    pub epsilon: Option<f64>,
    /// Finds only vectors of labels for which it returns `true`.
    pub accept: Option<&'a dyn Fn(u64) -> bool>,
    /// Ends the search when it returns `true`, with what was found until then; the clock is the caller's.
    pub is_over: Option<&'a IsOver<'a>>,
}

/// Vectors of one form. Reading needs `&self` alone, so many threads may query it at once.
#[derive(Clone, Debug)]
pub struct VectorIndex {
    algorithm: Algorithm,
    vectors: Vectors,
    /// By slot. Slots have no holes: the last vector moves into the place of a removed one.
    labels: Vec<u64>,
    slots: HashMap<u64, u32, foldhash::fast::RandomState>,
    graph: Option<Graph>,
}

/// The seed of levels. A constant, so that the same vectors make the same graph.
const SEED: u64 = 0x5eed;

/// Slots between two questions whether a scan is over.
const ASK_EVERY: usize = 256;

/// Slots whose vectors a scan asks of the memory at once.
const SCAN_BATCH: usize = 16;

/// The work of removing one vector from a graph, in slots that are looked at meanwhile.
const REMOVAL_WORK: u64 = 64;

/// The order of slots that are scanned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The processor itself fetches what follows.
    Rising,
    Any,
}

impl VectorIndex {
    /// An empty index.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn new(options: VectorOptions) -> Result<Self, VectorError> {
        options.check()?;
        Ok(Self::of_field(options))
    }

    /// An empty index of a field, whose schema checked the options.
    pub(crate) fn of_field(options: VectorOptions) -> Self {
        Self::with_format(options.format(), options.algorithm)
    }

    /// An empty index whose options were checked.
    pub(crate) fn with_format(format: Format, algorithm: Algorithm) -> Self {
        let graph = algorithm.walk().map(|walk| Graph::new(walk.m, walk.ef_construction, SEED));
        let block = match algorithm {
            Algorithm::Flat { block_size } => block_size,
            Algorithm::Hnsw { .. } | Algorithm::Vamana { .. } => {
                (MAX_BLOCK / format.row_size().max(1)).clamp(1, BLOCK_SIZE)
            }
        };
        let vectors = Vectors::new(format, block);
        Self { algorithm, vectors, labels: Vec::new(), slots: HashMap::default(), graph }
    }

    /// Adds a vector, or replaces the one of the same label.
    ///
    /// # Errors
    /// When the blob has another size, or the index is full.
    pub fn put(&mut self, label: u64, blob: &[u8]) -> Result<(), VectorError> {
        let format = self.vectors.format();
        let Storage::Plain(element) = format.storage else { return Err(VectorError::Full) };
        let (given, expected) = (blob.len(), format.dimensions * element.size());
        let vector = format.read(blob).ok_or(VectorError::Size { given, expected })?;
        self.insert(label, &vector)
    }

    /// Adds a vector of this index' form.
    pub(crate) fn insert(&mut self, label: u64, vector: &Vector) -> Result<(), VectorError> {
        self.insert_with(label, vector, None, None)
    }

    /// Adds a vector of this index' form, with another EF_CONSTRUCTION than the index', and a number from which its level in
    /// the graph follows.
    pub(crate) fn insert_with(
        &mut self,
        label: u64,
        vector: &Vector,
        ef: Option<usize>,
        random: Option<u64>,
    ) -> Result<(), VectorError> {
        self.remove(label);
        let slot = self.append(label, vector)?;
        if let Some(graph) = &mut self.graph {
            graph.push(&self.vectors, slot, ef, random);
        }
        Ok(())
    }

    /// Adds a vector of this index' form under a new label, without links; [`VectorIndex::restore_links`] must follow.
    pub(crate) fn append(&mut self, label: u64, vector: &Vector) -> Result<u32, VectorError> {
        let slot = u32::try_from(self.labels.len()).ok().filter(|slot| *slot < u32::MAX).ok_or(VectorError::Full)?;
        self.vectors.push(vector);
        self.labels.push(label);
        self.slots.insert(label, slot);
        Ok(slot)
    }

    /// Links vectors that were appended: for each its neighbours' labels, from level 0 up. `None` if that is no graph with all
    /// links in both directions.
    pub(crate) fn restore_links(&mut self, nodes: &[Vec<Vec<u64>>]) -> Option<()> {
        let mut linked = Vec::with_capacity(nodes.len());
        // Equal links of both directions cancel out. The key is random, so that no file is made to cancel out others.
        let (key, mut single) = (RandomState::new(), 0_u64);
        for (slot, levels) in nodes.iter().enumerate() {
            let slot = slot as u32;
            let link = |level: usize, label: &u64| {
                let other = *self.slots.get(label)?;
                (other != slot && nodes[other as usize].len() > level).then_some(other)
            };
            let mut node = Vec::with_capacity(levels.len());
            for (level, labels) in levels.iter().enumerate() {
                let links: Vec<u32> = labels.iter().map(|label| link(level, label)).collect::<Option<_>>()?;
                let mut sorted = links.clone();
                sorted.sort_unstable();
                if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                    return None;
                }
                links.iter().for_each(|other| single ^= key.hash_one((level, slot.min(*other), slot.max(*other))));
                node.push(links);
            }
            linked.push(node);
        }
        (single == 0).then_some(())?;
        self.graph.as_mut()?.restore(linked);
        Some(())
    }

    /// Removes a vector; `false` if there is none of that label.
    pub fn remove(&mut self, label: u64) -> bool {
        let Some(slot) = self.slots.remove(&label) else { return false };
        let last = self.labels.len() as u32 - 1;
        match &mut self.graph {
            Some(graph) => graph.swap_remove(&mut self.vectors, slot, last),
            None => self.vectors.swap_remove(slot as usize),
        }
        self.labels.swap_remove(slot as usize);
        if let Some(moved) = self.labels.get(slot as usize) {
            self.slots.insert(*moved, slot);
        }
        true
    }

    /// Vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no vectors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether a vector of that label is there.
    #[must_use]
    pub fn contains(&self, label: u64) -> bool {
        self.slots.contains_key(&label)
    }

    /// The distance of a label's vector.
    #[must_use]
    pub fn distance(&self, query: &Vector, label: u64) -> Option<f64> {
        Some(self.vectors.distance(query.row(), *self.slots.get(&label)?))
    }

    /// The nearest vectors, the nearest first; equally near ones by label.
    #[must_use]
    pub fn nearest(&self, query: &Vector, search: &Nearest<'_>) -> Vec<Neighbour> {
        let k = search.k.min(self.len());
        if k == 0 {
            return Vec::new();
        }
        let accepts = search.accept.map(|accept| move |slot: u32| accept(self.labels[slot as usize]));
        let accept = accepts.as_ref().map(|accept| accept as &Accept<'_>);
        let scan = || {
            let slots = (0..self.labels.len() as u32).filter(|slot| accept.is_none_or(|accept| accept(*slot)));
            self.scan(query, k, slots, Order::Rising, search.is_over)
        };
        let found = match (&self.graph, self.algorithm.walk()) {
            (Some(graph), Some(walk)) => {
                let ef = search.ef_runtime.unwrap_or(walk.ef_runtime).max(k).min(self.len());
                let rules = Rules { accept, is_over: search.is_over, max_visits: search.max_visits };
                let found = graph.nearest(&self.vectors, query.row(), ef, rules);
                // A walk that finds too few has seen all that it can reach; a scan finds the rest, if there is one.
                let may_scan = search.max_visits.is_none() && !search.is_over.is_some_and(|is_over| is_over());
                let is_short = found.len() < k && may_scan;
                if is_short { scan() } else { found }
            }
            _ => scan(),
        };
        let mut neighbours = self.labelled(found);
        neighbours.truncate(k);
        neighbours
    }

    /// The exact nearest vectors, the nearest first.
    pub(crate) fn exact(&self, query: &Vector, search: &Nearest<'_>) -> Vec<Neighbour> {
        let accepts = |slot: &u32| search.accept.is_none_or(|accept| accept(self.labels[*slot as usize]));
        let slots = (0..self.labels.len() as u32).filter(accepts);
        let found = self.scan(query, search.k.min(self.len()), slots, Order::Rising, search.is_over);
        self.labelled(found)
    }

    /// A label's vector.
    pub(crate) fn vector(&self, label: u64) -> Option<Vector> {
        Some(self.vectors.row(*self.slots.get(&label)?).to_vector())
    }

    /// A label's elements, of length 1 if vectors are compared by angle.
    pub(crate) fn decode(&self, label: u64) -> Option<Vec<f32>> {
        Some(self.vectors.decode(*self.slots.get(&label)?))
    }

    /// All labels. A removal gives the last one the place of the removed one.
    pub(crate) fn labels(&self) -> &[u64] {
        &self.labels
    }

    /// The distance of a label's vector by angle, rounded as by Redis' vector sets.
    pub(crate) fn angle(&self, query: &Vector, label: u64) -> Option<f32> {
        Some(self.vectors.format().angle(query.row(), self.vectors.row(*self.slots.get(&label)?)))
    }

    /// The elements of a label's vector as files have them, and their scale.
    pub(crate) fn packed(&self, label: u64) -> Option<(Vec<u8>, f32)> {
        Some(self.vectors.row(*self.slots.get(&label)?).packed())
    }

    /// The labels that a label is linked to in the graph, from its highest level down to 0.
    pub(crate) fn links(&self, label: u64) -> Option<Vec<Vec<u64>>> {
        let (slot, graph) = (*self.slots.get(&label)?, self.graph.as_ref()?);
        let labels = |links: &[u32]| links.iter().map(|link| self.labels[*link as usize]).collect();
        Some(graph.neighbours(slot).into_iter().map(labels).collect())
    }

    /// The highest level of the graph.
    pub(crate) fn max_level(&self) -> usize {
        self.graph.as_ref().map_or(0, Graph::max_level)
    }

    /// The exact nearest vectors of these labels, the nearest first.
    #[must_use]
    pub fn nearest_of(&self, query: &Vector, k: usize, labels: &[u64], is_over: Option<&IsOver<'_>>) -> Vec<Neighbour> {
        let slots = labels.iter().filter_map(|label| self.slots.get(label).copied());
        let found = self.scan(query, k.min(self.len()), slots, Order::Any, is_over);
        self.labelled(found)
    }

    /// Whether comparing `matches` vectors costs less than walking the graph until so many of all are found.
    pub(crate) fn scan_is_cheaper(&self, matches: usize, search: &Nearest<'_>) -> bool {
        let Some(walk) = self.algorithm.walk() else { return true };
        let ef = search.ef_runtime.unwrap_or(walk.ef_runtime).max(search.k.min(self.len()));
        // A walk expands about `ef` nodes for each one of the filter's share, and compares about M new ones at each.
        let compared = (ef as f64) * (walk.m as f64) * self.len() as f64 / matches.max(1) as f64;
        matches as f64 <= compared
    }

    fn scan(
        &self,
        query: &Vector,
        k: usize,
        slots: impl Iterator<Item = u32>,
        order: Order,
        is_over: Option<&IsOver<'_>>,
    ) -> Vec<Found> {
        let (row, mut best) = (query.row(), BinaryHeap::new());
        let mut slots = slots.fuse();
        let (mut next, mut compared) = (Vec::with_capacity(SCAN_BATCH), 0);
        loop {
            next.clear();
            next.extend(slots.by_ref().take(SCAN_BATCH));
            if next.is_empty() {
                return best.into_vec();
            }
            compared += next.len();
            if compared % ASK_EVERY < SCAN_BATCH && is_over.is_some_and(|is_over| is_over()) {
                return best.into_vec();
            }
            if order == Order::Any {
                self.vectors.touch(&next);
            }
            for &slot in &next {
                let found = Found { distance: self.vectors.distance(row, slot), slot };
                if best.len() < k {
                    best.push(found);
                } else if let Some(mut worst) = best.peek_mut().filter(|worst| found < **worst) {
                    *worst = found;
                }
            }
        }
    }

    /// All vectors that are near enough, the nearest first.
    #[must_use]
    pub fn within(&self, query: &Vector, search: &Within<'_>) -> Vec<Neighbour> {
        let accepts = search.accept.map(|accept| move |slot: u32| accept(self.labels[slot as usize]));
        let accept = accepts.as_ref().map(|accept| accept as &Accept<'_>);
        let found = match (&self.graph, self.algorithm.walk()) {
            (Some(graph), Some(walk)) => {
                let reach = search.radius + search.radius.abs() * search.epsilon.unwrap_or(walk.epsilon).max(0.0);
                let (row, radii) = (query.row(), (search.radius, reach));
                graph.within(&self.vectors, row, radii, walk.ef_runtime, accept, search.is_over)
            }
            _ => self.scan_within(query, search, accept),
        };
        self.labelled(found)
    }

    fn scan_within(&self, query: &Vector, search: &Within<'_>, accept: Option<&Accept<'_>>) -> Vec<Found> {
        let mut found = Vec::new();
        for slot in 0..self.labels.len() as u32 {
            if slot as usize % ASK_EVERY == ASK_EVERY - 1 && search.is_over.is_some_and(|is_over| is_over()) {
                break;
            }
            let distance = self.vectors.distance(query.row(), slot);
            if distance <= search.radius && accept.is_none_or(|accept| accept(slot)) {
                found.push(Found { distance, slot });
            }
        }
        found
    }

    fn labelled(&self, found: Vec<Found>) -> Vec<Neighbour> {
        let neighbour = |found: Found| Neighbour { label: self.labels[found.slot as usize], distance: found.distance };
        let mut neighbours: Vec<Neighbour> = found.into_iter().map(neighbour).collect();
        neighbours
            .sort_unstable_by(|one, other| one.distance.total_cmp(&other.distance).then(one.label.cmp(&other.label)));
        neighbours
    }

    /// Goes on removing vectors whose labels are gone, from `at` downwards, for about `work` looks; returns whether all
    /// were looked at. `at` begins as `None`.
    pub(crate) fn retain(&mut self, at: &mut Option<usize>, work: u64, is_live: impl Fn(u64) -> bool) -> bool {
        let mut left = at.take().map_or(self.len(), |at| at.min(self.len()));
        let mut spent = 0;
        while left > 0 && spent < work.max(1) {
            left -= 1;
            spent += 1;
            let label = self.labels[left];
            if !is_live(label) {
                // The last vector takes this slot; it was looked at before.
                self.remove(label);
                spent += if self.graph.is_some() { REMOVAL_WORK } else { 1 };
            }
        }
        *at = (left > 0).then_some(left);
        left == 0
    }

    /// Bytes in memory, without `self`. The memory of hash tables is an estimate.
    #[must_use]
    pub fn memory(&self) -> usize {
        let slots = self.slots.capacity() * (size_of::<(u64, u32)>() + 1) * 8 / 7;
        let labels = self.labels.capacity() * size_of::<u64>();
        self.vectors.memory() + slots + labels + self.graph.as_ref().map_or(0, Graph::memory)
    }
}
