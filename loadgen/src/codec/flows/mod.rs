//! Virtual users over HTTP/1.1: each connection is a user, and each of its requests of the load is an iteration of a flow.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use super::http1::reader::{Reader, Request};
use super::{Broken, Protocol, Received, unfolded};
use crate::clock::Nanos;
use crate::flow::{Answer, Jar, Plan, Site, Step, Values, Wrong};
use crate::record::{Failure, Iterations, Tally};
use crate::workload::Source;

/// The users of a plan.
#[derive(Debug)]
pub struct Flows {
    plan: Plan,
    /// Where cookies belong to, if users keep them.
    site: Option<Site>,
    /// By flow, the number of its first step among all.
    first_steps: Vec<usize>,
    /// A feeder that ends has no row left.
    is_exhausted: AtomicBool,
}

/// One user. Its memory is kept from iteration to iteration.
#[derive(Debug)]
pub struct FlowUser {
    state: State,
    flow: usize,
    step: usize,
    /// When the iteration was to begin, and how long the user has paused since.
    intended: Nanos,
    paused: Nanos,
    /// When the step was to begin.
    due: Nanos,
    values: Values,
    jar: Jar,
    reader: Reader,
    scratch: Vec<u8>,
    /// The connection has ended between two requests: the iteration goes on with another one.
    is_parted: bool,
}

/// A user's state.
///
/// ```text
///            begin                  answer               wake
/// Idle ---------------> Sent ------------------> Pausing -----> Due
///  ^                    ^  |                                     |
///  |                    |  | last answer          control        |
///  |    wake            |  v or failure           (sent)         |
///  +---------------- Resting <------+  <-------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No iteration is under way.
    Idle,
    /// A step is to be sent.
    Due,
    /// A step waits for its answer.
    Sent,
    /// The user thinks until then, before the next step.
    Pausing(Nanos),
    /// The user thinks until then, before the next iteration.
    Resting(Nanos),
}

impl Flows {
    /// The users of a plan, whose requests go to a site.
    #[must_use]
    pub fn new(plan: Plan, site: Site) -> Self {
        let mut next = 0;
        let first_steps = plan.flows.iter().map(|flow| {
            next += flow.steps.len();
            next - flow.steps.len()
        });
        let site = plan.keeps_cookies.then_some(site);
        Self { first_steps: first_steps.collect(), plan, site, is_exhausted: AtomicBool::new(false) }
    }

    fn step(&self, user: &FlowUser) -> &Step {
        &self.plan.flows[user.flow].steps[user.step]
    }

    /// The number of the user's step among all.
    fn operation(&self, user: &FlowUser) -> usize {
        self.first_steps[user.flow] + user.step
    }

    fn send(&self, user: &mut FlowUser, out: &mut Vec<u8>) {
        user.state = State::Sent;
        let step = self.step(user);
        let FlowUser { jar, values, scratch, due, .. } = user;
        let jar = self.site.as_ref().map(|site| (jar, site, *due));
        step.append(values, &self.plan.feeders, jar, scratch, out);
    }

    /// Judges an answer that is complete, and goes on with the iteration.
    fn account(&self, user: &mut FlowUser, tally: &mut Tally) {
        let (step, operation) = (self.step(user), self.operation(user));
        let FlowUser { reader, jar, values, scratch, intended, .. } = user;
        tally.status(*intended, reader.status());
        if let Some(site) = &self.site {
            jar.keep(site, &unfolded(reader.last_head()), tally.now());
        }
        let answer = Answer { status: reader.status(), head: reader.last_head(), body: reader.body() };
        let judged = step.judge(answer, values, &self.plan.feeders, scratch, |check, passes| {
            tally.checked(check, *intended, passes);
        });
        if let Err(wrong) = judged {
            let is_rejected = match wrong {
                Wrong::Status(status) | Wrong::Check(_, status) => status >= 400,
                Wrong::Take(_) => false,
            };
            let failure = if is_rejected { Failure::Rejected } else { Failure::Wrong };
            let example = || format!("{}: {wrong}", step.name);
            tally.failed_step(operation, [user.due, user.intended], failure, example);
            tally.failed_iteration(user.flow, user.intended);
            user.state = State::Idle;
            return;
        }
        tally.finished_step(operation, user.due, user.intended);
        self.advance(user, tally);
    }

    /// The step's answer was right: goes on with the next one, or ends the iteration.
    fn advance(&self, user: &mut FlowUser, tally: &mut Tally) {
        let now = tally.now();
        let think = self.step(user).think(&mut user.values);
        user.step += 1;
        if user.step == self.plan.flows[user.flow].steps.len() {
            tally.finished_iteration(user.flow, user.intended, user.paused);
            user.state = if think == 0 { State::Idle } else { State::Resting(now + think) };
            return;
        }
        user.due = now + think;
        user.paused += think;
        user.state = if think == 0 { State::Due } else { State::Pausing(user.due) };
    }

    /// Gives up the iteration under way, and accounts its step as a failure.
    fn fail(&self, user: &mut FlowUser, failure: Failure, tally: &mut Tally) {
        if user.is_under_way() {
            tally.failed_step(self.operation(user), [user.due, user.intended], failure, String::new);
            tally.failed_iteration(user.flow, user.intended);
            user.state = State::Idle;
        }
    }
}

impl FlowUser {
    fn is_under_way(&self) -> bool {
        match self.state {
            State::Due | State::Sent | State::Pausing(_) => true,
            State::Idle | State::Resting(_) => false,
        }
    }
}

impl Protocol for Flows {
    type Connection = FlowUser;

    const PAUSES: bool = true;

    fn operations(&self) -> Vec<String> {
        self.plan.steps().map(|step| step.name.clone()).collect()
    }

    fn iterations(&self) -> Option<Iterations> {
        let flows = self.plan.flows.iter().map(|flow| flow.name.clone());
        let checks = self.plan.steps().flat_map(Step::check_names).map(str::to_owned);
        Some(Iterations::new(flows, self.operations(), checks))
    }

    fn connect(&self, seat: usize) -> FlowUser {
        FlowUser {
            state: State::Idle,
            flow: 0,
            step: 0,
            intended: 0,
            paused: 0,
            due: 0,
            values: Values::new(seat),
            jar: Jar::default(),
            reader: Reader::default(),
            scratch: Vec::new(),
            is_parted: false,
        }
    }

    fn reconnect(&self, ended: &mut FlowUser, seat: usize, _server: usize) -> FlowUser {
        let user = std::mem::replace(ended, self.connect(seat));
        FlowUser { reader: Reader::default(), is_parted: false, ..user }
    }

    fn room(&self, user: &FlowUser) -> usize {
        usize::from(user.state == State::Idle)
    }

    fn in_flight(&self, user: &FlowUser) -> usize {
        usize::from(user.is_under_way())
    }

    /// An iteration under way needs a connection.
    fn listens(&self, user: &FlowUser) -> bool {
        user.is_under_way()
    }

    fn begin(&self, user: &mut FlowUser, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let Some(flow) = self.plan.begin(&mut user.values, source) else {
            self.is_exhausted.store(true, Ordering::Relaxed);
            return;
        };
        (user.flow, user.step) = (flow, 0);
        (user.intended, user.due, user.paused) = (intended, intended, 0);
        self.send(user, out);
    }

    fn control(&self, user: &mut FlowUser, out: &mut Vec<u8>) {
        if user.state == State::Due {
            self.send(user, out);
        }
    }

    fn pause(&self, user: &FlowUser) -> Option<Nanos> {
        match user.state {
            State::Pausing(until) | State::Resting(until) => Some(until),
            State::Idle | State::Due | State::Sent => None,
        }
    }

    fn wake(&self, user: &mut FlowUser, now: Nanos) {
        match user.state {
            State::Pausing(until) if until <= now => user.state = State::Due,
            State::Resting(until) if until <= now => user.state = State::Idle,
            State::Idle | State::Due | State::Sent | State::Pausing(_) | State::Resting(_) => {}
        }
    }

    fn patience(&self, timeout: Nanos) -> Nanos {
        self.plan.longest(timeout)
    }

    fn rewind(&self) {
        self.plan.rewind();
        self.is_exhausted.store(false, Ordering::Relaxed);
    }

    fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::Relaxed)
    }

    fn receive(&self, user: &mut FlowUser, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut consumed = 0;
        loop {
            let request = (user.state == State::Sent).then(|| {
                let step = self.step(user);
                Request { is_head: step.is_head, keeps_body: step.needs_body }
            });
            let Some((length, is_complete)) = user.reader.read(&input[consumed..], request)? else {
                return Ok(Received { consumed, close: false });
            };
            consumed += length;
            if is_complete {
                self.account(user, tally);
                if user.reader.closes() {
                    user.is_parted = true;
                    return Ok(Received { consumed, close: true });
                }
            }
        }
    }

    fn end(&self, user: &mut FlowUser, tally: &mut Tally) {
        if user.state == State::Sent && user.reader.end() {
            self.account(user, tally);
        }
        user.is_parted = user.state != State::Sent;
    }

    fn expire(&self, user: &mut FlowUser, before: Nanos, tally: &mut Tally) -> bool {
        let waits = matches!(user.state, State::Due | State::Sent);
        let is_late = waits && user.due < before;
        if is_late {
            tally.explain(Failure::TimedOut, format!("{}: no answer within the time-out", self.step(user).name));
            self.fail(user, Failure::TimedOut, tally);
        }
        is_late
    }

    fn abandon(&self, user: &mut FlowUser, failure: Failure, tally: &mut Tally) {
        if !user.is_parted {
            self.fail(user, failure, tally);
        }
    }
}
