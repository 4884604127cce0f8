//! The `Date` header, formatted once a second.

use std::time::{Duration, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// The date of the last look at the clock.
pub(super) struct Clock {
    second: i64,
    text: [u8; 29],
}

impl Clock {
    pub(super) fn new() -> Self {
        let mut clock = Self { second: -1, text: [b' '; 29] };
        clock.date();
        clock
    }

    /// The date as RFC 9110 section 5.6.7 writes it.
    pub(super) fn date(&mut self) -> &[u8; 29] {
        // The coarse clock is right to some milliseconds and costs a fifth of the exact one.
        let second = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        if second != self.second {
            self.second = second;
            let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(second).unwrap_or(0));
            let text = httpdate::fmt_http_date(time);
            // Years past 9999 do not fit; they may have the date of before.
            if let Ok(text) = text.as_bytes().try_into() {
                self.text = text;
            }
        }
        &self.text
    }
}
