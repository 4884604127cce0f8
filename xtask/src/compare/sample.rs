//! One run of redis-benchmark against one server, and what the server spent on it.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::subject::{Pinning, pinned};
use crate::process::{Server, children_cpu_seconds};

/// Above this share of one core redis-benchmark itself is the limit.
pub(super) const GENERATOR_BOUND: f64 = 0.9;

/// redis-benchmark's own default for -n.
const DEFAULT_REQUESTS: f64 = 100_000.0;

/// redis-benchmark with its arguments, one test at a time.
pub(super) struct Bench {
    arguments: Vec<String>,
    tests: Vec<String>,
    requests: f64,
}

/// What one run showed.
pub(super) struct Sample {
    pub(super) subject: usize,
    pub(super) test: String,
    pub(super) rate: f64,
    /// User and system time of the server per request, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// CPU time of redis-benchmark over elapsed time.
    pub(super) generator_busy: f64,
}

impl Sample {
    /// Names of the fields of [`Sample::csv`].
    pub(super) const HEADER: &str = "test,requests_per_s,server_cpu_us,p50_ms,p99_ms,generator_busy";

    /// The raw values.
    pub(super) fn csv(&self) -> String {
        let Self { test, rate, cpu_us, p50_ms, p99_ms, generator_busy, .. } = self;
        format!("{test},{rate},{cpu_us:.4},{p50_ms},{p99_ms},{generator_busy:.3}")
    }
}

impl Bench {
    /// Takes the arguments apart: the tests are run one by one, so that CPU time belongs to one command.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut bench = Self { arguments: Vec::new(), tests: Vec::new(), requests: DEFAULT_REQUESTS };
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-t" => bench.tests = words.next().context("-t needs tests")?.split(',').map(String::from).collect(),
                "-h" | "-p" | "--csv" | "-q" => bail!("{word} is set by this command"),
                _ => {
                    bench.arguments.push(word.to_owned());
                    if word == "-n" {
                        let number = words.next().context("-n needs a number")?;
                        bench.requests = number.parse()?;
                        bench.arguments.push(number.to_owned());
                    }
                }
            }
        }
        ensure!(!bench.tests.is_empty(), "name the tests by -t");
        Ok(bench)
    }

    /// The tests of `-t`.
    pub(super) fn tests(&self) -> &[String] {
        &self.tests
    }

    /// Runs one test against a server.
    pub(super) fn run(&self, test: &str, subject: usize, server: &Server, pin: Option<&Pinning>) -> Result<Sample> {
        let mut command = vec!["redis-benchmark".to_owned(), "--csv".to_owned()];
        command.extend(["-h", "127.0.0.1", "-p", &server.port().to_string(), "-t", test].map(String::from));
        command.extend(self.arguments.iter().cloned());
        let command = pinned(pin.map(|pin| pin.client.as_str()), command);

        let (server_before, client_before, start) = (server.cpu_seconds()?, children_cpu_seconds()?, Instant::now());
        let output = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {}", command[0]))?;
        let elapsed = start.elapsed().as_secs_f64();
        let server_cpu = server.cpu_seconds()? - server_before;
        let client_cpu = children_cpu_seconds()? - client_before;

        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "{} failed: {text}{}",
            command.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        let [rate, p50_ms, p99_ms] = figures(&text)?;
        let cpu_us = server_cpu * 1e6 / self.requests;
        let generator_busy = client_cpu / elapsed;
        Ok(Sample { subject, test: test.to_owned(), rate, cpu_us, p50_ms, p99_ms, generator_busy })
    }
}

/// Rate, p50 and p99 from the output of `--csv`, found by the names of its header line.
fn figures(text: &str) -> Result<[f64; 3]> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"test\""));
    let (Some(header), Some(values)) = (lines.next(), lines.next()) else {
        bail!("no result in the output of redis-benchmark: {text}");
    };
    let values: Vec<&str> = values.split("\",\"").map(|value| value.trim_matches('"')).collect();
    let field = |name: &str| -> Result<f64> {
        let index = header.split(',').position(|field| field.trim_matches('"') == name);
        let value = index.and_then(|index| values.get(index)).with_context(|| format!("no {name} in {header}"))?;
        Ok(value.parse()?)
    };
    Ok([field("rps")?, field("p50_latency_ms")?, field("p99_latency_ms")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_taken_apart() {
        let bench = Bench::parse("-t set,get -c 50 -n 2000 -P 16").unwrap();
        assert_eq!(bench.tests, ["set", "get"]);
        assert_eq!(bench.arguments, ["-c", "50", "-n", "2000", "-P", "16"]);
        assert!((bench.requests - 2000.0).abs() < 1e-9);
        assert!(Bench::parse("-c 50").is_err());
        assert!(Bench::parse("-t get -p 1").is_err());
    }

    #[test]
    fn figures_are_found_by_name() {
        let text = "WARNING: x\n\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\"p99_latency_ms\"\n\
                    \"GET\",\"10.50\",\"0.1\",\"0.2\",\"0.3\"\n";
        assert_eq!(figures(text).unwrap(), [10.5, 0.2, 0.3]);
        assert!(figures("nothing").is_err());
    }
}
