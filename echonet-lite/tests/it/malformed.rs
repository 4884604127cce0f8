//! Malformed datagrams: no panic, no wrong answer, none missing, and the node still answers afterwards.

use echonet_lite::node::Arrival;

use crate::judge::Judge;
use crate::support::{Bench, hex, text};

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
fn datagrams_that_crash_other_nodes_are_ignored() {
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
