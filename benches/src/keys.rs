//! The keys of microbenchmarks. `benches/peers/micro-rust` includes this file, too.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// How often each of the keys is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Popularity {
    /// All alike.
    Uniform,
    /// As in Zipf's law with exponent 1: the first of a million keys has 7 % of all requests.
    Zipf,
}

/// `count` numbers below `keys`, drawn from a seed.
///
/// # Panics
/// Without keys.
pub fn draws(popularity: Popularity, keys: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut rng = SmallRng::seed_from_u64(seed);
    match popularity {
        Popularity::Uniform => (0..count).map(|_| rng.random_range(0..keys)).collect(),
        Popularity::Zipf => {
            let zipf = Zipf::new(keys as f64, 1.0).expect("there are keys");
            (0..count).map(|_| (zipf.sample(&mut rng) as usize).clamp(1, keys) - 1).collect()
        }
    }
}

/// `count` different keys of `length` bytes, in the form that applications use: a prefix and a number.
///
/// # Panics
/// When the numbers do not fit into the length.
pub fn keys(count: usize, length: usize) -> Vec<Box<[u8]>> {
    let digits = length.min(8);
    assert!(count <= 36_usize.pow(digits as u32), "{count} keys do not fit into {length} bytes");
    (0..count)
        .map(|number| {
            let mut key = vec![b'k'; length];
            let mut rest = number;
            for place in key[length - digits..].iter_mut().rev() {
                *place = b"0123456789abcdefghijklmnopqrstuvwxyz"[rest % 36];
                rest /= 36;
            }
            key.into_boxed_slice()
        })
        .collect()
}
