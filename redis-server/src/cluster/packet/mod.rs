//! The packets of the cluster bus: a header of 2,256 bytes, all numbers big-endian, and a body by its type.
//!
//! [`Packet::parse`] checks every length and every name once, without a copy. Bytes with an error are no packet. Types that only modules
//! use are known and ignored. Valkey's light headers are sent only to nodes that say that they know them; we do not.

mod extension;
mod gossip;
mod header;
#[cfg(test)]
mod tests;

pub use extension::Extension;
pub use gossip::Gossip;
pub use header::{Flags, HEADER, Header};

use super::{BITMAP, ID, NodeId, SlotSet};
use gossip::ENTRY;

/// Bytes in front of everything else: the signature and the length.
pub const PREFIX: usize = 8;

/// With this a packet begins.
pub const SIGNATURE: [u8; 4] = *b"RCmb";

/// The version of this protocol.
const VERSION: u16 = 1;

/// The extensions follow; in any packet: the sender knows what they are.
pub const HAS_EXTENSIONS: u8 = 4;
/// The sender has stopped its clients' writes, because a replica is to take over.
pub const IS_PAUSED: u8 = 1;
/// The vote is asked for although the primary is alive.
pub const FORCE_VOTE: u8 = 2;

/// The type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Are you there?
    Ping,
    /// I am here.
    Pong,
    /// A PING that also asks to be made a member.
    Meet,
    /// A node has failed, by the word of the majority.
    Fail,
    /// A message for subscribers.
    Publish,
    /// A replica asks for votes.
    AuthRequest,
    /// A vote.
    AuthAck,
    /// Slots have another owner than you think.
    Update,
    /// A replica asks its primary to change places.
    ManualFailover,
    /// Of a module.
    Module,
    /// A message for subscribers of a shard channel.
    PublishShard,
}

impl Kind {
    /// All, by their numbers.
    pub const ALL: [Self; 11] = [
        Self::Ping,
        Self::Pong,
        Self::Meet,
        Self::Fail,
        Self::Publish,
        Self::AuthRequest,
        Self::AuthAck,
        Self::Update,
        Self::ManualFailover,
        Self::Module,
        Self::PublishShard,
    ];

    /// The type field of a packet, whatever else is in it.
    pub fn of(packet: &[u8]) -> Option<Self> {
        header::kind(packet)
    }

    /// As CLUSTER INFO counts it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Meet => "meet",
            Self::Fail => "fail",
            Self::Publish => "publish",
            Self::AuthRequest => "auth-req",
            Self::AuthAck => "auth-ack",
            Self::Update => "update",
            Self::ManualFailover => "mfstart",
            Self::Module => "module",
            Self::PublishShard => "publishshard",
        }
    }
}

/// A packet that is whole and right.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// The sender and its state.
    pub header: Header<'a>,
    /// The content.
    pub body: Body<'a>,
}

/// The content of a packet.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// PING, PONG and MEET: gossip about other nodes, and the sender's own extensions.
    Ping(Ping<'a>),
    /// This node has failed.
    Fail(NodeId),
    /// A message.
    Publish {
        /// The channel.
        channel: &'a [u8],
        /// The message.
        message: &'a [u8],
    },
    /// The owner of these slots, and the epoch since when it owns them.
    Update {
        /// The epoch.
        config_epoch: u64,
        /// The owner.
        id: NodeId,
        /// The slots.
        slots: &'a [u8; BITMAP],
    },
    /// The header says all.
    Plain,
}

/// The body of a PING.
#[derive(Clone, Copy, Debug)]
pub struct Ping<'a> {
    entries: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> Ping<'a> {
    /// The gossip about other nodes; entries without a node's name are left out.
    pub fn gossip(self) -> impl Iterator<Item = Gossip<'a>> {
        self.entries.as_chunks::<ENTRY>().0.iter().filter_map(Gossip::parse)
    }

    /// The extensions of the sender; unknown ones are left out.
    pub fn extensions(self) -> impl Iterator<Item = Extension<'a>> {
        extension::Extensions::new(self.extensions)
    }
}

impl<'a> Packet<'a> {
    /// Reads a packet that is exactly these bytes. None if anything in it is not as it should be.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEADER>()?;
        let header = Header::parse(head, bytes.len())?;
        let body = match header.kind {
            Kind::Ping | Kind::Pong | Kind::Meet => {
                let (entries, extensions) = rest.split_at_checked(ENTRY * usize::from(header.count))?;
                let is_right = match header.has_extensions() {
                    true => extension::Extensions::are_well_formed(extensions, header.extensions),
                    false => extensions.is_empty(),
                };
                Body::Ping(is_right.then_some(Ping { entries, extensions })?)
            }
            Kind::Fail => Body::Fail(NodeId::parse(rest)?),
            Kind::Publish | Kind::PublishShard => {
                let (lengths, text) = rest.split_first_chunk::<8>()?;
                let [channel, message] = [0, 4].map(|at| u32_at(lengths, at) as usize);
                (channel.checked_add(message)? == text.len()).then_some(())?;
                let (channel, message) = text.split_at_checked(channel)?;
                Body::Publish { channel, message }
            }
            Kind::Update => {
                let (epoch, rest) = rest.split_first_chunk::<8>()?;
                let (id, slots) = rest.split_first_chunk::<ID>()?;
                let (config_epoch, id) = (u64::from_be_bytes(*epoch), NodeId::new(id)?);
                Body::Update { config_epoch, id, slots: slots.try_into().ok()? }
            }
            Kind::Module => Body::Plain,
            Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover => rest.is_empty().then_some(Body::Plain)?,
        };
        Some(Self { header, body })
    }
}

/// The length of a packet that begins with these bytes; none if none does.
pub fn length(prefix: &[u8; PREFIX]) -> Option<usize> {
    let length = u32_at(prefix, 4) as usize;
    (prefix.starts_with(&SIGNATURE) && length >= HEADER).then_some(length)
}

/// A packet in the making: a header, and what is appended to it.
#[derive(Debug)]
pub struct Draft {
    bytes: Vec<u8>,
}

impl Draft {
    /// Begins with a header.
    pub fn new(header: &Header<'_>) -> Self {
        let mut bytes = Vec::with_capacity(HEADER);
        header.write(&mut bytes);
        Self { bytes }
    }

    /// Adds to the gossip, in front of all extensions.
    pub fn gossip(&mut self, gossip: &Gossip<'_>) {
        gossip.write(&mut self.bytes);
        header::count(&mut self.bytes);
    }

    /// Adds an extension, behind all gossip.
    pub fn extension(&mut self, extension: &Extension<'_>) {
        extension.write(&mut self.bytes);
        header::count_extension(&mut self.bytes);
    }

    /// The name of a node that has failed.
    pub fn fail(&mut self, id: NodeId) {
        self.bytes.extend_from_slice(id.as_bytes());
    }

    /// A message.
    pub fn publish(&mut self, channel: &[u8], message: &[u8]) {
        for text in [channel, message] {
            self.bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
        }
        self.bytes.extend_from_slice(channel);
        self.bytes.extend_from_slice(message);
    }

    /// Appends the owner of slots.
    pub fn update(&mut self, config_epoch: u64, id: NodeId, slots: &SlotSet) {
        self.bytes.extend_from_slice(&config_epoch.to_be_bytes());
        self.bytes.extend_from_slice(id.as_bytes());
        self.bytes.extend_from_slice(slots.bitmap());
    }

    /// The packet, with its length.
    pub fn finish(mut self) -> Vec<u8> {
        header::close(&mut self.bytes);
        self.bytes
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// The text in a field that is filled up with zeros; none if it holds what no address and no host's name holds.
fn text(field: &[u8]) -> Option<&str> {
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b".:-_%".contains(byte);
    text.iter().all(is_name).then(|| std::str::from_utf8(text).ok()).flatten()
}

/// A text in a field of `N` bytes, at least the last of which is zero.
fn field<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let len = text.len().min(N - 1);
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    field
}
