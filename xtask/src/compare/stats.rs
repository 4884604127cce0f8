//! Statistics of paired runs.

use crate::load::xorshift;

/// Resamples of the bootstrap: the ends of the interval are stable to the third digit.
const RESAMPLES: usize = 10_000;

/// A ratio of two subjects over all pairs.
pub(crate) struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub(crate) mean: f64,
    /// Its bootstrap 95 % interval.
    pub(crate) interval: (f64, f64),
    /// In how many pairs the first value was the smaller one.
    pub(crate) smaller: usize,
}

/// Ratio `ours / theirs` from values of the same round.
pub(crate) fn paired_ratio(ours: &[f64], theirs: &[f64]) -> Ratio {
    let logs: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| (a / b).ln()).collect();
    // A fixed seed: the same raw data give the same report.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| mean(logs.iter().map(|_| logs[(xorshift(&mut state) % logs.len() as u64) as usize])))
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLES - 1) as f64) as usize].exp();
    Ratio {
        mean: mean(logs.iter().copied()).exp(),
        interval: (at(0.025), at(0.975)),
        smaller: logs.iter().filter(|log| **log < 0.0).count(),
    }
}

/// The middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_ratio_has_no_spread() {
        let ratio = paired_ratio(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]);
        assert!((ratio.mean - 0.5).abs() < 1e-12);
        assert!((ratio.interval.0 - 0.5).abs() < 1e-12 && (ratio.interval.1 - 0.5).abs() < 1e-12);
        assert_eq!(ratio.smaller, 3);
    }

    #[test]
    fn the_interval_holds_the_mean_of_noisy_pairs() {
        let ratio = paired_ratio(&[1.0, 1.3, 0.8, 1.1], &[1.0, 1.0, 1.0, 1.0]);
        assert!(ratio.interval.0 < ratio.mean && ratio.mean < ratio.interval.1);
        assert_eq!(ratio.smaller, 1);
    }

    #[test]
    fn the_median_is_the_middle() {
        let check = |values: &[f64], expected: f64| assert!((median(values) - expected).abs() < 1e-12);
        check(&[3.0, 1.0, 2.0], 2.0);
        check(&[4.0, 1.0, 2.0, 3.0], 2.5);
    }
}
