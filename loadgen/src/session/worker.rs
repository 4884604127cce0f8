//! One thread's event loop over its connections.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::cpu::ThreadCpu;
use super::link::{Arrived, Link, Lost};
use super::shared::{SeatEnding, Shared};
use crate::clock::{Nanos, nanos};
use crate::codec::{Broken, Protocol};
use crate::load::{Load, Refill};
use crate::pace::{Pace, Schedule};
use crate::process::Process;
use crate::record::{Failure, Tally, Window};
use crate::workload::Source;

/// How often a thread hands over its account, looks for time-outs and opens lost connections again. A part of a second,
/// so that the watcher can cut the run into seconds.
pub(super) const TICK: Nanos = 100_000_000;

/// Room for what one read gives: a large socket buffer's content in few calls, and still in the processor's cache.
const READ_BUFFER: usize = 128 << 10;

/// Sockets that one call of epoll reports.
const EVENTS: usize = 512;

/// Datagrams read from one socket before others have their turn.
const DATAGRAMS_PER_TURN: usize = 256;

/// What is always waited for. Edges: the kernel need not look again at a socket that has just been emptied.
const EDGES: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

/// How long the first retry of a refused connection waits; each further one twice as long, up to a second.
const FIRST_RETRY: Nanos = 10_000_000;
const LAST_RETRY: Nanos = 1_000_000_000;

/// One thread of a run.
pub(super) struct Worker<'a, P: Protocol> {
    protocol: &'a P,
    load: &'a Load,
    shared: &'a Shared,
    index: usize,
    connections: Vec<Connection<P>>,
    /// Connections that were never opened yet, nor failed to.
    opening: usize,
    open: usize,
    tally: Tally,
    source: Source,
    /// Where the gaps of Poisson arrivals come from: how many are drawn before a request's own choices is a matter of time.
    gaps: Source,
    phase: Phase,
    /// Connections to be given requests in this turn.
    dirty: Vec<u32>,
    /// Connections that were not read to their end in this turn.
    unfinished: Vec<u32>,
    /// An open loop's requests whose time has come, and the connections that have room.
    backlog: VecDeque<Nanos>,
    free: VecDeque<u32>,
    out: Vec<u8>,
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

/// One of the run's connections, open or not.
struct Connection<P: Protocol> {
    link: Option<Link>,
    state: State,
    codec: P::Connection,
    /// What the codec left over of the last read.
    unread: Vec<u8>,
    /// Right and wrong answers so far.
    answered: u64,
    /// Attempts to open it since it last answered.
    attempts: u32,
    /// Whether it has been opened, or failed to, at least once.
    is_tried: bool,
    /// Whether it is in the list of this turn.
    is_listed: bool,
    /// Whether it is in the queue of those with room.
    is_queued: bool,
    /// Whether epoll reports its room to write.
    awaits_write: bool,
}

impl<P: Protocol> Connection<P> {
    fn new(codec: P::Connection) -> Self {
        Self {
            link: None,
            state: State::Down(0),
            codec,
            unread: Vec::new(),
            answered: 0,
            attempts: 0,
            is_tried: false,
            is_listed: false,
            is_queued: false,
            awaits_write: false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until then it may take.
    Opening(Nanos),
    Open,
    /// Not to be opened before.
    Down(Nanos),
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub(super) fn new(protocol: &'a P, load: &'a Load, shared: &'a Shared, index: usize) -> Self {
        let threads = shared.seats.len();
        let seats = (index..load.connections).step_by(threads);
        let connections: Vec<_> = seats.map(|seat| Connection::new(protocol.connect(seat))).collect();
        Self {
            protocol,
            load,
            shared,
            index,
            opening: connections.len(),
            open: 0,
            connections,
            tally: Tally::new(protocol.operations().len()),
            source: Source::new(load.seed, index, threads),
            gaps: Source::new(!load.seed, index, threads),
            phase: Phase::Opening,
            dirty: Vec::new(),
            unfinished: Vec::new(),
            backlog: VecDeque::new(),
            free: VecDeque::new(),
            out: Vec::new(),
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
            self.open(poller, place);
        }
        loop {
            events.clear();
            let timeout = self.timeout(next_tick);
            match epoll::wait(poller, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            self.tally.set_now(self.shared.clock.now());
            for place in std::mem::take(&mut self.unfinished) {
                self.read(poller, place as usize, true);
            }
            for event in &events {
                self.react(poller, event.data.u64() as usize, event.flags);
            }
            // What is sent from here on is intended now: reading took its time.
            self.tally.set_now(self.shared.clock.now());
            self.enter_phase();
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

    /// How long to wait for sockets: until the next tick, the next intended request, or the next phase.
    fn timeout(&self, next_tick: Nanos) -> Timespec {
        if !self.dirty.is_empty() || !self.unfinished.is_empty() {
            return Timespec { tv_sec: 0, tv_nsec: 0 };
        }
        let now = self.shared.clock.now();
        let mut until = next_tick;
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
        let wait = until.saturating_sub(now).min(longest);
        Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as i64 }
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
                        Some(Schedule::new(rate, arrivals, self.index, self.shared.seats.len(), begins))
                    }
                };
                self.phase = Phase::Loading { from, until, schedule };
                for place in 0..self.connections.len() {
                    self.list(place);
                }
            }
            Phase::Loading { from, until, .. } => {
                let (from, until) = (*from, *until);
                if self.cpu.is_none() && now >= from {
                    self.cpu = Some(ThreadCpu::start(now));
                }
                if now >= until || (now >= from && self.shared.used_up()) {
                    // An open loop's last requests may have become due since the last turn.
                    self.take_due();
                    let limit = now.saturating_add(nanos(self.load.timeout));
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
        let protocol = self.protocol;
        let waits = |connection: &Connection<P>| protocol.in_flight(&connection.codec) > 0;
        let is_late = self.tally.now() >= limit;
        is_late || (self.backlog.is_empty() && !self.connections.iter().any(waits))
    }

    /// Accounts what never got an answer, and hands everything over.
    fn finish(&mut self) {
        self.tally.set_now(self.shared.clock.now());
        if !self.shared.is_stopped() {
            for connection in &mut self.connections {
                self.protocol.abandon(&mut connection.codec, Failure::TimedOut, &mut self.tally);
            }
        }
        for intended in self.backlog.drain(..) {
            self.tally.failed(intended, Failure::Unsent, || "no connection had room before the run ended".to_owned());
        }
        let answers = self.connections.iter().map(|connection| connection.answered);
        let (cpu, wall) = self.cpu.as_ref().map(|cpu| cpu.since(self.tally.now())).unwrap_or_default();
        let seat = &self.shared.seats[self.index];
        seat.end(SeatEnding {
            cpu,
            wall,
            answers: answers.clone().min().zip(answers.max()),
            last_answer: self.tally.last_answer(),
            resident_bytes: resident_bytes(),
        });
        self.tally.drain_into(&mut seat.tally());
        seat.open_connections.store(0, Ordering::Relaxed);
        seat.ready.store(true, Ordering::Release);
        seat.finished.store(true, Ordering::Release);
    }

    fn tick(&mut self, poller: &OwnedFd) {
        let now = self.tally.now();
        let before = now.saturating_sub(nanos(self.load.timeout));
        for place in 0..self.connections.len() {
            match self.connections[place].state {
                State::Open => {
                    let connection = &mut self.connections[place];
                    if self.protocol.in_flight(&connection.codec) > 0 {
                        if self.protocol.expire(&mut connection.codec, before, &mut self.tally) {
                            self.reopen(poller, place);
                        } else {
                            self.list(place);
                        }
                    }
                }
                State::Opening(deadline) if now >= deadline => {
                    let example = format!("no connection within {:?}", self.load.timeout);
                    self.lose(poller, place, Lost { failure: Failure::TimedOut, example });
                }
                State::Down(until) if now >= until => self.open(poller, place),
                State::Opening(_) | State::Down(_) => {}
            }
        }
        while self.backlog.front().is_some_and(|intended| *intended < before) {
            let intended = self.backlog.pop_front().unwrap_or_default();
            self.tally.failed(intended, Failure::TimedOut, || "no connection had room in time".to_owned());
        }
        let seat = &self.shared.seats[self.index];
        seat.open_connections.store(self.open, Ordering::Relaxed);
        seat.ready.store(self.opening == 0, Ordering::Release);
        self.tally.drain_into(&mut seat.tally());
    }
}

/// Sockets: opening, events, losses.
impl<P: Protocol> Worker<'_, P> {
    fn open(&mut self, poller: &OwnedFd, place: usize) {
        let seat = self.index + place * self.shared.seats.len();
        let connection = &mut self.connections[place];
        let attempt = connection.attempts as usize;
        connection.attempts = connection.attempts.saturating_add(1);
        let opened = Link::open(self.load, seat, attempt).and_then(|link| {
            let flags = EDGES | epoll::EventFlags::OUT;
            epoll::add(poller, link.fd(), epoll::EventData::new_u64(place as u64), flags)
                .map_err(|error| Lost { failure: Failure::Resources, example: format!("epoll: {error}") })?;
            Ok(link)
        });
        match opened {
            Ok(link) => {
                connection.link = Some(link);
                connection.awaits_write = true;
                connection.state = State::Opening(self.tally.now().saturating_add(nanos(self.load.timeout)));
                // A datagram socket, or a Unix one, is connected at once.
                self.advance(poller, place);
            }
            Err(lost) => self.lose(poller, place, lost),
        }
    }

    fn react(&mut self, poller: &OwnedFd, place: usize, flags: epoll::EventFlags) {
        if let State::Opening(_) = self.connections[place].state {
            return self.advance(poller, place);
        }
        if flags.contains(epoll::EventFlags::OUT) && self.connections[place].awaits_write {
            let connection = &mut self.connections[place];
            if let Some(Err(lost)) = connection.link.as_mut().map(Link::flush) {
                return self.lose(poller, place, lost);
            }
            self.await_write(poller, place);
            self.list(place);
        }
        let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(ends | epoll::EventFlags::IN) {
            self.read(poller, place, flags.intersects(ends));
        }
    }

    fn advance(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        let Some(link) = &mut connection.link else {
            return;
        };
        match link.advance(&self.load.endpoint) {
            Ok(true) => {
                connection.state = State::Open;
                self.open += 1;
                self.is_no_longer_new(place);
                self.await_write(poller, place);
                self.list(place);
                // TLS may have decrypted the server's first words together with the end of its handshake, and what else came
                // was the edge of that.
                self.read(poller, place, true);
            }
            Ok(false) => {
                // While TLS shakes hands, only what it could not send waits for room.
                self.await_write(poller, place);
            }
            Err(lost) => self.lose(poller, place, lost),
        }
    }

    fn is_no_longer_new(&mut self, place: usize) {
        if !std::mem::replace(&mut self.connections[place].is_tried, true) {
            self.opening -= 1;
        }
    }

    /// Asks for events of room to write if, and only if, something waits for it.
    fn await_write(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        let Some(link) = &connection.link else {
            return;
        };
        let wants = link.wants_write();
        if wants == connection.awaits_write {
            return;
        }
        connection.awaits_write = wants;
        let mut flags = EDGES;
        flags.set(epoll::EventFlags::OUT, wants);
        // It can only fail for lack of memory; the time-out then closes the connection.
        let _ = epoll::modify(poller, link.fd(), epoll::EventData::new_u64(place as u64), flags);
    }

    /// Reads a socket until it is empty; with `to_end`, until it says so itself, or that the peer has closed.
    fn read(&mut self, poller: &OwnedFd, place: usize, to_end: bool) {
        let mut reads = 0;
        loop {
            let connection = &mut self.connections[place];
            let Some(link) = &mut connection.link else {
                return;
            };
            let arrived = match link.read(&mut self.input) {
                Ok(arrived) => arrived,
                Err(lost) => return self.lose(poller, place, lost),
            };
            let length = match arrived {
                Arrived::Nothing => break,
                Arrived::Bytes(length) => length,
                Arrived::End => return self.end(poller, place),
            };
            self.tally.received(length);
            reads += 1;
            match self.digest(place, length) {
                Ok(true) => return self.reopen(poller, place),
                Ok(false) => {}
                Err(broken) => {
                    return self.lose(poller, place, Lost { failure: broken.failure, example: broken.example });
                }
            }
            let connection = &self.connections[place];
            let is_tls = connection.link.as_ref().is_some_and(Link::is_tls);
            let more = if P::DATAGRAM {
                if reads == DATAGRAMS_PER_TURN {
                    // There will be no edge for what is left.
                    self.unfinished.push(place as u32);
                    break;
                }
                to_end || self.protocol.in_flight(&connection.codec) > 0
            } else {
                // A short read has emptied the socket, but says nothing of its end. TLS keeps what it has decrypted.
                to_end || is_tls || length == self.input.len()
            };
            if !more {
                break;
            }
        }
        self.list(place);
    }

    /// Gives the codec what was read. Gives whether the connection is to be closed, as agreed.
    fn digest(&mut self, place: usize, length: usize) -> Result<bool, Broken> {
        let connection = &mut self.connections[place];
        let ended = self.tally.ended();
        let received = if connection.unread.is_empty() {
            let received = self.protocol.receive(&mut connection.codec, &self.input[..length], &mut self.tally)?;
            if !P::DATAGRAM && received.consumed < length {
                connection.unread = self.input[received.consumed..length].to_vec();
            }
            received
        } else {
            connection.unread.extend_from_slice(&self.input[..length]);
            let received = self.protocol.receive(&mut connection.codec, &connection.unread, &mut self.tally)?;
            if received.consumed == connection.unread.len() {
                connection.unread = Vec::new();
            } else {
                connection.unread.drain(..received.consumed);
            }
            received
        };
        let answers = self.tally.ended() - ended;
        if answers > 0 {
            connection.answered += answers;
            connection.attempts = 0;
        }
        Ok(received.close)
    }

    /// The peer has closed.
    fn end(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        let ended = self.tally.ended();
        self.protocol.end(&mut connection.codec, &mut self.tally);
        let answers = self.tally.ended() - ended;
        connection.answered += answers;
        if self.protocol.in_flight(&connection.codec) == 0 && (answers > 0 || connection.attempts == 0) {
            // It closed when it owed nothing.
            return self.reopen(poller, place);
        }
        self.lose(
            poller,
            place,
            Lost { failure: Failure::Closed, example: "the server closed the connection".to_owned() },
        );
    }

    /// A connection is lost: accounts it, and sets when it is opened again.
    fn lose(&mut self, poller: &OwnedFd, place: usize, lost: Lost) {
        let connection = &mut self.connections[place];
        if self.protocol.in_flight(&connection.codec) == 0 {
            self.tally.connection_failed(lost.failure, || lost.example);
        } else {
            self.tally.explain(lost.failure, lost.example);
            self.protocol.abandon(&mut connection.codec, lost.failure, &mut self.tally);
        }
        self.close(place);
        self.is_no_longer_new(place);
        let connection = &mut self.connections[place];
        if connection.attempts == 0 {
            return self.open(poller, place);
        }
        let doublings = (connection.attempts - 1).min(10);
        let wait = (FIRST_RETRY << doublings).min(LAST_RETRY);
        connection.state = State::Down(self.tally.now() + wait);
    }

    /// Closes a connection that ended as agreed, or that cannot be used further, and opens it again.
    fn reopen(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        // Whatever is still in flight has been accounted by the codec, or will never be answered.
        self.protocol.abandon(&mut connection.codec, Failure::Closed, &mut self.tally);
        self.close(place);
        if matches!(self.phase, Phase::Draining { .. }) {
            self.connections[place].state = State::Down(Nanos::MAX);
        } else {
            self.open(poller, place);
        }
    }

    fn close(&mut self, place: usize) {
        let seat = self.index + place * self.shared.seats.len();
        let connection = &mut self.connections[place];
        if connection.state == State::Open {
            self.open -= 1;
        }
        connection.link = None;
        connection.unread = Vec::new();
        connection.codec = self.protocol.connect(seat);
        connection.state = State::Down(Nanos::MAX);
    }
}

/// Requests.
impl<P: Protocol> Worker<'_, P> {
    /// Notes that a connection may have room, or something to say.
    fn list(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if !connection.is_listed {
            connection.is_listed = true;
            self.dirty.push(place as u32);
        }
    }

    /// Gives connections their next requests.
    fn feed(&mut self, poller: &OwnedFd) {
        self.take_due();
        // Sending may list a connection again, for the next turn.
        let mut dirty = std::mem::take(&mut self.dirty);
        for place in dirty.drain(..) {
            let place = place as usize;
            self.connections[place].is_listed = false;
            self.feed_one(poller, place);
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
        self.share_out(poller);
    }

    /// Queues up the requests of an open loop whose time has come.
    fn take_due(&mut self) {
        let now = self.tally.now();
        let Phase::Loading { from, until, schedule: Some(schedule) } = &mut self.phase else {
            return;
        };
        while schedule.next() < *until
            && let Some(intended) = schedule.take(now, &mut self.gaps)
        {
            if intended >= *from && self.shared.take(1) == 0 {
                return;
            }
            self.backlog.push_back(intended);
        }
    }

    /// A closed loop's connection gets its requests now; an open loop's one queues up for them.
    fn feed_one(&mut self, poller: &OwnedFd, place: usize) {
        let is_open_loop = matches!(self.load.pace, Pace::Open { .. });
        let room = self.room(place);
        let wanted = match &self.phase {
            Phase::Loading { from, .. } if !is_open_loop && room > 0 => {
                if self.tally.now() < *from {
                    room
                } else {
                    self.shared.take(room)
                }
            }
            Phase::Opening | Phase::Loading { .. } | Phase::Draining { .. } => 0,
        };
        self.send(poller, place, std::iter::repeat_n(self.tally.now(), wanted));
        if is_open_loop {
            self.queue(place);
        }
    }

    /// Gives the requests whose time has come to connections that have room, in turns.
    fn share_out(&mut self, poller: &OwnedFd) {
        while !self.backlog.is_empty() {
            let Some(place) = self.free.pop_front() else {
                return;
            };
            let place = place as usize;
            self.connections[place].is_queued = false;
            let share = self.backlog.len().div_ceil(self.free.len() + 1);
            let count = self.room(place).min(share);
            let mut backlog = std::mem::take(&mut self.backlog);
            self.send(poller, place, backlog.drain(..count));
            self.backlog = backlog;
            self.queue(place);
        }
    }

    /// Lets a connection that has room wait for requests of an open loop.
    fn queue(&mut self, place: usize) {
        if self.room(place) > 0 && !self.connections[place].is_queued {
            self.connections[place].is_queued = true;
            self.free.push_back(place as u32);
        }
    }

    /// How many requests a connection takes now.
    fn room(&self, place: usize) -> usize {
        let connection = &self.connections[place];
        let can_send = connection.link.as_ref().is_some_and(|link| !link.wants_write());
        if connection.state != State::Open || !can_send {
            return 0;
        }
        let in_flight = self.protocol.in_flight(&connection.codec);
        let is_between_batches = self.load.refill == Refill::Batch && matches!(self.load.pace, Pace::Closed);
        if is_between_batches && in_flight > 0 {
            return 0;
        }
        self.protocol.room(&connection.codec).min(self.load.depth.saturating_sub(in_flight))
    }

    /// Sends what the protocol has to say, and requests with these intended times, by one write.
    fn send(&mut self, poller: &OwnedFd, place: usize, requests: impl Iterator<Item = Nanos>) {
        let connection = &mut self.connections[place];
        let Some(link) = connection.link.as_mut().filter(|_| connection.state == State::Open) else {
            return;
        };
        self.out.clear();
        self.protocol.control(&mut connection.codec, &mut self.out);
        let mut result = Ok(());
        for intended in requests {
            self.protocol.begin(&mut connection.codec, intended, &mut self.source, &mut self.out);
            if P::DATAGRAM {
                result = result.and_then(|()| link.send_datagram(&self.out));
                self.tally.sent(self.out.len());
                self.out.clear();
            }
        }
        if !P::DATAGRAM && !self.out.is_empty() {
            result = link.send(&self.out);
            self.tally.sent(self.out.len());
        }
        match result {
            Ok(()) => self.await_write(poller, place),
            Err(lost) => self.lose(poller, place, lost),
        }
    }
}

/// This process' resident memory.
fn resident_bytes() -> u64 {
    let own = Process::open(std::process::id()).and_then(|own| own.sample());
    own.map_or(0, |sample| sample.resident_bytes)
}
