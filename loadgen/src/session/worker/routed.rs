//! Requests that each have their own server: a client sends them on its connection to that one.

use std::os::fd::OwnedFd;

use super::{Client, Connection, Phase, Worker};
use crate::clock::Nanos;
use crate::codec::Protocol;
use crate::load::Refill;
use crate::pace::Pace;

impl<P: Protocol> Worker<'_, P> {
    /// Sends on what servers sent back, and gives clients their next requests: all by one write for each connection.
    pub(super) fn feed_routed(&mut self, poller: &OwnedFd) {
        self.take_due();
        let heard = std::mem::take(&mut self.dirty);
        for place in &heard {
            self.connections[*place as usize].is_listed = false;
        }
        for place in &heard {
            self.send_on(poller, *place as usize);
        }
        for place in &heard {
            self.refill(poller, self.connections[*place as usize].client);
        }
        self.share_among_clients(poller);
        // Those that were heard may have something to say themselves: a login.
        for place in heard {
            self.list(place as usize);
        }
        for place in std::mem::take(&mut self.dirty) {
            self.connections[place as usize].is_listed = false;
            self.send(poller, place as usize, std::iter::empty());
        }
    }

    /// Puts what the server has sent on where it belongs now.
    fn send_on(&mut self, poller: &OwnedFd, place: usize) {
        let mut drawn = std::mem::take(&mut self.drawn);
        while let Some(server) = self.protocol.redirected(&mut self.connections[place].codec, &mut drawn) {
            let lane = self.lane(poller, self.connections[place].client, server);
            self.protocol.place(&mut self.connections[lane].codec, &drawn);
            self.list(lane);
        }
        self.drawn = drawn;
    }

    /// A closed loop's client gets its requests now; an open loop's one queues up for them.
    fn refill(&mut self, poller: &OwnedFd, client: usize) {
        if matches!(self.load.pace, Pace::Open { .. }) {
            return self.queue_client(client);
        }
        let Phase::Loading { from, .. } = self.phase else {
            return;
        };
        let room = self.room_of(client);
        let due = self.turn;
        let wanted = if due < from || room == 0 { room } else { self.shared.take(room) };
        for _ in 0..wanted {
            self.dispatch(poller, client, due);
        }
    }

    /// Gives the requests whose time has come to clients that have room, in turns.
    fn share_among_clients(&mut self, poller: &OwnedFd) {
        while !self.backlog.is_empty() {
            let Some(client) = self.free.pop_front() else {
                return;
            };
            let client = client as usize;
            self.clients[client].is_queued = false;
            let share = self.backlog.len().div_ceil(self.free.len() + 1);
            for _ in 0..self.room_of(client).min(share) {
                let Some(intended) = self.backlog.pop_front() else { break };
                self.dispatch(poller, client, intended);
            }
            self.queue_client(client);
        }
    }

    fn queue_client(&mut self, client: usize) {
        if self.room_of(client) > 0 && !self.clients[client].is_queued {
            self.clients[client].is_queued = true;
            self.free.push_back(client as u32);
        }
    }

    /// How many requests a client takes now.
    fn room_of(&self, client: usize) -> usize {
        let lanes = self.clients[client].lanes.iter().flatten();
        let in_flight: usize =
            lanes.map(|place| self.protocol.in_flight(&self.connections[*place as usize].codec)).sum();
        let is_between_batches = self.load.refill == Refill::Batch && matches!(self.load.pace, Pace::Closed);
        if is_between_batches && in_flight > 0 { 0 } else { self.load.depth.saturating_sub(in_flight) }
    }

    /// Makes a client's next request, and puts it on the connection to its server.
    fn dispatch(&mut self, poller: &OwnedFd, client: usize, intended: Nanos) {
        let mut drawn = std::mem::take(&mut self.drawn);
        let server = self.protocol.draw(&mut self.source, &mut drawn);
        drawn.intended = intended;
        let lane = self.lane(poller, client, server);
        self.protocol.place(&mut self.connections[lane].codec, &drawn);
        self.list(lane);
        self.drawn = drawn;
    }

    /// The place of a client's connection to a server; a new one where the server is.
    fn lane(&mut self, poller: &OwnedFd, client: usize, server: usize) -> usize {
        let place = self.connections.len();
        let seat = self.index + client * self.shared.seats.len();
        let Client { lanes, .. } = &mut self.clients[client];
        if lanes.len() <= server {
            lanes.resize(server + 1, None);
        }
        if let Some(known) = lanes[server] {
            return known as usize;
        }
        lanes[server] = Some(place as u32);
        self.connections.push(Connection::new(seat, client, server, self.protocol.connect_to(seat, server)));
        self.opening += 1;
        self.open(poller, place);
        place
    }
}
