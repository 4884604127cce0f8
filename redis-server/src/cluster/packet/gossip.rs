//! Gossip: a node's view of other nodes.

use super::header::IP;
use super::{Flags, field, text, u16_at, u32_at};
use crate::cluster::{ID, NodeId};

/// Bytes of an entry.
pub(super) const ENTRY: usize = 104;

/// The view of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gossip<'a> {
    /// Its name.
    pub id: NodeId,
    /// When it was pinged, in seconds of Unix time; 0 if it has answered.
    pub ping_sent: u32,
    /// When it answered last, in seconds of Unix time.
    pub pong_received: u32,
    /// Its address.
    pub ip: &'a str,
    /// The port that the cluster uses for clients.
    pub port: u16,
    /// The port of its bus.
    pub bus_port: u16,
    /// Its flags.
    pub flags: Flags,
    /// The other port for clients.
    pub other_port: u16,
}

impl<'a> Gossip<'a> {
    /// Reads an entry.
    pub(super) fn parse(bytes: &'a [u8; ENTRY]) -> Option<Self> {
        Some(Self {
            id: NodeId::parse(&bytes[..ID])?,
            ping_sent: u32_at(bytes, 40),
            pong_received: u32_at(bytes, 44),
            ip: text(&bytes[48..48 + IP])?,
            port: u16_at(bytes, 94),
            bus_port: u16_at(bytes, 96),
            flags: Flags(u16_at(bytes, 98)),
            other_port: u16_at(bytes, 100),
        })
    }

    pub(super) fn write(&self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(self.id.as_bytes());
        for number in [self.ping_sent, self.pong_received] {
            buf.extend_from_slice(&number.to_be_bytes());
        }
        buf.extend_from_slice(&field::<IP>(self.ip));
        for number in [self.port, self.bus_port, self.flags.0, self.other_port, 0] {
            buf.extend_from_slice(&number.to_be_bytes());
        }
    }
}
