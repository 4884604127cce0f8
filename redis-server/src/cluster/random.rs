//! Chance that can be had again: xoshiro256++ (<https://prng.di.unimi.it/>).

/// A stream of numbers by chance. Not for secrets.
#[derive(Clone, Debug)]
pub(super) struct Random([u64; 4]);

impl Random {
    pub(super) fn new(seed: [u64; 4]) -> Self {
        // All zeros would stay zeros.
        Self(if seed == [0; 4] { [1, 2, 3, 4] } else { seed })
    }

    pub(super) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
