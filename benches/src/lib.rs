//! The code that the microbenchmarks in `micro/` share: their keys, and the servers' request loops.

mod keys;
pub mod loops;

pub use keys::{Popularity, draws, keys};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_have_their_length() {
        for length in [3, 16, 64] {
            let keys = keys(1000, length);
            assert!(keys.iter().all(|key| key.len() == length));
            assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), 1000);
        }
    }

    #[test]
    fn draws_follow_their_popularity() {
        let share_of_first = |popularity| {
            let draws = draws(popularity, 1000, 100_000, 7);
            assert!(draws.iter().all(|draw| *draw < 1000));
            draws.iter().filter(|draw| **draw == 0).count() as f64 / 100_000.0
        };
        assert!((0.0005..0.002).contains(&share_of_first(Popularity::Uniform)));
        // 1 / H(1000) = 0.134
        assert!((0.12..0.15).contains(&share_of_first(Popularity::Zipf)));
    }
}
