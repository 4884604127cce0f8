//! The node profile object, computed from the objects that the node holds (Part II, 6.11).

use super::{Config, ManyInstances, Object, Objects, Profile, PropertyAccess, Refused, put};
use crate::wire::{ClassCode, Eoj, FrameWriter};

/// Most instances in one list (0xD5, 0xD6): 84 names of 3 bytes and the count fill a value.
pub const INSTANCES_MAX: usize = 84;
/// Most classes in the class list (0xD7): 17 bytes.
pub const CLASSES_MAX: usize = 8;

/// The access of a peer to the node profile. 0xD5 exists only to be announced.
const ACCESS: PropertyAccess =
    PropertyAccess::new(&[0x80, 0x82, 0x83, 0x8A, 0xD3, 0xD4, 0xD6, 0xD7], &[], &[0x80, 0xD5]);

/// ECHONET Lite 1.14, which supports format 1 only (0x82).
const VERSION: [u8; 4] = [1, 14, 1, 0];

/// The profile of a node with these objects.
pub(super) struct NodeProfile<'n, O> {
    config: &'n Config,
    objects: &'n O,
}

impl<'n, O: Objects> NodeProfile<'n, O> {
    pub(super) fn new(config: &'n Config, objects: &'n O) -> Self {
        Self { config, objects }
    }

    fn eojs(&self) -> impl Iterator<Item = Eoj> + '_ {
        (0..self.objects.len()).filter_map(|index| self.objects.get(index).map(Object::eoj))
    }

    /// Each class once, in the order of the objects.
    fn classes(&self) -> impl Iterator<Item = ClassCode> + '_ {
        let class = |index| self.objects.get(index).map(|object: &dyn Object| object.eoj().class_code());
        (0..self.objects.len())
            .filter_map(move |index| class(index).filter(|_| (0..index).all(|before| class(before) != class(index))))
    }

    /// The instances from the `skip`th on: their count, then their names.
    fn instance_list(&self, skip: usize, edt: &mut [u8]) -> Result<usize, Refused> {
        let list = self.eojs().skip(skip).take(INSTANCES_MAX).map(Eoj::to_bytes);
        counted_list(edt, list)
    }

    /// Writes what announces the instances: one property 0xD5, or several if that is wanted of more than 84.
    pub(super) fn announce(&self, writer: &mut FrameWriter<'_>) -> Option<()> {
        let mut skip = 0;
        loop {
            let written = writer.property_with(0xD5, |edt| self.instance_list(skip, edt));
            skip += INSTANCES_MAX;
            let more = self.config.many_instances == ManyInstances::RepeatedD5 && skip < self.objects.len();
            if written.is_err() || !more {
                return (writer.count() > 0).then_some(());
            }
        }
    }
}

impl<O: Objects> Object for NodeProfile<'_, O> {
    fn eoj(&self) -> Eoj {
        match self.config.profile {
            Profile::General => Eoj::NODE_PROFILE,
            Profile::SendOnly => Eoj::SEND_ONLY_NODE_PROFILE,
        }
    }

    fn access(&self) -> &PropertyAccess {
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            0x80 => put(edt, &[0x30]),
            0x82 => put(edt, &VERSION),
            0x83 => put(edt, &self.config.identity.number()),
            0x8A => put(edt, &self.config.identity.maker),
            0xD3 => {
                // Three bytes; the profile is not counted.
                let [_, count @ ..] = u32::try_from(self.objects.len()).unwrap_or(u32::MAX).to_be_bytes();
                put(edt, &count)
            }
            // The profile is counted.
            0xD4 => put(edt, &u16::try_from(1 + self.classes().count()).unwrap_or(u16::MAX).to_be_bytes()),
            0xD5 | 0xD6 => self.instance_list(0, edt),
            0xD7 => counted_list(edt, self.classes().take(CLASSES_MAX).map(|class| class.to_u16().to_be_bytes())),
            _ => Err(Refused::NoProperty),
        }
    }

    fn set(&mut self, _: u8, _: &[u8]) -> Result<(), Refused> {
        Err(Refused::NoProperty)
    }
}

/// A count of one byte and what it counts.
fn counted_list<const N: usize>(edt: &mut [u8], items: impl Iterator<Item = [u8; N]>) -> Result<usize, Refused> {
    let Some((count, list)) = edt.split_first_mut() else { return Err(Refused::Length) };
    *count = 0;
    let mut slots = list.chunks_exact_mut(N);
    for item in items {
        let Some(slot) = slots.next() else { return Err(Refused::Length) };
        slot.copy_from_slice(&item);
        *count += 1;
    }
    Ok(1 + usize::from(*count) * N)
}
