//! The parts of a filter chain for dumps: the parameters of each filter, and its bits.

use super::{Bloom, Filter, MAX_BYTES, MAX_FILTERS, MAX_HASHES, options};

/// Most bits that `BF.SCANDUMP` answers at once, in bytes: 10 MiB, as in RedisBloom.
pub const CHUNK: usize = 10 << 20;

/// The numbers of a chain, as RedisBloom writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements that were new when they were added.
    pub items: u64,
    /// Which form it has.
    pub options: u32,
    /// By how much the next filter is larger.
    pub growth: u32,
}

/// The numbers of a filter, as RedisBloom writes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterShape {
    /// Elements that it is made for.
    pub capacity: u64,
    /// Elements that were new when they were added to it.
    pub items: u64,
    /// Its error rate.
    pub error: f64,
    /// Bits for each element.
    pub bits_per_item: f64,
    /// Bits that an element sets.
    pub hashes: u32,
    /// Bits that elements are spread over.
    pub width: u64,
    /// The power of two that this is, in the form that rounds; else 0.
    pub log: u8,
}

/// Bytes of the head of a dump, and of what it says of a filter.
const HEAD: usize = 8 + 4 + 4 + 4;
const LINK: usize = 8 + 8 + 8 + 8 + 8 + 4 + 8 + 1;

impl Bloom {
    /// The chain's numbers.
    pub fn shape(&self) -> Shape {
        Shape { items: self.items, options: self.options, growth: self.growth }
    }

    /// Each filter's numbers and bits.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = (FilterShape, &[u8])> {
        self.filters.iter().map(|filter| {
            let Filter { capacity, items, error, bits_per_item, hashes, width, log, .. } = *filter;
            (FilterShape { capacity, items, error, bits_per_item, hashes, width, log }, &*filter.bits)
        })
    }

    /// A chain of these parts; none if they are those of no filter, or of the form with hashes of 32 bits, which nobody makes any
    /// more.
    pub fn of_parts(shape: Shape, parts: Vec<(FilterShape, Box<[u8]>)>) -> Option<Self> {
        let Shape { items, options, growth } = shape;
        let is_known = options & !options::KNOWN == 0 && options & options::FORCE_64 != 0;
        let bytes: u64 = parts.iter().map(|(_, bits)| bits.len() as u64).sum();
        if !is_known || growth == 0 || parts.is_empty() || parts.len() > MAX_FILTERS || bytes > MAX_BYTES {
            return None;
        }
        // As RedisBloom checks in the head of a dump: the chain has the elements of its filters, and no others.
        if parts.iter().try_fold(0, |sum: u64, (shape, _)| sum.checked_add(shape.items)) != Some(items) {
            return None;
        }
        let filters = parts.into_iter().map(|(shape, bits)| filter(options, shape, bits)).collect::<Option<_>>()?;
        Some(Self { filters, items, options, growth })
    }

    /// The head of a dump: all numbers, without bits.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + LINK * self.filters.len());
        out.extend_from_slice(&self.items.to_le_bytes());
        out.extend_from_slice(&(self.filters.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.options.to_le_bytes());
        out.extend_from_slice(&self.growth.to_le_bytes());
        for (shape, bits) in self.parts() {
            out.extend_from_slice(&(bits.len() as u64).to_le_bytes());
            out.extend_from_slice(&shape.width.to_le_bytes());
            out.extend_from_slice(&shape.items.to_le_bytes());
            out.extend_from_slice(&shape.error.to_le_bytes());
            out.extend_from_slice(&shape.bits_per_item.to_le_bytes());
            out.extend_from_slice(&shape.hashes.to_le_bytes());
            out.extend_from_slice(&shape.capacity.to_le_bytes());
            out.push(shape.log);
        }
        out
    }

    /// The chain without a bit that a dump's head describes.
    pub fn of_header(bytes: &[u8]) -> Option<Self> {
        let (head, links) = bytes.split_first_chunk::<HEAD>()?;
        let (links, rest) = links.as_chunks::<LINK>();
        let mut head = Numbers(head);
        let (items, count, options, growth) = (head.long(), head.word(), head.word(), head.word());
        if !rest.is_empty() || links.len() != count as usize || links.len() > MAX_FILTERS {
            return None;
        }
        let mut left = MAX_BYTES;
        let mut parts = Vec::with_capacity(links.len());
        for link in links {
            let mut link = Numbers(link);
            let (bytes, width, items) = (link.long(), link.long(), link.long());
            let (error, bits_per_item) = (f64::from_bits(link.long()), f64::from_bits(link.long()));
            let (hashes, capacity, log) = (link.word(), link.long(), link.byte());
            left = left.checked_sub(bytes)?;
            let shape = FilterShape { capacity, items, error, bits_per_item, hashes, width, log };
            parts.push((shape, vec![0; bytes as usize].into()));
        }
        Self::of_parts(Shape { items, options, growth }, parts)
    }

    /// Bits from a place in all of them on, as many as there are of one filter up to [`CHUNK`] bytes; none behind the last.
    pub fn chunk(&self, mut at: u64) -> Option<&[u8]> {
        for filter in &self.filters {
            let len = filter.bits.len() as u64;
            if at < len {
                let rest = &filter.bits[at as usize..];
                return Some(&rest[..rest.len().min(CHUNK)]);
            }
            at -= len;
        }
        None
    }

    /// Puts bits in their place; false if there is no such place in one filter.
    pub fn put_chunk(&mut self, mut at: u64, chunk: &[u8]) -> bool {
        for filter in &mut self.filters {
            let len = filter.bits.len() as u64;
            if at < len {
                let place = filter.bits[at as usize..].get_mut(..chunk.len());
                return place.map(|place| place.copy_from_slice(chunk)).is_some();
            }
            at -= len;
        }
        false
    }
}

fn filter(options: u32, shape: FilterShape, bits: Box<[u8]>) -> Option<Filter> {
    let FilterShape { capacity, items, error, bits_per_item, hashes, width, log } = shape;
    let is_rounded = options & options::NO_ROUND == 0;
    let fits = width > 0
        && width.div_ceil(8) <= bits.len() as u64
        && (!is_rounded || 1_u64.checked_shl(log.into()) == Some(width));
    let is_sane =
        capacity > 0 && error > 0.0 && error < 1.0 && bits_per_item > 0.0 && hashes > 0 && hashes <= MAX_HASHES;
    (fits && is_sane).then_some(Filter { bits, width, capacity, items, error, bits_per_item, hashes, log })
}

/// Little-endian numbers, one behind the other, of bytes that have them all.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        self.0.split_off(..N).and_then(|bytes| bytes.try_into().ok()).expect("the length was checked")
    }

    fn byte(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
