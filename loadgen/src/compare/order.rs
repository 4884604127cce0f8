//! The order of subjects within a round: a machine's drift, and what one run leaves behind for the next, must hit all alike.

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

/// How the order changes from round to round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Drawn for every round of every scenario: whatever the machine does, it does to no subject in particular.
    #[default]
    Random,
    /// A B C, B C A, C A B, and then the same backwards: every subject comes first, and last, and after every other one, equally often. An
    /// event every so many rounds may hit the same one each time.
    Rotate,
    /// A B C, C B A.
    Reverse,
    /// Always A B C.
    Fixed,
}

impl Order {
    /// The subjects' numbers in the order of a round; what is drawn follows from the seed.
    #[must_use]
    pub fn of_round(self, round: usize, subjects: usize, seed: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..subjects).collect();
        let backwards = match self {
            Self::Random => {
                order.shuffle(&mut SmallRng::seed_from_u64(seed ^ (round as u64) << 32));
                false
            }
            Self::Fixed => false,
            Self::Reverse => !round.is_multiple_of(2),
            Self::Rotate if subjects == 0 => false,
            Self::Rotate => {
                order.rotate_left(round % subjects);
                !(round / subjects).is_multiple_of(2)
            }
        };
        // Two subjects that rotate change places already.
        if backwards && !(self == Self::Rotate && subjects == 2) {
            order.reverse();
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_their_order() {
        #[track_caller]
        fn check(order: Order, subjects: usize, expected: &[&[usize]]) {
            for (round, expected) in expected.iter().enumerate() {
                assert_eq!(order.of_round(round, subjects, 1), *expected, "{order:?} round {round}");
            }
        }
        check(Order::Rotate, 3, &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0], &[0, 2, 1], &[1, 0, 2], &[0, 1, 2]]);
        check(Order::Rotate, 2, &[&[0, 1], &[1, 0], &[0, 1], &[1, 0]]);
        check(Order::Rotate, 1, &[&[0], &[0]]);
        check(Order::Rotate, 0, &[&[], &[]]);
        check(Order::Reverse, 3, &[&[0, 1, 2], &[2, 1, 0], &[0, 1, 2]]);
        check(Order::Fixed, 2, &[&[0, 1], &[0, 1]]);
        check(Order::Random, 0, &[&[], &[]]);
    }

    #[test]
    fn random_orders_are_balanced_and_follow_the_seed() {
        let mut firsts = [0; 3];
        for round in 0..300 {
            let order = Order::Random.of_round(round, 3, 1);
            assert_eq!(order, Order::Random.of_round(round, 3, 1), "the same seed, the same order");
            firsts[order[0]] += 1;
            let mut sorted = order;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert!(firsts.iter().all(|first| (70..130).contains(first)), "{firsts:?}");
        let of = |seed| (0..20).map(|round| Order::Random.of_round(round, 2, seed)).collect::<Vec<_>>();
        assert_ne!(of(1), of(2));
    }
}
