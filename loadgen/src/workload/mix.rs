//! Which operation of a mix is next.

use rand::Rng;

use super::Source;

/// Operations by their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Sums of the weights up to and with each operation.
    sums: Vec<u64>,
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
        if sums.is_empty() { Err("no operation is given, expected at least one".to_owned()) } else { Ok(Self { sums }) }
    }

    /// The next operation's number.
    #[inline]
    pub fn next(&self, source: &mut Source) -> usize {
        let [.., most] = self.sums.as_slice() else {
            return 0;
        };
        if self.sums.len() == 1 {
            return 0;
        }
        let drawn = source.rng.random_range(0..*most);
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
