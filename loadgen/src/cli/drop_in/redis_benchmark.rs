//! `loadgen redis-benchmark`: the options, tests and output of redis-benchmark 7.0.

use std::io::Read as _;
use std::net::TcpStream;

use clap::{ArgAction, Args};

use super::redis_report::{self, Run};
use super::run::{complain, run};
use super::words::Words;
use crate::cli::drive::ReadScenario;
use crate::cli::{Invalid, Target};
use crate::front::{Exit, hold};
use crate::number;

/// Run a command line of redis-benchmark.
///
/// Measures a Redis server in a closed loop and prints what redis-benchmark prints. `loadgen redis` can do more: an open
/// loop, checked answers, mixes, key distributions, objectives, plots.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(in crate::cli) struct RedisBenchmark {
    /// Server hostname
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1")]
    host: String,

    /// Server port
    #[arg(short = 'p', value_name = "PORT", default_value = "6379")]
    port: u16,

    /// Server socket, instead of host and port
    #[arg(short = 's', value_name = "PATH")]
    socket: Option<String>,

    /// Password
    #[arg(short = 'a', value_name = "PASSWORD")]
    password: Option<String>,

    /// User of the password
    #[arg(long, value_name = "NAME", requires = "password")]
    user: Option<String>,

    /// Server URI: redis://USER:PASSWORD@HOST:PORT/DB
    #[arg(short = 'u', value_name = "URI")]
    uri: Option<Target>,

    /// Parallel connections
    #[arg(short = 'c', value_name = "N", default_value = "50", value_parser = number::size)]
    clients: usize,

    /// Requests of each test
    #[arg(short = 'n', value_name = "N", default_value = "100000", value_parser = number::count)]
    requests: u64,

    /// Size of a value in bytes
    #[arg(short = 'd', value_name = "BYTES", default_value = "3", value_parser = number::size)]
    size: usize,

    /// The database
    #[arg(long, value_name = "N", default_value = "0")]
    dbnum: u32,

    /// Speak RESP3
    #[arg(short = '3')]
    resp3: bool,

    /// Threads
    #[arg(long, value_name = "N", value_parser = number::size)]
    threads: Option<usize>,

    /// Send CLIENT TRACKING ON first; implies -3
    #[arg(long)]
    enable_tracking: bool,

    /// 1 keeps connections, 0 opens a new one for every request
    #[arg(short = 'k', value_name = "0|1", default_value = "1", value_parser = clap::value_parser!(u8).range(0..=1))]
    keep_alive: u8,

    /// Replace __rand_int__ by a random number below N, in every command anew; without it, all use the same key
    #[arg(short = 'r', value_name = "N", value_parser = number::count)]
    keys: Option<u64>,

    /// Requests in a pipeline
    #[arg(short = 'P', value_name = "N", default_value = "1", value_parser = number::size)]
    pipeline: usize,

    /// Accepted: errors of the server are always shown
    #[arg(short = 'e')]
    show_errors: bool,

    /// Only one line per test
    #[arg(short = 'q', conflicts_with = "csv")]
    quiet: bool,

    /// Decimal places of latencies
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(0..=3))]
    precision: u8,

    /// CSV
    #[arg(long)]
    csv: bool,

    /// Run the tests for ever
    #[arg(short = 'l')]
    forever: bool,

    /// Only these tests, separated by commas
    #[arg(short = 't', value_name = "TESTS", value_delimiter = ',')]
    tests: Vec<String>,

    /// Open idle connections and wait for Ctrl-C
    #[arg(short = 'I')]
    idle: bool,

    /// Read the command's last word from standard input
    #[arg(short = 'x')]
    stdin: bool,

    /// Where random choices come from
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Use TLS
    #[arg(long)]
    tls: bool,

    /// The name that the server's certificate must have
    #[arg(long, value_name = "NAME", requires = "tls")]
    sni: Option<String>,

    /// Trust the certificates in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls")]
    cacert: Option<String>,

    /// Trust any certificate
    #[arg(long, requires = "tls")]
    insecure: bool,

    /// Our certificate
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    cert: Option<String>,

    /// Our certificate's key
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<String>,

    /// Print this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    /// A command instead of the tests
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// One of redis-benchmark's tests.
struct Test {
    /// Its name in `-t`; several tests may share a name.
    names: &'static [&'static str],
    title: &'static str,
    /// `DATA` is a value; as long as `-r` is not given, `SCORE` is 0.
    words: &'static str,
}

/// All tests, in redis-benchmark's order.
#[rustfmt::skip]
const TESTS: &[Test] = &[
    test(&["ping_inline", "ping"], "PING_INLINE", "PING"),
    test(&["ping_mbulk", "ping"], "PING_MBULK", "PING"),
    test(&["set"], "SET", "SET key:__rand_int__ DATA"),
    test(&["get"], "GET", "GET key:__rand_int__"),
    test(&["incr"], "INCR", "INCR counter:__rand_int__"),
    test(&["lpush"], "LPUSH", "LPUSH mylist DATA"),
    test(&["rpush"], "RPUSH", "RPUSH mylist DATA"),
    test(&["lpop"], "LPOP", "LPOP mylist"),
    test(&["rpop"], "RPOP", "RPOP mylist"),
    test(&["sadd"], "SADD", "SADD myset element:__rand_int__"),
    test(&["hset"], "HSET", "HSET myhash element:__rand_int__ DATA"),
    test(&["spop"], "SPOP", "SPOP myset"),
    test(&["zadd"], "ZADD", "ZADD myzset SCORE element:__rand_int__"),
    test(&["zpopmin"], "ZPOPMIN", "ZPOPMIN myzset"),
    test(&["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"], "LPUSH (needed to benchmark LRANGE)", "LPUSH mylist DATA"),
    test(&["lrange_100", "lrange"], "LRANGE_100 (first 100 elements)", "LRANGE mylist 0 99"),
    test(&["lrange_300", "lrange"], "LRANGE_300 (first 300 elements)", "LRANGE mylist 0 299"),
    test(&["lrange_500", "lrange"], "LRANGE_500 (first 500 elements)", "LRANGE mylist 0 499"),
    test(&["lrange_600", "lrange"], "LRANGE_600 (first 600 elements)", "LRANGE mylist 0 599"),
    test(&["mset"], "MSET (10 keys)", MSET),
];

const MSET: &str = "MSET key:__rand_int__ DATA key:__rand_int__ DATA key:__rand_int__ DATA key:__rand_int__ DATA \
                    key:__rand_int__ DATA key:__rand_int__ DATA key:__rand_int__ DATA key:__rand_int__ DATA \
                    key:__rand_int__ DATA key:__rand_int__ DATA";

const fn test(names: &'static [&'static str], title: &'static str, words: &'static str) -> Test {
    Test { names, title, words }
}

impl RedisBenchmark {
    /// Runs it.
    pub(in crate::cli) fn run(&self, scenario: ReadScenario) -> Exit {
        let runs = match self.runs() {
            Ok(runs) => runs,
            Err(error) => {
                eprintln!("error: {error}");
                return Exit::Usage;
            }
        };
        if self.idle {
            return self.hold_idle();
        }
        if self.csv {
            println!("{}", redis_report::CSV_HEAD);
        }
        loop {
            for (title, words) in &runs {
                let exit = run(words, scenario, &|outcome| {
                    complain(outcome);
                    self.report(title, outcome)
                });
                if exit != Exit::Fine {
                    return exit;
                }
            }
            if !self.forever {
                return Exit::Fine;
            }
        }
    }

    fn report(&self, title: &str, outcome: &crate::record::Outcome) -> String {
        let run = Run {
            title,
            clients: self.clients,
            size: self.size,
            keep_alive: self.keep_alive != 0,
            threads: self.threads,
            digits: usize::from(self.precision),
        };
        match (self.csv, self.quiet) {
            (true, _) => run.csv(outcome),
            (_, true) => run.line(outcome),
            _ => run.report(outcome),
        }
    }

    /// Each test's title, and the same load in our own words.
    pub(in crate::cli) fn runs(&self) -> Result<Vec<(String, Vec<String>)>, Invalid> {
        let mut command = self.command.clone();
        if self.stdin {
            let mut last = String::new();
            std::io::stdin()
                .read_to_string(&mut last)
                .map_err(|error| Invalid::new("-x", "standard input", format_args!("text in UTF-8 ({error})")))?;
            command.push(last);
        }
        if !command.is_empty() {
            return Ok(vec![(command.join(" "), self.words(&command, false))]);
        }
        for name in &self.tests {
            if !TESTS.iter().any(|test| test.names.contains(&name.to_lowercase().as_str())) {
                let all: Vec<_> = TESTS.iter().map(|test| test.names[0]).collect();
                return Err(Invalid::new("-t", name, format_args!("tests of {}", all.join(", "))));
            }
        }
        let data = "x".repeat(self.size);
        let score = if self.keys.is_some() { "__rand_int__" } else { "0" };
        let chosen = TESTS.iter().filter(|test| {
            self.tests.is_empty() || self.tests.iter().any(|name| test.names.contains(&name.to_lowercase().as_str()))
        });
        let run = |test: &Test| {
            let word = |word| match word {
                "DATA" => data.clone(),
                "SCORE" => score.to_owned(),
                word => word.to_owned(),
            };
            let words: Vec<_> = test.words.split_whitespace().map(word).collect();
            (test.title.to_owned(), self.words(&words, test.title == "PING_INLINE"))
        };
        Ok(chosen.map(run).collect())
    }

    /// A command in our own words.
    fn words(&self, command: &[String], inline: bool) -> Vec<String> {
        let mut words = Words::new(["redis"]);
        words.0.push(self.target());
        words.option("--connections", self.clients);
        words.option("--requests", self.requests);
        words.option("--threads", self.threads.unwrap_or(1));
        words.option("--depth", self.pipeline);
        words.flag("--batch", self.pipeline > 1);
        words.option("--keys", self.keys.unwrap_or(1));
        words.maybe("--seed", self.seed);
        words.flag("--no-keep-alive", self.keep_alive == 0);
        words.flag("--inline", inline);
        words.flag("--resp3", self.resp3 || self.enable_tracking);
        words.flag("--tracking", self.enable_tracking);
        words.maybe("--user", self.user.as_ref());
        words.maybe("--password", self.password.as_ref());
        if self.dbnum != 0 {
            words.option("--database", self.dbnum);
        }
        words.flag("--tls", self.tls);
        words.maybe("--sni", self.sni.as_ref());
        words.maybe("--cacert", self.cacert.as_ref());
        words.flag("--insecure", self.insecure);
        words.maybe("--cert", self.cert.as_ref());
        words.maybe("--key", self.key.as_ref());
        words.0.push("--".to_owned());
        words.0.extend_from_slice(command);
        words.0
    }

    fn target(&self) -> String {
        match (&self.socket, &self.uri) {
            (Some(path), _) => format!("unix:{path}"),
            (None, Some(uri)) => uri.to_string(),
            (None, None) if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            (None, None) => format!("{}:{}", self.host, self.port),
        }
    }

    /// Opens the connections, and does nothing with them until the user ends it.
    fn hold_idle(&self) -> Exit {
        let open = |place: usize| {
            let host = self.host.as_str();
            TcpStream::connect((host, self.port)).map_err(|error| format!("connection {place} to {host}: {error}"))
        };
        match (1..=self.clients).map(open).collect::<Result<Vec<_>, _>>() {
            Ok(connections) => {
                println!("Creating {} idle connections and waiting forever (Ctrl+C when done)", connections.len());
                hold();
                Exit::Fine
            }
            Err(error) => {
                eprintln!("error: {error}");
                Exit::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        benchmark: RedisBenchmark,
    }

    fn runs(words: &str) -> Result<Vec<(String, Vec<String>)>, Invalid> {
        Alone::parse_from(words.split(' ')).benchmark.runs()
    }

    #[test]
    fn command_lines_become_ours() {
        #[track_caller]
        fn check(words: &str, expected: &[(&str, &str)]) {
            let found = runs(words).unwrap();
            let found: Vec<_> = found.iter().map(|(title, words)| (title.as_str(), words.join(" "))).collect();
            let expected: Vec<_> = expected.iter().map(|(title, words)| (*title, (*words).to_owned())).collect();
            assert_eq!(found, expected);
        }
        let common = "redis 127.0.0.1:6379 --connections=50 --requests=10000 --threads=1 --depth=1 --keys=1 --";
        check(
            "redis-benchmark -t set,get -n 10000 -c 50",
            &[
                ("SET", &format!("{common} SET key:__rand_int__ xxx")),
                ("GET", &format!("{common} GET key:__rand_int__")),
            ],
        );
        let common = "redis h:7 --connections=9 --requests=5 --threads=2 --depth=16 --batch --keys=100";
        check(
            "redis-benchmark -h h -p 7 -c 9 -n 5 --threads 2 -P 16 -r 100 -t PING_INLINE,zadd -a pw --user ann --dbnum 3 -3",
            &[
                ("PING_INLINE", &format!("{common} --inline --resp3 --user=ann --password=pw --database=3 -- PING")),
                (
                    "ZADD",
                    &format!(
                        "{common} --resp3 --user=ann --password=pw --database=3 -- ZADD myzset __rand_int__ \
                         element:__rand_int__"
                    ),
                ),
            ],
        );
        check(
            "redis-benchmark -s /x -n 5 -k 0 --enable-tracking --tls --insecure eval return 0 -q",
            &[(
                "eval return 0 -q",
                "redis unix:/x --connections=50 --requests=5 --threads=1 --depth=1 --keys=1 --no-keep-alive --resp3 \
                 --tracking --tls --insecure -- eval return 0 -q",
            )],
        );
    }

    #[test]
    fn every_test_is_a_scenario_of_ours() {
        let all = runs("redis-benchmark -d 10").unwrap();
        assert_eq!(all.len(), TESTS.len());
        for (title, words) in &all {
            crate::cli::scenario(words).unwrap_or_else(|error| panic!("{title}: {error}"));
        }
        let lrange: Vec<_> =
            runs("redis-benchmark -t lrange_100").unwrap().into_iter().map(|(title, _)| title).collect();
        assert_eq!(lrange, ["LPUSH (needed to benchmark LRANGE)", "LRANGE_100 (first 100 elements)"]);
        assert_eq!(runs("redis-benchmark -t ping").unwrap().len(), 2);
        let error = runs("redis-benchmark -t nope").unwrap_err().to_string();
        assert!(error.starts_with("-t is `nope`, expected tests of ping_inline, ping_mbulk, set"), "{error}");
    }
}
