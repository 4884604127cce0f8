//! The identity of a node, the same at every address.

use core::fmt;

use super::NodeInfo;
use crate::wire::Eoj;

/// The identity of a node: the same at every address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeId {
    /// The identification number of its node profile (0x83): 17 bytes.
    Number([u8; 17]),
    /// A hash of maker code (0x8A), serial number (0x8D) and objects, for a node that tells no identification number. Two
    /// nodes of one maker with the same objects and without serial numbers have the same.
    Likeness(u64),
}

impl NodeId {
    /// The properties of the node profile that confirm this identity.
    pub(super) const fn properties(&self) -> &'static [u8] {
        match self {
            Self::Number(_) => &[0x83],
            Self::Likeness(_) => &[0x8A, 0x8D, 0xD6],
        }
    }

    /// The identity of a node without an identification number, if it has told anything that sets it apart.
    pub(super) fn likeness(info: &NodeInfo) -> Option<Self> {
        if info.maker.is_none() && info.serial.is_none() && info.objects.is_empty() {
            return None;
        }
        let objects = info.objects.iter().flat_map(|object| object.eoj.to_bytes());
        let maker = info.maker.iter().flatten().copied();
        // The separators keep the end of one part from being taken for the start of the next.
        let bytes = maker.chain([0]).chain(info.serial.iter().flatten().copied()).chain([0]).chain(objects);
        Some(Self::Likeness(fnv(bytes)))
    }
}

impl fmt::Display for NodeId {
    /// The digits of the number in lower case, or `node` and the digits of the hash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Likeness(hash) => write!(f, "node{hash:016x}"),
        }
    }
}

/// Whether one list of objects contains the other: a gateway has got or lost a device.
pub(super) fn is_alike(info: &NodeInfo, listed: &[Eoj]) -> bool {
    let knows = |eoj: &Eoj| info.object(*eoj).is_some();
    listed.iter().all(knows) || info.objects.iter().all(|object| listed.contains(&object.eoj))
}

/// FNV-1a: sets apart what differs, and is no protection against forgery.
pub(super) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}
