//! Which operation of a mix is next.

use rand::Rng;

use super::Source;

/// Operations by their weights, or one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Sums of the weights up to and with each operation.
    sums: Vec<u64>,
    /// In place of that, which operation comes when, over and over again.
    order: Vec<u32>,
}

impl Mix {
    /// Operations that are chosen in proportion to their weights.
    ///
    /// # Errors
    /// When there is none, or a weight is 0.
    pub fn new(weights: &[u32]) -> Result<Self, String> {
        let mut sum = 0;
        let mut sums = Vec::with_capacity(weights.len());
        for (place, weight) in weights.iter().enumerate() {
            if *weight == 0 {
                return Err(format!("the weight of operation {} is 0, expected at least 1", place + 1));
            }
            sum += u64::from(*weight);
            sums.push(sum);
        }
        if sums.is_empty() {
            Err("no operation is given, expected at least one".to_owned())
        } else {
            Ok(Self { sums, order: Vec::new() })
        }
    }

    /// Operations that come one after the other, over all threads, and then again.
    ///
    /// # Errors
    /// When there is none.
    pub fn in_turn(order: Vec<u32>) -> Result<Self, String> {
        if order.is_empty() {
            Err("no operation is given, expected at least one".to_owned())
        } else {
            Ok(Self { sums: Vec::new(), order })
        }
    }

    /// The next operation's number.
    #[inline]
    pub fn next(&self, source: &mut Source) -> usize {
        let [.., most] = self.sums.as_slice() else {
            return self.next_in_turn(source);
        };
        if self.sums.len() == 1 {
            return 0;
        }
        let drawn = source.rng.random_range(0..*most);
        self.sums.partition_point(|sum| *sum <= drawn)
    }

    fn next_in_turn(&self, source: &mut Source) -> usize {
        let place = source.next_in_sequence() % (self.order.len() as u64).max(1);
        self.order.get(place as usize).map_or(0, |operation| *operation as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_in_turn_over_all_threads() {
        let mix = Mix::in_turn(vec![5, 6, 5, 7]).unwrap();
        let mut sources = [0, 1].map(|thread| Source::new(5, thread, 2));
        let found: Vec<_> = (0..6).map(|number| mix.next(&mut sources[number % 2])).collect();
        assert_eq!(found, [5, 6, 5, 7, 5, 6]);
        assert_eq!(Mix::in_turn(Vec::new()).unwrap_err(), "no operation is given, expected at least one");
    }

    #[test]
    fn operations_come_by_weight() {
        let mix = Mix::new(&[1, 9]).unwrap();
        let mut source = Source::new(5, 0, 1);
        let first = (0..100_000).filter(|_| mix.next(&mut source) == 0).count();
        assert!(first.abs_diff(10_000) < 500, "{first}");
        assert_eq!(Mix::new(&[]).unwrap_err(), "no operation is given, expected at least one");
        assert_eq!(Mix::new(&[1, 0]).unwrap_err(), "the weight of operation 2 is 0, expected at least 1");
    }
}
