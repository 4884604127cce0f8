//! One node, whose others are played by the test.

mod admin;
mod bus;
mod mutation;
mod persist;

use bytes::Bytes;

use super::super::packet::{Body, Draft, Flags, HAS_EXTENSIONS, Header, Kind, Packet};
use super::super::{Action, Link, Machine, Millis, NodeId, Routing, Settings, SlotSet};

const START: Millis = 1_700_000_000_000;

/// The names of nodes: forty times a digit.
fn id(digit: char) -> NodeId {
    NodeId::parse(digit.to_string().repeat(40).as_bytes()).expect("a digit")
}

/// A node that is `a`, of three primaries with 10 slots each, and the replicas `d` of `a` and `e` of `b`.
const LINES: &str = "\
A 10.0.0.1:6379@16379 master - 0 0 1 connected 0-9
B 10.0.0.2:6379@16379 master - 0 0 2 connected 10-19
C 10.0.0.3:6379@16379 master - 0 0 3 connected 20-29
D 10.0.0.4:6379@16379 slave A 0 0 1 connected
E 10.0.0.5:6379@16379 slave B 0 0 2 connected
vars currentEpoch 5 lastVoteEpoch 4
";

/// That file, of the node `me`, with names as they are.
fn file(me: char) -> String {
    let mut text = String::new();
    for line in LINES.lines() {
        let line = match line.starts_with(me.to_ascii_uppercase()) {
            true => line.replacen(" master", " myself,master", 1).replacen(" slave", " myself,slave", 1),
            false => line.to_owned(),
        };
        for word in line.split(' ') {
            let is_name = word.len() == 1 && word.chars().all(|c| c.is_ascii_uppercase());
            text.push_str(&if is_name { word.to_lowercase().repeat(40) } else { word.to_owned() });
            text.push(' ');
        }
        text.push('\n');
    }
    text
}

fn settings() -> Settings {
    Settings {
        node_timeout: 1000,
        require_full_coverage: false,
        announce_ip: "10.0.0.1".to_owned(),
        ..Settings::default()
    }
}

/// A node and what it has asked for.
struct Bench {
    machine: Machine,
    now: Millis,
    actions: Vec<Action>,
    /// Connections from others, by their names.
    links: Vec<(char, Link)>,
    /// Its own connections, by the other's name.
    outbound: Vec<(char, Link)>,
}

impl Bench {
    fn new(me: char) -> Self {
        Self::with(me, settings())
    }

    fn with(me: char, settings: Settings) -> Self {
        let machine = Machine::new(settings, [1, 2, 3, 4], Some(&file(me)), START).expect("a good file");
        let (links, outbound) = (Vec::new(), Vec::new());
        let mut bench = Self { machine, now: START, actions: Vec::new(), links, outbound };
        for (digit, ip) in [('a', 1), ('b', 2), ('c', 3), ('d', 4), ('e', 5)] {
            let link = bench.machine.accept(&format!("10.0.0.{ip}"), "10.0.0.1", START).expect("there is room");
            bench.links.push((digit, link));
            if digit != me {
                // Each node identifies itself, because a link that stays anonymous is closed.
                bench.machine.receive(link, &Word::of(digit).say(Kind::Pong), START);
            }
        }
        bench.pass(1);
        bench.reconnect(' ');
        bench.idle(' ', 2500);
        bench.take();
        bench
    }

    fn pass(&mut self, time: Millis) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.machine.deadline().max(self.now + 1).min(end);
            self.machine.tick(self.now);
        }
        self.take_in();
    }

    /// Makes the connections that were asked for, but for one.
    fn reconnect(&mut self, silent: char) {
        let (connects, others) =
            std::mem::take(&mut self.actions).into_iter().partition(|action| matches!(action, Action::Connect { .. }));
        self.actions = others;
        let connects: Vec<Action> = connects;
        for action in connects {
            let Action::Connect { link, ip, .. } = &action else { continue };
            let digit = char::from(b'a' + ip.bytes().last().expect("it has digits") - b'1');
            if digit == silent {
                continue;
            }
            self.outbound.retain(|(other, _)| *other != digit);
            self.outbound.push((digit, *link));
            self.outbound.sort_unstable();
            self.machine.opened(*link, ip, "10.0.0.1", self.now);
        }
    }

    /// Time in which all but one answer.
    fn idle(&mut self, silent: char, time: Millis) {
        for _ in 0..time / 100 {
            self.pass(100);
            self.reconnect(silent);
            for (digit, _) in self.outbound.clone().into_iter().filter(|(digit, _)| *digit != silent) {
                self.answer(digit);
            }
        }
    }

    fn take_in(&mut self) {
        while let Some(action) = self.machine.poll() {
            self.actions.push(action);
        }
    }

    /// The actions since the last call.
    fn take(&mut self) -> Vec<Action> {
        self.take_in();
        std::mem::take(&mut self.actions)
    }

    fn link(&self, digit: char) -> Link {
        self.links.iter().find(|(other, _)| *other == digit).expect("it has one").1
    }

    fn own_link(&self, digit: char) -> Link {
        self.outbound.iter().find(|(other, _)| *other == digit).expect("it has one").1
    }

    fn hear(&mut self, digit: char, bytes: &[u8]) {
        let link = self.link(digit);
        self.machine.receive(link, bytes, self.now);
        self.take_in();
    }

    /// A PONG on the node's own connection.
    fn answer(&mut self, digit: char) {
        let link = self.own_link(digit);
        let bytes = Word::of(digit).say(Kind::Pong);
        self.machine.receive(link, &bytes, self.now);
        self.take_in();
    }

    fn routing(&self) -> std::sync::Arc<Routing> {
        self.machine.routing()
    }

    fn owner(&self, slot: u16) -> Option<NodeId> {
        let routing = self.routing();
        routing.node(routing.owners[usize::from(slot)]).map(|node| node.id)
    }
}

/// The header fields of the packets that a test node sends.
#[derive(Clone)]
struct Word {
    sender: NodeId,
    primary: Option<NodeId>,
    slots: SlotSet,
    epoch: u64,
    config_epoch: u64,
    offset: u64,
    message_flags: u8,
    flags: Flags,
}

impl Word {
    /// As the file says it.
    fn of(digit: char) -> Self {
        let at = digit as u16 - 'a' as u16;
        let primary = match digit {
            'd' => Some('a'),
            'e' => Some('b'),
            _ => None,
        };
        let owner = primary.map_or(at, |primary| primary as u16 - 'a' as u16);
        Self {
            sender: id(digit),
            primary: primary.map(id),
            slots: if owner < 3 { (10 * owner..10 * owner + 10).collect() } else { SlotSet::EMPTY },
            epoch: 5,
            config_epoch: u64::from(owner) + 1,
            offset: 0,
            message_flags: HAS_EXTENSIONS,
            flags: if primary.is_some() { Flags::REPLICA } else { Flags::PRIMARY },
        }
    }

    fn draft(&self, kind: Kind) -> Draft {
        Draft::new(&Header {
            kind,
            sender: self.sender,
            current_epoch: self.epoch,
            config_epoch: self.config_epoch,
            offset: self.offset,
            slots: self.slots.bitmap(),
            primary: self.primary,
            ip: None,
            port: 6379,
            other_port: 0,
            bus_port: 16_379,
            flags: self.flags,
            is_down: false,
            message_flags: self.message_flags,
            count: 0,
            extensions: 0,
        })
    }

    fn say(&self, kind: Kind) -> Vec<u8> {
        self.draft(kind).finish()
    }
}

/// The packets of a kind among actions, and where they go.
fn sent(actions: &[Action], kind: Kind) -> Vec<(Link, Bytes)> {
    let packets = actions.iter().filter_map(|action| match action {
        Action::Send { link, bytes } => Some((*link, bytes.clone())),
        _ => None,
    });
    packets.filter(|(_, bytes)| Packet::parse(bytes).expect("a packet").header.kind == kind).collect()
}

fn body(bytes: &[u8]) -> Body<'_> {
    Packet::parse(bytes).expect("a packet").body
}
