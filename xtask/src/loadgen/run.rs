//! Runs of generators, in turns.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::Options;
use super::contest::{Contest, Generator, Program};
use super::tools::{Running, Tools};
use crate::process::{children_cpu_seconds, run_quietly};

/// One run of one generator.
pub(super) struct Sample {
    pub(super) generator: usize,
    /// Requests per second, as the generator says.
    pub(super) rate: f64,
    /// User and system time of the generator per request, in microseconds.
    pub(super) cpu_us: f64,
    /// The generator's CPU time by elapsed time.
    pub(super) busy: f64,
}

/// Lets every generator that is installed run once a round; the order turns round each time.
pub(super) fn interleaved(options: &Options, tools: &Tools, contest: &Contest) -> Result<Vec<Sample>> {
    let target = Running::start(&contest.target, tools)?;
    let mut entrants = Vec::new();
    for (index, generator) in contest.generators.iter().enumerate() {
        match tools.find(generator.program) {
            Ok(path) => entrants.push((index, path)),
            Err(error) => println!("skipped: {} in {} ({error:#})", generator.program.name(), contest.name),
        }
    }
    let mut samples = Vec::new();
    for _ in 0..options.rounds {
        for (index, path) in &entrants {
            let generator = &contest.generators[*index];
            let sample = one_run(options, tools, generator, path, &target.address());
            let sample = sample.with_context(|| format!("{} in {}", generator.program.name(), contest.name))?;
            samples.push(Sample { generator: *index, ..sample });
        }
        entrants.reverse();
    }
    Ok(samples)
}

fn one_run(options: &Options, tools: &Tools, generator: &Generator, path: &str, address: &str) -> Result<Sample> {
    let requests = (generator.per_second as f64 * options.seconds) as u64;
    let port = address.rsplit(':').next().unwrap_or_default();
    let arguments: Vec<String> = generator
        .arguments
        .split_whitespace()
        .map(|word| {
            let word = word.replace("{address}", address).replace("{port}", port);
            let word = word.replace("{requests}", &requests.to_string());
            let word = word.replace("{seconds}", &format!("{:.0}", options.seconds.ceil()));
            let word = word.replace("{proto}", &tools.folder.join("greeter.proto").display().to_string());
            word.replace("{data}", &tools.folder.join("greeting").display().to_string())
        })
        .collect();
    let (before, start) = (children_cpu_seconds()?, Instant::now());
    let text = run_quietly(&mut tools.command(path, &arguments))?;
    let elapsed = start.elapsed().as_secs_f64();
    let cpu = children_cpu_seconds()? - before;
    let (done, rate) = result(generator.program, &text, requests).with_context(|| text.clone())?;
    ensure!(done > 0.0, "nothing was answered: {text}");
    Ok(Sample { generator: 0, rate, cpu_us: cpu * 1e6 / done, busy: cpu / elapsed })
}

/// Requests answered, and requests per second, from what a generator printed.
fn result(program: Program, text: &str, requests: u64) -> Result<(f64, f64)> {
    let requests = requests as f64;
    Ok(match program {
        Program::Ours => {
            ensure!(text.contains("\"failures\": []"), "there are failures");
            let (count, seconds) = (number_after(text, "\"answers\":"), number_after(text, "\"seconds\":")?);
            let count = count.unwrap_or(requests);
            (count, count / seconds)
        }
        Program::Wrk => {
            let line = text.lines().find(|line| line.contains(" requests in ")).context("no `requests in`")?;
            let count: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
            (count, number_after(text, "Requests/sec:")?)
        }
        Program::RedisBenchmark => {
            let line = text.lines().find(|line| line.starts_with("\"SET\",\"")).context("no line of SET")?;
            (requests, line.split('"').nth(3).unwrap_or_default().parse()?)
        }
        Program::H2load => {
            ensure!(text.contains(" 0 failed, 0 errored"), "there are failures");
            let line = text.lines().find(|line| line.starts_with("finished in ")).context("no `finished in`")?;
            let rate = line.split_whitespace().nth(3).unwrap_or_default();
            (requests, rate.parse()?)
        }
        Program::Ghz => (number_after(text, "Count:")?, number_after(text, "Requests/sec:")?),
        Program::Floor => {
            let figures: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            let [done, seconds, _, _] = figures[..] else { bail!("four figures are expected") };
            (done, done / seconds)
        }
    })
}

/// The first number behind a word.
fn number_after(text: &str, word: &str) -> Result<f64> {
    let (_, rest) = text.split_once(word).with_context(|| format!("no {word}"))?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    Ok(rest[..end].parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_understood() {
        #[track_caller]
        fn check(program: Program, text: &str, expected: (f64, f64)) {
            assert_eq!(result(program, text, 1000).unwrap(), expected);
        }
        let wrk = "  Req/Sec   101.58k\n  201998 requests in 2.00s, 15.03MB read\nRequests/sec: 100928.00\n";
        check(Program::Wrk, wrk, (201_998.0, 100_928.0));
        let redis = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"65724.62\",\"0.4\"\n";
        check(Program::RedisBenchmark, redis, (1000.0, 65_724.62));
        let h2load = "finished in 517.65ms, 386362.19 req/s, 30.21MB/s\nrequests: 1 total, 0 failed, 0 errored\n";
        check(Program::H2load, h2load, (1000.0, 386_362.19));
        check(Program::Ghz, "  Count:\t20000\n  Requests/sec:\t24967.60\n", (20_000.0, 24_967.6));
        check(Program::Floor, "432760 2.0 0 4.1\n", (432_760.0, 216_380.0));
        check(Program::Ours, "{\n\"seconds\": 2.0,\n\"failures\": []\n}", (1000.0, 500.0));
        assert!(result(Program::Ours, "{\n\"seconds\": 2.0,\n\"failures\": [\n{}]\n}", 1000).is_err());
    }
}
