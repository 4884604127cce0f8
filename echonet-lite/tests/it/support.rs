//! A device with every kind of property, and a node of some that is driven by hexadecimal text.

use core::{net::SocketAddr, time::Duration};

use echonet_lite::node::{
    AnswerPort, Arrival, CommonProperties, Config, Destination, Handled, Identity, Instant, Node, Object, Outbox,
    PropertyAccess, Refused, put,
};
use echonet_lite::wire::Eoj;

pub const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

/// Bytes of hexadecimal text with spaces anywhere.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).expect("hexadecimal")).collect();
    assert!(digits.len().is_multiple_of(2), "half a byte in {text}");
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Text of bytes, to compare by eye.
pub fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Besides the common properties: B0 level 0..=100 (get, set, announce), B1 (set only), C0 four bytes (get), D0 250 bytes
/// (get), E0 (get, always refused), and for EOJs of class 0130 so many more that the maps are bitmaps.
#[derive(Clone, Debug)]
pub struct Device {
    pub eoj: Eoj,
    pub common: CommonProperties,
    pub level: u8,
    pub hidden: u8,
}

const FEW: PropertyAccess =
    CommonProperties::ACCESS.union(PropertyAccess::new(&[0xB0, 0xC0, 0xD0, 0xE0], &[0xB0, 0xB1], &[0xB0]));
const MANY: PropertyAccess = FEW.union(PropertyAccess::new(
    &[0x84, 0x85, 0x86, 0xA0, 0xA1, 0xBB, 0xC1, 0xCF, 0xF0, 0xFF],
    &[0x93, 0xA0, 0xA1, 0xA3, 0xA4, 0xA5, 0xC1, 0xCF, 0xD1, 0xD2, 0xE3, 0xF0, 0xF1, 0xFE, 0xFF],
    &[0xFF],
));

impl Device {
    pub fn new(eoj: Eoj) -> Self {
        Self { eoj, common: CommonProperties::new(MAKER), level: 50, hidden: 0 }
    }
}

impl Object for Device {
    fn eoj(&self) -> Eoj {
        self.eoj
    }

    fn access(&self) -> &PropertyAccess {
        if self.eoj.group() == 1 { &MANY } else { &FEW }
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        assert!(edt.len() >= 255, "an object always gets room for any value");
        match epc {
            0xB0 => put(edt, &[self.level]),
            0xC0 => put(edt, &[1, 2, 3, 4]),
            0xD0 => put(edt, &[0xDD; 250]),
            0xE0 => Err(Refused::NotNow),
            0xB1 => panic!("the node reads what the access rules forbid"),
            0x90.. => put(edt, &[epc]),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match (epc, edt) {
            (0xB0, &[level @ 0..=100]) => self.level = level,
            (0xB0, &[_]) => return Err(Refused::Value),
            (0xB1, &[hidden]) => self.hidden = hidden,
            (0xB0 | 0xB1, _) => return Err(Refused::Length),
            (0xC0 | 0xD0 | 0xE0, _) => panic!("the node writes what the access rules forbid"),
            (0x90.., _) => return Err(Refused::Value),
            _ => return self.common.set(epc, edt),
        }
        Ok(())
    }
}

/// Where a datagram goes, for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Back to the requester, at port 3610.
    Peer,
    /// Back to the requester, at its source port.
    PeerPort,
    All,
}

/// The requester: not at 3610, to see where answers go.
pub fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 9], 40_000))
}

/// Two lights and an air conditioner.
pub fn devices() -> Vec<Device> {
    [Eoj::new(2, 0x90, 1), Eoj::new(2, 0x90, 2), Eoj::new(1, 0x30, 1)].map(Device::new).into()
}

pub fn config() -> Config {
    Config::new(Identity::new(MAKER, 0x0102_0304))
}

/// A node whose answers are collected.
pub struct Bench {
    pub node: Node<Vec<Device>, 1024>,
    pub now: Instant,
    /// Longest datagram.
    pub size: usize,
}

impl Bench {
    /// A node that has announced itself (with TID 1).
    pub fn new(config: Config, devices: Vec<Device>) -> Self {
        let mut bench = Self { node: Node::with_store(config, devices), now: Instant::from_micros(1), size: 1472 };
        bench.settle();
        bench
    }

    pub fn standard() -> Self {
        Self::new(config(), devices())
    }

    /// The datagrams that the node sends at once for a datagram.
    pub fn handle(&mut self, arrival: Arrival, bytes: &[u8]) -> (Handled, Vec<(To, Vec<u8>)>) {
        let (mut buffer, mut sent) = (vec![0; self.size], Vec::new());
        let mut out = Outbox::new(&mut buffer, |to, datagram: &[u8]| sent.push((receiver(to), datagram.to_vec())));
        let handled = self.node.handle(self.now, peer(), arrival, bytes, &mut out);
        (handled, sent)
    }

    /// The datagrams that the node has to send now.
    pub fn poll(&mut self) -> Vec<(To, Vec<u8>)> {
        let (mut buffer, mut sent) = (vec![0; self.size], Vec::new());
        while let Some((to, length)) = self.node.poll_transmit(self.now, &mut buffer) {
            sent.push((receiver(to), buffer[..length].to_vec()));
        }
        sent
    }

    /// The datagrams that the node sends in the next second.
    pub fn settle(&mut self) -> Vec<(To, Vec<u8>)> {
        let (mut sent, end) = (self.poll(), self.now + Duration::from_secs(1));
        while let Some(due) = self.node.poll_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            sent.extend(self.poll());
        }
        sent
    }

    /// All that comes of a datagram, at once and within a second.
    pub fn exchange(&mut self, arrival: Arrival, bytes: &[u8]) -> Vec<(To, Vec<u8>)> {
        let mut sent = self.handle(arrival, bytes).1;
        sent.extend(self.settle());
        sent
    }

    /// The node is alive: it answers a Get as it always does.
    pub fn check_alive(&mut self) {
        let answer = self.exchange(Arrival::Unicast, &hex("1081 00FF 05FF01 029001 62 01 82 00"));
        let to = if self.node.config().answer_port == AnswerPort::Standard { To::Peer } else { To::PeerPort };
        assert_eq!(answer, [(to, hex("1081 00FF 029001 05FF01 72 01 82 04 00005204"))]);
    }
}

fn receiver(to: Destination) -> To {
    match to {
        Destination::Multicast => To::All,
        Destination::Unicast(address) if address == peer() => To::PeerPort,
        Destination::Unicast(address) => {
            assert_eq!((address.ip(), address.port()), (peer().ip(), 3610));
            To::Peer
        }
    }
}
