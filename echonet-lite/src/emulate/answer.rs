//! A message that can be changed before it is sent, also into one that a frame's writer would not write.

use std::vec::Vec;

use crate::wire::{Eoj, Frame, Properties};

/// A property and its value.
type List = Vec<(u8, Vec<u8>)>;

/// The parts of a message.
pub(super) struct Message {
    pub(super) tid: u16,
    pub(super) seoj: Eoj,
    pub(super) deoj: Eoj,
    pub(super) esv: u8,
    pub(super) list: List,
    second: Option<List>,
}

impl Message {
    /// The message in a frame, if it has format 1.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        // A SetGet_SNA with two empty lists is whole as it is.
        let Ok(Frame::Format1(message)) = Frame::parse(frame) else { return None };
        let list = |properties: Properties<'_>| properties.map(|one| (one.epc, one.edt.to_vec())).collect();
        let second = message.esv().has_two_lists().then(|| list(message.get_properties()));
        Some(Self {
            tid: message.tid(),
            seoj: message.seoj(),
            deoj: message.deoj(),
            esv: message.esv().to_u8(),
            list: list(message.properties()),
            second,
        })
    }

    /// The values of a property that it carries; a confirmed or refused one has none.
    pub(super) fn values(&mut self, epc: u8) -> impl Iterator<Item = &mut Vec<u8>> {
        let reads = matches!(self.esv, 0x72 | 0x52 | 0x73 | 0x74);
        let first = self.list.iter_mut().filter(move |_| reads);
        first
            .chain(self.second.iter_mut().flatten())
            .filter(move |(of, edt)| *of == epc && !edt.is_empty())
            .map(|(_, edt)| edt)
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from([0x10, 0x81]);
        bytes.extend(self.tid.to_be_bytes());
        bytes.extend(self.seoj.to_bytes());
        bytes.extend(self.deoj.to_bytes());
        bytes.push(self.esv);
        for list in [Some(&self.list), self.second.as_ref()].into_iter().flatten() {
            bytes.push(list.len() as u8);
            for (epc, edt) in list {
                bytes.extend([*epc, edt.len() as u8]);
                bytes.extend(edt);
            }
        }
        bytes
    }
}
