//! The measurements for a finding: the record in `benches/record`.

use std::path::PathBuf;

use anyhow::Result;
use loadgen::compare::{Comparison, Metric, Record, analysis};

use super::findings::{Finding, Question};

/// A finding's record.
pub(super) struct Measured {
    pub(super) record: Option<Record>,
}

/// Where records are kept.
pub(super) fn folder() -> PathBuf {
    xtask::workspace::root().join("benches/record")
}

/// A record by its name, which is a finding's or a plan's.
pub(super) fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.jsonl"))
}

impl Measured {
    /// Reads what there is; a finding that was never run has nothing.
    pub(super) fn read(finding: &Finding) -> Result<Self> {
        let path = path(finding.record());
        Ok(Self { record: path.exists().then(|| Record::read(&path)).transpose()? })
    }

    /// The day of its record.
    pub(super) fn day(&self) -> Option<&str> {
        self.record.as_ref()?.header.date.split('T').next()
    }

    /// Compares a figure of a question's two subjects.
    pub(super) fn comparison(&self, question: &Question, metric: Metric) -> Comparison {
        let Question { scenario, subject, rival, .. } = question;
        match &self.record {
            Some(record) => analysis::comparison(record, scenario, metric, subject, rival),
            None => Comparison::of_pairs(metric, &[]),
        }
    }
}
