//! Numbers as C's `%f` and `%g` print them.

/// `%f`: six digits behind the point.
pub(crate) fn fixed(value: f64) -> String {
    if value.is_infinite() { infinite(value) } else { format!("{value:.6}") }
}

/// `%g`: six digits at most, with an exponent where that is shorter.
pub(crate) fn general(value: f64) -> String {
    significant(value, 6)
}

/// `%.*g`.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return infinite(value);
    }
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

fn infinite(value: f64) -> String {
    if value > 0.0 { "inf" } else { "-inf" }.to_owned()
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_c() {
        let check = |value: f64, expected: &str| assert_eq!(general(value), expected);
        check(3.0, "3");
        check(0.1, "0.1");
        check(1.0 / 3.0, "0.333333");
        check(1e6, "1e+06");
        check(123_456.0, "123456");
        check(1e-5, "1e-05");
        check(0.0, "0");
        check(-2.5, "-2.5");
        check(f64::INFINITY, "inf");
        assert_eq!(significant(0.1, 17), "0.10000000000000001");
        assert_eq!((fixed(1.5), fixed(f64::NEG_INFINITY)), ("1.500000".to_owned(), "-inf".to_owned()));
    }
}
