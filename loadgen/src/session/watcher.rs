//! The thread that watches a run: phases, seconds, the server's process, the outcome.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::Map;

use super::sampler::Sampler;
use super::shared::{SeatEnding, Shared};
use super::worker::TICK;
use crate::clock::Nanos;
use crate::load::{Length, Load};
use crate::pace::Pace;
use crate::process::Sample;
use crate::record::{
    Cpu, Deliveries, Ending, Failure, FailureCount, Fairness, Generator, Interval, Latencies, Operation, Outcome,
    Parts, Redirects, ServerInterval, ServerUse, Stalls, Tally,
};
use crate::watch::{Phase, Progress, Watch};

/// Length of a piece of the timeline.
const SECOND: Nanos = 1_000_000_000;

/// How long after a second's end the threads have handed over their accounts of it.
const HAND_OVER: Nanos = TICK / 5;

/// A run that counts requests is given up after so many time-outs without any answer.
const PATIENCE: u64 = 3;

/// A thread above this share of a processor is the limit of what it measures.
const GENERATOR_BOUND: f64 = 0.9;

/// An open loop is behind its schedule when more than this share of its requests has not ended with the window: then the rate is
/// that of the answers until the last one, however long that took.
const BEHIND: f64 = 0.02;

/// A closed loop's answers take long beside the window when the parts of them that lie outside are more than this share.
const UNEVEN: f64 = 0.02;

/// Why a run fails in which no request was due.
const NOTHING: &str =
    "nothing was measured: no request began in the window; measure for longer, or begin without a warm-up";

/// A shorter piece of the timeline belongs to the one before: what is counted in a few milliseconds is no rate.
const SHORTEST: Nanos = SECOND / 2;

/// A target that has not given a right answer for so long at the end of the window is told.
const SILENT: Nanos = SECOND;

/// The features of a protocol besides answers.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Servers send requests on.
    pub(super) is_routed: bool,
    /// Messages are delivered to other connections than the publishers.
    pub(super) delivers: bool,
    /// How long a request may take.
    pub(super) patience: Nanos,
}

/// The watcher of a run, and what it has seen.
pub(super) struct Watcher<'a> {
    shared: &'a Shared,
    load: &'a Load,
    names: Vec<String>,
    total: Tally,
    all: Latencies,
    interval: Latencies,
    interval_failures: u64,
    timeline: Vec<Interval>,
    sampler: Sampler,
    kind: Kind,
    notes: Vec<String>,
    /// The window, once it is known.
    window: Option<(Nanos, Nanos)>,
    began: Option<Sample>,
    ended: Option<Sample>,
    /// The server when the first counted answers had been seen, and how many there were.
    first: Option<(Sample, u64)>,
    /// How many counted requests had ended with the window.
    in_time: Option<u64>,
    /// The reason why no server can answer any more.
    dead: Option<String>,
    cut: Option<(Nanos, Option<Sample>)>,
    peak_resident_bytes: u64,
    /// When something was answered last, and how much there was then.
    last_progress: (Nanos, u64),
    interrupted: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(shared: &'a Shared, load: &'a Load, names: Vec<String>, kind: Kind) -> Self {
        let mut notes = Vec::new();
        let sampler = Sampler::new(&load.sampled).unwrap_or_else(|error| {
            notes.push(error);
            Sampler::Nobody
        });
        Self {
            shared,
            load,
            total: Tally::new(names.len()),
            names,
            all: Latencies::new(),
            interval: Latencies::new(),
            interval_failures: 0,
            timeline: Vec::new(),
            sampler,
            kind,
            notes,
            window: None,
            began: None,
            ended: None,
            first: None,
            in_time: None,
            dead: None,
            cut: None,
            peak_resident_bytes: 0,
            last_progress: (0, 0),
            interrupted: false,
        }
    }

    /// Watches until all threads have ended.
    pub(super) fn watch(&mut self, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) {
        loop {
            let now = self.shared.clock.now();
            self.step(now);
            let progress = self.progress(now);
            if watch(&progress) == Watch::Stop && !self.interrupted {
                self.interrupted = true;
                self.shared.stop();
            }
            if self.shared.seats.iter().all(|seat| seat.finished.load(Ordering::Acquire)) {
                break;
            }
            thread::sleep(Duration::from_nanos(self.pause()));
        }
        let now = self.shared.clock.now();
        self.end_window(now);
        self.collect();
        self.cut_interval(now);
        self.look_for_life();
        if self.is_behind() {
            self.ended = self.sample().or(self.ended);
        }
    }

    fn step(&mut self, now: Nanos) {
        if self.window.is_none() {
            self.start_when_ready(now);
        }
        let Some((from, until)) = self.window else {
            return;
        };
        if self.cut.is_none() && now >= from {
            self.began = self.sample();
            self.cut = Some((from, self.began));
        }
        if now >= until {
            self.end_window(now);
        }
        self.collect();
        if self.first.is_none() && self.all.count() > 0 {
            self.first = self.sample().map(|sample| (sample, self.all.count()));
        }
        if self.in_time.is_none() && now >= until.saturating_add(HAND_OVER) {
            self.in_time = Some(self.counted());
        }
        if self.cut.is_some_and(|(start, _)| now >= self.end_of_piece(start).saturating_add(HAND_OVER)) {
            self.cut_interval(now);
        }
        self.look_for_progress(now);
    }

    /// Counted requests that have ended.
    fn counted(&self) -> u64 {
        self.all.count() + self.total.failures().total()
    }

    /// Whether an open loop's requests came too fast for the server.
    fn is_behind(&self) -> bool {
        let all = self.counted();
        let late = all.saturating_sub(self.in_time.unwrap_or(all));
        matches!(self.load.pace, Pace::Open { .. }) && late as f64 > BEHIND * all as f64
    }

    /// Where a piece of the timeline that begins then ends: after a second, or with the window.
    fn end_of_piece(&self, start: Nanos) -> Nanos {
        let whole = start.saturating_add(SECOND);
        match self.window {
            Some((_, until)) if start < until => whole.min(until),
            _ => whole,
        }
    }

    /// The load begins when every connection is open, or has failed to open once.
    fn start_when_ready(&mut self, now: Nanos) {
        self.collect();
        if !self.shared.seats.iter().all(|seat| seat.ready.load(Ordering::Acquire)) || self.shared.is_stopped() {
            return;
        }
        if self.open_connections() == 0 && self.load.connections > 0 {
            let failures = self.total.failures().list();
            let reason = failures.first().and_then(|failure| failure.examples.first()).cloned();
            let reason = reason.unwrap_or_else(|| "no reason is known".to_owned());
            return self.shared.give_up(format!("no connection could be opened: {reason}"));
        }
        // All threads see it in time.
        let begins = now + TICK / 10;
        self.shared.begin(begins);
        self.window = Some(self.shared.window(begins));
        self.last_progress.0 = now;
    }

    fn collect(&mut self) {
        for seat in &self.shared.seats {
            let mut tally = seat.tally();
            for latencies in tally.latencies() {
                self.interval.merge(latencies);
                self.all.merge(latencies);
            }
            self.interval_failures += tally.failures().total();
            tally.drain_into(&mut self.total);
        }
    }

    /// Ends a second of the timeline.
    fn cut_interval(&mut self, now: Nanos) {
        let Some((start, before)) = self.cut else {
            return;
        };
        let Some((from, until)) = self.window else {
            return;
        };
        let end = self.end_of_piece(start).min(now);
        if start >= until && self.interval.count() == 0 && self.interval_failures == 0 {
            return;
        }
        let sample = self.sample();
        let seconds = end.saturating_sub(start) as f64 / 1e9;
        if end.saturating_sub(start) < SHORTEST
            && let Some(last) = self.timeline.last_mut()
        {
            let mut latencies = last.latencies.open();
            latencies.merge(&std::mem::take(&mut self.interval));
            last.latencies = latencies.into();
            last.failures += std::mem::take(&mut self.interval_failures);
            // Answers that come behind the window stand for those that were under way when it began.
            last.seconds += if start < until { seconds } else { 0.0 };
            self.cut = Some((end, sample));
            return;
        }
        let server = before.zip(sample).map(|(before, after)| ServerInterval {
            processors: (after.cpu.total() - before.cpu.total()) / (now.saturating_sub(start) as f64 / 1e9),
            resident_bytes: after.resident_bytes,
        });
        self.timeline.push(Interval {
            start: start.saturating_sub(from) as f64 / 1e9,
            seconds,
            latencies: std::mem::take(&mut self.interval).into(),
            failures: std::mem::take(&mut self.interval_failures),
            server,
        });
        self.cut = Some((end, sample));
    }

    fn end_window(&mut self, now: Nanos) {
        if self.began.is_some() && self.ended.is_none() {
            self.ended = self.sample();
        }
        if let Some((from, until)) = &mut self.window
            && *until > now
            && self.shared.seats.iter().all(|seat| seat.finished.load(Ordering::Acquire))
        {
            *until = now.max(*from);
        }
    }

    /// A server that has died, or said nothing any more, before the window ended is no result like others.
    fn look_for_life(&mut self) {
        let (Some((_, until)), Length::Duration(_), (last, 1..)) = (self.window, self.load.length, self.last_progress)
        else {
            return;
        };
        let silent = until.saturating_sub(last);
        let seconds = silent as f64 / 1e9;
        let none_is_open = self.shared.seats.iter().all(|seat| seat.ending().open_at_end == Some(0));
        // A connection that was opened again at that very moment is no sign.
        if none_is_open && silent > SHORTEST {
            let failures = self.total.failures().list();
            let reason = failures.last().and_then(|failure| failure.examples.first()).cloned().unwrap_or_default();
            self.dead = Some(format!("no connection was left {seconds:.1} s before the end: {reason}"));
        } else if silent > SILENT {
            self.notes.push(format!("no right answer in the last {seconds:.1} s"));
        }
    }

    /// A run that counts requests would never end without answers.
    fn look_for_progress(&mut self, now: Nanos) {
        let answers = self.total.ended() - self.total.failures().total().min(self.total.ended());
        if answers > self.last_progress.1 {
            self.last_progress = (now, answers);
        }
        let limit = self.kind.patience.saturating_mul(PATIENCE).max(SECOND);
        if matches!(self.load.length, Length::Requests(_)) && now.saturating_sub(self.last_progress.0) > limit {
            self.shared.give_up(format!("no right answer for {:.0} s", limit as f64 / 1e9));
        }
    }

    fn sample(&mut self) -> Option<Sample> {
        let sample = self.sampler.sample()?;
        self.peak_resident_bytes = self.peak_resident_bytes.max(sample.resident_bytes);
        Some(sample)
    }

    fn redirects(&self) -> Option<Redirects> {
        self.kind.is_routed.then(|| self.total.redirects())
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        self.kind.delivers.then(|| self.total.deliveries())
    }

    /// All failures, with those that are known at the end.
    fn failures(&self, ending: &Ending) -> Vec<FailureCount> {
        let mut failures = self.total.failures().clone();
        if let Some(Deliveries { promised, arrived, .. }) = self.deliveries()
            && *ending == Ending::Complete
        {
            failures.add_many(Failure::Undelivered, promised.saturating_sub(*arrived));
        }
        failures.list()
    }

    fn open_connections(&self) -> usize {
        self.shared.seats.iter().map(|seat| seat.open_connections.load(Ordering::Relaxed)).sum()
    }

    /// Until the next tick, the window's next edge, or the end of the timeline's second.
    fn pause(&self) -> Nanos {
        let now = self.shared.clock.now();
        let Some((from, until)) = self.window else {
            return TICK / 20;
        };
        let mut pause = TICK;
        let second = self.cut.map_or(from, |(start, _)| self.end_of_piece(start).saturating_add(HAND_OVER));
        for edge in [from, until, until.saturating_add(HAND_OVER), second] {
            if edge > now {
                pause = pause.min(edge - now);
            }
        }
        // At the end no thread should wait for the watcher.
        if now >= until || matches!(self.load.length, Length::Requests(_)) { pause.min(TICK / 10) } else { pause }
    }

    fn progress(&self, now: Nanos) -> Progress<'_> {
        let (phase, since) = match self.window {
            None => (Phase::Connecting, 0),
            Some((from, _)) if now < from => (Phase::WarmUp, 0),
            Some((from, until)) if now < until => (Phase::Measuring, from),
            Some((from, _)) => (Phase::Draining, from),
        };
        Progress {
            phase,
            elapsed: Duration::from_nanos(now.saturating_sub(since)),
            length: self.load.length,
            latencies: &self.all,
            failures: self.total.failures(),
            deliveries: self.deliveries().map(|deliveries| &deliveries.latencies),
            redirects: self.redirects(),
            timeline: &self.timeline,
            open_connections: self.open_connections(),
        }
    }

    fn ending(&self) -> Ending {
        match (self.shared.given_up(), &self.dead) {
            (Some(reason), _) => Ending::Failed(reason),
            (None, _) if self.interrupted => Ending::Interrupted,
            (None, Some(reason)) => Ending::Failed(reason.clone()),
            (None, None) if self.counted() == 0 => Ending::Failed(NOTHING.to_owned()),
            (None, None) => Ending::Complete,
        }
    }

    /// The outcome. The caller fills in the description and the settings.
    pub(super) fn outcome(self) -> Outcome {
        let endings: Vec<_> = self.shared.seats.iter().map(|seat| seat.ending()).collect();
        let last_answer = endings.iter().map(|ending| ending.last_answer).max().unwrap_or_default();
        let is_behind = self.is_behind();
        let ending = self.ending();
        let (redirects, deliveries) = (self.redirects(), self.deliveries().cloned().map(Box::new));
        let openings = Some(self.total.openings()).filter(|openings| openings.parts().next().is_some());
        let openings = openings.cloned().map(Box::new);
        let failures = self.failures(&ending);
        let length = |from: Nanos, until: Nanos| until.saturating_sub(from) as f64 / 1e9;
        let window = self.window.map_or(0.0, |(from, until)| match self.load.length {
            Length::Requests(_) => length(from, last_answer),
            Length::Duration(_) => length(from, until),
        });
        // A server that is behind answered requests of the warm-up before.
        let from = self.window.map_or(0, |(from, _)| from);
        let first = endings.iter().filter_map(|ending| ending.first).min().map(|first| first.max(from));
        let first = first.filter(|_| is_behind && last_answer > 0);
        let mut notes = self.notes;
        let seconds = match (first, self.load.pace) {
            (Some(first), _) => length(first, last_answer.max(first)).max(window),
            (None, Pace::Open { .. }) => window,
            (None, Pace::Closed) => stood_for(self.all.count(), self.total.parts(), window, &mut notes),
        };
        if is_behind {
            notes.push(
                "the server could not keep up with the offered rate: what was achieved counts until the last answer"
                    .to_owned(),
            );
        }
        // The use for the answers before the sample is not known: they had the same share as the others.
        let late = self.first.filter(|(_, seen)| first.is_some() && *seen < self.all.count());
        let scale = late.map_or(1.0, |(_, seen)| self.all.count() as f64 / (self.all.count() - seen) as f64);
        let began = late.map(|(sample, _)| sample).or(self.began);
        let (pid, others) = self.sampler.pids();
        let server = began.zip(self.ended).map(|(began, ended)| ServerUse {
            pid,
            others,
            ..use_of(&ended.since(&began), self.peak_resident_bytes, scale)
        });
        let generator = generator_of(&endings);
        if generator.busiest_thread > GENERATOR_BOUND {
            let percent = generator.busiest_thread * 100.0;
            notes.push(format!("generator-bound: a thread of the generator was {percent:.0} % busy"));
        }
        let (bytes_received, bytes_sent) = self.total.bytes();
        let operations = self.names.into_iter().zip(self.total.latencies());
        let mut statuses = self.total.statuses().to_vec();
        statuses.sort_by_key(|status| status.status);
        let mut outcome = Outcome {
            description: String::new(),
            settings: Map::new(),
            ending,
            seconds,
            operations: operations.map(|(name, latencies)| Operation { name, latencies: latencies.clone() }).collect(),
            told: None,
            failures,
            statuses,
            offered_per_second: offered(self.load, window),
            bytes_received,
            bytes_sent,
            deliveries,
            iterations: self.total.iterations().cloned().map(Box::new),
            redirects,
            openings,
            fairness: fairness_of(&endings),
            generator,
            server,
            timeline: self.timeline,
            notes,
        };
        outcome.notes.extend(stalled(&outcome));
        outcome
    }
}

/// The use of the generator's threads.
fn generator_of(endings: &[SeatEnding]) -> Generator {
    let busy = endings.iter().filter(|ending| ending.wall > 0);
    Generator {
        cpu: endings.iter().fold(Cpu::default(), |sum, ending| Cpu {
            user: sum.user + ending.cpu.user,
            system: sum.system + ending.cpu.system,
        }),
        busiest_thread: busy.map(|ending| ending.cpu.total() * 1e9 / ending.wall as f64).fold(0.0, f64::max),
        resident_bytes: endings.iter().map(|ending| ending.resident_bytes).max().unwrap_or_default(),
        stalls: endings.iter().fold(Stalls::default(), |worst, ending| worst.worst(ending.stalls)),
    }
}

/// The fewest and the most answers of a connection.
fn fairness_of(endings: &[SeatEnding]) -> Fairness {
    let answers = endings.iter().filter_map(|ending| ending.answers);
    Fairness {
        least: answers.clone().map(|(least, _)| least).min().unwrap_or_default(),
        most: answers.map(|(_, most)| most).max().unwrap_or_default(),
    }
}

/// How the note of a run begins whose generator was stopped.
const STALLED: &str = "generator stalled: ";

fn stalled(outcome: &Outcome) -> Option<String> {
    let Stalls { count, seconds, longest } = outcome.generator.stalls;
    let times = if count == 1 { "once" } else { "at most" };
    outcome.is_stalled().then(|| {
        format!(
            "{STALLED}it could not run for {seconds:.2} s, {times} for {longest:.2} s (stopped, throttled, or too few \
             processors): latencies of that time are its own, not the server's"
        )
    })
}

/// How long a closed loop's counted answers would have taken at the rate that it had: the window, unless answers take long
/// beside it. Then how many requests begin in it is a matter of chance, and the rate is that of their parts in the window.
fn stood_for(answers: u64, parts: Parts, window: f64, notes: &mut Vec<String>) -> f64 {
    let share = (answers as f64 + parts.before - parts.after) / answers.max(1) as f64;
    if answers == 0 || (share - 1.0).abs() <= UNEVEN {
        return window;
    }
    notes.push(
        "answers took long beside the window: the rate counts each by the part of its time that lies in the window"
            .to_owned(),
    );
    window / share
}

fn use_of(used: &Sample, peak_resident_bytes: u64, scale: f64) -> ServerUse {
    let scaled = |count: u64| (count as f64 * scale) as u64;
    ServerUse {
        cpu: Cpu { user: used.cpu.user * scale, system: used.cpu.system * scale },
        resident_bytes: used.resident_bytes,
        peak_resident_bytes,
        voluntary_switches: scaled(used.voluntary_switches),
        involuntary_switches: scaled(used.involuntary_switches),
        ..ServerUse::default()
    }
}

/// The mean rate that an open loop was to have in its window.
fn offered(load: &Load, seconds: f64) -> Option<f64> {
    let Pace::Open { rate, .. } = load.pace else {
        return None;
    };
    let at = |elapsed: Nanos| load.stages.as_ref().map_or_else(|| rate.at(elapsed), |stages| stages.at(elapsed));
    // The mean of a hundred moments is exact for a fixed rate and for a ramp that fits, and close for one that ends within.
    let moments = (0..100).map(|part| {
        let elapsed = load.warm_up.as_secs_f64() + seconds * (f64::from(part) + 0.5) / 100.0;
        at((elapsed * 1e9) as Nanos)
    });
    Some(moments.sum::<f64>() / 100.0)
}
