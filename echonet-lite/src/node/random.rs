//! Random numbers for delays: seeded, so that a simulation repeats itself.

use core::time::Duration;

/// xorshift64* (Vigna, 2016): good enough to spread answers in time, and nothing else depends on it.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        // Zero would stay zero for ever; neighbouring seeds (serial numbers) must not give neighbouring delays.
        let mixed = (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Anything from zero to `most`.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let scaled = (u128::from(self.next()) * (u128::from(micros) + 1)) >> 64;
        Duration::from_micros(scaled as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_spread_over_the_whole_range() {
        let most = Duration::from_micros(9);
        for seed in [0, 1, 2, u64::MAX, 0x9E37_79B9_7F4A_7C15] {
            let mut random = Random::new(seed);
            let mut seen = [0; 10];
            for _ in 0..10_000 {
                seen[random.up_to(most).as_micros() as usize] += 1;
            }
            assert!(seen.iter().all(|&count| (700..1300).contains(&count)), "{seed}: {seen:?}");
        }
        assert_eq!(Random::new(7).up_to(Duration::ZERO), Duration::ZERO);
    }
}
