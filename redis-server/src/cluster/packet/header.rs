//! The header.

use super::{HAS_EXTENSIONS, Kind, SIGNATURE, VERSION, field, text, u16_at, u32_at, u64_at};
use crate::cluster::{BITMAP, ID, NodeId};

/// Bytes of a header.
pub const HEADER: usize = 2256;

/// Bytes of an address.
pub(super) const IP: usize = 46;

/// Where what is stands.
mod at {
    pub(super) const LENGTH: usize = 4;
    pub(super) const VERSION: usize = 8;
    pub(super) const PORT: usize = 10;
    pub(super) const KIND: usize = 12;
    pub(super) const COUNT: usize = 14;
    pub(super) const CURRENT_EPOCH: usize = 16;
    pub(super) const CONFIG_EPOCH: usize = 24;
    pub(super) const OFFSET: usize = 32;
    pub(super) const SENDER: usize = 40;
    pub(super) const SLOTS: usize = 80;
    pub(super) const PRIMARY: usize = 2128;
    pub(super) const IP: usize = 2168;
    pub(super) const EXTENSIONS: usize = 2214;
    pub(super) const OTHER_PORT: usize = 2246;
    pub(super) const BUS_PORT: usize = 2248;
    pub(super) const FLAGS: usize = 2250;
    pub(super) const STATE: usize = 2252;
    pub(super) const MESSAGE_FLAGS: usize = 2253;
}

/// The type field of a packet.
pub(super) fn kind(packet: &[u8]) -> Option<Kind> {
    let number = packet.get(at::KIND..)?.first_chunk()?;
    Kind::ALL.get(usize::from(u16::from_be_bytes(*number))).copied()
}

/// The flags of a node, as bits in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// It has slots of its own, or could have.
    pub const PRIMARY: Self = Self(1);
    /// It follows a primary.
    pub const REPLICA: Self = Self(2);
    /// It may have failed: it does not answer the one who says so.
    pub const MAYBE_FAILED: Self = Self(4);
    /// It has failed: the majority says so.
    pub const FAILED: Self = Self(8);
    /// It is the one who says so.
    pub const MYSELF: Self = Self(16);
    /// Its name is not known yet.
    pub const HANDSHAKE: Self = Self(32);
    /// Its address is not known.
    pub const NO_ADDRESS: Self = Self(64);
    /// It is to be sent a MEET.
    pub const MEET: Self = Self(128);
    /// It is a primary that has had replicas, or has come from another: replicas of others may move to it.
    pub const MIGRATE_TO: Self = Self(256);
    /// It will not try to take over.
    pub const NO_FAILOVER: Self = Self(512);
    /// It knows extensions.
    pub const EXTENSIONS: Self = Self(1024);

    /// Whether one of these is set.
    pub fn any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// These too.
    #[must_use]
    pub const fn and(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// But for these.
    #[must_use]
    pub fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// Those that are among these.
    #[must_use]
    pub fn only(self, flags: Self) -> Self {
        Self(self.0 & flags.0)
    }

    /// Sets these.
    pub fn set(&mut self, flags: Self) {
        *self = self.and(flags);
    }

    /// Clears these; whether one of them was set.
    pub fn clear(&mut self, flags: Self) -> bool {
        let had = self.any(flags);
        *self = self.without(flags);
        had
    }
}

/// The header of every packet, which describes its sender.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    /// The type of the packet.
    pub kind: Kind,
    /// Its name.
    pub sender: NodeId,
    /// The highest epoch that it has seen.
    pub current_epoch: u64,
    /// The epoch since which it, or its primary, has its slots.
    pub config_epoch: u64,
    /// Where its stream of changes is.
    pub offset: u64,
    /// Its slots, or its primary's.
    pub slots: &'a [u8; BITMAP],
    /// The primary that it follows.
    pub primary: Option<NodeId>,
    /// Its address, if it says one.
    pub ip: Option<&'a str>,
    /// The port that the cluster uses for clients.
    pub port: u16,
    /// Its port for clients with TLS where the cluster uses none, and the other way round.
    pub other_port: u16,
    /// The port of its bus.
    pub bus_port: u16,
    /// Its flags.
    pub flags: Flags,
    /// Whether the cluster is down, as it sees it.
    pub is_down: bool,
    /// [`IS_PAUSED`](super::IS_PAUSED), [`FORCE_VOTE`](super::FORCE_VOTE), [`HAS_EXTENSIONS`].
    pub message_flags: u8,
    /// How many entries of gossip follow; a draft counts them itself.
    pub count: u16,
    /// How many extensions follow; a draft counts them itself.
    pub extensions: u16,
}

impl<'a> Header<'a> {
    /// Whether extensions may follow.
    pub fn has_extensions(&self) -> bool {
        self.message_flags & HAS_EXTENSIONS != 0
    }

    /// Reads the header of a packet of `length` bytes.
    pub(super) fn parse(bytes: &'a [u8; HEADER], length: usize) -> Option<Self> {
        let is_right = bytes.starts_with(&SIGNATURE)
            && u32_at(bytes, at::LENGTH) as usize == length
            && u16_at(bytes, at::VERSION) == VERSION;
        is_right.then_some(())?;
        let name = |at: usize| bytes[at..].first_chunk::<ID>();
        let primary = name(at::PRIMARY)?;
        let primary = match primary.iter().all(|byte| *byte == 0) {
            true => None,
            false => Some(NodeId::new(primary)?),
        };
        Some(Self {
            kind: kind(bytes)?,
            sender: NodeId::new(name(at::SENDER)?)?,
            current_epoch: u64_at(bytes, at::CURRENT_EPOCH),
            config_epoch: u64_at(bytes, at::CONFIG_EPOCH),
            offset: u64_at(bytes, at::OFFSET),
            slots: bytes[at::SLOTS..].first_chunk()?,
            primary,
            ip: Some(text(&bytes[at::IP..at::IP + IP])?).filter(|ip| !ip.is_empty()),
            port: u16_at(bytes, at::PORT),
            other_port: u16_at(bytes, at::OTHER_PORT),
            bus_port: u16_at(bytes, at::BUS_PORT),
            flags: Flags(u16_at(bytes, at::FLAGS)),
            is_down: bytes[at::STATE] != 0,
            message_flags: bytes[at::MESSAGE_FLAGS],
            count: u16_at(bytes, at::COUNT),
            extensions: u16_at(bytes, at::EXTENSIONS),
        })
    }

    pub(super) fn write(&self, buf: &mut Vec<u8>) {
        buf.extend_from_slice(&SIGNATURE);
        buf.extend_from_slice(&[0; 4]);
        let kind = Kind::ALL.iter().position(|kind| *kind == self.kind).expect("all are there") as u16;
        for number in [VERSION, self.port, kind, 0] {
            buf.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.current_epoch, self.config_epoch, self.offset] {
            buf.extend_from_slice(&number.to_be_bytes());
        }
        buf.extend_from_slice(self.sender.as_bytes());
        buf.extend_from_slice(self.slots);
        buf.extend_from_slice(self.primary.as_ref().map_or(&[0; ID], NodeId::as_bytes).as_slice());
        buf.extend_from_slice(&field::<IP>(self.ip.unwrap_or_default()));
        buf.resize(at::OTHER_PORT, 0);
        for number in [self.other_port, self.bus_port, self.flags.0] {
            buf.extend_from_slice(&number.to_be_bytes());
        }
        buf.extend_from_slice(&[u8::from(self.is_down), self.message_flags, 0, 0]);
        debug_assert_eq!(buf.len(), HEADER);
    }
}

/// One more entry of gossip.
pub(super) fn count(packet: &mut [u8]) {
    increment(packet, at::COUNT);
}

/// One more extension.
pub(super) fn count_extension(packet: &mut [u8]) {
    increment(packet, at::EXTENSIONS);
}

fn increment(packet: &mut [u8], at: usize) {
    let count = u16_at(packet, at) + 1;
    packet[at..at + 2].copy_from_slice(&count.to_be_bytes());
}

/// Writes the length.
pub(super) fn close(packet: &mut [u8]) {
    let length = packet.len() as u32;
    packet[at::LENGTH..at::LENGTH + 4].copy_from_slice(&length.to_be_bytes());
}
