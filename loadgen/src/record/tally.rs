//! One thread's account of its requests.

use super::{Deliveries, Failure, Failures, Iterations, Latencies, OpeningPart, Openings, Redirects, StatusCount};
use crate::clock::Nanos;

/// Which requests count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// None: the warm-up.
    Closed,
    /// Those that were intended in this time, whenever they are answered.
    ///
    /// In a closed loop their number, by the window's length, is the rate of answers: those still in flight at its end
    /// stand for those that were in flight at its beginning.
    Open {
        /// Not before.
        from: Nanos,
        /// And before.
        until: Nanos,
    },
}

/// Answers that lie on an edge of the window, each by the part of its time that lies on the edge's other side.
///
/// A closed loop's answers in the window are those that count, less `after`, and `before`: an exact rate even where an
/// answer takes longer than the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The parts within the window of requests that were intended before it.
    pub before: f64,
    /// The parts behind the window of requests that were intended in it.
    pub after: f64,
}

/// One thread's account: what was answered since the last look, and how.
#[derive(Clone, Debug)]
pub struct Tally {
    now: Nanos,
    window: Window,
    /// The least time of a request that has timed out.
    timeout: Nanos,
    /// By operation, since the last [`drain_into`](Self::drain_into).
    latencies: Vec<Latencies>,
    failures: Failures,
    last_answer: Nanos,
    parts: Parts,
    statuses: Vec<StatusCount>,
    bytes_received: u64,
    bytes_sent: u64,
    unexpected: u64,
    redirects: Redirects,
    deliveries: Deliveries,
    openings: Openings,
    /// Where requests are steps of iterations.
    iterations: Option<Box<Iterations>>,
    /// All that ended, counted or not; sessions look at it to see that something happens.
    ended: u64,
}

impl Tally {
    /// An empty account of so many operations.
    #[must_use]
    pub fn new(operations: usize) -> Self {
        Self {
            now: 0,
            window: Window::Closed,
            timeout: 0,
            latencies: vec![Latencies::new(); operations],
            failures: Failures::default(),
            last_answer: 0,
            parts: Parts::default(),
            statuses: Vec::new(),
            bytes_received: 0,
            bytes_sent: 0,
            unexpected: 0,
            redirects: Redirects::default(),
            deliveries: Deliveries::default(),
            openings: Openings::default(),
            iterations: None,
            ended: 0,
        }
    }

    /// Sets the time of what is accounted from here on. It is read once per turn.
    pub fn set_now(&mut self, now: Nanos) {
        self.now = now;
    }

    /// The time of the turn.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Sets how long a request may take.
    pub fn set_timeout(&mut self, timeout: Nanos) {
        self.timeout = timeout;
    }

    /// Sets the iterations that requests are steps of.
    pub fn set_iterations(&mut self, iterations: Option<Iterations>) {
        self.iterations = iterations.map(Box::new);
    }

    /// Sets which requests count from here on.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// A request was answered rightly.
    #[inline]
    pub fn finished(&mut self, operation: usize, intended: Nanos) {
        self.finished_step(operation, intended, intended);
    }

    /// A step that was due at `due` was answered rightly; counted if its iteration is, which was intended to begin at `began`.
    #[inline]
    pub(crate) fn finished_step(&mut self, operation: usize, due: Nanos, began: Nanos) {
        self.ended += 1;
        let taken = self.now.saturating_sub(due);
        let Window::Open { from, until } = self.window else {
            return;
        };
        // The part of its time behind an edge of the window.
        let behind = |edge: Nanos| self.now.saturating_sub(edge.max(due)) as f64 / taken.max(1) as f64;
        if (from..until).contains(&began) {
            self.last_answer = self.now;
            self.latencies[operation].record(taken);
            if self.now > until {
                self.parts.after += behind(until);
            }
        } else if began < from && self.now > from {
            self.parts.before += behind(from);
        }
    }

    /// A request was answered with this status; counted if the request is.
    #[inline]
    pub fn status(&mut self, intended: Nanos, status: u16) {
        if !self.counts(intended) {
            return;
        }
        match self.statuses.iter_mut().find(|known| known.status == status) {
            Some(known) => known.count += 1,
            None => self.statuses.push(StatusCount { status, count: 1 }),
        }
    }

    /// A request failed.
    pub fn failed(&mut self, intended: Nanos, failure: Failure, example: impl FnOnce() -> String) {
        self.failed_since(intended, intended, failure, example);
    }

    /// A request that was due at `due` failed; counted if what began at `began` is.
    fn failed_since(&mut self, due: Nanos, began: Nanos, failure: Failure, example: impl FnOnce() -> String) {
        self.ended += 1;
        if self.counts(began) {
            let taken = self.until_failed(due, failure);
            if matches!(failure, Failure::Rejected | Failure::Wrong) {
                self.last_answer = self.now;
            }
            self.failures.add_request(failure, taken, example);
        }
    }

    /// A step that was due then failed, of an iteration that was intended to begin then.
    pub(crate) fn failed_step(
        &mut self,
        step: usize,
        [due, began]: [Nanos; 2],
        failure: Failure,
        example: impl FnOnce() -> String,
    ) {
        self.failed_since(due, began, failure, example);
        let (counts, taken) = (self.counts(began), self.until_failed(due, failure));
        if let Some(iterations) = self.iterations.as_mut().filter(|_| counts) {
            iterations.failed_step(step, taken);
        }
    }

    /// How long a request took until it failed. A connection is given up as a whole: those behind the oldest request that has
    /// timed out had waited for less.
    fn until_failed(&self, intended: Nanos, failure: Failure) -> Nanos {
        let least = if matches!(failure, Failure::TimedOut | Failure::Unsent) { self.timeout } else { 0 };
        self.now.saturating_sub(intended).max(least)
    }

    /// An answer passed a check, or did not; counted if its iteration is.
    pub(crate) fn checked(&mut self, check: usize, began: Nanos, passes: bool) {
        let counts = self.counts(began);
        if let Some(iterations) = self.iterations.as_mut().filter(|_| counts) {
            let check = &mut iterations.checks[check];
            *(if passes { &mut check.passed } else { &mut check.failed }) += 1;
        }
    }

    /// An iteration has had its last answer; the user paused for so long.
    pub(crate) fn finished_iteration(&mut self, flow: usize, intended: Nanos, paused: Nanos) {
        let counts = self.counts(intended);
        if let Some(iterations) = self.iterations.as_mut().filter(|_| counts) {
            iterations.flows[flow].latencies.record(self.now.saturating_sub(intended).saturating_sub(paused));
        }
    }

    /// An iteration has ended with a step that failed.
    pub(crate) fn failed_iteration(&mut self, flow: usize, intended: Nanos) {
        let (counts, taken) = (self.counts(intended), self.now.saturating_sub(intended));
        if let Some(iterations) = self.iterations.as_mut().filter(|_| counts) {
            iterations.flows[flow].failed.record(taken);
        }
    }

    /// Iterations since the last [`drain_into`](Self::drain_into), where requests are their steps.
    #[must_use]
    pub fn iterations(&self) -> Option<&Iterations> {
        self.iterations.as_deref()
    }

    /// Tells why requests fail that are accounted next, by [`failed`](Self::failed) with an empty example.
    pub fn explain(&mut self, failure: Failure, example: String) {
        self.failures.explain(failure, || example);
    }

    /// A connection could not be opened, or was lost: counted whatever the window, because no request stands for it.
    pub fn connection_failed(&mut self, failure: Failure, example: impl FnOnce() -> String) {
        self.failures.add(failure, example);
    }

    /// A part of a connection's opening took so long; counted whatever the window.
    pub fn opened(&mut self, part: OpeningPart, nanos: Nanos) {
        self.openings.record(part, nanos);
    }

    /// Bytes came in.
    pub fn received(&mut self, bytes: usize) {
        self.bytes_received += bytes as u64;
    }

    /// Bytes went out.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_sent += bytes as u64;
    }

    /// An unexpected answer: late, or a second one.
    pub fn unexpected(&mut self) {
        self.unexpected += 1;
    }

    /// A server sent a request on to another one, which has its slot now.
    pub fn moved(&mut self, intended: Nanos) {
        self.redirects.moved += u64::from(self.counts(intended));
    }

    /// A server sent a request on to another one, which has its key already.
    pub fn asked(&mut self, intended: Nanos) {
        self.redirects.asked += u64::from(self.counts(intended));
    }

    /// The server says that it delivers a message so often.
    pub fn promised(&mut self, intended: Nanos, receivers: u64) {
        if self.counts(intended) {
            self.deliveries.promised += receivers;
        }
    }

    /// A message was delivered.
    pub fn delivered(&mut self, intended: Nanos) {
        self.ended += 1;
        if self.counts(intended) {
            self.deliveries.arrived += 1;
            self.deliveries.latencies.record(self.now.saturating_sub(intended));
        }
    }

    /// A message was delivered that is not the one which was published.
    pub fn delivered_wrongly(&mut self, intended: Nanos, example: impl FnOnce() -> String) {
        if self.counts(intended) {
            self.deliveries.arrived += 1;
        }
        self.failed(intended, Failure::Wrong, example);
    }

    /// Deliveries since the last [`drain_into`](Self::drain_into).
    #[must_use]
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// How long connections took to open since the last [`drain_into`](Self::drain_into).
    #[must_use]
    pub fn openings(&self) -> &Openings {
        &self.openings
    }

    /// How often requests were sent on.
    #[must_use]
    pub fn redirects(&self) -> Redirects {
        self.redirects
    }

    /// Unexpected answers, counted or not.
    #[must_use]
    pub fn unexpected_answers(&self) -> u64 {
        self.unexpected
    }

    /// How many requests ended so far, counted or not.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// The parts of answers' times that lie on the other side of the window's edges.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// How often each status was answered.
    #[must_use]
    pub fn statuses(&self) -> &[StatusCount] {
        &self.statuses
    }

    /// When the last counted answer came, right or not.
    #[must_use]
    pub fn last_answer(&self) -> Nanos {
        self.last_answer
    }

    /// Latencies by operation since the last [`drain_into`](Self::drain_into).
    #[must_use]
    pub fn latencies(&self) -> &[Latencies] {
        &self.latencies
    }

    /// Failures since the last [`drain_into`](Self::drain_into).
    #[must_use]
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Adds what was accounted since the last time to `other`, and forgets it here.
    pub fn drain_into(&mut self, other: &mut Self) {
        for (theirs, ours) in other.latencies.iter_mut().zip(&mut self.latencies) {
            theirs.merge(ours);
            ours.clear();
        }
        other.failures.merge(&self.failures);
        self.failures = Failures::default();
        other.last_answer = other.last_answer.max(self.last_answer);
        other.bytes_received += std::mem::take(&mut self.bytes_received);
        other.bytes_sent += std::mem::take(&mut self.bytes_sent);
        other.unexpected += std::mem::take(&mut self.unexpected);
        let Redirects { moved, asked, slots } = std::mem::take(&mut self.redirects);
        other.redirects.moved += moved;
        other.redirects.asked += asked;
        other.redirects.slots += slots;
        if self.deliveries.arrived > 0 {
            other.deliveries.latencies.merge(&self.deliveries.latencies);
            self.deliveries.latencies.clear();
        }
        other.deliveries.promised += std::mem::take(&mut self.deliveries.promised);
        other.deliveries.arrived += std::mem::take(&mut self.deliveries.arrived);
        let Parts { before, after } = std::mem::take(&mut self.parts);
        other.parts.before += before;
        other.parts.after += after;
        for StatusCount { status, count } in &mut self.statuses {
            match other.statuses.iter_mut().find(|known| known.status == *status) {
                Some(known) => known.count += *count,
                None => other.statuses.push(StatusCount { status: *status, count: *count }),
            }
            // An answer is likely to come again: its place stays.
            *count = 0;
        }
        if let Some(iterations) = &mut self.iterations {
            match &mut other.iterations {
                Some(theirs) => theirs.merge(iterations),
                None => other.iterations = Some(iterations.clone()),
            }
            iterations.clear();
        }
        other.openings.take(&mut self.openings);
        other.ended += std::mem::take(&mut self.ended);
    }

    /// Bytes received and sent, counted or not.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_received, self.bytes_sent)
    }

    fn counts(&self, intended: Nanos) -> bool {
        match self.window {
            Window::Closed => false,
            Window::Open { from, until } => (from..until).contains(&intended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_on_an_edge_count_by_their_parts() {
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 10, until: 20 });
        for (intended, answered) in [(2, 9), (0, 40), (12, 18), (16, 24), (22, 30)] {
            tally.set_now(answered);
            tally.finished(0, intended);
        }
        assert_eq!(tally.latencies()[0].count(), 2);
        assert_eq!(tally.parts(), Parts { before: 0.75, after: 0.5 });
        // Steps of an iteration: behind the window, and of one that began before it.
        for (due, began, answered) in [(21, 19, 25), (20, 19, 20), (12, 8, 14)] {
            tally.set_now(answered);
            tally.finished_step(0, due, began);
        }
        assert_eq!(tally.latencies()[0].count(), 4);
        assert_eq!(tally.parts(), Parts { before: 1.75, after: 1.5 });
    }

    #[test]
    fn the_window_says_what_counts() {
        #[track_caller]
        fn check(window: Window, intended: Nanos, answered: Nanos, expected: u64) {
            let mut tally = Tally::new(1);
            tally.set_window(window);
            tally.set_now(answered);
            tally.finished(0, intended);
            assert_eq!(tally.latencies()[0].count(), expected, "{window:?} {intended} {answered}");
            assert_eq!(tally.ended(), 1);
        }
        check(Window::Closed, 5, 6, 0);
        check(Window::Open { from: 10, until: 20 }, 9, 15, 0);
        check(Window::Open { from: 10, until: 20 }, 19, 1000, 1);
    }
}
