//! The faults that an emulated node has on purpose.

use core::time::Duration;
use std::vec::Vec;

use super::answer::Message;
use crate::wire::{ClassCode, Eoj, PROPERTY_MAP_MAX, PropertySet};

/// Something that a node does wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: Kind,
    /// Which object does it; all of the node, if not given.
    pub eoj: Option<Eoj>,
    /// At which property, where the fault is one of a property.
    pub epc: u8,
    /// The wrong value, for [`Kind::WrongValue`].
    pub edt: Vec<u8>,
    /// How late, for [`Kind::Late`].
    pub delay: Duration,
}

/// The kinds of faults. A file names them in lower case with dashes: `wrong-size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Nothing is ever answered.
    Silent,
    /// Answers come late by `seconds`.
    Late,
    /// Every answer comes twice.
    Repeated,
    /// Answers carry another transaction identifier than their request.
    WrongTid,
    /// Answers come from another instance than was asked.
    WrongSource,
    /// Answers are for the node profile instead of the object that asked.
    WrongDestination,
    /// Requests that a node would refuse are not answered.
    NoRefusal,
    /// Refusals have the service code of success.
    RefusalAsSuccess,
    /// Of several properties only the first is answered.
    OnlyFirst,
    /// Several properties are answered in the reverse order.
    Reversed,
    /// A refused write does not give back the value.
    RefusalWithoutValue,
    /// A confirmed write gives back the value.
    ConfirmationWithValue,
    /// INFC is not confirmed.
    NoInfcRes,
    /// INF_REQ is not answered.
    NoInfReq,
    /// SetGet is not answered.
    NoSetGet,
    /// Changes are not announced.
    NoAnnouncement,
    /// Objects that are not there answer, with a refusal.
    AnswersForAbsent,
    /// A property is not there.
    Missing,
    /// A property is there, and no property map says so.
    HiddenInMap,
    /// The maps say that a property can be read and written that cannot.
    InventedInMap,
    /// A value has a byte too many.
    WrongSize,
    /// A value is another one than the property can have.
    WrongValue,
    /// A write is refused though the map allows it.
    Unwritable,
    /// Values are taken that the property cannot have.
    TakesAnything,
    /// The number of instances (0xD3) is one too high.
    WrongCount,
    /// The number of classes (0xD4) leaves the node profile out.
    WrongClassCount,
    /// The instance list (0xD6) lacks the first instance.
    WrongInstances,
    /// The class list (0xD7) lacks the first class.
    WrongClasses,
    /// Property maps of sixteen and more properties are lists.
    LongMapAsList,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 29] = [
        Self::Silent,
        Self::Late,
        Self::Repeated,
        Self::WrongTid,
        Self::WrongSource,
        Self::WrongDestination,
        Self::NoRefusal,
        Self::RefusalAsSuccess,
        Self::OnlyFirst,
        Self::Reversed,
        Self::RefusalWithoutValue,
        Self::ConfirmationWithValue,
        Self::NoInfcRes,
        Self::NoInfReq,
        Self::NoSetGet,
        Self::NoAnnouncement,
        Self::AnswersForAbsent,
        Self::Missing,
        Self::HiddenInMap,
        Self::InventedInMap,
        Self::WrongSize,
        Self::WrongValue,
        Self::Unwritable,
        Self::TakesAnything,
        Self::WrongCount,
        Self::WrongClassCount,
        Self::WrongInstances,
        Self::WrongClasses,
        Self::LongMapAsList,
    ];

    /// Whether it is a fault of one property, which a file has to name.
    pub const fn is_of_property(self) -> bool {
        matches!(
            self,
            Self::Missing
                | Self::HiddenInMap
                | Self::InventedInMap
                | Self::WrongSize
                | Self::WrongValue
                | Self::Unwritable
        )
    }
}

impl Fault {
    /// A fault of a whole node.
    pub fn new(kind: Kind) -> Self {
        Self { kind, eoj: None, epc: 0, edt: Vec::new(), delay: Duration::ZERO }
    }

    /// A fault of a property of one object.
    pub fn of_property(kind: Kind, eoj: Eoj, epc: u8) -> Self {
        Self { eoj: Some(eoj), epc, ..Self::new(kind) }
    }

    /// Whether it is of this object.
    pub(super) fn is_of(&self, eoj: Eoj) -> bool {
        self.eoj.is_none_or(|own| own == eoj)
    }

    /// Changes an outgoing message as the fault wants it; false if it is not to be sent.
    pub(super) fn distort(&self, message: &mut Message) -> bool {
        if !self.is_of(message.seoj) {
            return true;
        }
        let (is_answer, refused) = (message.esv != 0x73, message.esv >> 4 == 5);
        let is_profile = message.seoj.class_code() == ClassCode::NODE_PROFILE;
        match self.kind {
            Kind::NoRefusal => return !refused,
            Kind::NoInfcRes => return message.esv != 0x7A,
            Kind::NoSetGet => return message.esv & 0x0F != 0x0E,
            Kind::WrongTid if is_answer => message.tid ^= 0x0101,
            Kind::WrongSource if is_answer => message.seoj = message.seoj.with_instance(message.seoj.instance() ^ 2),
            Kind::WrongDestination if is_answer => message.deoj = Eoj::NODE_PROFILE,
            Kind::RefusalAsSuccess if refused => message.esv += 0x20,
            Kind::OnlyFirst if is_answer => message.list.truncate(1),
            Kind::Reversed if is_answer => message.list.reverse(),
            Kind::RefusalWithoutValue if matches!(message.esv, 0x50 | 0x51) => {
                message.list.iter_mut().for_each(|(_, edt)| edt.clear());
            }
            Kind::ConfirmationWithValue if message.esv == 0x71 => {
                message.list.iter_mut().for_each(|(_, edt)| edt.push(0x30));
            }
            Kind::HiddenInMap => self.each_map(message, |map| map.without(self.epc)),
            Kind::InventedInMap => self.each_map(message, |map| map.with(self.epc)),
            Kind::LongMapAsList => message.values(0x9F).filter(|edt| edt.len() == PROPERTY_MAP_MAX).for_each(|edt| {
                let set = PropertySet::decode_map_lenient(edt);
                *edt = core::iter::once(set.len() as u8).chain(set).collect();
            }),
            Kind::WrongSize => message.values(self.epc).for_each(|edt| edt.push(0)),
            Kind::WrongValue => message.values(self.epc).for_each(|edt| edt.clone_from(&self.edt)),
            Kind::WrongCount if is_profile => message.values(0xD3).for_each(|edt| step(edt, 1)),
            Kind::WrongClassCount if is_profile => message.values(0xD4).for_each(|edt| step(edt, u8::MAX)),
            Kind::WrongInstances if is_profile => message.values(0xD6).for_each(|edt| shorten(edt, 3)),
            Kind::WrongClasses if is_profile => message.values(0xD7).for_each(|edt| shorten(edt, 2)),
            _ => {}
        }
        true
    }

    /// Rewrites the three property maps.
    fn each_map(&self, message: &mut Message, change: impl Fn(PropertySet) -> PropertySet) {
        for epc in [0x9D, 0x9E, 0x9F] {
            for edt in message.values(epc) {
                // An invented announcement would go unnoticed: no request can show it.
                if epc == 0x9D && self.kind == Kind::InventedInMap {
                    continue;
                }
                let mut map = [0; PROPERTY_MAP_MAX];
                let length = change(PropertySet::decode_map_lenient(edt)).encode_map(&mut map);
                *edt = map[..length].to_vec();
            }
        }
    }
}

/// Adds to the last byte.
fn step(edt: &mut [u8], by: u8) {
    if let Some(last) = edt.last_mut() {
        *last = last.wrapping_add(by);
    }
}

/// Takes the first item of a counted list away.
fn shorten(edt: &mut Vec<u8>, size: usize) {
    if edt.len() > size {
        edt[0] -= 1;
        edt.drain(1..=size);
    }
}
