//! Values of properties, and the tables of classes.

use core::fmt::{self, Write};
use core::marker::PhantomData;

use serde_core::de::{Error, Unexpected, Visitor};
use serde_core::ser::{SerializeMap, SerializeStruct, Serializer};
use serde_core::{Deserialize, Deserializer, Serialize};

use super::{Bytes, Epc, List, Shown, list};
use crate::class::{Class, Data, Property, PropertySpec, Quantity, Record, Scaled, Spec, Value, parse_text};
use crate::wire::EDT_MAX;

impl Serialize for Scaled {
    /// The number without its unit: whole where it is.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.steps(0) {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(self.to_f64()),
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Number(number) => number.serialize(serializer),
            Self::State(_) if self.state() == Some("true") => serializer.serialize_bool(true),
            Self::State(_) if self.state() == Some("false") => serializer.serialize_bool(false),
            Self::Raw(bytes) => Bytes(bytes).serialize(serializer),
            Self::Bitmap(flags) => {
                let mut map = serializer.serialize_map(None)?;
                for (flag, value) in flags.iter() {
                    map.serialize_entry(flag.name, &value)?;
                }
                map.end()
            }
            Self::Array(items) => list(serializer, items),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(None)?;
                for (field, value) in fields {
                    map.serialize_entry(field.short_name, &value)?;
                }
                map.end()
            }
            Self::List(values) => list(serializer, values.iter()),
            // Steps too: a series may have its base.
            _ => serializer.collect_str(self),
        }
    }
}

impl<D: Spec> Serialize for Quantity<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_u32(self.code());
        }
        match self.number() {
            Some(number) => number.serialize(serializer),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de, D: Spec> Deserialize<'de> for Quantity<D> {
    fn deserialize<R: Deserializer<'de>>(deserializer: R) -> Result<Self, R::Error> {
        if deserializer.is_human_readable() {
            return deserializer.deserialize_any(Typed(PhantomData));
        }
        let code = u32::deserialize(deserializer)?;
        let unexpected = || R::Error::invalid_value(Unexpected::Unsigned(code.into()), &Expected(D::DATA));
        Self::from_code(code).ok_or_else(unexpected)
    }
}

impl<D: Spec, const MOST: usize> Serialize for Record<D, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(self.as_bytes())
        }
    }
}

impl<'de, D: Spec, const MOST: usize> Deserialize<'de> for Record<D, MOST> {
    fn deserialize<R: Deserializer<'de>>(deserializer: R) -> Result<Self, R::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Typed(PhantomData))
        } else {
            deserializer.deserialize_bytes(Typed(PhantomData))
        }
    }
}

/// The values of a type, as the end of "expected …".
struct Expected(&'static Data);

impl serde_core::de::Expected for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)
    }
}

/// Reads a value: a number, a text as `Display` writes it, or bytes.
struct Typed<T>(PhantomData<fn() -> T>);

trait Described: Property {
    const DATA: &'static Data;
}

impl<D: Spec> Described for Quantity<D> {
    const DATA: &'static Data = D::DATA;
}

impl<D: Spec, const MOST: usize> Described for Record<D, MOST> {
    const DATA: &'static Data = D::DATA;
}

impl<T: Described> Typed<T> {
    fn of_text<E: Error>(text: &str, unexpected: Unexpected<'_>) -> Result<T, E> {
        let mut edt = [0; EDT_MAX];
        let parsed = parse_text(T::DATA, text, &mut edt).and_then(|length| T::decode(&edt[..length]).ok());
        parsed.ok_or_else(|| E::invalid_value(unexpected, &Expected(T::DATA)))
    }
}

impl<T: Described> Visitor<'_> for Typed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(T::DATA, f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Self::of_text(text, Unexpected::Str(text))
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<T, E> {
        Self::of_text(if is { "true" } else { "false" }, Unexpected::Bool(is))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Self::of_text(Digits::of(number).as_str(), Unexpected::Signed(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Self::of_text(Digits::of(number).as_str(), Unexpected::Unsigned(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        Self::of_text(Digits::of(number).as_str(), Unexpected::Float(number))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        T::decode(bytes).map_err(|_| E::invalid_value(Unexpected::Bytes(bytes), &self))
    }
}

/// A number as text. A text that is too long for any property is no number.
#[derive(Default)]
struct Digits {
    bytes: [u8; 32],
    length: usize,
}

impl Digits {
    fn of(number: impl fmt::Display) -> Self {
        let mut digits = Self::default();
        if write!(digits, "{number}").is_err() {
            digits.length = 0;
        }
        digits
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

impl Serialize for PropertySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut property = serializer.serialize_struct("PropertySpec", 10)?;
        property.serialize_field("epc", &Epc(self.epc))?;
        property.serialize_field("name", self.short_name)?;
        property.serialize_field("nameEn", self.name())?;
        property.serialize_field("nameJa", self.name_ja())?;
        property.serialize_field("releases", &Shown(self.releases))?;
        property.serialize_field("get", self.access.get.as_str())?;
        property.serialize_field("set", self.access.set.as_str())?;
        property.serialize_field("inf", self.access.inf.as_str())?;
        property.serialize_field("values", &Shown(self.data))?;
        property.serialize_field("unit", &self.number().map(|number| number.unit.symbol()))?;
        property.end()
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut class = serializer.serialize_struct("Class", 6)?;
        class.serialize_field("code", &self.code)?;
        class.serialize_field("class", self.short_name)?;
        class.serialize_field("name", self.name())?;
        class.serialize_field("nameJa", self.name_ja())?;
        class.serialize_field("releases", &Shown(self.releases))?;
        class.serialize_field("properties", &List(self.properties.iter()))?;
        class.end()
    }
}

/// Writes a state: the name of its variant, or its code.
pub(crate) fn write_state<S: Serializer>(serializer: S, name: &'static str, code: u32) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() { serializer.serialize_str(name) } else { serializer.serialize_u32(code) }
}

/// Reads one of these states, which have these names.
pub(crate) fn read_state<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    names: &'static [&'static str],
    all: &[T],
    code: impl Fn(T) -> u32,
) -> Result<T, D::Error> {
    if deserializer.is_human_readable() {
        let at = deserializer.deserialize_str(StateName(names))?;
        return Ok(all[at]);
    }
    let wanted = u32::deserialize(deserializer)?;
    let unexpected = || D::Error::invalid_value(Unexpected::Unsigned(wanted.into()), &"the code of a state");
    all.iter().copied().find(|state| code(*state) == wanted).ok_or_else(unexpected)
}

/// Reads the name of a state; which it is.
struct StateName(&'static [&'static str]);

impl Visitor<'_> for StateName {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a state")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        self.0.iter().position(|name| *name == text).ok_or_else(|| E::unknown_variant(text, self.0))
    }
}
