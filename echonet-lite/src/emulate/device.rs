//! One node of a virtual home, behind any endpoint.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::answer::Message as Outgoing;
use super::{Emulated, Fault, Kind, NodePlan};
use crate::net::engine::sealed;
use crate::node::{
    self, Arrival, Config, Destination, Handled, Identity, Instant, Node, NotifyError, Object, Outbox, Transmit,
};
use crate::wire::{Eoj, Esv, Message};

/// Bytes for what is sent later: some three hundred notifications.
const STORE: usize = 16_384;
/// The most bytes of one answer: more than any datagram of an Ethernet.
const ANSWER: usize = 2048;
/// Late answers that wait; of a faster asker the oldest are lost, as a slow device loses them.
const LATE: usize = 256;

/// A node of emulated objects with its script and its faults. Serve it by [`Builder::serve`](crate::net::Builder::serve).
#[derive(Debug)]
pub struct Device {
    node: Node<Vec<Emulated>, STORE>,
    faults: Vec<Fault>,
    /// The changes of values that the plan asks for, in order of time.
    script: VecDeque<(Instant, Eoj, u8, Vec<u8>)>,
    late: VecDeque<(Instant, Destination, Vec<u8>)>,
    /// When it was asked for what is due first: the script counts from there.
    begun: Option<Instant>,
}

impl Device {
    /// A node as it was planned.
    pub fn new(plan: &NodePlan) -> Self {
        let mut config = Config::new(Identity::new(plan.maker, plan.serial));
        config.multicast_delay = plan.delay;
        let mut script = Vec::new();
        let mut objects = Vec::new();
        for planned in &plan.objects {
            let class = planned.class;
            let mut object = Emulated::new(class, planned.eoj.instance(), planned.mandatory, plan.maker, plan.serial);
            for (epc, edt) in &planned.values {
                object.put(*epc, edt);
            }
            for fault in plan.faults.iter().filter(|fault| fault.is_of(planned.eoj)) {
                match fault.kind {
                    Kind::Missing => object.remove(fault.epc),
                    Kind::TakesAnything => object.takes_anything = true,
                    Kind::Unwritable => object.unwritable = object.unwritable.with(fault.epc),
                    _ => {}
                }
            }
            for step in &planned.script {
                let due = Instant::ZERO + step.after;
                script.extend(step.set.iter().map(|(epc, edt)| (due, planned.eoj, *epc, edt.clone())));
            }
            objects.push(object);
        }
        script.sort_by_key(|(due, ..)| *due);
        let node = Node::with_store(config, objects);
        Self { node, faults: plan.faults.clone(), script: script.into(), late: VecDeque::new(), begun: None }
    }

    /// The objects.
    pub fn objects(&self) -> &[Emulated] {
        self.node.objects()
    }

    /// The objects, to change them or listen to them.
    pub fn objects_mut(&mut self) -> &mut [Emulated] {
        self.node.objects_mut()
    }

    /// Sets the faults that it has from now on. A [`Kind`] that takes a property away, or makes it unwritable, needs to be in
    /// the plan that the device is made from.
    pub fn set_faults(&mut self, faults: Vec<Fault>) {
        self.faults = faults;
    }

    /// Changes a value and announces it.
    ///
    /// # Errors
    /// There is no such object or property.
    pub fn change(&mut self, eoj: Eoj, epc: u8, edt: &[u8]) -> Result<(), NotifyError> {
        let object = self.node.objects_mut().iter_mut().find(|object| object.eoj() == eoj);
        let object = object.ok_or(NotifyError::NoSuchObject)?;
        if !object.put(epc, edt) {
            return Err(NotifyError::NoSuchProperty);
        }
        self.node.notify(eoj, epc)
    }

    fn has(&self, kind: Kind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// The bytes to be sent instead of a frame, if any.
    fn distorted(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let Some(mut message) = Outgoing::parse(frame) else { return Some(frame.to_vec()) };
        self.faults.iter().all(|fault| fault.distort(&mut message)).then(|| message.bytes())
    }

    /// Sends an answer as the faults want it: twice, late, not at all.
    fn send(&mut self, now: Instant, to: Destination, frame: &[u8], out: &mut impl Transmit) {
        let Some(bytes) = self.distorted(frame) else { return };
        let delay = self.faults.iter().find(|fault| fault.kind == Kind::Late).map(|fault| fault.delay);
        for _ in 0..if self.has(Kind::Repeated) { 2 } else { 1 } {
            if let Some(delay) = delay {
                if self.late.len() == LATE {
                    self.late.pop_front();
                }
                self.late.push_back((now + delay, to, bytes.clone()));
            } else if let Some(room) = out.buffer().get_mut(..bytes.len()) {
                room.copy_from_slice(&bytes);
                out.transmit(to, bytes.len());
            }
        }
    }
}

impl crate::net::Device for Device {}

impl sealed::Device for Device {
    const PRESENT: bool = true;

    fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        how: Arrival,
        message: &Message<'_>,
        out: &mut impl Transmit,
    ) -> bool {
        if self.has(Kind::Silent) || (message.esv() == Esv::InfReq && self.has(Kind::NoInfReq)) {
            return true;
        }
        let mut sent = Vec::new();
        let mut buffer = vec![0; out.buffer().len().min(ANSWER)];
        let mut collect = Outbox::new(&mut buffer, |to, frame: &[u8]| sent.push((to, frame.to_vec())));
        let handled = self.node.handle_message(now, from, how, message, &mut collect);
        if handled == Handled::NotForUs && self.has(Kind::AnswersForAbsent) && message.esv() == Esv::Get {
            let mut refusal = message.as_bytes().to_vec();
            refusal[4..10].rotate_left(3);
            refusal[10] = Esv::GetSna.to_u8();
            sent.push((Destination::Unicast(from), refusal));
        }
        for (to, frame) in sent {
            self.send(now, to, &frame, out);
        }
        handled == Handled::Done
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        let begun = *self.begun.get_or_insert(now);
        while self.script.front().is_some_and(|(due, ..)| begun + due.since(Instant::ZERO) <= now) {
            let Some((_, eoj, epc, edt)) = self.script.pop_front() else { break };
            // A plan names objects and properties that are there; one that cannot be told has changed all the same.
            let _ = self.change(eoj, epc, &edt);
        }
        if self.late.front().is_some_and(|(due, ..)| *due <= now) {
            let (_, to, bytes) = self.late.pop_front()?;
            buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
            return Some((to, bytes.len()));
        }
        loop {
            let (to, length) = self.node.poll_transmit(now, buffer)?;
            let silenced = self.has(Kind::Silent) || (self.has(Kind::NoAnnouncement) && to == Destination::Multicast);
            let Some(bytes) = self.distorted(&buffer[..length]).filter(|_| !silenced) else { continue };
            buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
            return Some((to, bytes.len()));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let begun = self.begun.unwrap_or(Instant::ZERO);
        let step = self.script.front().map(|(due, ..)| begun + due.since(Instant::ZERO));
        let late = self.late.front().map(|(due, ..)| *due);
        [self.node.poll_timeout(), step, late].into_iter().flatten().min()
    }

    fn address_changed(&mut self) {
        self.node.address_changed();
    }

    fn validate(&self, found: &mut dyn FnMut(node::Fault)) {
        // A fault that the plan asks for is no mistake.
        if self.faults.is_empty() {
            self.node.validate(found);
        }
    }

    fn begin_tids(&mut self, tid: u16) {
        self.node.begin_tids(tid);
    }
}
