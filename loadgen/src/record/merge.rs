//! Merging: several generators put load on one server at the same time, and their results are those of one run.

use super::{Cpu, Deliveries, Ending, FailureCount, Fairness, Generator, Iterations, Latencies, Openings, Outcome};
use super::{EXAMPLES, Interval, Operation, Redirects, ServerUse};

impl Outcome {
    /// Merges the results of generators that ran at the same time, each under its name. Counts and histograms add up exactly.
    /// Rates count by the longest of the runs.
    ///
    /// # Errors
    /// When there is none, or two of them did not run the same operations of the same protocol in the same kind of loop; the text
    /// names the run.
    pub fn merged(runs: &[(String, Self)]) -> Result<Self, String> {
        let [(first, outcome), others @ ..] = runs else {
            return Err("there are no runs, expected at least one".to_owned());
        };
        let mut merged = outcome.clone();
        merged.ending = Ending::Complete;
        merged.has_histograms().map_err(|error| format!("{first}: {error}"))?;
        for (name, other) in others {
            merged.add(other).map_err(|error| format!("{name}: {error}, as in {first}"))?;
        }
        merged.ending = ending(runs);
        merged.description = format!("{} runs merged: {}", runs.len(), outcome.description);
        merged.notes.extend(uneven(runs));
        Ok(merged)
    }

    fn has_histograms(&self) -> Result<(), String> {
        match self.told {
            None => Ok(()),
            Some(_) => Err("the run is another program's, expected one of loadgen with histograms".to_owned()),
        }
    }

    fn add(&mut self, other: &Self) -> Result<(), String> {
        other.has_histograms()?;
        same("protocol", &setting(other), &setting(self))?;
        same("operations", &names(other), &names(self))?;
        same("loop", &kind(other), &kind(self))?;
        self.settings.retain(|name, value| other.settings.get(name) == Some(value));
        self.seconds = self.seconds.max(other.seconds);
        for (own, theirs) in self.operations.iter_mut().zip(&other.operations) {
            own.latencies.merge(&theirs.latencies);
        }
        self.add_failures(&other.failures);
        for theirs in &other.statuses {
            match self.statuses.iter_mut().find(|own| own.status == theirs.status) {
                Some(own) => own.count += theirs.count,
                None => self.statuses.push(*theirs),
            }
        }
        self.statuses.sort_by_key(|status| status.status);
        self.offered_per_second =
            self.offered_per_second.zip(other.offered_per_second).map(|(own, theirs)| own + theirs);
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        join(&mut self.deliveries, other.deliveries.as_ref(), |own, theirs| own.add(theirs));
        join(&mut self.iterations, other.iterations.as_ref(), |own, theirs| own.merge(theirs));
        join(&mut self.redirects, other.redirects.as_ref(), Redirects::add);
        join(&mut self.openings, other.openings.as_ref(), |own, theirs| own.add(theirs));
        join(&mut self.server, other.server.as_ref(), ServerUse::add);
        self.fairness = self.fairness.and(other.fairness);
        self.generator.add(&other.generator);
        self.add_timeline(&other.timeline);
        let news = other.notes.iter().filter(|note| !self.notes.contains(note)).cloned();
        self.notes.extend(news.collect::<Vec<_>>());
        Ok(())
    }

    fn add_failures(&mut self, failures: &[FailureCount]) {
        for theirs in failures {
            match self.failures.iter_mut().find(|own| own.kind == theirs.kind) {
                Some(own) => own.add(theirs),
                None => self.failures.push(theirs.clone()),
            }
        }
        self.failures.sort_by_key(|failure| failure.kind);
    }

    /// The seconds of all runs are taken for the same ones.
    fn add_timeline(&mut self, timeline: &[Interval]) {
        for (place, theirs) in timeline.iter().enumerate() {
            match self.timeline.get_mut(place) {
                Some(own) => {
                    let mut latencies = own.latencies.open();
                    latencies.merge(&theirs.latencies.open());
                    own.latencies = latencies.into();
                    own.failures += theirs.failures;
                    own.seconds = own.seconds.max(theirs.seconds);
                    own.server = own.server.or(theirs.server);
                }
                None => self.timeline.push(theirs.clone()),
            }
        }
    }
}

fn same(what: &str, found: &str, expected: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("the {what}: `{found}`, expected `{expected}`")) }
}

fn setting(outcome: &Outcome) -> String {
    outcome.settings.get("protocol").and_then(serde_json::Value::as_str).unwrap_or("unknown").to_owned()
}

fn names(outcome: &Outcome) -> String {
    let names = |operation: &Operation| operation.name.clone();
    let checks = |iterations: &Iterations| iterations.checks.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
    let checks = outcome.iterations.as_deref().map(checks).unwrap_or_default();
    outcome.operations.iter().map(names).chain(checks).collect::<Vec<_>>().join(", ")
}

fn kind(outcome: &Outcome) -> String {
    if outcome.offered_per_second.is_some() { "open" } else { "closed" }.to_owned()
}

/// The worst ending, with the runs that had it.
fn ending(runs: &[(String, Outcome)]) -> Ending {
    let reasons = runs.iter().filter_map(|(name, outcome)| match &outcome.ending {
        Ending::Failed(reason) => Some(format!("{name}: {reason}")),
        Ending::Complete | Ending::Interrupted => None,
    });
    let reasons: Vec<String> = reasons.collect();
    match () {
        () if !reasons.is_empty() => Ending::Failed(reasons.join("; ")),
        () if runs.iter().any(|(_, outcome)| outcome.ending == Ending::Interrupted) => Ending::Interrupted,
        () => Ending::Complete,
    }
}

/// A note for runs that cannot have been one.
fn uneven(runs: &[(String, Outcome)]) -> Option<String> {
    let lengths = || runs.iter().map(|(_, outcome)| outcome.seconds);
    let (least, most) = (lengths().fold(f64::INFINITY, f64::min), lengths().fold(0.0, f64::max));
    (least < 0.99 * most).then(|| {
        format!(
            "the runs measured from {least:.2} to {most:.2} s: rates count all answers by the longest, and are too low"
        )
    })
}

/// Adds what both have, and takes what only the other has.
fn join<T: Clone>(own: &mut Option<T>, theirs: Option<&T>, add: impl FnOnce(&mut T, &T)) {
    match (own.as_mut(), theirs) {
        (Some(own), Some(theirs)) => add(own, theirs),
        (None, Some(theirs)) => *own = Some(theirs.clone()),
        (_, None) => {}
    }
}

impl FailureCount {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        join(&mut self.latencies, other.latencies.as_ref(), Latencies::merge);
        for example in &other.examples {
            if self.examples.len() < EXAMPLES && !self.examples.contains(example) {
                self.examples.push(example.clone());
            }
        }
    }
}

impl Deliveries {
    fn add(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.promised += other.promised;
        self.arrived += other.arrived;
    }
}

impl Redirects {
    /// All see the same slots move.
    fn add(&mut self, other: &Self) {
        self.moved += other.moved;
        self.asked += other.asked;
        self.slots = self.slots.max(other.slots);
    }
}

impl Openings {
    fn add(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.first_byte.merge(&other.first_byte);
    }
}

impl Fairness {
    fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl Cpu {
    fn and(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }
}

impl Generator {
    fn add(&mut self, other: &Self) {
        self.cpu = self.cpu.and(other.cpu);
        self.busiest_thread = self.busiest_thread.max(other.busiest_thread);
        self.resident_bytes += other.resident_bytes;
        self.stalls = self.stalls.worst(other.stalls);
    }
}

impl ServerUse {
    /// Two generators beside one server see the same process: the longer look at it counts.
    fn add(&mut self, other: &Self) {
        if self.pid == other.pid {
            if other.cpu.total() > self.cpu.total() {
                *self = *other;
            }
            return;
        }
        self.others += 1 + other.others;
        self.cpu = self.cpu.and(other.cpu);
        self.resident_bytes += other.resident_bytes;
        self.peak_resident_bytes += other.peak_resident_bytes;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;
    use crate::record::{Failure, Fairness};

    /// A run of some of many requests, of which every seventh failed.
    fn run_of(requests: impl Iterator<Item = u64>) -> Outcome {
        let mut outcome = Outcome { timeline: Vec::new(), ..made_up::run_of(0, 1) };
        let (mut right, mut wrong) = (Latencies::new(), Latencies::new());
        for request in requests {
            // From microseconds to minutes: the histograms grow differently.
            let nanos = 1000 + request.pow(4) % 100_000_000_000;
            if request % 7 == 0 { wrong.record(nanos) } else { right.record(nanos) }
        }
        let count = wrong.count();
        outcome.failures = vec![FailureCount {
            kind: Failure::TimedOut,
            count,
            examples: vec!["after 1 s".to_owned()],
            latencies: Some(wrong),
        }];
        outcome.operations[0].latencies = right;
        outcome
    }

    #[test]
    fn three_runs_are_the_run_of_all_bit_by_bit() {
        let all = run_of(0..3000);
        let parts: Vec<(String, Outcome)> = (0..3)
            .map(|part| {
                // As they are read from files.
                let text = crate::output::json(&run_of((0..3000).filter(|request| request % 3 == part)), &[]);
                (format!("{part}.json"), serde_json::from_str(&text).unwrap())
            })
            .collect();
        let merged = Outcome::merged(&parts).unwrap();
        let texts = |outcome: &Outcome| {
            [&outcome.operations[0].latencies, outcome.failures[0].latencies.as_ref().unwrap()].map(Latencies::to_text)
        };
        assert_eq!(texts(&merged), texts(&all));
        assert_eq!((merged.answers(), merged.failed()), (all.answers(), all.failed()));
        assert_eq!(merged.failures, all.failures);
        for percent in [50.0, 99.0, 99.9, 100.0] {
            assert_eq!(merged.latencies().percentile(percent), all.latencies().percentile(percent));
        }
    }

    #[test]
    fn merged_runs_count_a_shared_server_once() {
        let mut other = made_up::outcome();
        other.fairness = Fairness { least: 1, most: 9_000 };
        let runs = [("a".to_owned(), made_up::outcome()), ("b".to_owned(), other.clone())];
        let merged = Outcome::merged(&runs).unwrap();
        assert_eq!(merged.server, made_up::outcome().server);
        assert_eq!(merged.answers(), 2 * made_up::outcome().answers());
        assert_eq!(merged.offered_per_second, made_up::outcome().offered_per_second.map(|rate| 2.0 * rate));
        assert_eq!((merged.fairness.least, merged.fairness.most), (1, 9_000));
        assert_eq!(merged.timeline.len(), other.timeline.len());
        assert!(merged.description.starts_with("2 runs merged: redis "));
        // Its notes stand once.
        assert_eq!(merged.notes, made_up::outcome().notes);
        other.server.as_mut().unwrap().pid += 1;
        let runs = [("a".to_owned(), made_up::outcome()), ("b".to_owned(), other)];
        assert_eq!(Outcome::merged(&runs).unwrap().server.unwrap().others, 1);
    }

    #[test]
    fn runs_of_different_loads_are_refused() {
        #[track_caller]
        fn check(change: impl Fn(&mut Outcome), expected: &str) {
            let mut other = made_up::outcome();
            change(&mut other);
            let runs = [("a.json".to_owned(), made_up::outcome()), ("b.json".to_owned(), other)];
            assert_eq!(Outcome::merged(&runs).unwrap_err(), expected);
        }
        check(|other| other.offered_per_second = None, "b.json: the loop: `closed`, expected `open`, as in a.json");
        check(
            |other| other.operations[0].name = "HGET".to_owned(),
            "b.json: the operations: `HGET, SET`, expected `GET, SET`, as in a.json",
        );
        check(
            |other| {
                other.settings.insert("protocol".to_owned(), "http".into());
            },
            "b.json: the protocol: `http`, expected `redis`, as in a.json",
        );
        assert!(Outcome::merged(&[]).is_err());
    }

    #[test]
    fn a_run_that_failed_is_named() {
        let failed = Outcome { ending: Ending::Failed("no server".to_owned()), seconds: 1.0, ..made_up::outcome() };
        let runs = [("a".to_owned(), made_up::outcome()), ("b".to_owned(), failed)];
        let merged = Outcome::merged(&runs).unwrap();
        assert_eq!(merged.ending, Ending::Failed("b: no server".to_owned()));
        assert!(merged.notes.last().unwrap().starts_with("the runs measured from 1.00 to 3.0"), "{:?}", merged.notes);
    }
}
