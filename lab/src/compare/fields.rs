//! The cost of expiry of the fields of a large hash.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use loadgen::compare::Machine;
use loadgen::record::Latencies;
use serde::{Deserialize, Serialize};
use xtask::process::Server;

use super::memory::SETTLE;
use super::options::Options;
use crate::isolation::{Client, request};
use crate::record;

/// In the folder of records.
const RECORD: &str = "fields.jsonl";
const KEY: &str = "hash";
/// Fields whose times one command sets.
const BATCH: usize = 1_000;
/// From before the first time is set to when the first field's is over: what no server needs for ten million of them.
const GRACE: Duration = Duration::from_secs(120);
/// The fields' times are spread over it.
const SPREAD: Duration = Duration::from_secs(20);
/// How long is waited behind the first time until all fields are removed.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two requests of a bystander, which asks for another key.
const PERIOD: Duration = Duration::from_millis(1);
/// How long the bystander is measured before anything expires.
const QUIET: Duration = Duration::from_secs(10);

/// The figures of one server, as the record keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    subject: String,
    fields: usize,
    /// Bytes per field as the server counts them and as the system does, without times.
    plain: [f64; 2],
    /// The same when each field has a time.
    timed: [f64; 2],
    /// Seconds of processor time to set the times.
    set: f64,
    /// Microseconds of processor time to remove a field.
    removal: f64,
    /// Fields that were removed.
    removed: usize,
    /// Seconds from the first time that was over to the last removal that was seen.
    within: f64,
    /// Milliseconds in which a bystander is answered 999 times of 1,000, and the longest, while nothing expires.
    quiet: [f64; 2],
    /// The same while fields expire.
    beside: [f64; 2],
    /// Of the workspace.
    commit: Option<String>,
    machine: Option<Machine>,
}

/// Fills a hash in a fresh server of every subject, gives each field a time, and watches them go. With `--record` the figures take the
/// place of those that were kept.
pub(super) fn run(options: &Options, fields: usize, folder: &Path) -> Result<()> {
    ensure!(fields > 0 && fields.is_multiple_of(BATCH), "--fields: {fields}: expected a multiple of {BATCH}");
    let all = options.subjects.iter().map(|subject| {
        let server = subject.start(options.pin.as_ref(), folder)?;
        measure(&subject.name, &server, fields).with_context(|| subject.name.clone())
    });
    let all = all.collect::<Result<Vec<_>>>()?;
    print!("{}", in_columns(&all));
    if options.record {
        record::write(RECORD, &all)?;
    }
    Ok(())
}

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    Ok(in_columns(&record::read(RECORD)?))
}

/// A line for each figure, a column for each subject.
fn in_columns(all: &[Row]) -> String {
    let names: Vec<&str> = all.iter().map(|row| row.subject.as_str()).collect();
    let mut table = format!("| | {} |\n|---|{}\n", names.join(" | "), "--:|".repeat(names.len()));
    let mut line = |name: &str, cell: &dyn Fn(&Row) -> String| {
        let cells: Vec<String> = all.iter().map(cell).collect();
        table.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    };
    let pair = |[one, other]: [f64; 2]| format!("{one:.1}, {other:.1}");
    line("bytes per field, used and resident, without times", &|row| pair(row.plain));
    line("with times", &|row| pair(row.timed));
    line("`HPEXPIREAT` of all, s of processor time", &|row| format!("{:.1}", row.set));
    line("removal of a field whose time is over, µs of processor time", &|row| format!("{:.2}", row.removal));
    line("fields that are removed, of all", &|row| format!("{:.0} %", row.removed as f64 * 100.0 / row.fields as f64));
    line("… within s of the first time", &|row| format!("{:.0}", row.within));
    line("another client's p99.9 and longest wait, ms, before", &|row| pair(row.quiet));
    line("… while they are removed", &|row| pair(row.beside));
    table
}

fn measure(subject: &str, server: &Server, fields: usize) -> Result<Row> {
    let mut client = Client::connect(server.port())?;
    let empty = memory(server, &mut client)?;
    client.fill(&["HSET", KEY], fields, |number| vec![name(number), format!("value:{number:08}").into_bytes()])?;
    client.ask(&["SET", "other", "value"])?;
    let per_field = |now: [f64; 2]| [0, 1].map(|at| (now[at] - empty[at]) / fields as f64);
    let plain = per_field(memory(server, &mut client)?);

    let first = SystemTime::now() + GRACE;
    let before = server.cpu_seconds()?;
    for from in (0..fields).step_by(BATCH) {
        let at = first + SPREAD.mul_f64(from as f64 / fields as f64);
        let at = at.duration_since(UNIX_EPOCH)?.as_millis().to_string();
        let count = BATCH.to_string();
        let words = ["HPEXPIREAT", KEY, &at, "FIELDS", &count].map(|word| word.as_bytes().to_vec());
        let words: Vec<_> = words.into_iter().chain((from..from + BATCH).map(name)).collect();
        client.pipeline(&request(&words.iter().map(Vec::as_slice).collect::<Vec<_>>()), 1)?;
    }
    let set = server.cpu_seconds()? - before;
    let timed = per_field(memory(server, &mut client)?);

    let left = first.duration_since(SystemTime::now()).unwrap_or_default();
    ensure!(left > QUIET, "the first fields expire before all have a time: {left:?} left");
    thread::sleep(left - QUIET);
    let before = server.cpu_seconds()?;
    let quiet = bystander(server.port(), || {
        thread::sleep(QUIET);
        Ok(())
    })?;
    let idle = (server.cpu_seconds()? - before) / QUIET.as_secs_f64();

    let (before, begun) = (server.cpu_seconds()?, Instant::now());
    let mut last = (fields, Duration::ZERO);
    let beside = bystander(server.port(), || {
        while last.0 > 0 && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(100));
            let left = client.integer(&["HLEN", KEY])?.try_into()?;
            if left != last.0 {
                last = (left, begun.elapsed());
            }
        }
        Ok(())
    })?;
    let spent = server.cpu_seconds()? - before - idle * begun.elapsed().as_secs_f64();
    let removed = fields - last.0;
    let removal = spent * 1e6 / removed.max(1) as f64;
    let within = last.1.as_secs_f64();
    let (commit, machine) = (loadgen::compare::commit(xtask::workspace::root()), Some(Machine::this()));
    let subject = subject.to_owned();
    Ok(Row { subject, fields, plain, timed, set, removal, removed, within, quiet, beside, commit, machine })
}

/// A field, fourteen bytes, as its value.
fn name(number: usize) -> Vec<u8> {
    format!("field:{number:08}").into_bytes()
}

/// Bytes that the server says that it uses, and those that are resident.
fn memory(server: &Server, client: &mut Client) -> Result<[f64; 2]> {
    thread::sleep(SETTLE);
    Ok([client.info("memory", "used_memory")?, server.resident_bytes()? as f64])
}

/// Asks for another key each [`PERIOD`] while `work` runs: the milliseconds within which 999 of 1,000 answers came, counted from when
/// each was to be asked for, and the longest.
fn bystander(port: u16, work: impl FnOnce() -> Result<()>) -> Result<[f64; 2]> {
    let mut client = Client::connect(port)?;
    let over = AtomicBool::new(false);
    let times = thread::scope(|scope| {
        let asking = scope.spawn(|| -> Result<Latencies> {
            let (mut due, mut times) = (Instant::now(), Latencies::new());
            while !over.load(Relaxed) {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                client.ask(&["GET", "other"])?;
                times.record(u64::try_from(due.elapsed().as_nanos())?);
                due += PERIOD;
            }
            Ok(times)
        });
        let done = work();
        over.store(true, Relaxed);
        let times = asking.join().map_err(|_| anyhow!("the bystander panicked"))?;
        done.and(times)
    })?;
    ensure!(times.count() > 0, "the bystander was never answered");
    Ok([times.percentile(99.9), times.max()].map(|time| time.as_secs_f64() * 1e3))
}
