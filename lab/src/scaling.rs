//! The gain of a second worker: CPU time per request with one worker and with two that are both at work, in interleaved runs.
//!
//! Where server and generator share two processors no rate can say it. But workers that never wait for each other do twice as much in the
//! same time, at the price that a request has then: two workers do twice the ratio of the prices. Missing is the time that a worker sleeps
//! for a lock, which is no CPU time; the keyspace's locks spin first, and how much of both processors server and generator left idle is
//! printed beside it.
//!
//! A server gathers connections on one worker where no processor is free. So they are spread before, by requests that cost the
//! generator nothing, and stay where they are, as both workers are busy enough.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};
use xtask::process::Server;

use crate::compare::stats::{median, paired_ratio};
use crate::isolation::Client;
use crate::load::xorshift;
use crate::record;

/// In the folder of records.
const RECORD: &str = "scaling.jsonl";

/// Requests outstanding on each connection.
const DEPTHS: [usize; 2] = [1, 32];
const CONNECTIONS: usize = 64;
/// Below this balance of two workers' CPU time, a run says nothing of two.
const SPREAD: f64 = 0.3;
/// Keys that the load uses, and bytes of their values.
const KEYS: u64 = 100_000;
const VALUE: usize = 100;
/// For how long connections are spread, and bytes that a request looks at meanwhile.
const SPREADING: Duration = Duration::from_secs(1);
const LOOKED_AT: usize = 30_000;

/// One more client that does nothing, and what it has asked for before.
struct Idler {
    name: &'static str,
    words: &'static [&'static [&'static str]],
}

const IDLERS: [Idler; 5] = [
    Idler { name: "nobody", words: &[] },
    Idler { name: "one idle BLPOP", words: &[&["BLPOP", "nothing", "0"]] },
    Idler { name: "one WATCH", words: &[&["WATCH", "key:1"]] },
    Idler { name: "one tracking client", words: &[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON"], &["GET", "key:1"]] },
    Idler {
        name: "one subscriber of keyspace events",
        words: &[&["CONFIG", "SET", "notify-keyspace-events", "KEA"], &["SUBSCRIBE", "__keyspace@0__:key:1"]],
    },
];

/// Options of `cargo xtask scaling`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Our server; built when not given.
    #[arg(long)]
    ours: Option<PathBuf>,
    /// Rounds of each measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each run.
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Only conditions whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Keep what is measured in benches/record/scaling.jsonl, in the place of older figures of the same conditions.
    #[arg(long)]
    record: bool,
}

/// The figures of one run.
struct Sample {
    /// CPU time of the server per request, in microseconds.
    cpu_us: f64,
    rate: f64,
    /// CPU time of the worker that did less, over that of the one that did more.
    balance: f64,
    /// Share of two processors that neither server nor generator used.
    idle: f64,
}

/// A condition, and what its rounds have shown.
#[derive(Serialize, Deserialize)]
struct Row {
    client: String,
    depth: usize,
    /// CPU time per request in microseconds, with one worker and with two.
    cpu_us: [Vec<f64>; 2],
    /// With two.
    balance: Vec<f64>,
    idle: Vec<f64>,
    rate: Vec<f64>,
    /// Of the workspace.
    commit: Option<String>,
    machine: Machine,
}

/// Runs the command.
///
/// # Errors
/// A server or the generator cannot be started, or fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ours = options.ours.clone().map_or_else(|| crate::programs::ours("redis-server"), Ok)?;
    let (mut rows, commit) = (Vec::new(), loadgen::compare::commit(xtask::workspace::root()));
    let is_wanted = |idler: &&Idler| options.only.as_ref().is_none_or(|only| idler.name.contains(only.as_str()));
    for idler in IDLERS.iter().filter(is_wanted) {
        for depth in DEPTHS {
            let mut samples: [Vec<Sample>; 2] = [Vec::new(), Vec::new()];
            for round in 0..options.rounds {
                for at in [round % 2, 1 - round % 2] {
                    samples[at].push(measure(options, idler, depth, at + 1, &ours)?);
                }
            }
            let row = Row::new(idler, depth, &samples, commit.clone());
            println!("{}", row.described());
            rows.push(row);
        }
    }
    print!("\n{}", written(&rows));
    if options.record {
        if let Some(row) = rows.iter().find(|row| !row.is_spread()) {
            bail!("nothing is kept, as one worker did all: {}", row.described());
        }
        let mut kept = record::read::<Row>(RECORD)?;
        kept.retain(|old| !rows.iter().any(|row| (&row.client, row.depth) == (&old.client, old.depth)));
        kept.extend(rows);
        record::write(RECORD, &kept)?;
    }
    Ok(())
}

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    Ok(written(&record::read(RECORD)?))
}

/// A line for each condition.
fn written(rows: &[Row]) -> String {
    let head = "| one more client | depth | 1 worker | 2 workers | 2 workers do | 95 % |\n|---|--:|--:|--:|--:|---|\n";
    head.to_owned() + &rows.iter().map(Row::line).collect::<String>()
}

impl Row {
    fn new(idler: &Idler, depth: usize, [one, two]: &[Vec<Sample>; 2], commit: Option<String>) -> Self {
        let all = |samples: &[Sample], field: fn(&Sample) -> f64| samples.iter().map(field).collect::<Vec<_>>();
        Self {
            client: idler.name.to_owned(),
            depth,
            cpu_us: [one, two].map(|samples| all(samples, |sample| sample.cpu_us)),
            balance: all(two, |sample| sample.balance),
            idle: all(two, |sample| sample.idle),
            rate: all(two, |sample| sample.rate),
            commit,
            machine: Machine::this(),
        }
    }

    /// Whether both workers were at work: the server gathers connections on one where no processor is free.
    fn is_spread(&self) -> bool {
        median(&self.balance) >= SPREAD
    }

    /// The figures that no table has: how much of the result is to be believed.
    fn described(&self) -> String {
        let [balance, idle, rate] = [&self.balance, &self.idle, &self.rate].map(|values| median(values));
        let Self { client, depth, .. } = self;
        format!("{client}, {depth} deep: balance {balance:.2}, idle {:.0} %, {rate:.0}/s", 100.0 * idle)
    }

    /// Of a table.
    fn line(&self) -> String {
        let [one, two] = &self.cpu_us;
        let ratio = paired_ratio(one, two);
        let scaling = if self.is_spread() {
            format!("{:.2} x | {:.2} to {:.2}", 2.0 * ratio.mean, 2.0 * ratio.interval.0, 2.0 * ratio.interval.1)
        } else {
            "unknown: one did all | –".to_owned()
        };
        let digits = |value: f64| if value < 1.0 { format!("{value:.2}") } else { format!("{value:.1}") };
        let [single, double] = [one, two].map(|values| digits(median(values)));
        format!("| {} | {} | {single} | {double} | {scaling} |\n", self.client, self.depth)
    }
}

fn measure(options: &Options, idler: &Idler, depth: usize, workers: usize, ours: &Path) -> Result<Sample> {
    let port = test_peers::free_port();
    let program = std::path::absolute(ours)?.display().to_string();
    let mut command = vec![program, "--workers".to_owned(), workers.to_string()];
    command.extend(crate::compare::memory_only(port));
    let server = Server::start(&command, port, &xtask::workspace::target_dir().join("scaling"))?;
    let mut client = Client::connect(port)?;
    client.ask(&["SET", "looked-at", &"x".repeat(LOOKED_AT)])?;
    client.each("SET", KEYS as usize, |key| vec![name(key as u64).into_bytes(), vec![b'x'; VALUE]])?;
    let (last, first) = idler.words.split_last().map_or((None, idler.words), |(last, first)| (Some(last), first));
    first.iter().try_for_each(|words| client.ask(words))?;
    last.map_or(Ok(()), |words| client.send(words))?;
    let mut load = Load::connect(port)?;
    load.run(&Batch::spreading(), SPREADING)?;
    let batches = Batch::mixed(depth);
    let (cpu, threads, generator) = (server.cpu_seconds()?, server.threads_cpu_seconds()?, own_cpu_seconds());
    let began = Instant::now();
    let answers = load.run(&batches, Duration::from_secs(options.seconds.into()))? as f64;
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), server.cpu_seconds()? - cpu);
    let generator = own_cpu_seconds() - generator;
    let mut spent: Vec<f64> =
        server.threads_cpu_seconds()?.iter().zip(&threads).map(|(after, before)| after - before).collect();
    spent.sort_by(|a, b| b.total_cmp(a));
    Ok(Sample {
        cpu_us: cpu / answers * 1e6,
        rate: answers / elapsed,
        balance: spent.get(1).copied().unwrap_or(0.0) / spent[0].max(f64::MIN_POSITIVE),
        idle: 1.0 - (cpu + generator) / (2.0 * elapsed),
    })
}

fn own_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn name(key: u64) -> String {
    format!("key:{key:012}")
}

/// Requests that are sent at once, and their answers.
struct Batch {
    requests: Vec<u8>,
    answers: Vec<u8>,
    count: usize,
}

impl Batch {
    /// Requests that keep a worker busy, and no other thread.
    fn spreading() -> Vec<Self> {
        const COUNT: usize = 32;
        let requests = b"*2\r\n$8\r\nBITCOUNT\r\n$9\r\nlooked-at\r\n".repeat(COUNT);
        let answer = format!(":{}\r\n", LOOKED_AT * b'x'.count_ones() as usize);
        vec![Self { requests, answers: answer.repeat(COUNT).into_bytes(), count: COUNT }]
    }

    /// GET and SET by turns, of keys in no order.
    fn mixed(depth: usize) -> Vec<Self> {
        let mut random = 0x9e37_79b9_7f4a_7c15;
        let value = "x".repeat(VALUE);
        let batch = |number: usize| {
            let (mut requests, mut answers) = (String::new(), String::new());
            for at in 0..depth {
                let key = name(xorshift(&mut random) % KEYS);
                if (number + at).is_multiple_of(2) {
                    requests += &format!("*2\r\n$3\r\nGET\r\n$16\r\n{key}\r\n");
                    answers += &format!("${VALUE}\r\n{value}\r\n");
                } else {
                    requests += &format!("*3\r\n$3\r\nSET\r\n$16\r\n{key}\r\n${VALUE}\r\n{value}\r\n");
                    answers += "+OK\r\n";
                }
            }
            Self { requests: requests.into_bytes(), answers: answers.into_bytes(), count: depth }
        };
        (0..1009).map(batch).collect()
    }
}

/// Connections, each of which has one batch under way.
struct Load {
    streams: Vec<TcpStream>,
}

impl Load {
    fn connect(port: u16) -> Result<Self> {
        let connect = |_| -> Result<TcpStream> {
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            Ok(stream)
        };
        Ok(Self { streams: (0..CONNECTIONS).map(connect).collect::<Result<_>>()? })
    }

    /// Sends batches for so long, one after the other on each connection, and checks what is answered. Returns how many answers
    /// there were.
    fn run(&mut self, batches: &[Batch], time: Duration) -> Result<usize> {
        let end = Instant::now() + time;
        let mut buffer = Vec::new();
        let (mut next, mut answers) = (0, 0);
        let mut under_way: Vec<usize> = Vec::new();
        for stream in &mut self.streams {
            stream.write_all(&batches[next % batches.len()].requests)?;
            under_way.push(next % batches.len());
            next += 1;
        }
        let mut goes_on = true;
        while goes_on {
            goes_on = Instant::now() < end;
            for (stream, under_way) in self.streams.iter_mut().zip(&mut under_way) {
                let batch = &batches[*under_way];
                buffer.resize(batch.answers.len(), 0);
                stream.read_exact(&mut buffer)?;
                ensure!(buffer == batch.answers, "wrong answers: {}", buffer[..buffer.len().min(200)].escape_ascii());
                answers += batch.count;
                if goes_on {
                    *under_way = next % batches.len();
                    stream.write_all(&batches[*under_way].requests)?;
                    next += 1;
                }
            }
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_are_compared_by_the_price_of_a_request() {
        let sample = |cpu_us, balance| Sample { cpu_us, rate: 1.0, balance, idle: 0.0 };
        let table = |balance| {
            let samples = [1.0, 2.0, 3.0].map(|cpu_us| [sample(cpu_us, 0.0), sample(2.0 * cpu_us, balance)]);
            let [mut one, mut two] = [Vec::new(), Vec::new()];
            for [single, double] in samples {
                one.push(single);
                two.push(double);
            }
            written(&[Row::new(&IDLERS[0], 32, &[one, two], None)])
        };
        assert!(table(0.9).ends_with("|\n| nobody | 32 | 2.0 | 4.0 | 1.00 x | 1.00 to 1.00 |\n"), "{}", table(0.9));
        assert!(table(0.1).ends_with("|\n| nobody | 32 | 2.0 | 4.0 | unknown: one did all | – |\n"), "{}", table(0.1));
    }
}
