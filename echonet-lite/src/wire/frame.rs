//! Frames as checked views of bytes (Part II, 3.2).

use core::fmt;

use super::{Cause, Eoj, Esv, HEADER_LEN, ParseError};

/// Offsets of the fields of a format-1 frame.
pub(super) mod field {
    pub(crate) const EHD1: usize = 0;
    pub(crate) const EHD2: usize = 1;
    pub(crate) const TID: usize = 2;
    /// EDATA of a format-2 frame begins here, too.
    pub(crate) const SEOJ: usize = 4;
    pub(crate) const DEOJ: usize = 7;
    pub(crate) const ESV: usize = 10;
    pub(crate) const OPC: usize = 11;
}

/// EHD1 of ECHONET Lite.
pub(super) const EHD1: u8 = 0x10;
/// EHD2 of format 1.
pub(super) const FORMAT_1: u8 = 0x81;
/// EHD2 of format 2.
pub(super) const FORMAT_2: u8 = 0x82;

/// A frame: one datagram that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Objects, a service and properties.
    Format1(Message<'a>),
    /// Data whose form only its two ends know.
    Format2 {
        /// Transaction identifier.
        tid: u16,
        /// All bytes behind it, possibly none.
        edata: &'a [u8],
    },
}

impl<'a> Frame<'a> {
    /// Checks that `bytes` are exactly one frame. This is the only check there is; nothing that is returned fails later.
    ///
    /// # Errors
    /// The first fault: offset and cause. Unknown services are errors, too, since no node answers them.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else { return Self::parse_short(bytes) };
        if header[field::EHD1] != EHD1 || header[field::EHD2] != FORMAT_1 {
            return Self::parse_short(bytes);
        }
        let service = header[field::ESV];
        let Some(esv) = Esv::from_u8(service) else {
            return Err(ParseError { offset: field::ESV, cause: Cause::UnknownService(service) });
        };
        let mut second = skip_list(bytes, field::OPC, esv)?;
        let end = if esv.has_two_lists() { skip_list(bytes, second, esv)? } else { second };
        if end != bytes.len() {
            return Err(ParseError { offset: end, cause: Cause::TrailingBytes });
        }
        if !esv.has_two_lists() {
            second = bytes.len();
        }
        Ok(Self::Format1(Message { bytes, second, esv }))
    }

    /// Parses a frame that is not of format 1, or is shorter than its header.
    #[cold]
    fn parse_short(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let truncated = ParseError { offset: bytes.len(), cause: Cause::Truncated };
        match (bytes.first(), bytes.get(field::EHD2)) {
            (Some(&ehd1), _) if ehd1 != EHD1 => {
                Err(ParseError { offset: field::EHD1, cause: Cause::NotEchonetLite(ehd1) })
            }
            (_, Some(&ehd2)) if ehd2 != FORMAT_1 && ehd2 != FORMAT_2 => {
                Err(ParseError { offset: field::EHD2, cause: Cause::UnknownFormat(ehd2) })
            }
            (_, Some(&FORMAT_2)) => match bytes.get(field::TID..).and_then(<[u8]>::split_first_chunk) {
                Some((tid, edata)) => Ok(Self::Format2 { tid: u16::from_be_bytes(*tid), edata }),
                None => Err(truncated),
            },
            _ => Err(truncated),
        }
    }

    /// Transaction identifier, which both formats have.
    pub fn tid(&self) -> u16 {
        match self {
            Self::Format1(message) => message.tid(),
            Self::Format2 { tid, .. } => *tid,
        }
    }
}

/// Goes over the list whose count is at `at`; returns where it ends.
#[inline]
fn skip_list(bytes: &[u8], at: usize, esv: Esv) -> Result<usize, ParseError> {
    let truncated = ParseError { offset: bytes.len(), cause: Cause::Truncated };
    let Some(&count) = bytes.get(at) else { return Err(truncated) };
    // SetGet_SNA with 00 00 says that the node does not know SetGet (4.2.3.5).
    if count == 0 && esv != Esv::SetGetSna {
        return Err(ParseError { offset: at, cause: Cause::NoProperties });
    }
    let mut end = at + 1;
    for _ in 0..count {
        let Some(&length) = bytes.get(end + 1) else { return Err(truncated) };
        end += 2 + usize::from(length);
    }
    if end > bytes.len() { Err(truncated) } else { Ok(end) }
}

/// A format-1 frame that was checked: from, to, service and properties.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// At least a header; the lists fill the rest exactly.
    bytes: &'a [u8],
    /// Where the count of the second list is; the end of `bytes` if there is none.
    second: usize,
    esv: Esv,
}

impl<'a> Message<'a> {
    /// Transaction identifier: an answer copies it.
    #[inline]
    pub fn tid(&self) -> u16 {
        let [high, low] = self.array(field::TID);
        u16::from_be_bytes([high, low])
    }

    /// The object that the message comes from.
    #[inline]
    pub fn seoj(&self) -> Eoj {
        Eoj::from_bytes(self.array(field::SEOJ))
    }

    /// The object that the message goes to.
    #[inline]
    pub fn deoj(&self) -> Eoj {
        Eoj::from_bytes(self.array(field::DEOJ))
    }

    /// The service.
    #[inline]
    pub fn esv(&self) -> Esv {
        self.esv
    }

    /// The properties; of SetGet and its answers, those to be written.
    #[inline]
    pub fn properties(&self) -> Properties<'a> {
        Properties::new(self.bytes.get(field::OPC..self.second).unwrap_or_default())
    }

    /// Of SetGet and its answers, the properties to be read; otherwise none.
    #[inline]
    pub fn get_properties(&self) -> Properties<'a> {
        Properties::new(self.bytes.get(self.second..).unwrap_or_default())
    }

    /// The whole frame.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        // Checked by `Frame::parse`; a default costs less code than a panic.
        self.bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({self})")
    }
}

/// One property of a message: its code and the bytes of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Property<'a> {
    /// Code. The specification names 0x80..=0xFF; a peer may send any byte.
    pub epc: u8,
    /// Value, at most 255 bytes; empty where there is none.
    pub edt: &'a [u8],
}

/// The properties of a list, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Properties<'a> {
    rest: &'a [u8],
    count: u8,
}

impl<'a> Properties<'a> {
    /// `list` is a count and the properties that `Frame::parse` found, or nothing.
    #[inline]
    fn new(list: &'a [u8]) -> Self {
        match list.split_first() {
            Some((&count, rest)) => Self { rest, count },
            None => Self { rest: &[], count: 0 },
        }
    }

    /// The value of the first property with this code.
    pub fn find(mut self, epc: u8) -> Option<&'a [u8]> {
        Iterator::find(&mut self, |property| property.epc == epc).map(|property| property.edt)
    }
}

impl<'a> Iterator for Properties<'a> {
    type Item = Property<'a>;

    #[inline]
    fn next(&mut self) -> Option<Property<'a>> {
        if self.count == 0 {
            return None;
        }
        let (&[epc, length], rest) = self.rest.split_first_chunk()?;
        let (edt, rest) = rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        self.count -= 1;
        Some(Property { epc, edt })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.count), Some(usize::from(self.count)))
    }
}

impl ExactSizeIterator for Properties<'_> {}
impl core::iter::FusedIterator for Properties<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn check(bytes: &[u8], expected: Result<(), (usize, Cause)>) {
        let parsed = Frame::parse(bytes).map(|_| ()).map_err(|error| (error.offset, error.cause));
        assert_eq!(parsed, expected, "{bytes:02X?}");
    }

    #[test]
    fn faults_have_offset_and_cause() {
        let get = b"\x10\x81\x12\x34\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00";
        check(get, Ok(()));
        check(b"", Err((0, Cause::Truncated)));
        check(b"\x10", Err((1, Cause::Truncated)));
        check(b"\x80\x81", Err((0, Cause::NotEchonetLite(0x80))));
        check(b"\x10\x83", Err((1, Cause::UnknownFormat(0x83))));
        check(&get[..11], Err((11, Cause::Truncated)));
        check(&get[..13], Err((13, Cause::Truncated)));
        check(&[&get[..], b"\0"].concat(), Err((14, Cause::TrailingBytes)));
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x64\x01\x80\x00", Err((10, Cause::UnknownService(0x64))));
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x62\x00", Err((11, Cause::NoProperties)));
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x62\x02\x80\x00", Err((14, Cause::Truncated)));
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x61\x01\x80\x02\x30", Err((15, Cause::Truncated)));
        // A SetGet without its second list, which kills some nodes.
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x6e\x01\x80\x00", Err((14, Cause::Truncated)));
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x6e\x01\x80\x00\x00", Err((14, Cause::NoProperties)));
        check(b"\x10\x81\0\0\x05\xff\x01\x02\x90\x01\x6e\x00\x01\x80\x00", Err((11, Cause::NoProperties)));
        check(b"\x10\x81\0\0\x02\x90\x01\x05\xff\x01\x5e\x00\x00", Ok(()));
        check(b"\x10\x81\0\0\x02\x90\x01\x05\xff\x01\x5e\x00", Err((12, Cause::Truncated)));
        check(b"\x10\x82\x00", Err((3, Cause::Truncated)));
    }

    #[test]
    fn format_2_is_its_identifier_and_data() {
        for data in [&b""[..], b"\x01", b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"] {
            let bytes = [b"\x10\x82\xab\xcd", data].concat();
            assert_eq!(Frame::parse(&bytes), Ok(Frame::Format2 { tid: 0xABCD, edata: data }));
        }
    }

    #[test]
    fn both_lists_of_setget() {
        let bytes = b"\x10\x81\x00\x07\x05\xff\x01\x01\x30\x01\x6e\x02\x80\x01\x30\xb3\x01\x19\x01\xbb\x00";
        let Ok(Frame::Format1(message)) = Frame::parse(bytes) else { panic!("a SetGet") };
        assert_eq!((message.tid(), message.seoj(), message.deoj()), (7, Eoj::CONTROLLER, Eoj::new(1, 0x30, 1)));
        assert_eq!(message.properties().len(), 2);
        let list: Vec<_> = message.properties().map(|property| (property.epc, property.edt)).collect();
        assert_eq!(list, [(0x80, &b"\x30"[..]), (0xB3, b"\x19")]);
        assert_eq!(message.get_properties().next(), Some(Property { epc: 0xBB, edt: b"" }));
        assert_eq!(message.properties().find(0xB3), Some(&b"\x19"[..]));
        assert_eq!(message.as_bytes(), bytes);
    }
}
