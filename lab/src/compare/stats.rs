//! The generator's statistics, of columns of figures.

use loadgen::compare::stats;
pub(crate) use loadgen::compare::stats::median;

/// A ratio of two subjects over all pairs; not numbers where there are none.
pub(crate) struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub(crate) mean: f64,
    /// Its 95 % interval, by itself.
    pub(crate) interval: (f64, f64),
}

/// Ratio `ours / theirs` from values of the same round.
pub(crate) fn paired_ratio(ours: &[f64], theirs: &[f64]) -> Ratio {
    let pairs: Vec<(f64, f64)> = ours.iter().copied().zip(theirs.iter().copied()).collect();
    let (mean, interval) = stats::paired_ratio(&pairs).map_or((f64::NAN, (f64::NAN, f64::NAN)), |found| {
        let found = found.among(1);
        (found.value, (found.low, found.high))
    });
    Ratio { mean, interval }
}

/// `12,345`.
pub(crate) fn thousands(count: usize) -> String {
    match count {
        ..1000 => count.to_string(),
        _ => format!("{},{:03}", thousands(count / 1000), count % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_pairs() {
        let ratio = paired_ratio(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]);
        assert!((ratio.mean - 0.5).abs() < 1e-12 && (ratio.interval.0 - 0.5).abs() < 1e-12);
        assert!(paired_ratio(&[f64::NAN], &[f64::NAN]).mean.is_nan());
    }
}
