//! A worker's requests: which connection is given how many, and when.

use std::cmp::Reverse;
use std::os::fd::OwnedFd;

use super::{Phase, State, Worker};
use crate::clock::Nanos;
use crate::codec::Protocol;
use crate::load::Refill;
use crate::pace::{Pace, Stages};
use crate::session::link::Lost;

impl<P: Protocol> Worker<'_, P> {
    /// Notes that a connection may have room, or something to say.
    pub(super) fn list(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if !connection.is_listed {
            connection.is_listed = true;
            self.dirty.push(place as u32);
        }
    }

    /// Gives connections their next requests.
    pub(super) fn feed(&mut self, poller: &OwnedFd) {
        if P::ROUTED {
            return self.feed_routed(poller);
        }
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
    pub(super) fn take_due(&mut self) {
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
        if self.connections[place].waits() {
            self.send_waiting(poller, place);
        }
        let is_open_loop = matches!(self.load.pace, Pace::Open { .. });
        let room = self.room(place);
        // Another thread may have answered after this turn began.
        let due = if P::TOGETHER { self.tally.now() } else { self.turn };
        let wanted = match &self.phase {
            Phase::Loading { from, .. } if !is_open_loop && room > 0 && self.is_active(place) => {
                if due < *from {
                    room
                } else {
                    self.shared.take(room)
                }
            }
            Phase::Opening | Phase::Loading { .. } | Phase::Draining { .. } => 0,
        };
        self.send(poller, place, std::iter::repeat_n(due, wanted));
        self.note_pause(place);
        if is_open_loop {
            self.queue(place);
        }
    }

    /// Waits for the end of a connection's pause.
    fn note_pause(&mut self, place: usize) {
        if !P::PAUSES {
            return;
        }
        let connection = &mut self.connections[place];
        // A pause that has grown is looked at again when its earlier end has come.
        if let Some(until) = self.protocol.pause(&connection.codec)
            && (connection.pause == 0 || until < connection.pause)
        {
            connection.pause = until;
            self.pauses.push(Reverse((until, place as u32)));
        }
    }

    /// Ends the pauses whose time has come.
    pub(super) fn wake_up(&mut self, poller: &OwnedFd) {
        let now = self.tally.now();
        while let Some(Reverse((until, place))) = self.pauses.peek().copied()
            && until <= now
        {
            self.pauses.pop();
            let place = place as usize;
            let connection = &mut self.connections[place];
            if connection.pause == until {
                connection.pause = 0;
            }
            self.protocol.wake(&mut connection.codec, now);
            if P::QUIC {
                // A timer of QUIC may have ended the connection.
                let digested = self.digest(place, 0);
                self.settle(poller, place, digested);
            }
            self.list(place);
        }
    }

    /// True if the stages have so many users now that this connection is one of them.
    fn is_active(&self, place: usize) -> bool {
        let Phase::Loading { from, .. } = self.phase else {
            return false;
        };
        let is_there = |stages: &Stages| {
            let users = stages.at(self.tally.now().saturating_sub(from));
            (self.connections[place].seat as f64) < users.round()
        };
        self.load.stages.as_deref().is_none_or(is_there)
    }

    /// Lets the users begin that have come since the last tick.
    pub(super) fn admit_users(&mut self) {
        if self.load.stages.is_some() && matches!(self.load.pace, Pace::Closed) {
            (0..self.connections.len()).for_each(|place| self.list(place));
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
            self.note_pause(place);
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

    /// Sends the requests that have waited for a connection to open, as far as it takes them; opens it if it is closed.
    #[cold]
    fn send_waiting(&mut self, poller: &OwnedFd, place: usize) {
        let mut waiting = std::mem::take(&mut self.connections[place].waiting);
        let count = waiting.len().min(self.room(place));
        self.send(poller, place, waiting.drain(..count));
        // Requests that are not sent now stand behind the opening of the connection.
        self.connections[place].waiting.append(&mut waiting);
    }

    /// How many requests a connection takes now.
    fn room(&self, place: usize) -> usize {
        let connection = &self.connections[place];
        if connection.waits() {
            return 0;
        }
        if connection.state == State::Idle {
            return self.most_at_once();
        }
        let can_send = connection.link.as_ref().is_some_and(|link| !link.wants_write());
        if connection.state != State::Open || !can_send {
            return 0;
        }
        let in_flight = self.protocol.in_flight(&connection.codec);
        let is_between_batches = self.load.refill == Refill::Batch && matches!(self.load.pace, Pace::Closed);
        if is_between_batches && in_flight > 0 {
            return 0;
        }
        let room = self.protocol.room(&connection.codec).min(self.load.depth.saturating_sub(in_flight));
        match self.load.requests_per_connection {
            Some(most) => room.min(usize::try_from(most.saturating_sub(connection.begun)).unwrap_or(usize::MAX)),
            None => room,
        }
    }

    /// How many requests open a connection together.
    fn most_at_once(&self) -> usize {
        let by_load =
            self.load.requests_per_connection.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        let by_protocol = self.protocol.requests_per_connection().unwrap_or(usize::MAX);
        self.load.depth.min(by_load).min(by_protocol)
    }

    /// Whether a connection has had all requests that it is for, and their answers.
    pub(super) fn is_used_up(&self, place: usize) -> bool {
        let connection = &self.connections[place];
        let most = self.load.requests_per_connection.unwrap_or(u64::MAX);
        connection.begun >= most && self.protocol.in_flight(&connection.codec) == 0
    }

    /// Sends what the protocol has to say, and requests with these intended times, by one write.
    pub(super) fn send(&mut self, poller: &OwnedFd, place: usize, requests: impl Iterator<Item = Nanos>) {
        let connection = &mut self.connections[place];
        let Some(link) = connection.link.as_mut().filter(|_| connection.state == State::Open) else {
            connection.waiting.extend(requests);
            if connection.state == State::Idle && connection.waits() {
                self.open(poller, place);
            }
            return self.transmit(poller, place);
        };
        self.out.clear();
        let is_first = connection.begun == 0;
        self.protocol.control(&mut connection.codec, &mut self.out);
        let mut result = Ok(());
        for intended in requests {
            self.protocol.begin(&mut connection.codec, intended, &mut self.source, &mut self.out);
            connection.begun += 1;
            if P::DATAGRAM {
                result = result.and_then(|()| link.send_datagram(&self.out));
                self.tally.sent(self.out.len());
                self.out.clear();
            }
        }
        if is_first && connection.begun > 0 {
            connection.opening.asked = self.tally.now();
        }
        if !P::DATAGRAM && !self.out.is_empty() {
            result = link.send(&self.out);
            self.tally.sent(self.out.len());
        }
        match result {
            Ok(()) if P::QUIC => self.transmit(poller, place),
            Ok(()) => self.await_write(poller, place),
            Err(lost) => self.lose(poller, place, lost),
        }
    }

    /// Sends QUIC's datagrams.
    fn transmit(&mut self, poller: &OwnedFd, place: usize) {
        if let Err(lost) = self.send_quic(place) {
            self.lose_quic(poller, place, lost);
        }
    }

    pub(super) fn send_quic(&mut self, place: usize) -> Result<(), Lost> {
        let connection = &mut self.connections[place];
        let Some(link) = connection.link.as_ref().filter(|_| P::QUIC) else {
            return Ok(());
        };
        let now = self.tally.now();
        self.out.clear();
        while self.protocol.transmit(&mut connection.codec, now, &mut self.out) {
            link.send_quic(&self.out)?;
            self.tally.sent(self.out.len());
            self.out.clear();
        }
        Ok(())
    }
}
