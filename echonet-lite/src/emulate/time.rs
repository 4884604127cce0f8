//! Moments of the system's clock, in universal time.

use core::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment, counted from 1970. `Display` writes `2026-11-21T08:15:00.250000Z`, and `08:15:00.250000` with `#`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub Duration);

impl Moment {
    /// The present.
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Year, month and day.
    pub fn date(self) -> (u16, u8, u8) {
        // Days are counted in eras of 400 years that begin in March, so that leap days come last.
        let days = self.0.as_secs() / 86_400 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let (date, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
        ((era * 400 + year + u64::from(month <= 2)) as u16, month as u8, date as u8)
    }

    /// Hour, minute and second.
    pub fn time(self) -> (u8, u8, u8) {
        let second = self.0.as_secs() % 86_400;
        ((second / 3600) as u8, (second / 60 % 60) as u8, (second % 60) as u8)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.date(), self.time());
        let fraction = self.0.subsec_micros();
        if f.alternate() {
            return write!(f, "{hour:02}:{minute:02}:{second:02}.{fraction:06}");
        }
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn moments_in_words() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000001Z"),
            (951_782_399, "2000-02-28T23:59:59.000001Z"),
            (951_782_400, "2000-02-29T00:00:00.000001Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000001Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000001Z"),
        ] {
            assert_eq!(Moment(Duration::new(seconds, 1000)).to_string(), text);
        }
    }
}
