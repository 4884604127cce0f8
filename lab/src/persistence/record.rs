//! The measured figures, one line a topic: tables and drawings are made of that alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};

use super::prober;
use crate::compare::stats::{median, paired_ratio, thousands};

/// The outcome of one topic.
#[derive(Serialize, Deserialize)]
pub(super) struct Topic {
    pub(super) topic: String,
    pub(super) commit: Option<String>,
    pub(super) machine: Machine,
    pub(super) keys: usize,
    /// Names of figures, and what each round has shown of ours and of the genuine server.
    pub(super) figures: Vec<(String, [Vec<f64>; 2])>,
    /// Of the last round, by the name of the server: seconds, and milliseconds of the longest answer then.
    pub(super) latencies: BTreeMap<String, Vec<(f64, f64)>>,
}

/// All topics of a record; none, where there is no such file.
///
/// # Errors
/// It is no record.
pub(super) fn read(path: &Path) -> Result<Vec<Topic>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path)?;
    let topic = |line: &str| serde_json::from_str(line).with_context(|| format!("{} is no record", path.display()));
    text.lines().map(topic).collect()
}

/// Puts a topic into a record, in the place of what it has of it.
///
/// # Errors
/// The file's.
pub(super) fn add(path: &Path, topic: Topic) -> Result<()> {
    let mut topics = read(path)?;
    topics.retain(|other| other.topic != topic.topic);
    topics.push(topic);
    let lines: Result<Vec<_>, _> = topics.iter().map(serde_json::to_string).collect();
    Ok(fs::write(path, lines?.join("\n") + "\n")?)
}

/// Prints a record as a table, and draws what it has of latencies beside it.
///
/// # Errors
/// The files'.
pub(super) fn render(path: &Path) -> Result<()> {
    for topic in read(path)? {
        let rounds = topic.figures.first().map_or(0, |(_, values)| values[0].len());
        let commit = topic.commit.as_deref().unwrap_or("unknown");
        println!("\n{}: {rounds} rounds, {} keys, commit {commit}, {}", topic.topic, topic.keys, topic.machine.cpu);
        print_figures(&topic.figures);
        if !topic.latencies.is_empty() {
            prober::draw(&topic.latencies, &path.with_extension("svg"))?;
        }
    }
    Ok(())
}

/// A row of docs/redis/performance.md.
struct Shown {
    figure: &'static str,
    label: &'static str,
    /// The unit behind the number.
    unit: &'static str,
}

#[rustfmt::skip]
const SHOWN: &[Shown] = &[
    Shown { figure: "save MB/s, no clients but one", label: "BGSAVE, one client there", unit: " MB/s" },
    Shown { figure: "standing still for the cut, or in fork, ms", label: "standing still for the cut, or in fork", unit: " ms" },
    Shown { figure: "longest answer within 100 ms of BGSAVE, ms", label: "longest answer in the 100 ms behind BGSAVE", unit: " ms" },
    Shown { figure: "throughput while saving, % of that", label: "throughput during it, overwriting at full rate, of that without", unit: " %" },
    Shown { figure: "more memory while saving, %", label: "memory that it takes more then", unit: " %" },
    Shown { figure: "p99.9 at half of that rate from when it was due, no save, ms", label: "at half of the full rate: p99.9 from when a request was due, without", unit: " ms" },
    Shown { figure: "p99.9 at half of that rate from when it was due, saving, ms", label: "the same, saving again and again", unit: " ms" },
    Shown { figure: "p99.9 of that client, saving, ms", label: "p99.9 of one more client, which waits for its answers, meanwhile (the plot)", unit: " ms" },
    Shown { figure: "the same, times that without a save", label: "the same, times that without a save", unit: "" },
    Shown { figure: "load of small keys, s", label: "start with 1 M small keys", unit: " s" },
    Shown { figure: "load of keys of 1,000 bytes, s", label: "start with 1 M keys of 1,000 bytes", unit: " s" },
    Shown { figure: "replay of an append-only file of small SETs, s", label: "start with an append-only file of 1 M small SETs", unit: " s" },
    Shown { figure: "always: SETs/s of 50 clients", label: "`always`, 50 clients (an fdatasync takes 0.2 ms)", unit: "/s" },
    Shown { figure: "always, flushes take 5 ms more: SETs/s of 50 clients", label: "the same, every flush made to take 5 ms more", unit: "/s" },
    Shown { figure: "everysec: us of CPU per SET", label: "`everysec`, 50 clients: CPU per SET", unit: " µs" },
    Shown { figure: "everysec: us of CPU per SET, 16 deep", label: "`everysec`, 16 deep: CPU per SET", unit: " µs" },
    Shown { figure: "everysec: SETs/s, % of those without", label: "`everysec`, 50 clients, of the throughput without", unit: " %" },
    Shown { figure: "everysec: SETs/s, 16 deep, % of those without", label: "`everysec`, 16 deep, of the throughput without", unit: " %" },
    Shown { figure: "full synchronization, s per GB", label: "full synchronization of a replica of its own kind, a GB", unit: " s" },
    Shown { figure: "memory of the primary meanwhile, MB more", label: "memory of the primary meanwhile, more", unit: " MB" },
    Shown { figure: "us of CPU of the primary per SET, 16 deep", label: "SETs with one replica, 16 deep: CPU of the primary", unit: " µs" },
    Shown { figure: "one more synchronization at that rate, s", label: "full synchronization at that rate", unit: " s" },
    Shown { figure: "from answered to seen, p99, ms", label: "from answered to seen at the replica, p99, at 50,000 SETs a second", unit: " ms" },
    Shown { figure: "caught up after a cut, s", label: "caught up after a cut", unit: " s" },
];

/// The table of docs/redis/performance.md: medians, and the interval of their ratio.
///
/// # Errors
/// A figure is not there.
pub(super) fn table(topics: &[Topic]) -> Result<String> {
    let mut table = "| | ours | Redis | ours / Redis |\n|---|--:|--:|---|\n".to_owned();
    for Shown { figure, label, unit } in SHOWN {
        let found = topics.iter().flat_map(|topic| &topic.figures).find(|(name, _)| name == figure);
        let (_, [ours, theirs]) = found.with_context(|| format!("the record has no figure `{figure}`"))?;
        let [own, other] = [ours, theirs].map(|values| digits(median(values)) + unit);
        let (low, high) = paired_ratio(ours, theirs).interval;
        table += &format!("| {label} | {own} | {other} | {} to {} |\n", digits(low), digits(high));
    }
    Ok(table)
}

/// Three digits, and of less than 1 as many as tell it from nothing.
fn digits(value: f64) -> String {
    match value {
        ..0.1 => format!("{value:.3}"),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        ..1000.0 => format!("{value:.0}"),
        _ => {
            let unit = 10_f64.powf(value.log10().floor() - 2.0);
            thousands(((value / unit).round() * unit).round() as usize)
        }
    }
}

/// Prints what rounds have shown.
pub(super) fn print_figures(figures: &[(String, [Vec<f64>; 2])]) {
    println!("| figure | ours | redis | ours / redis | 95 % |\n|---|--:|--:|--:|---|");
    for (name, [ours, theirs]) in figures {
        let ratio = paired_ratio(ours, theirs);
        let (low, high) = ratio.interval;
        println!(
            "| {name} | {:.2} | {:.2} | {:.3} | {low:.3} to {high:.3} |",
            median(ours),
            median(theirs),
            ratio.mean
        );
    }
}

#[test]
fn a_number_has_three_digits() {
    let texts = [0.0056, 0.15, 3.578, 35.51, 971.8, 1267.0, 46_880.0, 1_234_567.0].map(digits);
    assert_eq!(texts, ["0.006", "0.15", "3.58", "35.5", "972", "1,270", "46,900", "1,230,000"]);
    assert!(table(&[]).unwrap_err().to_string().contains("save MB/s"));
}

#[test]
fn a_topic_replaces_what_there_was_of_it() {
    let path = std::env::temp_dir().join(format!("persistence-{}.jsonl", std::process::id()));
    let topic = |name: &str, value: f64| Topic {
        topic: name.to_owned(),
        commit: None,
        machine: Machine::this(),
        keys: 1,
        figures: vec![("figure".to_owned(), [vec![value], vec![1.0]])],
        latencies: BTreeMap::from([("ours".to_owned(), vec![(0.0, 1.5), (0.01, 2.5)])]),
    };
    for (name, value) in [("save", 1.0), ("load", 2.0), ("save", 3.0)] {
        add(&path, topic(name, value)).unwrap();
    }
    let found: Vec<_> = read(&path).unwrap().into_iter().map(|topic| (topic.topic, topic.figures[0].1[0][0])).collect();
    assert_eq!(found, [("load".to_owned(), 2.0), ("save".to_owned(), 3.0)]);
    render(&path).unwrap();
    let drawn = fs::read_to_string(path.with_extension("svg")).unwrap();
    render(&path).unwrap();
    assert_eq!(fs::read_to_string(path.with_extension("svg")).unwrap(), drawn);
    fs::write(&path, "no record").unwrap();
    assert!(read(&path).is_err());
    for file in [&path, &path.with_extension("svg")] {
        fs::remove_file(file).unwrap();
    }
}
