//! The time to wait for an answer: by the node's answers so far, within the limits of its classes.

use core::time::Duration;

use super::{Config, Spacing};
use crate::node::Instant;
use crate::wire::{Eoj, Esv, PropertySet};

/// The least patience for air conditioners and meters (System Design Guidelines).
const PATIENCE_SLOW_CLASS: Duration = Duration::from_secs(20);
/// The least patience for several properties of a meter, or for its history.
const PATIENCE_METER_HISTORY: Duration = Duration::from_secs(60);

/// Cumulative amounts of the past, per half hour and day: E2, E4, EC, EE.
const METER_HISTORY: PropertySet = PropertySet::of(&[0xE2, 0xE4, 0xEC, 0xEE]);

/// The least time to wait for an object of a class that is known to be slow.
pub(super) fn least(eoj: Eoj, service: Esv, asked: PropertySet) -> Duration {
    match (eoj.group(), eoj.class()) {
        // Smart meters behind Wi-SUN or in series with others: of low and high voltage (0288, 028A), sub-meters (028D),
        // for demand response (028E), of high voltage in both directions (028F).
        (0x02, 0x88 | 0x8A | 0x8D..=0x8F) if service != Esv::SetI => {
            let history = asked.iter().any(|epc| METER_HISTORY.contains(epc));
            if asked.len() >= 2 || history { PATIENCE_METER_HISTORY } else { PATIENCE_SLOW_CLASS }
        }
        (0x02, 0x88 | 0x8A | 0x8D..=0x8F) | (0x01, 0x30) => PATIENCE_SLOW_CLASS,
        _ => Duration::ZERO,
    }
}

/// Smoothed response time of a node, as TCP does it (RFC 6298). Every try has its own identifier, so that every answer
/// tells the time of exactly one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResponseTime {
    /// In microseconds; the smoothed time and its mean deviation.
    smoothed: Option<(u32, u32)>,
    /// How often in a row the time for an answer was too short.
    misses: u8,
    /// The time of the last miss. Answers to requests sent before tell nothing more.
    missed_at: Instant,
}

/// A node counts as silent once it has not answered so often in a row. Its waiting requests then fail, and each new
/// request gets one try. Two requests with the usual three tries; with a fifth of all datagrams lost, 1 in 500.
const SILENT_AFTER: u8 = 6;

/// How many times its usual time a silent node gets: 2 to the power of this. A node that comes back unheard is found by the next
/// request then, instead of one that begins after [`Config::max_timeout`].
const SILENT_PATIENCE: u8 = 3;

/// Within this a node counts as one that takes requests back to back.
const PROMPT: Duration = Duration::from_millis(5);
const MAX_SPACING: Duration = Duration::from_millis(500);

impl ResponseTime {
    /// An answer took so long.
    pub(super) fn answered(&mut self, after: Duration) {
        let sample = u32::try_from(after.as_micros()).unwrap_or(u32::MAX);
        self.misses = 0;
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some((smoothed, deviation)) => {
                (smoothed - smoothed / 8 + sample / 8, deviation - deviation / 4 + smoothed.abs_diff(sample) / 4)
            }
        });
    }

    /// A try was not answered.
    pub(super) fn missed(&mut self, now: Instant, sent_at: Instant) {
        if sent_at >= self.missed_at {
            self.misses = self.misses.saturating_add(1);
            self.missed_at = now;
        }
    }

    /// Whether there is reason to think that the node is gone.
    pub(super) fn is_silent(&self) -> bool {
        self.misses >= SILENT_AFTER
    }

    /// The node was heard, though not with an answer.
    pub(super) fn heard(&mut self) {
        if self.is_silent() {
            self.misses = 0;
        }
    }

    /// The node begins anew: requests that were sent before say nothing of it, even if they are not answered.
    pub(super) fn begins_anew(&mut self, now: Instant) {
        (self.misses, self.missed_at) = (0, now);
    }

    /// How long answers take.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| Duration::from_micros(smoothed.into()))
    }

    /// How long to wait for the next one; twice as long after each miss, until the node counts as silent.
    pub(super) fn timeout(&self, config: &Config) -> Duration {
        let usual = match self.smoothed {
            None => config.first_timeout,
            Some((smoothed, deviation)) => Duration::from_micros(u64::from(smoothed) + 4 * u64::from(deviation)),
        };
        let usual = usual.max(config.min_timeout);
        let doublings = if self.is_silent() { SILENT_PATIENCE } else { self.misses };
        usual.saturating_mul(1 << doublings).min(config.max_timeout.max(config.min_timeout))
    }

    /// How long to leave the node alone after an answer or a request.
    pub(super) fn spacing(&self, spacing: Spacing) -> Duration {
        match spacing {
            Spacing::Fixed(time) => time,
            Spacing::Adaptive => {
                let usual = self.smoothed().unwrap_or_default();
                if usual <= PROMPT { Duration::ZERO } else { (usual / 4).min(MAX_SPACING) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_and_air_conditioners_get_their_time() {
        let eoj = Eoj::new;
        let set = |epcs: &[u8]| epcs.iter().fold(PropertySet::EMPTY, |set, epc| set.with(*epc));
        let cases = [
            (eoj(0x02, 0x88, 1), Esv::Get, &[0xE0][..], 20),
            (eoj(0x02, 0x88, 1), Esv::Get, &[0xE0, 0xE7], 60),
            (eoj(0x02, 0x88, 1), Esv::Get, &[0xE2], 60),
            (eoj(0x02, 0x88, 1), Esv::InfReq, &[0xEE], 60),
            (eoj(0x02, 0x8A, 1), Esv::Get, &[0xEC], 60),
            (eoj(0x02, 0x8C, 1), Esv::Get, &[0xEC], 0),
            (eoj(0x02, 0x8D, 1), Esv::Get, &[0xE0, 0xE7], 60),
            (eoj(0x02, 0x8D, 1), Esv::SetI, &[0xE5], 20),
            (eoj(0x02, 0x8E, 1), Esv::Get, &[0xE0], 20),
            (eoj(0x02, 0x8F, 1), Esv::Get, &[0xE2], 60),
            (eoj(0x01, 0x30, 2), Esv::SetC, &[0x80, 0xB3], 20),
            (eoj(0x02, 0x90, 1), Esv::Get, &[0x80, 0xE2], 0),
        ];
        for (eoj, esv, epcs, seconds) in cases {
            assert_eq!(least(eoj, esv, set(epcs)), Duration::from_secs(seconds), "{eoj} {epcs:02X?}");
        }
    }

    #[test]
    fn timeouts_follow_the_node_between_floor_and_ceiling() {
        let config = Config::new(1);
        let mut time = ResponseTime::default();
        assert_eq!(time.timeout(&config), config.first_timeout);
        for _ in 0..50 {
            time.answered(Duration::from_micros(80));
        }
        assert_eq!(time.timeout(&config), config.min_timeout);
        assert_eq!(time.spacing(Spacing::Adaptive), Duration::ZERO);
        for _ in 0..50 {
            time.answered(Duration::from_secs(2));
        }
        let steady = time.timeout(&config);
        assert!(steady >= Duration::from_secs(2) && steady < Duration::from_secs(3), "{steady:?}");
        assert_eq!(time.spacing(Spacing::Adaptive).as_millis() / 10, 49);
        let at = Instant::from_micros;
        time.missed(at(10), at(5));
        // Another of the same moment.
        time.missed(at(11), at(5));
        assert_eq!(time.timeout(&config), steady * 2);
        for moment in 20..24 {
            time.missed(at(moment), at(moment));
        }
        assert_eq!((time.is_silent(), time.timeout(&config)), (false, config.max_timeout));
        let patient = Config { max_timeout: Duration::from_secs(600), ..config.clone() };
        assert_eq!(time.timeout(&patient), steady * 32);
        for moment in 24..320 {
            time.missed(at(moment), at(moment));
            assert_eq!((time.is_silent(), time.timeout(&patient)), (true, steady * 8));
        }
        time.answered(Duration::from_secs(2));
        assert!(time.timeout(&config) < Duration::from_secs(3));
    }
}
