//! HyperLogLog: about how many different elements were seen, in 12 kB at most.
//!
//! A HyperLogLog is a string with Redis' own content, so clients can copy it like any string. Its header has a magic,
//! the encoding, three zeros, and the cached count in eight bytes. The highest bit of the count marks it as stale. Then
//! follow 16384 registers of six bits, either packed (*dense*) or run-length encoded (*sparse*, see `sparse`).

mod sparse;
#[cfg(test)]
mod tests;

pub use sparse::describe;

/// Number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of the hash that choose a register.
const INDEX_BITS: u32 = 14;
/// The other bits, whose zeros are counted.
const COUNT_BITS: usize = 64 - INDEX_BITS as usize;

const MAGIC: &[u8] = b"HYLL";
const HEADER: usize = 16;
const ENCODING: usize = 4;
const CACHE: usize = 8;
const STALE: u8 = 0x80;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// Length of the dense form.
pub const DENSE_LEN: usize = HEADER + REGISTERS * 6 / 8;

/// The runs of a sparse form do not make up its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How the registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits each.
    Dense,
    /// Runs.
    Sparse,
}

/// The encoding of a string, if it is a HyperLogLog by its header and length.
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
        return None;
    }
    match bytes[ENCODING] {
        DENSE if bytes.len() == DENSE_LEN => Some(Encoding::Dense),
        SPARSE => Some(Encoding::Sparse),
        _ => None,
    }
}

/// An empty one.
pub fn empty() -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[ENCODING] = SPARSE;
    sparse::push_zeros(&mut bytes, REGISTERS);
    bytes
}

/// Adds an element to either form, which becomes dense when it would be longer than `max_sparse` bytes; whether a
/// register has changed.
///
/// # Errors
/// The sparse form is corrupt.
pub fn add(bytes: &mut Vec<u8>, element: &[u8], max_sparse: usize) -> Result<bool, Corrupt> {
    let (index, count) = place(element);
    raise(bytes, index, count, max_sparse)
}

/// Adds an element to a dense form; whether a register has changed.
pub fn add_dense(bytes: &mut [u8], element: &[u8]) -> bool {
    let (index, count) = place(element);
    raise_dense(bytes, index, count)
}

/// Raises a register to `count`; whether it was lower.
///
/// # Errors
/// The sparse form is corrupt.
pub fn raise(bytes: &mut Vec<u8>, index: usize, count: u8, max_sparse: usize) -> Result<bool, Corrupt> {
    if bytes[ENCODING] == DENSE {
        return Ok(raise_dense(bytes, index, count));
    }
    match sparse::raise(bytes, index, count, max_sparse)? {
        Some(changed) => Ok(changed),
        None => {
            make_dense(bytes)?;
            Ok(raise_dense(bytes, index, count))
        }
    }
}

fn raise_dense(bytes: &mut [u8], index: usize, count: u8) -> bool {
    let registers = &mut bytes[HEADER..];
    let (byte, shift) = (index * 6 / 8, index * 6 % 8);
    let next = registers.get(byte + 1).copied().unwrap_or(0);
    let both = u16::from_le_bytes([registers[byte], next]);
    if count <= (both >> shift) as u8 & 63 {
        return false;
    }
    let [low, high] = (both & !(63 << shift) | u16::from(count) << shift).to_le_bytes();
    registers[byte] = low;
    // The last register ends with its byte.
    if let Some(next) = registers.get_mut(byte + 1) {
        *next = high;
    }
    true
}

/// Makes the form dense.
///
/// # Errors
/// The sparse form is corrupt.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<(), Corrupt> {
    if bytes[ENCODING] == DENSE {
        return Ok(());
    }
    let mut dense = vec![0; DENSE_LEN];
    dense[..HEADER].copy_from_slice(&bytes[..HEADER]);
    dense[ENCODING] = DENSE;
    sparse::for_each(&bytes[HEADER..], |index, count| {
        raise_dense(&mut dense, index, count);
    })?;
    *bytes = dense;
    Ok(())
}

/// Raises each of `registers` to that of a HyperLogLog.
///
/// # Errors
/// The sparse form is corrupt.
pub fn merge(registers: &mut [u8; REGISTERS], bytes: &[u8]) -> Result<(), Corrupt> {
    let mut raise = |index: usize, count: u8| registers[index] = registers[index].max(count);
    match bytes[ENCODING] {
        DENSE => {
            dense_registers(bytes).enumerate().for_each(|(index, count)| raise(index, count));
            Ok(())
        }
        _ => sparse::for_each(&bytes[HEADER..], raise),
    }
}

/// The registers of a dense form.
pub fn dense_registers(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes[HEADER..].chunks_exact(3).flat_map(|three| {
        let bits = u32::from(three[0]) | u32::from(three[1]) << 8 | u32::from(three[2]) << 16;
        [bits, bits >> 6, bits >> 12, bits >> 18].map(|bits| bits as u8 & 63)
    })
}

/// The count that was computed last, if nothing has changed since.
pub fn cached(bytes: &[u8]) -> Option<u64> {
    let cache: [u8; 8] = bytes[CACHE..HEADER].try_into().ok()?;
    (cache[7] & STALE == 0).then_some(u64::from_le_bytes(cache))
}

/// Notes the count; `None`: it is not known.
pub fn set_cached(bytes: &mut [u8], count: Option<u64>) {
    match count {
        Some(count) => bytes[CACHE..HEADER].copy_from_slice(&count.to_le_bytes()),
        None => bytes[HEADER - 1] |= STALE,
    }
}

/// About how many elements were added.
///
/// # Errors
/// The sparse form is corrupt.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut histogram = [0u32; 64];
    match bytes[ENCODING] {
        DENSE => dense_registers(bytes).for_each(|count| histogram[usize::from(count)] += 1),
        _ => sparse::histogram(&bytes[HEADER..], &mut histogram)?,
    }
    Ok(estimate(&histogram))
}

/// [`count`] of merged registers.
pub fn count_registers(registers: &[u8; REGISTERS]) -> u64 {
    let mut histogram = [0u32; 64];
    registers.iter().for_each(|&count| histogram[usize::from(count) & 63] += 1);
    estimate(&histogram)
}

/// The estimator of Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284,
/// algorithm 6.
fn estimate(histogram: &[u32; 64]) -> u64 {
    /// 0.5 / ln 2
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let m = REGISTERS as f64;
    let mut z = m * tau((m - f64::from(histogram[COUNT_BITS + 1])) / m);
    for &count in histogram[1..=COUNT_BITS].iter().rev() {
        z += f64::from(count);
        z *= 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    let count = (ALPHA * m * m / z).round();
    // Registers that no element sets can make it infinite: C's `llroundl` gives the smallest integer then.
    if count < i64::MAX as f64 { count as u64 } else { i64::MIN as u64 }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

/// The register of an element, and the number of its zeros plus one.
fn place(element: &[u8]) -> (usize, u8) {
    /// Redis' own.
    const SEED: u64 = 0xadc8_3b19;
    let hash = murmur64a(element, SEED);
    // The bit behind the last one ends the zeros in any case.
    let rest = hash >> INDEX_BITS | 1 << COUNT_BITS;
    (hash as usize & (REGISTERS - 1), rest.trailing_zeros() as u8 + 1)
}

/// `MurmurHash2`, its 64-bit variant A.
fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        hash ^= tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}
