//! Student's distribution.

/// The share of the distribution with these degrees of freedom that lies above `t`, which is at least 0: half of the
/// regularised incomplete beta function of `freedom / (freedom + t²)` (Abramowitz and Stegun 26.7.1).
pub(super) fn share_above(t: f64, freedom: f64) -> f64 {
    0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The value above which this share of the distribution lies; at most one half. Without freedom there is none.
pub(super) fn quantile(freedom: f64, share: f64) -> f64 {
    if freedom <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while share_above(high, freedom) > share && high < 1e9 {
        high *= 2.0;
    }
    // Until what a `f64` can tell apart is reached.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if share_above(middle, freedom) > share {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function (Abramowitz and Stegun 26.5).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side of the mean; the other side is its mirror.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction 26.5.8, evaluated by Lentz' method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const MOST_TERMS: usize = 300;
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut result) = (1.0, d);
    for term in 1..MOST_TERMS {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for factor in [even, odd] {
            d = 1.0 / not_zero(1.0 + factor * d);
            c = not_zero(1.0 + factor / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function for numbers above 0: Stirling's series (6.1.41), where it is exact enough.
fn ln_gamma(x: f64) -> f64 {
    if x < 12.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_tables() {
        #[track_caller]
        fn check(freedom: f64, share: f64, expected: f64) {
            let found = quantile(freedom, share);
            assert!((found / expected - 1.0).abs() < 1e-5, "{freedom} {share}: {found}, expected {expected}");
            assert!((share_above(expected, freedom) / share - 1.0).abs() < 1e-4);
        }
        // Abramowitz and Stegun, table 26.10.
        for (freedom, half, few) in [
            (1.0, 12.706_20, 63.656_74),
            (2.0, 4.302_653, 9.924_843),
            (4.0, 2.776_445, 4.604_095),
            (5.0, 2.570_582, 4.032_143),
            (9.0, 2.262_157, 3.249_836),
            (30.0, 2.042_272, 2.749_996),
            (120.0, 1.979_930, 2.617_421),
        ] {
            check(freedom, 0.025, half);
            check(freedom, 0.005, few);
        }
        assert_eq!((share_above(0.0, 3.0), quantile(0.0, 0.025)), (0.5, f64::INFINITY));
        // Far out the density with four degrees of freedom is 12 / t^5.
        assert!((share_above(1e6, 4.0) / 3e-24 - 1.0).abs() < 1e-3, "{}", share_above(1e6, 4.0));
    }
}
