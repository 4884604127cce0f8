//! Numbers as text: integers, doubles, and the extended floats of `INCRBYFLOAT`, read and printed as Redis does: until 7.0, and since 7.2.

mod big;
mod extended;

use std::fmt;
use std::io::Write;
use std::ops::Deref;

pub use extended::Extended;

/// The text of an integer, without an allocation.
#[derive(Clone, Copy)]
pub struct IntText {
    bytes: [u8; 20],
    len: u8,
}

impl IntText {
    /// The decimal text of `value`.
    #[inline]
    pub fn new(value: i64) -> Self {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(value).as_bytes();
        let mut bytes = [0; 20];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, len: text.len() as u8 }
    }
}

impl Deref for IntText {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Reads a signed 64-bit integer as Redis does: the only text accepted is the one that it would print itself, so no
/// `+`, no leading zeros, no `-0`, no spaces.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0; // 19 digits always fit
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// The text of a double, without an allocation.
#[derive(Clone, Copy)]
pub struct FloatText {
    bytes: [u8; 24], // -1.7976931348623157e+308
    len: u8,
}

impl FloatText {
    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; 24];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, len: text.len() as u8 }
    }
}

impl Deref for FloatText {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for IntText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.escape_ascii())
    }
}

impl fmt::Debug for FloatText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.escape_ascii())
    }
}

/// Reads a double as Redis does, by C's `strtod` on the whole text: decimal or hexadecimal, `inf` and `infinity` in
/// any case; no NaN, no spaces, nothing that overflows or vanishes.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    if text.len() < 16
        && let Some(int) = parse_i64(text)
    {
        return Some(int as f64);
    }
    if let Some(value) = extended::parse_hexadecimal(text) {
        return value.to_f64();
    }
    parse_decimal(text)
}

/// [`parse_f64`] of decimal text alone.
pub fn parse_decimal(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    let named = text.contains(['n', 'N']); // inf, nan
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let vanished = value == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (!value.is_nan() && !vanished && (value.is_finite() || named)).then_some(value)
}

/// The text of a double as Redis 7.0 prints it, C's `%.17g`: 17 significant digits without trailing zeros.
///
/// ```
/// use redis_server::protocol::number::format_f64;
///
/// assert_eq!(&*format_f64(3.0), b"3");
/// assert_eq!(&*format_f64(0.1), b"0.10000000000000001");
/// assert_eq!(&*format_f64(1e21), b"1e+21");
/// ```
pub fn format_f64(value: f64) -> FloatText {
    if value.is_infinite() {
        return FloatText::new(if value > 0.0 { b"inf" } else { b"-inf" });
    }
    if value.is_nan() {
        return FloatText::new(b"nan");
    }
    let int = value as i64;
    if value.abs() < 1e17 && (int as f64).to_bits() == value.to_bits() {
        return FloatText::new(&IntText::new(int));
    }
    let (digits, _, exponent) = scientific(format_args!("{:.16e}", value.abs()));
    general(value.is_sign_negative(), &digits, exponent)
}

/// The digits of a number that is written as d.ddde-n, how many they are, and its exponent.
fn scientific(number: fmt::Arguments<'_>) -> ([u8; 17], usize, i32) {
    let mut text = [0u8; 32];
    let mut rest = &mut text[..];
    rest.write_fmt(number).expect("17 digits and an exponent fit");
    let left = rest.len();
    let text = &text[..text.len() - left];
    let at = text.iter().position(|&byte| byte == b'e').expect("Rust prints an exponent");
    let exponent = std::str::from_utf8(&text[at + 1..]).ok().and_then(|exponent| exponent.parse().ok());
    let (mut digits, mut count) = ([0u8; 17], 0);
    for &digit in text[..at].iter().filter(|&&byte| byte != b'.') {
        digits[count] = digit;
        count += 1;
    }
    (digits, count, exponent.expect("Rust prints the exponent as an integer"))
}

/// The text of a double as Redis prints it since 7.2: the fewest digits that read as this double.
///
/// ```
/// use redis_server::protocol::number::format_shortest;
///
/// assert_eq!(&*format_shortest(3.0), b"3");
/// assert_eq!(&*format_shortest(0.1), b"0.1");
/// assert_eq!(&*format_shortest(1e21), b"1e+21");
/// ```
pub fn format_shortest(value: f64) -> FloatText {
    /// Integers up to this are printed as such.
    const MOST: f64 = (i64::MAX / 2) as f64;
    let int = value as i64;
    // Zero has a sign.
    if value != 0.0 && value.abs() <= MOST && int as f64 == value {
        return FloatText::new(&IntText::new(int));
    }
    format_digits(value)
}

/// The fewest digits that read as this double, also for large integers: the form of scores in `DEBUG DIGEST` since 7.2.
pub fn format_digits(value: f64) -> FloatText {
    if value == 0.0 || !value.is_finite() {
        return format_f64(value);
    }
    let (digits, count, exponent) = scientific(format_args!("{:e}", value.abs()));
    shortest(value.is_sign_negative(), &digits[..count], exponent)
}

/// Lays digits out: with an exponent where many zeros would stand before or behind them.
fn shortest(negative: bool, digits: &[u8], exponent: i32) -> FloatText {
    const ZEROS: &[u8] = b"00000000";
    let count = digits.len() as i32;
    // Places behind the last digit.
    let behind = exponent - (count - 1);
    let mut text = [0u8; 32];
    let mut rest = &mut text[..];
    let mut put = |bytes: &[u8]| rest.write_all(bytes).expect("the longest text has 24 bytes");
    if negative {
        put(b"-");
    }
    if behind >= 0 && exponent < count + 7 {
        put(digits);
        put(&ZEROS[..behind as usize]);
    } else if behind < 0 && (behind > -7 || exponent.abs() < 4) {
        let whole = usize::try_from(exponent + 1).unwrap_or(0);
        if whole == 0 {
            put(b"0.");
            put(&ZEROS[..(-exponent - 1) as usize]);
            put(digits);
        } else {
            put(&digits[..whole]);
            put(b".");
            put(&digits[whole..]);
        }
    } else {
        put(&digits[..1]);
        if count > 1 {
            put(b".");
            put(&digits[1..]);
        }
        put(if exponent < 0 { b"e-" } else { b"e+" });
        put(&IntText::new(i64::from(exponent.abs())));
    }
    let left = rest.len();
    FloatText::new(&text[..text.len() - left])
}

/// Lays out 17 digits as C's `%g` does: with an exponent if it is below -4 or not below the precision.
fn general(negative: bool, digits: &[u8; 17], exponent: i32) -> FloatText {
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..significant];
    let mut text = [0u8; 32];
    let mut rest = &mut text[..];
    let mut put = |bytes: &[u8]| rest.write_all(bytes).expect("the longest text has 24 bytes");
    if negative {
        put(b"-");
    }
    match usize::try_from(exponent) {
        Ok(exponent @ 0..17) => {
            let whole = (exponent + 1).min(digits.len());
            put(&digits[..whole]);
            put(&b"00000000000000000"[..exponent + 1 - whole]);
            if whole < digits.len() {
                put(b".");
                put(&digits[whole..]);
            }
        }
        Err(_) if exponent >= -4 => {
            put(b"0.");
            put(&b"000"[..(-1 - exponent) as usize]);
            put(digits);
        }
        Ok(_) | Err(_) => {
            put(&digits[..1]);
            if digits.len() > 1 {
                put(b".");
                put(&digits[1..]);
            }
            put(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.abs() < 10 {
                put(b"0");
            }
            put(&IntText::new(i64::from(exponent.abs())));
        }
    }
    let left = rest.len();
    FloatText::new(&text[..text.len() - left])
}

#[cfg(test)]
mod tests;
