//! Judges the answers to any datagram, for random tests and fuzzing.

use echonet_lite::node::{Arrival, Node, Object, Outbox, PropertyAccess};
use echonet_lite::wire::{Eoj, Esv, Frame, Message, PROPERTY_MAP_MAX, Properties, PropertySet};

use crate::support::{Device, config, devices, peer, text};

/// A node, and a check of its answers, worked out anew from the rules.
pub struct Judge {
    node: Node<Vec<Device>>,
    buffer: Vec<u8>,
    /// The bytes that the node sent for the current datagram, one frame behind the other, and where each ends.
    sent: Vec<u8>,
    ends: Vec<usize>,
    /// How many answers there were.
    pub answers: u64,
}

impl Judge {
    pub fn new() -> Self {
        let node = Node::new(config(), devices());
        Self { node, buffer: vec![0; 1472], sent: Vec::new(), ends: Vec::new(), answers: 0 }
    }

    /// Panics if the node's answers break the rules.
    pub fn check(&mut self, datagram: &[u8]) {
        self.sent.clear();
        self.ends.clear();
        let (sent, ends) = (&mut self.sent, &mut self.ends);
        let mut out = Outbox::new(&mut self.buffer, |_, bytes: &[u8]| {
            sent.extend_from_slice(bytes);
            ends.push(sent.len());
        });
        self.node.handle(Default::default(), peer(), Arrival::Unicast, datagram, &mut out);
        let verdict = match Frame::parse(datagram) {
            Ok(Frame::Format1(message)) => self.judge(&message),
            Ok(Frame::Format2 { .. }) | Err(_) => self.ends.is_empty(),
        };
        assert!(verdict, "{} was answered by {}", text(datagram), text(&self.sent));
        self.answers += self.ends.len() as u64;
        while self.node.poll_transmit(Default::default(), &mut self.buffer).is_some() {}
    }

    /// Whether what was sent is what this message deserves.
    fn judge(&self, message: &Message<'_>) -> bool {
        let profile = Eoj::NODE_PROFILE;
        let eojs = self.node.objects().iter().map(Object::eoj).chain([profile]);
        let mut addressed = eojs.filter(|eoj| message.deoj().addresses(*eoj));
        let answerable = message.esv().is_request() || message.esv() == Esv::Infc;
        let mut start = 0;
        for &end in &self.ends {
            let Ok(Frame::Format1(answer)) = Frame::parse(&self.sent[start..end]) else { return false };
            start = end;
            // Objects answer in their order; after SetI those that accept are silent.
            let Some(_) = addressed.find(|&eoj| eoj == answer.seoj()) else { return false };
            let service = [message.esv().accepted(), message.esv().refused()].contains(&Some(answer.esv()));
            let returned = (answer.tid(), answer.deoj()) == (message.tid(), message.seoj());
            if !(answerable && service && returned && self.judge_lists(message, &answer)) {
                return false;
            }
        }
        // No answer is missing.
        !answerable || message.esv() == Esv::SetI || addressed.next().is_none()
    }

    fn judge_lists(&self, message: &Message<'_>, answer: &Message<'_>) -> bool {
        let device = self.node.objects().iter().find(|device| device.eoj == answer.seoj());
        let good = match message.esv() {
            Esv::Get | Esv::InfReq => read(device, message, message.properties(), answer.properties()),
            Esv::SetI | Esv::SetC => written(message.properties(), answer.properties()),
            Esv::SetGet => {
                let good = written(message.properties(), answer.properties());
                let more = read(device, message, message.get_properties(), answer.get_properties());
                good.zip(more).map(|(good, more)| good && more)
            }
            _ => written(message.properties(), answer.properties()).map(|_| true),
        };
        good.is_some_and(|good| good != answer.esv().is_sna())
    }
}

/// Whether each written property comes back in order, without value or with that it had; then whether all were accepted.
/// A refused empty value cannot be told from an accepted one, so empty values count as refused.
fn written(asked: Properties<'_>, answered: Properties<'_>) -> Option<bool> {
    let same = asked.len() == answered.len()
        && asked.zip(answered).all(|(a, b)| a.epc == b.epc && (b.edt.is_empty() || a.edt == b.edt));
    same.then(|| asked.zip(answered).all(|(a, b)| b.edt.is_empty() && !a.edt.is_empty()))
}

/// Whether each read property comes back in order with its value, if there is room; then whether all were there.
fn read(
    device: Option<&Device>,
    message: &Message<'_>,
    asked: Properties<'_>,
    answered: Properties<'_>,
) -> Option<bool> {
    let complete = asked.len() == answered.len();
    let Some(device) = device else {
        // The profile: its values are tested elsewhere.
        let epcs = answered.zip(asked).all(|(answer, ask)| answer.epc == ask.epc);
        return epcs.then(|| complete && answered.into_iter().all(|answer| !answer.edt.is_empty()));
    };
    let access = device.access();
    let readable = if message.esv() == Esv::InfReq { access.get.union(access.announce) } else { access.get };
    let mut all = complete;
    for (answer, ask) in answered.zip(asked) {
        let mut edt = [0; 255];
        let length = readable.contains(ask.epc).then(|| value(device, ask.epc, &mut edt)).flatten();
        all &= length.is_some();
        if answer.epc != ask.epc || answer.edt != &edt[..length.unwrap_or(0)] {
            return None;
        }
    }
    Some(all)
}

fn value(device: &Device, epc: u8, edt: &mut [u8; 255]) -> Option<usize> {
    let PropertyAccess { get, set, announce } = *device.access();
    let map = |set: PropertySet, edt: &mut [u8; 255]| {
        set.encode_map(edt.first_chunk_mut::<PROPERTY_MAP_MAX>().expect("a map is shorter"))
    };
    match epc {
        0x9D => Some(map(announce, edt)),
        0x9E => Some(map(set, edt)),
        0x9F => Some(map(get, edt)),
        _ => device.get(epc, edt).ok(),
    }
}
