//! A comparison's raw data: a file of JSON lines, written while it goes on. Reports are made from nothing else.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::capacity::{OfferedRate, RateOf};
use super::machine::Machine;
use super::order::Order;
use super::plan::Servers;
use crate::record::Outcome;

/// The version of the format; a file of another one is not read.
pub const FORMAT: u32 = 1;

/// One line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "nearly all lines of a record are runs")]
pub enum Line {
    /// The first line: what was compared.
    Comparison(Header),
    /// A run that gave a result.
    Run(Run),
    /// A run, or a start of a server, that failed.
    Failed(FailedRun),
    /// The rate of an open loop, known when its capacity was.
    Rate(OfferedRate),
    /// The last line. Without it the program was ended before it could write it.
    End(End),
}

impl Line {
    /// Gives a result another round.
    pub(super) fn set_round(&mut self, number: usize) {
        match self {
            Self::Run(run) => run.round = number,
            Self::Failed(failed) => failed.round = Some(number),
            Self::Comparison(_) | Self::Rate(_) | Self::End(_) => {}
        }
    }
}

/// The compared subjects, where and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// The report's title.
    pub title: String,
    /// Its topic.
    pub description: String,
    /// When it began, in UTC.
    pub date: String,
    /// The generator's version.
    pub loadgen: String,
    /// The commit of the repository that the file is in.
    pub commit: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// Rounds that were to be made.
    pub rounds: usize,
    /// Rounds that were made before, without being recorded.
    pub warm_up_rounds: usize,
    /// The order of subjects within a round.
    pub order: Order,
    /// Whether servers were kept.
    pub servers: Servers,
    /// The name of the subject that the others are compared with.
    pub baseline: String,
    /// Where the drawn orders come from.
    pub seed: u64,
    /// The generator's processors.
    pub generator_pin: Option<String>,
    /// The subjects, in the order of the file.
    pub subjects: Vec<SubjectHeader>,
    /// The scenarios, in the order of the file.
    pub scenarios: Vec<ScenarioHeader>,
}

/// A subject as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubjectHeader {
    /// Its name.
    pub name: String,
    /// Its description.
    pub about: String,
    /// The output of its version command.
    pub version: Option<String>,
    /// The command that starts it; nothing of a program that asks.
    pub start: String,
    /// Its environment, beside the generator's.
    pub environment: std::collections::BTreeMap<String, String>,
    /// Its processors.
    pub pin: Option<String>,
    /// Why it took no part.
    pub absent: Option<String>,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioHeader {
    /// Its name.
    pub name: String,
    /// The load in the words of the command line, without the target; or those of the programs that make it.
    pub command: String,
    /// The command of the server that the subjects ask, where they are no servers themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The generator's, or the target's, processors, where they are not the record's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_pin: Option<String>,
    /// The command that filled a fresh server.
    pub prepare: Option<String>,
    /// Where its rate comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_of: Option<RateOf>,
}

/// A run that gave a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// The subject's name.
    pub subject: String,
    /// The round, from 0.
    pub round: usize,
    /// The result.
    pub outcome: Outcome,
}

/// A run that gave none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// The scenario's name.
    pub scenario: String,
    /// The subject's name.
    pub subject: String,
    /// The round, from 0; nothing in the rounds before.
    pub round: Option<usize>,
    /// Why.
    pub reason: String,
}

/// How a comparison ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Whether all rounds were made.
    pub complete: bool,
    /// How long it took.
    pub seconds: f64,
}

/// A whole record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The comparison.
    pub header: Header,
    /// The results.
    pub runs: Vec<Run>,
    /// The failed runs.
    pub failed: Vec<FailedRun>,
    /// The rates of open loops.
    pub rates: Vec<OfferedRate>,
    /// How it ended.
    pub end: Option<End>,
}

/// The content of a file of results.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// A comparison.
    Comparison(Box<Record>),
    /// A single run's result, as `--json` writes it.
    Single(Box<Outcome>),
}

impl Stored {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is neither; the text names file and line.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        if let Ok(outcome) = serde_json::from_str::<Outcome>(&text) {
            return Ok(Self::Single(Box::new(outcome)));
        }
        Record::parse(text.as_bytes())
            .with_context(|| format!("{name}"))
            .map(|record| Self::Comparison(Box::new(record)))
    }
}

impl Record {
    /// Reads a comparison's file.
    ///
    /// # Errors
    /// When it cannot be read, or is no record; the text names file and line.
    pub fn read(path: &Path) -> Result<Self> {
        match Stored::read(path)? {
            Stored::Comparison(record) => Ok(*record),
            Stored::Single(_) => bail!("{} is a single run's result, expected a comparison's record", path.display()),
        }
    }

    /// Keeps the parts that are kept for years: latencies to two digits, and no timelines.
    pub fn compact(&mut self) {
        for run in &mut self.runs {
            run.outcome.timeline.clear();
            for operation in &mut run.outcome.operations {
                operation.latencies = operation.latencies.coarse();
            }
        }
    }

    /// Writes the file, run by run in their order.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut writer = Writer::create(path)?;
        writer.write(&Line::Comparison(self.header.clone()))?;
        let runs = self.runs.iter().cloned().map(Line::Run);
        let failed = self.failed.iter().cloned().map(Line::Failed);
        let rates = self.rates.iter().cloned().map(Line::Rate);
        runs.chain(failed).chain(rates).chain(self.end.clone().map(Line::End)).try_for_each(|line| writer.write(&line))
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let mut lines = BufReader::new(text).lines().enumerate();
        let expected = "expected a comparison's record (JSON lines), or a result that --json wrote";
        let header = match lines.next() {
            Some((_, line)) => match serde_json::from_str(&line?).with_context(|| format!("line 1: {expected}"))? {
                Line::Comparison(header) => header,
                _ => bail!("line 1 is not a comparison's head, {expected}"),
            },
            None => bail!("it is empty, {expected}"),
        };
        if header.format != FORMAT {
            bail!("line 1: the format is {}, expected {FORMAT}", header.format);
        }
        let mut record = Self { header, runs: Vec::new(), failed: Vec::new(), rates: Vec::new(), end: None };
        for (index, line) in lines {
            let line = line?;
            match serde_json::from_str(&line) {
                Ok(Line::Run(run)) => record.runs.push(run),
                Ok(Line::Failed(failed)) => record.failed.push(failed),
                Ok(Line::Rate(rate)) => record.rates.push(rate),
                Ok(Line::End(end)) => record.end = Some(end),
                Ok(Line::Comparison(_)) => {
                    bail!("line {}: a second comparison begins, expected one per file", index + 1)
                }
                // A program that is killed leaves half a line at the end.
                Err(error) if error.is_eof() => break,
                Err(error) => return Err(error).with_context(|| format!("line {}", index + 1)),
            }
        }
        Ok(record)
    }
}

/// Writes a record, line by line, so that nothing is lost whatever happens next.
#[derive(Debug)]
pub struct Writer {
    file: File,
}

impl Writer {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { file: File::create(path).with_context(|| format!("cannot write {}", path.display()))? })
    }

    /// Writes a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_vec(line).context("a record has no JSON form")?;
        text.push(b'\n');
        self.file.write_all(&text).context("cannot write the record")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::output::made_up;

    /// A comparison of `a` (the baseline), `b` and the absent `c`, made up of (scenario, subject, round, answers, nanos).
    pub(crate) fn record(runs: &[(&str, &str, usize, u64, u64)]) -> Record {
        let subject = |name: &str, absent: Option<&str>| SubjectHeader {
            name: name.to_owned(),
            about: format!("about {name}"),
            version: Some("v <1>".to_owned()),
            start: format!("{name} --port {{port}}"),
            environment: std::collections::BTreeMap::new(),
            pin: Some("1".to_owned()),
            absent: absent.map(str::to_owned),
        };
        let scenario = |name: &str| ScenarioHeader {
            name: name.to_owned(),
            command: "redis GET a|b".to_owned(),
            target: None,
            generator_pin: None,
            prepare: None,
            rate_of: None,
        };
        let machine = Machine {
            kernel: "Linux 6".to_owned(),
            cpu: "a processor".to_owned(),
            processors: 2,
            memory_bytes: 8 << 30,
            system: "Debian".to_owned(),
        };
        let header = Header {
            format: FORMAT,
            title: "made up".to_owned(),
            description: "for tests".to_owned(),
            date: "2026-11-21T15:00:00Z".to_owned(),
            loadgen: "0".to_owned(),
            commit: Some("abc".to_owned()),
            machine,
            rounds: 6,
            warm_up_rounds: 1,
            order: Order::Rotate,
            servers: Servers::Kept,
            baseline: "a".to_owned(),
            seed: 1,
            generator_pin: Some("0".to_owned()),
            subjects: vec![subject("a", None), subject("b", None), subject("c", Some("there is no program c"))],
            scenarios: vec![scenario("s")],
        };
        let run = |&(scenario, subject, round, answers, nanos): &(&str, &str, usize, u64, u64)| Run {
            scenario: scenario.to_owned(),
            subject: subject.to_owned(),
            round,
            outcome: made_up::run_of(answers, nanos),
        };
        let runs = runs.iter().map(run).collect();
        Record { header, runs, failed: Vec::new(), rates: Vec::new(), end: Some(End { complete: true, seconds: 12.5 }) }
    }

    #[test]
    fn a_record_survives_its_file() {
        let scratch = super::super::child::Scratch::new().unwrap();
        let path = scratch.path().join("record");
        let mut record = record(&[("s", "a", 0, 100, 1000), ("s", "b", 0, 50, 1_234_567)]);
        let reason = "refused \"here\"\n".to_owned();
        let rate = OfferedRate { scenario: "s".to_owned(), per_second: 7.0, subject: "a".to_owned(), capacity: 10.0 };
        record.rates.push(rate);
        record.failed.push(FailedRun { scenario: "s".to_owned(), subject: "b".to_owned(), round: Some(1), reason });
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), record);
        // The file that a killed program leaves.
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        assert_eq!(Record::read(&path).unwrap(), Record { end: None, ..record });
    }

    #[test]
    fn a_compact_record_says_the_same() {
        let mut compact = record(&[("s", "a", 0, 1000, 1_000_000), ("s", "b", 0, 50, 1_234_567)]);
        let whole = compact.clone();
        compact.compact();
        for (new, old) in compact.runs.iter().zip(&whole.runs) {
            let [p99, was] = [new, old].map(|run| run.outcome.latencies().percentile(99.0).as_secs_f64());
            assert!((p99 / was - 1.0).abs() < 0.01 && new.outcome.answers() == old.outcome.answers());
            assert!(new.outcome.timeline.is_empty() && !old.outcome.timeline.is_empty());
        }
        let length = |record: &Record| serde_json::to_string(&record.runs[0]).unwrap().len();
        assert!(length(&compact) * 3 < length(&whole) * 2, "{} {}", length(&compact), length(&whole));
        let once = compact.clone();
        compact.compact();
        assert_eq!(compact, once);
    }

    #[test]
    fn malformed_records_are_refused() {
        let good = serde_json::to_string(&Line::Comparison(record(&[]).header)).unwrap();
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = format!("{:#}", Record::parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        check("", "it is empty, expected a comparison's record");
        check("hello", "line 1: expected a comparison's record");
        check(r#"{"kind":"end","complete":true,"seconds":1}"#, "line 1 is not a comparison's head");
        check(&good.replace("\"format\":1", "\"format\":9"), "the format is 9, expected 1");
        check(&format!("{good}\n{good}"), "line 2: a second comparison begins");
        check(&format!("{good}\n{{\"kind\":\"run\"}}"), "line 2: missing field");
    }
}
