//! A run's seconds as an HdrHistogram interval log, which HdrHistogram's plotter and log processor read.

use std::io;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError};

use crate::record::Outcome;

/// Latencies in the log are nanoseconds; the maxima in its third column are milliseconds, as the format has them.
const NANOS_PER_MILLI: f64 = 1e6;

/// One line per second of a run that began at `began`.
///
/// # Panics
/// Never: memory takes all.
#[must_use]
pub fn hdr_log(outcome: &Outcome, began: SystemTime) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(outcome, began, &mut bytes).expect("histograms can be written to memory");
    bytes
}

fn write(
    outcome: &Outcome,
    began: SystemTime,
    out: &mut impl io::Write,
) -> Result<(), IntervalLogWriterError<hdrhistogram::serialization::V2DeflateSerializeError>> {
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment(&outcome.description.replace('\n', " "))
        .add_comment("latencies in nanoseconds, Interval_Max in milliseconds")
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(NANOS_PER_MILLI);
    let mut log = builder.begin_log_with(out, &mut serializer)?;
    for interval in &outcome.timeline {
        let (start, length) = (Duration::from_secs_f64(interval.start), Duration::from_secs_f64(interval.seconds));
        log.write_histogram(interval.latencies.open().histogram(), start, length, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::output::made_up;
    use crate::record::Latencies;

    #[test]
    fn the_log_can_be_read_again() {
        let outcome = made_up::outcome();
        let log = hdr_log(&outcome, SystemTime::UNIX_EPOCH + Duration::from_secs(1000));
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&log) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                let latencies = Latencies::from_text(interval.encoded_histogram()).unwrap();
                found.push((interval.start_timestamp().as_secs_f64(), latencies));
            }
        }
        let expected: Vec<_> = outcome.timeline.iter().map(|each| (each.start, each.latencies.open())).collect();
        assert_eq!(found, expected);
    }
}
