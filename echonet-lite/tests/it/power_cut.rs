//! A building in virtual time: a thousand nodes lose power together, come back within two seconds, and announce themselves.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use echonet_lite::class;
use echonet_lite::controller::{Config, Controller, Event, NodeAddr, Request};
use echonet_lite::emulate::Emulated;
use echonet_lite::node::{Arrival, Destination, Identity, Instant, Node, Outbox};
use echonet_lite::wire::{Eoj, Esv, Frame};

use crate::network::Random;
use crate::support::MAKER;

const NODES: usize = 1000;
const SENSOR: Eoj = Eoj::new(0x00, 0x11, 1);
/// Lost, in percent, in each direction.
const LOSS: u64 = 1;
/// The time between two questions for the values of a node.
const POLL: Duration = Duration::from_secs(10);
/// How long the nodes are watched after the cut.
const RUN: Duration = Duration::from_secs(40);
/// Requests of an interview: the identity and objects of the node, and the maps of its object.
const INTERVIEW: usize = 2;
const STEP: Duration = Duration::from_millis(5);

type Device = Node<Vec<Emulated>, 512>;
/// When it arrives, its order, from or to which node, to it or from it, and its bytes.
type Flight = (Instant, u64, usize, bool, Vec<u8>);

fn device(at: usize) -> Device {
    let sensor = Emulated::new(class::by_name("0011").unwrap(), 1, true, MAKER, at as u64);
    Node::with_store(echonet_lite::node::Config::new(Identity::new(MAKER, at as u64 + 1)), vec![sensor])
}

fn address(at: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0x0A00_0001 + at as u32), 3610))
}

/// The controller, and the nodes that have power.
struct Building {
    now: Instant,
    random: Random,
    controller: Controller,
    nodes: Vec<Option<Device>>,
    flying: BinaryHeap<Reverse<Flight>>,
    count: u64,
    places: HashMap<SocketAddr, usize>,
    /// Requests on their way to each node, or answers on their way back, and the most of any node; all requests to each.
    open: Vec<HashSet<u16>>,
    most_open: usize,
    asked: Vec<usize>,
}

impl Building {
    fn new(config: Config, seed: u64) -> Self {
        Self {
            now: Instant::from_micros(1),
            random: Random::new(seed),
            controller: Controller::new(config),
            nodes: (0..NODES).map(|_| None).collect(),
            flying: BinaryHeap::new(),
            count: 0,
            places: (0..NODES).map(|at| (address(at), at)).collect(),
            open: vec![HashSet::new(); NODES],
            most_open: 0,
            asked: vec![0; NODES],
        }
    }

    /// No more on its way: it has arrived, or is lost.
    fn close(&mut self, at: usize, bytes: &[u8]) {
        if let Ok(Frame::Format1(message)) = Frame::parse(bytes) {
            self.open[at].remove(&message.tid());
        }
    }

    fn fly(&mut self, at: usize, to_node: bool, bytes: &[u8]) {
        if self.random.percent(LOSS) {
            return self.close(at, bytes);
        }
        // A node takes up to 50 ms to answer.
        let most = Duration::from_millis(if to_node { 2 } else { 50 });
        let lands = self.now + self.random.time(Duration::from_micros(200), most);
        self.count += 1;
        self.flying.push(Reverse((lands, self.count, at, to_node, bytes.to_vec())));
    }

    fn send_of_controller(&mut self) {
        let mut buffer = [0; 1472];
        while let Some((to, length)) = self.controller.poll_transmit(self.now, &mut buffer) {
            let bytes = buffer[..length].to_vec();
            let Destination::Unicast(to) = to else {
                (0..NODES).for_each(|at| self.fly(at, true, &bytes));
                continue;
            };
            let at = self.places[&to];
            if let Ok(Frame::Format1(message)) = Frame::parse(&bytes)
                && message.esv() == Esv::Get
            {
                self.asked[at] += 1;
                self.open[at].insert(message.tid());
                self.most_open = self.most_open.max(self.open[at].len());
            }
            self.fly(at, true, &bytes);
        }
    }

    fn send_of_node(&mut self, at: usize) {
        let mut buffer = [0; 1472];
        while let Some((_, length)) = self.nodes[at].as_mut().and_then(|node| node.poll_transmit(self.now, &mut buffer))
        {
            self.fly(at, false, &buffer[..length]);
        }
    }

    fn land(&mut self, at: usize, to_node: bool, bytes: &[u8]) {
        if !to_node {
            self.close(at, bytes);
            return self.controller.handle(self.now, address(at), bytes);
        }
        let Some(node) = &mut self.nodes[at] else { return self.close(at, bytes) };
        let (mut buffer, mut sent) = ([0; 1472], Vec::new());
        let mut out = Outbox::new(&mut buffer, |_, bytes: &[u8]| sent.push(bytes.to_vec()));
        node.handle(self.now, ([10, 1, 0, 1], 3610).into(), Arrival::Unicast, bytes, &mut out);
        sent.iter().for_each(|bytes| self.fly(at, false, bytes));
    }

    /// Lets time pass in steps, with the work of each.
    fn run(&mut self, time: Duration, mut work: impl FnMut(&mut Self)) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
                let Some(Reverse((_, _, at, to_node, bytes))) = self.flying.pop() else { break };
                self.land(at, to_node, &bytes);
            }
            for at in 0..NODES {
                let is_due = |node: &Device| node.poll_timeout().is_some_and(|due| due <= self.now);
                if self.nodes[at].as_ref().is_some_and(is_due) {
                    self.send_of_node(at);
                }
            }
            work(self);
            self.send_of_controller();
        }
    }

    fn power_up(&mut self, at: usize) {
        self.nodes[at] = Some(device(at));
        self.send_of_node(at);
    }

    /// Asks every node for its values once in a while, as a bridge does; returns the nodes that answered.
    fn poll(&mut self, step: usize, answered: &mut HashSet<NodeAddr>) {
        let steps = (POLL.as_micros() / STEP.as_micros()) as usize;
        for at in (0..NODES).filter(|at| at % steps == step % steps) {
            let addr = NodeAddr::from(address(at));
            if self.controller.node(addr).is_some_and(|info| info.is_ready) {
                let _ = self.controller.request(self.now, addr, &Request::get(SENSOR, &[0x80, 0xE0]));
            }
        }
        while let Some(event) = self.controller.poll_event() {
            if let Event::Done { result: Ok(answer), .. } = event {
                answered.insert(answer.node);
            }
        }
    }

    fn ready(&self) -> usize {
        self.controller.nodes().filter(|info| info.is_ready && !info.is_lost).count()
    }
}

#[test]
fn a_thousand_nodes_are_right_within_30_s_of_a_power_cut() {
    (0..4).for_each(cut_power);
}

/// `cargo test --release -p echonet-lite --features emulate --test it power_cut -- --ignored --nocapture`
#[test]
#[ignore = "two hundred power cuts take minutes"]
fn two_hundred_power_cuts() {
    (0..200).for_each(cut_power);
}

fn cut_power(seed: u64) {
    let config = Config { max_nodes: 2 * NODES, max_requests: 16_384, max_events: 16_384, ..Config::new(3) };
    let mut building = Building::new(config.clone(), seed);
    let (mut step, mut answered) = (0, HashSet::new());
    (0..NODES).for_each(|at| building.power_up(at));
    // A program searches again now and then; a search and an announcement can both be lost.
    for _ in 0..2 {
        building.controller.discover(building.now).unwrap();
        building.run(Duration::from_secs(40), |building| {
            step += 1;
            building.poll(step, &mut answered);
        });
    }
    assert_eq!((building.ready(), answered.len()), (NODES, NODES), "{seed}");

    // Without power for half a minute, in which the polls go on.
    building.nodes.iter_mut().for_each(|node| *node = None);
    building.run(Duration::from_secs(30), |building| {
        step += 1;
        building.poll(step, &mut answered);
    });
    building.open.iter_mut().for_each(HashSet::clear);
    building.asked.fill(0);
    building.most_open = 0;
    answered.clear();

    let (begun, mut up, mut right) = (building.now, 0, None);
    building.run(RUN, |building| {
        let back = (building.now.since(begun).as_micros() as usize * NODES / 2_000_000).min(NODES);
        (up..back).for_each(|at| building.power_up(at));
        up = back;
        step += 1;
        building.poll(step, &mut answered);
        if right.is_none() && answered.len() == NODES && building.ready() == NODES {
            right = Some(building.now.since(begun));
        }
    });
    let most = building.asked.iter().max().unwrap();
    println!(
        "{seed}: right after {right:?}; at most {} open requests and {most} requests to a node",
        building.most_open
    );
    assert!(right.is_some_and(|time| time <= Duration::from_secs(30)), "{seed}: {right:?}, {} ready", building.ready());
    // One after the other.
    assert!(building.most_open <= usize::from(config.window), "{seed}: {}", building.most_open);
    // The interview and the polls, each sent again no more often than the controller may.
    let polls = (RUN.as_secs() / POLL.as_secs()) as usize;
    assert!(*most <= (INTERVIEW + polls) * usize::from(config.tries), "{seed}: {most}");
}
