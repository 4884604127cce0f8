//! A replica of the same kind: how long a snapshot takes to be there, what it costs the primary, and how far behind the replica is.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::process::Server;

use super::prober::Plot;
use super::subject::{Figures, Subject, figure};

/// Writes at full rate, sixteen deep.
const FULL: [&str; 10] =
    ["-c", "50", "--value-size", "100", "--mix", "1:SET key:{key} {value}", "--depth", "16", "--batch", "-d"];
/// Writes at the rate at which it is measured how late they are seen.
const STEADY: [&str; 10] =
    ["-c", "50", "--value-size", "100", "--mix", "1:SET key:{key} {value}", "--rate", "50000", "-d", "6s"];
/// Bytes of a value where snapshots are measured.
const VALUE: usize = 1000;
/// Writes whose way to the replica is timed.
const PROBES: usize = 1000;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection that asks.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn to(server: &Server) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", server.port()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn ask(&mut self, words: &str) -> Result<String> {
        self.stream.get_mut().write_all(format!("{words}\r\n").as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let Some(length) = line.strip_prefix('$') else { return Ok(line.trim_end().to_owned()) };
        let length: i64 = length.trim_end().parse()?;
        let Ok(length) = usize::try_from(length) else { return Ok(String::new()) };
        let mut text = vec![0; length + 2];
        self.stream.read_exact(&mut text)?;
        text.truncate(length);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn info(&mut self, section: &str, name: &str) -> Result<String> {
        let text = self.ask(&format!("INFO {section}"))?;
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(found.unwrap_or_default().to_owned())
    }
}

fn until(mut holds: impl FnMut() -> Result<bool>) -> Result<Duration> {
    let began = Instant::now();
    while !holds()? {
        if began.elapsed() > PATIENCE {
            bail!("the replica does not come");
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(began.elapsed())
}

pub(super) fn measure(subject: &Subject, _: &mut Plot) -> Result<Figures> {
    let settings = ["--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb"];
    let (first, second) = (subject.start(&settings)?, subject.start(&settings)?);
    let (mut primary, mut replica) = (Connection::to(&first)?, Connection::to(&second)?);
    primary.ask(&format!("DEBUG POPULATE {} key {VALUE}", subject.keys))?;
    let megabytes = (subject.keys * VALUE) as f64 / 1e6;
    let before = first.resident_bytes()?;
    let mut most = before;
    replica.ask(&format!("REPLICAOF 127.0.0.1 {}", first.port()))?;
    let quiet = until(|| {
        most = most.max(first.resident_bytes()?);
        Ok(replica.info("replication", "master_link_status")? == "up")
    })?;
    let mut figures = vec![
        ("full synchronization, s per GB", quiet.as_secs_f64() * 1e3 / megabytes),
        ("memory of the primary meanwhile, MB more", (most - before) as f64 / 1e6),
    ];
    figures.extend(at_full_rate(subject, &first, &second)?);
    figures.extend(propagation(subject, &first, &second)?);
    Ok(figures)
}

/// One replica more, while others write as fast as they can; and what a write costs with the one that is there.
fn at_full_rate(subject: &Subject, first: &Server, second: &Server) -> Result<Figures> {
    let mut primary = Connection::to(first)?;
    let before = first.cpu_seconds()?;
    let summary = subject.run(first, &[FULL.as_slice(), &["4s"]].concat())?;
    let cpu = 1e6 * (first.cpu_seconds()? - before) / figure(&summary, "answers")?;
    let rate = figure(&summary, "per_second")?;
    let synchronized = primary.info("stats", "sync_full")?;
    thread::scope(|scope| -> Result<Figures> {
        let load = scope.spawn(|| subject.run(first, &[FULL.as_slice(), &["8s"]].concat()));
        thread::sleep(Duration::from_millis(500));
        let mut replica = Connection::to(second)?;
        // As one that has nothing.
        replica.ask("REPLICAOF NO ONE")?;
        replica.ask("FLUSHALL")?;
        replica.ask("DEBUG CHANGE-REPL-ID")?;
        replica.ask("SET not known")?;
        replica.ask(&format!("REPLICAOF 127.0.0.1 {}", first.port()))?;
        let loaded = until(|| Ok(replica.info("replication", "master_link_status")? == "up"))?;
        load.join().expect("a run of the generator does not panic")?;
        let caught_up = until(|| {
            Ok(replica.info("replication", "slave_repl_offset")?
                == primary.info("replication", "master_repl_offset")?)
        })?;
        let full: f64 = primary.info("stats", "sync_full")?.parse::<f64>()? - synchronized.parse::<f64>()?;
        Ok(vec![
            ("SETs/s with one replica, 16 deep", rate),
            ("us of CPU of the primary per SET, 16 deep", cpu),
            ("one more synchronization at that rate, s", loaded.as_secs_f64()),
            ("synchronizations that it took", full),
            ("caught up behind the load, s", caught_up.as_secs_f64()),
        ])
    })
}

/// How late a write is seen at 50,000 a second, and how long a cut link takes to be whole.
fn propagation(subject: &Subject, first: &Server, second: &Server) -> Result<Figures> {
    thread::scope(|scope| {
        let load = scope.spawn(|| subject.run(first, &STEADY));
        thread::sleep(Duration::from_millis(500));
        let (mut primary, mut replica) = (Connection::to(first)?, Connection::to(second)?);
        let mut times = Vec::with_capacity(PROBES);
        for number in 0..PROBES {
            primary.ask(&format!("SET probe {number}"))?;
            let acknowledged = Instant::now();
            while replica.ask("GET probe")? != number.to_string() {}
            times.push(acknowledged.elapsed());
        }
        times.sort_unstable();
        primary.ask("CLIENT KILL TYPE replica")?;
        let cut_at: u64 = primary.info("replication", "master_repl_offset")?.parse()?;
        let healed = until(|| {
            let offset = replica.info("replication", "slave_repl_offset")?;
            let is_up = replica.info("replication", "master_link_status")? == "up";
            Ok(is_up && offset.parse::<u64>().context("an offset")? > cut_at)
        })?;
        load.join().expect("a run of the generator does not panic")?;
        let share = |share: usize| 1e3 * times[(times.len() - 1) * share / 1000].as_secs_f64();
        Ok(vec![
            ("from answered to seen, median, ms", share(500)),
            ("from answered to seen, p99, ms", share(990)),
            ("caught up after a cut, s", healed.as_secs_f64()),
        ])
    })
}
