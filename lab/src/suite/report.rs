//! The table of a run, and whether it is good enough.

use std::collections::HashMap;

use super::baseline::Baseline;
use super::known::{Known, Verdict};
use super::output::Outcome;

/// The share of the tests concerning supported commands that must pass.
const ACCEPTABLE: f64 = 0.97;

/// Results of all files.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<Row>,
    /// Counted failures: file, test, message or reason.
    failures: Vec<String>,
    /// Failures that need what is not supported: file, test, reason.
    unsupported: Vec<String>,
    /// Left out by the suite itself.
    ignored: Vec<String>,
    hung: usize,
    /// Failures of which nothing is known.
    unexplained: usize,
}

struct Row {
    unit: String,
    passed: usize,
    failed: usize,
    unsupported: usize,
    ignored: usize,
    genuine: Option<(usize, usize)>,
}

impl Report {
    /// Takes in the result of one file.
    pub(super) fn add(&mut self, unit: &str, outcome: &Outcome, baseline: Option<&Baseline>, known: &Known) {
        let mut bad: Vec<(&str, &str)> = Vec::new();
        bad.extend(outcome.failed.iter().map(|(name, message)| (name.as_str(), message.as_str())));
        let missing = baseline.filter(|_| !outcome.is_whole);
        let missing = missing.map_or_else(Vec::new, |baseline| never_reached(baseline, outcome));
        bad.extend(missing.iter().map(|name| (name.as_str(), "never reached")));
        let (mut failed, mut unsupported) = (outcome.hung.len(), 0);
        for name in &outcome.hung {
            // A known failure may take its time for that.
            if let Verdict::Fails(reason) = known.verdict(name, "") {
                self.failures.push(format!("{unit}: {name}: HANGS (known: {reason})"));
            } else {
                self.hung += 1;
                self.failures.push(format!("{unit}: {name}: HANGS"));
            }
        }
        for (name, message) in bad {
            match known.verdict(name, message) {
                Verdict::Unsupported(reason) => {
                    unsupported += 1;
                    self.unsupported.push(format!("{unit}: {name}: {reason}"));
                }
                Verdict::Fails(reason) => {
                    failed += 1;
                    self.failures.push(format!("{unit}: {name}: {message} (known: {reason})"));
                }
                Verdict::Unexplained => {
                    failed += 1;
                    self.unexplained += 1;
                    self.failures.push(format!("{unit}: {name}: {message}"));
                }
            }
        }
        self.ignored.extend(outcome.ignored.iter().map(|name| format!("{unit}: {name}")));
        self.rows.push(Row {
            unit: unit.to_owned(),
            passed: outcome.passed.len(),
            failed,
            unsupported,
            ignored: outcome.ignored.len(),
            genuine: baseline.map(|baseline| (baseline.passed.len(), baseline.failed.len())),
        });
    }

    /// Prints the table, then every name.
    pub(super) fn print(&self, with_genuine: bool) {
        let title = if with_genuine { "  genuine passed/failed" } else { "" };
        println!("{:<27} {:>6} {:>6} {:>11} {:>7}{title}", "file", "passed", "failed", "unsupported", "skipped");
        for row in &self.rows {
            let genuine = match row.genuine {
                Some((passed, failed)) if with_genuine => format!("  {passed}/{failed}"),
                _ => String::new(),
            };
            let Row { unit, passed, failed, unsupported, ignored, .. } = row;
            println!("{unit:<27} {passed:>6} {failed:>6} {unsupported:>11} {ignored:>7}{genuine}");
        }
        print_list("Fails", &self.failures);
        print_list("Not concerning supported commands", &self.unsupported);
        print_list("Skipped by the suite's tags", &self.ignored);
        let (passed, failed) = self.totals();
        println!("\nsuite: {passed} passed, {failed} failed, {:.1} % of what is supported", self.share() * 100.0);
    }

    /// Whether enough passed and nothing hung.
    pub(super) fn is_acceptable(&self) -> bool {
        self.hung == 0 && self.share() >= ACCEPTABLE
    }

    /// Whether nothing fails but what is known to.
    pub(super) fn is_as_known(&self) -> bool {
        self.hung == 0 && self.unexplained == 0
    }

    fn totals(&self) -> (usize, usize) {
        (self.rows.iter().map(|row| row.passed).sum(), self.rows.iter().map(|row| row.failed).sum())
    }

    fn share(&self) -> f64 {
        let (passed, failed) = self.totals();
        passed as f64 / (passed + failed).max(1) as f64
    }
}

fn print_list(title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    println!("\n{title}:");
    for line in lines {
        println!("  {line}");
    }
}

/// Tests that the genuine server passes and that ours neither passed nor failed; names can occur more than once. Numbers in names are drawn at random by some files, and
/// some repeat a test as often as there is time for it: where the suite went through a file to its end, once is enough.
fn never_reached(baseline: &Baseline, outcome: &Outcome) -> Vec<String> {
    let mut reached: HashMap<String, usize> = HashMap::new();
    let failed = outcome.failed.iter().map(|(name, _)| name);
    for name in outcome.passed.iter().chain(failed).chain(&outcome.hung) {
        *reached.entry(without_numbers(name)).or_default() += 1;
    }
    let mut missing = Vec::new();
    for name in &baseline.passed {
        match reached.get_mut(&without_numbers(name)) {
            Some(_) if outcome.is_through => {}
            Some(count) if *count > 0 => *count -= 1,
            _ => missing.push(name.clone()),
        }
    }
    missing
}

fn without_numbers(name: &str) -> String {
    name.replace(|c: char| c.is_ascii_digit(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_breaks_off_counts_what_it_never_reached() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let baseline = Baseline { passed: names(&["a", "b", "b", "c"]), failed: Vec::new() };
        let outcome = Outcome {
            passed: names(&["a", "b"]),
            failed: vec![("c".to_owned(), "ERR".to_owned())],
            ..Outcome::default()
        };
        assert_eq!(never_reached(&baseline, &outcome), ["b"]);
        let mut report = Report::default();
        report.add("unit/x", &outcome, Some(&baseline), &Known::default());
        assert_eq!(report.totals(), (2, 2));
        assert!(!report.is_acceptable());
    }

    #[test]
    fn a_hang_is_a_failure_of_which_something_may_be_known() {
        let known = Known::parse("slow | fails: it is").unwrap();
        let check = |name: &str, is_known| {
            let outcome = Outcome { hung: vec![name.to_owned()], ..Outcome::default() };
            let mut report = Report::default();
            report.add("unit/x", &outcome, None, &known);
            assert_eq!((report.totals(), report.is_as_known()), ((0, 1), is_known), "{name}");
        };
        check("slow", true);
        check("another", false);
    }

    #[test]
    fn numbers_in_names_are_drawn_at_random() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let baseline = Baseline { passed: names(&["x = 17", "x = 4", "y"]), failed: Vec::new() };
        let mut outcome = Outcome { passed: names(&["x = 5"]), ..Outcome::default() };
        assert_eq!(never_reached(&baseline, &outcome), ["x = 4", "y"]);
        outcome.is_through = true;
        assert_eq!(never_reached(&baseline, &outcome), ["y"]);
    }
}
