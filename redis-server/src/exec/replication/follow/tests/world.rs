//! Servers, links between them, and what happens to both.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use super::Counts;
use super::node::{Node, client, serve};
use crate::clients::client::{Client, End};
use crate::exec::core::clock::virtual_time;
use crate::exec::replication::follow::handshake::{Agreed, Body, Handshake, say};
use crate::exec::replication::follow::introduction;
use crate::exec::replication::state::{Figures, LinkStage, Stage};
use crate::exec::replication::{Link, Next, sync};
use crate::types::testing::Rng;

/// The first moment, in milliseconds of Unix time.
const BEGIN: u64 = 1_700_000_000_000;
/// Milliseconds from one step to the next, and steps in which everything can happen.
const STEP: u64 = 50;
const STEPS: usize = 250;
/// Steps within which all must be well when nothing happens any more.
const PATIENCE: usize = 4000;

/// Bytes on their way, in pieces, each with the time at which it comes.
#[derive(Default)]
struct Pipe(VecDeque<(u64, Vec<u8>)>);

impl Pipe {
    fn take(&mut self, now: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.0.front().is_some_and(|(at, _)| *at <= now) {
            bytes.extend(self.0.pop_front().map(|(_, piece)| piece).unwrap_or_default());
        }
        bytes
    }
}

enum Server {
    /// Commands are answered; the bytes are an incomplete one.
    Answers(Box<Client>, Vec<u8>),
    Sends(Box<Link>),
}

enum Replica {
    Agrees(Handshake),
    Receives { id: String, offset: u64, body: Body, bytes: Vec<u8> },
    Streams,
}

struct Connection {
    /// Numbers of the servers at both ends.
    replica: usize,
    primary: usize,
    up: Pipe,
    down: Pipe,
    server: Server,
    side: Replica,
    acknowledged_at: u64,
}

pub(super) struct World {
    random: Rng,
    now: u64,
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    /// The one that counts; another may take itself for one.
    primary: usize,
    counts: Counts,
    /// Numbers of writes that the primary has answered, and where they end in its stream.
    written: Vec<(u64, u64)>,
    serial: u64,
    is_calm: bool,
}

impl Drop for World {
    fn drop(&mut self) {
        virtual_time::set(None);
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        virtual_time::set(Some(BEGIN));
        let mut random = Rng::new(seed);
        let count = 2 + random.below(3);
        let mut nodes: Vec<_> = (0..count).map(|number| Node::new(seed * 8 + number as u64)).collect();
        for (number, node) in nodes.iter_mut().enumerate().skip(1) {
            node.follow(Some(random.below(number)));
        }
        Self {
            random,
            now: BEGIN,
            nodes,
            connections: Vec::new(),
            primary: 0,
            counts: Counts::new(),
            written: Vec::new(),
            serial: 0,
            is_calm: false,
        }
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let sum = |figure: fn(&Figures) -> &AtomicU64| {
            self.nodes.iter().map(|node| figure(&node.instance.replication.figures).load(Relaxed)).sum::<u64>()
        };
        let (partial, full) = (sum(|figures| &figures.partial), sum(|figures| &figures.full));
        let figures = [("partial synchronization", partial), ("full synchronization", full), ("runs", 1)];
        self.counts.clone().into_iter().chain(figures.into_iter().filter(|(_, count)| *count > 0))
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.random.below(bound) == 0
    }

    /// Some time in which everything can happen.
    pub(super) fn live(&mut self) {
        for _ in 0..STEPS {
            self.write();
            match self.random.below(90) {
                0..=3 => self.cut_one(),
                4 => self.save_one(),
                5 => self.end_one(true),
                6 => self.end_one(false),
                7 => self.promote(),
                8 => self.follow_another(),
                _ => {}
            }
            self.step();
        }
    }

    /// Nothing happens any more: all must have the same in the end.
    pub(super) fn heal(&mut self) -> Result<(), String> {
        self.is_calm = true;
        for number in 0..self.nodes.len() {
            if number != self.primary && self.nodes[number].target.is_none() {
                self.nodes[number].follow(Some(self.primary));
            }
        }
        self.write();
        for _ in 0..PATIENCE {
            self.step();
            if self.is_well() {
                return self.compare();
            }
        }
        let state =
            |node: &Node| format!("{:?} at {} of {:?}", node.target, node.offset(), node.instance.replication.ids());
        Err(format!("they never agree: {:?}", self.nodes.iter().map(state).collect::<Vec<_>>()))
    }

    fn is_well(&self) -> bool {
        let (end, id) = (self.nodes[self.primary].offset(), self.nodes[self.primary].instance.replication.ids().id);
        let streams = self.connections.iter().filter(|connection| matches!(connection.side, Replica::Streams)).count();
        streams == self.nodes.len() - 1
            && self.nodes.iter().all(|node| {
                // Another stream may be as long just before its link is cut.
                node.offset() == end && node.instance.replication.ids().id == id
            })
    }

    fn compare(&mut self) -> Result<(), String> {
        let digests: Vec<_> = self.nodes.iter_mut().map(|node| node.ask(&["DEBUG", "DIGEST"])).collect();
        let ids: Vec<_> = self.nodes.iter().map(|node| node.instance.replication.ids().id).collect();
        let is_one = |all: &[String]| all.windows(2).all(|pair| pair[0] == pair[1]);
        if is_one(&digests) && is_one(&ids) { Ok(()) } else { Err(format!("{digests:?} of {ids:?}")) }
    }

    /// Clients write to the server that they take for the primary.
    fn write(&mut self) {
        let primaries: Vec<_> = (0..self.nodes.len()).filter(|&number| self.nodes[number].target.is_none()).collect();
        if primaries.len() > 1 {
            self.count("two primaries write");
        }
        for number in primaries {
            self.serial += 1;
            let serial = self.serial;
            let node = &mut self.nodes[number];
            node.ask(&["SELECT", "0"]);
            node.ask(&["SET", &format!("serial:{serial}"), "1"]);
            if number == self.primary {
                let end = node.offset();
                self.written.push((serial, end));
            }
            // Behind that, so that the stream stops in any database.
            for _ in 0..self.random.below(4) {
                let words = self.command();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                for command in words.split(|word| *word == ";") {
                    self.nodes[number].ask(command);
                }
            }
        }
    }

    fn command(&mut self) -> Vec<String> {
        let key = |random: &mut Rng| format!("k{}", random.below(6));
        let random = &mut self.random;
        let (first, second, number) = (key(random), key(random), random.below(1000).to_string());
        let text = match random.below(12) {
            0 => format!("SELECT {}", random.below(3)),
            1 => format!("SET s{first} {number}"),
            2 => format!("INCR n{first}"),
            3 => format!("RPUSH l{first} {number} a b"),
            4 => format!("LPOP l{first}"),
            5 => format!("SADD t{first} {number} x"),
            6 => format!("SPOP t{first}"),
            7 => format!("SET s{first} {number} PX {}", 1 + random.below(400)),
            8 => format!("MULTI ; INCR n{first} ; SELECT {} ; RPUSH l{second} {number} ; EXEC", random.below(3)),
            9 => format!("DEL s{first} l{second} t{first}"),
            10 => format!("PUBLISH c{first} {number}"),
            _ => format!("APPEND s{first} {}", "y".repeat(random.below(300))),
        };
        text.split(' ').map(str::to_owned).collect()
    }

    fn step(&mut self) {
        self.now += STEP;
        virtual_time::set(Some(self.now));
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            if node.target.is_none() {
                node.expire(self.now);
            }
            node.instance.replication.tick(&node.instance, self.now);
            let waits = node.instance.replication.replicas().iter().any(|replica| replica.stage() == Stage::Waits);
            if waits && self.one_in(3) {
                sync::send_now(&self.nodes[number].instance).expect("there is room");
            }
            self.connect(number);
        }
        let mut at = 0;
        while at < self.connections.len() {
            let mut connection = self.connections.swap_remove(at);
            let is_alive = self.serve(&mut connection) && self.replicate(&mut connection);
            if is_alive {
                self.connections.push(connection);
                let last = self.connections.len() - 1;
                self.connections.swap(at, last);
                at += 1;
            } else {
                self.lose(connection);
            }
        }
    }

    fn connect(&mut self, number: usize) {
        let node = &self.nodes[number];
        let Some(primary) = node.target else { return };
        if node.connects_at > self.now || self.connections.iter().any(|connection| connection.replica == number) {
            return;
        }
        let mut said = Vec::new();
        let handshake = Handshake::new(introduction(&node.instance), &mut said);
        self.stage(number, LinkStage::Handshake);
        let mut connection = Connection {
            replica: number,
            primary,
            up: Pipe::default(),
            down: Pipe::default(),
            server: Server::Answers(Box::new(client(&self.nodes[primary].instance)), Vec::new()),
            side: Replica::Agrees(handshake),
            acknowledged_at: self.now,
        };
        if self.nodes[primary].target.is_some() {
            self.count("chain");
        }
        self.put(&said, &mut connection.up);
        self.connections.push(connection);
    }

    /// Sends bytes, in pieces that come late.
    fn put(&mut self, bytes: &[u8], pipe: &mut Pipe) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((1 + self.random.below(400)).min(rest.len()));
            let late = if self.is_calm || !self.one_in(6) { 0 } else { self.random.below(2000) as u64 };
            if late > 0 {
                self.count("delayed piece");
            }
            let before = pipe.0.back().map_or(0, |(at, _)| *at);
            pipe.0.push_back((before.max(self.now + late), piece.to_vec()));
            rest = behind;
        }
    }

    /// The primary's end. False: the connection is over.
    fn serve(&mut self, connection: &mut Connection) -> bool {
        let bytes = connection.up.take(self.now);
        let node = &self.nodes[connection.primary];
        match &mut connection.server {
            Server::Answers(client, input) => {
                input.extend_from_slice(&bytes);
                let answers = serve(&node.worker, client, input);
                let mut next = None;
                if client.close {
                    let Some(follower) = client.follower.take() else { return false };
                    let mut link = node.instance.replication.join(&node.instance, &client.shared, *follower, self.now);
                    if link.receive(input, self.now).is_err() {
                        return false;
                    }
                    next = Some(Server::Sends(Box::new(link)));
                }
                self.put(&answers, &mut connection.down);
                if let Some(next) = next {
                    connection.server = next;
                }
                true
            }
            Server::Sends(link) => {
                let shared = Arc::clone(link.client());
                if shared.has_mail() && shared.take_mail().end != End::No || link.receive(&bytes, self.now).is_err() {
                    return false;
                }
                let mut sent = Vec::new();
                let mut cx = Context::from_waker(Waker::noop());
                let is_over = loop {
                    match link.poll_next(&mut cx, self.now) {
                        Poll::Ready(Next::Bytes(bytes)) => sent.extend_from_slice(&bytes),
                        Poll::Ready(Next::End) => break true,
                        Poll::Pending => break false,
                    }
                };
                self.put(&sent, &mut connection.down);
                !is_over
            }
        }
    }

    /// The replica's end. False: the connection is over.
    fn replicate(&mut self, connection: &mut Connection) -> bool {
        let mut bytes = connection.down.take(self.now);
        let mut said = Vec::new();
        let is_alive = loop {
            match self.receive(connection, &bytes, &mut said) {
                Ok(Some(rest)) => bytes = rest,
                Ok(None) => break true,
                Err(()) => break false,
            }
        };
        if matches!(connection.side, Replica::Streams) && self.now >= connection.acknowledged_at + 1000 {
            connection.acknowledged_at = self.now;
            self.acknowledge(connection.replica, &mut said);
        }
        self.put(&said, &mut connection.up);
        is_alive
    }

    fn acknowledge(&self, number: usize, said: &mut Vec<u8>) {
        say(said, &["REPLCONF", "ACK", &self.nodes[number].offset().to_string()]);
    }

    /// Takes what has come; returns what is to be taken in the next state.
    fn receive(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        said: &mut Vec<u8>,
    ) -> Result<Option<Vec<u8>>, ()> {
        let number = connection.replica;
        let side = mem::replace(&mut connection.side, Replica::Streams);
        match side {
            Replica::Agrees(mut handshake) => {
                let agreed = handshake.receive(bytes, said).map_err(|_| self.count("later answered"))?;
                let Some(agreed) = agreed else {
                    connection.side = Replica::Agrees(handshake);
                    return Ok(None);
                };
                match agreed {
                    Agreed::Continue { id } => {
                        let (instance, generation) = (&self.nodes[number].instance, self.nodes[number].generation);
                        instance.replication.go_on_as(instance, id, generation);
                        self.stage(number, LinkStage::Connected);
                        self.acknowledge(number, said);
                    }
                    Agreed::Full { id, offset, length } => {
                        self.stage(number, LinkStage::Sync);
                        connection.side = Replica::Receives { id, offset, body: Body::new(length), bytes: Vec::new() };
                    }
                }
                Ok(Some(handshake.rest()))
            }
            Replica::Receives { id, offset, mut body, bytes: mut snapshot } => {
                let rest = body.receive(bytes, |bytes| {
                    snapshot.extend_from_slice(bytes);
                    Ok::<_, ()>(())
                })?;
                let Some(rest) = rest else {
                    connection.side = Replica::Receives { id, offset, body, bytes: snapshot };
                    return Ok(None);
                };
                self.nodes[number].load(&snapshot, &id, offset).map_err(drop)?;
                self.stage(number, LinkStage::Connected);
                self.acknowledge(number, said);
                Ok(Some(rest.to_vec()))
            }
            Replica::Streams => {
                self.nodes[number].applier.receive(bytes).map_err(drop)?;
                if self.nodes[number].applier.is_asked() {
                    self.acknowledge(number, said);
                }
                Ok(None)
            }
        }
    }

    fn stage(&self, number: usize, stage: LinkStage) {
        let node = &self.nodes[number];
        if let Some(primary) = node.instance.replication.state().primary_of(node.generation) {
            primary.stage = stage;
        }
    }

    /// A connection is cut, wherever it is.
    fn lose(&mut self, connection: Connection) {
        let number = connection.replica;
        self.count(match connection.side {
            Replica::Agrees(_) => "cut in a handshake",
            Replica::Receives { .. } => "cut in a snapshot",
            Replica::Streams => "cut in the stream",
        });
        drop(connection);
        self.nodes[number].applier.cut();
        self.nodes[number].connects_at = self.now + self.random.below(1000) as u64;
        self.stage(number, LinkStage::Connect);
    }

    fn cut_one(&mut self) {
        if !self.connections.is_empty() {
            let at = self.random.below(self.connections.len());
            let connection = self.connections.swap_remove(at);
            self.lose(connection);
        }
    }

    fn lose_all_of(&mut self, number: usize) {
        while let Some(at) = self.connections.iter().position(|link| link.replica == number || link.primary == number) {
            let connection = self.connections.swap_remove(at);
            self.lose(connection);
        }
    }

    fn any(&mut self) -> usize {
        self.random.below(self.nodes.len())
    }

    fn save_one(&mut self) {
        let number = self.any();
        self.nodes[number].save();
        self.count("snapshot saved");
    }

    /// A server ends, and starts again from what it has saved: at its end, or some time before.
    fn end_one(&mut self, saves: bool) {
        let number = self.any();
        if saves {
            self.nodes[number].save();
        }
        self.lose_all_of(number);
        self.nodes[number].restart();
        let is_primary = number == self.primary;
        if is_primary && !saves {
            // The primary no longer promises data that it has lost.
            self.written.clear();
        }
        self.count(match (is_primary, saves) {
            (true, true) => "primary restarted",
            (true, false) => "primary killed",
            (false, true) => "replica restarted",
            (false, false) => "replica killed",
        });
    }

    /// A replica takes over. The others hear of it one after the other.
    fn promote(&mut self) {
        let number = self.any();
        if self.nodes[number].target.is_none() {
            return;
        }
        self.check_promises(number);
        self.lose_replica_end_of(number);
        self.nodes[number].follow(None);
        self.primary = number;
        self.written.clear();
        self.count("promotion");
        for other in 0..self.nodes.len() {
            if other != number && self.one_in(2) {
                self.turn(other, number);
            }
        }
    }

    /// All that it has acknowledged to the primary must be there.
    fn check_promises(&mut self, number: usize) {
        let replicas = self.nodes[self.primary].instance.replication.replicas();
        let link = self.connections.iter().find(|link| link.replica == number && link.primary == self.primary);
        let Some(Server::Sends(link)) = link.map(|connection| &connection.server) else { return };
        let id = link.client().id;
        let Some(acknowledged) =
            replicas.iter().find(|one| one.client.id == id && one.is_online()).map(|one| one.acknowledged())
        else {
            return;
        };
        let promised: Vec<_> = self.written.iter().filter(|(_, end)| *end <= acknowledged).map(|(n, _)| *n).collect();
        for serial in promised {
            self.count("promise kept by a promoted replica");
            let node = &mut self.nodes[number];
            node.ask(&["SELECT", "0"]);
            let answer = node.ask(&["EXISTS", &format!("serial:{serial}")]);
            assert_eq!(answer, ":1\r\n", "what was acknowledged is not there: {serial}");
        }
    }

    fn lose_replica_end_of(&mut self, number: usize) {
        if let Some(at) = self.connections.iter().position(|connection| connection.replica == number) {
            let connection = self.connections.swap_remove(at);
            self.lose(connection);
        }
    }

    fn turn(&mut self, number: usize, target: usize) {
        self.lose_replica_end_of(number);
        self.nodes[number].follow(Some(target));
    }

    /// One is told to follow another, unless that would close a circle.
    fn follow_another(&mut self) {
        let (number, target) = (self.any(), self.any());
        let mut at = Some(target);
        while let Some(next) = at {
            if next == number {
                return;
            }
            at = self.nodes[next].target;
        }
        if number != self.primary {
            self.turn(number, target);
        }
    }
}
