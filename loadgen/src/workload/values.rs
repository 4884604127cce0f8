//! The value of a key: bytes that follow from the key's number, so that an answer can be checked without remembering what was sent.

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// How long values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Fixed(usize),
    /// Equally often every length from the first to the second, both included; a key's value has always the same.
    Uniform(usize, usize),
}

/// The values of all keys of a run.
#[derive(Clone, Debug)]
pub struct Values {
    sizes: Sizes,
    seed: u64,
    /// Random text that values are cut from.
    pool: Vec<u8>,
}

/// Length of the pool beyond the longest value: where in it a value begins tells keys apart, besides the key in its head.
const SPREAD: usize = 4096;

impl Values {
    /// The values of a run.
    ///
    /// # Errors
    /// When the sizes are the wrong way round.
    pub fn new(sizes: Sizes, seed: u64) -> Result<Self, String> {
        let longest = match sizes {
            Sizes::Fixed(size) => size,
            Sizes::Uniform(least, most) if least <= most => most,
            Sizes::Uniform(least, most) => {
                return Err(format!("value sizes from {least} to {most}: expected the smaller one first"));
            }
        };
        let mut rng = SmallRng::seed_from_u64(seed);
        let pool = (0..longest + SPREAD).map(|_| rng.random_range(b'a'..=b'z')).collect();
        Ok(Self { sizes, seed, pool })
    }

    /// How long the value of a key is.
    #[must_use]
    pub fn size(&self, key: u64) -> usize {
        match self.sizes {
            Sizes::Fixed(size) => size,
            Sizes::Uniform(least, most) => least + (self.mix(key) >> 16) as usize % (most - least + 1),
        }
    }

    /// How long values are, if they are all the same.
    #[must_use]
    pub fn fixed_size(&self) -> Option<usize> {
        match self.sizes {
            Sizes::Fixed(size) => Some(size),
            Sizes::Uniform(..) => None,
        }
    }

    /// Appends the value of a key: its number in hexadecimal, as far as it has room, then text.
    pub fn append(&self, key: u64, out: &mut Vec<u8>) {
        let (head, rest) = self.parts(key);
        out.extend_from_slice(&head[..head.len().min(self.size(key))]);
        out.extend_from_slice(rest);
    }

    /// Whether `bytes` is the value of a key.
    #[must_use]
    pub fn matches(&self, key: u64, bytes: &[u8]) -> bool {
        let (head, rest) = self.parts(key);
        let head = &head[..head.len().min(self.size(key))];
        bytes.strip_prefix(head) == Some(rest)
    }

    fn parts(&self, key: u64) -> ([u8; 16], &[u8]) {
        let mut head = [0; 16];
        for (place, digit) in head.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(key >> (60 - 4 * place)) as usize & 15];
        }
        // A short value keeps the digits that differ.
        head.reverse();
        let start = self.mix(key) as usize % SPREAD;
        (head, &self.pool[start..start + self.size(key).saturating_sub(head.len())])
    }

    /// A number that looks random, from a key (SplitMix64's finaliser).
    fn mix(&self, key: u64) -> u64 {
        let mut bits = key.wrapping_add(self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^ (bits >> 27)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_by_its_key_alone() {
        #[track_caller]
        fn check(sizes: Sizes, expected: std::ops::RangeInclusive<usize>) {
            let values = Values::new(sizes, 3).unwrap();
            let mut lengths = std::collections::BTreeSet::new();
            for key in 0..300 {
                let mut value = Vec::new();
                values.append(key, &mut value);
                assert!(values.matches(key, &value), "{key}");
                assert!(value.len() < 2 || !values.matches(key + 1, &value), "{key}");
                assert!(!values.matches(key, &[&value[..], b"x"].concat()), "{key}");
                lengths.insert(value.len());
            }
            assert_eq!(*lengths.first().unwrap()..=*lengths.last().unwrap(), expected);
        }
        check(Sizes::Fixed(0), 0..=0);
        check(Sizes::Fixed(3), 3..=3);
        check(Sizes::Fixed(1000), 1000..=1000);
        check(Sizes::Uniform(10, 20), 10..=20);
    }

    #[test]
    fn sizes_the_wrong_way_round_are_refused() {
        let refused = Values::new(Sizes::Uniform(2, 1), 0).err();
        assert_eq!(refused.as_deref(), Some("value sizes from 2 to 1: expected the smaller one first"));
    }
}
