//! The order of subjects within a round: a machine's drift, and what one run leaves behind for the next, must hit all alike.

use serde::{Deserialize, Serialize};

/// How the order changes from round to round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A B C, B C A, C A B, and then the same backwards: every subject comes first, and last, and after every other one,
    /// equally often.
    #[default]
    Rotate,
    /// A B C, C B A.
    Reverse,
    /// Always A B C.
    Fixed,
}

impl Order {
    /// The subjects' numbers in the order of a round.
    #[must_use]
    pub fn of_round(self, round: usize, subjects: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..subjects).collect();
        let backwards = match self {
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
                assert_eq!(order.of_round(round, subjects), *expected, "{order:?} round {round}");
            }
        }
        check(Order::Rotate, 3, &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0], &[0, 2, 1], &[1, 0, 2], &[0, 1, 2]]);
        check(Order::Rotate, 2, &[&[0, 1], &[1, 0], &[0, 1], &[1, 0]]);
        check(Order::Rotate, 1, &[&[0], &[0]]);
        check(Order::Rotate, 0, &[&[], &[]]);
        check(Order::Reverse, 3, &[&[0, 1, 2], &[2, 1, 0], &[0, 1, 2]]);
        check(Order::Fixed, 2, &[&[0, 1], &[0, 1]]);
    }
}
