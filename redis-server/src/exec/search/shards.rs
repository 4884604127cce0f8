//! A query over all slots of the cluster: each owner of slots gives its part.
//!
//! The parts are good if each slot is in exactly one of them. While slots move, they may not be: then all nodes are asked again. Keys that move one
//! by one (`MIGRATE`) are found at both nodes or at one if the node that they leave is asked first.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use crate::cluster::{NOBODY, NodeId, Routing, SLOTS, SlotSet, slot_of};
use crate::command::Result;
use crate::exec::cluster::replication_port;
use crate::exec::core::clock::steady_ms;
use crate::exec::core::links::{Address, Answer, Link};
use crate::exec::core::{Instance, RunHere};
use crate::protocol::error::Error;

/// How often all nodes are asked at most, and the pause in between.
const ROUNDS: usize = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes of a set of slots.
const BITMAP: usize = SLOTS / 8;

/// The slots of which this node's part of an answer is.
pub(crate) struct Share {
    slots: SlotSet,
    /// Slots whose keys come one by one.
    importing: BTreeSet<u16>,
    /// Slots are not this node's, and have keys here.
    pub(crate) has_foreign_keys: bool,
    moves_keys: bool,
}

fn owned(routing: &Routing) -> SlotSet {
    (0..SLOTS as u16).filter(|slot| routing.owners[usize::from(*slot)] == routing.me).collect()
}

impl Share {
    /// That of this moment.
    pub(crate) fn of(instance: &Instance) -> Self {
        let routing = instance.cluster.routing();
        Self {
            slots: owned(&routing),
            importing: routing.importing.keys().copied().collect(),
            has_foreign_keys: instance.cluster.has_foreign_keys() || instance.database(0).hides_slots(),
            moves_keys: !routing.migrating.is_empty(),
        }
    }

    /// Returns true if a document is in the share.
    pub(crate) fn has(&self, id: &[u8]) -> bool {
        let slot = slot_of(id);
        self.slots.has(slot) || self.importing.contains(&slot)
    }

    /// The head of the part. It names no slots if they are others than when the part was begun.
    pub(crate) fn head(&self, instance: &Instance) -> Vec<u8> {
        let now = Self::of(instance);
        let is_same = now.slots.bitmap() == self.slots.bitmap() && now.has_foreign_keys == self.has_foreign_keys;
        let mut head = if is_same { self.slots.bitmap().to_vec() } else { vec![0; BITMAP] };
        head.push((self.moves_keys || now.moves_keys).into());
        head
    }
}

/// A node's part.
struct Part {
    node: NodeId,
    slots: SlotSet,
    moves_keys: bool,
    body: Vec<u8>,
}

impl Part {
    fn parse(node: NodeId, mut bytes: Vec<u8>) -> Result<Self> {
        const SHORT: Error = Error::Static("ERR The part of another node is not understood");
        if bytes.len() <= BITMAP {
            return Err(SHORT);
        }
        let body = bytes.split_off(BITMAP + 1);
        let bitmap = bytes[..BITMAP].try_into().map_err(|_| SHORT)?;
        Ok(Self { node, slots: SlotSet::from_bitmap(bitmap), moves_keys: bytes[BITMAP] != 0, body })
    }
}

/// The time of a query.
struct Patience {
    /// Until when parts are waited for, in milliseconds of the steady clock.
    until: Option<u64>,
}

impl Patience {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| steady_ms() >= until)
    }
}

/// Asks all owners of slots, and returns their parts in the order of the nodes' names. The part of a node that is late is empty. `request` is the
/// call that each of them runs; `time` bounds the wait, in milliseconds.
///
/// # Errors
/// A node refuses, or cannot be reached, or slots move all the time.
pub(crate) fn ask(
    instance: &Instance,
    request: &[&[u8]],
    time: Option<u64>,
    run_here: &mut RunHere<'_>,
) -> Result<Vec<Vec<u8>>> {
    let patience = Patience { until: time.map(|time| steady_ms().saturating_add(time)) };
    let mut sources = BTreeSet::new();
    for _ in 0..ROUNDS {
        let routing = instance.cluster.routing();
        let mut round = Round { instance, routing: &routing, request, patience: &patience, late: false };
        let mut parts = round.ask(&sources, run_here)?;
        let is_late = round.late;
        let moving: BTreeSet<NodeId> = parts.iter().filter(|part| part.moves_keys).map(|part| part.node).collect();
        let is_ordered = moving.is_subset(&sources);
        sources.extend(moving);
        if is_late || is_ordered && covers(&routing, &parts) {
            parts.sort_by_key(|part| part.node);
            let mut bodies: Vec<Vec<u8>> = parts.into_iter().map(|part| part.body).collect();
            bodies.extend(is_late.then(Vec::new));
            return Ok(bodies);
        }
        if patience.is_over() || instance.is_ending() {
            break;
        }
        if is_ordered {
            thread::sleep(PAUSE);
        }
    }
    Err(Error::Static("TRYAGAIN Slots moved while the query ran"))
}

/// This node's part alone.
///
/// # Errors
/// The call fails.
pub(crate) fn own(request: &[&[u8]], run_here: &mut RunHere<'_>) -> Result<Vec<Vec<u8>>> {
    match Answer::parse(&run_here(request)) {
        Ok(Answer::Bulk(mut bytes)) => Ok(vec![bytes.split_off((BITMAP + 1).min(bytes.len()))]),
        Ok(Answer::Line(line)) => Err(refusal(&line)),
        Err(_) => Err(Error::Static("ERR The part of this node is not understood")),
    }
}

/// Returns true if each slot that has an owner is in exactly one part.
fn covers(routing: &Routing, parts: &[Part]) -> bool {
    (0..SLOTS as u16).all(|slot| {
        let count = parts.iter().filter(|part| part.slots.has(slot)).count();
        count == usize::from(routing.owners[usize::from(slot)] != NOBODY)
    })
}

/// The place of a node.
pub(crate) fn address(instance: &Instance, routing: &Routing, node: u16) -> Option<Address> {
    let node = routing.node(node).filter(|node| !node.ip.is_empty())?;
    Some((node.ip.clone(), replication_port(&instance.config, node.port, node.tls_port)))
}

/// How the error of a call begins that a node does not get.
pub(crate) const UNREACHABLE: &str = "Could not send query to cluster";

/// The error of a call that a node does not get.
pub(crate) fn unreachable(routing: &Routing, node: u16) -> Error {
    let name = routing.node(node).map_or_else(String::new, |node| node.id.to_string());
    Error::Message(format!("{UNREACHABLE}: node {name} cannot be reached"))
}

/// All nodes are asked once.
struct Round<'r> {
    instance: &'r Instance,
    routing: &'r Routing,
    request: &'r [&'r [u8]],
    patience: &'r Patience,
    /// A part has not come in time.
    late: bool,
}

impl Round<'_> {
    fn ask(&mut self, sources: &BTreeSet<NodeId>, run_here: &mut RunHere<'_>) -> Result<Vec<Part>> {
        let owners: BTreeSet<u16> = self.routing.owners.iter().copied().filter(|owner| *owner != NOBODY).collect();
        let is_source = |node: &u16| self.routing.node(*node).is_some_and(|node| sources.contains(&node.id));
        let (first, others): (Vec<u16>, Vec<u16>) = owners.into_iter().partition(is_source);
        let mut parts = self.ask_group(&first, run_here)?;
        parts.extend(self.ask_group(&others, run_here)?);
        Ok(parts)
    }

    /// Asks some nodes at the same time.
    fn ask_group(&mut self, group: &[u16], run_here: &mut RunHere<'_>) -> Result<Vec<Part>> {
        let others = || group.iter().copied().filter(|node| *node != self.routing.me);
        let mut links: Vec<(u16, Result<(Address, Link)>)> = others().map(|node| (node, self.send(node))).collect();
        let own = group.contains(&self.routing.me).then(|| Answer::parse(&run_here(self.request)));
        let mut answers = Vec::new();
        if let Some(answer) = own {
            answers.push((self.routing.me, answer.map_err(|_| unreachable(self.routing, self.routing.me))));
        }
        // All answers are read, so that connections can be used again.
        for (node, link) in links.drain(..) {
            match link.and_then(|link| self.read(node, link)) {
                Ok(Some(answer)) => answers.push((node, Ok(answer))),
                Ok(None) => self.late = true,
                Err(error) => answers.push((node, Err(error))),
            }
        }
        let mut parts = Vec::new();
        for (node, answer) in answers {
            let id = self.routing.node(node).map(|node| node.id).ok_or_else(|| unreachable(self.routing, node))?;
            match answer? {
                Answer::Bulk(bytes) => parts.push(Part::parse(id, bytes)?),
                Answer::Line(line) => return Err(refusal(&line)),
            }
        }
        Ok(parts)
    }

    fn send(&self, node: u16) -> Result<(Address, Link)> {
        let failed = || unreachable(self.routing, node);
        let address = address(self.instance, self.routing, node).ok_or_else(failed)?;
        let (links, config) = (&self.instance.links, &self.instance.config);
        let mut link = links.take(config, &address).map_err(|_| failed())?;
        if link.send(self.request).is_err() {
            link = links.renew(config, &address).map_err(|_| failed())?;
            link.send(self.request).map_err(|_| failed())?;
        }
        Ok((address, link))
    }

    /// Reads a node's answer; `None` if it is late.
    fn read(&self, node: u16, (address, mut link): (Address, Link)) -> Result<Option<Answer>> {
        let id = self.routing.node(node).map(|node| node.id);
        let has_failed = || {
            let routing = self.instance.cluster.routing();
            !routing.nodes.iter().any(|node| Some(node.id) == id && !node.has_failed)
        };
        let goes_on = || !self.patience.is_over() && !has_failed() && !self.instance.is_ending();
        loop {
            match link.answer(&goes_on) {
                Ok(answer) => {
                    link.was_kept = true;
                    self.instance.links.put(address, link);
                    return Ok(Some(answer));
                }
                Err(error) if error.kind() == ErrorKind::TimedOut && !has_failed() => return Ok(None),
                // The node has closed a connection that was not used.
                Err(_) if link.was_kept => {
                    let renewed = self.instance.links.renew(&self.instance.config, &address);
                    link = renewed.map_err(|_| unreachable(self.routing, node))?;
                    link.send(self.request).map_err(|_| unreachable(self.routing, node))?;
                }
                Err(_) => return Err(unreachable(self.routing, node)),
            }
        }
    }
}

/// A node's error.
pub(crate) fn refusal(line: &[u8]) -> Error {
    let text = String::from_utf8_lossy(line.strip_prefix(b"-").unwrap_or(line)).into_owned();
    Error::Message(text)
}

/// Has all nodes that are there run a call, replicas too; the first that fails is the error.
///
/// # Errors
/// A node refuses, or cannot be reached.
pub(crate) fn tell_all(instance: &Instance, request: &[&[u8]], run_here: &mut RunHere<'_>) -> Result<Vec<Vec<u8>>> {
    let routing = instance.cluster.routing();
    let patience = Patience { until: Some(steady_ms() + TOLD_IN) };
    let mut round = Round { instance, routing: &routing, request, patience: &patience, late: false };
    let nodes: Vec<u16> =
        (0..routing.nodes.len() as u16).filter(|node| !routing.nodes[usize::from(*node)].has_failed).collect();
    round.ask_group(&nodes, run_here)?;
    if round.late { Err(Error::Static("Timeout limit was reached")) } else { Ok(Vec::new()) }
}

/// How long nodes may take to change a setting, in milliseconds.
const TOLD_IN: u64 = 5000;
