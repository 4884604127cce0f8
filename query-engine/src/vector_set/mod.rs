//! Vector sets (Redis' `VADD`, `VSIM` and the others): named vectors with attributes, found by their angle.
//!
//! ```
//! use query_engine::vector_set::{Filter, Similar, Target, VectorSet, VectorSetOptions};
//!
//! let mut set = VectorSet::new(2, VectorSetOptions::default())?;
//! set.add(b"north", &[0.0, 1.0], None)?;
//! set.add(b"east", &[1.0, 0.0], None)?;
//! set.set_attributes(b"east", b"{\"sunny\": true}");
//!
//! let near = set.similar(Target::Vector(&[0.1, 2.0]), &Similar::new(1))?;
//! assert_eq!(near[0].name, b"north");
//! let sunny = Filter::parse(b".sunny")?;
//! let near = set.similar(Target::Element(b"north"), &Similar { filter: Some(&sunny), ..Similar::new(1) })?;
//! assert_eq!((near[0].name, near[0].score.round()), (&b"east"[..], 1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod filter;
mod json;
mod projection;
mod saved;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

pub use filter::{Filter, FilterError, MAX_FILTER_TOKENS};
pub use projection::Projection;
pub use saved::{Node, VectorSetBuilder};

use crate::vector::{Algorithm, ElementType, Format, Metric, Nearest, Storage, VectorError, VectorIndex, normalize};

/// The most dimensions of a vector, before and after a projection.
pub const MAX_DIMENSIONS: usize = 65_536;

/// The most links per element that may be asked for.
pub const MAX_M: usize = 4096;

/// Candidates of an insertion if nothing else is asked.
const EF_CONSTRUCTION: usize = 200;

// The sum of the products of bytes fits into an i32.
const _: () = assert!(127 * 127 * MAX_DIMENSIONS <= i32::MAX as usize);

/// How elements of vectors are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantization {
    /// 32-bit floats (NOQUANT).
    None,
    /// A byte each, with a scale per vector (Q8).
    #[default]
    Q8,
    /// A bit each (BIN).
    Binary,
}

/// The options that a set gets with its first element.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSetOptions {
    /// How elements of vectors are kept.
    pub quantization: Quantization,
    /// Maps vectors to fewer dimensions (REDUCE).
    pub projection: Option<Projection>,
    /// Links of an element; twice as many on the lowest level (M).
    pub m: usize,
}

impl Default for VectorSetOptions {
    fn default() -> Self {
        Self { quantization: Quantization::default(), projection: None, m: 16 }
    }
}

/// Why a set refuses something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorSetError {
    /// A vector has another number of dimensions than the set.
    Dimensions {
        /// The vector's.
        given: usize,
        /// The set's.
        expected: usize,
        /// Whether the set projects vectors.
        is_projected: bool,
    },
    /// A set of so many dimensions, or with such a projection, is not possible.
    Reduction {
        /// Dimensions of vectors that are given.
        input: usize,
        /// Dimensions that are kept.
        output: usize,
    },
    /// A parameter is out of its range, or the set is full.
    Vector(VectorError),
    /// There is no element of that name.
    NoElement,
}

impl fmt::Display for VectorSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dimensions { given, expected, is_projected: false } => {
                write!(f, "Vector dimension mismatch - got {given} but set has {expected}")
            }
            Self::Dimensions { given, expected, is_projected: true } => {
                write!(f, "Input dimension mismatch for projection - got {given} but projection expects {expected}")
            }
            Self::Reduction { input, output } => write!(f, "invalid reduction from {input} to {output} dimensions"),
            Self::Vector(error) => error.fmt(f),
            Self::NoElement => f.write_str("element not found in set"),
        }
    }
}

impl std::error::Error for VectorSetError {}

impl From<VectorError> for VectorSetError {
    fn from(error: VectorError) -> Self {
        Self::Vector(error)
    }
}

#[derive(Clone, Debug)]
struct Element {
    name: Arc<[u8]>,
    /// JSON; empty if there is none.
    attributes: Box<[u8]>,
    /// The length of the vector as it was given, after the projection.
    length: f32,
}

/// A set of named vectors. Reading needs `&self` alone.
#[derive(Clone, Debug)]
pub struct VectorSet {
    options: VectorSetOptions,
    format: Format,
    index: VectorIndex,
    labels: BTreeMap<Arc<[u8]>, u64>,
    elements: HashMap<u64, Element>,
    /// The greatest number that an element has had.
    last: u64,
    /// Bytes of names and attributes.
    owned: usize,
    /// Elements with attributes.
    attributed: usize,
}

/// The vector that others are compared with.
#[derive(Clone, Copy, Debug)]
pub enum Target<'t> {
    /// A vector as it is given to [`VectorSet::add`].
    Vector(&'t [f32]),
    /// An element's.
    Element(&'t [u8]),
}

/// A search for similar elements.
#[derive(Clone, Copy)]
pub struct Similar<'s> {
    /// The most elements that are found (COUNT).
    pub count: usize,
    /// Candidates that the search keeps (EF).
    pub ef: usize,
    /// The greatest distance, from 0 to 1: scores are at least 1 − this (EPSILON).
    pub epsilon: Option<f64>,
    /// Finds only elements whose attributes fulfil this.
    pub filter: Option<&'s Filter>,
    /// The most elements whose neighbours a search with a filter looks at; 0 is all (FILTER-EF).
    pub filter_ef: usize,
    /// Compares all elements instead of walking the graph (TRUTH).
    pub exact: bool,
    /// Ends the search when it returns `true`, with what was found until then.
    pub is_over: Option<&'s dyn Fn() -> bool>,
}

impl Similar<'_> {
    /// The `count` most similar of all, with Redis' defaults.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let filter_ef = count.saturating_mul(100);
        Self { count, ef: 100, epsilon: None, filter: None, filter_ef, exact: false, is_over: None }
    }
}

/// An element that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match<'s> {
    /// Its name.
    pub name: &'s [u8],
    /// 1 for the same direction, 0 for the opposite one.
    pub score: f64,
    /// Its attributes; empty if it has none.
    pub attributes: &'s [u8],
}

/// The score of a distance by angle, from 0 to 2.
fn score(distance: f32) -> f64 {
    1.0 - f64::from(distance) / 2.0
}

/// A number of a name, the same in every process (FNV-1a).
fn number_of(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl VectorSet {
    /// An empty set of vectors of so many dimensions.
    ///
    /// # Errors
    /// When a parameter is out of its range, or the projection is for other vectors.
    pub fn new(dimensions: usize, options: VectorSetOptions) -> Result<Self, VectorSetError> {
        let kept = options.projection.as_ref().map_or(dimensions, Projection::output);
        let input = options.projection.as_ref().map_or(dimensions, Projection::input);
        if input != dimensions || !(1..=MAX_DIMENSIONS).contains(&kept) {
            return Err(VectorSetError::Reduction { input: dimensions, output: kept });
        }
        let (name, value) = ("M", options.m);
        if !(2..=MAX_M).contains(&value) {
            return Err(VectorError::Parameter { name, value, least: 2, most: MAX_M }.into());
        }
        let storage = match options.quantization {
            Quantization::None => Storage::Plain(ElementType::Float32),
            Quantization::Q8 => Storage::Q8,
            Quantization::Binary => Storage::Bits,
        };
        let format = Format { dimensions: kept, storage, metric: Metric::Cosine };
        let algorithm =
            Algorithm::Hnsw { m: options.m, ef_construction: EF_CONSTRUCTION, ef_runtime: 100, epsilon: 0.0 };
        let index = VectorIndex::with_format(format, algorithm);
        let (labels, elements) = (BTreeMap::new(), HashMap::new());
        Ok(Self { options, format, index, labels, elements, last: 0, owned: 0, attributed: 0 })
    }

    /// Adds an element, or replaces its vector and keeps its attributes; `true` if it is new. `ef` is the number of
    /// candidates for its links, 200 if absent. Equal calls lead to equal sets: the level of an element follows from its name.
    ///
    /// # Errors
    /// When the vector has another number of dimensions, or the set is full.
    pub fn add(&mut self, name: &[u8], vector: &[f32], ef: Option<usize>) -> Result<bool, VectorSetError> {
        let mut floats = self.project(vector)?;
        let length = normalize(&mut floats);
        let vector = self.format.pack(floats);
        let id = self.last.checked_add(1).ok_or(VectorError::Full)?;
        let known = self.labels.get(name).copied();
        if let Some(old) = known {
            self.index.remove(old);
        }
        self.index.insert_with(id, &vector, ef.map(|ef| ef.max(1)), Some(number_of(name)))?;
        self.last = id;
        match known.and_then(|old| self.elements.remove(&old)) {
            Some(element) => {
                self.labels.insert(Arc::clone(&element.name), id);
                self.elements.insert(id, Element { length, ..element });
            }
            None => self.name(name, id, length),
        }
        Ok(known.is_none())
    }

    /// Makes a vector of the index a new element.
    fn name(&mut self, name: &[u8], id: u64, length: f32) {
        self.owned += name.len();
        let name: Arc<[u8]> = Arc::from(name);
        self.labels.insert(Arc::clone(&name), id);
        self.elements.insert(id, Element { name, attributes: Box::default(), length });
    }

    fn project(&self, vector: &[f32]) -> Result<Vec<f32>, VectorSetError> {
        let projection = self.options.projection.as_ref();
        let (given, expected) = (vector.len(), projection.map_or(self.format.dimensions, Projection::input));
        if given != expected {
            return Err(VectorSetError::Dimensions { given, expected, is_projected: projection.is_some() });
        }
        Ok(projection.map_or_else(|| vector.to_vec(), |projection| projection.apply(vector)))
    }

    /// Removes an element; `false` if there is none of that name.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(label) = self.labels.remove(name) else { return false };
        if let Some(element) = self.elements.remove(&label) {
            self.owned -= element.name.len() + element.attributes.len();
            self.attributed -= usize::from(!element.attributes.is_empty());
        }
        self.index.remove(label)
    }

    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Dimensions of vectors as they are kept.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.format.dimensions
    }

    /// The options that it was made with.
    #[must_use]
    pub fn options(&self) -> &VectorSetOptions {
        &self.options
    }

    /// The highest level of its graph.
    #[must_use]
    pub fn max_level(&self) -> usize {
        self.index.max_level()
    }

    /// Whether an element of that name is there.
    #[must_use]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.labels.contains_key(name)
    }

    /// Elements with attributes.
    #[must_use]
    pub fn attributed(&self) -> usize {
        self.attributed
    }

    /// The greatest number that an element has had. Each vector gets the next one when it is added.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        self.last
    }

    fn element(&self, name: &[u8]) -> Option<&Element> {
        self.elements.get(self.labels.get(name)?)
    }

    /// An element's vector, as exact as it is kept and in its given length. Bits are −1 and 1.
    #[must_use]
    pub fn vector(&self, name: &[u8]) -> Option<Vec<f32>> {
        let mut vector = self.index.decode(*self.labels.get(name)?)?;
        if self.options.quantization != Quantization::Binary {
            let length = self.element(name)?.length;
            vector.iter_mut().for_each(|element| *element *= length);
        }
        Some(vector)
    }

    /// An element's attributes; `None` if it has none.
    #[must_use]
    pub fn attributes(&self, name: &[u8]) -> Option<&[u8]> {
        let attributes = &*self.element(name)?.attributes;
        (!attributes.is_empty()).then_some(attributes)
    }

    /// Sets an element's attributes (JSON), or removes them if the text is empty; `false` if there is no such element.
    pub fn set_attributes(&mut self, name: &[u8], attributes: &[u8]) -> bool {
        let Some(element) = self.labels.get(name).and_then(|label| self.elements.get_mut(label)) else { return false };
        self.owned = self.owned + attributes.len() - element.attributes.len();
        self.attributed += usize::from(!attributes.is_empty());
        self.attributed -= usize::from(!element.attributes.is_empty());
        element.attributes = attributes.into();
        true
    }

    /// Whether [`VectorSet::similar`] takes vectors of so many dimensions: as they are given or as they are kept.
    ///
    /// # Errors
    /// When it does not.
    pub fn accepts(&self, given: usize) -> Result<(), VectorSetError> {
        let projection = self.options.projection.as_ref();
        let expected = projection.map_or(self.format.dimensions, Projection::input);
        if given == expected || given == self.format.dimensions {
            return Ok(());
        }
        Err(VectorSetError::Dimensions { given, expected, is_projected: projection.is_some() })
    }

    /// The most similar elements, the most similar first. A vector that has the dimensions that are kept is not projected.
    ///
    /// # Errors
    /// When the vector has another number of dimensions, or there is no such element.
    pub fn similar(&self, target: Target<'_>, search: &Similar<'_>) -> Result<Vec<Match<'_>>, VectorSetError> {
        let mut floats = match target {
            Target::Vector(vector) if vector.len() == self.format.dimensions => vector.to_vec(),
            Target::Vector(vector) => self.project(vector)?,
            // As exact as it is kept, so that scores are those of Redis.
            Target::Element(name) => self.vector(name).ok_or(VectorSetError::NoElement)?,
        };
        normalize(&mut floats);
        let query = self.format.pack(floats);
        let passes = |label: u64| {
            let element = self.elements.get(&label);
            element.zip(search.filter).is_some_and(|(element, filter)| filter.accepts(&element.attributes))
        };
        let nearest = Nearest {
            k: search.count,
            ef_runtime: Some(search.ef),
            accept: search.filter.map(|_| &passes as &dyn Fn(u64) -> bool),
            is_over: search.is_over,
            max_visits: search.filter.and(Some(search.filter_ef)).filter(|most| *most > 0),
        };
        let found =
            if search.exact { self.index.exact(&query, &nearest) } else { self.index.nearest(&query, &nearest) };
        let angle = |label: u64| Some((self.index.angle(&query, label)?, label));
        let mut found: Vec<(f32, u64)> = found.iter().filter_map(|found| angle(found.label)).collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        let is_far = |distance: f32| search.epsilon.is_some_and(|epsilon| distance / 2.0 > epsilon as f32);
        let near = found.iter().take_while(|(distance, _)| !is_far(*distance));
        Ok(near.filter_map(|(distance, label)| self.matched(*label, score(*distance))).collect())
    }

    fn matched(&self, label: u64, score: f64) -> Option<Match<'_>> {
        let element = self.elements.get(&label)?;
        Some(Match { name: &element.name, score, attributes: &element.attributes })
    }

    /// An element's links with their scores, the most similar first, from its highest level down to 0 (VLINKS). Scores have the
    /// accuracy of 32 bits.
    #[must_use]
    pub fn links(&self, name: &[u8]) -> Option<Vec<Vec<Match<'_>>>> {
        let own = *self.labels.get(name)?;
        let (query, levels) = (self.index.vector(own)?, self.index.links(own)?);
        let link = |label: &u64| {
            let score = score(self.index.angle(&query, *label)?) as f32;
            self.matched(*label, score.into())
        };
        let level = |labels: &Vec<u64>| {
            let mut links: Vec<Match<'_>> = labels.iter().filter_map(link).collect();
            links.sort_by(|one, other| other.score.total_cmp(&one.score));
            links
        };
        Some(levels.iter().map(level).collect())
    }

    /// The element at a place below the number of elements (VRANDMEMBER). Places stay until something is removed.
    #[must_use]
    pub fn member_at(&self, place: usize) -> Option<&[u8]> {
        self.elements.get(self.index.labels().get(place)?).map(|element| &*element.name)
    }

    /// Names in byte order (VRANGE).
    pub fn names(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> impl Iterator<Item = &[u8]> {
        let is_before = move |name: &[u8]| match to {
            Bound::Included(to) => name <= to,
            Bound::Excluded(to) => name < to,
            Bound::Unbounded => true,
        };
        // A range whose ends are turned round is empty, and no panic.
        let names = self.labels.range::<[u8], _>((from, Bound::Unbounded)).map(|(name, _)| &**name);
        names.take_while(move |name| is_before(name))
    }

    /// Bytes in memory, without `self`. The memory of hash tables, trees and shared names is an estimate.
    #[must_use]
    pub fn memory(&self) -> usize {
        let entry = size_of::<(u64, Element)>() * 8 / 7 + 1;
        let node = size_of::<(Arc<[u8]>, u64)>() * 4 / 3 + 2 * size_of::<usize>();
        self.index.memory()
            + self.owned
            + self.elements.capacity() * entry
            + self.labels.len() * node
            + self.options.projection.as_ref().map_or(0, Projection::memory)
    }
}
