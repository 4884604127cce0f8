//! Floats with a mantissa of 64 bits, x86's 80-bit "long double", in which Redis adds for `INCRBYFLOAT` and
//! `HINCRBYFLOAT`.

use std::cmp::Ordering;
use std::ops::Add;

use super::big::Big;

/// A text as long as this is refused; it is Redis' own limit.
const MAX_TEXT: usize = 5 * 1024;

/// Fraction digits that are printed.
const FRACTION_DIGITS: u32 = 17;
const FRACTION: u128 = 10u128.pow(FRACTION_DIGITS);

/// The largest exponent of a finite number, and the least one of a number that is not denormal.
const MAX_EXPONENT: i32 = 16_383 - 63;
const MIN_EXPONENT: i32 = -16_382 - 63;

/// A binary float with 64 bits of precision; never NaN.
///
/// ```
/// use redis_server::protocol::number::Extended;
///
/// let sum = Extended::parse(b"10.5").unwrap() + Extended::parse(b"0.1").unwrap();
/// assert_eq!(sum.to_string(), "10.6");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extended {
    negative: bool,
    /// The highest bit is set, except in zero.
    mantissa: u64,
    /// The value is `mantissa * 2^exponent`.
    exponent: i32,
    finite: bool,
}

impl Extended {
    /// Nothing.
    pub const ZERO: Self = Self { negative: false, mantissa: 0, exponent: 0, finite: true };

    /// Reads what Redis reads, by C's `strtold` on the whole text: decimal or hexadecimal, `inf`, `infinity`; no NaN,
    /// no spaces, nothing that overflows or vanishes.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= MAX_TEXT {
            return None;
        }
        if let Some(value) = parse_hexadecimal(text) {
            return value.to_extended();
        }
        let (negative, unsigned) = split_sign(text);
        if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::infinity(negative));
        }
        parse_decimal(negative, unsigned)
    }

    /// Whether this is not an infinity.
    pub fn is_finite(self) -> bool {
        self.finite
    }

    /// The number with the other sign.
    pub fn negated(self) -> Self {
        Self { negative: !self.negative && self.mantissa != 0, ..self }
    }

    /// Which of two numbers is the greater one.
    pub fn compare(self, other: Self) -> Ordering {
        let sign = |number: Self| match (number.mantissa, number.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        // The highest bit of every mantissa is set.
        let size = (self.exponent, self.mantissa).cmp(&(other.exponent, other.mantissa));
        let size = if self.negative { size.reverse() } else { size };
        sign(self).cmp(&sign(other)).then(if self.mantissa == 0 { Ordering::Equal } else { size })
    }

    fn infinity(negative: bool) -> Self {
        Self { negative, mantissa: 1 << 63, exponent: MAX_EXPONENT + 1, finite: false }
    }

    /// The nearest to `value * 2^exponent`, or a little more if `more`; of two equally near ones the even one.
    fn round(negative: bool, value: u128, exponent: i32, more: bool) -> Self {
        if value == 0 {
            return Self::ZERO;
        }
        let zeros = value.leading_zeros();
        let value = value << zeros;
        let mut exponent = exponent.saturating_sub(zeros as i32).saturating_add(64);
        let (mut mantissa, rest) = ((value >> 64) as u64, value as u64);
        let half = 1 << 63;
        if rest > half || (rest == half && (more || mantissa & 1 == 1)) {
            mantissa = mantissa.wrapping_add(1);
            if mantissa == 0 {
                (mantissa, exponent) = (half, exponent.saturating_add(1));
            }
        }
        match exponent {
            // The precision that denormal numbers lack is far below the digits that are printed.
            ..-16_508 => Self { negative, ..Self::ZERO },
            -16_508..=MAX_EXPONENT => Self { negative, mantissa, exponent, finite: true },
            _ => Self::infinity(negative),
        }
    }
}

impl Add for Extended {
    type Output = Self;

    /// The sum, rounded to the nearest. It is not finite if a summand or the sum is not.
    fn add(self, other: Self) -> Self {
        if !self.finite || !other.finite {
            return Self::infinity(self.negative);
        }
        if self.mantissa == 0 || other.mantissa == 0 {
            return if self.mantissa == 0 { other } else { self };
        }
        let (large, small) = if (self.exponent, self.mantissa) >= (other.exponent, other.mantissa) {
            (self, other)
        } else {
            (other, self)
        };
        let distance = (large.exponent - small.exponent).min(127) as u32;
        let wide = |mantissa| u128::from(mantissa) << 63;
        let shifted = wide(small.mantissa) >> distance;
        let lost = shifted << distance != wide(small.mantissa);
        let sum = if large.negative == small.negative {
            wide(large.mantissa) + shifted
        } else {
            wide(large.mantissa) - shifted - u128::from(lost)
        };
        Self::round(large.negative, sum, large.exponent - 63, lost)
    }
}

const _: () = assert!(MIN_EXPONENT - 63 == -16_508);

/// The text that Redis prints: 17 fraction digits, less the zeros at the end.
impl std::fmt::Display for Extended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = if !self.finite {
            "inf".to_owned()
        } else if self.exponent > 0 {
            let mut whole = Big::new(self.mantissa.into());
            whole.shift_left(self.exponent.unsigned_abs());
            whole.into_decimal()
        } else {
            fraction_text(scaled(self.mantissa, self.exponent.unsigned_abs()))
        };
        let sign = if self.negative && text != "0" { "-" } else { "" };
        write!(f, "{sign}{text}")
    }
}

/// `mantissa / 2^shift` in units of the last printed digit, rounded to the nearest, half to even.
fn scaled(mantissa: u64, shift: u32) -> u128 {
    let value = u128::from(mantissa) * FRACTION;
    let Some(whole) = value.checked_shr(shift) else { return 0 };
    let rest = value - (whole << shift);
    let half = if shift == 0 { u128::MAX } else { 1 << (shift - 1) };
    if rest > half || (rest == half && whole & 1 == 1) { whole + 1 } else { whole }
}

fn fraction_text(units: u128) -> String {
    let (whole, fraction) = (units / FRACTION, units % FRACTION);
    if fraction == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{fraction:0digits$}", digits = FRACTION_DIGITS as usize);
    text.trim_end_matches('0').to_owned()
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// A mantissa's digits before and after the point, and the exponent behind `mark` (0 if there is none).
fn split_float(text: &[u8], mark: u8) -> Option<(&[u8], &[u8], i32)> {
    let (mantissa, exponent) = match text.iter().position(|byte| byte.eq_ignore_ascii_case(&mark)) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    (whole.len() + fraction.len() > 0).then_some((whole, fraction, exponent))
}

/// An exponent, cut to a million: no text that is read has as many digits to make up for it.
fn parse_exponent(text: &[u8]) -> Option<i32> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let exponent =
        digits.iter().fold(0, |exponent: i32, digit| (exponent * 10 + i32::from(digit - b'0')).min(1_000_000));
    Some(if negative { -exponent } else { exponent })
}

fn parse_decimal(negative: bool, text: &[u8]) -> Option<Extended> {
    let (whole, fraction, exponent) = split_float(text, b'e')?;
    if !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let zero = |digit: &&u8| **digit == b'0';
    let zeros = whole.iter().chain(fraction).take_while(zero).count();
    let digits = || whole.iter().chain(fraction).skip(zeros).copied();
    let count = whole.len() + fraction.len() - zeros;
    if count == 0 {
        return Some(Extended { negative, ..Extended::ZERO });
    }
    let exponent = exponent - fraction.len() as i32;
    // The decimal exponents of the largest and the least number are 4932 and -4951.
    let magnitude = exponent + count as i32;
    if !(-4960..=4940).contains(&magnitude) {
        return None;
    }
    let value = if count <= 19 && exponent.abs() <= 18 {
        let mantissa = digits().fold(0u128, |value, digit| value * 10 + u128::from(digit - b'0'));
        let power = 10u128.pow(exponent.unsigned_abs());
        if exponent >= 0 {
            Extended::round(negative, mantissa * power, 0, false)
        } else {
            let zeros = mantissa.leading_zeros();
            let mantissa = mantissa << zeros;
            Extended::round(negative, mantissa / power, -(zeros as i32), mantissa % power != 0)
        }
    } else {
        parse_long_decimal(negative, Big::from_decimal(digits()), exponent)
    };
    (value.finite && value.mantissa != 0).then_some(value)
}

/// `mantissa * 10^exponent`, whatever their size.
fn parse_long_decimal(negative: bool, mut mantissa: Big, exponent: i32) -> Extended {
    if exponent >= 0 {
        mantissa.multiply_by_power_of_ten(exponent.unsigned_abs());
        let (top, shift, more) = mantissa.top();
        return Extended::round(negative, top, shift, more);
    }
    let mut divisor = Big::new(1);
    divisor.multiply_by_power_of_ten(exponent.unsigned_abs());
    // One of them is shifted so that the quotient has 100 bits or 101: enough to round, and few enough to hold.
    let shift = (divisor.bits() + 100).saturating_sub(mantissa.bits());
    mantissa.shift_left(shift);
    let excess = mantissa.bits() - divisor.bits() - 100;
    divisor.shift_left(excess);
    let (quotient, more) = mantissa.quotient(&divisor);
    Extended::round(negative, quotient, excess as i32 - shift as i32, more)
}

/// The value of a hexadecimal text: `value * 2^exponent`, or a little more.
pub(super) struct Hexadecimal {
    negative: bool,
    value: u128,
    exponent: i32,
    more: bool,
}

/// Reads C's hexadecimal floats: `0x1.8p3`.
pub(super) fn parse_hexadecimal(text: &[u8]) -> Option<Hexadecimal> {
    let (negative, unsigned) = split_sign(text);
    let [b'0', b'x' | b'X', digits @ ..] = unsigned else { return None };
    let (whole, fraction, exponent) = split_float(digits, b'p')?;
    let mut number = Hexadecimal { negative, value: 0, exponent, more: false };
    for (index, &digit) in whole.iter().chain(fraction).enumerate() {
        let digit = char::from(digit).to_digit(16)?;
        let in_fraction = index >= whole.len();
        if number.value >> 124 == 0 {
            number.value = number.value << 4 | u128::from(digit);
            number.exponent -= if in_fraction { 4 } else { 0 };
        } else {
            number.more |= digit != 0;
            number.exponent += if in_fraction { 0 } else { 4 };
        }
    }
    Some(number)
}

impl Hexadecimal {
    fn to_extended(&self) -> Option<Extended> {
        let value = Extended::round(self.negative, self.value, self.exponent, self.more);
        (value.finite && (value.mantissa != 0 || self.value == 0)).then_some(value)
    }

    pub(super) fn to_f64(&self) -> Option<f64> {
        // With the highest bit on top the lowest one can stand for all that is lost.
        let zeros = self.value.leading_zeros().min(127);
        let value = (self.value << zeros | u128::from(self.more)) as f64;
        let exponent = self.exponent.saturating_sub(zeros as i32).clamp(-3000, 3000);
        // In steps: 2^exponent alone may overflow or vanish.
        let step = exponent / 4;
        let factor = 2f64.powi(step);
        let value = value * factor * factor * factor * 2f64.powi(exponent - 3 * step);
        let value = if self.negative { -value } else { value };
        (value.is_finite() && (value != 0.0 || self.value == 0)).then_some(value)
    }
}
