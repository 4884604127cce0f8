//! The `Date` header, formatted once a second.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The date of the last look at the clock.
pub(super) struct Clock {
    second: u64,
    text: [u8; 29],
}

/// The last second that has a date: the end of the year 9999.
const LAST: u64 = 253_402_300_799;

impl Clock {
    pub(super) fn new() -> Self {
        let mut clock = Self { second: u64::MAX, text: [b' '; 29] };
        clock.look();
        clock
    }

    /// Looks at the clock. Several times a second, not for each answer: that would cost as much as the rest of a small one.
    pub(super) fn look(&mut self) {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()).min(LAST);
        if second != self.second {
            self.second = second;
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            self.text = text.as_bytes().try_into().expect("dates have 29 characters");
        }
    }

    /// The date as RFC 9110 section 5.6.7 writes it.
    #[inline]
    pub(super) fn date(&self) -> &[u8; 29] {
        &self.text
    }
}
