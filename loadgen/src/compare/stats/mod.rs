//! Statistics of paired runs: one estimator for every figure that compares.
//!
//! A machine drifts: what is compared is each round's pair of runs, made one soon after the other, in an order that is drawn. The
//! estimator is the geometric mean of the pairs' ratios, its interval Student's, of their logarithms, corrected for skewness. It
//! covers what it says from few pairs on, which a resampling of the pairs does not: of 5 pairs that covers 85 % where it says 95.
//!
//! Student's interval alone is exact for normal data, but covers 88 to 94 % where delays hit only one of the subjects, and Johnson's
//! shift ("Modified t Tests and Confidence Intervals for Asymmetrical Populations", 1978) adds less than one percent to that.
//! Hall's transformation ("On the Removal of Skewness by Transformation", 1992) adds enough, but trusts a skewness that it has
//! from few values: where there is none, a difference is found less often, and of 5 normal pairs, what it calls one in a thousand
//! comes four times as often, which is what families of verdicts ask for. So it is given a part of that skewness, and the interval
//! reaches as far as either of both does, each at a level of its own. `coverage` simulates it, for 5 to 30 pairs that are
//! normal, skewed to one side or to both, or drift: it covers 93 to 97 %.

#[cfg(test)]
mod coverage;
mod holm;
mod student;

pub use holm::holm;

/// With fewer pairs no interval is narrow enough to tell anything but factors: Student's quantile is 3.2 with four.
pub const FEWEST_PAIRS: usize = 5;

/// The share of intervals that do not hold the truth, and of families of verdicts with a wrong one among them.
pub const ERROR: f64 = 0.05;

/// How much of the skewness that was estimated is corrected, and the errors of Hall's and of Student's interval with which what
/// reaches as far as either has [`ERROR`]. Found by simulation: of 5 to 30 pairs 93.3 to 96.8 % are covered in every case of
/// `coverage`, what is called improbable among normal ones is at no level more frequent than that, and 10 pairs still find 5 %
/// more than nine times in ten.
const CORRECTED: f64 = 0.7;
const HALL_ERROR: f64 = 0.039;
const STUDENT_ERROR: f64 = 0.09;

/// A value and the interval that holds the true one with 95 % confidence.
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
    /// The ratio and its interval.
    pub estimate: Estimate,
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
    /// Its skewness: that of the values, by the root of their number.
    skewness: f64,
}

impl Ratio {
    fn new(log: Mean, pairs: usize) -> Self {
        let [low, high] = log.interval().map(f64::exp);
        Self { estimate: Estimate { value: log.value.exp(), low, high }, pairs, log }
    }

    /// How improbable a ratio as far from `limit` would be if that were the true one, to either side: below 5 % where the
    /// interval leaves `limit` out.
    #[must_use]
    pub fn improbability_of(&self, limit: f64) -> f64 {
        self.log.improbability_of(limit.ln())
    }

    /// The same for every true ratio that is at least `margin` (a share, 0.05) away from 1: below 5 % where the whole interval
    /// lies between `1 / (1 + margin)` and `1 + margin`.
    #[must_use]
    pub fn improbability_of_any_beyond(&self, margin: f64) -> f64 {
        let edge = margin.ln_1p();
        if self.log.value.abs() >= edge {
            return 1.0;
        }
        self.improbability_of(edge.exp()).max(self.improbability_of((-edge).exp()))
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
        let cubes: f64 = values.iter().map(|each| (each - value).powi(3)).sum();
        // The values' third moment without bias (Cramér), by the square of their number; two values tell nothing of it.
        let third = cubes / ((count - 1.0) * (count - 2.0) * count);
        let skewness = if count > 2.0 && error > 0.0 { third / error.powi(3) } else { 0.0 };
        Some(Self { value, error, freedom: count - 1.0, skewness })
    }

    /// The difference to a mean of other values, by Welch's test.
    fn minus(&self, other: &Self) -> Self {
        let [own, others] = [self, other].map(|mean| mean.error.powi(2));
        let freedom = (own + others).powi(2) / (own.powi(2) / self.freedom + others.powi(2) / other.freedom);
        let fewest = self.freedom.min(other.freedom);
        let error = (own + others).sqrt();
        // Third moments add up as variances do, with their signs.
        let [own_third, others_third] = [self, other].map(|mean| mean.skewness * mean.error.powi(3));
        Self {
            value: self.value - other.value,
            error,
            freedom: if freedom.is_finite() { freedom.max(fewest) } else { fewest },
            skewness: if error > 0.0 { (own_third - others_third) / error.powi(3) } else { 0.0 },
        }
    }

    /// The values that are not as improbable as [`ERROR`]. One value tells nothing of its spread.
    fn interval(&self) -> [f64; 2] {
        if self.freedom <= 0.0 {
            return [f64::NEG_INFINITY, f64::INFINITY];
        }
        let [hall, student] = [HALL_ERROR, STUDENT_ERROR].map(|error| student::quantile(self.freedom, error / 2.0));
        let (above, below) = (self.skewed(hall).max(student), self.skewed(-hall).min(-student));
        [self.value - self.error * above, self.value - self.error * below]
    }

    /// How improbable a mean as far from `truth` would be if that were the true one, to either side.
    fn improbability_of(&self, truth: f64) -> f64 {
        let distance = self.value - truth;
        // The rest of rounding is no distance.
        if self.freedom <= 0.0 || distance.abs() < 1e-12 {
            return 1.0;
        }
        if self.error == 0.0 {
            return 0.0;
        }
        let t = distance / self.error;
        let beyond = |t: f64, error: f64| 2.0 * student::share_above(t.abs(), self.freedom) * ERROR / error;
        beyond(self.unskewed(t), HALL_ERROR).max(beyond(t, STUDENT_ERROR)).min(1.0)
    }

    /// Student's `t` as it were if the values were not skewed: Hall's transformation, a cubic that rises everywhere.
    fn unskewed(&self, t: f64) -> f64 {
        let a = CORRECTED * self.skewness;
        t + a * t.powi(2) / 3.0 + a.powi(2) * t.powi(3) / 27.0 + a / 6.0
    }

    /// Undoes [`unskewed`](Self::unskewed).
    fn skewed(&self, t: f64) -> f64 {
        let a = CORRECTED * self.skewness;
        // Of next to no skewness the division would leave nothing but rounding.
        if a.abs() < 1e-9 { t } else { 3.0 / a * ((1.0 + a * (t - a / 6.0)).cbrt() - 1.0) }
    }
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

/// The median, and the narrowest interval between two of the values that holds the true one in at least 93 % of all cases,
/// whatever the values' distribution; with four values or fewer their whole range, which holds it less often.
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
            close(found.estimate.value, value, 1e-9);
            close(found.estimate.low, low, 1e-4);
            assert!(found.estimate.high == high || (found.estimate.high / high - 1.0).abs() < 1e-4, "{found:?}");
            assert_eq!(found.pairs, pairs);
        }
        check(&[], None);
        check(&[(0.0, 1.0), (1.0, f64::NAN)], None);
        check(&[(3.0, 2.0)], Some((1.5, 0.0, f64::INFINITY, 1)));
        check(&[(1.0, 2.0), (4.0, 8.0), (3.0, 6.0), (0.0, 1.0)], Some((0.5, 0.5, 0.5, 3)));
        // ln 2 and -ln 2: the standard error is ln 2, Student's quantile of 1.95 % with one degree of freedom 16.303.
        let end = 2_f64.powf(16.303_158);
        check(&[(1.0, 2.0), (2.0, 1.0)], Some((1.0, 1.0 / end, end, 2)));
        // No skewness: the standard error is ln 2 / sqrt(3), the quantile with two degrees of freedom 4.9144.
        let end = 2_f64.powf(4.914_364 / 3_f64.sqrt());
        check(&[(1.0, 2.0), (1.0, 1.0), (2.0, 1.0)], Some((1.0, 1.0 / end, end, 3)));
        // By hand, the standard error 0.031450, the skewness 0.18430, quantiles of four degrees of freedom 3.024252 and 2.226100:
        // Hall's interval of the logarithm is 0.079188 to 0.275617, Student's 0.093514 to 0.233537.
        let pairs = [1.1, 1.2, 1.3, 1.2, 1.1].map(|value| (value, 1.0));
        check(&pairs, Some((1.177_655_441, 1.082_408, 1.317_344, 5)));
        // The standard error 0.084301, the skewness 0.99681: -0.028960 to 0.879692, and -0.054648 to 0.320677.
        let pairs = [1.05, 1.05, 1.06, 1.04, 1.6].map(|value| (value, 1.0));
        check(&pairs, Some((1.142_266_808, 0.946_819, 2.410_158, 5)));
    }

    #[test]
    fn an_improbability_agrees_with_the_interval() {
        let ratio = paired_ratio(&[1.1, 1.2, 1.3, 1.2, 1.1].map(|value| (value, 1.0))).unwrap();
        let skewed = paired_ratio(&[1.05, 1.05, 1.06, 1.04, 1.6].map(|value| (value, 1.0))).unwrap();
        for ratio in [ratio, skewed] {
            close(ratio.improbability_of(ratio.estimate.low), ERROR, 1e-6);
            close(ratio.improbability_of(ratio.estimate.high), ERROR, 1e-6);
            close(ratio.improbability_of(ratio.estimate.value), 1.0, 1e-6);
        }
        assert!(ratio.improbability_of(1.0) < 0.01 && ratio.improbability_of_any_beyond(0.05) == 1.0);
        let same = paired_ratio(&[0.99, 1.01, 1.0, 0.995, 1.005].map(|value| (value, 1.0))).unwrap();
        assert!(same.improbability_of(1.0) > 0.9 && same.improbability_of_any_beyond(0.05) < 0.001);
        // The interval is not as wide to both sides.
        close(same.improbability_of_any_beyond(1.0 / same.estimate.low - 1.0), ERROR, 1e-6);
        // One pair says nothing; pairs without spread say all.
        let one = paired_ratio(&[(3.0, 2.0)]).unwrap();
        close(one.improbability_of(1.0), 1.0, 0.0);
        let exact = paired_ratio(&[(3.0, 2.0); 5]).unwrap();
        assert_eq!((exact.improbability_of(1.0), exact.improbability_of(1.5)), (0.0, 1.0));
    }

    #[test]
    fn a_transformation_is_undone() {
        for skewness in [-0.9, -0.1, 0.0, 1e-12, 0.3, 1.0] {
            let mean = Mean { value: 1.0, error: 1.0, freedom: 4.0, skewness };
            for t in [-4.0, -1.0, 0.0, 0.5, 3.0, 9.0] {
                close(mean.skewed(mean.unskewed(t)), t, 1e-5);
            }
        }
    }

    #[test]
    fn unpaired_samples_are_compared_by_their_means() {
        let ratio = unpaired_ratio(&[2.0, 2.0, 2.0], &[4.0, 4.0]).unwrap();
        assert_eq!((ratio.estimate.value, ratio.estimate.low, ratio.estimate.high, ratio.pairs), (0.5, 0.5, 0.5, 2));
        assert!(unpaired_ratio(&[], &[1.0]).is_none());
        // By hand: errors 0.037417 and 0.029155, together 0.047434 with 7.549 degrees of freedom, third moments 1.2e-5 and -6e-6,
        // together the skewness 0.16865; quantiles 2.4936 and 1.9438.
        let logs = [0.1, 0.2, 0.3, 0.2, 0.1_f64].map(f64::exp);
        let other = [0.0, 0.05, 0.1, 0.1, -0.05_f64].map(f64::exp);
        let found = unpaired_ratio(&logs, &other).unwrap();
        close(found.estimate.value.ln(), 0.14, 1e-9);
        close(found.estimate.low.ln(), 0.032_519, 1e-6);
        close(found.estimate.high.ln(), 0.273_445, 1e-6);
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
