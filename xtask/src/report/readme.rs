//! README's tables, from the same records as the report.

use std::fs;

use anyhow::{Context, Result};
use loadgen::compare::markdown::table;
use loadgen::compare::{Comparison, Metric, Record, Table, Verdict, analysis, verdicts};
use serde::Deserialize;

use super::answers;
use super::findings::Findings;
use super::measured::Measured;

/// `benches/scenarios/readme.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "table")]
    tables: Vec<Spec>,
}

/// A table of the server's CPU time per request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// In its marks.
    name: String,
    /// The first one is compared with the others.
    subjects: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    label: String,
    finding: String,
    scenario: String,
}

/// The text of README.md with its tables as the records give them.
///
/// # Errors
/// When README.md lacks the marks of a table, or a table names what no record has.
pub(super) fn rendered(text: &str, findings: &Findings, measured: &[Measured]) -> Result<String> {
    let path = crate::root().join("benches/scenarios/readme.toml");
    let file: File = toml::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
    file.tables
        .iter()
        .try_fold(text.to_owned(), |text, spec| between_marks(&text, &spec.name, &spec.render(findings, measured)?))
}

/// Replaces what stands between a table's marks.
fn between_marks(text: &str, name: &str, table: &str) -> Result<String> {
    let [begin, end] = [format!("<!-- begin: table {name} -->\n"), format!("<!-- end: table {name} -->\n")];
    let (before, rest) = text.split_once(&begin).with_context(|| format!("README.md has no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("README.md has no line {end}"))?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

impl Spec {
    fn render(&self, findings: &Findings, measured: &[Measured]) -> Result<String> {
        let (ours, rivals) = self.subjects.split_first().context("a table without subjects")?;
        let records = self.rows.iter().map(|row| row.record(findings, measured)).collect::<Result<Vec<_>>>()?;
        let compared: Vec<Comparison> = self
            .rows
            .iter()
            .zip(&records)
            .flat_map(|(row, record)| {
                rivals.iter().map(|rival| analysis::comparison(record, &row.scenario, Metric::Cpu, ours, rival))
            })
            .collect();
        let judged: Vec<(Comparison, Verdict)> = compared.iter().copied().zip(verdicts(&compared)).collect();
        let lines = self.rows.iter().zip(&records).zip(judged.chunks(rivals.len())).map(|((row, record), judged)| {
            let median = |name: &str| {
                let result = analysis::subject(record, &row.scenario, name);
                result.and_then(|result| result.medians.get(&Metric::Cpu).map(|found| Metric::Cpu.text(found.value)))
            };
            let cells = rivals.iter().zip(judged).map(|(rival, (found, verdict))| match median(rival) {
                Some(value) => format!("{value}: {}", answers::text(found, *verdict)),
                None => "–".to_owned(),
            });
            let own = median(ours).unwrap_or_else(|| "–".to_owned());
            [row.label.clone(), own].into_iter().chain(cells).collect()
        });
        let header: Vec<&str> = std::iter::once("").chain(self.subjects.iter().map(String::as_str)).collect();
        // Labels are Markdown already.
        Ok(table(&Table::new(&header, lines.collect())).replace("\\`", "`"))
    }
}

impl Row {
    fn record<'a>(&self, findings: &Findings, measured: &'a [Measured]) -> Result<&'a Record> {
        let place = findings.findings.iter().position(|finding| finding.id == self.finding);
        let record = place.and_then(|place| measured.get(place)?.record.as_ref());
        let record = record.with_context(|| format!("{}: there is no record of {}", self.label, self.finding))?;
        let known = record.header.scenarios.iter().any(|scenario| scenario.name == self.scenario);
        anyhow::ensure!(known, "{}: {} has no scenario {}", self.label, self.finding, self.scenario);
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_stands_between_its_marks() {
        let text = "a\n<!-- begin: table x -->\nold\n<!-- end: table x -->\nb\n";
        let found = between_marks(text, "x", "new\n").unwrap();
        assert_eq!(found, text.replace("old", "new"));
        assert_eq!(between_marks(&found, "x", "new\n").unwrap(), found);
        assert!(between_marks(text, "y", "").unwrap_err().to_string().contains("begin: table y"));
    }
}
