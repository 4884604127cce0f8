//! Which keys are asked for.

use rand::Rng;
use rand_distr::{Distribution as _, Zipf};

use super::Source;

/// How often each key of a space is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// 0, 1, 2, … and again from 0.
    Sequential,
    /// All equally often.
    Uniform,
    /// Key `k` in proportion to `1 / (k + 1) ^ exponent`.
    Zipf {
        /// 0 is uniform; 0.99 is YCSB's.
        exponent: f64,
    },
    /// A share of the requests goes to a share of the keys.
    HotSet {
        /// The share of the keys that is hot, 0 to 1.
        keys: f64,
        /// The share of the requests that goes to hot keys, 0 to 1.
        requests: f64,
    },
}

/// A space of numbered keys, and how they are chosen.
#[derive(Clone, Debug)]
pub struct Keys {
    space: u64,
    choice: Choice,
}

/// A distribution, prepared for a space.
#[derive(Clone, Debug)]
enum Choice {
    Sequential,
    Uniform,
    Zipf(Zipf<f64>),
    HotSet { hot: u64, requests: f64 },
}

impl Keys {
    /// Keys 0 to `space` - 1.
    ///
    /// # Errors
    /// When the space is empty, or the distribution's numbers are out of their range; the text names them.
    pub fn new(space: u64, distribution: Distribution) -> Result<Self, String> {
        if space == 0 {
            return Err("the key space is 0, expected at least 1 key".to_owned());
        }
        let choice = match distribution {
            Distribution::Sequential => Choice::Sequential,
            Distribution::Uniform => Choice::Uniform,
            Distribution::Zipf { exponent } => Zipf::new(space as f64, exponent)
                .map(Choice::Zipf)
                .map_err(|_| format!("the Zipf exponent is {exponent}, expected a number from 0"))?,
            Distribution::HotSet { keys, requests } => {
                for (name, share) in [("keys", keys), ("requests", requests)] {
                    if !(0.0..=1.0).contains(&share) {
                        return Err(format!("the hot set's share of {name} is {share}, expected 0 to 1"));
                    }
                }
                Choice::HotSet { hot: ((space as f64 * keys) as u64).clamp(1, space), requests }
            }
        };
        Ok(Self { space, choice })
    }

    /// How many keys there are.
    #[must_use]
    pub fn space(&self) -> u64 {
        self.space
    }

    /// The next key's number.
    pub fn next(&self, source: &mut Source) -> u64 {
        match &self.choice {
            Choice::Sequential => source.next_in_sequence() % self.space,
            Choice::Uniform => source.rng.random_range(0..self.space),
            Choice::Zipf(zipf) => (zipf.sample(&mut source.rng) as u64).clamp(1, self.space) - 1,
            Choice::HotSet { hot, requests } => {
                if *hot == self.space || source.rng.random_bool(*requests) {
                    source.rng.random_range(0..*hot)
                } else {
                    source.rng.random_range(*hot..self.space)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(space: u64, distribution: Distribution) -> Vec<u64> {
        let keys = Keys::new(space, distribution).unwrap();
        let mut source = Source::new(1, 0, 1);
        let mut counts = vec![0; space as usize];
        for _ in 0..100_000 {
            counts[keys.next(&mut source) as usize] += 1;
        }
        counts
    }

    #[test]
    fn keys_are_chosen_as_the_distribution_says() {
        #[track_caller]
        fn check(space: u64, distribution: Distribution, expected: &[(usize, u64)]) {
            let counts = counts(space, distribution);
            for &(key, expected) in expected {
                // Five standard deviations of a Poisson count, and no less than exact for the sequence.
                let tolerance = if distribution == Distribution::Sequential { 0 } else { 5 * expected.isqrt() };
                assert!(counts[key].abs_diff(expected) <= tolerance, "{distribution:?} key {key}: {}", counts[key]);
            }
        }
        check(10, Distribution::Sequential, &[(0, 10_000), (9, 10_000)]);
        check(10, Distribution::Uniform, &[(0, 10_000), (9, 10_000)]);
        // 1 + 1/2 + 1/3 + 1/4 = 25/12.
        check(4, Distribution::Zipf { exponent: 1.0 }, &[(0, 48_000), (1, 24_000), (2, 16_000), (3, 12_000)]);
        check(100, Distribution::HotSet { keys: 0.1, requests: 0.9 }, &[(0, 9_000), (9, 9_000), (10, 111), (99, 111)]);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        #[track_caller]
        fn check(space: u64, distribution: Distribution, expected: &str) {
            assert_eq!(Keys::new(space, distribution).err().as_deref(), Some(expected));
        }
        check(0, Distribution::Uniform, "the key space is 0, expected at least 1 key");
        check(9, Distribution::Zipf { exponent: -1.0 }, "the Zipf exponent is -1, expected a number from 0");
        let hot = Distribution::HotSet { keys: 1.5, requests: 0.9 };
        check(9, hot, "the hot set's share of keys is 1.5, expected 0 to 1");
    }
}
