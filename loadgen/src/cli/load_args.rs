//! The options that all protocols share: where, how much, how fast, how long, and what is wanted of the result.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::target::{Place, Target};
use super::{Invalid, tls};
use crate::front::{Show, Wanted};
use crate::load::{Endpoint, Length, Load, Refill, Sampled};
use crate::number;
use crate::objective::Objective;
use crate::output::Outputs;
use crate::pace::{Arrivals, Pace, Rate};
use crate::scenario::{Scenario, Workload};

/// Where the load goes and how much it is.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// HOST:PORT, a URL, or unix:/PATH
    #[arg(value_name = "TARGET")]
    pub target: Target,

    /// Another server: connections go to TARGET and to it in turns. Can be given several times
    #[arg(long, value_name = "TARGET", help_heading = LOAD)]
    pub also: Vec<Target>,

    /// Connections, over all threads
    #[arg(short, long, value_name = "N", default_value = "50", value_parser = number::size, help_heading = LOAD)]
    pub connections: usize,

    /// Requests outstanding on each connection: pipelined requests, streams, or datagrams
    #[arg(
        long, value_name = "N", default_value = "1", value_parser = number::size, help_heading = LOAD,
        visible_aliases = ["pipeline", "streams", "window"],
    )]
    pub depth: usize,

    /// Send a whole depth of requests when the last are all answered, as a client's pipeline does, not one for each answer
    #[arg(long, help_heading = LOAD)]
    pub batch: bool,

    /// Close a connection after so many requests, when they are answered, and open another one in its place
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = LOAD)]
    pub requests_per_connection: Option<u64>,

    /// Threads that make the load [default: half of the processors, so that the server has the others]
    #[arg(short, long, value_name = "N", value_parser = number::size, help_heading = LOAD)]
    pub threads: Option<usize>,

    /// How long to measure, such as 30s or 5m [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = number::duration, conflicts_with = "requests", help_heading = LOAD)]
    pub duration: Option<Duration>,

    /// Measure so many requests instead of a time
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = LOAD)]
    pub requests: Option<u64>,

    /// Open loop: requests per second over all connections, sent whether or not the server keeps up, latencies counted
    /// from the intended time. 1000, a ramp 100..5000/30s, or max: search the highest rate that meets every --slo
    #[arg(long, value_name = "RATE", help_heading = LOAD)]
    pub rate: Option<RateArg>,

    /// How an open loop's requests are spread in time
    #[arg(long, value_enum, default_value = "constant", help_heading = LOAD)]
    pub arrivals: ArrivalsArg,

    /// Load before the measurement begins [default: 1s; none with --requests]
    #[arg(long, value_name = "TIME", value_parser = number::duration, help_heading = LOAD)]
    pub warm_up: Option<Duration>,

    /// How long an answer, or opening a connection, may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = number::duration, help_heading = LOAD)]
    pub timeout: Duration,

    /// Where random choices come from: the same seed, the same requests
    #[arg(long, value_name = "N", default_value = "1", help_heading = LOAD)]
    pub seed: u64,

    /// Check the content of every answer, not only that it is one
    #[arg(long, help_heading = LOAD)]
    pub verify: bool,

    /// TLS options.
    #[command(flatten)]
    pub tls: tls::TlsArgs,

    /// Objectives of the result, else the exit code is 3: p99=2ms (any percentile), max=10ms, mean=1ms, errors=0.1%, rate=10000; in a
    /// scenario also of a flow or step, as in login:p99=2ms. Can be given several times
    #[arg(long, value_name = "NAME=LIMIT", help_heading = RESULT)]
    pub slo: Vec<Objective>,

    /// The server's process, for its CPU time and memory [default: the one that listens on the port, if it is here]
    #[arg(long, value_name = "PID", help_heading = RESULT)]
    pub server_pid: Option<u32>,

    /// The server's control group instead of its process: a folder, or a name below /sys/fs/cgroup
    #[arg(long, value_name = "GROUP", conflicts_with = "server_pid", help_heading = RESULT)]
    pub server_cgroup: Option<PathBuf>,

    /// The outputs, and their files.
    #[command(flatten)]
    pub outputs: OutputArgs,
}

/// Heading of the options that shape the load.
pub(crate) const LOAD: &str = "Load";
/// Heading of the options about the result.
pub(crate) const RESULT: &str = "Result";

/// The outputs, and their files.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// Write the result with its full histograms as JSON; `-` is the standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub json: Option<PathBuf>,

    /// Write one line per second as CSV
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub csv: Option<PathBuf>,

    /// Write a page with plots that needs no network
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub html: Option<PathBuf>,

    /// Write an interval log that HdrHistogram's tools read
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub hdr: Option<PathBuf>,

    /// Serve live figures for Prometheus at http://ADDRESS/metrics while it runs
    #[arg(long, value_name = "ADDRESS", help_heading = RESULT)]
    pub metrics: Option<SocketAddr>,

    /// Show nothing while it runs
    #[arg(short, long, help_heading = RESULT)]
    pub quiet: bool,

    /// Plain lines while it runs, also on a terminal
    #[arg(long, help_heading = RESULT)]
    pub no_live: bool,
}

impl OutputArgs {
    /// The outputs to show and write.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let show = match (self.quiet, self.no_live) {
            (true, _) => Show::Nothing,
            (false, true) => Show::Lines,
            (false, false) => Show::Auto,
        };
        let (json, csv, html, hdr) = (self.json.clone(), self.csv.clone(), self.html.clone(), self.hdr.clone());
        Wanted { outputs: Outputs { json, csv, html, hdr }, show, metrics: self.metrics }
    }
}

/// `--rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateArg {
    /// So many per second, or a ramp.
    Of(Rate),
    /// The highest that meets the objectives.
    Max,
}

impl FromStr for RateArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let Some((from, rest)) = text.split_once("..") else {
            return number::parse_rate(text)
                .map(|rate| Self::Of(Rate::Fixed(rate)))
                .map_err(|expected| format!("{expected}, a ramp such as 100..5000/30s, or max"));
        };
        let (to, over) = rest.split_once('/').ok_or("expected the ramp's time behind it, as in 100..5000/30s")?;
        Ok(Self::Of(Rate::Ramp {
            from: number::parse_rate(from)?,
            to: number::parse_rate(to)?,
            over: number::duration(over)?,
        }))
    }
}

/// `--arrivals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// Evenly
    Constant,
    /// As independent users arrive
    Poisson,
}

/// The transport of a protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transport<'a> {
    /// The port where the target names none.
    pub port: u16,
    /// Whether the target's scheme asks for TLS.
    pub tls: bool,
    /// The protocols offered in the TLS handshake (ALPN).
    pub alpn: &'a [&'a [u8]],
    /// The transport.
    pub carrier: Carrier,
}

/// The transport below a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// TCP, or a Unix socket.
    #[default]
    Stream,
    /// UDP.
    Datagrams,
    /// QUIC, always with TLS.
    Quic,
}

impl ArrivalsArg {
    pub(super) fn arrivals(self) -> Arrivals {
        match self {
            Self::Constant => Arrivals::Constant,
            Self::Poisson => Arrivals::Poisson,
        }
    }
}

impl LoadArgs {
    /// The load that these options describe. Resolves the target's name and reads the TLS files.
    ///
    /// # Errors
    /// When options contradict each other, or the target or a file cannot be used.
    pub fn load(&self, transport: Transport<'_>) -> Result<Load, Invalid> {
        let default_threads = std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2));
        let threads = self.threads.unwrap_or(default_threads);
        let length = match self.requests {
            Some(requests) => Length::Requests(requests),
            None => Length::Duration(self.duration.unwrap_or(Duration::from_secs(10))),
        };
        if length == Length::Duration(Duration::ZERO) {
            return Err(Invalid::new("--duration", "0", "a time above 0"));
        }
        let default_warm_up = if self.requests.is_some() { Duration::ZERO } else { Duration::from_secs(1) };
        if self.rate == Some(RateArg::Max) && self.slo.is_empty() {
            return Err(Invalid::new("--rate", "max", "at least one --slo with it, such as --slo p99=2ms"));
        }
        Ok(Load {
            endpoint: self.endpoint(&self.target, transport)?,
            also: self.also.iter().map(|target| self.endpoint(target, transport)).collect::<Result<_, _>>()?,
            local: None,
            connections: self.connections,
            depth: self.depth,
            requests_per_connection: self.requests_per_connection,
            refill: if self.batch { Refill::Batch } else { Refill::Each },
            threads: threads.min(self.connections).max(1),
            pace: self.pace(),
            recorded: None,
            stages: None,
            length,
            warm_up: self.warm_up.unwrap_or(default_warm_up),
            timeout: self.timeout,
            seed: self.seed,
            sampled: self.sampled(),
        })
    }

    /// The scenario of this load: `protocol` and `what` say what is asked, `settings` are the subcommand's own.
    pub fn scenario(
        &self,
        load: Load,
        protocol: &str,
        what: &str,
        settings: impl IntoIterator<Item = (&'static str, Value)>,
        workload: impl Workload + 'static,
    ) -> Scenario {
        let mut all = Map::new();
        all.insert("protocol".to_owned(), json!(protocol));
        all.extend(settings.into_iter().map(|(name, value)| (name.to_owned(), value)));
        all.extend(self.settings(&load));
        Scenario {
            description: format!("{protocol} {}: {what}", self.describe(&load, workload.unit())),
            settings: all,
            workload: Box::new(workload),
            load,
            objectives: self.slo.clone(),
            search: self.rate == Some(RateArg::Max),
        }
    }

    fn pace(&self) -> Pace {
        let arrivals = self.arrivals.arrivals();
        match self.rate {
            Some(RateArg::Of(rate)) => Pace::Open { rate, arrivals },
            // The search replaces the rate; what it keeps of this is how arrivals are spread.
            Some(RateArg::Max) => Pace::Open { rate: Rate::Fixed(1.0), arrivals },
            None => Pace::Closed,
        }
    }

    fn sampled(&self) -> Sampled {
        match (&self.server_cgroup, self.server_pid) {
            (Some(group), _) => Sampled::Cgroup(group.clone()),
            (None, Some(pid)) => Sampled::Processes(vec![pid]),
            (None, None) => Sampled::Nobody,
        }
    }

    fn endpoint(&self, target: &Target, transport: Transport<'_>) -> Result<Endpoint, Invalid> {
        let tls = self.tls.tls(transport.tls, target.host(), transport.alpn)?;
        if let Place::Unix(path) = &target.place {
            if transport.carrier != Carrier::Stream {
                return Err(Invalid::new("TARGET", path.display(), "HOST:PORT: datagrams are sent by UDP"));
            }
            return Ok(Endpoint::Unix(path.clone(), tls));
        }
        let addresses = target.addresses(transport.port)?;
        Ok(match (transport.carrier, tls) {
            (Carrier::Datagrams, _) => Endpoint::Udp(addresses[0]),
            (Carrier::Quic, Some(tls)) => Endpoint::Quic(addresses, tls),
            (Carrier::Stream | Carrier::Quic, tls) => Endpoint::Tcp(addresses, tls),
        })
    }

    /// The load's part of a run's settings, with all defaults filled in.
    fn settings(&self, load: &Load) -> Map<String, Value> {
        let entries = [
            ("target", json!(endpoint_text(&load.endpoint))),
            ("also", json!(load.also.iter().map(endpoint_text).collect::<Vec<_>>())),
            ("tls", json!(is_tls(&load.endpoint))),
            ("connections", json!(load.connections)),
            ("depth", json!(load.depth)),
            ("requests_per_connection", json!(load.requests_per_connection)),
            ("batch", json!(load.refill == Refill::Batch)),
            ("threads", json!(load.threads)),
            ("rate", self.rate.map_or(Value::Null, |rate| json!(rate_text(rate)))),
            ("arrivals", json!(format!("{:?}", self.arrivals).to_lowercase())),
            ("length", json!(length_text(load.length))),
            ("warm_up", json!(number::duration_text(load.warm_up))),
            ("timeout", json!(number::duration_text(load.timeout))),
            ("seed", json!(load.seed)),
            ("verify", json!(self.verify)),
        ];
        entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The load in words: `127.0.0.1:6379, 50 connections, 16 deep, closed loop, 10 s`.
    fn describe(&self, load: &Load, unit: &str) -> String {
        let places: Vec<_> = load.endpoints().map(endpoint_text).collect();
        let mut words = vec![places.join(" and ")];
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        words.push(plural(load.connections, "connection"));
        if load.depth > 1 {
            words.push(format!("{} {}", load.depth, if self.batch { "at once" } else { "deep" }));
        }
        if let Some(requests) = load.requests_per_connection {
            words.push(format!("a new one after {requests} requests each"));
        }
        words.push(plural(load.threads, "thread"));
        match self.rate {
            None if load.stages.is_some() => words.extend(load.stages.as_ref().map(|stages| stages.describe())),
            None if load.recorded.is_some() => words.push("open loop, as recorded".to_owned()),
            None => words.push("closed loop".to_owned()),
            Some(RateArg::Max) => words.push("open loop, highest rate".to_owned()),
            Some(rate) => words.push(format!("open loop, {} {unit}/s", rate_text(rate))),
        }
        if self.rate.is_some() && self.arrivals == ArrivalsArg::Poisson {
            words.push("Poisson arrivals".to_owned());
        }
        words.push(match load.length {
            Length::Requests(count) => format!("{} {unit}", number::thousands(count)),
            length @ Length::Duration(_) => length_text(length),
        });
        if self.verify {
            words.push("every answer checked".to_owned());
        }
        if is_tls(&load.endpoint) {
            words.push("TLS".to_owned());
        }
        words.join(", ")
    }
}

fn is_tls(endpoint: &Endpoint) -> bool {
    endpoint.tls().is_some()
}

/// An endpoint for people.
fn endpoint_text(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(addresses, _) | Endpoint::Quic(addresses, _) => {
            addresses.first().map_or_else(String::new, ToString::to_string)
        }
        Endpoint::Unix(path, _) => format!("unix:{}", path.display()),
        Endpoint::Udp(address) => format!("udp {address}"),
    }
}

fn length_text(length: Length) -> String {
    match length {
        Length::Duration(duration) => number::duration_text(duration),
        Length::Requests(requests) => format!("{} requests", number::thousands(requests)),
    }
}

fn rate_text(rate: RateArg) -> String {
    match rate {
        RateArg::Of(Rate::Fixed(rate)) => format!("{rate}"),
        RateArg::Of(Rate::Ramp { from, to, over }) => format!("{from}..{to}/{}", number::duration_text(over)),
        RateArg::Max => "max".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::scenario;

    /// The load of a command line of `loadgen redis`.
    fn load(words: &str) -> Result<Load, String> {
        let words: Vec<_> = ["redis", "127.0.0.1"].into_iter().chain(words.split_whitespace()).collect();
        scenario(&words).map(|scenario| scenario.load)
    }

    #[test]
    fn options_shape_the_load() {
        #[track_caller]
        fn check(words: &str, expected: impl Fn(&Load) -> bool) {
            let load = load(words).unwrap();
            assert!(expected(&load), "{words}: {load:?}");
        }
        let second = Duration::from_secs(1);
        check("", |load| (load.connections, load.depth, load.refill) == (50, 1, Refill::Each));
        check("", |load| load.length == Length::Duration(10 * second) && load.warm_up == second);
        check("", |load| load.pace == Pace::Closed && load.timeout == 10 * second && load.seed == 1);
        check("-c 1k --pipeline 16 --batch", |load| (load.connections, load.depth) == (1000, 16));
        check("--batch", |load| load.refill == Refill::Batch);
        check("-n 5k", |load| load.length == Length::Requests(5000) && load.warm_up.is_zero());
        check("-d 1m30s --warm-up 5s --timeout 2ms", |load| load.length == Length::Duration(90 * second));
        // A thread without a connection would have nothing to do.
        check("-t 8 -c 3", |load| load.threads == 3);
        check("--server-pid 7 --seed 9", |load| load.sampled == Sampled::Processes(vec![7]) && load.seed == 9);
        check("--server-cgroup a/b", |load| load.sampled == Sampled::Cgroup("a/b".into()));
        check("--also 127.0.0.2 --also 127.0.0.3:7", |load| {
            let places: Vec<_> = (0..4).map(|seat| endpoint_text(load.endpoint_of(seat))).collect();
            places == ["127.0.0.1:6379", "127.0.0.2:6379", "127.0.0.3:7", "127.0.0.1:6379"]
        });
        let open = |rate, arrivals| Pace::Open { rate, arrivals };
        check("--rate 2.5k", |load| load.pace == open(Rate::Fixed(2500.0), Arrivals::Constant));
        check("--rate 1 --arrivals poisson", |load| load.pace == open(Rate::Fixed(1.0), Arrivals::Poisson));
        let ramp = Rate::Ramp { from: 100.0, to: 5000.0, over: 30 * second };
        check("--rate 100..5k/30s", |load| load.pace == open(ramp, Arrivals::Constant));
        check("--tls --insecure", |load| matches!(&load.endpoint, Endpoint::Tcp(_, Some(_))));
    }

    #[test]
    fn errors_name_option_value_and_expectation() {
        #[track_caller]
        fn check(words: &str, expected: &str) {
            let error = load(words).unwrap_err();
            assert!(error.contains(expected), "{words}: {error}");
        }
        check("-c 0", "invalid value '0' for '--connections <N>': expected a count from 1");
        check("-d fast", "invalid value 'fast' for '--duration <TIME>': expected a time such as 500us");
        check("-d 0", "--duration is `0`, expected a time above 0");
        check("-d 1s -n 5", "'--duration <TIME>' cannot be used with '--requests <N>'");
        check("--rate 0", "invalid value '0' for '--rate <RATE>': expected a number of requests per second above 0");
        check("--rate 5..x/1s", "invalid value '5..x/1s' for '--rate <RATE>': expected a number");
        check("--slo p99=x", "invalid value 'p99=x' for '--slo <NAME=LIMIT>': expected a time");
        check("--slo errors=200%", "invalid value 'errors=200%' for '--slo <NAME=LIMIT>': expected a share");
        check("--arrivals late", "[possible values: constant, poisson]");
        check("--insecure --cacert x", "'--insecure' cannot be used with '--cacert <FILE>'");
        check("--tls --sni a..b", "--sni is `a..b`, expected a host name or an IP address");
        check("--tls --cert x", "the following required arguments were not provided:\n  --key <FILE>");
    }

    #[test]
    fn settings_say_how_to_run_it_again() {
        let scenario =
            scenario(&["redis", "127.0.0.1", "-t1", "--rate", "max", "--slo", "p99=2ms", "--verify"]).unwrap();
        assert!(scenario.search);
        let expected = "redis 127.0.0.1:6379, 50 connections, 1 thread, open loop, highest rate, 10s, every answer checked: \
                        GET key:{key}";
        assert_eq!(scenario.description, expected);
        for (name, value) in
            [("rate", json!("max")), ("seed", json!(1)), ("verify", json!(true)), ("length", json!("10s"))]
        {
            assert_eq!(scenario.settings[name], value, "{name}");
        }
    }
}
