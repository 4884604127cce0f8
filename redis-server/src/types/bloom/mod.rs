//! Bloom filters that grow: a chain of filters, each with half the error rate of the one before, so that the sum of all stays
//! below the rate that was asked for.
//!
//! Bits and numbers are those of RedisBloom, so that its files and dumps hold the same filter here. A chain takes the bytes
//! that `BF.INFO` says: its bits, 64 bytes for each filter, and 32 more.
//!
//! ```
//! use redis_server::types::bloom::Bloom;
//!
//! let mut filter = Bloom::new(0.01, 100, Some(2)).unwrap();
//! assert_eq!(filter.add(b"a"), Ok(true));
//! assert_eq!(filter.add(b"a"), Ok(false));
//! assert!(filter.contains(b"a") && !filter.contains(b"b"));
//! ```

mod dump;
mod hash;
#[cfg(test)]
mod tests;

use std::fmt;

pub use dump::{CHUNK, FilterShape, Shape};

use hash::{Hash, hash};

/// The logarithm of 2 and its square, with RedisBloom's digits: filters are to be equal to the last bit.
#[allow(clippy::approx_constant, reason = "fewer digits than a double has")]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;
/// By how much the error rate of a chain's next filter is smaller.
const TIGHTENING: f64 = 0.5;
/// Bytes of bits that all filters of a chain may have.
pub const MAX_BYTES: u64 = 1 << 30;
/// Filters that a chain may have: a look at it takes as many.
pub const MAX_FILTERS: usize = 1024;
/// Bits that an element may set, beyond what the least error rate that a double holds asks for.
const MAX_HASHES: u32 = 1100;

/// The flags by which RedisBloom tells its forms apart: bits are no power of two, hashes have 64 bits, and there is one filter only.
mod options {
    pub(super) const NO_ROUND: u32 = 1;
    pub(super) const FORCE_64: u32 = 4;
    pub(super) const NO_SCALING: u32 = 8;
    pub(super) const KNOWN: u32 = NO_ROUND | FORCE_64 | NO_SCALING;
}

/// A chain of filters.
#[derive(Clone, Debug, PartialEq)]
pub struct Bloom {
    filters: Box<[Filter]>,
    /// Elements that were new when they were added.
    items: u64,
    options: u32,
    /// By how much the capacity of the next filter is larger.
    growth: u32,
}

/// One filter of a chain.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    bits: Box<[u8]>,
    /// Bits that elements are spread over.
    width: u64,
    capacity: u64,
    items: u64,
    error: f64,
    bits_per_item: f64,
    hashes: u32,
    /// The power of two that `width` is, in the form that rounds; else 0.
    log: u8,
}

const _: () = assert!(size_of::<Bloom>() == 32 && size_of::<Filter>() == 64, "what BF.INFO says of RedisBloom's");

/// Why a filter is not made, or takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has its capacity, and is not to grow.
    Full,
    /// It would have more than [`MAX_BYTES`], or [`MAX_FILTERS`].
    Size,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "non scaling filter is full"),
            Self::Size => write!(f, "the filter would have more than {MAX_BYTES} bytes or {MAX_FILTERS} sub-filters"),
        }
    }
}

impl std::error::Error for Refused {}

impl Bloom {
    /// An empty one for so many elements at an error rate between 0 and 1. With a `growth` of at least 1 it gets a filter
    /// so many times as large when it has its capacity, and another one then; without, it is full.
    ///
    /// # Errors
    /// [`Refused::Size`].
    pub fn new(error: f64, capacity: u64, growth: Option<u32>) -> Result<Self, Refused> {
        let error = if growth.is_some() { error * TIGHTENING } else { error };
        let first = Filter::new(error, capacity, MAX_BYTES)?;
        let scaling = if growth.is_some() { 0 } else { options::NO_SCALING };
        let options = options::NO_ROUND | options::FORCE_64 | scaling;
        Ok(Self { filters: Box::new([first]), items: 0, options, growth: growth.unwrap_or(DEFAULT_GROWTH) })
    }

    /// Adds an element; whether it was new, as far as a filter can tell.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn add(&mut self, element: &[u8]) -> Result<bool, Refused> {
        let hash = hash(element);
        if self.has(hash) {
            return Ok(false);
        }
        if self.last().items >= self.last().capacity {
            self.grow()?;
        }
        let last = self.filters.last_mut().expect("a chain has a filter");
        last.set(hash);
        self.items += 1;
        Ok(true)
    }

    /// Whether an element was added; one of many that were not is taken for one that was.
    pub fn contains(&self, element: &[u8]) -> bool {
        self.has(hash(element))
    }

    fn has(&self, hash: Hash) -> bool {
        self.filters.iter().rev().any(|filter| filter.has(hash))
    }

    fn last(&self) -> &Filter {
        self.filters.last().expect("a chain has a filter")
    }

    fn grow(&mut self) -> Result<(), Refused> {
        if !self.scales() {
            return Err(Refused::Full);
        }
        let last = self.last();
        let capacity = last.capacity.checked_mul(self.growth.into()).ok_or(Refused::Size)?;
        let used: u64 = self.filters.iter().map(|filter| filter.bits.len() as u64).sum();
        let next = Filter::new(last.error * TIGHTENING, capacity, MAX_BYTES.saturating_sub(used))?;
        if self.filters.len() == MAX_FILTERS {
            return Err(Refused::Size);
        }
        let filters = std::mem::take(&mut self.filters).into_vec();
        self.filters = filters.into_iter().chain([next]).collect();
        Ok(())
    }

    fn scales(&self) -> bool {
        self.options & options::NO_SCALING == 0
    }

    /// Elements that were new when they were added.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Elements that all filters are made for.
    pub fn capacity(&self) -> u64 {
        self.filters.iter().fold(0, |sum, filter| sum.saturating_add(filter.capacity))
    }

    /// How many filters there are.
    pub fn filters(&self) -> usize {
        self.filters.len()
    }

    /// By how much the next filter is larger; none if there will not be one.
    pub fn growth(&self) -> Option<u32> {
        self.scales().then_some(self.growth)
    }

    /// Bytes that it takes, wherever they are.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.filters.iter().map(|filter| size_of::<Filter>() + filter.bits.len()).sum::<usize>()
    }

    /// A line for each filter: its sizes, as `BF.DEBUG` tells them.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.filters.iter().map(|filter| {
            let Filter { bits, hashes, capacity, items, error, .. } = filter;
            let (bytes, width) = (bits.len(), filter.bits.len() * 8);
            format!(
                "bytes:{bytes} bits:{width} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{items} ratio:{}",
                general(*error)
            )
        })
    }
}

/// By how much a chain grows that nobody has said it of.
pub const DEFAULT_GROWTH: u32 = 2;

impl Default for Bloom {
    /// The least: it stands where another one was.
    fn default() -> Self {
        let filter = Filter {
            bits: Box::default(),
            width: 1,
            capacity: 0,
            items: 0,
            error: 0.5,
            bits_per_item: 1.0,
            hashes: 0,
            log: 0,
        };
        let options = options::NO_ROUND | options::FORCE_64 | options::NO_SCALING;
        Self { filters: Box::new([filter]), items: 0, options, growth: DEFAULT_GROWTH }
    }
}

impl Filter {
    /// An empty one, of at most so many bytes.
    fn new(error: f64, capacity: u64, most: u64) -> Result<Self, Refused> {
        let bits_per_item = -error.ln() / LN_2_SQUARED;
        // The cast saturates: a larger number becomes `u64::MAX`.
        let bytes = ((capacity as f64 * bits_per_item) as u64).div_ceil(64).saturating_mul(8);
        if bytes > most {
            return Err(Refused::Size);
        }
        let bytes = bytes.max(8);
        Ok(Self {
            bits: vec![0; bytes as usize].into(),
            width: bytes * 8,
            capacity,
            items: 0,
            error,
            bits_per_item,
            hashes: (LN_2 * bits_per_item).ceil() as u32,
            log: 0,
        })
    }

    /// Which bits stand for an element.
    fn places(&self, hash: Hash) -> impl Iterator<Item = usize> + use<> {
        let width = self.width;
        (0..u64::from(self.hashes)).map(move |round| (hash.at(round) % width) as usize)
    }

    fn has(&self, hash: Hash) -> bool {
        self.places(hash).all(|at| self.bits[at / 8] & 1 << (at % 8) != 0)
    }

    fn set(&mut self, hash: Hash) {
        for at in self.places(hash) {
            self.bits[at / 8] |= 1 << (at % 8);
        }
        self.items += 1;
    }
}

/// A number between 0 and 1 with six digits, as C's `%g` prints it.
fn general(value: f64) -> String {
    let text = format!("{value:.5e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = digits.replace('.', "").trim_end_matches('0').to_owned();
    if exponent >= -4 {
        let zeros = "0".repeat((-exponent - 1).max(0) as usize);
        return format!("0.{zeros}{digits}");
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{first}{point}{rest}e-{:02}", -exponent)
}
