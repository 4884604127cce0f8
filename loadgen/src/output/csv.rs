//! A run's seconds as CSV (RFC 4180), for spreadsheets and plots.

use std::fmt::Write as _;

use crate::record::Outcome;

/// One line per second of the run, times in seconds, sizes in bytes. An unknown figure is left empty.
#[must_use]
pub fn csv(outcome: &Outcome) -> String {
    let mut text = String::from(
        "start_s,seconds,answers,answers_per_s,failures,mean_s,p50_s,p90_s,p99_s,p999_s,max_s,server_processors,\
         server_resident_bytes\n",
    );
    for interval in &outcome.timeline {
        let latencies = interval.latencies.open();
        let per_second = if interval.seconds > 0.0 { latencies.count() as f64 / interval.seconds } else { 0.0 };
        let (start, seconds, count, failures) =
            (interval.start, interval.seconds, latencies.count(), interval.failures);
        write!(text, "{start:.3},{seconds:.3},{count},{per_second:.1},{failures}").expect("a string takes all");
        let percentiles = [50.0, 90.0, 99.0, 99.9].map(|percent| latencies.known_percentile(percent));
        let known = |latency| Some(latency).filter(|_| count > 0);
        let latencies = [known(latencies.mean())].into_iter().chain(percentiles).chain([known(latencies.max())]);
        for latency in latencies {
            text.push(',');
            if let Some(latency) = latency {
                write!(text, "{:.9}", latency.as_secs_f64()).expect("a string takes all");
            }
        }
        match interval.server {
            Some(server) => writeln!(text, ",{:.3},{}", server.processors, server.resident_bytes),
            None => writeln!(text, ",,"),
        }
        .expect("a string takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn every_second_is_a_line() {
        let mut outcome = made_up::outcome();
        outcome.timeline[2].latencies = crate::record::Latencies::new().into();
        outcome.timeline[2].server = None;
        let found = csv(&outcome);
        assert_eq!(found, include_str!("golden/timeline.csv"), "\n{found}");
    }
}
