//! The output of other load generators about their runs.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::record::{Failure, FailureCount, Outcome, Told};

/// The format of a program's output, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Ours, with `--json -`.
    Loadgen,
    Wrk,
    /// With `--csv`, of one test.
    RedisBenchmark,
    H2load,
    Ghz,
    /// Any other: a line `begin` when what is before it does not count, and a line of figures: answers, seconds, lost; if there are
    /// more, wrong, a figure of its own, p50 and p99 in microseconds. Then it may wait for the end of its input.
    Figures,
}

/// The parts read from a program's output.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    pub(super) told: Told,
    /// How long was measured.
    pub(super) seconds: f64,
    pub(super) failures: Vec<FailureCount>,
}

impl Format {
    /// By the program's name.
    pub(super) fn of(words: &[String]) -> Self {
        match words.first().and_then(|word| Path::new(word).file_name()?.to_str()) {
            Some("loadgen") => Self::Loadgen,
            Some("wrk") => Self::Wrk,
            Some("redis-benchmark") => Self::RedisBenchmark,
            Some("h2load") => Self::H2load,
            Some("ghz") => Self::Ghz,
            _ => Self::Figures,
        }
    }

    /// Understands what was printed; the words say how many requests were asked for, where the program does not.
    pub(super) fn read(self, words: &[String], text: &str) -> Result<Read> {
        match self {
            Self::Loadgen => {
                let outcome: Outcome = serde_json::from_str(text).context("expected what --json - prints")?;
                let percentile = |percent| Some(outcome.main_latencies().percentile(percent).as_secs_f64());
                let told = Told { answers: outcome.answers(), p50: percentile(50.0), p99: percentile(99.0) };
                Ok(Read { told, seconds: outcome.seconds, failures: outcome.failures })
            }
            Self::Wrk => {
                let line = text.lines().find(|line| line.contains(" requests in ")).context("no `requests in`")?;
                let answers: u64 = line.split_whitespace().next().unwrap_or_default().parse()?;
                let rejected = number_after(text, "Non-2xx or 3xx responses:").map_or(0, |count| count as u64);
                let failures = counted(&[(Failure::Rejected, rejected)]);
                let answers = answers.saturating_sub(rejected);
                let per_second = number_after(text, "Requests/sec:").context("no `Requests/sec:`")?;
                Ok(Read { told: Told::count(answers), seconds: (answers + rejected) as f64 / per_second, failures })
            }
            Self::RedisBenchmark => redis_benchmark(words, text),
            Self::H2load => {
                let line = text.lines().find(|line| line.starts_with("requests: ")).context("no `requests:`")?;
                let count = |what: &str| -> Result<u64> {
                    let before = line.split_once(what).with_context(|| format!("no `{what}`"))?.0;
                    Ok(before.trim_end().rsplit([' ', ',']).next().unwrap_or_default().parse()?)
                };
                let answers = count(" succeeded")?;
                let failures = counted(&[
                    (Failure::Rejected, count(" failed")?.saturating_sub(count(" errored")?)),
                    (Failure::Closed, count(" errored")?),
                ]);
                let line = text.lines().find(|line| line.starts_with("finished in ")).context("no `finished in`")?;
                let per_second: f64 = line.split_whitespace().nth(3).unwrap_or_default().parse()?;
                Ok(Read { told: Told::count(answers), seconds: answers as f64 / per_second, failures })
            }
            Self::Ghz => {
                let count = number_after(text, "Count:").context("no `Count:`")?;
                let answers = number_after(text, "[OK]").context("no `[OK]`")? as u64;
                let per_second = number_after(text, "Requests/sec:").context("no `Requests/sec:`")?;
                let failures = counted(&[(Failure::Rejected, (count as u64).saturating_sub(answers))]);
                Ok(Read { told: Told::count(answers), seconds: count / per_second, failures })
            }
            Self::Figures => {
                let figures = text.lines().rev().find_map(figures).context("no line of figures")?;
                let at = |place: usize| figures.get(place).copied();
                let micros = |place| at(place).map(|micros| micros / 1e6);
                let failures = counted(&[
                    (Failure::TimedOut, at(2).unwrap_or(0.0) as u64),
                    (Failure::Wrong, at(3).filter(|_| figures.len() > 4).unwrap_or(0.0) as u64),
                ]);
                let told = Told { answers: figures[0] as u64, p50: micros(5), p99: micros(6) };
                Ok(Read { told, seconds: figures[1], failures })
            }
        }
    }
}

fn redis_benchmark(words: &[String], text: &str) -> Result<Read> {
    let of = words.iter().position(|word| word == "-n").and_then(|place| words.get(place + 1));
    let answers: u64 = of.context("redis-benchmark needs -n")?.parse()?;
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"test\""));
    let (Some(header), Some(values)) = (lines.next(), lines.next()) else { bail!("no result of --csv") };
    let values: Vec<&str> = values.split("\",\"").map(|value| value.trim_matches('"')).collect();
    let field = |name: &str| -> Result<f64> {
        let place = header.split(',').position(|field| field.trim_matches('"') == name);
        let value = place.and_then(|place| values.get(place)).with_context(|| format!("no {name} in {header}"))?;
        Ok(value.parse()?)
    };
    let seconds = answers as f64 / field("rps")?;
    let millis = |name| Ok::<_, anyhow::Error>(Some(field(name)? / 1e3));
    let told = Told { answers, p50: millis("p50_latency_ms")?, p99: millis("p99_latency_ms")? };
    Ok(Read { told, seconds, failures: Vec::new() })
}

/// A line of three numbers at least, and of nothing else.
pub(super) fn figures(line: &str) -> Option<Vec<f64>> {
    let figures: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    (figures.len() >= 3).then_some(figures)
}

fn counted(all: &[(Failure, u64)]) -> Vec<FailureCount> {
    let some = all.iter().filter(|(_, count)| *count > 0);
    some.map(|(kind, count)| FailureCount { kind: *kind, count: *count, examples: Vec::new(), latencies: None })
        .collect()
}

/// The first number behind a word.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.split_once(word)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn outputs_are_understood() {
        #[track_caller]
        fn check(line: &str, text: &str, answers: u64, per_second: f64, failed: u64) {
            let line = words(line);
            let read = Format::of(&line).read(&line, text).unwrap();
            assert_eq!(read.told.answers, answers);
            assert!((answers as f64 / read.seconds / per_second - 1.0).abs() < 0.01, "{read:?}");
            assert_eq!(read.failures.iter().map(|failure| failure.count).sum::<u64>(), failed);
        }
        let wrk = "  Req/Sec   101.58k\n  201998 requests in 2.00s, 15.03MB read\nRequests/sec: 100928.00\n";
        check("/usr/bin/wrk -c50", wrk, 201_998, 100_928.0, 0);
        let bad = format!("{wrk}  Non-2xx or 3xx responses: 1998\n");
        check("wrk", &bad, 200_000, 99_929.7, 1998);
        let redis = "WARNING: x\n\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\
                     \"SET\",\"500.50\",\"0.1\",\"0.2\",\"0.3\"\n";
        check("redis-benchmark -n 1000 --csv", redis, 1000, 500.5, 0);
        let h2load = "finished in 517.65ms, 386362.19 req/s, 30.21MB/s\n\
                      requests: 200100 total, 200100 started, 200100 done, 200000 succeeded, 100 failed, 40 errored, 0 timeout\n";
        check("h2load", h2load, 200_000, 386_362.19, 100);
        let ghz = "  Count:\t20000\n  Requests/sec:\t24967.60\n\nStatus code distribution:\n  [OK]   19990 responses\n";
        check("ghz", ghz, 19_990, 24_955.1, 10);
        check("udp", "432760 2.0 0 4.1\n", 432_760, 216_380.0, 0);
        check("generator", "found it\n100 0.5 2 1 3.5 60 93\n", 100, 200.0, 3);
        let ours = serde_json::to_string(&crate::output::made_up::run_of(100, 1000)).unwrap();
        check("../../target/release/loadgen http", &ours, 100, 50.0, 2);
    }

    #[test]
    fn latencies_are_taken_where_they_are_told() {
        let line = words("redis-benchmark -n 10");
        let text = "\"test\",\"rps\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"GET\",\"10\",\"0.2\",\"0.3\"\n";
        let told = Format::RedisBenchmark.read(&line, text).unwrap().told;
        assert_eq!(told, Told { answers: 10, p50: Some(0.0002), p99: Some(0.0003) });
        let told = Format::Figures.read(&[], "10 1 0 0 5 60 90").unwrap().told;
        assert_eq!(told, Told { answers: 10, p50: Some(0.00006), p99: Some(0.00009) });
    }

    #[test]
    fn unparsable_generator_output_is_an_error() {
        for (line, text) in
            [("wrk", "nothing"), ("redis-benchmark", "\"test\""), ("h2load", ""), ("ghz", ""), ("x", "1 2")]
        {
            let line = words(line);
            assert!(Format::of(&line).read(&line, text).is_err(), "{line:?}");
        }
    }
}
