//! The messages that a node has still to send, in a buffer of fixed size.
//!
//! Entries lie one behind the other: length (2), due time (8), kind (1), content; in the byte order of the machine, as
//! they never leave it. None is ever longer than the buffer; one that does not fit is refused, and the caller decides what
//! that means.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::Instant;
use crate::wire::{Eoj, PropertySet};

/// Something to send later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task<'a> {
    /// Answer this multicast request, beginning with the object at the index.
    Request { from: SocketAddr, next: u16, frame: &'a [u8] },
    /// Send this answer to a multicast write.
    Answer { to: SocketAddr, frame: &'a [u8] },
    /// Tell everyone these properties of an object.
    Notify { eoj: Eoj, epcs: PropertySet },
    /// Tell one object of one node, until it confirms.
    Confirm(Confirm),
}

/// A notification that wants an answer (INFC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Confirm {
    pub(super) to: SocketAddr,
    pub(super) deoj: Eoj,
    pub(super) seoj: Eoj,
    pub(super) epc: u8,
    /// Of the last attempt.
    pub(super) tid: u16,
    /// How often it may still be sent.
    pub(super) attempts: u8,
}

/// An entry's place; valid until the next change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: usize,
    pub(super) due: Instant,
}

/// Bytes in front of an entry's content.
const HEAD: usize = 11;
/// Bytes of an address.
const ADDRESS: usize = 27;

const REQUEST: u8 = 0;
const ANSWER: u8 = 1;
const NOTIFY: u8 = 2;
const CONFIRM: u8 = 3;

/// Tasks and when they are due.
#[derive(Clone, Debug)]
pub(super) struct Agenda<const N: usize> {
    bytes: [u8; N],
    length: usize,
    /// When the first task is due, so that asking is free.
    first_due: Option<Instant>,
}

impl<const N: usize> Agenda<N> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; N], length: 0, first_due: None }
    }

    /// When the first task is due.
    pub(super) fn first_due(&self) -> Option<Instant> {
        self.first_due
    }

    /// The task that is due first, the oldest of several.
    pub(super) fn first(&self) -> Option<(Place, Task<'_>)> {
        let place = self.places().reduce(|first, place| if place.due < first.due { place } else { first })?;
        Some((place, self.task(place)?))
    }

    /// All tasks in the order in which they came.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (Place, Task<'_>)> {
        self.places().filter_map(|place| Some((place, self.task(place)?)))
    }

    /// Adds a task, unless fewer than `reserve` bytes would be left.
    pub(super) fn push(&mut self, due: Instant, task: Task<'_>, reserve: usize) -> Result<(), Full> {
        let limit = N.saturating_sub(reserve);
        let Some(room) = self.bytes.get_mut(self.length..limit) else { return Err(Full) };
        let size = encode(room, due, task).ok_or(Full)?;
        self.length += size;
        self.first_due = Some(self.first_due.map_or(due, |first| first.min(due)));
        Ok(())
    }

    /// Removes the task at a place.
    pub(super) fn remove(&mut self, place: Place) {
        let end = self.end(place.at);
        self.bytes.copy_within(end..self.length, place.at);
        self.length -= end - place.at;
        self.first_due = self.places().map(|place| place.due).min();
    }

    /// Replaces the task at a place with one of the same kind and length, which keeps its turn.
    pub(super) fn replace(&mut self, place: Place, due: Instant, task: Task<'_>) {
        let end = self.end(place.at);
        encode(&mut self.bytes[place.at..end], due, task).expect("the same kind has the same length");
        self.first_due = self.places().map(|place| place.due).min();
    }

    /// Makes a waiting request continue with the object at `next`.
    pub(super) fn advance(&mut self, place: Place, next: u16) {
        let at = place.at + HEAD + ADDRESS;
        self.bytes[at..at + 2].copy_from_slice(&next.to_ne_bytes());
    }

    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            if at >= self.length {
                return None;
            }
            let due = *self.bytes.get(at + 2..)?.first_chunk()?;
            let place = Place { at, due: Instant(u64::from_ne_bytes(due)) };
            at = self.end(at);
            Some(place)
        })
    }

    fn end(&self, at: usize) -> usize {
        at + usize::from(u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn task(&self, place: Place) -> Option<Task<'_>> {
        decode(self.bytes.get(place.at + HEAD - 1..self.end(place.at))?)
    }
}

/// There is no room for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Writes an entry; returns its length.
fn encode(room: &mut [u8], due: Instant, task: Task<'_>) -> Option<usize> {
    let mut out = Cursor { room, at: 2 };
    out.put(&due.as_micros().to_ne_bytes())?;
    match task {
        Task::Request { from, next, frame } => {
            out.put(&[REQUEST])?;
            out.put(&address_to_bytes(from))?;
            out.put(&next.to_ne_bytes())?;
            out.put(frame)?;
        }
        Task::Answer { to, frame } => {
            out.put(&[ANSWER])?;
            out.put(&address_to_bytes(to))?;
            out.put(frame)?;
        }
        Task::Notify { eoj, epcs } => {
            out.put(&[NOTIFY])?;
            out.put(&eoj.to_bytes())?;
            out.put(&epcs.to_bits().to_ne_bytes())?;
        }
        Task::Confirm(confirm) => {
            out.put(&[CONFIRM])?;
            out.put(&address_to_bytes(confirm.to))?;
            out.put(&confirm.deoj.to_bytes())?;
            out.put(&confirm.seoj.to_bytes())?;
            out.put(&confirm.tid.to_ne_bytes())?;
            out.put(&[confirm.epc, confirm.attempts])?;
        }
    }
    let length = out.at;
    room[..2].copy_from_slice(&u16::try_from(length).ok()?.to_ne_bytes());
    Some(length)
}

/// Reads the kind and content of an entry.
fn decode(bytes: &[u8]) -> Option<Task<'_>> {
    let (&kind, rest) = bytes.split_first()?;
    if kind == NOTIFY {
        let (eoj, bits) = rest.split_first_chunk()?;
        let epcs = PropertySet::from_bits(u128::from_ne_bytes(*bits.first_chunk()?));
        return Some(Task::Notify { eoj: Eoj::from_bytes(*eoj), epcs });
    }
    let (address, rest) = rest.split_first_chunk()?;
    let address = address_from_bytes(address);
    Some(match kind {
        REQUEST => {
            let (next, frame) = rest.split_first_chunk()?;
            Task::Request { from: address, next: u16::from_ne_bytes(*next), frame }
        }
        ANSWER => Task::Answer { to: address, frame: rest },
        _ => {
            let &[a, b, c, x, y, z, tid_high, tid_low, epc, attempts] = rest.first_chunk()?;
            Task::Confirm(Confirm {
                to: address,
                deoj: Eoj::new(a, b, c),
                seoj: Eoj::new(x, y, z),
                epc,
                tid: u16::from_ne_bytes([tid_high, tid_low]),
                attempts,
            })
        }
    })
}

struct Cursor<'b> {
    room: &'b mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at + bytes.len();
        self.room.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }
}

/// Family, address, port, flow and scope.
fn address_to_bytes(address: SocketAddr) -> [u8; ADDRESS] {
    let mut bytes = [0; ADDRESS];
    match address.ip() {
        IpAddr::V4(ip) => bytes[1..5].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[1..17].copy_from_slice(&ip.octets()),
    }
    bytes[17..19].copy_from_slice(&address.port().to_ne_bytes());
    if let SocketAddr::V6(v6) = address {
        bytes[0] = 6;
        bytes[19..23].copy_from_slice(&v6.flowinfo().to_ne_bytes());
        bytes[23..].copy_from_slice(&v6.scope_id().to_ne_bytes());
    }
    bytes
}

fn address_from_bytes(bytes: &[u8; ADDRESS]) -> SocketAddr {
    let [family, ip @ .., p, q, f0, f1, f2, f3, s0, s1, s2, s3] = *bytes;
    let ip: [u8; 16] = ip;
    let port = u16::from_ne_bytes([p, q]);
    if family == 0 {
        let [a, b, c, d, ..] = ip;
        return SocketAddr::from((Ipv4Addr::new(a, b, c, d), port));
    }
    let (flow, scope) = (u32::from_ne_bytes([f0, f1, f2, f3]), u32::from_ne_bytes([s0, s1, s2, s3]));
    SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A task as text, without borrowing.
    fn owned(task: Task<'_>) -> std::string::String {
        std::format!("{task:?}")
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64, Vec<u8>),
        Notify(u64, u8),
        RemoveFirst,
        Replace(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..50_u64, proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(due, frame)| Step::Push(due, frame)),
            (0..50_u64, 0x80_u8..).prop_map(|(due, epc)| Step::Notify(due, epc)),
            Just(Step::RemoveFirst),
            (0..50_u64).prop_map(Step::Replace),
        ]
    }

    proptest! {
        /// Does what a plain list would do, within its room.
        #[test]
        fn is_a_list(steps in proptest::collection::vec(step(), 0..60), v6: bool, port: u16, scope: u32) {
            let address = if v6 {
                SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 1, 2, 3, 4), port, 0, scope).into()
            } else {
                SocketAddr::from(([192, 0, 2, 1], port))
            };
            let mut agenda = Agenda::<256>::new();
            let mut model: Vec<(u64, std::string::String)> = Vec::new();
            for step in steps {
                let first = (0..model.len()).min_by_key(|&i| model[i].0);
                match step {
                    Step::Push(due, frame) => {
                        let task = Task::Request { from: address, next: 5, frame: &frame };
                        if agenda.push(Instant(due), task, 64).is_ok() { model.push((due, owned(task))); }
                    }
                    Step::Notify(due, epc) => {
                        let task = Task::Notify { eoj: Eoj::CONTROLLER, epcs: PropertySet::of(&[epc]) };
                        if agenda.push(Instant(due), task, 0).is_ok() { model.push((due, owned(task))); }
                    }
                    Step::RemoveFirst => {
                        let Some(first) = first else { continue };
                        let place = agenda.first().unwrap().0;
                        agenda.remove(place);
                        model.remove(first);
                    }
                    Step::Replace(due) => {
                        let Some(first) = first else { continue };
                        let (place, task) = agenda.first().unwrap();
                        if !matches!(task, Task::Notify { .. }) { continue }
                        let task = Task::Notify { eoj: Eoj::NODE_PROFILE, epcs: PropertySet::EMPTY };
                        agenda.replace(place, Instant(due), task);
                        model[first] = (due, owned(task));
                    }
                }
                let tasks: Vec<_> = agenda.tasks().map(|(place, task)| (place.due.0, owned(task))).collect();
                prop_assert_eq!(&tasks, &model);
                prop_assert_eq!(agenda.first_due().map(|due| due.0), model.iter().map(|entry| entry.0).min());
            }
        }
    }

    #[test]
    fn confirmations_survive() {
        let confirm = Confirm {
            to: SocketAddr::from(([10, 0, 0, 1], 3610)),
            deoj: Eoj::CONTROLLER,
            seoj: Eoj::new(2, 0x90, 1),
            epc: 0x80,
            tid: 0xABCD,
            attempts: 3,
        };
        let mut agenda = Agenda::<64>::new();
        agenda.push(Instant(5), Task::Confirm(confirm), 0).unwrap();
        assert_eq!(agenda.first().unwrap().1, Task::Confirm(confirm));
        assert_eq!(agenda.push(Instant(5), Task::Confirm(confirm), 0), Err(Full));
    }
}
