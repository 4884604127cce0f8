//! What was measured, one line a topic: tables and drawings are made of that alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};

use super::prober;
use crate::compare::stats::{median, paired_ratio};

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
