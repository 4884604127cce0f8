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

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

pub use filter::{Filter, FilterError, MAX_FILTER_TOKENS};

use crate::vector::{
    Algorithm, ElementType, Format, MAX_DIMENSIONS, MAX_EF_CONSTRUCTION, MAX_M, Metric, Nearest, Neighbour, Storage,
    VectorError, VectorIndex,
};

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

/// A random linear map to fewer dimensions, which nearly keeps angles.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    input: usize,
    /// One row of `input` factors per dimension that is kept.
    matrix: Vec<f32>,
}

/// The most factors of a projection: 256 MiB.
const MAX_FACTORS: usize = 1 << 26;

impl Projection {
    /// A map from `input` to `output` dimensions, the same for the same seed.
    ///
    /// # Errors
    /// When a number is 0, too great, or `output` is not less than `input`.
    pub fn random(input: usize, output: usize, seed: u64) -> Result<Self, VectorSetError> {
        let is_small = input <= MAX_DIMENSIONS && output > 0 && output < input && input * output <= MAX_FACTORS;
        if !is_small {
            return Err(VectorSetError::Reduction { input, output });
        }
        let (scale, mut state) = (1.0 / (input as f32).sqrt(), seed);
        let factor = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            ((mixed(state) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0) * scale
        };
        Ok(Self { input, matrix: std::iter::repeat_with(factor).take(input * output).collect() })
    }

    /// A map by its factors, row by row, of a saved set for example.
    ///
    /// # Errors
    /// When the factors are no whole rows, too many, or not fewer than `input`.
    pub fn from_matrix(input: usize, matrix: Vec<f32>) -> Result<Self, VectorSetError> {
        let output = matrix.len().checked_div(input).unwrap_or(0);
        if input > MAX_DIMENSIONS || output == 0 || output * input != matrix.len() || matrix.len() > MAX_FACTORS {
            return Err(VectorSetError::Reduction { input, output });
        }
        Ok(Self { input, matrix })
    }

    /// Dimensions of vectors that are given.
    #[must_use]
    pub fn input(&self) -> usize {
        self.input
    }

    /// Dimensions of vectors that are kept.
    #[must_use]
    pub fn output(&self) -> usize {
        self.matrix.len() / self.input
    }

    /// The factors, row by row.
    #[must_use]
    pub fn matrix(&self) -> &[f32] {
        &self.matrix
    }

    fn apply(&self, vector: &[f32]) -> Vec<f32> {
        let row = |row: &[f32]| row.iter().zip(vector).map(|(factor, element)| factor * element).sum();
        self.matrix.chunks_exact(self.input).map(row).collect()
    }
}

/// SplitMix64's output function.
fn mixed(state: u64) -> u64 {
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
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
    last: u64,
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
    /// The most elements that the filter looks at; 0 is all (FILTER-EF).
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

/// The score of a cosine distance from 0 to 2.
fn score(distance: f64) -> f64 {
    (2.0 - distance) / 2.0
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
        let algorithm = Algorithm::Hnsw { m: options.m, ef_construction: 200, ef_runtime: 100, epsilon: 0.0 };
        let index = VectorIndex::with_format(format, algorithm);
        Ok(Self { options, format, index, labels: BTreeMap::new(), elements: HashMap::new(), last: 0 })
    }

    /// Adds an element, or replaces its vector and keeps its attributes; `true` if it is new. `ef` is the number of
    /// candidates for its links, 200 if absent.
    ///
    /// # Errors
    /// When the vector has another number of dimensions, or the set is full.
    pub fn add(&mut self, name: &[u8], vector: &[f32], ef: Option<usize>) -> Result<bool, VectorSetError> {
        let floats = self.project(vector)?;
        let length = floats.iter().map(|element| element * element).sum::<f32>().sqrt();
        let vector = self.format.encode(floats);
        let known = self.labels.get(name).copied();
        let label = known.unwrap_or(self.last + 1);
        self.index.insert_with(label, &vector, ef.map(|ef| ef.clamp(1, MAX_EF_CONSTRUCTION)))?;
        match self.elements.get_mut(&label) {
            Some(element) => element.length = length,
            None => {
                let name: Arc<[u8]> = Arc::from(name);
                self.last = label;
                self.labels.insert(Arc::clone(&name), label);
                self.elements.insert(label, Element { name, attributes: Box::default(), length });
            }
        }
        Ok(known.is_none())
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
        self.elements.remove(&label);
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
        let element = self.labels.get(name).and_then(|label| self.elements.get_mut(label));
        element.map(|element| element.attributes = attributes.into()).is_some()
    }

    /// The most similar elements, the most similar first.
    ///
    /// # Errors
    /// When the vector has another number of dimensions, or there is no such element.
    pub fn similar(&self, target: Target<'_>, search: &Similar<'_>) -> Result<Vec<Match<'_>>, VectorSetError> {
        let query = match target {
            Target::Vector(vector) => self.format.encode(self.project(vector)?),
            Target::Element(name) => {
                let label = self.labels.get(name).ok_or(VectorSetError::NoElement)?;
                self.index.vector(*label).ok_or(VectorSetError::NoElement)?
            }
        };
        let looks = Cell::new(0_usize);
        let may_tire = search.filter_ef > 0 && !search.exact;
        let is_tired = || may_tire && looks.get() >= search.filter_ef;
        let passes = |label: u64| {
            if is_tired() {
                return false;
            }
            looks.set(looks.get() + 1);
            let element = self.elements.get(&label);
            element.zip(search.filter).is_some_and(|(element, filter)| filter.accepts(&element.attributes))
        };
        let is_over = || is_tired() || search.is_over.is_some_and(|is_over| is_over());
        let accept = search.filter.map(|_| &passes as &dyn Fn(u64) -> bool);
        let nearest = Nearest { k: search.count, ef_runtime: Some(search.ef), accept, is_over: Some(&is_over) };
        let found =
            if search.exact { self.index.exact(&query, &nearest) } else { self.index.nearest(&query, &nearest) };
        let farthest = search.epsilon.map_or(f64::INFINITY, |epsilon| epsilon * 2.0);
        Ok(found.iter().filter(|found| found.distance <= farthest).filter_map(|found| self.matched(found)).collect())
    }

    fn matched(&self, found: &Neighbour) -> Option<Match<'_>> {
        let element = self.elements.get(&found.label)?;
        Some(Match { name: &element.name, score: score(found.distance), attributes: &element.attributes })
    }

    /// An element's links with their scores, from its highest level down to 0 (VLINKS).
    #[must_use]
    pub fn links(&self, name: &[u8]) -> Option<Vec<Vec<Match<'_>>>> {
        let levels = self.index.links(*self.labels.get(name)?)?;
        Some(levels.iter().map(|links| links.iter().filter_map(|link| self.matched(link)).collect()).collect())
    }

    /// The element of a random number (VRANDMEMBER); equal numbers give equal elements while the set stays as it is.
    #[must_use]
    pub fn random_member(&self, random: u64) -> Option<&[u8]> {
        let label = self.index.label_at(random)?;
        self.elements.get(&label).map(|element| &*element.name)
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
        let owned = self.elements.values().map(|element| element.name.len() + element.attributes.len());
        let entry = size_of::<(u64, Element)>() * 8 / 7 + 1;
        let node = size_of::<(Arc<[u8]>, u64)>() * 4 / 3 + 2 * size_of::<usize>();
        let projection = self.options.projection.as_ref().map_or(0, |projection| projection.matrix.len());
        self.index.memory()
            + owned.sum::<usize>()
            + self.elements.capacity() * entry
            + self.labels.len() * node
            + projection * size_of::<f32>()
    }
}
