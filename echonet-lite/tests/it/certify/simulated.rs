//! A node behind a simulated network, for the examination: in virtual time, with bad weather, or with a mistake of its own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use echonet_lite::certify::{Report, Settings, Transport, certify_by};
use echonet_lite::class;
use echonet_lite::emulate::Emulated;
use echonet_lite::node::{Arrival, Config, Destination, Identity, Instant, Node, Outbox};

use crate::network::{Random, STORE, Weather};
use crate::support::MAKER;

/// The datagrams that a node sends: to all or to the asker.
pub type Sent = Vec<(bool, Vec<u8>)>;
/// Changes what a node sends for a datagram; for nothing, when it is something of its own accord.
pub type Mistake = Box<dyn Fn(&[u8], &mut Sent)>;

/// A node and the way to it.
pub struct Simulated {
    now: Instant,
    node: Node<Vec<Emulated>, STORE>,
    weather: Weather,
    random: Random,
    /// By time and order: to the node, to all, to the examination.
    flying: BinaryHeap<Reverse<Flight>>,
    count: u64,
    arrived: [VecDeque<Vec<u8>>; 2],
    mistake: Option<Mistake>,
    /// The time that its answers take besides.
    slowness: Duration,
}

/// When it lands, its number, where, and its bytes.
type Flight = (Instant, u64, Hop, Vec<u8>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hop {
    Node,
    All,
    Us,
}

impl Simulated {
    /// A node of one object of each of these classes.
    pub fn new(codes: &[&str], mandatory: bool, seed: u64, weather: Weather) -> Self {
        let of = |code: &&str| Emulated::new(class::by_name(code).unwrap(), 1, mandatory, MAKER, 7);
        let node = Node::with_store(Config::new(Identity::new(MAKER, 7)), codes.iter().map(of).collect());
        let (flying, arrived) = (BinaryHeap::new(), [VecDeque::new(), VecDeque::new()]);
        let (now, random, slowness) = (Instant::from_micros(1), Random::new(seed), Duration::ZERO);
        Self { now, node, weather, random, flying, count: 0, arrived, mistake: None, slowness }
    }

    pub fn mistaken(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    pub fn slow(self, slowness: Duration) -> Self {
        Self { slowness, ..self }
    }

    pub fn examined(mut self, settings: &Settings) -> Report {
        certify_by(&mut self, Ipv4Addr::new(192, 0, 2, 7).into(), settings).unwrap()
    }

    /// Puts a datagram on its way: lost, doubled, late.
    fn fly(&mut self, hop: Hop, bytes: &[u8]) {
        let slowness = if hop == Hop::Node { Duration::ZERO } else { self.slowness };
        for _ in 0..if self.random.percent(self.weather.doubled) { 2 } else { 1 } {
            if self.random.percent(self.weather.loss) {
                continue;
            }
            let at = self.now + slowness + self.random.time(Duration::ZERO, self.weather.latency);
            self.count += 1;
            self.flying.push(Reverse((at, self.count, hop, bytes.to_vec())));
        }
    }

    fn leave(&mut self, request: &[u8], mut sent: Sent) {
        if let Some(mistake) = &self.mistake {
            mistake(request, &mut sent);
        }
        for (to_all, bytes) in sent {
            self.fly(if to_all { Hop::All } else { Hop::Us }, &bytes);
        }
    }

    fn land(&mut self, hop: Hop, bytes: Vec<u8>) {
        match hop {
            Hop::All => self.arrived[1].push_back(bytes),
            Hop::Us => self.arrived[0].push_back(bytes),
            Hop::Node => {
                let (mut buffer, mut sent) = ([0; 1472], Vec::new());
                let from = SocketAddr::from(([192, 0, 2, 9], 3610));
                let mut out = Outbox::new(&mut buffer, |to, datagram: &[u8]| {
                    sent.push((to == Destination::Multicast, datagram.to_vec()));
                });
                self.node.handle(self.now, from, Arrival::Unicast, &bytes, &mut out);
                self.leave(&bytes, sent);
            }
        }
        self.poll();
    }

    /// Sends the node's own messages, and those that waited.
    fn poll(&mut self) {
        let mut buffer = [0; 1472];
        while let Some((to, length)) = self.node.poll_transmit(self.now, &mut buffer) {
            self.leave(&[], vec![(to == Destination::Multicast, buffer[..length].to_vec())]);
        }
    }
}

impl Transport for Simulated {
    fn now(&self) -> Instant {
        self.now
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        self.fly(Hop::Node, datagram);
        Ok(())
    }

    fn receive(&mut self, to_all: bool, until: Instant) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(bytes) = self.arrived[usize::from(to_all)].pop_front() {
                return Ok(Some(bytes));
            }
            let lands = self.flying.peek().map(|Reverse((at, ..))| *at);
            let next = [lands, self.node.poll_timeout()].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= until) else {
                self.now = until;
                return Ok(None);
            };
            self.now = self.now.max(at);
            if lands.is_some_and(|lands| lands <= self.now) {
                if let Some(Reverse((_, _, hop, bytes))) = self.flying.pop() {
                    self.land(hop, bytes);
                }
            } else {
                self.poll();
            }
        }
    }

    fn hears_all(&self) -> bool {
        true
    }
}
