//! Many verdicts at a time.

/// Holm's step-down method: with improbabilities that are adjusted so, the chance of one wrong verdict or more in the whole
/// family is as small as that of a single one ("A Simple Sequentially Rejective Multiple Test Procedure", 1979).
#[must_use]
pub fn holm(improbabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..improbabilities.len()).collect();
    order.sort_by(|a, b| improbabilities[*a].total_cmp(&improbabilities[*b]));
    let mut adjusted = vec![1.0; improbabilities.len()];
    let mut most: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        most = most.max(improbabilities[index] * (improbabilities.len() - rank) as f64).min(1.0);
        adjusted[index] = most;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_multiplied_most() {
        #[track_caller]
        fn check(improbabilities: &[f64], expected: &[f64]) {
            let found = holm(improbabilities);
            let same = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(same, "{found:?}");
        }
        check(&[], &[]);
        check(&[0.04], &[0.04]);
        // R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        check(&[0.9, 0.8], &[1.0, 1.0]);
    }
}
