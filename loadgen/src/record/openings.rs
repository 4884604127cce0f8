//! The cost of connections before their first answer.

use serde::{Deserialize, Serialize};

use super::Latencies;
use crate::clock::Nanos;

/// How long connections took to open, for all that were opened in a run, its warm-up included. Datagram sockets do not
/// connect, so they have a first byte only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Openings {
    /// From the beginning of `connect` until the connection was established (TCP's three-way handshake).
    pub connect: Latencies,
    /// From then until TLS' handshake was complete; empty without TLS.
    pub tls: Latencies,
    /// From the sending of a connection's first request to the first byte that the server sent after it. Logins, upgrades
    /// and prefaces come before.
    pub first_byte: Latencies,
}

/// A part of a connection's opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningPart {
    /// The transport's connection.
    Connect,
    /// TLS' handshake.
    Tls,
    /// The first byte of an answer.
    FirstByte,
}

impl Openings {
    /// Adds a part of one connection's opening.
    pub(super) fn record(&mut self, part: OpeningPart, nanos: Nanos) {
        match part {
            OpeningPart::Connect => self.connect.record(nanos),
            OpeningPart::Tls => self.tls.record(nanos),
            OpeningPart::FirstByte => self.first_byte.record(nanos),
        }
    }

    /// Adds what `other` holds, and forgets it there.
    pub(super) fn take(&mut self, other: &mut Self) {
        let pairs = [
            (&mut self.connect, &mut other.connect),
            (&mut self.tls, &mut other.tls),
            (&mut self.first_byte, &mut other.first_byte),
        ];
        for (ours, theirs) in pairs.into_iter().filter(|(_, theirs)| theirs.count() > 0) {
            ours.merge(theirs);
            theirs.clear();
        }
    }

    /// The parts that were measured, by the names under which they are shown.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Latencies)> {
        let parts = [("Connect", &self.connect), ("TLS", &self.tls), ("First byte", &self.first_byte)];
        parts.into_iter().filter(|(_, latencies)| latencies.count() > 0)
    }
}
