//! `loadgen wrk`: the options and the output of wrk, and of wrk2 (`-R`).

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::answers::{answered, answered_latencies};
use super::run::run;
use super::words::Words;
use crate::cli::Invalid;
use crate::cli::drive::ReadScenario;
use crate::front::Exit;
use crate::number;
use crate::output;
use crate::record::{Failure, Interval, Latencies, Outcome};

/// Run a command line of wrk or wrk2.
///
/// Measures an HTTP/1.1 server in a closed loop, or in an open one with -R, and prints what wrk prints. `loadgen http` can
/// do more: check answers, mixes of paths, objectives, plots.
#[derive(Args, Clone, Debug)]
pub(in crate::cli) struct Wrk {
    /// Connections to keep open
    #[arg(short, long, value_name = "N", default_value = "10", value_parser = number::size)]
    connections: usize,

    /// Duration of the test
    #[arg(short, long, value_name = "T", default_value = "10s", value_parser = number::duration)]
    duration: Duration,

    /// Threads
    #[arg(short, long, value_name = "N", default_value = "2", value_parser = number::size)]
    threads: usize,

    /// A script that does no more than set wrk.method, wrk.path, wrk.body and wrk.headers["Name"] to texts
    #[arg(short, long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// A header to add to the request. Can be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// Print latency percentiles
    #[arg(long, visible_short_alias = 'L')]
    latency: bool,

    /// How long an answer may take
    #[arg(long, value_name = "T", default_value = "2s", value_parser = number::duration)]
    timeout: Duration,

    /// wrk2's: requests per second in an open loop, latencies counted from the intended time
    #[arg(short = 'R', long, value_name = "N", value_parser = number::parse_rate)]
    rate: Option<f64>,

    /// The URL
    url: String,
}

/// The statements of a script, if it is simple.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Script {
    method: Option<String>,
    path: Option<String>,
    body: Option<String>,
    headers: Vec<String>,
}

impl Wrk {
    /// Runs it.
    pub(in crate::cli) fn run(&self, scenario: ReadScenario) -> Exit {
        let words = match self.words() {
            Ok(words) => words,
            Err(error) => {
                eprintln!("error: {error}");
                return Exit::Usage;
            }
        };
        let (duration, url) = (number::duration_text(self.duration), &self.url);
        let head = format!(
            "Running {duration} test @ {url}\n  {} threads and {} connections\n",
            self.threads, self.connections
        );
        if let Err(error) = output::print(&head) {
            eprintln!("error: {error}");
            return Exit::Failed;
        }
        run(&words, scenario, &|outcome| self.render(outcome))
    }

    /// The same load in our own words.
    pub(in crate::cli) fn words(&self) -> Result<Vec<String>, Invalid> {
        let script = match &self.script {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Invalid::new("--script", path.display(), format_args!("a file that can be read ({error})"))
                })?;
                Script::read(&text)?
            }
            None => Script::default(),
        };
        let mut words = Words::new(["http"]);
        words.0.push(match &script.path {
            Some(path) => with_path(&self.url, path),
            None => self.url.clone(),
        });
        words.option("--connections", self.connections);
        words.option("--threads", self.threads);
        words.option("--duration", number::duration_text(self.duration));
        words.option("--timeout", number::duration_text(self.timeout));
        words.option("--warm-up", 0);
        words.maybe("--rate", self.rate);
        // As wrk does.
        words.flag("--insecure", self.url.starts_with("https:"));
        for header in self.headers.iter().chain(&script.headers) {
            words.option("--header", header);
        }
        words.maybe("--method", script.method);
        words.maybe("--body", script.body);
        Ok(words.0)
    }

    fn render(&self, outcome: &Outcome) -> String {
        let latencies = answered_latencies(outcome);
        let mut text = String::from("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n");
        let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
        text.push_str(&stats_line(
            "Latency",
            [micros(latencies.mean()), micros(latencies.deviation()), micros(latencies.max())].map(time_text),
            within_deviation(&latencies),
        ));
        let rates = self.thread_rates(outcome);
        let (mean, deviation) = mean_and_deviation(&rates);
        let most = rates.iter().copied().fold(0.0, f64::max);
        let near = rates.iter().filter(|rate| (**rate - mean).abs() <= deviation).count();
        let share = if rates.is_empty() { 0.0 } else { near as f64 * 100.0 / rates.len() as f64 };
        text.push_str(&stats_line("Req/Sec", [mean, deviation, most].map(metric_text), share));
        if self.rate.is_some() {
            text.push_str("  Latency Distribution (HdrHistogram - Recorded Latency)\n");
            distribution(&latencies, &[50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0], 3, &mut text);
        } else if self.latency {
            text.push_str("  Latency Distribution\n");
            distribution(&latencies, &[50.0, 75.0, 90.0, 99.0], 0, &mut text);
        }
        self.totals(outcome, &mut text);
        text
    }

    fn totals(&self, outcome: &Outcome, text: &mut String) {
        let per_second = |count: f64| if outcome.seconds > 0.0 { count / outcome.seconds } else { 0.0 };
        let (requests, bytes) = (answered(outcome), outcome.bytes_received as f64);
        let runtime = time_text(outcome.seconds * 1e6);
        let count = |kinds: &[Failure]| kinds.iter().map(|kind| outcome.failures_of(*kind)).sum::<u64>();
        let connect = count(&[Failure::Refused, Failure::Resources, Failure::Tls]);
        let read = count(&[Failure::Reset, Failure::Closed, Failure::Protocol]);
        let (timeout, rejected) = (count(&[Failure::TimedOut]), count(&[Failure::Rejected]));
        let mut push = |line: String| writeln!(text, "{line}").expect("a string takes all");
        push(format!("  {requests} requests in {runtime}, {}B read", binary_text(bytes)));
        if connect + read + timeout > 0 {
            push(format!("  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}"));
        }
        if rejected > 0 {
            push(format!("  Non-2xx or 3xx responses: {rejected}"));
        }
        push(format!("Requests/sec: {:>9.2}", per_second(requests as f64)));
        push(format!("Transfer/sec: {:>10}B", binary_text(per_second(bytes))));
    }

    /// Each thread's rate in each second, on average over the threads.
    fn thread_rates(&self, outcome: &Outcome) -> Vec<f64> {
        let whole = outcome.timeline.iter().filter(|interval| interval.seconds > 0.0);
        // The timeline does not tell failures apart: an error answers as often in each second as in the whole run.
        let answers = (answered(outcome) - outcome.answers()) as f64 / outcome.failed().max(1) as f64;
        let count = |interval: &Interval| interval.latencies.count() as f64 + answers * interval.failures as f64;
        whole.map(|interval| count(interval) / interval.seconds / self.threads as f64).collect()
    }
}

impl Script {
    /// Reads assignments of texts; everything else is more than a script may do here.
    fn read(text: &str) -> Result<Self, Invalid> {
        let mut script = Self::default();
        for line in text.lines() {
            let line = line.trim().trim_end_matches(';').trim_end();
            if line.is_empty() || line.starts_with("--") {
                continue;
            }
            script.assign(line).ok_or_else(|| {
                Invalid::new(
                    "--script's line",
                    line,
                    "an assignment of a text to wrk.method, wrk.path, wrk.body or wrk.headers[\"Name\"]: Lua is not run \
                     (`loadgen http` fills paths, headers and bodies with {key}, {value}, {random}, {sequence})",
                )
            })?;
        }
        Ok(script)
    }

    fn assign(&mut self, line: &str) -> Option<()> {
        let (name, value) = line.split_once('=')?;
        let value = lua_text(value.trim())?;
        match name.trim() {
            "wrk.method" => self.method = Some(value),
            "wrk.path" => self.path = Some(value),
            "wrk.body" => self.body = Some(value),
            name => {
                let name = name.strip_prefix("wrk.headers[")?.strip_suffix(']')?;
                self.headers.push(format!("{}: {value}", lua_text(name.trim())?));
            }
        }
        Some(())
    }
}

/// A text in quotes, with the escapes that bodies have.
fn lua_text(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let inner = text[1..].strip_suffix(quote)?;
    let (mut plain, mut chars) = (String::new(), inner.chars());
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other @ ('\\' | '"' | '\'') => other,
                _ => return None,
            }),
            // A text that ends before the line does: an expression.
            _ if char == quote => return None,
            _ => plain.push(char),
        }
    }
    Some(plain)
}

/// The URL with another path.
fn with_path(url: &str, path: &str) -> String {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
    format!("{}{path}", &url[..end])
}

fn stats_line(name: &str, [mean, deviation, most]: [String; 3], near: f64) -> String {
    format!("    {name:<10}{}{}{}{near:>8.2}%\n", padded(&mean, 8), padded(&deviation, 10), padded(&most, 9))
}

fn distribution(latencies: &Latencies, percents: &[f64], digits: usize, text: &mut String) {
    for percent in percents {
        let latency = time_text(latencies.percentile(*percent).as_secs_f64() * 1e6);
        writeln!(text, "{percent:>7.digits$}%{}", padded(&latency, 10)).expect("a string takes all");
    }
}

/// Right-aligned so that numbers stand above each other, whether their unit has none, one or two letters.
fn padded(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).take_while(char::is_ascii_alphabetic).count();
    let blanks = 2 - letters;
    format!("{text:>width$}{:blanks$}", "", width = width - blanks)
}

/// Microseconds with wrk's units.
fn time_text(micros: f64) -> String {
    let (value, unit) = match micros {
        ..1e3 => (micros, "us"),
        ..1e6 => (micros / 1e3, "ms"),
        ..6e7 => (micros / 1e6, "s"),
        ..3.6e9 => (micros / 6e7, "m"),
        _ => (micros / 3.6e9, "h"),
    };
    format!("{value:.2}{unit}")
}

fn metric_text(value: f64) -> String {
    scaled(value, 1000.0, ["", "k", "M", "G", "T"])
}

fn binary_text(value: f64) -> String {
    scaled(value, 1024.0, ["", "K", "M", "G", "T"])
}

fn scaled(mut value: f64, base: f64, units: [&str; 5]) -> String {
    let mut unit = 0;
    while value >= base && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

/// The share of latencies within a standard deviation of the mean, in percent.
fn within_deviation(latencies: &Latencies) -> f64 {
    if latencies.count() == 0 {
        return 0.0;
    }
    let (mean, deviation) = (latencies.mean().as_nanos() as u64, latencies.deviation().as_nanos() as u64);
    let near = latencies.histogram().count_between(mean.saturating_sub(deviation), mean.saturating_add(deviation));
    near as f64 * 100.0 / latencies.count() as f64
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, square.sqrt())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::output::made_up;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        wrk: Wrk,
    }

    fn wrk(words: &str) -> Wrk {
        Alone::parse_from(words.split(' ')).wrk
    }

    #[test]
    fn published_command_lines_become_ours() {
        #[track_caller]
        fn check(words: &str, expected: &str) {
            let found = wrk(words).words().unwrap().join(" ");
            assert_eq!(found, expected);
            crate::cli::scenario(&wrk(words).words().unwrap()).unwrap();
        }
        check(
            "wrk -t16 -c100 -d30 http://127.0.0.1:3000/json",
            "http http://127.0.0.1:3000/json --connections=100 --threads=16 --duration=30s --timeout=2s --warm-up=0",
        );
        check(
            "wrk -d10 -c20 -t10 http://localhost:8000/get?key=foo",
            "http http://localhost:8000/get?key=foo --connections=20 --threads=10 --duration=10s --timeout=2s --warm-up=0",
        );
        check(
            "wrk -R 2k -H Accept:x --latency --timeout 500ms https://localhost",
            "http https://localhost --connections=10 --threads=2 --duration=10s --timeout=500ms --warm-up=0 --rate=2000 \
             --insecure --header=Accept:x",
        );
    }

    #[test]
    fn simple_scripts_are_read() {
        let text =
            "-- POST\nwrk.method = \"POST\"\nwrk.body   = '{\"a\": \"b\"}'\nwrk.headers[\"Content-Type\"] = \"x/y\";\n";
        let expected = Script {
            method: Some("POST".to_owned()),
            path: None,
            body: Some("{\"a\": \"b\"}".to_owned()),
            headers: vec!["Content-Type: x/y".to_owned()],
        };
        assert_eq!(Script::read(text), Ok(expected));
        for wrong in
            ["request = function()", "wrk.path = \"/\" .. n", "wrk.headers[x] = \"y\"", "wrk.port = \"1\"", "x"]
        {
            let error = Script::read(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--script's line is `{wrong}`, expected an assignment")), "{error}");
        }
        assert_eq!(with_path("http://a:1/b?c", "/d"), "http://a:1/d");
        assert_eq!(with_path("http://a", "/d"), "http://a/d");
    }

    #[test]
    fn the_output_is_wrks() {
        #[track_caller]
        fn check(words: &str, expected: &str) {
            let found = wrk(words).render(&made_up::outcome());
            assert_eq!(found, expected, "\n{found}");
        }
        check("wrk --latency http://localhost", include_str!("golden/wrk.txt"));
        check("wrk -R1001 http://localhost", include_str!("golden/wrk2.txt"));
    }
}
