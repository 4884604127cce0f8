//! Statistics of paired runs.
//!
//! A machine drifts: what is compared is each round's pair of runs, made one soon after the other. The logarithms of the
//! pairs' ratios are resampled (bootstrap), and the interval is that of their mean. With few pairs the plain bootstrap is too
//! sure of itself: it takes the spread for `(n - 1) / n` of what it is, and knows nothing of Student's tails. So the shares
//! that are cut off at both ends are chosen so that the interval of normal data is as wide as Student's
//! (Hesterberg, "What Teachers Should Know about the Bootstrap", 2015, section 4: the expanded percentile interval).

/// Resamples: the ends of an interval are stable to the third digit.
const RESAMPLES: usize = 10_000;

/// With fewer pairs no interval is wide enough: that all four lie on one side happens by chance 1 in 8 times.
pub const FEWEST_PAIRS: usize = 5;

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
}

impl Ratio {
    /// Whether the interval leaves out 1, and there are pairs enough for it to mean something.
    #[must_use]
    pub fn shows_difference(&self) -> bool {
        self.pairs >= FEWEST_PAIRS && (self.estimate.low > 1.0 || self.estimate.high < 1.0)
    }
}

/// The ratio `a / b` over pairs; nothing without a pair of numbers above 0.
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
    paired_ratio_by(pairs, seed, RESAMPLES)
}

fn paired_ratio_by(pairs: &[(f64, f64)], seed: u64, resamples: usize) -> Option<Ratio> {
    let usable = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0 && a.is_finite() && b.is_finite());
    let logs: Vec<f64> = usable.map(|(a, b)| (a / b).ln()).collect();
    let share = cut_off(logs.len());
    let logs_estimate = bootstrap(&[&logs], share, seed, resamples, |samples| mean(&samples[0]))?;
    Some(Ratio { estimate: logs_estimate.map(f64::exp), pairs: logs.len() })
}

/// The ratio of the geometric means of `a` and `b`, which were not measured in pairs.
///
/// The number of pairs is that of the smaller sample.
#[must_use]
pub fn unpaired_ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Ratio> {
    let logs = |values: &[f64]| -> Vec<f64> {
        values.iter().filter(|value| **value > 0.0 && value.is_finite()).map(|value| value.ln()).collect()
    };
    let (a, b) = (logs(a), logs(b));
    let pairs = a.len().min(b.len());
    let difference = |samples: &[Vec<f64>]| mean(&samples[0]) - mean(&samples[1]);
    let estimate = bootstrap(&[&a, &b], cut_off(pairs), seed, RESAMPLES, difference)?;
    Some(Ratio { estimate: estimate.map(f64::exp), pairs })
}

/// The median and its interval.
#[must_use]
pub fn median_estimate(values: &[f64], seed: u64) -> Option<Estimate> {
    bootstrap(&[values], 0.025, seed, RESAMPLES, |samples| median(&samples[0]))
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

impl Estimate {
    fn map(self, function: fn(f64) -> f64) -> Self {
        Self { value: function(self.value), low: function(self.low), high: function(self.high) }
    }
}

/// Resamples every group by itself and cuts off a share of the statistic's values at each end.
fn bootstrap(
    groups: &[&[f64]],
    share: f64,
    seed: u64,
    resamples: usize,
    statistic: impl Fn(&[Vec<f64>]) -> f64,
) -> Option<Estimate> {
    if groups.iter().any(|group| group.is_empty()) {
        return None;
    }
    let mut samples: Vec<Vec<f64>> = groups.iter().map(|group| group.to_vec()).collect();
    let value = statistic(&samples);
    let mut random = SplitMix(seed);
    let mut found: Vec<f64> = (0..resamples)
        .map(|_| {
            for (sample, group) in samples.iter_mut().zip(groups) {
                sample.fill_with(|| group[random.below(group.len())]);
            }
            statistic(&samples)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let low = ((share * resamples as f64) as usize).min(resamples / 2);
    Some(Estimate { value, low: found[low], high: found[resamples - 1 - low] })
}

/// The share that is cut off at each end, for so many values.
fn cut_off(count: usize) -> f64 {
    if count < 2 {
        return 0.0;
    }
    let freedom = (count - 1) as f64;
    let wider = (count as f64 / freedom).sqrt();
    normal_share_above(student(freedom) * wider)
}

/// Student's 97.5 % quantile.
fn student(freedom: f64) -> f64 {
    // Where the series below is not yet good.
    const FIRST: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    if let Some(value) = FIRST.get(freedom as usize - 1) {
        return *value;
    }
    // Abramowitz and Stegun 26.7.5.
    let z: f64 = 1.959_964;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// The share of a normal distribution that lies above `z`, for `z` from 0 (Abramowitz and Stegun 26.2.17; error below 1e-7).
fn normal_share_above(z: f64) -> f64 {
    const FACTORS: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = FACTORS.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Random numbers that are the same on every machine and in every version, so that a record always gives the same report.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};
    use rand_distr::StandardNormal;

    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found}, expected {expected}");
    }

    /// How often, of 400 simulated comparisons, the interval holds the truth.
    #[track_caller]
    fn check_coverage(rounds: usize, noise: impl Fn(&mut SmallRng) -> f64, expected: std::ops::RangeInclusive<f64>) {
        let truth: f64 = 1.3;
        let mut random = SmallRng::seed_from_u64(11);
        let trials = 400;
        let held = (0..trials).filter(|trial| {
            let pairs: Vec<(f64, f64)> = (0..rounds)
                .map(|_| {
                    // The machine's drift is common to both runs of a pair.
                    let drift = 1000.0 * (0.3 * random.sample::<f64, _>(StandardNormal)).exp();
                    (truth * drift * noise(&mut random).exp(), drift * noise(&mut random).exp())
                })
                .collect();
            // Fewer resamples than usual make the ends less steady, but not wrong on average.
            let ratio = paired_ratio_by(&pairs, *trial, 1000).unwrap().estimate;
            ratio.low <= truth && truth <= ratio.high
        });
        let coverage = held.count() as f64 / f64::from(trials as u32);
        assert!(expected.contains(&coverage), "{rounds} rounds: {coverage}");
    }

    // Within three standard deviations of 95 % over 400 trials (1.1 % each), or what so few pairs can give.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let normal = |random: &mut SmallRng| 0.05 * random.sample::<f64, _>(StandardNormal);
        check_coverage(5, normal, 0.88..=0.98);
        check_coverage(10, normal, 0.917..=0.983);
        check_coverage(20, normal, 0.917..=0.983);
        // Now and then a run is disturbed.
        let disturbed = |random: &mut SmallRng| {
            if random.random_bool(0.1) { -random.random_range(0.0..0.5) } else { normal(random) }
        };
        check_coverage(20, disturbed, 0.90..=0.99);
    }

    #[test]
    fn equal_subjects_show_no_difference() {
        let mut random = SmallRng::seed_from_u64(5);
        let mut noise = || (0.1 * random.sample::<f64, _>(StandardNormal)).exp();
        let shown = (0..200).filter(|trial| {
            let pairs: Vec<(f64, f64)> = (0..10).map(|_| (noise(), noise())).collect();
            paired_ratio_by(&pairs, *trial, 1000).unwrap().shows_difference()
        });
        // 5 % of 200 are 10; three standard deviations are 9.
        assert!((1..=19).contains(&shown.count()));
    }

    #[test]
    fn ratios_are_geometric_means_of_pairs() {
        #[track_caller]
        fn check(pairs: &[(f64, f64)], expected: Option<(f64, f64, f64, usize)>) {
            let found = paired_ratio(pairs, 1);
            assert_eq!(found.is_some(), expected.is_some());
            let (Some(found), Some((value, low, high, pairs))) = (found, expected) else { return };
            close(found.estimate.value, value, 1e-9);
            close(found.estimate.low, low, 1e-9);
            close(found.estimate.high, high, 1e-9);
            assert_eq!(found.pairs, pairs);
        }
        check(&[], None);
        check(&[(0.0, 1.0), (1.0, f64::NAN)], None);
        check(&[(3.0, 2.0)], Some((1.5, 1.5, 1.5, 1)));
        check(&[(1.0, 2.0), (4.0, 8.0), (3.0, 6.0), (0.0, 1.0)], Some((0.5, 0.5, 0.5, 3)));
        check(&[(1.0, 2.0), (2.0, 1.0)], Some((1.0, 0.5, 2.0, 2)));
    }

    #[test]
    fn unpaired_samples_are_compared_by_their_means() {
        let ratio = unpaired_ratio(&[2.0, 2.0, 2.0], &[4.0, 4.0], 1).unwrap();
        assert_eq!((ratio.estimate.value, ratio.estimate.low, ratio.estimate.high, ratio.pairs), (0.5, 0.5, 0.5, 2));
        assert!(unpaired_ratio(&[], &[1.0], 1).is_none());
    }

    #[test]
    fn the_median_is_the_middle() {
        close(median(&[3.0, 1.0, 2.0]), 2.0, 0.0);
        close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5, 0.0);
        assert!(median(&[]).is_nan());
        let estimate = median_estimate(&[5.0, 1.0, 3.0, 2.0, 4.0], 1).unwrap();
        assert_eq!((estimate.value, estimate.low, estimate.high), (3.0, 1.0, 5.0));
    }

    #[test]
    fn quantiles_agree_with_tables() {
        for (freedom, expected) in [(1.0, 12.706), (4.0, 2.776), (5.0, 2.571), (9.0, 2.262), (30.0, 2.042)] {
            close(student(freedom), expected, 0.005);
        }
        for (z, expected) in [(0.0, 0.5), (1.959_964, 0.025), (3.0, 0.001_349_9)] {
            close(normal_share_above(z), expected, 1e-6);
        }
        close(cut_off(1_000_000), 0.025, 1e-5);
    }
}
