//! Low-voltage smart electric energy meters (class 0288): the exact meaning of their property values.
//!
//! The meter counts in steps of its own: `count × coefficient (D3) × unit (E1)` kilowatt-hours. [`Scale`] holds the two
//! factors, [`Energy`] the product, without rounding.
//!
//! ```
//! use echonet_lite::meter::{self, Scale};
//!
//! // D3 was not answered, so it is 1; E1 says 0.1 kWh.
//! let scale = Scale::decode(None, &[0x01])?;
//! let count = meter::cumulative(&[0x00, 0x01, 0xE2, 0x40])?.expect("not the code for missing data");
//! assert_eq!(scale.energy(count).to_string(), "12345.6");
//! assert_eq!(meter::power(&[0xFF, 0xFF, 0xFF, 0x9C])?, Some(-100), "100 W flow back");
//! # Ok::<(), meter::DecodeError>(())
//! ```
#![forbid(unsafe_code)]

mod energy;
mod history;

pub use energy::{Energy, Scale};
pub use history::{FixedTime, History, PairHistory, Pairs, Slots, Timestamp, pair_history_request};

use core::fmt;

use crate::wire::Eoj;

/// The meter of a Route-B network.
pub const METER: Eoj = Eoj::new(0x02, 0x88, 0x01);

/// The property codes of the class.
pub mod epc {
    /// Production number, 12 characters.
    pub const SERIAL_NUMBER: u8 = 0x8D;
    /// Route-B identification number.
    pub const ROUTE_B_ID: u8 = 0xC0;
    /// Both cumulative amounts of the last full minute.
    pub const MINUTE: u8 = 0xD0;
    /// Coefficient; absent means 1.
    pub const COEFFICIENT: u8 = 0xD3;
    /// Number of effective digits.
    pub const DIGITS: u8 = 0xD7;
    /// Cumulative amount, normal direction.
    pub const CUMULATIVE: u8 = 0xE0;
    /// Unit of all cumulative amounts.
    pub const UNIT: u8 = 0xE1;
    /// Half-hourly history of a day, normal direction.
    pub const HISTORY: u8 = 0xE2;
    /// Cumulative amount, reverse direction.
    pub const CUMULATIVE_REVERSE: u8 = 0xE3;
    /// Half-hourly history of a day, reverse direction.
    pub const HISTORY_REVERSE: u8 = 0xE4;
    /// The day of [`HISTORY`] and [`HISTORY_REVERSE`].
    pub const HISTORY_DAY: u8 = 0xE5;
    /// Instantaneous power.
    pub const POWER: u8 = 0xE7;
    /// Instantaneous currents.
    pub const CURRENTS: u8 = 0xE8;
    /// Cumulative amount at the last half hour, normal direction.
    pub const FIXED_TIME: u8 = 0xEA;
    /// Cumulative amount at the last half hour, reverse direction.
    pub const FIXED_TIME_REVERSE: u8 = 0xEB;
    /// Half-hourly history of both directions.
    pub const HISTORY_BOTH: u8 = 0xEC;
    /// The time of [`HISTORY_BOTH`].
    pub const HISTORY_BOTH_TIME: u8 = 0xED;
    /// Minute-by-minute history of both directions.
    pub const HISTORY_MINUTES: u8 = 0xEE;
    /// The time of [`HISTORY_MINUTES`].
    pub const HISTORY_MINUTES_TIME: u8 = 0xEF;
}

/// A cumulative count that the meter does not have.
const NO_COUNT: u32 = 0xFFFF_FFFE;
const NO_POWER: i32 = 0x7FFF_FFFE;
const NO_CURRENT: i16 = 0x7FFE;
/// Eight digits.
const COUNT_MAX: u32 = 99_999_999;
/// The day in E5 before it was set.
const DAY_UNSET: u8 = 0xFF;
const DAY_MAX: u8 = 99;

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It has another number of bytes than the property.
    Length {
        /// How many it must have.
        expected: usize,
        /// How many it has.
        actual: usize,
    },
    /// It is outside of the property's range.
    Range,
    /// The code for a value above the range.
    Overflow,
    /// The code for a value below the range.
    Underflow,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, actual } => write!(f, "{actual} bytes where the property has {expected}"),
            Self::Range => f.write_str("value out of the property's range"),
            Self::Overflow => f.write_str("the meter reports an overflow"),
            Self::Underflow => f.write_str("the meter reports an underflow"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// The property's bytes, if there are as many as it has.
fn exactly<const N: usize>(edt: &[u8]) -> Result<[u8; N], DecodeError> {
    edt.try_into().map_err(|_| DecodeError::Length { expected: N, actual: edt.len() })
}

/// A count in its four bytes.
fn count(bytes: [u8; 4]) -> Result<Option<u32>, DecodeError> {
    match u32::from_be_bytes(bytes) {
        NO_COUNT => Ok(None),
        count if count <= COUNT_MAX => Ok(Some(count)),
        _ => Err(DecodeError::Range),
    }
}

/// E0, E3: the count of the meter now; `None` if it has none. [`Scale::energy`] turns it to kilowatt-hours.
///
/// # Errors
/// Wrong length, or more than eight digits.
pub fn cumulative(edt: &[u8]) -> Result<Option<u32>, DecodeError> {
    count(exactly(edt)?)
}

/// D0: both counts (normal, reverse) at the last full minute, and when that was.
///
/// # Errors
/// Wrong length, more than eight digits, or an impossible time.
pub fn minute(edt: &[u8]) -> Result<(Timestamp, Option<u32>, Option<u32>), DecodeError> {
    let [at @ .., a, b, c, d, e, f, g, h] = exactly::<15>(edt)?;
    Ok((Timestamp::decode_with_seconds(at)?, count([a, b, c, d])?, count([e, f, g, h])?))
}

/// D7: how many digits a count has before it starts again at zero, 1 to 8.
///
/// # Errors
/// Wrong length or range.
pub fn digits(edt: &[u8]) -> Result<u8, DecodeError> {
    match exactly(edt)? {
        [digits @ 1..=8] => Ok(digits),
        _ => Err(DecodeError::Range),
    }
}

/// The count between two readings of a meter with this many digits, which starts again at zero after the highest.
///
/// ```
/// assert_eq!(echonet_lite::meter::counted(999_990, 10, 6), 20);
/// ```
pub const fn counted(earlier: u32, later: u32, digits: u8) -> u32 {
    let digits = if digits == 0 || digits > 8 { 8 } else { digits };
    let modulus = 10_u64.pow(digits as u32);
    // Below the modulus, which is at most 10⁸.
    ((later as u64 % modulus + modulus - earlier as u64 % modulus) % modulus) as u32
}

/// E7: power in watts, negative while the house feeds the grid; `None` if the meter has no value.
///
/// # Errors
/// Wrong length, overflow or underflow.
pub fn power(edt: &[u8]) -> Result<Option<i32>, DecodeError> {
    match i32::from_be_bytes(exactly(edt)?) {
        NO_POWER => Ok(None),
        i32::MAX => Err(DecodeError::Overflow),
        i32::MIN => Err(DecodeError::Underflow),
        watts => Ok(Some(watts)),
    }
}

/// E8: the currents of the two phases, in tenths of an ampere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Currents {
    /// R phase; `None` if the meter has no value.
    pub r: Option<i16>,
    /// T phase; `None` if the house has two wires, not three.
    pub t: Option<i16>,
}

impl Currents {
    /// Reads the value of E8.
    ///
    /// # Errors
    /// Wrong length, overflow or underflow.
    pub fn decode(edt: &[u8]) -> Result<Self, DecodeError> {
        let [r0, r1, t0, t1] = exactly(edt)?;
        let phase = |bytes| match i16::from_be_bytes(bytes) {
            NO_CURRENT => Ok(None),
            i16::MAX => Err(DecodeError::Overflow),
            i16::MIN => Err(DecodeError::Underflow),
            tenths => Ok(Some(tenths)),
        };
        Ok(Self { r: phase([r0, r1])?, t: phase([t0, t1])? })
    }
}

impl fmt::Display for Currents {
    /// `1.5 A`, or `R 1.5 A, T -0.2 A`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |f: &mut fmt::Formatter<'_>, tenths: i16| {
            let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
            write!(f, "{sign}{}.{} A", tenths / 10, tenths % 10)
        };
        match (self.r, self.t) {
            (None, None) => f.write_str("no data"),
            (Some(only), None) | (None, Some(only)) => show(f, only),
            (Some(r), Some(t)) => {
                f.write_str("R ")?;
                show(f, r)?;
                f.write_str(", T ")?;
                show(f, t)
            }
        }
    }
}

/// E5: how many days before today the history is for; `None` before it was set.
///
/// # Errors
/// Wrong length or range.
pub fn history_day(edt: &[u8]) -> Result<Option<u8>, DecodeError> {
    match exactly(edt)? {
        [DAY_UNSET] => Ok(None),
        [day @ 0..=DAY_MAX] => Ok(Some(day)),
        _ => Err(DecodeError::Range),
    }
}

/// The value to set E5 to, 0 for today to 99; `None` for more.
pub const fn history_day_request(day: u8) -> Option<[u8; 1]> {
    if day <= DAY_MAX { Some([day]) } else { None }
}

/// C0: the Route-B identification number.
///
/// # Errors
/// Wrong length.
pub fn route_b_id(edt: &[u8]) -> Result<[u8; 16], DecodeError> {
    exactly(edt)
}

/// 8D: the production number, without what fills it up to 12 characters.
///
/// # Errors
/// Wrong length, or not ASCII.
pub fn serial_number(edt: &[u8]) -> Result<&str, DecodeError> {
    exactly::<12>(edt)?;
    let text = core::str::from_utf8(edt).ok().filter(|text| text.is_ascii());
    Ok(text.ok_or(DecodeError::Range)?.trim_end_matches(['\0', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// A value's bytes, and their meaning.
    type Row<T> = (&'static [u8], Result<Option<T>, DecodeError>);

    const fn length(expected: usize, actual: usize) -> DecodeError {
        DecodeError::Length { expected, actual }
    }

    #[test]
    fn counts() {
        let rows: &[Row<u32>] = &[
            (&[0, 0, 0, 0], Ok(Some(0))),
            (&[0x05, 0xF5, 0xE0, 0xFF], Ok(Some(99_999_999))),
            (&[0x05, 0xF5, 0xE1, 0x00], Err(DecodeError::Range)),
            (&[0xFF, 0xFF, 0xFF, 0xFE], Ok(None)),
            (&[0xFF, 0xFF, 0xFF, 0xFF], Err(DecodeError::Range)),
            (&[0, 0, 0], Err(length(4, 3))),
            (&[], Err(length(4, 0))),
        ];
        for (edt, expected) in rows {
            assert_eq!(cumulative(edt), *expected, "{edt:02X?}");
        }
    }

    #[test]
    fn counters_start_again() {
        for (earlier, later, digits, expected) in [
            (10, 30, 6, 20),
            (999_990, 10, 6, 20),
            (99_999_999, 0, 8, 1),
            (5, 5, 8, 0),
            (0, 99_999_999, 0, 99_999_999),
            (u32::MAX, 0, 200, 5_032_705),
        ] {
            assert_eq!(counted(earlier, later, digits), expected, "{earlier} to {later} of {digits} digits");
        }
    }

    #[test]
    fn powers_and_currents() {
        let rows: &[Row<i32>] = &[
            (&[0, 0, 0x01, 0xF8], Ok(Some(504))),
            (&[0xFF, 0xFF, 0xFF, 0x9C], Ok(Some(-100))),
            (&[0x7F, 0xFF, 0xFF, 0xFD], Ok(Some(2_147_483_645))),
            (&[0x7F, 0xFF, 0xFF, 0xFE], Ok(None)),
            (&[0x7F, 0xFF, 0xFF, 0xFF], Err(DecodeError::Overflow)),
            (&[0x80, 0, 0, 0], Err(DecodeError::Underflow)),
            (&[0; 5], Err(length(4, 5))),
        ];
        for (edt, expected) in rows {
            assert_eq!(power(edt), *expected, "{edt:02X?}");
        }
        let rows: &[(&[u8], &str)] = &[
            (&[0, 15, 0xFF, 0xFE], "R 1.5 A, T -0.2 A"),
            (&[0, 100, 0x7F, 0xFE], "10.0 A"),
            (&[0x7F, 0xFE, 0x7F, 0xFE], "no data"),
            (&[0x7F, 0xFF, 0, 0], "the meter reports an overflow"),
            (&[0, 0, 0x80, 0], "the meter reports an underflow"),
            (&[0, 0], "2 bytes where the property has 4"),
        ];
        for (edt, expected) in rows {
            let shown = Currents::decode(edt).map_or_else(|error| error.to_string(), |currents| currents.to_string());
            assert_eq!(shown, *expected);
        }
    }

    #[test]
    fn small_ones() {
        assert_eq!(
            (digits(&[6]), digits(&[0]), digits(&[9])),
            (Ok(6), Err(DecodeError::Range), Err(DecodeError::Range))
        );
        assert_eq!((history_day(&[99]), history_day(&[0xFF])), (Ok(Some(99)), Ok(None)));
        assert_eq!(history_day(&[100]), Err(DecodeError::Range));
        assert_eq!((history_day_request(1), history_day_request(100)), (Some([1]), None));
        assert_eq!(serial_number(b"AB1234567890"), Ok("AB1234567890"));
        assert_eq!(serial_number(b"AB12\0\0\0\0\0\0\0\0"), Ok("AB12"));
        assert_eq!(serial_number(b"\xFFB1234567890"), Err(DecodeError::Range));
        assert_eq!(route_b_id(&[1; 16]), Ok([1; 16]));
        let edt = [0x07, 0xE9, 5, 17, 12, 30, 0, 0, 0, 0, 5, 0xFF, 0xFF, 0xFF, 0xFE];
        let (at, normal, reverse) = minute(&edt).unwrap();
        assert_eq!((at.to_string().as_str(), normal, reverse), ("2025-05-17 12:30:00", Some(5), None));
        assert_eq!(minute(&edt[1..]), Err(length(15, 14)));
    }
}
