//! Tables of READMEs that show measured figures, from records: `benches/scenarios/readme.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use loadgen::compare::markdown::table;
use loadgen::compare::{Comparison, Judged, Metric, Record, Table, analysis, used};
use serde::{Deserialize, Deserializer};

use super::{answers, measured};

/// A table of a record that is no comparison's: README, name in its marks, text.
type Other = (&'static str, &'static str, fn() -> Result<String>);

const OTHERS: [Other; 11] = [
    ("docs/redis/performance.md", "clusters", crate::clusters::table),
    ("docs/redis/performance.md", "collections", crate::compare::collections::table),
    ("docs/redis/performance.md", "fields", crate::compare::fields::table),
    ("docs/redis/performance.md", "failovers", crate::failovers::table),
    ("docs/redis/performance.md", "isolation", crate::isolation::table),
    ("docs/redis/performance.md", "persistence", crate::persistence::table),
    ("docs/redis/performance.md", "reshard", crate::reshard::table),
    ("docs/redis/performance.md", "scaling", crate::scaling::table),
    ("docs/redis/performance.md", "search", crate::search::table),
    ("docs/redis/performance.md", "search loads", crate::search::loads_table),
    ("docs/performance/method.md", "confidence", crate::confidence::table),
];

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "table")]
    tables: Vec<Spec>,
}

/// A table of a figure of some subjects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// The README, from the root of the workspace.
    file: String,
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
    /// A file of `benches/record`, without its end.
    record: String,
    scenario: String,
    /// Without it the processor time.
    #[serde(default = "cpu", deserialize_with = "metric")]
    metric: Metric,
    /// Between what the ratio to a subject is to be: a record that says otherwise is no longer shown without a word.
    #[serde(default)]
    wanted: BTreeMap<String, (f64, f64)>,
}

fn cpu() -> Metric {
    Metric::Cpu
}

fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

/// Writes all tables.
///
/// # Errors
/// When a README lacks the marks of a table, or a table names what no record has.
pub(super) fn write() -> Result<()> {
    for (path, text) in rendered()? {
        fs::write(&path, text)?;
        println!("written: {}", path.display());
    }
    Ok(())
}

/// The READMEs with their tables as the records give them.
///
/// # Errors
/// As [`write()`].
pub(super) fn rendered() -> Result<BTreeMap<PathBuf, String>> {
    let path = xtask::workspace::root().join("benches/scenarios/readme.toml");
    let file: File = toml::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
    let (mut records, mut texts) = (BTreeMap::new(), BTreeMap::new());
    for (file, name, table) in OTHERS {
        put(&mut texts, file, name, &table()?)?;
    }
    for spec in &file.tables {
        for row in &spec.rows {
            if !records.contains_key(&row.record) {
                records.insert(row.record.clone(), Record::read(&measured::path(&row.record))?);
            }
        }
    }
    let compared = |spec: &Spec| spec.compare(&records).with_context(|| format!("table {}", spec.name));
    let all: Vec<Vec<Comparison>> = file.tables.iter().map(compared).collect::<Result<_>>()?;
    let families = families(&file.tables, &all);
    for (spec, compared) in file.tables.iter().zip(&all) {
        let table = spec.render(&records, compared, &families).with_context(|| format!("table {}", spec.name))?;
        put(&mut texts, &spec.file, &spec.name, &table)?;
    }
    Ok(texts)
}

/// How many comparisons with verdicts all tables take from each record: these are a family, so that a comparison looks the same in every
/// table.
fn families<'a>(tables: &'a [Spec], compared: &[Vec<Comparison>]) -> BTreeMap<&'a str, usize> {
    let mut families = BTreeMap::new();
    for (spec, compared) in tables.iter().zip(compared) {
        for (row, compared) in spec.rows.iter().zip(compared.chunks(spec.subjects.len() - 1)) {
            let valid = compared.iter().filter(|one| one.is_valid()).count();
            *families.entry(row.record.as_str()).or_default() += valid;
        }
    }
    families
}

/// Puts a table into a README, which may have others.
pub(super) fn put(texts: &mut BTreeMap<PathBuf, String>, file: &str, name: &str, table: &str) -> Result<()> {
    let path = xtask::workspace::root().join(file);
    let text = texts.remove(&path).map_or_else(|| fs::read_to_string(&path), Ok)?;
    let text = between_marks(&text, name, table).with_context(|| file.to_owned())?;
    texts.insert(path, text);
    Ok(())
}

/// Replaces what stands between a table's marks.
fn between_marks(text: &str, name: &str, table: &str) -> Result<String> {
    let [begin, end] = [format!("<!-- begin: table {name} -->\n"), format!("<!-- end: table {name} -->\n")];
    let (before, rest) = text.split_once(&begin).with_context(|| format!("there is no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("there is no line {end}"))?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

impl Spec {
    /// The first subject and the others.
    fn sides(&self) -> Result<(&String, &[String])> {
        let sides = self.subjects.split_first().filter(|(_, rivals)| !rivals.is_empty());
        sides.context("it has fewer than two subjects")
    }

    /// Row by row, the first subject with each of the others.
    fn compare(&self, records: &BTreeMap<String, Record>) -> Result<Vec<Comparison>> {
        let (ours, rivals) = self.sides()?;
        let mut compared = Vec::new();
        for row in &self.rows {
            let record = row.record(records)?;
            let with = |rival: &String| analysis::comparison(record, &row.scenario, row.metric, ours, rival);
            compared.extend(rivals.iter().map(with));
        }
        Ok(compared)
    }

    fn render(
        &self,
        records: &BTreeMap<String, Record>,
        compared: &[Comparison],
        families: &BTreeMap<&str, usize>,
    ) -> Result<String> {
        let (ours, rivals) = self.sides()?;
        let records = self.rows.iter().map(|row| row.record(records)).collect::<Result<Vec<_>>>()?;
        let of_row = |(row, compared): (&Row, &[Comparison])| -> Vec<Judged> {
            let family = families.get(row.record.as_str()).copied().unwrap_or(1);
            compared.iter().map(|one| one.among(family)).collect()
        };
        let judged: Vec<Judged> = self.rows.iter().zip(compared.chunks(rivals.len())).flat_map(of_row).collect();
        let line = |((row, record), judged): ((&Row, &&Record), &[Judged])| {
            let median = |name: &str| row.median(record, name);
            for (rival, found) in rivals.iter().zip(judged) {
                row.check(rival, &found.comparison)?;
            }
            let cells = rivals.iter().zip(judged).map(|(rival, found)| match median(rival) {
                Some(value) => format!("{value}: {}", answers::text(found)),
                None => "–".to_owned(),
            });
            let own = median(ours).unwrap_or_else(|| "–".to_owned());
            Ok([row.label.clone(), own].into_iter().chain(cells).collect())
        };
        let lines = self.rows.iter().zip(&records).zip(judged.chunks(rivals.len())).map(line);
        let header: Vec<&str> = std::iter::once("").chain(self.subjects.iter().map(String::as_str)).collect();
        // Labels are Markdown already.
        Ok(table(&Table::new(&header, lines.collect::<Result<_>>()?)).replace("\\`", "`"))
    }
}

impl Row {
    fn record<'a>(&self, records: &'a BTreeMap<String, Record>) -> Result<&'a Record> {
        let record = records.get(&self.record).with_context(|| format!("there is no record {}", self.record))?;
        let known = record.header.scenarios.iter().any(|scenario| scenario.name == self.scenario);
        ensure!(known, "{}: {} has no scenario {}", self.label, self.record, self.scenario);
        Ok(record)
    }

    /// A subject's median with its unit. Behind a CPU time stand the processors that were used.
    fn median(&self, record: &Record, name: &str) -> Option<String> {
        let subject = analysis::subject(record, &self.scenario, name)?;
        let value = self.metric.text(subject.medians.get(&self.metric)?.value);
        Some(match self.metric {
            Metric::Throughput => value + "/s",
            Metric::Cpu => format!("{value} @ {}", used(&subject)),
            Metric::P50 | Metric::P99 | Metric::P999 | Metric::Memory | Metric::Switches => value,
        })
    }

    fn check(&self, rival: &str, found: &Comparison) -> Result<()> {
        let Some((least, most)) = self.wanted.get(rival) else { return Ok(()) };
        let ratio = found.ratio.with_context(|| format!("{}: no ratio to {rival}", self.label))?.value;
        ensure!(
            (*least..=*most).contains(&ratio),
            "{}: the ratio to {rival} is {ratio:.3}, wanted is one from {least} to {most}",
            self.label
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::process::run_quietly;

    #[test]
    fn a_table_stands_between_its_marks() {
        let text = "a\n<!-- begin: table x -->\nold\n<!-- end: table x -->\nb\n";
        let found = between_marks(text, "x", "new\n").unwrap();
        assert_eq!(found, text.replace("old", "new"));
        assert_eq!(between_marks(&found, "x", "new\n").unwrap(), found);
        assert!(between_marks(text, "y", "").unwrap_err().to_string().contains("begin: table y"));
    }

    /// Marks that nothing fills would keep text that was written by hand.
    #[test]
    fn all_marks_are_of_tables_that_are_rendered() {
        let file: File = toml::from_str(include_str!("../../../benches/scenarios/readme.toml")).unwrap();
        let known = |path: &str, name: &str| {
            file.tables.iter().any(|spec| (spec.file.as_str(), spec.name.as_str()) == (path, name))
                || OTHERS.iter().any(|(file, other, _)| (*file, *other) == (path, name))
                // The report's tests compare these.
                || path == super::super::document::REPORT
                || path.starts_with("docs/performance/")
        };
        let mut git = std::process::Command::new("git");
        let paths = run_quietly(git.args(["ls-files", "*.md"]).current_dir(xtask::workspace::root())).unwrap();
        for path in paths.lines() {
            let text = fs::read_to_string(xtask::workspace::root().join(path)).unwrap();
            for name in text.lines().filter_map(|line| line.strip_prefix("<!-- begin: table ")?.strip_suffix(" -->")) {
                assert!(known(path, name), "{path}: nothing renders the table {name}");
            }
        }
    }

    #[test]
    fn a_ratio_is_held_against_what_is_wanted() {
        let text = "label = 'l'\nrecord = 'r'\nscenario = 's'\nwanted = { wrk = [0.0, 0.85] }";
        let row: Row = toml::from_str(text).unwrap();
        let found = |own: f64| Comparison::of_pairs(Metric::Cpu, &[(own, 1.0); 5]);
        assert!(row.check("wrk", &found(0.8)).is_ok() && row.check("h2load", &found(2.0)).is_ok());
        let error = row.check("wrk", &found(0.9)).unwrap_err().to_string();
        assert_eq!(error, "l: the ratio to wrk is 0.900, wanted is one from 0 to 0.85");
    }
}
