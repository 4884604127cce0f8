//! `loadgen ghz`: the options and the output of ghz.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::answers::bars;
use super::run::run_and_write;
use super::words::Words;
use crate::cli::Invalid;
use crate::cli::drive::ReadScenario;
use crate::front::Exit;
use crate::number;
use crate::output::Outputs;
use crate::record::{Ending, Failure, Outcome};

/// Run a command line of ghz.
///
/// Calls a gRPC method in a closed loop, or in an open one with --rps, and prints what ghz prints. `loadgen grpc` can do
/// more: checked answers, keys and values in messages, objectives, plots.
#[derive(Args, Clone, Debug)]
pub(in crate::cli) struct Ghz {
    /// The method: package.Service/Method or package.Service.Method
    #[arg(long, value_name = "METHOD")]
    call: String,

    /// The .proto file; without one the server is asked by reflection
    #[arg(long, value_name = "FILE")]
    proto: Option<PathBuf>,

    /// The descriptor set, instead of a .proto file
    #[arg(long, value_name = "FILE", conflicts_with = "proto")]
    protoset: Option<PathBuf>,

    /// Where imports are looked for, separated by commas
    #[arg(short = 'i', long, value_name = "FOLDERS", value_delimiter = ',', requires = "proto")]
    import_paths: Vec<PathBuf>,

    /// Trust the certificates in this file
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Our certificate
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,

    /// Our certificate's key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// The name that the server's certificate must have
    #[arg(long, value_name = "NAME")]
    cname: Option<String>,

    /// TLS with any certificate
    #[arg(long = "skipTLS")]
    skip_tls: bool,

    /// No TLS
    #[arg(long, conflicts_with_all = ["skip_tls", "cacert", "cert"])]
    insecure: bool,

    /// The :authority
    #[arg(long, value_name = "NAME")]
    authority: Option<String>,

    /// Requests per second in an open loop; 0 is as many as possible
    #[arg(short, long, value_name = "N", default_value = "0", value_parser = rate_or_none)]
    rps: f64,

    /// Accepted: an open loop never waits here
    #[arg(long = "async")]
    asynchronous: bool,

    /// How the rate changes: const (--rps) or line (--load-start, --load-step each second, --load-end)
    #[arg(long, value_enum, default_value = "const")]
    load_schedule: Schedule,

    /// The rate that a line begins with
    #[arg(long, value_name = "N", default_value = "0", value_parser = rate_or_none)]
    load_start: f64,

    /// The change of a line's rate in a second; may be negative
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    load_step: f64,

    /// The rate that a line ends with
    #[arg(long, value_name = "N", default_value = "0", value_parser = rate_or_none)]
    load_end: f64,

    /// Calls at once, over all connections
    #[arg(short, long, value_name = "N", default_value = "50", value_parser = number::size)]
    concurrency: usize,

    /// Connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::size)]
    connections: usize,

    /// How many calls
    #[arg(short = 'n', long, value_name = "N", default_value = "200", value_parser = number::count)]
    total: u64,

    /// How long, instead of how many calls
    #[arg(short = 'z', long, value_name = "TIME", value_parser = number::duration)]
    duration: Option<Duration>,

    /// Deadline of each call; 0 is none
    #[arg(short, long, value_name = "TIME", default_value = "20s", value_parser = number::duration)]
    timeout: Duration,

    /// The message in JSON, an array of messages, or @ for the standard input
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,

    /// The message in JSON, from a file
    #[arg(short = 'D', long, value_name = "FILE", conflicts_with = "data")]
    data_file: Option<PathBuf>,

    /// Metadata, as a JSON object
    #[arg(short, long, value_name = "JSON")]
    metadata: Option<String>,

    /// Metadata, as a JSON object in a file
    #[arg(short = 'M', long, value_name = "FILE", conflicts_with = "metadata")]
    metadata_file: Option<PathBuf>,

    /// How many messages a client's stream has
    #[arg(long, value_name = "N")]
    stream_call_count: Option<usize>,

    /// Send messages in gzip
    #[arg(short = 'e', long)]
    enable_compression: bool,

    /// Where the report goes [default: the standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The report's form
    #[arg(short = 'O', long, value_enum, default_value = "summary")]
    format: Format,

    /// The run's name in the report
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Threads
    #[arg(long, value_name = "N", value_parser = number::size)]
    cpus: Option<usize>,

    /// HOST:PORT
    host: String,
}

/// `--load-schedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Schedule {
    /// The same rate all the time
    Const,
    /// From one rate to another
    Line,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// ghz's text
    Summary,
    /// ghz's JSON, in one line
    Json,
    /// ghz's JSON, indented
    Pretty,
    /// A line per second
    Csv,
    /// A page with plots
    Html,
}

impl Ghz {
    /// Runs it.
    pub(in crate::cli) fn run(&self, scenario: ReadScenario) -> Exit {
        match self.words().and_then(|words| Ok((words, self.open()?))) {
            Ok((words, report)) => run_and_write(&words, scenario, self.outputs(), &|outcome| {
                self.deliver(report.as_ref(), self.render(outcome))
            }),
            Err(error) => {
                eprintln!("error: {error}");
                Exit::Usage
            }
        }
    }

    /// The same load in our own words.
    pub(in crate::cli) fn words(&self) -> Result<Vec<String>, Invalid> {
        let mut words = Words::new(["grpc"]);
        words.0.push(self.host.clone());
        words.option("--call", &self.call);
        words.maybe("--proto", self.proto.as_ref().map(|path| path.display()));
        words.maybe("--protoset", self.protoset.as_ref().map(|path| path.display()));
        for folder in &self.import_paths {
            words.option("--import-path", folder.display());
        }
        // Calls at once are spread over the connections; what does not divide is rounded up.
        let connections = self.connections.min(self.concurrency);
        words.option("--connections", connections);
        words.option("--streams", self.concurrency.div_ceil(connections));
        match self.duration {
            Some(duration) => words.option("--duration", number::duration_text(duration)),
            None => words.option("--requests", self.total),
        }
        words.option("--warm-up", 0);
        words.maybe("--rate", self.rate()?);
        self.timeout_words(&mut words);
        words.maybe("--threads", self.cpus);
        self.tls_words(&mut words);
        self.message_words(&mut words)?;
        Ok(words.0)
    }

    fn rate(&self) -> Result<Option<String>, Invalid> {
        if self.load_schedule == Schedule::Const {
            return Ok((self.rps > 0.0).then(|| self.rps.to_string()));
        }
        let change = self.load_end - self.load_start;
        if self.load_step == 0.0 || change == 0.0 || change.signum() != self.load_step.signum() {
            let expected = "one that leads from --load-start to --load-end";
            return Err(Invalid::new("--load-step", self.load_step, expected));
        }
        let over = Duration::from_secs_f64((change / self.load_step).min(1e9));
        Ok(Some(format!("{}..{}/{}", self.load_start, self.load_end, number::duration_text(over))))
    }

    fn timeout_words(&self, words: &mut Words) {
        if self.timeout.is_zero() {
            // None is an hour: a run that ends is worth more.
            words.option("--timeout", "3600s");
        } else {
            words.option("--timeout", number::duration_text(self.timeout));
            words.option("--deadline", number::duration_text(self.timeout));
        }
    }

    fn tls_words(&self, words: &mut Words) {
        words.flag("--tls", !self.insecure);
        words.flag("--insecure", self.skip_tls);
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        if !self.skip_tls {
            words.maybe("--cacert", file(&self.cacert));
        }
        words.maybe("--cert", file(&self.cert));
        words.maybe("--key", file(&self.key));
        words.maybe("--sni", self.cname.as_ref());
        words.maybe("--authority", self.authority.as_ref());
    }

    fn message_words(&self, words: &mut Words) -> Result<(), Invalid> {
        match (self.data.as_deref(), &self.data_file) {
            (Some("@"), _) => words.option("--data-file", "/dev/stdin"),
            (Some(data), _) => words.option("--data", with_places(data)?),
            (None, Some(path)) => words.option("--data", with_places(&read("--data-file", path)?)?),
            (None, None) => (),
        }
        let metadata = match (&self.metadata, &self.metadata_file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(path)) => Some(read("--metadata-file", path)?),
            (None, None) => None,
        };
        if let Some(text) = metadata {
            let fields: Map<String, Value> = serde_json::from_str(&text)
                .map_err(|error| Invalid::new("--metadata", &text, format_args!("a JSON object ({error})")))?;
            for (name, value) in fields {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                words.option("--metadata", format_args!("{name}: {}", with_places(&value)?));
            }
        }
        words.maybe("--messages", self.stream_call_count);
        words.flag("--gzip", self.enable_compression);
        Ok(())
    }

    /// The file that a summary or JSON is written to.
    fn open(&self) -> Result<Option<File>, Invalid> {
        let Some(path) = self.output.as_ref().filter(|_| !matches!(self.format, Format::Csv | Format::Html)) else {
            return Ok(None);
        };
        let file = File::create(path).map_err(|error| {
            Invalid::new("--output", path.display(), format_args!("a file that can be written ({error})"))
        })?;
        Ok(Some(file))
    }

    /// The outputs that our own code writes.
    fn outputs(&self) -> Outputs {
        let path = self.output.clone().unwrap_or_else(|| "/dev/stdout".into());
        match self.format {
            Format::Csv => Outputs { csv: Some(path), ..Outputs::default() },
            Format::Html => Outputs { html: Some(path), ..Outputs::default() },
            Format::Summary | Format::Json | Format::Pretty => Outputs::default(),
        }
    }

    fn render(&self, outcome: &Outcome) -> String {
        match self.format {
            Format::Summary => self.summary(outcome),
            Format::Json => format!("{}\n", self.report(outcome)),
            Format::Pretty => format!("{:#}\n", self.report(outcome)),
            Format::Csv | Format::Html => String::new(),
        }
    }

    /// Writes the report to its file; what cannot be written is shown instead.
    fn deliver(&self, report: Option<&File>, text: String) -> String {
        let Some(mut file) = report else {
            return text;
        };
        match file.write_all(text.as_bytes()) {
            Ok(()) => String::new(),
            Err(error) => {
                eprintln!("error: the report cannot be written: {error}");
                text
            }
        }
    }

    fn summary(&self, outcome: &Outcome) -> String {
        let latencies = outcome.latencies();
        let mut text = String::new();
        let mut push = |line: String| writeln!(text, "{line}").expect("a string takes all");
        push("\nSummary:".to_owned());
        if let Some(name) = &self.name {
            push(format!("  Name:\t\t{name}"));
        }
        push(format!("  Count:\t{}", outcome.answers() + outcome.failed()));
        push(format!("  Total:\t{}", time_text(Duration::from_secs_f64(outcome.seconds))));
        push(format!("  Slowest:\t{}", time_text(latencies.max())));
        push(format!("  Fastest:\t{}", time_text(latencies.min())));
        push(format!("  Average:\t{}", time_text(latencies.mean())));
        push(format!("  Requests/sec:\t{:.2}", rps(outcome)));
        push("\nResponse time histogram:".to_owned());
        let bars = bars(&latencies);
        let largest = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        for (until, count) in bars {
            let bar = "∎".repeat((count * 40 / largest) as usize);
            push(format!("  {:<8.3}[{count}]\t|{bar}", until as f64 / 1e6));
        }
        push("\nLatency distribution:".to_owned());
        for percent in PERCENTS {
            push(format!("  {percent} % in {} ", time_text(latencies.percentile(percent))));
        }
        push("\nStatus code distribution:".to_owned());
        for (status, count) in statuses(outcome) {
            push(format!("  {:<20}{count} responses", format!("[{status}]")));
        }
        if !outcome.failures.is_empty() {
            push("\nError distribution:".to_owned());
        }
        for failure in &outcome.failures {
            push(format!("  [{}]\t{}", failure.count, example(failure.examples.first(), failure.kind)));
        }
        text
    }

    fn report(&self, outcome: &Outcome) -> Value {
        let latencies = outcome.latencies();
        let nanos = |duration: Duration| json!(duration.as_nanos() as u64);
        let share = |count: u64| count as f64 / latencies.count().max(1) as f64;
        let errors: Map<_, _> = outcome
            .failures
            .iter()
            .map(|failure| (example(failure.examples.first(), failure.kind), json!(failure.count)))
            .collect();
        let statuses: Map<_, _> =
            statuses(outcome).into_iter().map(|(status, count)| (status.to_owned(), json!(count))).collect();
        let percentiles =
            PERCENTS.map(|percent| json!({ "percentage": percent, "latency": nanos(latencies.percentile(percent)) }));
        let histogram: Vec<_> = bars(&latencies)
            .into_iter()
            .map(|(until, count)| json!({ "mark": until as f64 / 1e9, "count": count, "frequency": share(count) }))
            .collect();
        json!({
            "name": self.name.as_deref().unwrap_or_default(),
            "endReason": match (&outcome.ending, self.duration) {
                (Ending::Complete, Some(_)) => "timeout",
                (Ending::Complete, None) => "normal",
                (Ending::Interrupted | Ending::Failed(_), _) => "cancel",
            },
            "options": outcome.settings,
            "count": outcome.answers() + outcome.failed(),
            "total": nanos(Duration::from_secs_f64(outcome.seconds)),
            "average": nanos(latencies.mean()),
            "fastest": nanos(latencies.min()),
            "slowest": nanos(latencies.max()),
            "rps": rps(outcome),
            "errorDistribution": errors,
            "statusCodeDistribution": statuses,
            "latencyDistribution": percentiles,
            "histogram": histogram,
        })
    }
}

/// The percentiles that ghz shows.
const PERCENTS: [f64; 7] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];

/// ghz counts all calls, whatever came of them.
fn rps(outcome: &Outcome) -> f64 {
    (outcome.answers() + outcome.failed()) as f64 / outcome.seconds.max(f64::MIN_POSITIVE)
}

/// A rate; 0 is none.
fn rate_or_none(text: &str) -> Result<f64, String> {
    if text == "0" { Ok(0.0) } else { number::parse_rate(text) }
}

/// How calls ended, in ghz's names as far as they are told apart here.
fn statuses(outcome: &Outcome) -> Vec<(&'static str, u64)> {
    let count = |kinds: &[Failure]| kinds.iter().map(|kind| outcome.failures_of(*kind)).sum::<u64>();
    let unavailable = [Failure::Refused, Failure::Resources, Failure::Tls, Failure::Reset, Failure::Closed];
    let all = [
        ("OK", outcome.answers()),
        ("Unavailable", count(&unavailable)),
        ("DeadlineExceeded", count(&[Failure::TimedOut])),
        ("Canceled", count(&[Failure::Unsent])),
        ("Internal", count(&[Failure::Protocol, Failure::Wrong])),
        ("other than OK", count(&[Failure::Rejected])),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn example(example: Option<&String>, kind: Failure) -> String {
    example.map_or_else(|| kind.words().to_owned(), |example| format!("{}: {example}", kind.words()))
}

/// A time in ghz's units.
fn time_text(duration: Duration) -> String {
    match duration.as_nanos() {
        0 => "0 ns".to_owned(),
        nanos @ 1..1_000 => format!("{nanos:.2} ns"),
        nanos @ 1_000..1_000_000 => format!("{:.2} µs", nanos as f64 / 1e3),
        nanos @ 1_000_000..1_000_000_000 => format!("{:.2} ms", nanos as f64 / 1e6),
        nanos => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

/// ghz's templates, as far as they are the places that there are here.
fn with_places(text: &str) -> Result<String, Invalid> {
    let text = text.replace("{{.RequestNumber}}", "{sequence}").replace("{{ .RequestNumber }}", "{sequence}");
    match text.find("{{").filter(|at| text[at + 2..].contains("}}")) {
        Some(at) if !text[at..].starts_with("{{\"") => {
            let expected = "{{.RequestNumber}}, the only template of ghz that is known here, or places such as {key}";
            Err(Invalid::new("the data's template", &text[at..], expected))
        }
        _ => Ok(text),
    }
}

fn read(option: &str, path: &PathBuf) -> Result<String, Invalid> {
    fs::read_to_string(path)
        .map_err(|error| Invalid::new(option, path.display(), format_args!("a text file that can be read ({error})")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::output::made_up;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        ghz: Ghz,
    }

    fn ghz(words: &str) -> Ghz {
        Alone::parse_from(words.split(' ')).ghz
    }

    #[test]
    fn published_command_lines_become_ours() {
        #[track_caller]
        fn check(words: &str, expected: &str) {
            let found = ghz(words).words().unwrap();
            assert_eq!(found.join(" "), expected);
            crate::cli::check(&found).unwrap();
        }
        check(
            "ghz --insecure --proto helloworld.proto --call helloworld.Greeter/SayHello -d {\"name\":\"x\"} \
             --total 1000000 --concurrency 5000 --connections 100 127.0.0.1:50051",
            "grpc 127.0.0.1:50051 --call=helloworld.Greeter/SayHello --proto=helloworld.proto --connections=100 \
             --streams=50 --requests=1000000 --warm-up=0 --timeout=20s --deadline=20s --data={\"name\":\"x\"}",
        );
        check(
            "ghz --skipTLS --call a.B.C -c 10 -z 5s -r 100 -m {\"a\":\"b\"} -t 0 --cpus 2 -e --cname x localhost:1",
            "grpc localhost:1 --call=a.B.C --connections=1 --streams=10 --duration=5s --warm-up=0 --rate=100 \
             --timeout=3600s --threads=2 --tls --insecure --sni=x --metadata=a: b --gzip",
        );
        check(
            "ghz --insecure --call a.B/C --load-schedule=line --load-start=5 --load-step=5 --load-end=50 -n 9 h",
            "grpc h --call=a.B/C --connections=1 --streams=50 --requests=9 --warm-up=0 --rate=5..50/9s --timeout=20s \
             --deadline=20s",
        );
        check(
            "ghz --insecure --call a.B/C -d {\"n\":\"{{.RequestNumber}}\"} h",
            "grpc h --call=a.B/C --connections=1 --streams=50 --requests=200 --warm-up=0 --timeout=20s --deadline=20s \
             --data={\"n\":\"{sequence}\"}",
        );
    }

    #[test]
    fn unsupported_ghz_options_are_refused() {
        #[track_caller]
        fn check(words: &str, expected: &str) {
            assert_eq!(ghz(words).words().unwrap_err().to_string(), expected);
        }
        check(
            "ghz --call a.B/C -d {\"n\":\"{{newUUID}}\"} h",
            "the data's template is `{{newUUID}}\"}`, expected {{.RequestNumber}}, the only template of ghz that is known \
             here, or places such as {key}",
        );
        check(
            "ghz --call a.B/C --load-schedule line --load-start 5 --load-end 50 h",
            "--load-step is `0`, expected one that leads from --load-start to --load-end",
        );
    }

    #[test]
    fn the_output_is_ghzs() {
        let ghz = ghz("ghz --call a.B/C h");
        let found = ghz.summary(&made_up::outcome());
        assert_eq!(found, include_str!("golden/ghz.txt"), "\n{found}");
        let report = ghz.report(&made_up::outcome());
        assert_eq!(report["count"], 3003);
        assert_eq!(report["rps"], 1001.0);
        assert_eq!(report["statusCodeDistribution"]["OK"], 3000);
        assert_eq!(report["latencyDistribution"][6]["percentage"], 99.0);
    }
}
