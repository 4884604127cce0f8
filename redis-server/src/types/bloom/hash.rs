//! MurmurHash64A, twice: the second time with the first result as its seed.

const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hashes that determine an element's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash {
    first: u64,
    second: u64,
}

impl Hash {
    /// The number for a round.
    pub(super) fn at(self, round: u64) -> u64 {
        self.first.wrapping_add(round.wrapping_mul(self.second))
    }
}

pub(super) fn hash(element: &[u8]) -> Hash {
    let first = murmur(element, MULTIPLIER);
    Hash { first, second: murmur(element, first) }
}

fn murmur(bytes: &[u8], seed: u64) -> u64 {
    let mix = |hash: u64| hash.wrapping_mul(MULTIPLIER);
    let mut hash = seed ^ mix(bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = mix(u64::from_le_bytes(*word));
        hash = mix(hash ^ mix(word ^ word >> SHIFT));
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = mix(hash ^ u64::from_le_bytes(word));
    }
    hash = mix(hash ^ hash >> SHIFT);
    hash ^ hash >> SHIFT
}
