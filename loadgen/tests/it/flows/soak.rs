//! A long run of a scenario: its memory stays as it is.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::{example, shop};
use crate::command::loadgen;

/// Iterations of the last figure; full runs of the gates set `SOAK_ITERATIONS` to ten million.
const ITERATIONS: u64 = 50_000;

/// The most by which memory may grow from a tenth of the iterations to all, and for each second of the run besides: the
/// timeline keeps its seconds in compact form.
const GROWTH: u64 = 3 << 20;
const GROWTH_PER_SECOND: u64 = 8 << 10;

/// Longest time without progress.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn memory_is_flat_over_many_iterations() {
    let iterations = std::env::var("SOAK_ITERATIONS").map_or(ITERATIONS, |number| number.parse().unwrap());
    let (address, counts) = shop::serve("127.0.0.1:0").unwrap();
    let file = example("shop.toml");
    let (target, all) = (address.to_string(), (iterations + iterations / 10).to_string());
    let mut command = loadgen(&[
        "scenario",
        &target,
        file.to_str().unwrap(),
        "-n",
        &all,
        "-c",
        "20",
        "-t",
        "1",
        "-q",
        "--slo",
        "errors=0%",
    ]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let mut figures = Vec::new();
    for milestone in [iterations / 10, iterations / 2, iterations] {
        let (mut seen, mut moved) = (0, Instant::now());
        while seen < milestone {
            thread::sleep(Duration::from_millis(1));
            let now = counts.views.load(Ordering::Relaxed);
            if now != seen {
                (seen, moved) = (now, Instant::now());
            }
            assert!(moved.elapsed() < PATIENCE, "{seen} of {milestone} iterations");
        }
        let resident = resident_bytes(child.id());
        println!("{seen} iterations after {:.1} s: {} KiB resident", began.elapsed().as_secs_f64(), resident >> 10);
        figures.push(resident);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(counts.views.load(Ordering::Relaxed).to_string(), all);
    let most = figures[0] + GROWTH + GROWTH_PER_SECOND * began.elapsed().as_secs();
    assert!(figures[2] <= most, "{figures:?}, expected at most {most}");
}

/// The resident memory of a process.
fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
