//! Numbers with a decimal scale and a unit, without floating point.

use core::fmt;

use crate::class::data::Unit;

/// `raw × 10^exponent`, in a unit: 225 × 10^−1 °C is 22.5 °C.
///
/// ```
/// use echonet_lite::class::{Scaled, Unit};
///
/// let energy = Scaled { raw: 123_456, exponent: 0, unit: Unit::KilowattHour };
/// let tenth = Scaled { raw: 1, exponent: -1, unit: Unit::None };
/// assert_eq!(energy.times(tenth).map(|product| product.to_string()).as_deref(), Some("12345.6 kWh"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scaled {
    /// The number as it is sent.
    pub raw: i64,
    /// The power of ten it counts, −18 to 18.
    pub exponent: i8,
    /// The unit; [`Unit::None`] in a value to be encoded means the property's own.
    pub unit: Unit,
}

impl Scaled {
    /// A whole number without a unit.
    pub const fn whole(number: i64) -> Self {
        Self { raw: number, exponent: 0, unit: Unit::None }
    }

    /// As floating point.
    pub fn to_f64(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "numbers have at most 33 bits on the wire")]
        let raw = self.raw as f64;
        let power = (0..self.exponent.unsigned_abs()).fold(1.0, |power, _| power * 10.0);
        // Dividing by an exact power of ten rounds once; multiplying by 0.1 would round twice.
        if self.exponent < 0 { raw / power } else { raw * power }
    }

    /// The number nearest to a floating point number in steps of `10^exponent`, without a unit. NaN is 0.
    pub fn nearest(number: f64, exponent: i8) -> Self {
        let power = (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * 10.0);
        let steps = if exponent < 0 { number * power } else { number / power };
        let half = if steps < 0.0 { -0.5 } else { 0.5 };
        #[expect(clippy::cast_possible_truncation, reason = "it saturates, and cuts off what is behind the point")]
        let raw = (steps + half) as i64;
        Self { raw, exponent, unit: Unit::None }
    }

    /// The product, in the unit of whichever has one; `None` if it is too large.
    pub fn times(self, factor: Self) -> Option<Self> {
        let unit = if self.unit == Unit::None { factor.unit } else { self.unit };
        let raw = self.raw.checked_mul(factor.raw)?;
        let exponent = self.exponent.checked_add(factor.exponent)?;
        Some(Self { raw, exponent, unit })
    }

    /// How many steps of `10^exponent` it is; `None` if it lies between two steps or is too large.
    pub fn steps(self, exponent: i8) -> Option<i64> {
        if self.raw == 0 {
            return Some(0);
        }
        let shift = i32::from(self.exponent) - i32::from(exponent);
        let power = 10i64.checked_pow(shift.unsigned_abs())?;
        if shift >= 0 {
            return self.raw.checked_mul(power);
        }
        (self.raw % power == 0).then(|| self.raw / power)
    }

    /// How many steps of `10^exponent` of another unit it is, where that is the same but for a prefix: 1.5 kW is 1500 W.
    pub(super) fn steps_in(self, unit: Unit, exponent: i8) -> Option<i64> {
        if self.unit == Unit::None || self.unit == unit {
            return self.steps(exponent);
        }
        let ((own_base, own_prefix), (base, prefix)) = (self.unit.base(), unit.base());
        let same = Self { exponent: self.exponent.checked_add(own_prefix - prefix)?, ..self };
        if own_base == base { same.steps(exponent) } else { None }
    }

    /// Reads a decimal number, `-12.50`, as exactly that. Returns the text behind the number, too.
    pub(super) fn parse(text: &str) -> Option<(Self, &str)> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let (number, rest) = digits.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
            return None;
        }
        let mut raw = 0i64;
        for digit in whole.bytes().chain(fraction.bytes()) {
            raw = raw.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
        }
        let raw = if text.starts_with('-') { -raw } else { raw };
        let exponent = -i8::try_from(fraction.len()).ok()?;
        Some((Self { raw, exponent, unit: Unit::None }, rest))
    }

    /// The digits alone, without the unit.
    pub fn digits(self) -> impl fmt::Display {
        Self { unit: Unit::None, ..self }
    }
}

impl PartialEq for Scaled {
    /// The same number in the same unit, whatever the scale.
    fn eq(&self, other: &Self) -> bool {
        let fine = self.exponent.min(other.exponent);
        let same = self.steps(fine).zip(other.steps(fine)).map(|(one, other)| one == other);
        self.unit == other.unit && same.unwrap_or((self.raw, self.exponent) == (other.raw, other.exponent))
    }
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, raw) = (if self.raw < 0 { "-" } else { "" }, self.raw.unsigned_abs());
        let places = usize::from(self.exponent.unsigned_abs());
        if self.exponent >= 0 {
            let zeros = if raw == 0 { 0 } else { places };
            write!(f, "{sign}{raw}{:0<zeros$}", "")?;
        } else {
            match 10u64.checked_pow(places as u32) {
                Some(power) => write!(f, "{sign}{}.{:0places$}", raw / power, raw % power)?,
                None => write!(f, "{sign}0.{raw:0places$}")?,
            }
        }
        match self.unit {
            Unit::None => Ok(()),
            unit => write!(f, " {}", unit.symbol()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn decimals_are_exact() {
        let check = |raw, exponent, text: &str| {
            let number = Scaled { raw, exponent, unit: Unit::None };
            assert_eq!(number.to_string(), text);
            let (read, rest) = Scaled::parse(text).expect(text);
            assert_eq!((read, rest), (number, ""));
        };
        check(225, -1, "22.5");
        check(220, -1, "22.0");
        check(-5, -1, "-0.5");
        check(-5, 0, "-5");
        check(7, 1, "70");
        check(0, 1, "0");
        check(1, -6, "0.000001");
        check(i64::MAX, 0, "9223372036854775807");
        for text in ["", "-", ".5", "5.", "1.2.3", "x", "99999999999999999999"] {
            assert!(Scaled::parse(text).is_none(), "{text}");
        }
        assert_eq!(Scaled::parse("22 °C").map(|(_, rest)| rest), Some(" °C"));
    }

    #[test]
    fn scales_and_units_convert() {
        let watts = |raw, exponent| Scaled { raw, exponent, unit: Unit::Watt };
        assert_eq!(Scaled { raw: 15, exponent: -1, unit: Unit::Kilowatt }.steps_in(Unit::Watt, 0), Some(1500));
        assert_eq!(watts(1500, 0).steps_in(Unit::Kilowatt, -1), Some(15));
        assert_eq!(watts(1501, 0).steps_in(Unit::Kilowatt, -1), None);
        assert_eq!(watts(1, 0).steps_in(Unit::Celsius, 0), None);
        assert_eq!(watts(i64::MAX, 18).steps(-18), None);
        assert_eq!(watts(i64::MAX, i8::MAX).steps(i8::MIN), None);
        assert!((watts(225, -1).to_f64() - 22.5).abs() < f64::EPSILON);
        assert_eq!(Scaled::nearest(22.46, -1).raw, 225);
        assert_eq!(Scaled::nearest(-0.06, -1).raw, -1);
        assert_eq!(Scaled::nearest(f64::NAN, 0).raw, 0);
    }
}
