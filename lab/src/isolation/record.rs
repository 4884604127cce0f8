//! The measured figures: kept row by row, so that a run of some rows leaves the others, and shown as a table and a plot.

use std::fmt::Write as _;
use std::fs;

use anyhow::Result;
use loadgen::output::html::standing_alone;
use loadgen::output::svg::{Anchor, Svg};
use serde::{Deserialize, Serialize};

use super::disturbance::{ALL, Disturbance};
use crate::record;

/// Waits of the bystanders of one server beside one disturbance, in milliseconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) disturbance: String,
    pub(super) server: String,
    pub(super) p99: f64,
    #[serde(rename = "p99.9")]
    pub(super) p999: f64,
    pub(super) max: f64,
    /// Answers a second.
    pub(super) rate: f64,
    /// How often the disturbance happened meanwhile.
    pub(super) rounds: u64,
    pub(super) seconds: u32,
    pub(super) commit: Option<String>,
}

/// The servers, in the order of the table's columns.
pub(super) const SERVERS: [&str; 2] = ["ours", "redis"];
/// The bar of p99.9, in milliseconds.
const BAR: f64 = 5.0;

/// In the folder of records.
const NAME: &str = "isolation.jsonl";

pub(super) fn read() -> Result<Vec<Row>> {
    record::read(NAME)
}

/// Keeps a row in place of an older one of the same disturbance and server.
pub(super) fn keep(row: &Row) -> Result<()> {
    let mut rows = read()?;
    rows.retain(|old| (&old.disturbance, &old.server) != (&row.disturbance, &row.server));
    rows.push(row.clone());
    let place = |row: &Row| {
        let disturbance = ALL.iter().position(|known| known.name == row.disturbance);
        (disturbance, SERVERS.iter().position(|server| *server == row.server))
    };
    rows.sort_by_key(place);
    record::write(NAME, &rows)
}

/// Prints the table and draws the plot, from the record alone.
pub(super) fn render() -> Result<()> {
    let rows = read()?;
    print!("{}", table(&rows));
    Ok(fs::write(record::path("isolation.svg"), standing_alone(&plot(&rows)))?)
}

fn of<'r>(rows: &'r [Row], disturbance: &str, server: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.disturbance == disturbance && row.server == server)
}

/// The disturbances that have been measured.
fn measured(rows: &[Row]) -> Vec<&'static Disturbance> {
    let is_measured = |known: &&Disturbance| rows.iter().any(|row| row.disturbance == known.name);
    ALL.iter().filter(is_measured).collect()
}

/// A row for each disturbance.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = "| one more client | ours p99 | ours p99.9 | ours max | redis p99 | redis p99.9 | redis max |\n\
        |---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for known in measured(rows) {
        let cells: Vec<String> = SERVERS
            .iter()
            .flat_map(|server| match of(rows, known.name, server) {
                Some(row) => [row.p99, row.p999, row.max].map(millis),
                // It answered nothing.
                None => ["–".to_owned(), "–".to_owned(), "–".to_owned()],
            })
            .collect();
        writeln!(table, "| {} | {} |", known.name, cells.join(" | ")).expect("writing to memory does not fail");
    }
    table
}

/// Milliseconds with as many digits as they deserve.
fn millis(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 230.0;
const RIGHT: f64 = 40.0;
const LINE: f64 = 24.0;
const TOP: f64 = 64.0;
/// The ends of the axis, in milliseconds.
const AXIS: (f64, f64) = (0.1, 100_000.0);

/// p99.9 of both servers beside each disturbance, on a logarithmic axis.
fn plot(rows: &[Row]) -> String {
    let title = "p99.9 of a hundred clients beside one more that repeats what takes long, in milliseconds";
    let measured = measured(rows);
    let bottom = TOP + LINE * measured.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 30.0, title);
    svg.text("title", (0.0, 18.0), Anchor::Start, title);
    let x = |value: f64| {
        let share = (value.clamp(AXIS.0, AXIS.1) / AXIS.0).ln() / (AXIS.1 / AXIS.0).ln();
        LEFT + (WIDTH - LEFT - RIGHT) * share
    };
    for tick in [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0] {
        svg.line("grid", (x(tick), TOP - 8.0), (x(tick), bottom));
        svg.text("tick", (x(tick), bottom + 18.0), Anchor::Middle, &format!("{tick}"));
    }
    svg.line("axis", (x(BAR), TOP - 8.0), (x(BAR), bottom));
    svg.text("tick", (x(BAR), bottom + 18.0), Anchor::Middle, &format!("{BAR}"));
    for (colour, server) in SERVERS.iter().enumerate() {
        let left = LEFT + 90.0 * colour as f64;
        svg.rect(&format!("bar s{colour}"), (left, 34.0), (10.0, 10.0), server);
        svg.text("tick", (left + 16.0, 43.0), Anchor::Start, server);
    }
    for (index, known) in measured.into_iter().enumerate() {
        let middle = TOP + LINE * (index as f64 + 0.5);
        svg.text("label", (LEFT - 12.0, middle + 4.0), Anchor::End, known.name);
        let found = SERVERS.map(|server| of(rows, known.name, server));
        if let [Some(ours), Some(theirs)] = found {
            svg.line("whisker", (x(ours.p999), middle), (x(theirs.p999), middle));
        }
        for (colour, row) in found.into_iter().enumerate() {
            if let Some(row) = row {
                let hint = format!("{}, {}: {} ms", known.name, row.server, millis(row.p999));
                svg.rect(&format!("bar s{colour}"), (x(row.p999) - 5.0, middle - 5.0), (10.0, 10.0), &hint);
            }
        }
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_missing_leaves_its_cells_empty() {
        let row = Row {
            disturbance: ALL[1].name.to_owned(),
            server: "redis".to_owned(),
            p99: 1.24,
            p999: 12.6,
            max: 900.0,
            rate: 20_000.0,
            rounds: 3,
            seconds: 10,
            commit: None,
        };
        let rows = [row];
        let table = table(&rows);
        assert!(table.contains(&format!("| {} | – | – | – | 1.2 | 13 | 900 |\n", ALL[1].name)), "{table}");
        assert_eq!(plot(&rows).matches(": 13 ms").count(), 1);
    }
}
