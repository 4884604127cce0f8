//! Requests to nodes.

use core::fmt;
use core::time::Duration;

use super::NodeId;
use crate::wire::{Eoj, Esv, PropertySet};

/// A property and the value to write to it.
pub type Write<'a> = (u8, &'a [u8]);

/// The operation on the properties of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Read properties (Get).
    Get(&'a [u8]),
    /// Write properties and have it confirmed (SetC).
    SetC(&'a [Write<'a>]),
    /// Write properties; only a refusal is answered (SetI). Ends well when none has come in time.
    SetI(&'a [Write<'a>]),
    /// Write properties, then read properties (SetGet). Few devices support it.
    SetGet(&'a [Write<'a>], &'a [u8]),
    /// Have properties announced to everybody (INF_REQ).
    InfReq(&'a [u8]),
}

impl<'a> Operation<'a> {
    /// The service that asks for this.
    pub const fn service(&self) -> Esv {
        match self {
            Self::Get(_) => Esv::Get,
            Self::SetC(_) => Esv::SetC,
            Self::SetI(_) => Esv::SetI,
            Self::SetGet(..) => Esv::SetGet,
            Self::InfReq(_) => Esv::InfReq,
        }
    }

    /// The properties to write, and those to read.
    pub(super) const fn lists(&self) -> (&'a [Write<'a>], &'a [u8]) {
        match *self {
            Self::Get(reads) | Self::InfReq(reads) => (&[], reads),
            Self::SetC(writes) | Self::SetI(writes) => (writes, &[]),
            Self::SetGet(writes, reads) => (writes, reads),
        }
    }
}

/// A request to one object, or to all instances of a class (instance 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The object to ask.
    pub eoj: Eoj,
    /// The operation to ask for.
    pub operation: Operation<'a>,
    /// How often to send it. If not given, [`Config::tries`](super::Config::tries) for what only reads, and once for what
    /// writes, except [`Config::repeatable_writes`](super::Config::repeatable_writes).
    pub tries: Option<u8>,
    /// When to give it up, counted from the call that makes the request; if not given, after the last try.
    pub timeout: Option<Duration>,
    /// Whether to ask even for properties that the object has refused before.
    pub fresh: bool,
    /// The node that it is for, even if another one has its address: see [`only_to`](Self::only_to).
    pub node: Option<NodeId>,
}

impl<'a> Request<'a> {
    /// A request with the usual patience.
    pub const fn new(eoj: Eoj, operation: Operation<'a>) -> Self {
        Self { eoj, operation, tries: None, timeout: None, fresh: false, node: None }
    }

    /// Reads properties.
    pub const fn get(eoj: Eoj, epcs: &'a [u8]) -> Self {
        Self::new(eoj, Operation::Get(epcs))
    }

    /// Writes properties and has it confirmed.
    pub const fn set(eoj: Eoj, writes: &'a [Write<'a>]) -> Self {
        Self::new(eoj, Operation::SetC(writes))
    }

    /// Gives the request up so long after it was made, even if it is still waiting for its turn.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends it so often before it is given up; 0 is taken for 1. A write may be carried out each time.
    #[must_use]
    pub const fn tries(mut self, tries: u8) -> Self {
        self.tries = Some(tries);
        self
    }

    /// Asks even for what the object has refused before.
    #[must_use]
    pub const fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// Sends it to this node and to no other that may have got its address: immediately before each sending, the node profile
    /// at the address is asked who it is. Ends with [`Failure::OtherNode`] where another one answers, and with
    /// [`Failure::NodeSilent`] where none does; nothing was written then. Costs one more exchange. Requests to all nodes
    /// and to all instances of a class are sent as they are.
    #[must_use]
    pub const fn only_to(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// Checks the lists; returns the properties to write, those to read, and the size of the frame.
    pub(super) fn check(&self, max_frame: usize) -> Result<(PropertySet, PropertySet), RequestError> {
        let (writes, reads) = self.operation.lists();
        let is_empty = match self.operation {
            Operation::SetGet(..) => writes.is_empty() || reads.is_empty(),
            Operation::Get(_) | Operation::InfReq(_) | Operation::SetC(_) | Operation::SetI(_) => {
                writes.is_empty() && reads.is_empty()
            }
        };
        if is_empty {
            return Err(RequestError::NoProperties);
        }
        let (mut written, mut read) = (PropertySet::EMPTY, PropertySet::EMPTY);
        let mut size = FRAME_HEADER + 1 + 2 * reads.len();
        for (epc, edt) in writes {
            add(&mut written, *epc)?;
            if edt.len() > usize::from(u8::MAX) {
                return Err(RequestError::ValueTooLong { epc: *epc, size: edt.len() });
            }
            size += 2 + edt.len();
        }
        for epc in reads {
            add(&mut read, *epc)?;
        }
        if size > max_frame {
            return Err(RequestError::FrameTooLong { size, limit: max_frame });
        }
        Ok((written, read))
    }
}

/// EHD, TID, SEOJ, DEOJ, ESV and OPC.
const FRAME_HEADER: usize = 12;

fn add(set: &mut PropertySet, epc: u8) -> Result<(), RequestError> {
    if epc < 0x80 {
        return Err(RequestError::NotAProperty { epc });
    }
    if set.contains(epc) {
        return Err(RequestError::RepeatedProperty { epc });
    }
    *set = set.with(epc);
    Ok(())
}

/// The name of a request for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl RequestId {
    /// A small number, less than [`Config::max_requests`](super::Config::max_requests), that no other request has until
    /// the event that ends this one has been taken, or this one is cancelled. A place to keep something about it.
    pub const fn index(self) -> usize {
        self.slot as usize
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// Why a request is not even tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The controller only listens ([`Config::listens_only`](super::Config::listens_only)).
    ListensOnly,
    /// There are as many requests as [`Config::max_requests`](super::Config::max_requests) allows, counting those whose
    /// end has not been taken by `poll_event` yet.
    Full,
    /// There are as many requests to this node as [`Config::max_requests_per_node`](super::Config::max_requests_per_node) allows.
    NodeFull,
    /// There are as many nodes as [`Config::max_nodes`](super::Config::max_nodes) allows, and all are in use.
    TooManyNodes,
    /// It names no property.
    NoProperties,
    /// It names a property twice.
    RepeatedProperty {
        /// The property.
        epc: u8,
    },
    /// It names a property below 0x80.
    NotAProperty {
        /// The code that was named.
        epc: u8,
    },
    /// A value is longer than the 255 bytes that a property can have.
    ValueTooLong {
        /// The property.
        epc: u8,
        /// The size of the value.
        size: usize,
    },
    /// The frame would be longer than [`Config::max_frame`](super::Config::max_frame).
    FrameTooLong {
        /// How long it would be.
        size: usize,
        /// How long it may be.
        limit: usize,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListensOnly => f.write_str("nothing is asked by who only listens"),
            Self::Full => f.write_str("too many requests are outstanding"),
            Self::NodeFull => f.write_str("too many requests to this node are outstanding"),
            Self::TooManyNodes => f.write_str("too many nodes are in use"),
            Self::NoProperties => f.write_str("a request needs at least one property"),
            Self::RepeatedProperty { epc } => write!(f, "property {epc:02X} is named twice"),
            Self::NotAProperty { epc } => write!(f, "{epc:02X} is no property: they are 80 to FF"),
            Self::ValueTooLong { epc, size } => write!(f, "{size} bytes for property {epc:02X}: 255 is the most"),
            Self::FrameTooLong { size, limit } => write!(f, "a frame of {size} bytes: {limit} is the most"),
        }
    }
}

impl core::error::Error for RequestError {}

/// Why a request that was tried came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// No answer came in time.
    TimedOut {
        /// How often it was sent.
        tries: u8,
        /// How long it was waited for, from the call that made the request.
        waited: Duration,
    },
    /// It was not sent, because the node has answered nothing that was sent before.
    NodeSilent {
        /// How long it has waited for its turn.
        waited: Duration,
    },
    /// It was not sent, because the node at the address is not the one that it is for ([`Request::only_to`]).
    OtherNode,
    /// The buffer given to `poll_transmit` was too small for it.
    FrameTooLong,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { tries: 0, waited } => write!(f, "not sent within {} ms", waited.as_millis()),
            Self::TimedOut { tries, waited } => {
                let plural = if *tries == 1 { "try" } else { "tries" };
                write!(f, "no answer to {tries} {plural} within {} ms", waited.as_millis())
            }
            Self::NodeSilent { waited } => {
                write!(f, "not sent within {} ms: the node answers nothing", waited.as_millis())
            }
            Self::OtherNode => f.write_str("not sent: another node has the address"),
            Self::FrameTooLong => f.write_str("the frame is too long for the buffer to send it from"),
        }
    }
}

impl core::error::Error for Failure {}
