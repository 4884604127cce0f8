//! One node of a virtual home, behind any endpoint.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::answer::Message as Outgoing;
use super::{Emulated, Fault, Kind, Moment, NodePlan};
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
    /// When it was asked for what is due first, or got the first message: the script counts from there.
    begun: Option<Instant>,
    /// The time on its clock then.
    start: Duration,
}

impl Device {
    /// A node as it was planned.
    pub fn new(plan: &NodePlan) -> Self {
        Self::starting_at(plan, Moment::now())
    }

    /// The same, with a clock that shows a moment when it is first served. Tests in virtual time set it.
    pub fn starting_at(plan: &NodePlan, start: Moment) -> Self {
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
            if planned.live {
                let given: Vec<_> = planned.values.iter().map(|(epc, _)| *epc).collect();
                object.enliven(&given, start.0);
            }
            for step in &planned.script {
                let due = Instant::ZERO + step.after;
                script.extend(step.set.iter().map(|(epc, edt)| (due, planned.eoj, *epc, edt.clone())));
            }
            objects.push(object);
        }
        script.sort_by_key(|(due, ..)| *due);
        let node = Node::with_store(config, objects);
        let (faults, script, late) = (plan.faults.clone(), script.into(), VecDeque::new());
        Self { node, faults, script, late, begun: None, start: start.0 }
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

    /// The time on its clock.
    fn clock(&mut self, now: Instant) -> Duration {
        self.start + now.since(*self.begun.get_or_insert(now))
    }

    /// Values that change with time go on to this one, and the script is carried out.
    fn go_on(&mut self, now: Instant) {
        let clock = self.clock(now);
        let begun = self.begun.unwrap_or(now);
        while self.script.front().is_some_and(|(due, ..)| begun + due.since(Instant::ZERO) <= now) {
            let Some((due, eoj, epc, edt)) = self.script.pop_front() else { break };
            self.advance(self.start + due.since(Instant::ZERO));
            // A plan names objects and properties that are there; one that cannot be told has changed all the same.
            let _ = self.change(eoj, epc, &edt);
        }
        self.advance(clock);
    }

    fn advance(&mut self, clock: Duration) {
        let mut changed = Vec::new();
        for object in self.node.objects_mut() {
            changed.extend(object.advance(clock).map(|epc| (object.eoj(), epc)));
        }
        for (eoj, epc) in changed {
            // Without room for it the value has changed all the same.
            let _ = self.node.notify(eoj, epc);
        }
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
        let clock = self.clock(now);
        self.advance(clock);
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
        self.go_on(now);
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
        let moves = self.node.objects().iter().filter_map(Emulated::next).min();
        let moves = moves.map(|clock| begun + clock.saturating_sub(self.start));
        [self.node.poll_timeout(), step, late, moves].into_iter().flatten().min()
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

#[cfg(test)]
mod tests {
    use super::sealed::Device as _;
    use super::*;
    use crate::class;
    use crate::emulate::{ObjectPlan, Step};
    use crate::wire::Frame;

    /// 2026-11-21 10:00:00.
    const START: Moment = Moment(Duration::from_secs(1_795_255_200));

    fn live(class: &str, values: &[(u8, &[u8])], script: Vec<Step>) -> Device {
        let values = values.iter().map(|(epc, edt)| (*epc, edt.to_vec())).collect();
        let object = ObjectPlan { live: true, values, script, ..ObjectPlan::new(class::by_name(class).unwrap(), 1) };
        Device::starting_at(&NodePlan::new(1, [object]), START)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1000)
    }

    fn step(seconds: u64, epc: u8, edt: &[u8]) -> Step {
        Step { after: Duration::from_secs(seconds), set: vec![(epc, edt.to_vec())] }
    }

    /// The values of the first object that a device announces by a moment.
    fn announced(device: &mut Device, now: Instant) -> Vec<(u8, Vec<u8>)> {
        let (mut found, mut buffer) = (Vec::new(), [0; 1500]);
        while let Some((_, length)) = device.poll_transmit(now, &mut buffer) {
            let Ok(Frame::Format1(message)) = Frame::parse(&buffer[..length]) else { panic!("no frame") };
            if message.seoj() == device.objects()[0].eoj() {
                found.extend(message.properties().map(|property| (property.epc, property.edt.to_vec())));
            }
        }
        found
    }

    fn value(device: &Device, epc: u8) -> Vec<u8> {
        let mut edt = [0; 255];
        let length = device.objects()[0].get(epc, &mut edt).unwrap();
        edt[..length].to_vec()
    }

    #[test]
    fn a_shutter_announces_that_it_moves_and_arrives() {
        let mut shutter = live("0263", &[(0xD2, &[10]), (0xE1, &[0])], Vec::new());
        assert!(announced(&mut shutter, at(0)).is_empty());
        shutter.objects_mut()[0].set(0xE0, &[0x41]).unwrap();
        assert_eq!(announced(&mut shutter, at(1)), [(0xEA, vec![0x43])]);
        assert!(shutter.poll_timeout().is_some_and(|next| next <= at(10_000)));
        assert_eq!((announced(&mut shutter, at(5000)), value(&shutter, 0xE1)), (vec![], vec![50]));
        assert_eq!(announced(&mut shutter, at(10_000)), [(0xEA, vec![0x41])]);
        assert_eq!((value(&shutter, 0xE1), value(&shutter, 0xEA)), (vec![100], vec![0x41]));
    }

    #[test]
    fn a_script_counts_from_its_own_times() {
        let script = vec![step(1, 0xE0, &[0x41]), step(5, 0xE0, &[0x43])];
        let mut shutter = live("0260", &[(0xD2, &[10]), (0xE1, &[0])], script);
        announced(&mut shutter, at(0));
        // The node is asked late: it stopped half way all the same.
        let news = announced(&mut shutter, at(60_000));
        assert!(news.ends_with(&[(0xEA, vec![0x45])]), "{news:02X?}");
        assert_eq!(value(&shutter, 0xE1), [40]);

        let power = (2000_i32).to_be_bytes();
        let script = vec![step(3600, 0xE7, &0_i32.to_be_bytes())];
        let mut meter = live("0288", &[(0xE7, &power), (0xE0, &[0, 0, 0, 0])], script);
        announced(&mut meter, at(0));
        announced(&mut meter, at(7_200_000));
        assert_eq!((value(&meter, 0xE0), value(&meter, 0xE7)), (vec![0, 0, 0, 20], vec![0; 4]));
        // Tenths of kilowatt-hours at 10:00, 10:30, 11:00 and later today.
        let history = value(&meter, 0xE2);
        assert_eq!(history[..2], [0, 0]);
        let count = |slot: usize| u32::from_be_bytes(history[2 + 4 * slot..6 + 4 * slot].try_into().unwrap());
        assert_eq!([19, 20, 21, 22, 24, 25].map(count), [0xFFFF_FFFE, 0, 10, 20, 20, 0xFFFF_FFFE]);
    }

    #[test]
    fn objects_that_are_not_live_stay_as_they_are() {
        let class = class::by_name("0288").unwrap();
        let mut meter = Device::starting_at(&NodePlan::new(1, [ObjectPlan::new(class, 1)]), START);
        announced(&mut meter, at(0));
        let before = value(&meter, 0xE0);
        announced(&mut meter, at(7_200_000));
        assert_eq!(value(&meter, 0xE0), before);
    }
}
