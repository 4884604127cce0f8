//! The figures: kept row by row, so that a run of some data leaves the others, and shown as two tables.

use std::fmt;

use anyhow::Result;
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};

use super::drive::Sample;
use super::ingest::{ALL, Figures};
use crate::compare::stats::{median, paired_ratio};
use crate::record;

pub(super) const OURS: &str = "ours";
pub(super) const THEIRS: &str = "RediSearch";
pub(super) const THREADED: &str = "RediSearch, 2 workers";

/// In the folder of records.
const ASKED: &str = "search.jsonl";
const LOADED: &str = "search-loads.jsonl";

/// How much of the nearest is found, and by how many candidates.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Recall {
    pub(super) ef: usize,
    pub(super) share: f64,
}

/// The answers of a server to a kind of question.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Asked {
    pub(super) data: String,
    pub(super) question: String,
    /// 0 for a library.
    pub(super) clients: usize,
    pub(super) server: String,
    /// One for each round.
    pub(super) samples: Vec<Sample>,
    pub(super) recall: Option<Recall>,
    /// Of the workspace.
    pub(super) commit: Option<String>,
    pub(super) machine: Option<Machine>,
}

/// The filling of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Loaded {
    pub(super) data: String,
    pub(super) server: String,
    pub(super) figures: Figures,
    pub(super) commit: Option<String>,
}

impl Asked {
    fn of(&self, figure: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }

    fn median(&self, figure: fn(&Sample) -> f64) -> f64 {
        median(&self.of(figure))
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [cpu, rate, p50, p99] = [|s: &Sample| s.cpu, |s: &Sample| s.rate, |s: &Sample| s.p50, |s: &Sample| s.p99]
            .map(|figure| self.median(figure));
        let Self { data, question, clients, server, recall, .. } = self;
        write!(
            f,
            "{data}, {question}, {clients}, {server}: {cpu:.1} us CPU, {rate:.0}/s, p50 {p50:.2} p99 {p99:.2} ms"
        )?;
        recall.map_or(Ok(()), |Recall { ef, share }| write!(f, ", recall {share:.3} with EF_RUNTIME {ef}"))
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.data, self.server, self.figures)
    }
}

/// Keeps a row in place of an older one of the same question and server.
pub(super) fn keep_asked(row: &Asked) -> Result<()> {
    let mut rows: Vec<Asked> = record::read(ASKED)?;
    let key = |row: &Asked| (row.data.clone(), row.question.clone(), row.clients, row.server.clone());
    rows.retain(|old| key(old) != key(row));
    rows.push(row.clone());
    rows.sort_by_key(|row| place(&row.data));
    record::write(ASKED, &rows)
}

/// The same for a filling.
pub(super) fn keep_loaded(row: &Loaded) -> Result<()> {
    let mut rows: Vec<Loaded> = record::read(LOADED)?;
    rows.retain(|old| (&old.data, &old.server) != (&row.data, &row.server));
    rows.push(row.clone());
    rows.sort_by_key(|row| place(&row.data));
    record::write(LOADED, &rows)
}

fn place(data: &str) -> Option<usize> {
    ALL.iter().position(|known| known.name == data)
}

/// A line for each question and number of clients.
pub(super) fn table() -> Result<String> {
    Ok(in_lines(&record::read(ASKED)?))
}

fn in_lines(rows: &[Asked]) -> String {
    let mut table = "| data and question | clients | ours µs (p99 ms) | RediSearch | … 2 workers | library | answers per CPU second, ours / the better |\n\
        |---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for ours in rows.iter().filter(|row| row.server == OURS) {
        let of = |server: &str| {
            let is_same =
                |row: &&Asked| (&row.data, &row.question, row.clients) == (&ours.data, &ours.question, ours.clients);
            rows.iter().filter(is_same).find(|row| row.server == server)
        };
        let figures = |row: Option<&Asked>| match row {
            Some(row) => {
                format!("{} ({})", short(row.median(|sample| sample.cpu)), short(row.median(|sample| sample.p99)))
            }
            None => "–".to_owned(),
        };
        let is_floor = |row: &&Asked| (&row.data, &row.question, row.clients) == (&ours.data, &ours.question, 0);
        let floor =
            rows.iter().find(is_floor).map(|row| format!("{} {}", row.server, short(row.median(|sample| sample.cpu))));
        let peers = [of(THEIRS), of(THREADED)].into_iter().flatten();
        let best =
            peers.min_by(|one, other| one.median(|sample| sample.cpu).total_cmp(&other.median(|sample| sample.cpu)));
        let ratio = best.map(|best| {
            let ratio = paired_ratio(&best.of(|sample| sample.cpu), &ours.of(|sample| sample.cpu));
            format!("{:.2} [{:.2}, {:.2}]", ratio.mean, ratio.interval.0, ratio.interval.1)
        });
        let none = || "–".to_owned();
        let cells = [
            format!("{}: {}", ours.data, ours.question),
            ours.clients.to_string(),
            figures(Some(ours)),
            figures(of(THEIRS)),
            figures(of(THREADED)),
            floor.unwrap_or_else(none),
            ratio.unwrap_or_else(none),
        ];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    table
}

/// A line for each data and server.
pub(super) fn loads_table() -> Result<String> {
    Ok(loads_in_lines(&record::read(LOADED)?))
}

fn loads_in_lines(rows: &[Loaded]) -> String {
    let mut table =
        "| data | | µs CPU each | each second | bytes used each | of them the index | bytes resident each |\n\
        |---|---|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for Loaded { data, server, figures, .. } in rows {
        let Figures { cpu, rate, used, resident, index } = *figures;
        let rate = if rate > 0.0 { format!("{rate:.0}") } else { "–".to_owned() };
        let bytes = format!("{used:.0} | {index:.0} | {resident:.0}");
        table.push_str(&format!("| {data} | {server} | {} | {rate} | {bytes} |\n", short(cpu)));
    }
    table
}

/// As many digits as a figure deserves.
fn short(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_compared_with_the_better_of_the_others() {
        let row = |server: &str, clients, cpu| Asked {
            data: ALL[0].name.to_owned(),
            question: "a term".to_owned(),
            clients,
            server: server.to_owned(),
            samples: vec![Sample { cpu, rate: 1.0, p50: 1.0, p99: 2.5 }; 2],
            recall: None,
            commit: None,
            machine: None,
        };
        let rows = [row(OURS, 1, 50.0), row(THEIRS, 1, 120.0), row(THREADED, 1, 100.0), row("tantivy", 0, 7.0)];
        let table = in_lines(&rows);
        let line =
            "| 1 M documents: a term | 1 | 50.0 (2.50) | 120 (2.50) | 100 (2.50) | tantivy 7.00 | 2.00 [2.00, 2.00] |";
        assert!(table.contains(line), "{table}");
    }

    #[test]
    fn a_library_has_no_rate() {
        let figures = Figures { cpu: 3.0, rate: 0.0, used: 90.0, resident: 90.0, index: 90.0 };
        let rows = [Loaded { data: "x".to_owned(), server: "usearch".to_owned(), figures, commit: None }];
        assert!(
            loads_in_lines(&rows).contains("| x | usearch | 3.00 | – | 90 | 90 | 90 |"),
            "{}",
            loads_in_lines(&rows)
        );
    }
}
