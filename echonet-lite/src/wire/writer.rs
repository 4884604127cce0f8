//! A writer of frames into a buffer.

use core::fmt;

use super::{EDT_MAX, Eoj, Esv, HEADER_LEN, frame};

/// The fields of a frame besides its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Header {
    /// Transaction identifier.
    pub tid: u16,
    /// From.
    pub seoj: Eoj,
    /// To.
    pub deoj: Eoj,
    /// Service.
    pub esv: Esv,
}

/// Why something cannot be written. The frame is as it was before, and can be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WriteError {
    /// The buffer has no room for it.
    NoRoom,
    /// A value is longer than 255 bytes.
    ValueTooLong,
    /// The list has 255 properties already.
    TooManyProperties,
    /// A list without properties, which only SetGet_SNA may have.
    NoProperties,
    /// The service has one list and two were begun, or the reverse.
    WrongLists,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoom => "the buffer has no room for it",
            Self::ValueTooLong => "a value has at most 255 bytes",
            Self::TooManyProperties => "a list has at most 255 properties",
            Self::NoProperties => "a list needs a property",
            Self::WrongLists => "the service has another number of lists",
        })
    }
}

impl core::error::Error for WriteError {}

/// Why [`FrameWriter::property_with`] wrote nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten<E> {
    /// The writer could not.
    Writer(WriteError),
    /// The caller's function would not.
    Source(E),
}

/// Writes one format-1 frame into a buffer. After any calls in any order, [`finish`](Self::finish) returns a frame that
/// [`Frame::parse`](super::Frame::parse) accepts, or an error.
#[derive(Debug)]
pub struct FrameWriter<'b> {
    buffer: &'b mut [u8],
    /// Bytes written.
    length: usize,
    /// Where the count of the current list is.
    count_at: usize,
    esv: Esv,
    second: bool,
}

impl<'b> FrameWriter<'b> {
    /// Begins a frame.
    ///
    /// # Errors
    /// [`WriteError::NoRoom`] for a buffer of fewer than 12 bytes.
    #[inline]
    pub fn new(buffer: &'b mut [u8], header: Header) -> Result<Self, WriteError> {
        let Some(bytes) = buffer.first_chunk_mut::<HEADER_LEN>() else { return Err(WriteError::NoRoom) };
        let [tid_high, tid_low] = header.tid.to_be_bytes();
        let ([a, b, c], [x, y, z]) = (header.seoj.to_bytes(), header.deoj.to_bytes());
        *bytes = [frame::EHD1, frame::FORMAT_1, tid_high, tid_low, a, b, c, x, y, z, header.esv.to_u8(), 0];
        Ok(Self { buffer, length: HEADER_LEN, count_at: frame::field::OPC, esv: header.esv, second: false })
    }

    /// Appends a property.
    ///
    /// # Errors
    /// No room, a value of more than 255 bytes, or 255 properties already: nothing is written.
    #[inline]
    pub fn property(&mut self, epc: u8, edt: &[u8]) -> Result<(), WriteError> {
        if edt.len() > EDT_MAX {
            return Err(WriteError::ValueTooLong);
        }
        let room = self.room()?;
        let Some(target) = room.get_mut(2..2 + edt.len()) else { return Err(WriteError::NoRoom) };
        target.copy_from_slice(edt);
        self.commit(epc, edt.len());
        Ok(())
    }

    /// Appends a property whose value `fill` writes in place, returning its length. It gets all the room there is, up to
    /// 255 bytes, whose content is arbitrary.
    ///
    /// # Errors
    /// No room for an empty value, 255 properties already, a length beyond the room, or what `fill` returns: nothing is
    /// written.
    #[inline]
    pub fn property_with<E>(
        &mut self,
        epc: u8,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Unwritten<E>> {
        let room = self.room().map_err(Unwritten::Writer)?;
        let value = &mut room[2..];
        let most = value.len().min(EDT_MAX);
        let length = fill(&mut value[..most]).map_err(Unwritten::Source)?;
        if length > most {
            return Err(Unwritten::Writer(WriteError::NoRoom));
        }
        self.commit(epc, length);
        Ok(())
    }

    /// Bytes that the value of a next property can have: `None` if there is no room even for an empty one.
    #[inline]
    pub fn value_room(&self) -> Option<usize> {
        self.remaining().checked_sub(2).map(|room| room.min(EDT_MAX))
    }

    /// Bytes of the buffer that are free.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.buffer.len() - self.length
    }

    /// Properties in the current list.
    #[inline]
    pub fn count(&self) -> usize {
        usize::from(self.buffer[self.count_at])
    }

    /// Ends the list of properties to be written and begins that of those to be read: SetGet and its answers.
    ///
    /// # Errors
    /// The service has one list or the second is begun already, the first is empty, or there is no room.
    pub fn second_list(&mut self) -> Result<(), WriteError> {
        if !self.esv.has_two_lists() || self.second {
            return Err(WriteError::WrongLists);
        }
        self.check_count(self.esv)?;
        let Some(count) = self.buffer.get_mut(self.length) else { return Err(WriteError::NoRoom) };
        *count = 0;
        self.count_at = self.length;
        self.length += 1;
        self.second = true;
        Ok(())
    }

    /// The frame.
    ///
    /// # Errors
    /// A list without properties, or a SetGet without its second list.
    #[inline]
    pub fn finish(self) -> Result<&'b [u8], WriteError> {
        let esv = self.esv;
        self.finish_as(esv)
    }

    /// The frame with another service than that it was begun with: an answer shows only at its end whether it is a refusal.
    ///
    /// # Errors
    /// As [`Self::finish`], and where `esv` does not have the lists that were written.
    #[inline]
    pub fn finish_as(self, esv: Esv) -> Result<&'b [u8], WriteError> {
        if esv.has_two_lists() != self.second {
            return Err(WriteError::WrongLists);
        }
        self.check_count(esv)?;
        if self.second && esv != Esv::SetGetSna && self.buffer[frame::field::OPC] == 0 {
            return Err(WriteError::NoProperties);
        }
        self.buffer[frame::field::ESV] = esv.to_u8();
        Ok(&self.buffer[..self.length])
    }

    /// The rest of the buffer, at least the two bytes of a property without value.
    #[inline]
    fn room(&mut self) -> Result<&mut [u8], WriteError> {
        if self.count() == usize::from(u8::MAX) {
            return Err(WriteError::TooManyProperties);
        }
        let room = &mut self.buffer[self.length..];
        if room.len() < 2 { Err(WriteError::NoRoom) } else { Ok(room) }
    }

    /// Makes the value that was put into the room a property.
    #[inline]
    fn commit(&mut self, epc: u8, length: usize) {
        self.buffer[self.length] = epc;
        self.buffer[self.length + 1] = length as u8;
        self.buffer[self.count_at] += 1;
        self.length += 2 + length;
    }

    #[inline]
    fn check_count(&self, esv: Esv) -> Result<(), WriteError> {
        if self.count() == 0 && esv != Esv::SetGetSna { Err(WriteError::NoProperties) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const LIGHT: Eoj = Eoj::new(2, 0x90, 1);

    fn header(esv: Esv) -> Header {
        Header { tid: 0x1234, seoj: Eoj::CONTROLLER, deoj: LIGHT, esv }
    }

    fn begin(buffer: &mut [u8], esv: Esv) -> FrameWriter<'_> {
        FrameWriter::new(buffer, header(esv)).unwrap()
    }

    #[test]
    fn exact_bytes() {
        let mut buffer = [0xEE; 32];
        let mut writer = FrameWriter::new(&mut buffer, header(Esv::SetGet)).unwrap();
        writer.property(0x80, b"\x30").unwrap();
        writer.second_list().unwrap();
        writer.property(0xB0, b"").unwrap();
        writer
            .property_with(0xB1, |room| {
                room[0] = 7;
                Ok::<_, ()>(1)
            })
            .unwrap();
        let bytes = b"\x10\x81\x12\x34\x05\xff\x01\x02\x90\x01\x6e\x01\x80\x01\x30\x02\xb0\x00\xb1\x01\x07";
        assert_eq!(writer.finish(), Ok(&bytes[..]));
    }

    #[test]
    fn a_refused_property_leaves_the_frame_as_it_was() {
        let mut buffer = [0; 16];
        let mut writer = FrameWriter::new(&mut buffer, header(Esv::SetC)).unwrap();
        assert_eq!(writer.property(0x80, &[0; 3]), Err(WriteError::NoRoom));
        assert_eq!(writer.property(0x80, &[0; 256]), Err(WriteError::ValueTooLong));
        assert_eq!(writer.property_with(0x80, |_| Err::<usize, _>("no")), Err(Unwritten::Source("no")));
        assert_eq!(
            writer.property_with(0x80, |room| Ok::<_, ()>(room.len() + 1)),
            Err(Unwritten::Writer(WriteError::NoRoom))
        );
        assert_eq!(writer.value_room(), Some(2));
        writer.property(0x80, b"\x30\x31").unwrap();
        assert_eq!(writer.value_room(), None);
        assert_eq!(writer.property(0x81, b""), Err(WriteError::NoRoom));
        assert_eq!(writer.finish().unwrap().len(), 16);
    }

    #[test]
    fn lists_must_fit_the_service() {
        let mut buffer = [0; 16];
        assert_eq!(FrameWriter::new(&mut buffer[..11], header(Esv::Get)).err(), Some(WriteError::NoRoom));
        assert_eq!(begin(&mut buffer, Esv::Get).finish(), Err(WriteError::NoProperties));
        assert_eq!(begin(&mut buffer, Esv::Get).second_list(), Err(WriteError::WrongLists));
        assert_eq!(begin(&mut buffer, Esv::SetGet).second_list(), Err(WriteError::NoProperties));
        assert_eq!(begin(&mut buffer, Esv::SetGetSna).finish(), Err(WriteError::WrongLists));
        let mut writer = begin(&mut buffer, Esv::SetGetSna);
        writer.second_list().unwrap();
        assert_eq!(writer.second_list(), Err(WriteError::WrongLists));
        writer.property(0x80, b"").unwrap();
        assert_eq!(writer.finish_as(Esv::SetGetRes), Err(WriteError::NoProperties));
        let mut writer = begin(&mut buffer, Esv::SetGetSna);
        writer.second_list().unwrap();
        assert_eq!(writer.finish().unwrap()[10..], *b"\x5e\x00\x00");
    }

    #[test]
    fn a_list_ends_at_255_properties() {
        let mut buffer = [0; 1024];
        let mut writer = FrameWriter::new(&mut buffer, header(Esv::Get)).unwrap();
        for _ in 0..255 {
            writer.property(0x80, b"").unwrap();
        }
        assert_eq!(writer.property(0x80, b""), Err(WriteError::TooManyProperties));
        assert!(Frame::parse(writer.finish().unwrap()).is_ok());
    }

    fn list() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
        proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..260)), 0..6)
    }

    proptest! {
        /// After any writes in any order, the frame parses and says what was accepted.
        #[test]
        fn written_frames_parse_to_the_accepted_properties(
            tid: u16, seoj: [u8; 3], deoj: [u8; 3], esv in 0..16_usize, first in list(), second in list(),
            begins_second: bool, size in 0..1500_usize,
        ) {
            let header = Header {
                tid, seoj: Eoj::from_bytes(seoj), deoj: Eoj::from_bytes(deoj), esv: Esv::ALL[esv],
            };
            let mut buffer = std::vec![0; size];
            let Ok(mut writer) = FrameWriter::new(&mut buffer, header) else { return Ok(()) };
            let mut accepted = [Vec::new(), Vec::new()];
            for (epc, edt) in first {
                if writer.property(epc, &edt).is_ok() { accepted[0].push((epc, edt)); }
            }
            let two = begins_second && writer.second_list().is_ok();
            for (epc, edt) in second {
                if writer.property(epc, &edt).is_ok() { accepted[usize::from(two)].push((epc, edt)); }
            }
            let Ok(bytes) = writer.finish() else { return Ok(()) };
            let Ok(Frame::Format1(message)) = Frame::parse(bytes) else { panic!("{bytes:02X?}") };
            prop_assert_eq!((message.tid(), message.seoj(), message.deoj(), message.esv()),
                (header.tid, header.seoj, header.deoj, header.esv));
            let read = |list: super::super::Properties<'_>| {
                list.map(|property| (property.epc, property.edt.to_vec())).collect::<Vec<_>>()
            };
            prop_assert_eq!([read(message.properties()), read(message.get_properties())], accepted);
        }
    }
}
