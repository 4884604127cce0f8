//! Latencies: an HdrHistogram in nanoseconds.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// The longest latency told apart: an hour.
const MOST: u64 = 3_600_000_000_000;

/// Digits of a latency that are kept: an error of at most 1 in 1000.
const DIGITS: u8 = 3;

/// A distribution of latencies in nanoseconds, exact to three digits. Serialised as the usual compressed HdrHistogram text.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// No latencies yet.
    #[must_use]
    pub fn new() -> Self {
        // It grows with what is recorded: a run of microseconds stays small in the processor's cache.
        let mut histogram = Histogram::new_with_max(1_000_000, DIGITS).expect("the bounds are valid");
        histogram.auto(true);
        Self { histogram }
    }

    /// Adds one.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.histogram.record(nanos.min(MOST)).expect("an hour is not too long to grow to");
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("it grows as needed");
    }

    /// The same to two digits: a fraction of the bytes.
    #[must_use]
    pub fn coarse(&self) -> Self {
        let mut histogram = Histogram::new_with_max(1_000_000, 2).expect("the bounds are valid");
        histogram.auto(true);
        histogram.add(&self.histogram).expect("it grows as needed");
        Self { histogram }
    }

    /// Forgets all, but keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency that `percent` of all do not exceed; nothing where there are none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_percentile(percent))
    }

    /// The same, if at least one value is expected beyond it: else it is the maximum by another name.
    #[must_use]
    pub fn known_percentile(&self, percent: f64) -> Option<Duration> {
        let is_known = self.count() as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-9;
        is_known.then(|| self.percentile(percent))
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// The shortest.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.histogram.is_empty() { 0 } else { self.histogram.min() })
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram.mean() as u64)
    }

    /// The standard deviation.
    #[must_use]
    pub fn deviation(&self) -> Duration {
        Duration::from_nanos(self.histogram.stdev() as u64)
    }

    /// The HdrHistogram itself.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// As HdrHistogram's tools exchange it: V2, deflated, in base64.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes).expect("writing to memory does not fail");
        STANDARD.encode(bytes)
    }

    /// Reads [`to_text`](Self::to_text)'s form.
    ///
    /// # Errors
    /// When it is not such a text.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let bytes = STANDARD.decode(text).map_err(|error| format!("a histogram that is not base64: {error}"))?;
        let mut histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("not an HdrHistogram: {error}"))?;
        histogram.auto(true);
        Ok(Self { histogram })
    }
}

/// Latencies that are complete, in a small part of the memory: a long run has a histogram for each of its seconds.
#[derive(Clone, Debug)]
pub struct Sealed {
    count: u64,
    /// As [`Latencies::to_text`] gives it.
    text: Box<str>,
}

impl Sealed {
    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latencies.
    #[must_use]
    pub fn open(&self) -> Latencies {
        Latencies::from_text(&self.text).expect("it was written as such a text, or read once")
    }
}

impl From<Latencies> for Sealed {
    fn from(latencies: Latencies) -> Self {
        Self { count: latencies.count(), text: latencies.to_text().into() }
    }
}

impl PartialEq for Sealed {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.open() == other.open()
    }
}

impl Serialize for Sealed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Latencies::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_keep_three_digits_and_survive_their_text() {
        #[track_caller]
        fn check(nanos: u64) {
            let mut latencies = Latencies::new();
            latencies.record(nanos);
            let again = Latencies::from_text(&latencies.to_text()).unwrap();
            for found in [latencies.percentile(50.0), again.percentile(50.0)] {
                let found = found.as_nanos() as u64;
                assert!(found.abs_diff(nanos.min(MOST)) <= nanos / 1000, "{nanos}: {found}");
            }
            assert_eq!(again.count(), 1);
        }
        check(0);
        check(1);
        check(999_999);
        check(1_234_567_890);
        check(u64::MAX);
    }

    #[test]
    fn sealed_latencies_are_the_same_and_small() {
        let mut latencies = Latencies::new();
        (0..50_000).for_each(|number: u64| latencies.record(100_000 + number.pow(2) % 900_000));
        let sealed = Sealed::from(latencies.clone());
        assert_eq!((sealed.count(), sealed.open()), (50_000, latencies));
        assert!(sealed.text.len() < 8 << 10, "{} bytes", sealed.text.len());
    }

    #[test]
    fn a_percentile_needs_a_value_beyond_it() {
        #[track_caller]
        fn check(count: u64, percent: f64, is_known: bool) {
            let mut latencies = Latencies::new();
            (0..count).for_each(|value| latencies.record(value));
            assert_eq!(latencies.known_percentile(percent).is_some(), is_known, "p{percent} of {count}");
        }
        check(0, 50.0, false);
        check(1, 50.0, false);
        check(2, 50.0, true);
        check(99, 99.0, false);
        check(100, 99.0, true);
        check(999, 99.9, false);
        check(1000, 99.9, true);
        check(10_000, 99.99, true);
    }

    #[test]
    fn a_text_that_is_no_histogram_is_refused() {
        assert!(Latencies::from_text("?").unwrap_err().contains("not base64"));
        assert!(Latencies::from_text("AAAA").unwrap_err().contains("not an HdrHistogram"));
    }
}
