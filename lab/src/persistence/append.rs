//! Writes that go to the append-only file.

use std::fs::File;
use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::prober::Plot;
use super::subject::{Figures, Subject, figure};
use crate::isolation::Client;

/// Writes of one client after the other.
const SINGLE: [&str; 8] = ["-c", "50", "--value-size", "100", "--mix", "1:SET key:{key} {value}", "-d", "4s"];
/// The time that a flush is made to take, besides the disk's own: as a disk without a memory of its own does.
const SLOW: Duration = Duration::from_millis(5);
/// Reads beside them.
const READS: [&str; 8] = ["-c", "10", "--mix", "1:GET key:{key}", "--rate", "1000", "-d", "4s"];
/// Syncs from which the time of one is estimated.
const SYNCS: u32 = 200;

pub(super) fn measure(subject: &Subject, _: &mut Plot) -> Result<Figures> {
    let sync = sync_time(subject)?;
    let server = subject.start(&["--appendonly", "yes", "--appendfsync", "always"])?;
    let (writes, reads) = thread::scope(|scope| -> Result<_> {
        let writes = scope.spawn(|| subject.run(&server, &SINGLE));
        let reads = subject.run(&server, &READS)?;
        Ok((writes.join().expect("a run of the generator does not panic")?, reads))
    })?;
    let always = figure(&writes, "per_second")?;
    drop(server);
    let server = subject.start(&["--appendonly", "yes", "--appendfsync", "always"])?;
    Client::connect(server.port())?.ask(&["DEBUG", "AOF-FLUSH-SLEEP", &SLOW.as_micros().to_string()])?;
    let slow = figure(&subject.run(&server, &SINGLE)?, "per_second")?;
    drop(server);
    let mut figures = vec![
        ("fdatasync, ms", 1e3 * sync.as_secs_f64()),
        ("always: SETs/s of 50 clients", always),
        ("the same, times 50 / fdatasync", always * sync.as_secs_f64() / 50.0),
        ("always: p99 of GETs beside, ms", 1e3 * figure(&reads, "p99")?),
        ("always, flushes take 5 ms more: SETs/s of 50 clients", slow),
        ("the same, times 50 / (fdatasync + 5 ms)", slow * (sync + SLOW).as_secs_f64() / 50.0),
    ];
    for (depth, [rate, cpu], lost) in [
        ("1", ["everysec: SETs/s", "everysec: us of CPU per SET"], "everysec: SETs/s, % of those without"),
        (
            "16",
            ["everysec: SETs/s, 16 deep", "everysec: us of CPU per SET, 16 deep"],
            "everysec: SETs/s, 16 deep, % of those without",
        ),
    ] {
        let run = |fsync: &[&str]| -> Result<(f64, f64)> {
            let server = subject.start(fsync)?;
            let words = [SINGLE.as_slice(), &["--depth", depth, "--batch"]].concat();
            let before = server.cpu_seconds()?;
            let summary = subject.run(&server, &words)?;
            let cpu = server.cpu_seconds()? - before;
            Ok((figure(&summary, "per_second")?, 1e6 * cpu / figure(&summary, "answers")?))
        };
        let with = run(&["--appendonly", "yes", "--appendfsync", "everysec"])?;
        let without = run(&["--appendonly", "no"])?;
        figures.extend([(rate, with.0), (cpu, with.1), (lost, 100.0 * with.0 / without.0)]);
    }
    Ok(figures)
}

/// How long the disk takes to make a small addition to a file last.
fn sync_time(subject: &Subject) -> Result<Duration> {
    std::fs::create_dir_all(&subject.folder)?;
    let path = subject.folder.join("syncs");
    let mut file = File::create(&path)?;
    let began = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    let took = began.elapsed() / SYNCS;
    std::fs::remove_file(path)?;
    Ok(took)
}
