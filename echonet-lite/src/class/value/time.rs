//! Dates and times of the wire: a calendar's fields, no time zone.

use core::fmt;

/// A day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// A time of day, or a span of up to 255 hours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time {
    /// 0 to 23, in a span to 255.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59, where the property has it.
    pub second: Option<u8>,
}

/// A moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// The time of day.
    pub time: Time,
}

impl Date {
    pub(super) const SIZE: usize = 4;

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[high, low, month, day] = bytes else { return None };
        Self { year: u16::from_be_bytes([high, low]), month, day }.checked()
    }

    pub(super) const fn to_bytes(self) -> [u8; Self::SIZE] {
        let [high, low] = self.year.to_be_bytes();
        [high, low, self.month, self.day]
    }

    /// Reads `2024-12-31`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (year, rest) = text.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        Self { year: digits(year)?, month: digits(month)?, day: digits(day)? }.checked()
    }

    pub(super) fn checked(self) -> Option<Self> {
        let Self { year, month, day } = self;
        (year <= 9999 && (1..=12).contains(&month) && (1..=31).contains(&day)).then_some(self)
    }
}

impl Time {
    pub(super) fn from_bytes(bytes: &[u8], maximum_hour: u8) -> Option<Self> {
        let time = match *bytes {
            [hour, minute] => Self { hour, minute, second: None },
            [hour, minute, second] => Self { hour, minute, second: Some(second) },
            _ => return None,
        };
        time.checked(maximum_hour)
    }

    /// Hour, minute and second, and how many of them there are.
    pub(super) fn to_bytes(self) -> ([u8; 3], usize) {
        ([self.hour, self.minute, self.second.unwrap_or(0)], if self.second.is_some() { 3 } else { 2 })
    }

    /// Reads `14:30` or `14:30:15`.
    pub(super) fn parse(text: &str, maximum_hour: u8) -> Option<Self> {
        let mut parts = text.split(':');
        let (hour, minute) = (digits(parts.next()?)?, digits(parts.next()?)?);
        let second = match parts.next() {
            Some(second) => Some(digits(second)?),
            None => None,
        };
        if parts.next().is_some() {
            return None;
        }
        Self { hour, minute, second }.checked(maximum_hour)
    }

    pub(super) fn checked(self, maximum_hour: u8) -> Option<Self> {
        let valid = self.hour <= maximum_hour && self.minute < 60 && self.second.is_none_or(|second| second < 60);
        valid.then_some(self)
    }
}

impl DateTime {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (date, time) = bytes.split_at_checked(Date::SIZE)?;
        Some(Self { date: Date::from_bytes(date)?, time: Time::from_bytes(time, 23)? })
    }

    /// Reads `2024-12-31 14:30` or `2024-12-31T14:30:15`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once([' ', 'T'])?;
        Some(Self { date: Date::parse(date)?, time: Time::parse(time.trim_start(), 23)? })
    }
}

/// A number of digits only: no sign, no space.
fn digits<T: core::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)?;
        match self.second {
            Some(second) => write!(f, ":{second:02}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date, self.time)
    }
}
