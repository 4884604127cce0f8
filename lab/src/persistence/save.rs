//! Snapshots in the background: how fast they are written, what clients notice of it, and what they take of memory.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use xtask::process::{Server, run_quietly};

use super::prober::{Plot, Prober, longest, p999, points};
use super::subject::{Figures, Subject, figure};
use crate::isolation::Client;

/// Random overwrites, as fast as they go.
const OVERWRITES: [&str; 8] = ["-c", "50", "--value-size", "1000", "--mix", "1:SET key:{key} {value}", "--depth", "1"];
/// Between two looks at whether a snapshot is complete.
const LOOK: Duration = Duration::from_millis(5);
/// Time in which nothing happens but load.
const BASE: Duration = Duration::from_secs(3);
/// After the order to save, in which a stall belongs to its beginning, in seconds.
const START: f64 = 0.1;
/// Before the snapshot and behind it, in what is drawn.
const MARGIN: Duration = Duration::from_secs(1);

pub(super) fn measure(subject: &Subject, plot: &mut Plot) -> Result<Figures> {
    let server = subject.start(&[])?;
    let mut client = Client::connect(server.port())?;
    // By the generator, so that it overwrites these keys and adds none.
    let fill = ["--preload", "--value-size", "1000", "-n", "1", "--mix", "1:GET key:{key}"];
    run_quietly(&mut subject.load(&server, &fill))?;
    ensure_keys(&mut client, subject)?;
    // Without clients.
    let prober = Prober::begin(server.port())?;
    thread::sleep(MARGIN);
    let began = Instant::now();
    save(&mut client)?;
    let took = began.elapsed().as_secs_f64();
    let samples = prober.end(began)?;
    let megabytes = fs::metadata(server.folder().join("dump.rdb"))?.len() as f64 / 1e6;
    let mut figures = vec![
        ("save MB/s, no clients but one", megabytes / took),
        ("longest answer within 100 ms of BGSAVE, ms", 1e3 * longest(&samples, 0.0, START)),
        ("longest answer in 1 s before, ms", 1e3 * longest(&samples, -1.0, -0.01)),
        ("standing still for the cut, or in fork, ms", client.info("stats", "latest_fork_usec")? / 1e3),
    ];
    let rate = overwritten(subject, &server, &mut client, &mut figures)?;
    half(subject, &server, &mut client, rate / 2.0, &mut figures, plot)?;
    ensure_keys(&mut client, subject)?;
    Ok(figures)
}

/// Memory says something only if what is overwritten is there, and nothing else comes.
fn ensure_keys(client: &mut Client, subject: &Subject) -> Result<()> {
    let (text, expected) = (client.text(&["INFO", "keyspace"])?, format!("db0:keys={},", subject.keys));
    ensure!(text.contains(&expected), "there are other keys than the {} that are overwritten:\n{text}", subject.keys);
    Ok(())
}

/// Saves in the background and waits for it.
fn save(client: &mut Client) -> Result<()> {
    client.ask(&["BGSAVE"])?;
    while is_saving(client)? {
        thread::sleep(LOOK);
    }
    Ok(())
}

fn is_saving(client: &mut Client) -> Result<bool> {
    Ok(client.info("persistence", "rdb_bgsave_in_progress")? > 0.0)
}

/// A snapshot while everything is overwritten at full rate; that rate.
fn overwritten(subject: &Subject, server: &Server, client: &mut Client, figures: &mut Figures) -> Result<f64> {
    let mut load = subject.load(server, &OVERWRITES);
    let mut load = load.args(["-d", "600s"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut measure = || -> Result<()> {
        thread::sleep(MARGIN);
        let mut count = |wait: &mut dyn FnMut(&mut Client) -> Result<()>| -> Result<f64> {
            let (before, began) = (client.info("stats", "total_commands_processed")?, Instant::now());
            wait(client)?;
            let commands = client.info("stats", "total_commands_processed")? - before;
            Ok(commands / began.elapsed().as_secs_f64())
        };
        let full = count(&mut |_| {
            thread::sleep(BASE);
            Ok(())
        })?;
        let saving = count(&mut save)?;
        // In a snapshot of its own: a look at a gigabyte takes longer than many a request.
        let before = memory(server)?;
        let mut most = before;
        client.ask(&["BGSAVE"])?;
        while is_saving(client)? {
            most = most.max(memory(server)?);
            thread::sleep(10 * LOOK);
        }
        figures.push(("SETs/s at full rate, no save", full));
        figures.push(("throughput while saving, % of that", 100.0 * saving / full));
        figures.push(("more memory while saving, %", 100.0 * (most / before - 1.0)));
        Ok(())
    };
    let measured = measure();
    load.kill()?;
    load.wait()?;
    measured?;
    figures.iter().find(|(name, _)| name.starts_with("SETs/s")).map(|(_, rate)| *rate).context("it is there")
}

/// Memory of the server and the processes that it has started, in bytes: what they share counts once.
fn memory(server: &Server) -> Result<f64> {
    let pid = server.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let of = |pid: &str| -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok()
    };
    let own = of(&pid.to_string()).context("no smaps_rollup")?;
    Ok(1024.0 * (own + children.split_whitespace().filter_map(of).sum::<f64>()))
}

/// Latencies at half of the full rate, without a snapshot, and with one after the other.
fn half(
    subject: &Subject,
    server: &Server,
    client: &mut Client,
    rate: f64,
    figures: &mut Figures,
    plot: &mut Plot,
) -> Result<()> {
    let rate = format!("{rate:.0}");
    let words = [OVERWRITES.as_slice(), &["--rate", &rate, "-d", "5s"]].concat();
    let prober = Prober::begin(server.port())?;
    let began = Instant::now();
    let without = figure(&subject.run(server, &words)?, "p99.9")?;
    let answers_without = p999(&prober.end(began)?);
    let prober = Prober::begin(server.port())?;
    let (began, with) = thread::scope(|scope| -> Result<_> {
        let load = scope.spawn(|| subject.run(server, &words));
        thread::sleep(MARGIN);
        let began = Instant::now();
        save(client)?;
        while !load.is_finished() {
            save(client)?;
        }
        let summary = load.join().expect("a run of the generator does not panic")?;
        Ok((began, figure(&summary, "p99.9")?))
    })?;
    let samples = prober.end(began)?;
    plot.insert(subject.name.to_owned(), points(&samples));
    let answers_with = p999(&samples);
    figures.push(("p99.9 of one more client that waits for its answers, no save, ms", 1e3 * answers_without));
    figures.push(("p99.9 of that client, saving, ms", 1e3 * answers_with));
    figures.push(("the same, times that without a save", answers_with / answers_without));
    figures.push(("p99.9 at half of that rate from when it was due, no save, ms", 1e3 * without));
    figures.push(("p99.9 at half of that rate from when it was due, saving, ms", 1e3 * with));
    figures.push(("the same, times that without", with / without));
    Ok(())
}
