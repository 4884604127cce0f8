//! The cost of moving slots between two nodes of a cluster, and its effect on clients meanwhile: as a whole between nodes of ours, key by
//! key (`redis-cli --cluster reshard`) between ours and between genuine ones, by turns.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xtask::process::{Server, run_quietly};

use crate::compare::stats::{median, paired_ratio};
use crate::failovers::client::{Reply, ask};
use crate::isolation::Client;
use crate::programs::{Compared, result_of};
use crate::record;

/// Slots of the first node; the other one has the rest.
const HALF: u16 = 8192;
/// Slots that are moved as a whole, and key by key, which takes longer.
const WHOLE: u16 = 1000;
const BY_KEY: u16 = 100;
/// Keys of each slot that is moved, and bytes of their values: a megabyte.
const KEYS: usize = 1000;
const VALUE: usize = 1000;
/// Elements of the large key, of `VALUE` bytes each.
const ELEMENTS: usize = 100_000;
/// How long anything may take that must come.
const PATIENCE: Duration = Duration::from_secs(120);
/// The clients: of keys in all slots, some of which are on their way.
const CLIENTS: [&str; 13] = [
    "-c",
    "20",
    "-t",
    "1",
    "--keys",
    "100000",
    "--value-size",
    "100",
    "--verify",
    "--mix",
    "8:GET key:{key}",
    "--mix",
    "2:SET key:{key} {value}",
];

/// Options of `cargo xtask reshard`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    programs: Compared,
    /// Rounds of each measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that clients ask in each round, without and with moves.
    #[arg(long, default_value_t = 15)]
    seconds: u32,
    /// Keeps the rows in benches/record/reshard.jsonl.
    #[arg(long)]
    record: bool,
}

/// In the folder of records.
const NAME: &str = "reshard.jsonl";

/// A figure of all rounds.
#[derive(Deserialize, Serialize)]
struct Row {
    name: String,
    ours: Vec<f64>,
    /// Where the genuine server can do it.
    genuine: Option<Vec<f64>>,
    machine: Machine,
    commit: Option<String>,
}

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    Ok(written(&record::read::<Row>(NAME)?))
}

fn written(rows: &[Row]) -> String {
    let mut table = "| | ours | Redis | ours / Redis, 95 % |\n|---|--:|--:|---|\n".to_owned();
    for Row { name, ours, genuine, .. } in rows {
        let figure = |values: &[f64]| {
            let value = median(values);
            if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
        };
        let theirs = genuine.as_ref().map_or_else(
            || "– | –".to_owned(),
            |theirs| {
                let (low, high) = paired_ratio(ours, theirs).interval;
                format!("{} | {low:.2} to {high:.2}", figure(theirs))
            },
        );
        writeln!(table, "| {name} | {} | {theirs} |", figure(ours)).expect("writing to memory does not fail");
    }
    table
}

/// Runs the command.
///
/// # Errors
/// A server or the generator cannot be started; slots do not move; a client gets a wrong answer.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (ours, loadgen) = (options.programs.ours()?, options.programs.loadgen()?);
    let mut figures = Figures::default();
    whole(&ours, &loadgen, options, &mut figures)?;
    large(&ours, &loadgen, options, &mut figures)?;
    by_key(&ours, &options.programs.genuine, options.rounds, &mut figures)?;
    let rows = figures.rows();
    print!("{}", written(&rows));
    if options.record {
        record::write(NAME, &rows)?;
    }
    Ok(())
}

/// In the order in which they were first told.
#[derive(Default)]
struct Figures(Vec<(String, Vec<f64>, Option<Vec<f64>>)>);

impl Figures {
    fn add(&mut self, name: &str, ours: f64, genuine: Option<f64>) {
        let at = self.0.iter().position(|(known, ..)| known == name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), Vec::new(), genuine.map(|_| Vec::new())));
            self.0.len() - 1
        });
        self.0[at].1.push(ours);
        if let (Some(all), Some(genuine)) = (&mut self.0[at].2, genuine) {
            all.push(genuine);
        }
    }

    fn rows(self) -> Vec<Row> {
        let commit = loadgen::compare::commit(xtask::workspace::root());
        let row = |(name, ours, genuine)| Row { name, ours, genuine, machine: Machine::this(), commit: commit.clone() };
        self.0.into_iter().map(row).collect()
    }
}

/// A gigabyte in 1,000 slots, back and forth while clients ask.
fn whole(ours: &Path, loadgen: &Path, options: &Options, figures: &mut Figures) -> Result<()> {
    let pair = Pair::start(ours)?;
    pair.fill(WHOLE)?;
    let clients = Clients::new(&pair, loadgen, options.seconds)?;
    let gigabytes = f64::from(WHOLE) * (KEYS * VALUE) as f64 / 1e9;
    for _ in 0..options.rounds {
        let without = clients.ask()?;
        let (with, times) = pair.back_and_forth(WHOLE, || clients.ask())?;
        figures.add(
            "1,000 slots with 1 GB, as a whole: s a GB, among clients at half of the rate that can be had",
            median(&times) / gigabytes,
            None,
        );
        figures.add("their p99 without, ms", without.p99, None);
        figures.add("their p99 meanwhile, ms", with.p99, None);
        figures.add("their longest wait without, ms", without.max, None);
        figures.add("their longest wait meanwhile, ms", with.max, None);
        figures.add("ASK that they were told", with.asked, None);
        figures.add("MOVED that they were told, a move of 1,000 slots", with.moved / times.len() as f64, None);
    }
    Ok(())
}

/// A list of 100 MB.
fn large(ours: &Path, loadgen: &Path, options: &Options, figures: &mut Figures) -> Result<()> {
    let pair = Pair::start(ours)?;
    let tag = &tags(pair.servers[0].port(), 1)?[0];
    let key = format!("{{{tag}}}:list");
    Client::connect(pair.servers[0].port())?.fill(&["RPUSH", &key], ELEMENTS, |_| vec![vec![b'x'; VALUE]])?;
    let clients = Clients::new(&pair, loadgen, options.seconds)?;
    for _ in 0..options.rounds {
        let without = clients.ask()?;
        let (with, times) = pair.back_and_forth(1, || clients.ask())?;
        figures.add("a list of 100 MB, as a whole: s", median(&times), None);
        figures.add("others' p99.9 without, ms", without.p999, None);
        figures.add("others' p99.9 meanwhile, ms", with.p999, None);
    }
    Ok(())
}

/// A tenth of a gigabyte, key by key, by turns.
fn by_key(ours: &Path, genuine: &Path, rounds: usize, figures: &mut Figures) -> Result<()> {
    let pairs = [Pair::start(ours)?, Pair::start(genuine)?];
    pairs.iter().try_for_each(|pair| pair.fill(BY_KEY))?;
    let gigabytes = f64::from(BY_KEY) * (KEYS * VALUE) as f64 / 1e9;
    for round in 0..rounds {
        let mut times = [0.0; 2];
        for at in [round % 2, 1 - round % 2] {
            times[at] = pairs[at].reshard(round % 2, BY_KEY)?.as_secs_f64() / gigabytes;
        }
        figures.add("100 slots with 0.1 GB, key by key (redis-cli): s a GB", times[0], Some(times[1]));
    }
    Ok(())
}

/// Two primaries without replicas.
struct Pair {
    servers: [Server; 2],
    ids: [String; 2],
}

impl Pair {
    fn start(program: &Path) -> Result<Self> {
        let program = std::path::absolute(program)?.display().to_string();
        let start = || -> Result<(Server, u16)> {
            let (port, bus) = (test_peers::free_port(), test_peers::free_port());
            let mut command = vec![program.clone()];
            command.extend(crate::compare::memory_only(port));
            let timeout = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port"];
            command.extend(timeout.into_iter().map(str::to_owned).chain([bus.to_string()]));
            Ok((Server::start(&command, port, &xtask::workspace::target_dir().join("reshard"))?, bus))
        };
        let [(first, _), (second, bus)] = [start()?, start()?];
        let is_ok = |server: &Server, line: &str| -> Result<()> {
            ensure!(ask(addr(server), line)?.text() == "OK", "{line}: not OK");
            Ok(())
        };
        is_ok(&first, &format!("CLUSTER ADDSLOTSRANGE 0 {}", HALF - 1))?;
        is_ok(&second, &format!("CLUSTER ADDSLOTSRANGE {HALF} 16383"))?;
        is_ok(&second, "CLUSTER SET-CONFIG-EPOCH 1")?;
        is_ok(&first, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", second.port()))?;
        let id = |server: &Server| -> Result<String> { Ok(ask(addr(server), "CLUSTER MYID")?.text().to_owned()) };
        let pair = Self { ids: [id(&first)?, id(&second)?], servers: [first, second] };
        pair.wait_until("both serve", |server| {
            let info = ask(addr(server), "CLUSTER INFO")?;
            Ok(info.text().contains("cluster_state:ok") && info.text().contains("cluster_known_nodes:2"))
        })?;
        Ok(pair)
    }

    /// Waits until something is so of both.
    fn wait_until(&self, what: &str, is_so: impl Fn(&Server) -> Result<bool>) -> Result<()> {
        let began = Instant::now();
        for server in &self.servers {
            while !is_so(server)? {
                ensure!(began.elapsed() < PATIENCE, "waited in vain: {what}");
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Puts keys into the first slots.
    fn fill(&self, slots: u16) -> Result<()> {
        let port = self.servers[0].port();
        let mut client = Client::connect(port)?;
        for tag in tags(port, slots)? {
            client.each("SET", KEYS, |key| vec![format!("{{{tag}}}:{key}").into_bytes(), vec![b'x'; VALUE]])?;
        }
        Ok(())
    }

    /// Moves the first slots as a whole, there and back, as long as something else goes on; how many seconds each move took that was over
    /// before that was.
    fn back_and_forth<T>(&self, slots: u16, meanwhile: impl FnOnce() -> Result<T>) -> Result<(T, Vec<f64>)> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let moves = scope.spawn(|| {
                let (mut times, mut from) = (Vec::new(), 0);
                // In the end they are where they were.
                while !over.load(Relaxed) || from == 1 {
                    let time = self.move_whole(from, slots)?.as_secs_f64();
                    from = 1 - from;
                    if !over.load(Relaxed) {
                        times.push(time);
                    }
                }
                ensure!(!times.is_empty(), "no move was over in time: more --seconds");
                Ok(times)
            });
            let result = meanwhile();
            over.store(true, Relaxed);
            let times = moves.join().expect("moving does not panic")?;
            Ok((result?, times))
        })
    }

    /// Moves the first slots from one node to the other, until both say that it is done.
    fn move_whole(&self, from: usize, slots: u16) -> Result<Duration> {
        let (source, target) = (addr(&self.servers[from]), &self.ids[1 - from]);
        let began = Instant::now();
        let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 {} NODE {target}", slots - 1);
        let reply = ask(source, &line)?;
        ensure!(reply.text() == "OK", "{line}: {reply:?}");
        let newest = moves(source, |_| true)?.context("no move is told of")?;
        let name = value(&newest, "name").to_owned();
        self.wait_until("the slots have moved", |server| {
            let state = moves(addr(server), |texts| value(texts, "name") == name)?;
            let state = state.as_deref().map_or("", |texts| value(texts, "state"));
            ensure!(state != "failed", "a move has failed");
            Ok(state == "success")
        })?;
        Ok(began.elapsed())
    }

    /// Moves as many slots, the first that a node has, key by key.
    fn reshard(&self, from: usize, slots: u16) -> Result<Duration> {
        let mut command = Command::new("redis-cli");
        command.args(["--cluster", "reshard", &format!("127.0.0.1:{}", self.servers[0].port()), "--cluster-yes"]);
        command.args(["--cluster-from", &self.ids[from], "--cluster-to", &self.ids[1 - from]]);
        let began = Instant::now();
        run_quietly(command.args(["--cluster-slots", &slots.to_string()]))?;
        Ok(began.elapsed())
    }
}

/// The newest of a node's moves for which something holds: names and values.
fn moves(node: SocketAddr, holds: impl Fn(&[String]) -> bool) -> Result<Option<Vec<String>>> {
    let Reply::Array(moves) = ask(node, "CLUSTER GETSLOTMIGRATIONS")? else { return Ok(None) };
    let texts = |told: &Reply| told.texts().into_iter().map(str::to_owned).collect::<Vec<_>>();
    Ok(moves.iter().map(texts).find(|texts| holds(texts)))
}

/// The value behind a name.
fn value<'t>(texts: &'t [String], name: &str) -> &'t str {
    texts.iter().position(|text| text == name).and_then(|at| texts.get(at + 1)).map_or("", String::as_str)
}

fn addr(server: &Server) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port()))
}

/// A word of each of the first slots.
fn tags(port: u16, slots: u16) -> Result<Vec<String>> {
    let mut client = Client::connect(port)?;
    let mut tags = BTreeMap::new();
    for number in 0.. {
        if tags.len() == usize::from(slots) {
            break;
        }
        let tag = format!("tag{number}");
        let slot = client.integer(&["CLUSTER", "KEYSLOT", &tag])?;
        if slot < i64::from(slots) {
            tags.insert(slot, tag);
        }
    }
    Ok(tags.into_values().collect())
}

/// The generator, at half of the rate that it can have.
struct Clients<'p> {
    loadgen: &'p Path,
    folder: &'p Path,
    target: String,
    rate: u64,
    seconds: u32,
}

/// Times in milliseconds.
struct Seen {
    per_second: f64,
    p99: f64,
    p999: f64,
    max: f64,
    moved: f64,
    asked: f64,
}

impl<'p> Clients<'p> {
    fn new(pair: &'p Pair, loadgen: &'p Path, seconds: u32) -> Result<Self> {
        let target = format!("127.0.0.1:{}", pair.servers[0].port());
        let mut clients = Self { loadgen, folder: pair.servers[0].folder(), target, rate: 0, seconds };
        clients.rate = (clients.ask_with(&["--preload", "-d", "3s"])?.per_second / 2.0) as u64;
        Ok(clients)
    }

    fn ask(&self) -> Result<Seen> {
        self.ask_with(&["--rate", &self.rate.to_string(), "-d", &format!("{}s", self.seconds)])
    }

    fn ask_with(&self, arguments: &[&str]) -> Result<Seen> {
        let mut command = Command::new(self.loadgen);
        command.args(["redis", "--cluster", "--timeout", "60s"]).args(arguments).args(CLIENTS);
        let result = result_of(command.arg(&self.target), self.folder)?;
        let figure = |path: &str| {
            result.pointer(path).and_then(Value::as_f64).with_context(|| format!("the result has no {path}: {result}"))
        };
        ensure!(figure("/summary/failed")? == 0.0, "clients were not served: {}", result["failures"]);
        Ok(Seen {
            per_second: figure("/summary/all/per_second")?,
            p99: 1e3 * figure("/summary/all/p99")?,
            p999: 1e3 * figure("/summary/all/p99.9")?,
            max: 1e3 * figure("/summary/all/max")?,
            moved: figure("/redirects/moved")?,
            asked: figure("/redirects/asked")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_rounds_are_shown_by_their_medians() {
        let mut figures = Figures::default();
        for round in 1..=5 {
            let round = f64::from(round);
            figures.add("alone", round, None);
            figures.add("both", 10.0 * round, Some(20.0 * round));
        }
        let table = written(&figures.rows());
        assert!(table.ends_with("\n| alone | 3.00 | – | – |\n| both | 30 | 60 | 0.50 to 0.50 |\n"), "{table}");
    }
}
