//! One request, from the call that makes it to the event that ends it.

use core::time::Duration;
use std::collections::HashSet;
use std::vec::Vec;

use super::answer::{Outcomes, Status};
use super::stage::Step;
use super::{Failure, NodeAddr, NodeId, Request};
use crate::node::Instant;
use crate::wire::{Eoj, Esv, FrameWriter, Header, PropertySet, WriteError};

/// How many tries of a request can still be answered at most; the identifiers of earlier ones rest.
pub(super) const MAX_ATTEMPTS: usize = 4;

/// ```text
///             ┌──────── no answer, a try is left; or a part is left ────────┐
///             ▼                                                             │
/// Free ─► Queued ─► Outstanding (one object: Get, SetC, SetGet, INF_REQ) ───┤
///  ▲         │  ├─► Listening (SetI: only a refusal is answered) ───────────┤
///  │         │  └─► Gathering (all instances, all nodes) ───────────────────┤
///  │         └────────── out of time ───────────────────────────────────────┤
///  └── event taken ◄── Done ◄───────────────────────────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Queued,
    Outstanding,
    Listening,
    Gathering,
    Done,
}

/// The destination of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Peer(u32),
    Group,
}

/// The receiver of the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Caller,
    /// None any more: cancelled when it was done, before its event was taken.
    Nobody,
    Interview(Step),
}

/// One sending of a request, or of a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) tid: u16,
    pub(super) at: Instant,
    /// The properties that this sending asks for.
    pub(super) lists: Lists,
}

/// Properties to write and properties to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    pub(super) writes: PropertySet,
    pub(super) reads: PropertySet,
}

impl Lists {
    pub(super) const fn is_empty(self) -> bool {
        self.writes.is_empty() && self.reads.is_empty()
    }

    pub(super) const fn len(self) -> usize {
        self.writes.len() + self.reads.len()
    }

    pub(super) const fn difference(self, other: Self) -> Self {
        Self { writes: self.writes.difference(other.writes), reads: self.reads.difference(other.reads) }
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) generation: u32,
    pub(super) state: State,
    pub(super) owner: Owner,
    pub(super) target: Target,
    /// The address that names the node, if the target is one.
    pub(super) node: Option<NodeAddr>,
    pub(super) eoj: Eoj,
    /// The requested service.
    pub(super) requested: Esv,
    /// The current service: when a SetGet has written and not read everything, the rest is a Get.
    pub(super) service: Esv,
    /// The properties without an outcome yet.
    pub(super) left: Lists,
    pub(super) made_at: Instant,
    pub(super) give_up_at: Option<Instant>,
    /// How often it may be sent, each part.
    pub(super) tries: u8,
    /// How often it was sent, the current part.
    pub(super) tried: u8,
    /// How often it was sent.
    pub(super) sent: u8,
    pub(super) attempts: Attempts,
    pub(super) response_time: Duration,
    pub(super) outcomes: Outcomes,
    pub(super) failure: Option<Failure>,
    /// The objects that answered a request to several.
    pub(super) heard: HashSet<(NodeAddr, Eoj)>,
    /// When a request to several ends.
    pub(super) gathered_at: Option<Instant>,
    /// The only node that it may be sent to.
    only: Option<NodeId>,
    /// The node profile that is asked first who the node is; `None` once the right node has answered.
    checks: Option<Eoj>,
    /// How often it was asked without an answer.
    pub(super) checks_tried: u8,
    /// EPC, size and value of each property to write.
    writes: Vec<u8>,
    reads: Vec<u8>,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            generation: 0,
            state: State::Free,
            owner: Owner::Nobody,
            target: Target::Group,
            node: None,
            eoj: Eoj::NODE_PROFILE,
            requested: Esv::Get,
            service: Esv::Get,
            left: Lists::default(),
            made_at: Instant::ZERO,
            give_up_at: None,
            tries: 1,
            tried: 0,
            sent: 0,
            attempts: Attempts::default(),
            response_time: Duration::ZERO,
            outcomes: Outcomes::default(),
            failure: None,
            heard: HashSet::new(),
            gathered_at: None,
            only: None,
            checks: None,
            checks_tried: 0,
            writes: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Takes a request, whose lists were checked.
    pub(super) fn fill(&mut self, now: Instant, owner: Owner, target: Target, request: &Request<'_>, left: Lists) {
        debug_assert!(self.state == State::Free && self.attempts.is_empty());
        self.state = State::Queued;
        self.owner = owner;
        self.target = target;
        self.eoj = request.eoj;
        self.requested = request.operation.service();
        self.service = self.requested;
        self.left = left;
        self.made_at = now;
        self.give_up_at = request.timeout.map(|timeout| now + timeout);
        (self.tried, self.sent) = (0, 0);
        self.response_time = Duration::ZERO;
        self.failure = None;
        self.gathered_at = None;
        (self.only, self.checks, self.checks_tried) = (None, None, 0);
        let (writes, reads) = request.operation.lists();
        self.outcomes.clear();
        self.writes.clear();
        for (epc, edt) in writes {
            // Sizes were checked.
            self.writes.extend_from_slice(&[*epc, edt.len() as u8]);
            self.writes.extend_from_slice(edt);
        }
        self.reads.clear();
        self.reads.extend_from_slice(reads);
    }

    /// Has a request sent to this node only, whose node profile is asked before each sending.
    pub(super) fn restrict(&mut self, only: NodeId, profile: Eoj) {
        (self.only, self.checks) = (Some(only), Some(profile));
    }

    /// The node that it waits to find at the address, while its turn is to ask for that.
    pub(super) fn checks(&self) -> Option<NodeId> {
        self.checks.and(self.only)
    }

    /// Whether it may go to one node only.
    pub(super) fn is_restricted(&self) -> bool {
        self.only.is_some()
    }

    /// The right node has answered: the request itself is next.
    pub(super) fn checked(&mut self) {
        (self.checks, self.checks_tried) = (None, 0);
    }

    /// It is sent again: the node is asked again who it is.
    pub(super) fn checks_again(&mut self, profile: Eoj) {
        self.checks = self.only.map(|_| profile);
    }

    /// Why it has no answer when its time is up.
    pub(super) fn silence(&self, now: Instant) -> Failure {
        let waited = now.since(self.made_at);
        match (self.checks(), self.sent) {
            (Some(_), 0) => Failure::NodeSilent { waited },
            (_, tries) => Failure::TimedOut { tries, waited },
        }
    }

    /// Why it is not sent (again) when another node has the address.
    pub(super) fn diverted(&self, now: Instant) -> Failure {
        if self.sent == 0 { Failure::OtherNode } else { self.silence(now) }
    }

    /// The object and the service of its next or last datagram.
    pub(super) fn asks(&self) -> (Eoj, Esv) {
        self.checks.map_or((self.eoj, self.service), |profile| (profile, Esv::Get))
    }

    pub(super) fn footprint(&self) -> usize {
        let heard = self.heard.capacity() * size_of::<(NodeAddr, Eoj)>();
        size_of::<Self>() + self.writes.capacity() + self.reads.capacity() + heard
    }

    /// Whether several can answer.
    pub(super) fn is_gathering(&self) -> bool {
        self.target == Target::Group || self.eoj.instance() == 0
    }

    /// Writes what is left into a frame, at most `most` properties; returns its size and what it asks.
    pub(super) fn write(&self, header: Header, most: usize, buffer: &mut [u8]) -> Result<(usize, Lists), WriteError> {
        let mut asked = Lists::default();
        let mut writer = FrameWriter::new(buffer, header)?;
        if let Some(only) = self.checks() {
            for epc in only.properties() {
                writer.property(*epc, &[])?;
            }
            asked.reads = PropertySet::of(only.properties());
            return Ok((writer.finish()?.len(), asked));
        }
        let mut writes = &self.writes[..];
        while let Some(([epc, size], tail)) = writes.split_first_chunk() {
            let (edt, tail) = tail.split_at(usize::from(*size));
            writes = tail;
            if self.left.writes.contains(*epc) && asked.len() < most {
                writer.property(*epc, edt)?;
                asked.writes = asked.writes.with(*epc);
            }
        }
        if self.service.has_two_lists() {
            writer.second_list()?;
        }
        for epc in &self.reads {
            if self.left.reads.contains(*epc) && asked.len() < most {
                writer.property(*epc, &[])?;
                asked.reads = asked.reads.with(*epc);
            }
        }
        Ok((writer.finish()?.len(), asked))
    }

    /// Gives what is left an outcome without an answer.
    pub(super) fn settle(&mut self, status: Status) {
        for epc in self.left.writes.iter() {
            self.outcomes.push(epc, true, status, &[]);
        }
        for epc in self.left.reads.iter() {
            self.outcomes.push(epc, false, status, &[]);
        }
        self.left = Lists::default();
    }
}

/// The tries of a part of a request that can still be answered, the latest last.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    list: [Option<Attempt>; MAX_ATTEMPTS],
}

impl Attempts {
    pub(super) fn is_empty(&self) -> bool {
        self.list[0].is_none()
    }

    /// Adds one, of which `kept` are kept; returns the identifier of one that is too many.
    pub(super) fn push(&mut self, attempt: Attempt, kept: usize) -> Option<u16> {
        let list = &mut self.list[..kept.clamp(1, MAX_ATTEMPTS)];
        if let Some(free) = list.iter_mut().find(|place| place.is_none()) {
            *free = Some(attempt);
            return None;
        }
        list.rotate_left(1);
        list.last_mut()?.replace(attempt).map(|old| old.tid)
    }

    pub(super) fn last(&self) -> Option<&Attempt> {
        self.list.iter().flatten().last()
    }

    pub(super) fn find(&self, tid: u16) -> Option<&Attempt> {
        self.list.iter().flatten().find(|attempt| attempt.tid == tid)
    }

    /// Takes the identifiers of all out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = u16> {
        core::mem::take(&mut self.list).into_iter().flatten().map(|attempt| attempt.tid)
    }
}
