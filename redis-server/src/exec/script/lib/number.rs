//! Numbers as C reads, prints and converts them.

/// The text of a double by C's `%.{precision}g`.
pub(super) fn general(value: f64, precision: usize) -> Vec<u8> {
    if value.is_nan() {
        return if value.is_sign_negative() { b"-nan".to_vec() } else { b"nan".to_vec() };
    }
    if value.is_infinite() {
        return if value < 0.0 { b"-inf".to_vec() } else { b"inf".to_vec() };
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust prints an exponent");
    let exponent: i32 = exponent.parse().expect("Rust prints the exponent as an integer");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs()).into_bytes();
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).into_bytes()
}

/// A double without its fraction, as x86-64 converts it: a value that does not fit is the smallest integer.
pub(super) fn to_i64(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// The same for unsigned integers, where compilers split the range in two.
pub(super) fn to_u64(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value >= HALF { to_i64(value - HALF) as u64 ^ 1 << 63 } else { to_i64(value) as u64 }
}

/// Reads the longest start of `text` that C's `strtod` takes for a number: the number, and how long its text is.
pub(super) fn parse_prefix(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let body = &text[sign..];
    let (value, len) = named(body).or_else(|| hexadecimal(body)).or_else(|| decimal(body))?;
    Some((if text.first() == Some(&b'-') { -value } else { value }, sign + len))
}

fn named(text: &[u8]) -> Option<(f64, usize)> {
    let starts = |name: &[u8]| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    if starts(b"infinity") {
        return Some((f64::INFINITY, 8));
    }
    if starts(b"inf") {
        return Some((f64::INFINITY, 3));
    }
    if !starts(b"nan") {
        return None;
    }
    // nan(letters)
    let inner = text[3..].strip_prefix(b"(").unwrap_or_default();
    let letters = inner.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let closed = inner.get(letters) == Some(&b')');
    Some((f64::NAN, if closed { 3 + letters + 2 } else { 3 }))
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let digits = |at: usize| text[at.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut end = whole;
    let mut fraction = 0;
    if text.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, end))
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    let (mut mantissa, mut exponent, mut seen, mut fraction, mut at) = (0u64, 0i64, false, false, 0);
    while let Some(&byte) = digits.get(at) {
        if byte == b'.' && !fraction {
            fraction = true;
        } else if let Some(digit) = char::from(byte).to_digit(16) {
            seen = true;
            if mantissa >> 60 == 0 {
                mantissa = mantissa << 4 | u64::from(digit);
                exponent -= if fraction { 4 } else { 0 };
            } else {
                // Too far behind the point to be a digit of a double; it decides only how a half is rounded.
                mantissa |= u64::from(digit != 0);
                exponent += if fraction { 0 } else { 4 };
            }
        } else {
            break;
        }
        at += 1;
    }
    if !seen {
        return None;
    }
    if matches!(digits.get(at), Some(b'p' | b'P')) {
        let negative = digits.get(at + 1) == Some(&b'-');
        let sign = usize::from(matches!(digits.get(at + 1), Some(b'+' | b'-')));
        let power: Vec<u8> =
            digits[(at + 1 + sign).min(digits.len())..].iter().copied().take_while(u8::is_ascii_digit).collect();
        if !power.is_empty() {
            let value = power.iter().fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(1 << 40));
            exponent += if negative { -value } else { value };
            at += 1 + sign + power.len();
        }
    }
    Some((scaled(mantissa, exponent), 2 + at))
}

/// `mantissa * 2^exponent`, in steps that neither overflow nor vanish too early.
fn scaled(mantissa: u64, exponent: i64) -> f64 {
    let mut value = mantissa as f64;
    let mut left = exponent.clamp(-2200, 2200) as i32;
    while left != 0 {
        let step = left.clamp(-512, 512);
        value *= f64::from(2.0f32).powi(step);
        left -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_that_of_c() {
        let check = |value: f64, expected: &str| assert_eq!(String::from_utf8_lossy(&general(value, 14)), expected);
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.5, "1.5");
        check(100.0, "100");
        check(1e14, "1e+14");
        check(99_999_999_999_999.0, "99999999999999");
        check(0.1 + 0.2, "0.3");
        check(1e-4, "0.0001");
        check(1e-5, "1e-05");
        check(1.0 / 3.0, "0.33333333333333");
        check(f64::INFINITY, "inf");
        check(1e300, "1e+300");
    }

    #[test]
    fn the_longest_number_is_read() {
        let check = |text: &str, expected: Option<(f64, usize)>| {
            assert_eq!(parse_prefix(text.as_bytes()), expected, "{text}");
        };
        check("12,", Some((12.0, 2)));
        check("-1.5e3x", Some((-1500.0, 6)));
        check("1e", Some((1.0, 1)));
        check("1.", Some((1.0, 2)));
        check(".5", Some((0.5, 2)));
        check("0x1F", Some((31.0, 4)));
        check("0x.8p1", Some((1.0, 6)));
        check("0x", Some((0.0, 1)));
        check("-infinityx", Some((f64::NEG_INFINITY, 9)));
        check("-", None);
        check("e5", None);
        check("1e999", Some((f64::INFINITY, 5)));
    }
}
