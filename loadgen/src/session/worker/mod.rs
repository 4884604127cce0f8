//! One thread's event loop over its connections: turns, phases, ticks.

mod requests;
mod routed;
mod sockets;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use super::cpu::ThreadCpu;
use super::link::{Link, Lost};
use super::shared::{SeatEnding, Shared};
use super::stalls::StallWatch;
use crate::clock::{Nanos, nanos};
use crate::codec::{Drawn, Protocol};
use crate::load::Load;
use crate::pace::{Pace, Schedule};
use crate::process::Process;
use crate::record::{Failure, Tally, Window};
use crate::workload::Source;

/// How often a thread hands over its account, looks for time-outs and opens lost connections again. A part of a second,
/// so that the watcher can cut the run into seconds.
pub(super) const TICK: Nanos = 100_000_000;

const SECOND: Nanos = 1_000_000_000;
const MILLISECOND: Nanos = 1_000_000;

/// Room for what one read gives: a large socket buffer's content in few calls, and still in the processor's cache.
const READ_BUFFER: usize = 128 << 10;

/// Sockets that one call of epoll reports.
const EVENTS: usize = 512;

/// One thread of a run.
pub(super) struct Worker<'a, P: Protocol> {
    protocol: &'a P,
    load: &'a Load,
    shared: &'a Shared,
    index: usize,
    connections: Vec<Connection<P>>,
    /// The clients that own the connections, where each request has its own server; else empty.
    clients: Vec<Client>,
    /// Connections that were never opened and prepared yet, nor failed to.
    opening: usize,
    open: usize,
    open_at_end: Option<usize>,
    tally: Tally,
    /// When the turn under way began: a closed loop's next request is due when the last answer was accounted, so that no
    /// time lies between two latencies.
    turn: Nanos,
    source: Source,
    /// Where the gaps of Poisson arrivals come from: how many are drawn before a request's own choices is a matter of time.
    gaps: Source,
    phase: Phase,
    stalls: StallWatch,
    first: First,
    /// Connections to be given requests in this turn.
    dirty: Vec<u32>,
    /// Connections that were not read to their end in this turn.
    unfinished: Vec<u32>,
    /// When connections' pauses end.
    pauses: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// An open loop's requests whose time has come, and the connections (or clients) that have room.
    backlog: VecDeque<Nanos>,
    free: VecDeque<u32>,
    out: Vec<u8>,
    drawn: Drawn,
    input: Vec<u8>,
    cpu: Option<ThreadCpu>,
}

/// Where in the run a thread is.
enum Phase {
    /// Connections are being opened.
    Opening,
    /// Requests are sent.
    Loading { from: Nanos, until: Nanos, schedule: Option<Schedule> },
    /// The last answers are awaited, until then at most.
    Draining { from: Nanos, limit: Nanos },
}

/// When a thread began to answer what is counted.
#[derive(Default)]
struct First {
    /// The last answer before the first counted one: from then on the server worked on what is counted.
    began: Option<Nanos>,
    /// The last answer that is not counted, and how many there were in the tally.
    before: Nanos,
    ended: u64,
}

/// One of the load's clients, which has a connection to each of several servers.
#[derive(Default)]
struct Client {
    /// The places of its connections, by their servers' numbers.
    lanes: Vec<Option<u32>>,
    /// Whether it is in the queue of those with room.
    is_queued: bool,
}

/// One of the run's connections, open or not.
struct Connection<P: Protocol> {
    /// Its number among all connections of the run, or that of its client.
    seat: usize,
    /// Which of the thread's clients has it.
    client: usize,
    /// The number of its server, where there are several.
    server: usize,
    /// Requests that wait for it to open, by their intended times.
    waiting: Vec<Nanos>,
    opening: Opening,
    link: Option<Link>,
    state: State,
    /// Until then it may take to be open, and prepared.
    deadline: Nanos,
    codec: P::Connection,
    /// The rest of the last read that the codec left.
    unread: Vec<u8>,
    /// Right and wrong answers so far.
    answered: u64,
    /// Requests since it was opened.
    begun: u64,
    /// Which of the target's addresses is used, and how many did not accept since one did.
    address: usize,
    tried: usize,
    /// Attempts to open it since it last answered.
    attempts: u32,
    /// Whether it has been opened and prepared, or failed to, at least once.
    is_tried: bool,
    /// When it is woken from its pause next; 0 if that is not arranged.
    pause: Nanos,
    /// Whether it is in the list of this turn.
    is_listed: bool,
    /// Whether it is in the queue of those with room.
    is_queued: bool,
    /// Whether epoll reports its room to write.
    awaits_write: bool,
}

impl<P: Protocol> Connection<P> {
    fn new(seat: usize, client: usize, server: usize, codec: P::Connection) -> Self {
        Self {
            seat,
            client,
            server,
            waiting: Vec::new(),
            opening: Opening::default(),
            link: None,
            state: State::Down(0),
            deadline: 0,
            codec,
            unread: Vec::new(),
            answered: 0,
            begun: 0,
            address: 0,
            tried: 0,
            attempts: 0,
            is_tried: false,
            pause: 0,
            is_listed: false,
            is_queued: false,
            awaits_write: false,
        }
    }
}

/// When the steps of a connection's opening began.
#[derive(Clone, Copy, Default)]
struct Opening {
    /// `connect` was called.
    began: Nanos,
    /// The transport is connected; 0 before.
    connected: Nanos,
    /// The first request was sent and nothing has come since; 0 otherwise.
    asked: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Closed as agreed, or lost; the next request opens it.
    Idle,
    Opening,
    Open,
    /// Not to be opened before.
    Down(Nanos),
}

impl<P: Protocol> Connection<P> {
    /// Whether requests wait for it to open.
    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub(super) fn new(protocol: &'a P, load: &'a Load, shared: &'a Shared, index: usize) -> Self {
        let threads = shared.seats.len();
        let seats: Vec<usize> = (index..load.connections).step_by(threads).collect();
        let mut connections = Vec::new();
        let mut clients = Vec::new();
        for (client, seat) in seats.into_iter().enumerate() {
            let servers = protocol.routes().map_or(0..1, |routes| 0..routes.servers());
            if P::ROUTED {
                let first = connections.len();
                let lanes = servers.clone().map(|server| Some((first + server) as u32)).collect();
                clients.push(Client { lanes, is_queued: false });
            }
            connections
                .extend(servers.map(|server| Connection::new(seat, client, server, protocol.connect_to(seat, server))));
        }
        let mut tally = Tally::new(protocol.operations().len());
        tally.set_timeout(nanos(load.timeout));
        tally.set_iterations(protocol.iterations());
        Self {
            protocol,
            load,
            shared,
            index,
            opening: connections.len(),
            open: 0,
            open_at_end: None,
            connections,
            clients,
            tally,
            turn: 0,
            source: Source::new(load.seed, index, threads),
            gaps: Source::new(!load.seed, index, threads),
            phase: Phase::Opening,
            stalls: StallWatch::new(shared.clock.now()),
            first: First::default(),
            dirty: Vec::new(),
            unfinished: Vec::new(),
            pauses: BinaryHeap::new(),
            backlog: VecDeque::new(),
            free: VecDeque::new(),
            out: Vec::new(),
            drawn: Drawn::default(),
            input: vec![0; READ_BUFFER],
            cpu: None,
        }
    }

    /// Runs to the end of the load.
    pub(super) fn run(mut self) {
        // Open loops wake up at intended times; without this the kernel may let them sleep 50 us longer.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let ended = match epoll::create(epoll::CreateFlags::CLOEXEC) {
            Ok(poller) => self.turns(&poller),
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            self.shared.give_up(format!("waiting for sockets: {}", io::Error::from(error)));
        }
        self.finish();
    }

    fn turns(&mut self, poller: &OwnedFd) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut next_tick = self.shared.clock.now();
        for place in 0..self.connections.len() {
            self.tally.set_now(self.shared.clock.now());
            self.prepare(poller, place);
        }
        loop {
            events.clear();
            let wait = self.timeout(next_tick);
            wait_for_sockets(poller, &mut events, wait)?;
            self.look_at_clock(wait);
            self.turn = self.tally.now();
            if P::TOGETHER {
                // An answer to another thread's request may come here before this one has seen that the load begins.
                self.enter_phase();
            }
            for place in std::mem::take(&mut self.unfinished) {
                self.read(poller, place as usize, true);
            }
            for event in &events {
                self.react(poller, event.data.u64() as usize, event.flags);
            }
            // An open loop's requests have become due, and phases have ended, while answers were read.
            self.look_at_clock(0);
            if self.first.began.is_none() {
                self.look_for_first();
            }
            self.enter_phase();
            self.wake_up(poller);
            self.feed(poller);
            if self.tally.now() >= next_tick {
                self.tick(poller);
                next_tick = self.next_tick();
            }
            if self.is_done() {
                return Ok(());
            }
        }
    }

    /// Reads the clock, after a wait of at most `allowed`.
    fn look_at_clock(&mut self, allowed: Nanos) {
        let now = self.shared.clock.now();
        let counts = match self.phase {
            Phase::Opening => false,
            Phase::Loading { from, .. } => now > from,
            Phase::Draining { .. } => true,
        };
        self.stalls.look(now, allowed, counts);
        self.tally.set_now(now);
    }

    /// Looks whether a counted answer has come.
    fn look_for_first(&mut self) {
        if self.tally.last_answer() > 0 {
            self.first.began = Some(self.first.before);
        } else if self.tally.ended() != self.first.ended {
            self.first.ended = self.tally.ended();
            self.first.before = self.turn;
        }
    }

    /// How long to wait for sockets: until the next tick, the next intended request, or the next phase.
    fn timeout(&self, next_tick: Nanos) -> Nanos {
        if !self.dirty.is_empty() || !self.unfinished.is_empty() {
            return 0;
        }
        let now = self.shared.clock.now();
        let mut until = next_tick;
        if let Some(Reverse((pause, _))) = self.pauses.peek() {
            until = until.min(*pause);
        }
        match &self.phase {
            Phase::Opening => until = until.min(self.shared.begins().unwrap_or(until).max(now)),
            Phase::Loading { from, until: end, schedule } => {
                if let Some(schedule) = schedule {
                    until = until.min(schedule.next());
                }
                for edge in [*from, *end] {
                    if edge > now {
                        until = until.min(edge);
                    }
                }
            }
            Phase::Draining { .. } => {}
        }
        // While connections open, the beginning of the load is looked for often.
        let longest = if matches!(self.phase, Phase::Opening) { TICK / 50 } else { TICK };
        until.saturating_sub(now).min(longest)
    }

    /// Ticks are parts of the window's seconds.
    fn next_tick(&self) -> Nanos {
        let now = self.tally.now();
        let from = match &self.phase {
            Phase::Opening => return now + TICK,
            Phase::Loading { from, .. } | Phase::Draining { from, .. } => *from,
        };
        from % TICK + (now.saturating_sub(from % TICK) / TICK + 1) * TICK
    }

    fn enter_phase(&mut self) {
        let now = self.tally.now();
        match &self.phase {
            Phase::Opening => {
                let Some(begins) = self.shared.begins().filter(|begins| *begins <= now) else {
                    return;
                };
                let (from, until) = self.shared.window(begins);
                self.tally.set_window(Window::Open { from, until });
                let schedule = match self.load.pace {
                    Pace::Closed => None,
                    Pace::Open { rate, arrivals } => {
                        let schedule = Schedule::new(rate, arrivals, self.index, self.shared.seats.len(), begins);
                        Some(match (&self.load.recorded, &self.load.stages) {
                            (Some(recorded), _) => schedule.of_recorded(Arc::clone(recorded), self.index),
                            (None, Some(stages)) => schedule.of_stages(Arc::clone(stages)),
                            (None, None) => schedule,
                        })
                    }
                };
                self.phase = Phase::Loading { from, until, schedule };
                self.turn = now;
                for place in 0..self.connections.len() {
                    self.enter_load(place);
                }
            }
            Phase::Loading { from, until, .. } => {
                let (from, until) = (*from, *until);
                if self.cpu.is_none() && now >= from {
                    self.cpu = Some(ThreadCpu::start(now));
                }
                let is_over = self.shared.used_up() || self.protocol.is_exhausted();
                if now >= until || (now >= from && is_over) {
                    // An open loop's last requests may have become due since the last turn.
                    self.take_due();
                    let limit = now.saturating_add(self.protocol.patience(nanos(self.load.timeout)));
                    self.open_at_end = Some(self.usable());
                    self.phase = Phase::Draining { from, limit };
                }
            }
            Phase::Draining { .. } => {}
        }
    }

    fn is_done(&self) -> bool {
        if self.shared.is_stopped() {
            return true;
        }
        let Phase::Draining { limit, .. } = self.phase else {
            return false;
        };
        let is_late = self.tally.now() >= limit;
        if !P::TOGETHER {
            return is_late || self.is_idle();
        }
        self.shared.seats[self.index].idle.store(self.is_idle(), Ordering::Release);
        // The last answer to another thread's request may come here: this one looks again when all others have done it.
        is_late || (self.shared.seats.iter().all(|seat| seat.idle.load(Ordering::Acquire)) && self.is_idle())
    }

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool {
        let waits = |connection: &Connection<P>| self.protocol.in_flight(&connection.codec) > 0 || connection.waits();
        self.backlog.is_empty() && !self.connections.iter().any(waits)
    }

    /// Accounts what never got an answer, and hands everything over.
    fn finish(&mut self) {
        self.tally.set_now(self.shared.clock.now());
        if !self.shared.is_stopped() {
            for place in 0..self.connections.len() {
                self.abandon(place, Failure::TimedOut);
            }
        }
        for intended in self.backlog.drain(..) {
            self.tally.failed(intended, Failure::Unsent, || "no connection had room before the run ended".to_owned());
        }
        for place in 0..self.connections.len() {
            self.hang_up(place);
        }
        let answers = self.answers();
        let (cpu, wall) = self.cpu.as_ref().map(|cpu| cpu.since(self.tally.now())).unwrap_or_default();
        let seat = &self.shared.seats[self.index];
        seat.end(SeatEnding {
            cpu,
            wall,
            answers: answers.iter().min().copied().zip(answers.iter().max().copied()),
            first: self.first.began,
            stalls: self.stalls.stalls(),
            last_answer: self.tally.last_answer(),
            open_at_end: self.open_at_end,
            resident_bytes: resident_bytes(),
        });
        self.tally.drain_into(&mut seat.tally());
        seat.open_connections.store(0, Ordering::Relaxed);
        seat.ready.store(true, Ordering::Release);
        seat.idle.store(true, Ordering::Release);
        seat.finished.store(true, Ordering::Release);
    }

    /// Answers so far, by client where there are clients, else by connection.
    fn answers(&self) -> Vec<u64> {
        if self.clients.is_empty() {
            return self.connections.iter().map(|connection| connection.answered).collect();
        }
        let mut answers = vec![0; self.clients.len()];
        self.connections.iter().for_each(|connection| answers[connection.client] += connection.answered);
        answers
    }

    /// How many connections are open. Before the load begins, one that has not answered a login or a handshake is none: it may
    /// be about to be refused again.
    fn prepared(&self) -> usize {
        if !matches!(self.phase, Phase::Opening) {
            return self.open;
        }
        let is_prepared = |connection: &&Connection<P>| {
            connection.state == State::Open && self.protocol.is_prepared(&connection.codec)
        };
        self.connections.iter().filter(is_prepared).count()
    }

    fn tick(&mut self, poller: &OwnedFd) {
        let now = self.tally.now();
        let before = now.saturating_sub(nanos(self.load.timeout));
        for place in 0..self.connections.len() {
            self.expire_waiting(poller, place, before);
            let is_late = now >= self.connections[place].deadline;
            match self.connections[place].state {
                State::Open if is_late && !self.connections[place].is_tried => {
                    let example = format!("not prepared within {:?}", self.load.timeout);
                    self.lose(poller, place, Lost { failure: Failure::TimedOut, example });
                }
                State::Open => {
                    let connection = &mut self.connections[place];
                    if self.protocol.in_flight(&connection.codec) > 0 {
                        let is_broken = self.protocol.expire(&mut connection.codec, before, &mut self.tally);
                        if is_broken || self.is_used_up(place) {
                            self.reopen(poller, place);
                        }
                        self.list(place);
                    }
                }
                State::Opening if is_late => {
                    let example = format!("no connection within {:?}", self.load.timeout);
                    self.connections[place].address = self.connections[place].address.wrapping_add(1);
                    self.lose(poller, place, Lost { failure: Failure::TimedOut, example });
                }
                State::Down(until) if now >= until && self.is_wanted(place) => self.open_again(poller, place),
                State::Idle | State::Opening | State::Down(_) => {}
            }
            if P::ROUTED && self.connections[place].state != State::Open {
                // A request that waits for a server that does not come must not wait for ever.
                self.protocol.expire(&mut self.connections[place].codec, before, &mut self.tally);
                self.list(place);
            }
        }
        self.admit_users();
        while self.backlog.front().is_some_and(|intended| *intended < before) {
            let intended = self.backlog.pop_front().unwrap_or_default();
            self.tally.failed(intended, Failure::TimedOut, || "no connection had room in time".to_owned());
        }
        let seat = &self.shared.seats[self.index];
        seat.open_connections.store(self.prepared(), Ordering::Relaxed);
        seat.ready.store(self.opening == 0, Ordering::Release);
        self.tally.drain_into(&mut seat.tally());
        self.first.ended = 0;
        self.stalls.tick();
    }
}

/// Waits until sockets are ready, at most so long. epoll_wait(2) counts whole milliseconds, and epoll_pwait2(2) needs Linux 5.11, so ppoll(2)
/// takes care of shorter times.
fn wait_for_sockets(poller: &OwnedFd, events: &mut Vec<epoll::Event>, most: Nanos) -> Result<(), Errno> {
    let whole = most / MILLISECOND * MILLISECOND;
    let timeout = |time: Nanos| Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as i64 };
    if whole == 0 && most > 0 {
        match poll(&mut [PollFd::new(poller, PollFlags::IN)], Some(&timeout(most))) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    match epoll::wait(poller, rustix::buffer::spare_capacity(events), Some(&timeout(whole))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// This process' resident memory.
fn resident_bytes() -> u64 {
    let own = Process::open(std::process::id()).and_then(|own| own.sample());
    own.map_or(0, |sample| sample.resident_bytes)
}
