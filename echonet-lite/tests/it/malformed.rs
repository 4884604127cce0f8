//! Whatever comes: no panic, no wrong answer, none missing, and the node still answers afterwards.

use echonet_lite::node::{Arrival, Node, Object, Outbox, PropertyAccess};
use echonet_lite::wire::{Eoj, Esv, Frame, Message, PROPERTY_MAP_MAX, Properties, PropertySet};

use crate::support::{Bench, Device, config, devices, hex, peer, text};

/// A frame of every service that a device answers, and some more.
const VALID: &[&str] = &[
    "1081 0001 05FF01 029001 62 01 80 00",
    "1081 0001 05FF01 029000 62 03 80 00 F7 00 9F 00",
    "1081 0001 05FF01 0EF001 62 04 D6 00 83 00 D7 00 9F 00",
    "1081 0001 05FF01 029001 61 02 B0 01 20 80 01 31",
    "1081 0001 05FF01 013001 60 02 B0 01 21 B1 01 31",
    "1081 0001 05FF01 013001 63 02 9D 00 C0 00",
    "1081 0001 05FF01 029002 6E 01 B0 01 22 02 B0 00 D0 00",
    "1081 0001 028801 029001 74 01 E7 02 0001",
    "1081 0001 029001 05FF01 72 01 80 01 30",
    "1081 0001 029001 05FF01 5E 00 00",
    "1082 0001 CAFE",
];

/// Datagrams that kill nodes of others.
#[test]
fn what_kills_others() {
    let mut big = hex("1081 0001 05FF01 029001 62 FF");
    big.resize(1400, 0xFF);
    let mut zeros = hex("1081 0001 05FF01 029001 61 01 80 FF");
    zeros.resize(1400, 0);
    for datagram in [
        hex("1081 0001 05FF01 029001 6E 01 80 00"),
        hex("1081 0001 05FF01 029001 62"),
        big,
        zeros,
        vec![0xFF; 1400],
        vec![0x10; 65_507],
        vec![],
    ] {
        for arrival in [Arrival::Unicast, Arrival::Multicast, Arrival::Connection] {
            let mut bench = Bench::standard();
            assert_eq!(bench.exchange(arrival, &datagram), [], "{} bytes", datagram.len());
            bench.check_alive();
        }
    }
}

#[test]
fn every_truncation() {
    for frame in VALID {
        let frame = hex(frame);
        for end in 0..frame.len() {
            let mut bench = Bench::standard();
            assert_eq!(bench.exchange(Arrival::Unicast, &frame[..end]), [], "{}", text(&frame[..end]));
            bench.check_alive();
        }
    }
}

#[test]
fn every_corruption_of_one_byte() {
    let mut judge = Judge::new();
    for frame in VALID {
        let frame = hex(frame);
        for at in 0..frame.len() {
            for change in 1..=255 {
                let mut corrupt = frame.clone();
                corrupt[at] ^= change;
                judge.check(&corrupt);
            }
        }
    }
}

/// How many random datagrams: `ECHONET_DATAGRAMS`, otherwise ten million.
fn datagrams() -> u64 {
    std::env::var("ECHONET_DATAGRAMS").map_or(10_000_000, |text| text.parse().expect("a number"))
}

#[test]
fn random_datagrams() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let valid: Vec<_> = VALID.iter().map(|frame| hex(frame)).collect();
    let (mut judge, mut datagram) = (Judge::new(), Vec::new());
    for _ in 0..datagrams() {
        random.datagram(&valid, &mut datagram);
        judge.check(&datagram);
    }
    let share = judge.answers * 100 / datagrams();
    assert!((10..90).contains(&share), "{share} % answered: the datagrams test too little");
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    fn fill(&mut self, datagram: &mut Vec<u8>, length: usize) {
        for _ in 0..length {
            datagram.push((self.next() >> 24) as u8);
        }
    }

    /// Noise; noise behind a good header; or a good frame with some bytes changed, cut off or added.
    fn datagram(&mut self, valid: &[Vec<u8>], datagram: &mut Vec<u8>) {
        datagram.clear();
        match self.below(4) {
            0 => {
                let length = self.below(64);
                self.fill(datagram, length);
            }
            1 => {
                datagram.extend_from_slice(&[0x10, 0x81, 0, 1, 5, 0xFF, 1, 2, 0x90, self.below(3) as u8]);
                datagram.push([0x60, 0x61, 0x62, 0x63, 0x6E][self.below(5)]);
                datagram.push(1 + self.below(3) as u8);
                for _ in 0..self.below(5) {
                    let value = self.below(3);
                    datagram.extend_from_slice(&[0x80 | self.next() as u8, value as u8]);
                    self.fill(datagram, value);
                }
            }
            _ => {
                datagram.extend_from_slice(&valid[self.below(valid.len())]);
                for _ in 0..self.below(4) {
                    let at = self.below(datagram.len());
                    datagram[at] = (self.next() >> 24) as u8;
                }
                match self.below(16) {
                    0 => datagram.truncate(self.below(datagram.len())),
                    1 => {
                        let length = self.below(20);
                        self.fill(datagram, length);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// A node, and what it may answer, worked out anew from the rules.
struct Judge {
    node: Node<Vec<Device>>,
    buffer: Vec<u8>,
    /// What the node sent for the current datagram, one behind the other, and where each ends.
    sent: Vec<u8>,
    ends: Vec<usize>,
    answers: u64,
}

impl Judge {
    fn new() -> Self {
        let node = Node::new(config(), devices());
        Self { node, buffer: vec![0; 1472], sent: Vec::new(), ends: Vec::new(), answers: 0 }
    }

    fn check(&mut self, datagram: &[u8]) {
        self.sent.clear();
        self.ends.clear();
        let (sent, ends) = (&mut self.sent, &mut self.ends);
        let mut out = Outbox::new(&mut self.buffer, |_, bytes: &[u8]| {
            sent.extend_from_slice(bytes);
            ends.push(sent.len());
        });
        self.node.handle(Default::default(), peer(), Arrival::Unicast, datagram, &mut out);
        let verdict = match Frame::parse(datagram) {
            Ok(Frame::Format1(message)) => self.judge(&message),
            Ok(Frame::Format2 { .. }) | Err(_) => self.ends.is_empty(),
        };
        assert!(verdict, "{} was answered by {}", text(datagram), text(&self.sent));
        self.answers += self.ends.len() as u64;
        while self.node.poll_transmit(Default::default(), &mut self.buffer).is_some() {}
    }

    /// Whether what was sent is what this message deserves.
    fn judge(&self, message: &Message<'_>) -> bool {
        let profile = Eoj::NODE_PROFILE;
        let eojs = self.node.objects().iter().map(Object::eoj).chain([profile]);
        let mut addressed = eojs.filter(|eoj| message.deoj().addresses(*eoj));
        let answerable = message.esv().is_request() || message.esv() == Esv::Infc;
        let mut start = 0;
        for &end in &self.ends {
            let Ok(Frame::Format1(answer)) = Frame::parse(&self.sent[start..end]) else { return false };
            start = end;
            // Objects answer in their order; after SetI those that accept are silent.
            let Some(_) = addressed.find(|&eoj| eoj == answer.seoj()) else { return false };
            let service = [message.esv().accepted(), message.esv().refused()].contains(&Some(answer.esv()));
            let returned = (answer.tid(), answer.deoj()) == (message.tid(), message.seoj());
            if !(answerable && service && returned && self.judge_lists(message, &answer)) {
                return false;
            }
        }
        // Nobody is missing.
        !answerable || message.esv() == Esv::SetI || addressed.next().is_none()
    }

    fn judge_lists(&self, message: &Message<'_>, answer: &Message<'_>) -> bool {
        let device = self.node.objects().iter().find(|device| device.eoj == answer.seoj());
        let good = match message.esv() {
            Esv::Get | Esv::InfReq => read(device, message, message.properties(), answer.properties()),
            Esv::SetI | Esv::SetC => written(message.properties(), answer.properties()),
            Esv::SetGet => {
                let good = written(message.properties(), answer.properties());
                let more = read(device, message, message.get_properties(), answer.get_properties());
                good.zip(more).map(|(good, more)| good && more)
            }
            _ => written(message.properties(), answer.properties()).map(|_| true),
        };
        good.is_some_and(|good| good != answer.esv().is_sna())
    }
}

/// Whether each written property comes back in order, without value or with that it had; then whether all were accepted.
/// Of a refused empty value nothing can be seen, so what was sent empty counts as refused.
fn written(asked: Properties<'_>, answered: Properties<'_>) -> Option<bool> {
    let same = asked.len() == answered.len()
        && asked.zip(answered).all(|(a, b)| a.epc == b.epc && (b.edt.is_empty() || a.edt == b.edt));
    same.then(|| asked.zip(answered).all(|(a, b)| b.edt.is_empty() && !a.edt.is_empty()))
}

/// Whether each read property comes back in order with its value, if there is room; then whether all were there.
fn read(
    device: Option<&Device>,
    message: &Message<'_>,
    asked: Properties<'_>,
    answered: Properties<'_>,
) -> Option<bool> {
    let complete = asked.len() == answered.len();
    let Some(device) = device else {
        // The profile: its values are tested elsewhere.
        let epcs = answered.zip(asked).all(|(answer, ask)| answer.epc == ask.epc);
        return epcs.then(|| complete && answered.into_iter().all(|answer| !answer.edt.is_empty()));
    };
    let access = device.access();
    let readable = if message.esv() == Esv::InfReq { access.get.union(access.announce) } else { access.get };
    let mut all = complete;
    for (answer, ask) in answered.zip(asked) {
        let mut edt = [0; 255];
        let length = readable.contains(ask.epc).then(|| value(device, ask.epc, &mut edt)).flatten();
        all &= length.is_some();
        if answer.epc != ask.epc || answer.edt != &edt[..length.unwrap_or(0)] {
            return None;
        }
    }
    Some(all)
}

fn value(device: &Device, epc: u8, edt: &mut [u8; 255]) -> Option<usize> {
    let PropertyAccess { get, set, announce } = *device.access();
    let map = |set: PropertySet, edt: &mut [u8; 255]| {
        set.encode_map(edt.first_chunk_mut::<PROPERTY_MAP_MAX>().expect("a map is shorter"))
    };
    match epc {
        0x9D => Some(map(announce, edt)),
        0x9E => Some(map(set, edt)),
        0x9F => Some(map(get, edt)),
        _ => device.get(epc, edt).ok(),
    }
}
