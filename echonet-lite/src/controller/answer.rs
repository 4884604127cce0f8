//! Answers and notifications of nodes: owned, compact, in the order of the wire.

use core::fmt;
use core::time::Duration;
use std::vec::Vec;

use super::NodeAddr;
use crate::wire::{Eoj, Esv, PropertySet};

/// The answer to a request: the outcome of every property that was asked for.
///
/// Answers in parts are one answer here, in the order in which the parts came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The node that answered.
    pub node: NodeAddr,
    /// The object that answered: never instance 0.
    pub eoj: Eoj,
    /// The service of the request.
    pub service: Esv,
    /// How long the answer took, from sending its last part to receiving it. Zero if nothing had to be sent.
    pub response_time: Duration,
    pub(super) outcomes: Outcomes,
}

impl Answer {
    /// The outcome of each property.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome<'_>> {
        self.outcomes.iter()
    }

    /// The value of a property that was read.
    pub fn get(&self, epc: u8) -> Option<&[u8]> {
        self.outcomes().find(|outcome| outcome.epc == epc && !outcome.written && outcome.is_ok())?.value
    }

    /// Whether everything that was asked for was done.
    pub fn is_ok(&self) -> bool {
        self.outcomes().all(|outcome| outcome.is_ok())
    }

    /// The properties for which it was not done.
    pub fn refused(&self) -> PropertySet {
        let refused = self.outcomes().filter(|outcome| !outcome.is_ok());
        refused.fold(PropertySet::EMPTY, |set, outcome| set.with(outcome.epc))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.eoj)?;
        for Outcome { epc, status, value, .. } in self.outcomes() {
            write!(f, " {epc:02X}")?;
            match (status, value) {
                (Status::Done, Some(value)) => write!(f, "={}", Hex(value))?,
                (Status::Done, None) => f.write_str(" written")?,
                (Status::Refused, _) => f.write_str(" refused")?,
                (Status::KnownRefused, _) => f.write_str(" refused earlier")?,
                (Status::Omitted, _) => f.write_str(" not answered")?,
            }
        }
        Ok(())
    }
}

/// The outcome of one property of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The property.
    pub epc: u8,
    /// Whether it was to be written, not read.
    pub written: bool,
    /// The status of the property.
    pub status: Status,
    /// The value that was read.
    pub value: Option<&'a [u8]>,
}

impl Outcome<'_> {
    /// Whether it was done.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Done
    }
}

/// The status of one property of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was read or written. A write without confirmation counts as done when no refusal came in time.
    Done,
    /// The object refused: it has no such property, or not for this, or the value is not one it takes.
    Refused,
    /// The object refused to read it earlier, so that it was not asked again.
    KnownRefused,
    /// The object answered, but said nothing about it.
    Omitted,
}

/// Outcomes in a run of bytes: status, EPC, size of the value, value.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Outcomes(Vec<u8>);

/// The bit of the status byte that marks what was to be written.
const WRITTEN: u8 = 0x80;

impl Outcomes {
    pub(super) fn push(&mut self, epc: u8, written: bool, status: Status, value: &[u8]) {
        let status = match status {
            Status::Done => 0,
            Status::Refused => 1,
            Status::KnownRefused => 2,
            Status::Omitted => 3,
        };
        let written = if written { WRITTEN } else { 0 };
        // Values come from frames, where a byte counts them.
        self.0.extend_from_slice(&[status | written, epc, value.len() as u8]);
        self.0.extend_from_slice(value);
    }

    pub(super) fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn iter(&self) -> impl Iterator<Item = Outcome<'_>> {
        let mut rest = &self.0[..];
        core::iter::from_fn(move || {
            let ([status, epc, size], tail) = rest.split_first_chunk()?;
            let (value, tail) = tail.split_at(usize::from(*size));
            rest = tail;
            let written = status & WRITTEN != 0;
            let status = match status & !WRITTEN {
                0 => Status::Done,
                1 => Status::Refused,
                2 => Status::KnownRefused,
                _ => Status::Omitted,
            };
            let value = (status == Status::Done && !written).then_some(value);
            Some(Outcome { epc: *epc, written, status, value })
        })
    }
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The announcement of a node (INF), or its message to this controller (INFC).
#[derive(Clone, PartialEq, Eq)]
pub struct Notification {
    /// The node that sent it.
    pub node: NodeAddr,
    /// The object that sent it.
    pub eoj: Eoj,
    /// The object that it is for.
    pub deoj: Eoj,
    /// Whether the node wanted it confirmed (INFC); it has been.
    pub confirmed: bool,
    /// EPC, size, value.
    pub(super) list: Vec<u8>,
}

impl Notification {
    /// The properties and their values.
    pub fn properties(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let mut rest = &self.list[..];
        core::iter::from_fn(move || {
            let ([epc, size], tail) = rest.split_first_chunk()?;
            let (value, tail) = tail.split_at(usize::from(*size));
            rest = tail;
            Some((*epc, value))
        })
    }

    /// The value of a property.
    pub fn get(&self, epc: u8) -> Option<&[u8]> {
        self.properties().find(|(other, _)| *other == epc).map(|(_, value)| value)
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.eoj)?;
        self.properties().try_for_each(|(epc, value)| write!(f, " {epc:02X}={}", Hex(value)))
    }
}

impl fmt::Debug for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notification({self} to {}{})", self.deoj, if self.confirmed { ", confirmed" } else { "" })
    }
}

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}
