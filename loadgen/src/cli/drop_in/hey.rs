//! `loadgen hey`: the options and the output of hey.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;

use super::answers::{answered, answered_latencies, bars};
use super::run::run;
use super::words::Words;
use crate::cli::Invalid;
use crate::cli::drive::ReadScenario;
use crate::front::Exit;
use crate::number;
use crate::record::{Failure, Latencies, Outcome};

/// Run a command line of hey.
///
/// Measures an HTTP/1.1 server in a closed loop, and prints what hey prints. `loadgen http` can do more: an open loop,
/// checked answers, mixes of paths, objectives, plots.
#[derive(Args, Clone, Debug)]
pub(in crate::cli) struct Hey {
    /// Number of requests
    #[arg(short = 'n', value_name = "N", default_value = "200", value_parser = number::count)]
    requests: u64,

    /// Workers, each with a connection
    #[arg(short = 'c', value_name = "N", default_value = "50", value_parser = number::size)]
    workers: usize,

    /// Requests per second of each worker
    #[arg(short = 'q', value_name = "RATE", value_parser = number::parse_rate)]
    rate: Option<f64>,

    /// Duration of the test, instead of a number of requests
    #[arg(short = 'z', value_name = "T", value_parser = number::duration)]
    duration: Option<Duration>,

    /// HTTP method
    #[arg(short = 'm', value_name = "METHOD")]
    method: Option<String>,

    /// A header. Can be given several times
    #[arg(short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// How long an answer may take, in seconds; 0 is for ever
    #[arg(short = 't', value_name = "SECONDS", default_value = "20")]
    timeout: u64,

    /// The Accept header
    #[arg(short = 'A', value_name = "TYPE")]
    accept: Option<String>,

    /// The body
    #[arg(short = 'd', value_name = "TEXT")]
    body: Option<String>,

    /// The body, from a file
    #[arg(short = 'D', value_name = "FILE")]
    body_file: Option<PathBuf>,

    /// The Content-Type header
    #[arg(short = 'T', value_name = "TYPE", default_value = "text/html")]
    content_type: String,

    /// The User-Agent header
    #[arg(short = 'U', value_name = "TEXT")]
    user_agent: Option<String>,

    /// Basic authentication
    #[arg(short = 'a', value_name = "USER:PASSWORD")]
    login: Option<String>,

    /// The Host header (-host)
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// A new connection for every request (-disable-keepalive)
    #[arg(long)]
    disable_keepalive: bool,

    /// Ask for no compression (-disable-compression)
    #[arg(long)]
    disable_compression: bool,

    /// Accepted: redirections are never followed here (-disable-redirects)
    #[arg(long)]
    disable_redirects: bool,

    /// Threads (-cpus)
    #[arg(long, value_name = "N", value_parser = number::size)]
    cpus: Option<usize>,

    /// The URL
    url: String,
}

/// hey's options of several letters, which have one dash as Go's have.
const LONG: [&str; 5] = ["host", "disable-keepalive", "disable-compression", "disable-redirects", "cpus"];

/// Gives hey's long options the second dash that ours have.
pub(in crate::cli) fn with_two_dashes(word: OsString) -> OsString {
    let text = word.to_str().and_then(|text| text.strip_prefix('-'));
    let name = text.map(|text| text.split('=').next().unwrap_or(text));
    match (name, word.to_str()) {
        (Some(name), Some(word)) if LONG.contains(&name) => format!("-{word}").into(),
        _ => word,
    }
}

impl Hey {
    /// Runs it.
    pub(in crate::cli) fn run(&self, scenario: ReadScenario) -> Exit {
        match self.words() {
            Ok(words) => run(&words, scenario, &render),
            Err(error) => {
                eprintln!("error: {error}");
                Exit::Usage
            }
        }
    }

    /// The same load in our own words.
    pub(in crate::cli) fn words(&self) -> Result<Vec<String>, Invalid> {
        let mut words = Words::new(["http"]);
        words.0.push(self.url.clone());
        words.option("--connections", self.workers);
        match self.duration {
            Some(duration) => words.option("--duration", number::duration_text(duration)),
            None => words.option("--requests", self.requests),
        }
        words.option("--warm-up", 0);
        // For ever is an hour: a run that ends is worth more.
        words.option("--timeout", format_args!("{}s", if self.timeout == 0 { 3600 } else { self.timeout }));
        words.maybe("--rate", self.rate.map(|rate| rate * self.workers as f64));
        words.maybe("--threads", self.cpus);
        words.flag("--no-keep-alive", self.disable_keepalive);
        // As hey does.
        words.flag("--insecure", self.url.starts_with("https:"));
        words.maybe("--method", self.method.as_ref());
        words.maybe("--body", self.body.as_ref());
        if let Some(path) = &self.body_file {
            let path = path.to_str().ok_or_else(|| Invalid::new("-D", path.display(), "a path in UTF-8"))?;
            words.option("--body-file", path);
        }
        for (name, value) in self.own_headers() {
            words.option("--header", format_args!("{name}: {value}"));
        }
        for header in &self.headers {
            words.option("--header", header);
        }
        Ok(words.0)
    }

    fn own_headers(&self) -> Vec<(&str, String)> {
        let mut headers = vec![("Content-Type", self.content_type.clone())];
        let mut push = |name, value: Option<String>| headers.extend(value.map(|value| (name, value)));
        push("Host", self.host.clone());
        push("Accept", self.accept.clone());
        push("User-Agent", self.user_agent.clone());
        push("Authorization", self.login.as_ref().map(|login| format!("Basic {}", STANDARD.encode(login))));
        push("Accept-Encoding", (!self.disable_compression).then(|| "gzip".to_owned()));
        headers
    }
}

fn render(outcome: &Outcome) -> String {
    let latencies = answered_latencies(outcome);
    let answers = answered(outcome).max(1);
    let per_second = if outcome.seconds > 0.0 { answered(outcome) as f64 / outcome.seconds } else { 0.0 };
    let mut text = String::new();
    let mut push = |line: String| writeln!(text, "{line}").expect("a string takes all");
    push(format!("\nSummary:\n  Total:\t{:.4} secs", outcome.seconds));
    push(format!("  Slowest:\t{:.4} secs", latencies.max().as_secs_f64()));
    push(format!("  Fastest:\t{:.4} secs", latencies.min().as_secs_f64()));
    push(format!("  Average:\t{:.4} secs", latencies.mean().as_secs_f64()));
    push(format!("  Requests/sec:\t{:.4}\n", per_second));
    push(format!("  Total data:\t{} bytes", outcome.bytes_received));
    push(format!("  Size/request:\t{} bytes\n", outcome.bytes_received / answers));
    push(format!("Response time histogram:\n{}", histogram(&latencies)));
    push("\nLatency distribution:".to_owned());
    for percent in [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0] {
        push(format!("  {percent}% in {:.4} secs", latencies.percentile(percent).as_secs_f64()));
    }
    push("\nStatus code distribution:".to_owned());
    for status in &outcome.statuses {
        push(format!("  [{}]\t{} responses", status.status, status.count));
    }
    // An answer with an error is an answer.
    let mut errors = outcome.failures.iter().filter(|failure| failure.kind != Failure::Rejected).peekable();
    if errors.peek().is_some() {
        push("\nError distribution:".to_owned());
    }
    for failure in errors {
        let example = failure.examples.first().map(|example| format!(": {example}")).unwrap_or_default();
        push(format!("  [{}]\t{}{example}", failure.count, failure.kind.words()));
    }
    text
}

fn histogram(latencies: &Latencies) -> String {
    let rows = bars(latencies);
    let largest = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let row = |(until, count): (u64, u64)| {
        format!("  {:.3} [{count}]\t|{}", until as f64 / 1e9, "■".repeat((count * 40 / largest) as usize))
    };
    rows.into_iter().map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::output::made_up;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        hey: Hey,
    }

    #[test]
    fn command_lines_become_ours() {
        #[track_caller]
        fn check(words: &str, expected: &str) {
            let words = words.split(' ').map(|word| with_two_dashes(word.into()));
            let found = Alone::parse_from(words).hey.words().unwrap();
            assert_eq!(found.join(" "), expected);
            crate::cli::scenario(&found).unwrap();
        }
        check(
            "hey -n 10000 -c 100 http://127.0.0.1:8080/world",
            "http http://127.0.0.1:8080/world --connections=100 --requests=10000 --warm-up=0 --timeout=20s \
             --header=Content-Type: text/html --header=Accept-Encoding: gzip",
        );
        check(
            "hey -z 5s -c 1 -q 10 -m POST -d x -a u:p -disable-keepalive -cpus=1 -host a http://127.0.0.1:8080/",
            "http http://127.0.0.1:8080/ --connections=1 --duration=5s --warm-up=0 --timeout=20s --rate=10 --threads=1 \
             --no-keep-alive --method=POST --body=x --header=Content-Type: text/html --header=Host: a \
             --header=Authorization: Basic dTpw --header=Accept-Encoding: gzip",
        );
    }

    #[test]
    fn the_output_is_heys() {
        let found = render(&made_up::outcome());
        assert_eq!(found, include_str!("golden/hey.txt"), "\n{found}");
    }
}
