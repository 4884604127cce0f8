//! Suspected causes: what `cargo bench -p benches` has found, hypothesis by hypothesis.
//!
//! Criterion's estimates are kept in `benches/record/micro.jsonl`. Outcomes are made from them, and from what a request costs in
//! the records of findings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use loadgen::compare::{Metric, Table, analysis, factor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{Block, Part, points};
use super::findings::Findings;
use super::measured::{Measured, folder};

/// A benchmark's mean time of one operation, in nanoseconds, with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Estimate {
    /// The benchmark's name, `hasher/16-byte keys/SipHash/1000000`.
    id: String,
    nanos: f64,
    low: f64,
    high: f64,
}

/// `benches/scenarios/hypotheses.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "hypothesis")]
    hypotheses: Vec<Hypothesis>,
}

/// A file of `benches/micro`, and which of its benchmarks decide.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hypothesis {
    file: String,
    compare: Vec<Pair>,
}

/// Two benchmarks, `a` being the suspected one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    what: String,
    a: String,
    b: String,
    /// The suspected cost: a request whose price is in a record.
    request: Option<Request>,
}

/// A request of a finding, and how many of the operations it holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    finding: String,
    scenario: String,
    subject: String,
    #[serde(default = "one")]
    operations: f64,
}

fn one() -> f64 {
    1.0
}

/// Below this share of a request a cost explains nothing that intervals could show.
const NEGLIGIBLE: f64 = 0.05;

/// Above this share it is a cause by itself.
const LARGE: f64 = 0.2;

/// The hypotheses with all that is known of them.
pub(super) struct Causes {
    hypotheses: Vec<Hypothesis>,
    estimates: BTreeMap<String, Estimate>,
}

/// Where estimates are kept.
fn record() -> PathBuf {
    folder().join("micro.jsonl")
}

/// The measurement of both sides of every comparison.
const MEASURE: &str =
    "cargo bench -p benches; cargo bench --manifest-path benches/peers/micro-rust/Cargo.toml --target-dir target";

/// Takes the estimates of the last `cargo bench` into the record; older ones of other benchmarks stay.
pub(super) fn keep() -> Result<()> {
    let folder = xtask::workspace::target_dir().join("criterion");
    let mut fresh = Vec::new();
    collect(&folder, &mut fresh).with_context(|| format!("in {}: `{MEASURE}` comes first", folder.display()))?;
    ensure!(!fresh.is_empty(), "{} holds no estimates: `{MEASURE}` comes first", folder.display());
    let mut all = read_estimates()?;
    all.extend(fresh.into_iter().map(|estimate| (estimate.id.clone(), estimate)));
    let lines = all.values().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(fs::write(record(), lines.join("\n") + "\n")?)
}

/// All benchmarks below a folder of criterion's.
fn collect(folder: &Path, found: &mut Vec<Estimate>) -> Result<()> {
    let new = folder.join("new");
    if new.join("benchmark.json").exists() {
        let read = |name: &str| -> Result<Value> { Ok(serde_json::from_str(&fs::read_to_string(new.join(name))?)?) };
        let estimate = estimate(&read("benchmark.json")?, &read("estimates.json")?);
        found.push(estimate.with_context(|| format!("{} is not criterion's", new.display()))?);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path != new {
            collect(&path, found)?;
        }
    }
    Ok(())
}

/// From criterion's two files; times are of one iteration, which may hold several operations.
fn estimate(benchmark: &Value, estimates: &Value) -> Option<Estimate> {
    let operations = benchmark["throughput"]["Elements"].as_f64().unwrap_or(1.0);
    // The slope where there is one: it does not see the clock.
    let found = if estimates["slope"].is_object() { &estimates["slope"] } else { &estimates["mean"] };
    let interval = &found["confidence_interval"];
    Some(Estimate {
        id: benchmark["full_id"].as_str()?.to_owned(),
        nanos: found["point_estimate"].as_f64()? / operations,
        low: interval["lower_bound"].as_f64()? / operations,
        high: interval["upper_bound"].as_f64()? / operations,
    })
}

fn read_estimates() -> Result<BTreeMap<String, Estimate>> {
    let path = record();
    let text = if path.exists() { fs::read_to_string(&path)? } else { String::new() };
    let lines = text.lines().map(serde_json::from_str::<Estimate>);
    let found = lines.map(|line| line.map(|estimate| (estimate.id.clone(), estimate))).collect::<Result<_, _>>();
    found.with_context(|| path.display().to_string())
}

impl Causes {
    /// Reads hypotheses and record.
    pub(super) fn read() -> Result<Self> {
        let path = xtask::workspace::root().join("benches/scenarios/hypotheses.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = toml::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(Self { hypotheses: file.hypotheses, estimates: read_estimates()? })
    }

    /// The suspected causes, in a table: the shares that are costs of a recorded request.
    pub(super) fn summary(&self, measured: &[Measured], findings: &Findings) -> Option<Part> {
        let pairs = self.hypotheses.iter().flat_map(|hypothesis| &hypothesis.compare);
        let row = |pair: &Pair| {
            let (a, b) = (self.estimates.get(&pair.a)?, self.estimates.get(&pair.b)?);
            let request = pair.request.as_ref()?;
            let share = request.share(a, b, measured, findings)?;
            let [name, other] = differing(&pair.a, &pair.b);
            let of = format!("{} ({})", request.subject, request.finding);
            Some(vec![sentence(&pair.what), name, other, of, share.text(), weight(&share).to_owned()])
        };
        let rows: Vec<Vec<String>> = pairs.filter_map(row).collect();
        if rows.is_empty() {
            return None;
        }
        let text = format!(
            "Added CPU time of the suspected variant, divided by the CPU time of a whole request of the named program; lower is better. \
             The benchmarks are CPU-bound, so their elapsed time is CPU time. Weight: below {:.0} % too little to be the cause, \
             above {:.0} % a cause by itself, if the whole interval says so.",
            NEGLIGIBLE * 100.0,
            LARGE * 100.0
        );
        let header = ["operation", "suspected", "instead", "request of", "share", "weight"];
        let blocks = vec![Block::Text(text), Block::Table(Table::new(&header, rows))];
        let file = "docs/performance/causes.md".to_owned();
        Some(Part { file, name: "causes", heading: Some("Suspected causes".to_owned()), blocks })
    }

    /// All of it, for the page.
    pub(super) fn blocks(&self, measured: &[Measured], findings: &Findings) -> Vec<Block> {
        let mut blocks = vec![Block::Heading(2, "Suspected causes in full".to_owned())];
        blocks.push(Block::Text(format!(
            "What the articles, or their readers, suspected, tested one by one by cargo bench (benches/micro). A difference of CPU time is held \
             against the CPU time that a server spent on a whole request in this report: below {:.0} % of it is too little to be \
             the cause, above {:.0} % a cause by itself.",
            NEGLIGIBLE * 100.0,
            LARGE * 100.0
        )));
        for hypothesis in &self.hypotheses {
            let head = head(&hypothesis.file);
            blocks.push(Block::Heading(
                3,
                hypothesis.file.trim_end_matches(".rs").trim_end_matches("/mod").replace('_', " "),
            ));
            let mut lines: Vec<(String, String)> = ["Claim", "Source", "Hypothesis", "Compared"]
                .iter()
                .filter_map(|name| Some((format!("{name}:"), field(&head, name)?)))
                .collect();
            match self.outcomes(hypothesis, measured, findings) {
                Some(outcomes) => lines.push(("Outcome:".to_owned(), outcomes.join(" "))),
                None => lines.push(("Outcome:".to_owned(), "not yet measured.".to_owned())),
            }
            let lines = lines.into_iter().map(|(name, text)| (name, text.replace(['`', '*'], ""))).collect();
            blocks.push(Block::Points(lines));
        }
        let all = self.estimates.values();
        let lines = all
            .map(|found| format!("{}: {} ({} to {})", found.id, time(found.nanos), time(found.low), time(found.high)));
        if !self.estimates.is_empty() {
            blocks.push(Block::Heading(3, "Every microbenchmark".to_owned()));
            blocks.push(points(lines));
        }
        blocks
    }

    /// One sentence for each pair; nothing while a benchmark has no estimate.
    fn outcomes(&self, hypothesis: &Hypothesis, measured: &[Measured], findings: &Findings) -> Option<Vec<String>> {
        hypothesis.compare.iter().map(|pair| self.outcome(pair, measured, findings)).collect()
    }

    fn outcome(&self, pair: &Pair, measured: &[Measured], findings: &Findings) -> Option<String> {
        let (a, b) = (self.estimates.get(&pair.a)?, self.estimates.get(&pair.b)?);
        let (low, high) = (a.low / b.high, a.high / b.low);
        let [name, other] = differing(&pair.a, &pair.b);
        let ratio = a.nanos / b.nanos;
        let claim = match () {
            () if low > 1.0 => format!("{name} takes {} times as long as {other}", factor(ratio)),
            () if high < 1.0 => format!("{name} takes only {} of the time of {other}", factor(ratio)),
            () => format!("no difference shown between {name} and {other}, {}", factor(ratio)),
        };
        let mut text = format!(
            "{}: {claim} ({} to {}), {} against {}",
            sentence(&pair.what),
            factor(low),
            factor(high),
            time(a.nanos),
            time(b.nanos)
        );
        if let Some(request) = &pair.request
            && let Some(share) = request.share(a, b, measured, findings)
        {
            text += &format!(
                "; the difference is {:.1} % [{:.1}, {:.1}] of the CPU time that {} spends on a request ({}, {}): {}",
                share.value * 100.0,
                share.low * 100.0,
                share.high * 100.0,
                request.subject,
                request.finding,
                request.scenario,
                weight(&share)
            );
        }
        Some(text + ".")
    }
}

impl Request {
    /// The share of a request's CPU time that the difference of two costs is, if the request is recorded. Its interval takes
    /// the worst of what it is made of.
    fn share(&self, a: &Estimate, b: &Estimate, measured: &[Measured], findings: &Findings) -> Option<Share> {
        let place = findings.findings.iter().position(|finding| finding.id == self.finding)?;
        let record = measured.get(place)?.record.as_ref()?;
        let subject = analysis::subject(record, &self.scenario, &self.subject)?;
        let cost = subject.medians.get(&Metric::Cpu)?;
        let of = |difference: f64, cost: f64| difference * self.operations / (cost * 1000.0);
        let [least, most] = [a.low - b.high, a.high - b.low];
        let [low, high] = [
            of(least, if least < 0.0 { cost.low } else { cost.high }),
            of(most, if most < 0.0 { cost.high } else { cost.low }),
        ];
        Some(Share { value: of(a.nanos - b.nanos, cost.value), low, high })
    }
}

/// A share with its interval.
struct Share {
    value: f64,
    low: f64,
    high: f64,
}

impl Share {
    /// In per cent; a share above the whole request as a factor.
    fn text(&self) -> String {
        match [self.value, self.low, self.high] {
            [value, low, high] if value > 1.0 => format!("{value:.2} requests [{low:.2}, {high:.2}]"),
            shares => {
                let [value, low, high] = shares.map(|share| share * 100.0);
                format!("{value:.1} % [{low:.1}, {high:.1}]")
            }
        }
    }
}

/// The weight of a cost of this share, as far as its whole interval says so.
fn weight(share: &Share) -> &'static str {
    match () {
        () if share.high < NEGLIGIBLE => "too little to be the cause",
        () if share.low > LARGE => "large enough to be a cause by itself",
        () if share.low > NEGLIGIBLE => "large enough to be a part of the cause",
        () => "inconclusive",
    }
}

/// The folders of hypotheses: those that need no peer's code, and the others.
const FOLDERS: [&str; 2] = ["benches/micro", "benches/peers/micro-rust/benches"];

/// The file of a hypothesis; in the first folder if there is none.
fn source(file: &str) -> PathBuf {
    let mut places = FOLDERS.iter().map(|folder| xtask::workspace::root().join(folder).join(file));
    places.clone().find(|place| place.exists()).or_else(|| places.next()).expect("there are folders")
}

/// The comment at the head of a hypothesis' file, without its marks.
fn head(file: &str) -> String {
    let text = fs::read_to_string(source(file)).unwrap_or_default();
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The text behind `**Name**:`, up to the next name.
fn field(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!("**{name}**:"))?;
    Some(rest.split("**").next()?.trim().to_owned())
}

/// With a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The parts in which two names differ.
fn differing<'a>(a: &'a str, b: &'a str) -> [String; 2] {
    let (own, other): (Vec<&str>, Vec<&str>) = (a.split('/').collect(), b.split('/').collect());
    if own.len() != other.len() {
        return [a.to_owned(), b.to_owned()];
    }
    let parts = own.iter().zip(&other).filter(|(own, other)| own != other);
    let (own, other): (Vec<&str>, Vec<&str>) = parts.map(|(own, other)| (*own, *other)).unzip();
    // "axum, /" is a name, too: what is left of it when paths are the same ends in a comma.
    [own, other].map(|parts| parts.join(", ").trim_end_matches([',', ' ']).to_owned())
}

/// A time with three digits.
fn time(nanos: f64) -> String {
    let (value, unit) = match nanos.abs() {
        ..1e3 => (nanos, "ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        _ => (nanos / 1e6, "ms"),
    };
    let digits = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn estimates_are_of_one_operation() {
        let interval = json!({ "lower_bound": 90.0, "upper_bound": 110.0 });
        let mean = json!({ "point_estimate": 100.0, "confidence_interval": interval });
        let benchmark = json!({ "full_id": "a/b", "throughput": { "Elements": 10 } });
        let found = estimate(&benchmark, &json!({ "mean": mean, "slope": null })).unwrap();
        assert_eq!(found, Estimate { id: "a/b".to_owned(), nanos: 10.0, low: 9.0, high: 11.0 });
        assert!(estimate(&benchmark, &json!({})).is_none());
    }

    #[test]
    fn outcomes_follow_from_estimates() {
        let estimate = |id: &str, nanos: f64| {
            (id.to_owned(), Estimate { id: id.to_owned(), nanos, low: nanos * 0.99, high: nanos * 1.01 })
        };
        let estimates = [estimate("g/slow/9", 200.0), estimate("g/fast/9", 100.0), estimate("g/same/9", 101.0)];
        let causes = Causes { hypotheses: Vec::new(), estimates: estimates.into() };
        let findings = Findings { findings: Vec::new(), reasons: Vec::new() };
        #[track_caller]
        fn check(causes: &Causes, findings: &Findings, a: &str, b: &str, expected: Option<&str>) {
            let pair = Pair { what: "a thing".to_owned(), a: a.to_owned(), b: b.to_owned(), request: None };
            assert_eq!(causes.outcome(&pair, &[], findings).as_deref(), expected);
        }
        let slower = "A thing: slow takes 2.000 times as long as fast (1.960 to 2.040), 200 ns against 100 ns.";
        check(&causes, &findings, "g/slow/9", "g/fast/9", Some(slower));
        let same = "A thing: no difference shown between same and fast, 1.010 (0.990 to 1.030), 101 ns against 100 ns.";
        check(&causes, &findings, "g/same/9", "g/fast/9", Some(same));
        check(&causes, &findings, "g/slow/9", "g/missing/9", None);
        assert_eq!(differing("r/axum, /", "r/match, /"), ["axum", "match"]);
        assert_eq!(differing("r/old/GET", "r/new/SET"), ["old, GET", "new, SET"]);
    }

    #[test]
    fn every_hypothesis_has_a_file_with_a_head() {
        let causes = Causes::read().unwrap();
        for hypothesis in &causes.hypotheses {
            let head = head(&hypothesis.file);
            assert!(field(&head, "Hypothesis").is_some() && field(&head, "Claim").is_some(), "{}", hypothesis.file);
            assert!(!hypothesis.compare.is_empty());
        }
        let files = FOLDERS.iter().flat_map(|folder| fs::read_dir(xtask::workspace::root().join(folder)).unwrap());
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        // These hold no hypothesis of their own.
        let known = ["main.rs", "own_path.rs", "system_allocator.rs"];
        let is_own = |name: &str| known.contains(&name) || name.starts_with("echonet_");
        for name in names.filter(|name| name.ends_with(".rs") && !is_own(name)) {
            assert!(causes.hypotheses.iter().any(|hypothesis| hypothesis.file == name), "{name} has no comparison");
        }
    }
}
