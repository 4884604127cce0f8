//! A worker's sockets: opening, events, reading, losses.

use std::borrow::Cow;
use std::os::fd::OwnedFd;

use rustix::event::epoll;

use super::{Opening, Phase, State, Worker};
use crate::clock::{Nanos, nanos};
use crate::codec::{Broken, Protocol, Routes};
use crate::load::Endpoint;
use crate::record::{Failure, OpeningPart};
use crate::session::link::{Arrived, Link, Lost};

/// Datagrams read from one socket before others have their turn.
const DATAGRAMS_PER_TURN: usize = 256;

/// The events of every socket. Edges: the kernel need not look again at a socket that has just been emptied.
const EDGES: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

/// How long the first retry of a refused connection waits; each further one twice as long, up to a second.
const FIRST_RETRY: Nanos = 10_000_000;
const LAST_RETRY: Nanos = 1_000_000_000;

impl<'a, P: Protocol> Worker<'a, P> {
    /// Opens a connection before the load begins. Where requests open connections, only the first one to each target is
    /// opened, to see whether the target can be reached at all.
    pub(super) fn prepare(&mut self, poller: &OwnedFd, place: usize) {
        if self.is_opened_by_requests(place) && self.connections[place].seat > self.load.also.len() {
            self.connections[place].state = State::Idle;
            return self.is_no_longer_new(place);
        }
        self.open(poller, place);
    }

    /// The load begins: a connection that requests open is not open yet.
    pub(super) fn enter_load(&mut self, place: usize) {
        if self.is_opened_by_requests(place) && self.connections[place].state == State::Open {
            self.close(place);
            self.connections[place].state = State::Idle;
        }
        self.list(place);
    }

    /// Whether a connection is for a limited number of requests, so that opening it is a part of their cost.
    fn is_opened_by_requests(&self, place: usize) -> bool {
        let is_limited =
            self.load.requests_per_connection.is_some() || self.protocol.requests_per_connection().is_some();
        is_limited && !P::ROUTED && !self.protocol.listens(&self.connections[place].codec)
    }

    /// Has a closed connection opened again: by the next request if the load has begun, else now.
    pub(super) fn open_again(&mut self, poller: &OwnedFd, place: usize) {
        let listens = self.protocol.listens(&self.connections[place].codec);
        if P::ROUTED || listens || matches!(self.phase, Phase::Opening) {
            return self.open(poller, place);
        }
        self.connections[place].state = State::Idle;
        self.list(place);
    }

    /// How many connections are open, or would be if a request needed them.
    pub(super) fn usable(&self) -> usize {
        let is_usable = |place: &usize| match (self.connections[*place].state, self.connections[*place].attempts) {
            (State::Open, _) | (State::Idle, 0) => true,
            (State::Opening, 0 | 1) => self.is_opened_by_requests(*place),
            (State::Idle | State::Opening | State::Down(_), _) => false,
        };
        (0..self.connections.len()).filter(is_usable).count()
    }

    pub(super) fn open(&mut self, poller: &OwnedFd, place: usize) {
        let endpoint = self.endpoint(place);
        let connection = &mut self.connections[place];
        let address = connection.address;
        connection.attempts = connection.attempts.saturating_add(1);
        connection.opening = Opening { began: self.shared.clock.now(), ..Opening::default() };
        let opened = Link::open(&endpoint, self.load.local, connection.seat, address).and_then(|link| {
            let flags = EDGES | epoll::EventFlags::OUT;
            epoll::add(poller, link.fd(), epoll::EventData::new_u64(place as u64), flags)
                .map_err(|error| Lost { failure: Failure::Resources, example: format!("epoll: {error}") })?;
            Ok(link)
        });
        match opened {
            Ok(link) => {
                connection.link = Some(link);
                connection.awaits_write = true;
                let due = connection.waiting.first().copied().unwrap_or_else(|| self.tally.now());
                connection.deadline = due.saturating_add(nanos(self.load.timeout));
                connection.state = State::Opening;
                // A datagram socket, or a Unix one, is connected at once.
                self.advance(poller, place);
            }
            Err(lost) => self.lose_unconnected(poller, place, lost),
        }
    }

    /// An address of the target does not accept: tries the next one, until all have been tried.
    fn lose_unconnected(&mut self, poller: &OwnedFd, place: usize, lost: Lost) {
        let addresses = self.endpoint(place).addresses().len();
        let connection = &mut self.connections[place];
        connection.address = connection.address.wrapping_add(1);
        connection.tried += 1;
        if connection.tried < addresses {
            connection.link = None;
            connection.attempts -= 1;
            return self.open(poller, place);
        }
        connection.tried = 0;
        self.lose(poller, place, lost);
    }

    /// Where a connection leads.
    fn endpoint(&self, place: usize) -> Cow<'a, Endpoint> {
        let connection = &self.connections[place];
        match self.protocol.routes().and_then(|routes| routes.address(connection.server)) {
            Some(address) => Cow::Owned(Endpoint::Tcp(vec![address], self.load.endpoint.tls().cloned())),
            None => Cow::Borrowed(self.load.endpoint_of(connection.seat)),
        }
    }

    /// Whether a connection that is closed is of any use.
    pub(super) fn is_wanted(&self, place: usize) -> bool {
        let connection = &self.connections[place];
        let owns = |routes: &Routes| routes.owns(connection.server);
        !P::ROUTED || self.protocol.in_flight(&connection.codec) > 0 || self.protocol.routes().is_some_and(owns)
    }

    pub(super) fn react(&mut self, poller: &OwnedFd, place: usize, flags: epoll::EventFlags) {
        let is_dialled = P::QUIC && self.connections[place].opening.connected != 0;
        if self.connections[place].state == State::Opening && !is_dialled {
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
        let endpoint = self.endpoint(place);
        let connection = &mut self.connections[place];
        let Some(link) = &mut connection.link else {
            return;
        };
        let advanced = link.advance(&endpoint);
        if P::QUIC && matches!(advanced, Ok(true)) {
            return self.dial(poller, place);
        }
        if !P::DATAGRAM && link.is_connected() && connection.opening.connected == 0 {
            connection.tried = 0;
            connection.opening.connected = self.shared.clock.now();
            let nanos = connection.opening.connected.saturating_sub(connection.opening.began);
            self.tally.opened(OpeningPart::Connect, nanos);
        }
        match advanced {
            Ok(true) => {
                if link.is_tls() {
                    let nanos = self.shared.clock.now().saturating_sub(connection.opening.connected);
                    self.tally.opened(OpeningPart::Tls, nanos);
                }
                self.is_open(poller, place);
                // TLS may have decrypted the server's first words together with the end of its handshake, and what else came
                // was the edge of that.
                self.read(poller, place, true);
            }
            Ok(false) => {
                // While TLS shakes hands, only what it could not send waits for room.
                self.await_write(poller, place);
            }
            Err(lost) if connection.opening.connected == 0 => self.lose_unconnected(poller, place, lost),
            Err(lost) => self.lose(poller, place, lost),
        }
    }

    /// The connection can carry requests.
    fn is_open(&mut self, poller: &OwnedFd, place: usize) {
        self.connections[place].state = State::Open;
        self.open += 1;
        self.look_whether_prepared(place);
        self.await_write(poller, place);
        self.list(place);
    }

    /// Begins QUIC's handshake on a socket that is there.
    fn dial(&mut self, poller: &OwnedFd, place: usize) {
        let now = self.shared.clock.now();
        let connection = &mut self.connections[place];
        connection.opening.connected = now;
        if let Err(broken) = self.protocol.dial(&mut connection.codec, now) {
            return self.lose(poller, place, Lost { failure: broken.failure, example: broken.example });
        }
        self.await_write(poller, place);
        self.list(place);
    }

    /// Looks whether QUIC's handshake is complete: TLS is a part of it.
    fn look_whether_connected(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        if P::QUIC && connection.state == State::Opening && self.protocol.is_connected(&connection.codec) {
            connection.tried = 0;
            let nanos = self.tally.now().saturating_sub(connection.opening.began);
            self.tally.opened(OpeningPart::Connect, nanos);
            self.is_open(poller, place);
        }
    }

    /// A QUIC connection is lost: one whose address has not answered yet tries the next one.
    pub(super) fn lose_quic(&mut self, poller: &OwnedFd, place: usize, lost: Lost) {
        match self.connections[place].state {
            State::Opening => self.lose_unconnected(poller, place, lost),
            State::Idle | State::Open | State::Down(_) => self.lose(poller, place, lost),
        }
    }

    /// Tells the server that a QUIC connection ends.
    pub(super) fn hang_up(&mut self, place: usize) {
        if P::QUIC && self.connections[place].link.is_some() {
            self.protocol.hang_up(&mut self.connections[place].codec, self.tally.now());
            // A server that is not there any more need not know.
            let _ = self.send_quic(place);
        }
    }

    fn look_whether_prepared(&mut self, place: usize) {
        if self.protocol.is_prepared(&self.connections[place].codec) {
            self.is_no_longer_new(place);
        }
    }

    fn is_no_longer_new(&mut self, place: usize) {
        if !std::mem::replace(&mut self.connections[place].is_tried, true) {
            self.opening -= 1;
        }
    }

    /// Asks for events of room to write if, and only if, something waits for it.
    pub(super) fn await_write(&mut self, poller: &OwnedFd, place: usize) {
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
    pub(super) fn read(&mut self, poller: &OwnedFd, place: usize, to_end: bool) {
        let mut reads = 0;
        loop {
            let connection = &mut self.connections[place];
            let Some(link) = &mut connection.link else {
                return;
            };
            let arrived = match link.read(&mut self.input) {
                Ok(arrived) => arrived,
                Err(lost) if P::QUIC => return self.lose_quic(poller, place, lost),
                Err(lost) => return self.lose(poller, place, lost),
            };
            let length = match arrived {
                Arrived::Nothing => break,
                Arrived::Bytes(length) => length,
                Arrived::End => return self.end(poller, place),
            };
            self.tally.received(length);
            if P::TOGETHER {
                // A message that another thread sent after this one looked at the clock would seem to arrive before it was sent.
                self.tally.set_now(self.shared.clock.now());
            }
            reads += 1;
            let digested = self.digest(place, length);
            self.note_first_byte(place);
            if !self.settle(poller, place, digested) {
                return;
            }
            self.look_whether_connected(poller, place);
            let connection = &self.connections[place];
            let is_tls = connection.link.as_ref().is_some_and(Link::is_tls);
            let more = if P::DATAGRAM || P::QUIC {
                if reads == DATAGRAMS_PER_TURN {
                    // There will be no edge for what is left.
                    self.unfinished.push(place as u32);
                    break;
                }
                P::QUIC || to_end || self.protocol.in_flight(&connection.codec) > 0
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

    /// Notes how long the first answer of a connection took to begin.
    fn note_first_byte(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if connection.opening.asked != 0 && self.protocol.has_heard(&connection.codec) {
            let asked = std::mem::take(&mut connection.opening.asked);
            self.tally.opened(OpeningPart::FirstByte, self.tally.now().saturating_sub(asked));
        }
    }

    /// Acts on what the codec made of its input. Gives whether the connection stays.
    pub(super) fn settle(&mut self, poller: &OwnedFd, place: usize, digested: Result<bool, Broken>) -> bool {
        match digested {
            Ok(false) if !self.is_used_up(place) => return true,
            Ok(_) => self.reopen(poller, place),
            Err(broken) => self.lose(poller, place, Lost { failure: broken.failure, example: broken.example }),
        }
        false
    }

    /// Gives the codec what was read. Gives whether the connection is to be closed, as agreed.
    pub(super) fn digest(&mut self, place: usize, length: usize) -> Result<bool, Broken> {
        let connection = &mut self.connections[place];
        let ended = self.tally.ended();
        let received = if connection.unread.is_empty() {
            let received = self.protocol.receive(&mut connection.codec, &self.input[..length], &mut self.tally)?;
            if !P::DATAGRAM && !P::QUIC && received.consumed < length {
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
        self.look_whether_prepared(place);
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
    pub(super) fn lose(&mut self, poller: &OwnedFd, place: usize, lost: Lost) {
        let connection = &mut self.connections[place];
        let mut unprocessed = Vec::new();
        self.protocol.take_back(&mut connection.codec, &mut unprocessed);
        if self.protocol.in_flight(&connection.codec) == 0 && !connection.waits() {
            self.tally.connection_failed(lost.failure, || lost.example);
        } else {
            self.tally.explain(lost.failure, lost.example);
            self.abandon(place, lost.failure);
        }
        self.close(place);
        self.connections[place].waiting = unprocessed;
        self.is_no_longer_new(place);
        if let Some(routes) = self.protocol.routes() {
            routes.distrust();
            // Its client goes on with others.
            self.list(place);
        }
        self.retry(poller, place);
    }

    /// Has a lost connection opened again, later if it has not answered since it was opened last.
    fn retry(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        if connection.attempts == 0 {
            return self.open_again(poller, place);
        }
        let doublings = (connection.attempts - 1).min(10);
        let wait = (FIRST_RETRY << doublings).min(LAST_RETRY);
        connection.state = State::Down(self.tally.now() + wait);
    }

    /// Accounts everything that a connection was asked, or was to be asked, as failed.
    pub(super) fn abandon(&mut self, place: usize, failure: Failure) {
        let connection = &mut self.connections[place];
        self.protocol.abandon(&mut connection.codec, failure, &mut self.tally);
        for intended in connection.waiting.drain(..) {
            self.tally.failed(intended, failure, String::new);
        }
    }

    /// Gives up requests that have waited too long for a connection; one that is being opened has a deadline of its own.
    pub(super) fn expire_waiting(&mut self, poller: &OwnedFd, place: usize, before: Nanos) {
        let connection = &mut self.connections[place];
        let is_late = connection.waiting.first().is_some_and(|intended| *intended < before);
        match connection.state {
            State::Open if is_late => {
                let example = format!("connected, but not ready for requests within {:?}", self.load.timeout);
                self.lose(poller, place, Lost { failure: Failure::TimedOut, example });
            }
            State::Down(_) | State::Idle if is_late => {
                self.tally.explain(Failure::TimedOut, "no connection took the request in time".to_owned());
                self.abandon(place, Failure::TimedOut);
            }
            State::Opening | State::Open | State::Down(_) | State::Idle => {}
        }
    }

    /// Closes a connection that ended as agreed, or that cannot be used further, and opens it again.
    pub(super) fn reopen(&mut self, poller: &OwnedFd, place: usize) {
        let connection = &mut self.connections[place];
        self.protocol.take_back(&mut connection.codec, &mut connection.waiting);
        // A request still in flight has been accounted by the codec, or will never be answered.
        self.protocol.abandon(&mut connection.codec, Failure::Closed, &mut self.tally);
        self.close(place);
        let connection = &mut self.connections[place];
        let is_needed = connection.waits() || self.protocol.in_flight(&connection.codec) > 0;
        if matches!(self.phase, Phase::Draining { .. }) && !is_needed {
            connection.state = State::Down(Nanos::MAX);
        } else if connection.attempts > 1 {
            // A server that sends every connection away without an answer is asked less and less often.
            self.retry(poller, place);
        } else {
            self.open_again(poller, place);
        }
    }

    fn close(&mut self, place: usize) {
        self.hang_up(place);
        let connection = &mut self.connections[place];
        if connection.state == State::Open {
            self.open -= 1;
        }
        connection.link = None;
        connection.begun = 0;
        connection.unread = Vec::new();
        connection.codec = self.protocol.reconnect(&mut connection.codec, connection.seat, connection.server);
        connection.state = State::Down(Nanos::MAX);
    }
}
