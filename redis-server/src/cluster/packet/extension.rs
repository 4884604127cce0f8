//! Extensions of a packet behind the gossip: the sender's description of itself.

use super::{text, u16_at, u32_at, u64_at};
use crate::cluster::{ID, NodeId};

/// Bytes in front of an extension: its length with them, and its type.
const HEAD: usize = 8;

/// Something that a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// Its host's name; empty if it has none.
    Hostname(&'a str),
    /// Its name for people; empty if it has none.
    Nodename(&'a str),
    /// It has been told to forget a node.
    Forgotten {
        /// Which one.
        id: NodeId,
        /// For how many seconds more.
        ttl: u64,
    },
    /// The shard that it belongs to.
    Shard(NodeId),
}

impl Extension<'_> {
    /// Appends it, filled up with zeros to a multiple of eight bytes.
    pub(super) fn write(&self, buf: &mut Vec<u8>) {
        let start = buf.len();
        let kind: u16 = match self {
            Self::Hostname(_) => 0,
            Self::Nodename(_) => 1,
            Self::Forgotten { .. } => 2,
            Self::Shard(_) => 3,
        };
        buf.extend_from_slice(&[0; 4]);
        buf.extend_from_slice(&kind.to_be_bytes());
        buf.extend_from_slice(&[0; 2]);
        match self {
            Self::Hostname(name) | Self::Nodename(name) => {
                buf.extend_from_slice(name.as_bytes());
                buf.push(0);
            }
            Self::Forgotten { id, ttl } => {
                buf.extend_from_slice(id.as_bytes());
                buf.extend_from_slice(&ttl.to_be_bytes());
            }
            Self::Shard(id) => buf.extend_from_slice(id.as_bytes()),
        }
        let len = (buf.len() - start).next_multiple_of(HEAD);
        buf.resize(start + len, 0);
        buf[start..start + 4].copy_from_slice(&(len as u32).to_be_bytes());
    }
}

/// The extensions of a packet that are known.
pub(super) struct Extensions<'a> {
    rest: &'a [u8],
}

impl<'a> Extensions<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Whether these bytes are so many extensions.
    pub(super) fn are_well_formed(mut bytes: &[u8], count: u16) -> bool {
        for _ in 0..count {
            let Some((_, _, rest)) = split(bytes) else { return false };
            bytes = rest;
        }
        bytes.is_empty()
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (kind, body, rest) = split(self.rest)?;
            self.rest = rest;
            if let Some(extension) = parse(kind, body) {
                return Some(extension);
            }
        }
    }
}

fn parse(kind: u16, body: &[u8]) -> Option<Extension<'_>> {
    Some(match kind {
        0 => Extension::Hostname(text(body)?),
        1 => Extension::Nodename(text(body)?),
        2 => Extension::Forgotten { id: NodeId::parse(body.get(..ID)?)?, ttl: u64_at(body.get(ID..ID + 8)?, 0) },
        3 => Extension::Shard(NodeId::parse(body.get(..ID)?)?),
        _ => return None,
    })
}

/// The first extension's type and body, and what follows it.
fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let head = bytes.first_chunk::<HEAD>()?;
    let len = u32_at(head, 0) as usize;
    (len >= HEAD && len.is_multiple_of(HEAD)).then_some(())?;
    let (extension, rest) = bytes.split_at_checked(len)?;
    Some((u16_at(head, 4), &extension[HEAD..], rest))
}
