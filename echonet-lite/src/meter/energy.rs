//! Kilowatt-hours without rounding.

use core::fmt;

use super::{DecodeError, exactly};

/// The energy of one count of the meter: coefficient (D3) × unit (E1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale {
    coefficient: u32,
    exponent: i8,
}

/// The range of D3.
const COEFFICIENT_MAX: u32 = 999_999;

impl Scale {
    /// From the values of D3, `None` where the meter does not have it (which means 1), and E1.
    ///
    /// # Errors
    /// Wrong length or range, or a reserved unit.
    pub fn decode(coefficient: Option<&[u8]>, unit: &[u8]) -> Result<Self, DecodeError> {
        let coefficient = coefficient.map_or(Ok(1), |edt| exactly(edt).map(u32::from_be_bytes))?;
        let exponent = match exactly(unit)? {
            [decimals @ 0x00..=0x04] => -(decimals as i8),
            [zeros @ 0x0A..=0x0D] => zeros as i8 - 9,
            _ => return Err(DecodeError::Range),
        };
        if coefficient > COEFFICIENT_MAX {
            return Err(DecodeError::Range);
        }
        Ok(Self { coefficient, exponent })
    }

    /// The energy of these counts.
    pub const fn energy(self, count: u32) -> Energy {
        // 32 bits times 20 bits.
        Energy { mantissa: count as u64 * self.coefficient as u64, exponent: self.exponent }
    }
}

/// An amount of energy, exact: mantissa × 10^exponent kWh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Energy {
    mantissa: u64,
    exponent: i8,
}

impl Energy {
    /// The digits, without the decimal point.
    pub const fn mantissa(self) -> u64 {
        self.mantissa
    }

    /// The power of ten that the digits are multiplied with to get kilowatt-hours, -4 to 4.
    pub const fn exponent(self) -> i8 {
        self.exponent
    }

    /// In tenths of watt-hours, the smallest unit that a meter can count in.
    pub const fn deciwatt_hours(self) -> u64 {
        // A mantissa of 52 bits times 10⁸ does not fit in the extreme; such a meter does not fit on earth.
        self.mantissa.saturating_mul(10_u64.pow((self.exponent + 4) as u32))
    }

    /// In kilowatt-hours, rounded to what a floating-point number holds.
    pub fn kilowatt_hours(self) -> f64 {
        let power = 10_u32.pow(u32::from(self.exponent.unsigned_abs()));
        if self.exponent < 0 {
            self.mantissa as f64 / f64::from(power)
        } else {
            self.mantissa as f64 * f64::from(power)
        }
    }
}

impl fmt::Display for Energy {
    /// Kilowatt-hours with as many decimals as the meter's unit has: `12345.6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = 10_u64.pow(u32::from(self.exponent.unsigned_abs()));
        if self.exponent >= 0 {
            return write!(f, "{}", u128::from(self.mantissa) * u128::from(power));
        }
        let decimals = usize::from(self.exponent.unsigned_abs());
        write!(f, "{}.{:0decimals$}", self.mantissa / power, self.mantissa % power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn scales() {
        type Row = (Option<&'static [u8]>, &'static [u8], u32, Result<&'static str, DecodeError>);
        let rows: &[Row] = &[
            (None, &[0x00], 123_456, Ok("123456")),
            (None, &[0x01], 123_456, Ok("12345.6")),
            (None, &[0x02], 123_456, Ok("1234.56")),
            (None, &[0x03], 56, Ok("0.056")),
            (None, &[0x04], 0, Ok("0.0000")),
            (None, &[0x0A], 12, Ok("120")),
            (None, &[0x0D], 99_999_999, Ok("999999990000")),
            (Some(&[0, 0, 0, 20]), &[0x01], 15, Ok("30.0")),
            (Some(&[0, 0x0F, 0x42, 0x3F]), &[0x0D], 99_999_999, Ok("999998990000010000")),
            (Some(&[0, 0x0F, 0x42, 0x40]), &[0x01], 1, Err(DecodeError::Range)),
            (Some(&[1]), &[0x01], 1, Err(DecodeError::Length { expected: 4, actual: 1 })),
            (None, &[0x05], 1, Err(DecodeError::Range)),
            (None, &[0x0E], 1, Err(DecodeError::Range)),
            (None, &[], 1, Err(DecodeError::Length { expected: 1, actual: 0 })),
        ];
        for (coefficient, unit, count, expected) in rows {
            let shown = Scale::decode(*coefficient, unit).map(|scale| scale.energy(*count).to_string());
            assert_eq!(shown.as_deref(), expected.as_ref().map(|text| *text), "{coefficient:02X?} {unit:02X?} {count}");
        }
    }

    #[test]
    fn other_forms() {
        let scale = Scale::decode(None, &[0x01]).unwrap();
        let energy = scale.energy(123_456);
        assert_eq!((energy.mantissa(), energy.exponent()), (123_456, -1));
        assert_eq!(energy.deciwatt_hours(), 123_456_000);
        assert!((energy.kilowatt_hours() - 12_345.6).abs() < 1e-9);
        let most = Scale::decode(Some(&[0, 0x0F, 0x42, 0x3F]), &[0x0D]).unwrap().energy(u32::MAX);
        assert_eq!(most.deciwatt_hours(), u64::MAX);
        assert!(most.to_string().starts_with("42949"));
    }
}
