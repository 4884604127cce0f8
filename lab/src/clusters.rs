//! Clusters of redis-server's nodes in virtual time, from 6 to 1,000 of them: what `redis-server/src/cluster/simulation/scale.rs` measures,
//! kept row by row and drawn next to what the rules make one expect.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use loadgen::output::html::standing_alone;
use loadgen::output::svg::{Anchor, Svg};
use serde::{Deserialize, Serialize};
use xtask::process::run_quietly;
use xtask::workspace::cargo;

use crate::record;

/// Options of `cargo xtask clusters`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many nodes the clusters have.
    #[arg(long, value_delimiter = ',', default_value = "6,12,25,50,100,200,500,1000")]
    sizes: Vec<usize>,
    /// cluster-node-timeout, in milliseconds.
    #[arg(long, default_value_t = 15_000)]
    timeout: u64,
    /// The library's tests as they were built, instead of building them.
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Keeps the rows in benches/record/clusters.jsonl, each in place of an older one of its size.
    #[arg(long)]
    record: bool,
    /// Measures nothing: prints the table and draws the plot from what was kept.
    #[arg(long, conflicts_with_all = ["record", "tests"])]
    render: bool,
}

/// One size; of small ones the medians of some runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Row {
    nodes: usize,
    /// cluster-node-timeout, in milliseconds.
    timeout: u64,
    seen: Figures,
    /// By the rules' arithmetic: bytes and packets at most, times as they are likely.
    rules: Figures,
}

/// Of a node and second, and milliseconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Figures {
    talk: f64,
    packets: f64,
    failover: f64,
    join: f64,
    heal: f64,
}

/// Measures, prints, keeps, or shows what was kept.
///
/// # Errors
/// When the tests cannot be built, or one size breaks the rules.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.render {
        let rows: Vec<Row> = record::read(NAME)?;
        ensure!(!rows.is_empty(), "nothing was kept: cargo xtask clusters --record");
        print!("{}", written(&rows));
        return Ok(fs::write(record::path("clusters.svg"), standing_alone(&plot(&rows)))?);
    }
    let mut rows = Vec::new();
    for size in &options.sizes {
        let row = measure(options, *size)?;
        if options.record {
            keep(&row)?;
        }
        rows.push(row);
    }
    print!("{}", written(&rows));
    Ok(())
}

fn measure(options: &Options, nodes: usize) -> Result<Row> {
    let mut command = match &options.tests {
        Some(tests) => Command::new(tests),
        None => {
            let mut command = cargo();
            command.args(["test", "--profile", xtask::workspace::SHIPPED, "--package", "redis-server", "--lib", "--"]);
            command
        }
    };
    command.args(["simulation::scale::rows", "--ignored", "--nocapture"]);
    command.env("SIZES", nodes.to_string()).env("TIMEOUT", options.timeout.to_string());
    let output = run_quietly(&mut command).with_context(|| format!("{nodes} nodes"))?;
    let row = output.lines().find_map(|line| Some(&line[line.find("{\"nodes\":")?..]));
    serde_json::from_str(row.with_context(|| format!("{nodes} nodes: nothing was said: {output}"))?).context("a row")
}

/// In the folder of records.
const NAME: &str = "clusters.jsonl";

fn keep(row: &Row) -> Result<()> {
    let mut rows: Vec<Row> = record::read(NAME)?;
    rows.retain(|old| (old.nodes, old.timeout) != (row.nodes, row.timeout));
    rows.push(row.clone());
    rows.sort_by_key(|row| (row.timeout, row.nodes));
    record::write(NAME, &rows)
}

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    Ok(written(&record::read::<Row>(NAME)?))
}

/// A line for each size.
fn written(rows: &[Row]) -> String {
    let mut table =
        "| nodes | kB/s | at most | failover, s | by the rules | join, s | by the rules | heal, s | by the rules |\n\
        |--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for Row { nodes, seen, rules, .. } in rows {
        let times = [(seen.failover, rules.failover), (seen.join, rules.join), (seen.heal, rules.heal)];
        let times = times.map(|(seen, rules)| format!("{:.1} | {:.1}", seen / 1000.0, rules / 1000.0)).join(" | ");
        writeln!(table, "| {nodes} | {:.1} | {:.1} | {times} |", seen.talk / 1000.0, rules.talk / 1000.0)
            .expect("writing to memory does not fail");
    }
    table
}

/// A panel of the plot: its title, and what it shows of a size.
type Panel = (&'static str, fn(&Figures) -> f64);

const PANELS: [Panel; 4] = [
    ("bytes that a node sends in a second; at most, by the rules", |figures| figures.talk),
    ("seconds until a failed primary's slots are served again; as is likely by the rules", |figures| {
        figures.failover / 1000.0
    }),
    ("seconds until all know a new node; as is likely by the rules", |figures| figures.join / 1000.0),
    ("seconds from a partition's end until all agree; as is likely by the rules", |figures| figures.heal / 1000.0),
];

/// The labels of the panels, in the order of colours.
const CURVES: [&str; 2] = ["seen", "by the rules"];

const WIDTH: f64 = 760.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
/// Of a panel, with its title and its axis.
const HEIGHT: f64 = 190.0;
const TOP: f64 = 60.0;
const PLOT: f64 = 110.0;

/// Every panel over the number of nodes, both axes logarithmic.
fn plot(rows: &[Row]) -> String {
    let title = "Clusters in virtual time, from 6 to 1,000 nodes";
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT * PANELS.len() as f64, title);
    svg.text("title", (0.0, 18.0), Anchor::Start, title);
    for (colour, name) in CURVES.into_iter().enumerate() {
        let left = LEFT + 90.0 * colour as f64;
        svg.rect(&format!("bar s{colour}"), (left, 30.0), (10.0, 10.0), name);
        svg.text("tick", (left + 16.0, 39.0), Anchor::Start, name);
    }
    for (at, panel) in PANELS.iter().enumerate() {
        draw(&mut svg, rows, panel, TOP + HEIGHT * at as f64);
    }
    svg.finish()
}

fn draw(svg: &mut Svg, rows: &[Row], (title, value): &Panel, top: f64) {
    svg.text("label", (LEFT, top + 12.0), Anchor::Start, title);
    let (top, bottom) = (top + 24.0, top + 24.0 + PLOT);
    let ends = |of: &dyn Fn(&Row) -> [f64; 2]| {
        let all = rows.iter().flat_map(of);
        all.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)))
    };
    let (fewest, most) = ends(&|row| [row.nodes as f64; 2]);
    let (low, high) = ends(&|row| [value(&row.seen), value(&row.rules)]);
    // Whole powers of ten around all that is shown.
    let (low, high) = (10_f64.powf(low.log10().floor()), 10_f64.powf((high * 1.01).log10().ceil()));
    let share = |value: f64, low: f64, high: f64| (value / low).ln() / (high / low).ln().max(f64::EPSILON);
    let x = |nodes: f64| LEFT + (WIDTH - LEFT - RIGHT) * share(nodes, fewest, most);
    let y = |value: f64| bottom - (bottom - top) * share(value, low, high);
    let mut tick = low;
    while tick <= high * 1.01 {
        svg.line("grid", (LEFT, y(tick)), (WIDTH - RIGHT, y(tick)));
        svg.text("tick", (LEFT - 8.0, y(tick) + 4.0), Anchor::End, &format!("{tick}"));
        tick *= 10.0;
    }
    for row in rows {
        svg.text("tick", (x(row.nodes as f64), bottom + 16.0), Anchor::Middle, &row.nodes.to_string());
    }
    for (colour, name) in CURVES.into_iter().enumerate() {
        let of = |row: &Row| value([&row.seen, &row.rules][colour]);
        let points: Vec<(f64, f64)> = rows.iter().map(|row| (x(row.nodes as f64), y(of(row)))).collect();
        svg.path(&format!("line s{colour}"), &points, name);
        for (row, (x, y)) in rows.iter().zip(&points) {
            let hint = format!("{} nodes, {name}: {:.1}", row.nodes, of(row));
            svg.rect(&format!("bar s{colour}"), (x - 3.0, y - 3.0), (6.0, 6.0), &hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(nodes: usize, talk: f64) -> Row {
        let figures = |talk| Figures { talk, packets: 3.0, failover: 17_000.0, join: 900.0, heal: 5200.0 };
        Row { nodes, timeout: 15_000, seen: figures(talk), rules: figures(2.0 * talk) }
    }

    #[test]
    fn rows_are_read_shown_and_drawn() {
        let line = r#"{"nodes":6,"timeout":15000,"seen":{"talk":8123,"packets":3.1,"failover":17000,"join":900,"heal":5200},
            "rules":{"talk":16246,"packets":3.0,"failover":17000,"join":900,"heal":5200}}"#;
        let parsed: Row = serde_json::from_str(line).unwrap();
        assert_eq!(parsed.rules, row(6, 8123.0).rules);
        let rows = [row(6, 8123.0), row(1000, 3_000_000.0)];
        let table = written(&rows);
        assert!(table.ends_with("| 1000 | 3000.0 | 6000.0 | 17.0 | 17.0 | 0.9 | 0.9 | 5.2 | 5.2 |\n"), "{table}");
        let plot = plot(&rows);
        assert_eq!(plot.matches("<path").count(), 8);
        assert!(!plot.contains("NaN") && !plot.contains("inf"), "{plot}");
    }
}
