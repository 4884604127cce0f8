//! The answer of one object to one message (Part II, 4.2).

use super::{Object, PropertyAccess, Refused, SetGet};
use crate::wire::{EDT_MAX, Esv, FrameWriter, Header, Message, PROPERTY_MAP_MAX, Properties, PropertySet, Unwritten};

/// The answer of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Nothing.
    Silence,
    /// So many bytes of the buffer, to the requester.
    Unicast(usize),
    /// So many bytes of the buffer, to everyone: INF_REQ.
    Multicast(usize),
}

/// The effect of a message on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) reply: Reply,
    /// Properties with another value than before that are to be announced.
    pub(super) changed: PropertySet,
}

/// Carries out a request or confirms a notification, and writes the answer into `buffer`.
#[inline]
pub(super) fn respond(object: &mut dyn Object, message: &Message<'_>, set_get: SetGet, buffer: &mut [u8]) -> Outcome {
    let mut outcome = Outcome { reply: Reply::Silence, changed: PropertySet::EMPTY };
    let esv = message.esv();
    // Begun as a refusal, whose lists may be empty.
    let begun = esv.refused().unwrap_or(esv);
    let header = Header { tid: message.tid(), seoj: object.eoj(), deoj: message.seoj(), esv: begun };
    let Ok(mut writer) = FrameWriter::new(buffer, header) else { return outcome };
    let accepted = match esv {
        Esv::Get => read(object, object.access().get, message.properties(), &mut writer),
        Esv::InfReq => read(object, notifiable(object.access()), message.properties(), &mut writer),
        Esv::SetI | Esv::SetC => write(object, message.properties(), 0, &mut writer, &mut outcome.changed),
        Esv::SetGet => write_and_read(object, message, set_get, &mut writer, &mut outcome.changed),
        Esv::Infc => message.properties().all(|property| writer.property(property.epc, &[]).is_ok()),
        _ => return outcome,
    };
    let Some(answer) = (if accepted { esv.accepted() } else { esv.refused() }) else { return outcome };
    if let Ok(frame) = writer.finish_as(answer) {
        let length = frame.len();
        outcome.reply = if answer == Esv::Inf { Reply::Multicast(length) } else { Reply::Unicast(length) };
    }
    outcome
}

/// The properties that INF_REQ may ask for: all readable ones, and those that are only announced, such as the instance
/// list.
pub(super) fn notifiable(access: &PropertyAccess) -> PropertySet {
    access.get.union(access.announce)
}

/// Appends one property with its value.
///
/// # Errors
/// `Refused` by the object; [`Unwritten::Writer`] if there is no room for the value.
#[inline]
pub(super) fn append(object: &dyn Object, epc: u8, writer: &mut FrameWriter<'_>) -> Result<(), Unwritten<Refused>> {
    if writer.value_room() == Some(EDT_MAX) {
        // An object that claims more than it was given has no value.
        return writer
            .property_with(epc, |edt| value(object, epc, edt))
            .map_err(|_| Unwritten::Source(Refused::Length));
    }
    append_near_the_end(object, epc, writer)
}

/// An object always gets 255 bytes, so that its author needs not think of the end of the buffer.
#[cold]
fn append_near_the_end(object: &dyn Object, epc: u8, writer: &mut FrameWriter<'_>) -> Result<(), Unwritten<Refused>> {
    let mut scratch = [0; EDT_MAX];
    let length = value(object, epc, &mut scratch).map_err(Unwritten::Source)?;
    let edt = scratch.get(..length).ok_or(Unwritten::Source(Refused::Length))?;
    writer.property(epc, edt).map_err(Unwritten::Writer)
}

/// The value of a property: the maps from the access rules, all others from the object.
#[inline]
fn value(object: &dyn Object, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
    if !PropertyAccess::MAPS.contains(epc) {
        return object.get(epc, edt);
    }
    let access = object.access();
    let set = match epc {
        0x9D => access.announce,
        0x9E => access.set,
        _ => access.get,
    };
    let map = edt.first_chunk_mut::<PROPERTY_MAP_MAX>().ok_or(Refused::Length)?;
    Ok(set.encode_map(map))
}

/// Answers a list of properties to be read. False if one is refused, or does not fit: then the list ends before it
/// (4.2.3.2: as many as can be answered).
#[inline]
fn read(object: &dyn Object, allowed: PropertySet, list: Properties<'_>, writer: &mut FrameWriter<'_>) -> bool {
    let mut accepted = true;
    for property in list {
        let epc = property.epc;
        let appended = if allowed.contains(epc) {
            append(object, epc, writer)
        } else {
            Err(Unwritten::Source(Refused::NoProperty))
        };
        match appended {
            Ok(()) => continue,
            Err(Unwritten::Source(_)) => accepted = false,
            // The list ends here; one that would be empty names the property without its value.
            Err(Unwritten::Writer(_)) if writer.count() > 0 => return false,
            Err(Unwritten::Writer(_)) => accepted = false,
        }
        if writer.property(epc, &[]).is_err() {
            return false;
        }
    }
    accepted
}

/// Writes a list of properties and answers it: accepted ones without value, refused ones with the value they came with.
/// Returns false if one was refused, or its answer does not fit: then it and all behind it are left alone. `keep` bytes
/// of the buffer stay free for the rest behind the list.
fn write(
    object: &mut dyn Object,
    list: Properties<'_>,
    keep: usize,
    writer: &mut FrameWriter<'_>,
    changed: &mut PropertySet,
) -> bool {
    let mut accepted = true;
    for property in list {
        if writer.remaining() < 2 + property.edt.len() + keep {
            return false;
        }
        let written = set(object, property.epc, property.edt, changed);
        let echo = if written.is_ok() { &[] } else { property.edt };
        accepted &= written.is_ok() & writer.property(property.epc, echo).is_ok();
    }
    accepted
}

/// Writes one property and notes whether that is to be announced.
fn set(object: &mut dyn Object, epc: u8, edt: &[u8], changed: &mut PropertySet) -> Result<(), Refused> {
    let access = object.access();
    if !access.set.contains(epc) {
        return Err(Refused::NoProperty);
    }
    let announced = access.announce.contains(epc);
    object.check(epc, edt)?;
    if !announced {
        return object.set(epc, edt);
    }
    let (mut before, mut after) = ([0; EDT_MAX], [0; EDT_MAX]);
    let old = object.get(epc, &mut before).ok().and_then(|length| before.get(..length));
    object.set(epc, edt)?;
    let new = object.get(epc, &mut after).ok().and_then(|length| after.get(..length));
    if old != new {
        *changed = changed.with(epc);
    }
    Ok(())
}

/// SetGet: writes, then reads what is there now (4.2.3.5).
fn write_and_read(
    object: &mut dyn Object,
    message: &Message<'_>,
    set_get: SetGet,
    writer: &mut FrameWriter<'_>,
    changed: &mut PropertySet,
) -> bool {
    let supported = set_get == SetGet::Supported;
    let written = supported && write(object, message.properties(), 1, writer, changed);
    let complete = writer.count() == message.properties().len();
    // A node that knows no SetGet, or cannot tell all that it wrote, reads nothing.
    if writer.second_list().is_err() || !complete {
        return false;
    }
    read(object, object.access().get, message.get_properties(), writer) && written
}
