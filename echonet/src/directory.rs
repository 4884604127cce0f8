//! Which node is where: nodes are named by what they are ([`NodeId`]), and their addresses are looked up by these names.
//!
//! A name stays when its node moves, disappears or comes back; an address only leads to a name while it is certain who is there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use echonet_lite::controller::{Answer, Failure, NodeAddr, NodeId, NodeInfo, Request};
use echonet_lite::net::{Endpoint, Error};
use echonet_lite::wire::{Eoj, PropertySet};

/// How long an address of a node is asked whether the node is there.
const INQUIRY: Duration = Duration::from_secs(2);

/// The name of a node, the same at every address.
pub(crate) type Name = Arc<str>;

/// All nodes that have been found.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Between an identification number that several nodes have and the address of one of them.
    separator: char,
    nodes: BTreeMap<Name, Node>,
    at: HashMap<NodeAddr, Name>,
    /// Addresses at which there may be another node than was known.
    doubted: HashSet<NodeAddr>,
    /// How often it became doubtful who has an address.
    doubts: HashMap<NodeAddr, u64>,
}

#[derive(Debug)]
struct Node {
    id: NodeId,
    /// The first one is used. None while the node is not found.
    addrs: Vec<NodeAddr>,
}

/// The result of looking up a node that has told its identity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It tells nothing that could name it.
    Nameless,
    /// It is where it was.
    Here(Name),
    /// It is new, or has been found again at another address.
    Arrived(Name),
    /// It is known at another address: whether it is there too has to be asked.
    Elsewhere(NodeAddr),
}

/// The node at the address that a node was known at, when the same identity is told at another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namesake {
    /// None, or another node: it has moved.
    Gone,
    /// The same node: it has two addresses.
    Same,
    /// A different node with the same number.
    Twin,
}

impl Directory {
    pub(crate) fn new(separator: char) -> Self {
        let (nodes, at) = (BTreeMap::new(), HashMap::new());
        Self { separator, nodes, at, doubted: HashSet::new(), doubts: HashMap::new() }
    }

    /// The address of a node, and the identity that it must have when it is written to.
    pub(crate) fn place(&self, name: &str) -> Option<(NodeAddr, NodeId)> {
        let node = self.nodes.get(name)?;
        Some((*node.addrs.first()?, node.id))
    }

    /// The node that is certain to be at an address.
    pub(crate) fn certain_name(&self, addr: NodeAddr) -> Option<&Name> {
        self.at.get(&addr).filter(|_| !self.doubted.contains(&addr))
    }

    /// The node that was last known at an address.
    pub(crate) fn last_known_name(&self, addr: NodeAddr) -> Option<&Name> {
        self.at.get(&addr)
    }

    /// Another node may have an address now. Answers to earlier requests there say nothing any more ([`Self::doubts`]).
    pub(crate) fn doubt(&mut self, addr: NodeAddr) {
        self.doubted.insert(addr);
        *self.doubts.entry(addr).or_default() += 1;
    }

    /// Changes when it becomes doubtful which node has an address: answers to earlier requests are void then.
    pub(crate) fn doubts(&self, addr: NodeAddr) -> u64 {
        self.doubts.get(&addr).copied().unwrap_or_default()
    }

    pub(crate) fn is_doubted(&self, addr: NodeAddr) -> bool {
        self.doubted.contains(&addr)
    }

    /// A node has told who it is.
    pub(crate) fn ready(&mut self, info: &NodeInfo) -> Found {
        self.told(info.addr, info.id())
    }

    fn told(&mut self, addr: NodeAddr, id: Option<NodeId>) -> Found {
        self.doubted.remove(&addr);
        let Some(id) = id else { return Found::Nameless };
        if let Some(name) = self.at.get(&addr).cloned() {
            if self.nodes.get(&name).is_some_and(|node| node.id == id) {
                return Found::Here(name);
            }
            self.left(addr);
        }
        let name = Name::from(id.to_string());
        match self.nodes.get(&name).map(|node| node.addrs.first().copied()) {
            Some(Some(other)) => Found::Elsewhere(other),
            Some(None) | None => Found::Arrived(self.settle(name, id, addr)),
        }
    }

    /// It has been asked who is at the address at which a node was known before. The name of the node, and whether it is one
    /// that was shown before at this address.
    pub(crate) fn resolve(&mut self, info: &NodeInfo, other: NodeAddr, namesake: Namesake) -> Found {
        self.inquired((info.addr, info.id()), other, namesake)
    }

    fn inquired(&mut self, (addr, id): (NodeAddr, Option<NodeId>), other: NodeAddr, namesake: Namesake) -> Found {
        let Some(id) = id.filter(|_| !self.is_doubted(addr)) else { return Found::Nameless };
        let name = Name::from(id.to_string());
        // Meanwhile the other one may have left, or another one may have come.
        let is_there = self.nodes.get(&name).is_some_and(|node| node.addrs.contains(&other));
        match namesake {
            Namesake::Same if is_there => {
                self.nodes.entry(name.clone()).and_modify(|node| node.addrs.push(addr));
                self.at.insert(addr, name.clone());
                Found::Here(name)
            }
            Namesake::Twin if is_there => {
                let name = format!("{name}{}{}", self.separator, plain(addr, self.separator));
                Found::Arrived(self.settle(name.into(), id, addr))
            }
            Namesake::Gone | Namesake::Same | Namesake::Twin => {
                if is_there {
                    self.left(other);
                }
                match self.nodes.get(&name).and_then(|node| node.addrs.first().copied()) {
                    Some(other) => Found::Elsewhere(other),
                    None => Found::Arrived(self.settle(name, id, addr)),
                }
            }
        }
    }

    /// The node that was at an address is there no more; its name, if it is nowhere now.
    pub(crate) fn left(&mut self, addr: NodeAddr) -> Option<Name> {
        let name = self.at.remove(&addr)?;
        let node = self.nodes.get_mut(&name)?;
        node.addrs.retain(|own| *own != addr);
        node.addrs.is_empty().then_some(name)
    }

    /// True for a node with more than one address.
    pub(crate) fn has_other(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| node.addrs.len() > 1)
    }

    /// No node or another one answers at an address of a node: its next one is used. Returns false if it has no other.
    pub(crate) fn use_next(&mut self, name: &str, addr: NodeAddr) -> bool {
        let Some(node) = self.nodes.get_mut(name).filter(|node| node.addrs.len() > 1) else { return false };
        if node.addrs[0] == addr {
            node.addrs.rotate_left(1);
        }
        true
    }

    /// A node does not answer at an address; its name, if it has no other.
    pub(crate) fn lost(&mut self, addr: NodeAddr) -> Option<Name> {
        let name = self.at.get(&addr)?.clone();
        let node = self.nodes.get_mut(&name)?;
        if node.addrs.len() < 2 {
            return Some(name);
        }
        self.left(addr)
    }

    fn settle(&mut self, name: Name, id: NodeId, addr: NodeAddr) -> Name {
        self.nodes.insert(name.clone(), Node { id, addrs: vec![addr] });
        self.at.insert(addr, name.clone());
        name
    }
}

/// Asks the old address of a node whether the node is still there, and whether it is the node that has the same
/// identity at a new address. Some nodes have two addresses, and some makers give all their devices one number. One
/// node has the same objects and settings at both.
pub(crate) async fn inquire(endpoint: &Endpoint, old: &NodeInfo, new: &NodeInfo) -> Namesake {
    let Some(id) = new.id() else { return Namesake::Gone };
    let object = new.objects.first().and_then(|object| Some((object.eoj, object.maps?)));
    let (eoj, settings) = object.map_or((Eoj::NODE_PROFILE, PropertySet::of(&[0x82])), |(eoj, maps)| {
        let settings = maps.readable.intersection(maps.writable.union(SERIAL)).difference(CLOCK);
        (eoj, if settings.is_empty() { maps.readable } else { settings })
    });
    let epcs: Vec<_> = settings.iter().collect();
    let request = Request::get(eoj, &epcs).fresh().only_to(id).timeout(INQUIRY);
    // A node that has said who it is and nothing more may have left just then: it is asked once more.
    let mut there = endpoint.request(old.addr, &request).await;
    if is_half_answered(&there) {
        there = endpoint.request(old.addr, &request).await;
    }
    let there = match there {
        Ok(answer) => answer,
        half if is_half_answered(&half) => return Namesake::Twin,
        Err(_) => return Namesake::Gone,
    };
    let objects = |info: &NodeInfo| info.objects.iter().map(|object| object.eoj).collect::<Vec<_>>();
    let Ok(here) = endpoint.request(new.addr, &Request::get(eoj, &epcs).fresh().timeout(INQUIRY)).await else {
        return Namesake::Twin;
    };
    let is_same = objects(old) == objects(new) && settings.iter().all(|epc| there.get(epc) == here.get(epc));
    if is_same { Namesake::Same } else { Namesake::Twin }
}

/// Whether a node answers soon at one of its addresses. Of a node that may be gone from there, the answer to a request is
/// not waited for: a slow node may take longer, and requests that the node has lost come first.
pub(crate) async fn answers_at(endpoint: &Endpoint, addr: NodeAddr, id: NodeId) -> bool {
    let request = Request::get(Eoj::NODE_PROFILE, &[0x82]).fresh().only_to(id).timeout(INQUIRY);
    endpoint.request(addr, &request).await.is_ok()
}

/// True if the node answered the question for its identity, and not the request that followed.
fn is_half_answered(result: &Result<Answer, Error>) -> bool {
    matches!(result, Err(Error::Failed(Failure::TimedOut { tries: 1.., .. })))
}

const SERIAL: PropertySet = PropertySet::of(&[0x8D]);
/// The time and the date of a device, which can be others when it is asked at its second address.
const CLOCK: PropertySet = PropertySet::of(&[0x97, 0x98]);

/// An address as a part of a name.
fn plain(addr: NodeAddr, separator: char) -> String {
    addr.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { separator }).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn addr(last: u8) -> NodeAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn id(number: u8) -> NodeId {
        NodeId::Number([number; 17])
    }

    /// A directory with a node at an address.
    fn with_node() -> (Directory, Name) {
        let mut directory = Directory::new('-');
        let Found::Arrived(name) = directory.told(addr(1), Some(id(1))) else { panic!("it is new") };
        assert_eq!(directory.told(addr(1), Some(id(1))), Found::Here(name.clone()));
        (directory, name)
    }

    #[test]
    fn a_node_that_is_replaced_has_its_address_no_more() {
        let (mut directory, first) = with_node();
        let Found::Arrived(second) = directory.told(addr(1), Some(id(2))) else { panic!("it is new") };
        assert_eq!(directory.certain_name(addr(1)), Some(&second));
        assert_eq!((directory.place(&first), directory.place(&second)), (None, Some((addr(1), id(2)))));
        assert_eq!(directory.told(addr(2), Some(id(1))), Found::Arrived(first.clone()));
        assert_eq!(directory.place(&first), Some((addr(2), id(1))));
    }

    #[test]
    fn a_doubted_address_is_no_nodes_until_one_has_told_its_identity() {
        let (mut directory, name) = with_node();
        let before = directory.doubts(addr(1));
        directory.doubt(addr(1));
        assert_eq!(directory.certain_name(addr(1)), None);
        assert_ne!(directory.doubts(addr(1)), before, "earlier answers are void");
        assert_eq!(directory.told(addr(1), Some(id(1))), Found::Here(name.clone()));
        assert_eq!(directory.certain_name(addr(1)), Some(&name));
    }

    #[test]
    fn a_number_at_a_second_address_is_of_one_node_or_of_two() {
        let second = || (addr(2), Some(id(1)));
        let (mut directory, name) = with_node();
        assert_eq!(directory.told(addr(2), Some(id(1))), Found::Elsewhere(addr(1)));
        assert_eq!(directory.inquired(second(), addr(1), Namesake::Same), Found::Here(name.clone()));
        assert_eq!(directory.lost(addr(1)), None, "it has another address");
        assert_eq!(directory.place(&name), Some((addr(2), id(1))));
        let (mut directory, name) = with_node();
        let twin = directory.inquired(second(), addr(1), Namesake::Twin);
        assert_eq!(twin, Found::Arrived(format!("{name}-192-0-2-2").into()));
        assert_eq!(directory.place(&name), Some((addr(1), id(1))));
        let (mut directory, name) = with_node();
        assert_eq!(directory.inquired(second(), addr(1), Namesake::Gone), Found::Arrived(name.clone()));
        assert_eq!((directory.certain_name(addr(1)), directory.place(&name)), (None, Some((addr(2), id(1)))));
        directory.doubt(addr(2));
        assert_eq!(directory.inquired(second(), addr(1), Namesake::Same), Found::Nameless);
    }
}
