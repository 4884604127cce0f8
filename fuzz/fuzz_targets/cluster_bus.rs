//! Anything on the cluster's bus: nothing panics, what strangers say changes nothing, and the node's file can be read again.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use redis_server::cluster::packet::{Body, Draft, Extension, Flags, Gossip, Header, Kind, Packet};
use redis_server::cluster::{Action, Link, Machine, Millis, NodeId, Settings, SlotSet};

#[derive(Arbitrary, Debug)]
enum Event<'a> {
    /// Bytes as they are, on any connection.
    Bytes(u8, &'a [u8]),
    /// A packet that is right but for one byte, perhaps.
    Packet {
        link: u8,
        kind: u8,
        sender: u8,
        primary: Option<u8>,
        epochs: (u8, u8),
        flags: u16,
        about: Vec<(u8, u16)>,
        damage: (u16, u8),
    },
    /// Time passes.
    Pass(u16),
    /// A connection ends.
    Close(u8),
}

const START: Millis = 1_700_000_000_000;

/// This node is the first, the last is nobody's that is known.
fn id(at: u8) -> NodeId {
    let digit = b"abcd9"[usize::from(at) % 5];
    NodeId::parse(&[digit; 40]).expect("a digit")
}

fn file() -> String {
    let line = |at: u8, flags: &str, slots: &str| {
        let primary = if at == 3 { id(0).to_string() } else { "-".to_owned() };
        let epoch = if at == 3 { 1 } else { at + 1 };
        format!("{} 10.0.0.{at}:6379@16379 {flags} {primary} 0 0 {epoch} connected {slots}\n", id(at))
    };
    let lines =
        [line(0, "myself,master", "0-9"), line(1, "master", "10-19"), line(2, "master", "20-29"), line(3, "slave", "")];
    format!("{}vars currentEpoch 4 lastVoteEpoch 3\n", lines.concat())
}

fn packet(
    kind: Kind,
    sender: u8,
    primary: Option<u8>,
    (epoch, config_epoch): (u8, u8),
    flags: u16,
    about: &[(u8, u16)],
) -> Vec<u8> {
    let slots: SlotSet = about.iter().map(|(_, slot)| slot % 40).collect();
    let mut draft = Draft::new(&Header {
        kind,
        sender: id(sender),
        current_epoch: u64::from(epoch),
        config_epoch: u64::from(config_epoch),
        offset: u64::from(flags),
        slots: slots.bitmap(),
        primary: primary.map(id),
        ip: None,
        port: 6379,
        other_port: 0,
        bus_port: 16_379,
        flags: Flags(flags),
        is_down: false,
        message_flags: flags as u8 | 4,
        count: 0,
        extensions: 0,
    });
    match kind {
        Kind::Ping | Kind::Pong | Kind::Meet => {
            for (other, flags) in about {
                let (id, flags) = (id(*other), Flags(*flags));
                let gossip = Gossip {
                    id,
                    ping_sent: 0,
                    pong_received: 9,
                    ip: "10.0.0.9",
                    port: 1,
                    bus_port: 2,
                    flags,
                    other_port: 0,
                };
                draft.gossip(&gossip);
            }
            draft.extension(&Extension::Shard(id(sender)));
            if let Some((other, ttl)) = about.first() {
                draft.extension(&Extension::Forgotten { id: id(*other), ttl: u64::from(ttl % 3) });
            }
        }
        Kind::Fail => draft.fail(id(config_epoch)),
        Kind::Publish | Kind::PublishShard => draft.publish(b"channel", b"message"),
        Kind::Update => draft.update(u64::from(config_epoch), id(epoch), &slots),
        Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover | Kind::Module => {}
    }
    draft.finish()
}

struct Node {
    machine: Machine,
    now: Millis,
    /// All connections, and whether they came from others.
    links: Vec<(Link, bool)>,
}

impl Node {
    fn settle(&mut self) {
        while let Some(action) = self.machine.poll() {
            match action {
                Action::Connect { link, ip, .. } => {
                    self.links.push((link, false));
                    self.machine.opened(link, &ip, "10.0.0.0", self.now);
                }
                Action::Close { link } => self.links.retain(|(other, _)| *other != link),
                Action::Send { bytes, .. } => assert!(Packet::parse(&bytes).is_some(), "what it says is a packet"),
                Action::PauseWrites { number, .. } => self.machine.writes_paused(number, 7, self.now),
                _ => {}
            }
        }
    }

    fn hear(&mut self, at: u8, bytes: &[u8]) {
        if self.links.is_empty() || at == 0 {
            let link = self.machine.accept("10.0.0.8", "10.0.0.0", self.now).expect("there is room");
            self.links.push((link, true));
        }
        let (link, is_inbound) = self.links[usize::from(at) % self.links.len()];
        let packet = Packet::parse(bytes);
        let sender = packet.as_ref().map(|packet| packet.header.sender.to_string());
        let is_member = sender.is_none_or(|id| self.machine.nodes_text(false).contains(&id));
        let before = (is_inbound && !is_member).then(|| self.machine.saved_text());
        self.machine.receive(link, bytes, self.now);
        self.settle();
        if let Some(before) = before {
            assert_eq!(self.machine.saved_text(), before, "a stranger has changed something");
        }
        if let Some(Packet { body: Body::Ping(ping), .. }) = packet {
            assert!(ping.gossip().count() <= usize::from(u16::MAX));
        }
        // The rest of a packet that has not come must not wait for the next one.
        if Packet::parse(bytes).is_none() {
            self.machine.closed(link, false, self.now);
            self.links.retain(|(other, _)| *other != link);
        }
    }
}

fuzz_target!(|events: Vec<Event<'_>>| {
    let settings = Settings {
        node_timeout: 1000,
        require_full_coverage: false,
        announce_ip: "10.0.0.0".into(),
        ..Settings::default()
    };
    let machine = Machine::new(settings.clone(), [1, 2, 3, 4], Some(&file()), START).expect("a good file");
    let mut node = Node { machine, now: START, links: Vec::new() };
    for event in events {
        match event {
            Event::Bytes(link, bytes) => node.hear(link, bytes),
            Event::Packet { link, kind, sender, primary, epochs, flags, about, damage } => {
                let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
                let mut bytes = packet(kind, sender, primary, epochs, flags, &about);
                let at = usize::from(damage.0) % bytes.len();
                bytes[at] ^= damage.1;
                node.hear(link, &bytes);
            }
            Event::Pass(time) => {
                node.now += Millis::from(time % 3000);
                node.machine.tick(node.now);
                node.settle();
            }
            Event::Close(at) if !node.links.is_empty() => {
                let (link, _) = node.links.remove(usize::from(at) % node.links.len());
                node.machine.closed(link, false, node.now);
                node.settle();
            }
            Event::Close(_) => {}
        }
        let text = node.machine.saved_text();
        assert!(
            Machine::new(settings.clone(), [1, 2, 3, 4], Some(&text), node.now).is_ok(),
            "its file is none:\n{text}"
        );
    }
});
