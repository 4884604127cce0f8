//! What has been measured for a finding: the records in `benches/record`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use loadgen::compare::{Comparison, Metric, Record, analysis};

use super::findings::{CONTROLLER, Finding, Question};
use crate::echonet::ControllerRun;

/// A finding's records.
pub(super) struct Measured {
    pub(super) record: Option<Record>,
    pub(super) controllers: Vec<ControllerRun>,
}

/// Where records are kept.
pub(super) fn folder() -> PathBuf {
    crate::root().join("benches/record")
}

/// A finding's record, and that of its controllers.
pub(super) fn paths(id: &str) -> (PathBuf, PathBuf) {
    (folder().join(format!("{id}.jsonl")), folder().join(format!("{id}-controllers.jsonl")))
}

impl Measured {
    /// Reads what there is; a finding that was never run has nothing.
    pub(super) fn read(finding: &Finding) -> Result<Self> {
        let (record, controllers) = paths(&finding.id);
        let record = record.exists().then(|| Record::read(&record)).transpose()?;
        let text = if controllers.exists() { fs::read_to_string(&controllers)? } else { String::new() };
        let runs = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        Ok(Self { record, controllers: runs.with_context(|| controllers.display().to_string())? })
    }

    /// Compares a figure of a question's two subjects.
    pub(super) fn comparison(&self, question: &Question, metric: Metric) -> Comparison {
        let Question { scenario, subject, rival, .. } = question;
        if scenario.starts_with(CONTROLLER) {
            return controllers_comparison(&self.controllers, scenario, metric, subject, rival);
        }
        match &self.record {
            Some(record) => analysis::comparison(record, scenario, metric, subject, rival),
            None => Comparison::of_pairs(metric, &[]),
        }
    }
}

/// A controller's figure.
pub(super) fn figure(run: &ControllerRun, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Throughput => Some(run.per_second),
        Metric::Cpu => Some(run.cpu_us),
        Metric::P50 | Metric::P99 | Metric::P999 | Metric::Memory | Metric::Switches => None,
    }
}

/// Compares a figure of two controllers.
pub(super) fn controllers_comparison(
    runs: &[ControllerRun],
    scenario: &str,
    metric: Metric,
    subject: &str,
    rival: &str,
) -> Comparison {
    let of = |name: &str| {
        let name = name.to_owned();
        runs.iter().filter(move |run| run.scenario == scenario && run.subject == name)
    };
    let pairs = of(subject).filter_map(|own| {
        let other = of(rival).find(|other| other.round == own.round)?;
        Some((figure(own, metric)?, figure(other, metric)?))
    });
    Comparison::of_pairs(metric, &pairs.collect::<Vec<_>>())
}
