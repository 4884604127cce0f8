//! The measured figures: kept row by row, so that a run of some kinds leaves the others, and shown as a table.

use std::fmt::Write as _;

use anyhow::Result;
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};

use super::kind::{KINDS, Kind};
use crate::compare::stats::{median, paired_ratio, thousands};
use crate::record;

/// All failovers of a kind.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Row {
    kind: String,
    commit: Option<String>,
    machine: Machine,
    /// Ours, and the genuine server if it was there.
    outcomes: Vec<Outcome>,
}

/// The outcome of one server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Outcome {
    /// Seconds until something could be written again, round by round.
    pub(super) writable: Vec<f64>,
    /// Seconds until a cluster's primary that was cut off refused writes; only where it did.
    pub(super) refused: Vec<f64>,
    /// Acknowledged writes.
    pub(super) kept: usize,
    pub(super) violations: Vec<String>,
}

impl Row {
    pub(super) fn new(kind: Kind, outcomes: Vec<Outcome>) -> Self {
        let commit = loadgen::compare::commit(xtask::workspace::root());
        Self { kind: kind.to_string(), commit, machine: Machine::this(), outcomes }
    }

    pub(super) fn ours(&self) -> &Outcome {
        &self.outcomes[0]
    }
}

/// In the folder of records.
const NAME: &str = "failovers.jsonl";

/// The kept rows.
///
/// # Errors
/// It is no record.
pub(super) fn read() -> Result<Vec<Row>> {
    record::read(NAME)
}

/// Keeps a row in place of an older one of its kind.
///
/// # Errors
/// The file's.
pub(super) fn keep(row: &Row) -> Result<()> {
    let mut rows = read()?;
    rows.retain(|old| old.kind != row.kind);
    rows.push(row.clone());
    rows.sort_by_key(|row| KINDS.iter().position(|kind| kind.to_string() == row.kind));
    record::write(NAME, &rows)
}

/// The results of rounds: the table of docs/redis/performance.md, and the time at which a server that was cut off refused writes.
pub(super) fn text(rows: &[Row]) -> String {
    let mut text = table(rows);
    for row in rows.iter().filter(|row| !row.ours().refused.is_empty()) {
        let figures = row.outcomes.iter().map(|outcome| {
            let most = outcome.refused.iter().copied().fold(0.0, f64::max);
            format!("{:.2} s, longest {most:.2} s, {} times", median(&outcome.refused), outcome.refused.len())
        });
        let figures = figures.collect::<Vec<_>>().join("; ");
        writeln!(text, "\n{}: who was cut off refuses writes after (ours; Redis) {figures}", row.kind).expect(MEMORY);
    }
    text
}

/// A line for each kind, and behind those of a setup whose time is a timeout's, one of all of them.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = "| | ours, s | longest | Redis, s | longest | ours / Redis, 95 % | acknowledged, lost | Redis: acknowledged, lost |\n\
        |---|--:|--:|--:|--:|---|--:|--:|\n"
        .to_owned();
    let (mut of_setup, mut rows) = (Vec::new(), rows.iter().peekable());
    while let Some(row) = rows.next() {
        let (setup, fault) = row.kind.split_once('-').unwrap_or((&row.kind, ""));
        line(&mut table, &name(setup, fault), &row.outcomes);
        if fault == "planned" {
            continue;
        }
        of_setup.push(row);
        let goes_on = |next: &&Row| next.kind.starts_with(setup) && !next.kind.ends_with("-planned");
        if rows.peek().is_none_or(|next| !goes_on(next)) {
            if of_setup.len() > 1 {
                let all = together(&of_setup);
                let count = all.first().map_or(0, |outcome| outcome.writable.len());
                line(&mut table, &name(setup, &format!("all {count}")), &all);
            }
            of_setup.clear();
        }
    }
    table
}

/// A kind's name for readers.
fn name(setup: &str, fault: &str) -> String {
    let setup = match (setup, fault) {
        ("pair", _) => return "`FAILOVER`".to_owned(),
        ("cluster", "planned") => return "`CLUSTER FAILOVER`".to_owned(),
        ("sentinel", _) => "Sentinel",
        ("mixed", _) => "five shards, mixed",
        _ => setup,
    };
    let fault = match fault {
        "kill" => "killed",
        "stop" => "stopped",
        "cut" => "cut off",
        "part" => "two cut off",
        _ => fault,
    };
    format!("{setup}, {fault}")
}

const MEMORY: &str = "writing to memory does not fail";

fn line(table: &mut String, name: &str, outcomes: &[Outcome]) {
    let [ours, theirs] = [outcomes.first(), outcomes.get(1)];
    let times = |outcome: Option<&Outcome>| {
        outcome.map_or_else(
            || "– | –".to_owned(),
            |outcome| {
                let most = outcome.writable.iter().copied().fold(0.0, f64::max);
                format!("{:.2} | {most:.2}", median(&outcome.writable))
            },
        )
    };
    let kept = |outcome: Option<&Outcome>| {
        let text = |outcome: &Outcome| format!("{}, {}", thousands(outcome.kept), outcome.violations.len());
        outcome.map_or_else(|| "–".to_owned(), text)
    };
    let ratio = match (ours, theirs) {
        (Some(ours), Some(theirs)) => {
            let (low, high) = paired_ratio(&ours.writable, &theirs.writable).interval;
            format!("{low:.2} to {high:.2}")
        }
        _ => "–".to_owned(),
    };
    writeln!(table, "| {name} | {} | {} | {ratio} | {} | {} |", times(ours), times(theirs), kept(ours), kept(theirs))
        .expect(MEMORY);
}

/// The outcomes of several kinds as one.
fn together(rows: &[&Row]) -> Vec<Outcome> {
    let subjects = rows.iter().map(|row| row.outcomes.len()).min().unwrap_or(0);
    let all = |at: usize| rows.iter().map(move |row| &row.outcomes[at]);
    let outcome = |at| Outcome {
        writable: all(at).flat_map(|outcome| outcome.writable.clone()).collect(),
        refused: Vec::new(),
        kept: all(at).map(|outcome| outcome.kept).sum(),
        violations: all(at).flat_map(|outcome| outcome.violations.clone()).collect(),
    };
    (0..subjects).map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, ours: &[f64], theirs: &[f64]) -> Row {
        let outcome = |writable: &[f64], violations: usize| Outcome {
            writable: writable.to_vec(),
            refused: if kind.ends_with("cut") { vec![2.0] } else { Vec::new() },
            kept: 100,
            violations: vec!["lost".to_owned(); violations],
        };
        let outcomes = vec![outcome(ours, 1), outcome(theirs, 0)];
        Row { kind: kind.to_owned(), commit: None, machine: Machine::this(), outcomes }
    }

    #[test]
    fn kinds_are_shown_alone_and_together() {
        let rows = [
            row("cluster-kill", &[2.0, 3.0, 4.0], &[2.0, 3.0, 4.0]),
            row("cluster-cut", &[6.0], &[3.0]),
            row("cluster-planned", &[0.1], &[0.1]),
        ];
        let text = text(&rows);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[0], "| cluster, killed | 3.00 | 4.00 | 3.00 | 4.00 | 1.00 to 1.00 | 100, 1 | 100, 0 |");
        assert!(lines[1].starts_with("| cluster, cut off | 6.00 | 6.00 | 3.00 | "), "{text}");
        assert!(lines[2].starts_with("| cluster, all 4 | 3.50 | 6.00 | 3.00 | 4.00 | "), "{text}");
        assert!(
            lines[2].ends_with(" | 200, 2 | 200, 0 |") && lines[3].starts_with("| `CLUSTER FAILOVER` | "),
            "{text}"
        );
        assert!(text.contains("\ncluster-cut: who was cut off refuses writes after (ours; Redis) 2.00 s, "), "{text}");
    }

    #[test]
    fn ours_alone_has_nothing_beside_it() {
        let mut alone = row("pair-planned", &[0.1], &[0.1]);
        alone.outcomes.truncate(1);
        let table = table(&[alone]);
        assert!(table.ends_with("\n| `FAILOVER` | 0.10 | 0.10 | – | – | – | 100, 1 | – |\n"), "{table}");
    }
}
