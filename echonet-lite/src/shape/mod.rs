//! The shapes that serde gives to what this crate has (feature `serde`), without an allocator.
//!
//! In formats that people read, codes and bytes are hexadecimal text, as the `echonet` command writes them; in others they are the
//! bytes of the wire.
//!
//! | | for people | otherwise |
//! | --- | --- | --- |
//! | [`ClassCode`](crate::wire::ClassCode), [`Eoj`](crate::wire::Eoj) | `"0x0290"`, `"0x029001"` | a number, three bytes |
//! | [`Esv`](crate::wire::Esv) | its name, `"Get_Res"` | a byte |
//! | [`PropertySet`](crate::wire::PropertySet) | `["0x80", "0xB0"]` | four words of 32 bits |
//! | [`Message`](crate::wire::Message), [`MessageBuf`] | `{"tid": 1, "seoj": …, "deoj": …, "esv": …, "properties": [{"epc": "0xB0", "edt": "64"}]}`, of SetGet with `"getProperties"` too | the bytes of the frame |
//! | a state such as `OperationStatus` | the name of its variant, `"On"` | its code |
//! | [`Quantity`](crate::class::Quantity) | a number in the property's unit, `22.5`, or text: `"undefined"`, `"level 3"` | its code |
//! | [`Record`](crate::class::Record) | text, `"07:00"`, `"{red: 255, green: 128, blue: 0}"` | its bytes |
//! | [`NodeAddr`](crate::controller::NodeAddr) | text, `"fe80::5%2"` | the same |
//!
//! All of these are read, too, a quantity also from text with its unit. Only written are [`Value`](crate::class::Value)
//! (a number, `true` or `false`, a list, fields and named bits as a map, other states, levels and times as text),
//! [`Class`](crate::class::Class) and [`PropertySpec`](crate::class::PropertySpec), and a controller's results: `Answer`,
//! `Notification`, `NodeInfo`.

mod class;
#[cfg(feature = "std")]
mod controller;
mod wire;

use core::fmt;
use core::marker::PhantomData;

use serde_core::de::{Error, Unexpected, Visitor};
use serde_core::ser::{SerializeSeq, Serializer};
use serde_core::{Deserialize, Deserializer, Serialize};

pub(crate) use class::{read_state, write_state};
pub use wire::MessageBuf;

/// A visitor that reads a value from a text.
struct Text<T, P> {
    /// The expected text, as the end of "expected …".
    expected: &'static str,
    parse: P,
    result: PhantomData<T>,
}

/// Reads a text; one that is nothing for `parse` is an error that names what was expected.
fn text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text { expected, parse, result: PhantomData })
}

impl<T, P: FnOnce(&str) -> Option<T>> Visitor<'_> for Text<T, P> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self.expected))
    }
}

/// The code of a property: `"0xB0"`, or a byte.
#[derive(Clone, Copy)]
struct Epc(u8);

impl Serialize for Epc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&format_args!("{:#04X}", self.0))
        } else {
            serializer.serialize_u8(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Epc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u8::deserialize(deserializer).map(Self);
        }
        let parse = |text: &str| u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
        text(deserializer, "the code of a property, such as \"0xB0\"", parse).map(Self)
    }
}

/// Bytes: hexadecimal digits, or as they are.
struct Bytes<'a>(&'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_bytes(self.0) }
    }
}

/// Writes a list.
fn list<S: Serializer, T: Serialize>(serializer: S, items: impl Iterator<Item = T>) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for item in items {
        list.serialize_element(&item)?;
    }
    list.end()
}

/// A value that is written by its `Display`.
struct Shown<T>(T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A list of what an iterator gives, each time that it is cloned.
struct List<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for List<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        list(serializer, self.0.clone())
    }
}
