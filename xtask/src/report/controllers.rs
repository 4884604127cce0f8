//! Controllers of ECHONET Lite: the published benchmark times them, not the device.

use loadgen::compare::stats::median;
use loadgen::compare::{Metric, Table, ratio_text, verdicts};

use super::document::Block;
use super::findings::OURS;
use super::measured::{controllers_comparison, figure};
use crate::echonet::ControllerRun;

const SHOWN: [(Metric, &str); 2] = [(Metric::Throughput, "requests/s"), (Metric::Cpu, "controller CPU/request")];

/// Figures and ratios of every scenario; nothing where there are no runs.
pub(super) fn blocks(runs: &[ControllerRun]) -> Vec<Block> {
    let mut scenarios: Vec<&str> = Vec::new();
    for run in runs {
        if !scenarios.contains(&run.scenario.as_str()) {
            scenarios.push(&run.scenario);
        }
    }
    let mut blocks = Vec::new();
    if !scenarios.is_empty() {
        blocks.push(Block::Heading(3, "Controllers".to_owned()));
        let text = "The published benchmark times the controller. Here each asks the same device, a loop in C that answers \
            a constant, on the other core (apart) or on its own (together); the CPU time is the controller's.";
        blocks.push(Block::Text(text.to_owned()));
    }
    for scenario in scenarios {
        blocks.push(Block::Heading(4, scenario.to_owned()));
        blocks.extend(tables(runs, scenario).into_iter().map(Block::Table));
    }
    blocks
}

fn tables(all: &[ControllerRun], scenario: &str) -> Vec<Table> {
    let runs: Vec<&ControllerRun> = all.iter().filter(|run| run.scenario == scenario).collect();
    let mut names: Vec<&str> = Vec::new();
    for run in &runs {
        if !names.contains(&run.subject.as_str()) {
            names.push(&run.subject);
        }
    }
    let values = |name: &str, metric: Metric| -> Vec<f64> {
        runs.iter().filter(|run| run.subject == name).filter_map(|run| figure(run, metric)).collect()
    };
    let row = |name: &&str| {
        let lost: u64 = runs.iter().filter(|run| run.subject == *name).map(|run| run.lost).sum();
        let mut row = vec![(*name).to_owned()];
        row.extend(SHOWN.map(|(metric, _)| metric.text(median(&values(name, metric)))));
        row.extend([lost.to_string(), values(name, Metric::Throughput).len().to_string()]);
        row
    };
    let header = ["subject", SHOWN[0].1, SHOWN[1].1, "lost", "rounds"];
    let mut tables = vec![Table::new(&header, names.iter().map(row).collect())];
    let mut rows = Vec::new();
    for ours in names.iter().filter(|name| name.starts_with(OURS)) {
        for rival in names.iter().filter(|name| !name.starts_with(OURS)) {
            let compared = SHOWN.map(|(metric, _)| controllers_comparison(all, scenario, metric, ours, rival));
            let verdicts = verdicts(&compared).into_iter().zip(&compared);
            let cells = verdicts.map(|(verdict, found)| ratio_text(found, verdict));
            rows.push(std::iter::once(format!("{ours} / {rival}")).chain(cells).collect());
        }
    }
    if !rows.is_empty() {
        tables.push(Table::new(&["ratio", SHOWN[0].1, SHOWN[1].1], rows));
    }
    tables
}
