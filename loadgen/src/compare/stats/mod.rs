//! Statistics of paired runs: one estimator for every figure that compares.
//!
//! A machine drifts, so each round's pair of runs is compared: one run soon after the other, in a drawn order. The estimator is the
//! geometric mean of the pairs' ratios. Its interval is Student's, for the mean of their logarithms.
//!
//! Delays hit one subject at a time, so the logarithms are skewed. With n − 1 degrees of freedom up to two thirds of families of 85
//! verdicts are then wrong where 5 % is said, because far tails decide them. Hall's transformation of skewed means is flat in these
//! tails: a larger effect can get a smaller significance. Fewer degrees of freedom, `(n - 1) / (2 + n / 12)`, keep the 5 % for
//! exponential delays of one side, and the significance rises with the effect. `simulation` shows error and power, and
//! `docs/performance/method.md` has its tables.

#[cfg(test)]
mod simulation;
mod student;

/// With fewer pairs no interval is narrow enough to tell anything but factors: Student's quantile is 7.6 with four.
pub const FEWEST_PAIRS: usize = 5;

/// The share of families of which at least one interval does not hold the truth.
pub const ERROR: f64 = 0.05;

/// A value and the interval that holds the true one with 95 % confidence, alone or with all others of its family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// A ratio as geometric mean over pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Over how many pairs.
    pub pairs: usize,
    log: Mean,
}

/// A mean as Student saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mean {
    value: f64,
    /// Its standard error.
    error: f64,
    /// The degrees of freedom of that.
    freedom: f64,
}

impl Ratio {
    fn new(log: Mean, pairs: usize) -> Self {
        Self { value: log.value.exp(), pairs, log }
    }

    /// The ratio with its interval as one of a family of so many: all intervals of a family hold their true ratios in 95 % of all
    /// cases (Bonferroni).
    #[must_use]
    pub fn among(&self, family: usize) -> Estimate {
        let [low, high] = self.log.interval(ERROR / family.max(1) as f64).map(f64::exp);
        Estimate { value: self.value, low, high }
    }
}

impl Mean {
    /// Nothing without a value.
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)?;
        let squares: f64 = values.iter().map(|each| (each - value).powi(2)).sum();
        // The rest of rounding equal values is no spread.
        let spread = if squares.sqrt() <= value.abs() * f64::EPSILON * 4.0 * count { 0.0 } else { squares };
        let error = (spread / (count - 1.0) / count).sqrt();
        Some(Self { value, error, freedom: freedom(count) })
    }

    /// The difference to a mean of other values, by Welch's test.
    fn minus(&self, other: &Self) -> Self {
        let [own, others] = [self, other].map(|mean| mean.error.powi(2));
        let freedom = (own + others).powi(2) / (own.powi(2) / self.freedom + others.powi(2) / other.freedom);
        let fewest = self.freedom.min(other.freedom);
        Self {
            value: self.value - other.value,
            error: (own + others).sqrt(),
            freedom: if freedom.is_finite() { freedom.max(fewest) } else { fewest },
        }
    }

    /// The values that are not as improbable as this. One value tells nothing of its spread.
    fn interval(&self, error: f64) -> [f64; 2] {
        if self.freedom <= 0.0 {
            return [f64::NEG_INFINITY, f64::INFINITY];
        }
        let reach = self.error * student::quantile(self.freedom, error / 2.0);
        [self.value - reach, self.value + reach]
    }
}

/// The degrees of freedom of a mean of so many values. Found by simulation: of 5 to 30 values with exponential delays of one side,
/// at most 5.3 % of families of 1 to 85 have a wrong verdict.
fn freedom(count: f64) -> f64 {
    (count - 1.0) / (2.0 + count / 12.0)
}

/// The ratio `a / b` over pairs; nothing without a pair of numbers above 0.
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let usable = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0 && a.is_finite() && b.is_finite());
    let logs: Vec<f64> = usable.map(|(a, b)| (a / b).ln()).collect();
    Some(Ratio::new(Mean::of(&logs)?, logs.len()))
}

/// The ratio of the geometric means of `a` and `b`, which were not measured in pairs.
///
/// The number of pairs is that of the smaller sample.
#[must_use]
pub fn unpaired_ratio(a: &[f64], b: &[f64]) -> Option<Ratio> {
    let logs = |values: &[f64]| -> Vec<f64> {
        values.iter().filter(|value| **value > 0.0 && value.is_finite()).map(|value| value.ln()).collect()
    };
    let (a, b) = (logs(a), logs(b));
    Some(Ratio::new(Mean::of(&a)?.minus(&Mean::of(&b)?), a.len().min(b.len())))
}

/// The median, and the narrowest interval between two of the values that holds the true median in at least 93 % of all
/// cases, for any distribution. With four values or fewer, the interval is their whole range, which holds the true
/// median less often.
#[must_use]
pub fn median_estimate(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // How often fewer than so many of all values lie on one side: a binomial distribution of one half.
    let mut chance = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut outside, mut left_out) = (chance, 0);
    while left_out + 1 < count / 2 {
        chance *= (count - left_out) as f64 / (left_out + 1) as f64;
        if 2.0 * (outside + chance) > 0.07 {
            break;
        }
        outside += chance;
        left_out += 1;
    }
    Some(Estimate { value: median(values), low: *sorted.get(left_out)?, high: sorted[count - 1 - left_out] })
}

/// The middle value; that of two middle ones their mean.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found}, expected {expected}");
    }

    #[test]
    fn ratios_are_geometric_means_of_pairs() {
        #[track_caller]
        fn check(pairs: &[(f64, f64)], expected: Option<(f64, f64, f64, usize)>) {
            let found = paired_ratio(pairs);
            assert_eq!(found.is_some(), expected.is_some());
            let (Some(found), Some((value, low, high, pairs))) = (found, expected) else { return };
            let estimate = found.among(1);
            close(found.value, value, 1e-9);
            close(estimate.low, low, 1e-4);
            assert!(estimate.high == high || (estimate.high / high - 1.0).abs() < 1e-4, "{found:?} {estimate:?}");
            assert_eq!((found.pairs, estimate.value), (pairs, found.value));
        }
        check(&[], None);
        check(&[(0.0, 1.0), (1.0, f64::NAN)], None);
        check(&[(3.0, 2.0)], Some((1.5, 0.0, f64::INFINITY, 1)));
        check(&[(1.0, 2.0), (4.0, 8.0), (3.0, 6.0), (0.0, 1.0)], Some((0.5, 0.5, 0.5, 3)));
        // By hand: the mean 0.163525, its standard error 0.031450, 1.655172 degrees of freedom, whose quantile of 2.5 % is 5.286879.
        let pairs = [1.1, 1.2, 1.3, 1.2, 1.1].map(|value| (value, 1.0));
        check(&pairs, Some((1.177_655_441, 0.997_256, 1.390_689, 5)));
    }

    #[test]
    fn a_larger_family_has_wider_intervals_about_the_same_ratio() {
        let ratio = paired_ratio(&[1.1, 1.2, 1.3, 1.2, 1.1].map(|value| (value, 1.0))).unwrap();
        let intervals: Vec<Estimate> = [1, 10, 40, 85].map(|family| ratio.among(family)).into();
        for pair in intervals.windows(2) {
            assert!(pair[1].low < pair[0].low && pair[0].high < pair[1].high, "{intervals:?}");
        }
        // One pair says nothing; pairs without spread say all.
        let one = paired_ratio(&[(3.0, 2.0)]).unwrap().among(1);
        assert_eq!((one.low, one.high), (0.0, f64::INFINITY));
        let exact = paired_ratio(&[(3.0, 2.0); 5]).unwrap().among(85);
        assert_eq!((exact.low, exact.high), (exact.value, exact.value));
    }

    /// Hall's cubic, used before, was flat far from the mean.
    #[test]
    fn a_larger_effect_is_found_in_every_family_in_which_a_smaller_one_is() {
        let noise = [0.0, 0.01, 0.3, 0.02, 0.01, 0.0, 0.015, 0.2, 0.01, 0.0];
        let largest = |effect: f64| {
            let pairs: Vec<(f64, f64)> = noise.iter().map(|noise| ((effect + noise).exp(), 1.0)).collect();
            let ratio = paired_ratio(&pairs).unwrap();
            (0..30).take_while(|power| ratio.among(1 << power).low > 1.0).count()
        };
        let found: Vec<usize> = (1..40).map(|step| largest(f64::from(step) * 0.05)).collect();
        assert!(found.is_sorted() && found[0] < 2 && *found.last().unwrap() > 10, "{found:?}");
    }

    #[test]
    fn unpaired_samples_are_compared_by_their_means() {
        let ratio = unpaired_ratio(&[2.0, 2.0, 2.0], &[4.0, 4.0]).unwrap();
        let estimate = ratio.among(1);
        assert_eq!((ratio.value, estimate.low, estimate.high, ratio.pairs), (0.5, 0.5, 0.5, 2));
        assert!(unpaired_ratio(&[], &[1.0]).is_none());
        // By hand: errors 0.037417 and 0.029155, together 0.047434 with 3.1237 degrees of freedom, whose quantile is 3.1123.
        let logs = [0.1, 0.2, 0.3, 0.2, 0.1_f64].map(f64::exp);
        let other = [0.0, 0.05, 0.1, 0.1, -0.05_f64].map(f64::exp);
        let found = unpaired_ratio(&logs, &other).unwrap();
        let estimate = found.among(1);
        close(found.value.ln(), 0.14, 1e-9);
        close(estimate.low.ln(), -0.007_631, 1e-5);
        close(estimate.high.ln(), 0.287_631, 1e-5);
    }

    #[test]
    fn the_median_is_the_middle() {
        close(median(&[3.0, 1.0, 2.0]), 2.0, 0.0);
        close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5, 0.0);
        assert!(median(&[]).is_nan() && median_estimate(&[]).is_none());
        #[track_caller]
        fn check(count: usize, low: f64, high: f64) {
            let values: Vec<f64> = (1..=count).rev().map(|value| value as f64).collect();
            let found = median_estimate(&values).unwrap();
            assert_eq!((found.value, found.low, found.high), ((count + 1) as f64 / 2.0, low, high), "{count}");
        }
        check(1, 1.0, 1.0);
        check(5, 1.0, 5.0);
        // Tables of the sign test: of 9 values one may lie outside, of 20 five.
        check(8, 1.0, 8.0);
        check(9, 2.0, 8.0);
        check(20, 6.0, 15.0);
        check(30, 10.0, 21.0);
    }
}
