//! Codes and messages.

use core::fmt;

use serde_core::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_core::ser::{SerializeStruct, Serializer};
use serde_core::{Deserialize, Deserializer, Serialize};

use super::{Bytes, Epc, List, list, text};
use crate::wire::{ClassCode, Eoj, Esv, Frame, HEADER_LEN, Message, Properties, Property, PropertyAccess, PropertySet};

impl Serialize for ClassCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&format_args!("0x{self}"))
        } else {
            serializer.serialize_u16(self.to_u16())
        }
    }
}

impl<'de> Deserialize<'de> for ClassCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            text(deserializer, "a class, such as \"0x0290\"", |text| text.parse().ok())
        } else {
            u16::deserialize(deserializer).map(Self::from_u16)
        }
    }
}

impl Serialize for Eoj {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&format_args!("0x{self}"))
        } else {
            self.to_bytes().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Eoj {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            text(deserializer, "an object, such as \"0x029001\"", |text| text.parse().ok())
        } else {
            <[u8; 3]>::deserialize(deserializer).map(Self::from_bytes)
        }
    }
}

impl Serialize for Esv {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.name())
        } else {
            serializer.serialize_u8(self.to_u8())
        }
    }
}

impl<'de> Deserialize<'de> for Esv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let named = |text: &str| Self::ALL.into_iter().find(|esv| esv.name() == text);
            return text(deserializer, "the name of a service, such as \"Get_Res\"", named);
        }
        let byte = u8::deserialize(deserializer)?;
        let expected = &"the code of a service";
        Self::from_u8(byte).ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(byte.into()), expected))
    }
}

impl Serialize for PropertySet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return list(serializer, self.iter().map(Epc));
        }
        let bits = self.to_bits();
        [0, 32, 64, 96].map(|shift| (bits >> shift) as u32).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PropertySet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return deserializer.deserialize_seq(Codes);
        }
        let words = <[u32; 4]>::deserialize(deserializer)?;
        Ok(Self::from_bits(words.into_iter().rev().fold(0, |bits, word| bits << 32 | u128::from(word))))
    }
}

/// Reads a list of codes; those below 0x80 are no properties.
struct Codes;

impl<'de> Visitor<'de> for Codes {
    type Value = PropertySet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of codes of properties, 0x80 to 0xFF")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut codes: A) -> Result<PropertySet, A::Error> {
        let mut set = PropertySet::EMPTY;
        while let Some(Epc(epc)) = codes.next_element()? {
            if epc < 0x80 {
                return Err(A::Error::invalid_value(Unexpected::Unsigned(epc.into()), &self));
            }
            set = set.with(epc);
        }
        Ok(set)
    }
}

impl Serialize for PropertyAccess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut access = serializer.serialize_struct("PropertyAccess", 3)?;
        access.serialize_field("get", &self.get)?;
        access.serialize_field("set", &self.set)?;
        access.serialize_field("announce", &self.announce)?;
        access.end()
    }
}

impl Serialize for Property<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut property = serializer.serialize_struct("Property", 2)?;
        property.serialize_field("epc", &Epc(self.epc))?;
        property.serialize_field("edt", &Bytes(self.edt))?;
        property.end()
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(self.as_bytes());
        }
        let fields = if self.esv().has_two_lists() { 6 } else { 5 };
        let mut message = serializer.serialize_struct("Message", fields)?;
        message.serialize_field("tid", &self.tid())?;
        message.serialize_field("seoj", &self.seoj())?;
        message.serialize_field("deoj", &self.deoj())?;
        message.serialize_field("esv", &self.esv())?;
        message.serialize_field("properties", &properties(self.properties()))?;
        if self.esv().has_two_lists() {
            message.serialize_field("getProperties", &properties(self.get_properties()))?;
        }
        message.end()
    }
}

fn properties(list: Properties<'_>) -> List<Properties<'_>> {
    List(list)
}

/// A message that was read by serde, in a buffer of `N` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBuf<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> MessageBuf<N> {
    /// The message.
    pub fn message(&self) -> Message<'_> {
        match Frame::parse(self.as_bytes()) {
            Ok(Frame::Format1(message)) => message,
            _ => unreachable!("the bytes were checked when they were read"),
        }
    }

    /// Its bytes, as they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn checked<E: Error>(bytes: [u8; N], length: usize) -> Result<Self, E> {
        match Frame::parse(&bytes[..length]) {
            Ok(Frame::Format1(_)) => Ok(Self { bytes, length }),
            Ok(_) => Err(E::custom("a frame of format 2 is no message")),
            Err(error) => Err(E::custom(error)),
        }
    }
}

impl<const N: usize> Serialize for MessageBuf<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.message().serialize(serializer)
    }
}

impl<'de, const N: usize> Deserialize<'de> for MessageBuf<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_struct("Message", &FIELDS, Whole)
        } else {
            deserializer.deserialize_bytes(Whole)
        }
    }
}

const FIELDS: [&str; 6] = ["tid", "seoj", "deoj", "esv", "properties", "getProperties"];

/// Reads a message into a buffer.
struct Whole<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for Whole<N> {
    type Value = MessageBuf<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message of at most {N} bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<MessageBuf<N>, E> {
        let mut buffer = [0; N];
        let room = buffer.get_mut(..bytes.len()).ok_or_else(|| E::invalid_length(bytes.len(), &self))?;
        room.copy_from_slice(bytes);
        MessageBuf::checked(buffer, bytes.len())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MessageBuf<N>, A::Error> {
        let mut buffer = [0; N];
        let Some((header, lists)) = buffer.split_first_chunk_mut::<LISTS>() else {
            return Err(A::Error::custom("the buffer has no room for a header"));
        };
        header[..2].copy_from_slice(&[0x10, 0x81]);
        // One bit for each field that was there.
        let (mut there, mut length) = (0_u8, 0);
        while let Some(Name(at)) = map.next_key_seed(Names(&FIELDS))? {
            if there & 1 << at != 0 {
                return Err(A::Error::duplicate_field(FIELDS[at]));
            }
            there |= 1 << at;
            match at {
                0 => header[2..4].copy_from_slice(&map.next_value::<u16>()?.to_be_bytes()),
                1 => header[4..7].copy_from_slice(&map.next_value::<Eoj>()?.to_bytes()),
                2 => header[7..10].copy_from_slice(&map.next_value::<Eoj>()?.to_bytes()),
                3 => header[10] = map.next_value::<Esv>()?.to_u8(),
                4 if there & 1 << 5 != 0 => return Err(A::Error::custom("getProperties stand before properties")),
                _ => map.next_value_seed(Rows { room: lists, length: &mut length })?,
            }
        }
        let two = Esv::from_u8(header[10]).is_some_and(Esv::has_two_lists);
        let needed = if two { 6 } else { 5 };
        if let Some(missing) = (0..needed).find(|at| there & 1 << at == 0) {
            return Err(A::Error::missing_field(FIELDS[missing]));
        }
        MessageBuf::checked(buffer, LISTS + length)
    }
}

/// Bytes of a frame before the count of its first list.
const LISTS: usize = HEADER_LEN - 1;

/// A field by its place.
struct Name(usize);

/// Reads the name of a field.
struct Names(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Names {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Names {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", self.0)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
        let found = self.0.iter().position(|known| *known == name);
        found.map(Name).ok_or_else(|| E::unknown_field(name, self.0))
    }
}

/// Reads a list of properties: its count, and EPC, PDC and EDT of each.
struct Rows<'b> {
    room: &'b mut [u8],
    length: &'b mut usize,
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of at most 255 properties for which the buffer has room")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let begin = *self.length;
        let mut count = 0;
        let mut end = begin + 1;
        while let Some(length) = items.next_element_seed(Row(self.room.get_mut(end..).unwrap_or_default()))? {
            end += length;
            count += 1;
        }
        let (Some(place), Ok(count)) = (self.room.get_mut(begin), u8::try_from(count)) else {
            return Err(A::Error::invalid_length(count, &"at most 255 properties, for which there is room"));
        };
        *place = count;
        *self.length = end;
        Ok(())
    }
}

/// Reads one property; how many bytes it takes.
struct Row<'b>(&'b mut [u8]);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_struct("Property", &["epc", "edt"], self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property, {\"epc\": \"0xB0\", \"edt\": \"64\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
        let Some(([epc, pdc], edt)) = self.0.split_first_chunk_mut() else {
            return Err(A::Error::custom("the buffer has no room for all properties"));
        };
        let mut length = None;
        let mut has_code = false;
        while let Some(Name(at)) = map.next_key_seed(Names(&["epc", "edt"]))? {
            if at == 0 {
                (*epc, has_code) = (map.next_value::<Epc>()?.0, true);
            } else {
                length = Some(map.next_value_seed(Digits(edt))?);
            }
        }
        if !has_code {
            return Err(A::Error::missing_field("epc"));
        }
        let length = length.ok_or_else(|| A::Error::missing_field("edt"))?;
        *pdc = length;
        Ok(2 + usize::from(length))
    }
}

/// Reads hexadecimal digits; how many bytes they are.
struct Digits<'b>(&'b mut [u8]);

impl<'de> DeserializeSeed<'de> for Digits<'_> {
    type Value = u8;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u8, D::Error> {
        let expected = "at most 255 bytes in hexadecimal digits, for which the buffer has room";
        text(deserializer, expected, |text| {
            let length = text.len() / 2;
            let room = self.0.get_mut(..length)?;
            if !text.len().is_multiple_of(2) || !text.is_ascii() {
                return None;
            }
            for (at, byte) in room.iter_mut().enumerate() {
                let digits = text.get(2 * at..2 * at + 2)?;
                *byte = digits
                    .bytes()
                    .all(|digit| digit.is_ascii_hexdigit())
                    .then(|| u8::from_str_radix(digits, 16).ok())??;
            }
            u8::try_from(length).ok()
        })
    }
}
