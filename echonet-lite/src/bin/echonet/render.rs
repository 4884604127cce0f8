//! Objects, properties and values for people and as JSON.

use echonet_lite::class::{self, Class, PropertySpec, Value};
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Map, json};

use crate::names::class_of;

/// `homeAirConditioner:1`; in hexadecimal where the tables do not have the class.
pub(crate) fn object(eoj: Eoj) -> String {
    match class::find(eoj.class_code()) {
        Some(class) if eoj.instance() == 0 => format!("{class}:all"),
        Some(class) => format!("{class}:{}", eoj.instance()),
        None => eoj.to_string(),
    }
}

pub(crate) fn object_json(eoj: Eoj) -> serde_json::Value {
    let class = class::find(eoj.class_code()).map(|class| class.short_name);
    json!({ "eoj": format!("0x{eoj}"), "class": class, "instance": eoj.instance() })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// What bytes of a property say by its newest form, or else by an earlier one.
pub(crate) fn decode<'a>(class: &Class, epc: u8, edt: &'a [u8]) -> Option<(&'static PropertySpec, Value<'a>)> {
    let newest = class.property(epc)?;
    let earlier = class.superseded.iter().filter(|spec| spec.epc == epc);
    std::iter::once(newest).chain(earlier).find_map(|spec| Some((spec, spec.decode(edt).ok()?)))
}

/// A property of an object, and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Property<'a> {
    class: Option<&'static Class>,
    epc: u8,
    edt: &'a [u8],
}

impl<'a> Property<'a> {
    pub(crate) fn new(eoj: Eoj, epc: u8, edt: &'a [u8]) -> Self {
        Self { class: class_of(eoj), epc, edt }
    }

    fn spec(self) -> Option<&'static PropertySpec> {
        self.class?.property(self.epc)
    }

    /// Its short name, or its code where the tables do not have it.
    pub(crate) fn name(self) -> String {
        self.spec().map_or_else(|| format!("{:#04X}", self.epc), |spec| spec.short_name.to_owned())
    }

    /// Code and name in two cells.
    pub(crate) fn cells(self) -> [String; 2] {
        [format!("{:#04X}", self.epc), self.spec().map_or("", |spec| spec.short_name).to_owned()]
    }

    /// What the bytes say by the newest form of the property, or else by an earlier one.
    fn value(self) -> Option<Value<'a>> {
        decode(self.class?, self.epc, self.edt).map(|(_, value)| value)
    }

    /// The value for people: with its unit, or in hexadecimal with the reason.
    pub(crate) fn text(self) -> String {
        if let Some(list) = self.list() {
            return if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        }
        match (self.value(), self.spec()) {
            // What the tables call true is on, where the code is that of a switch.
            (Some(Value::State(state)), _) if matches!((state.code(), state.as_bool()), (0x30, Some(true))) => {
                "on".into()
            }
            (Some(Value::State(state)), _) if matches!((state.code(), state.as_bool()), (0x31, Some(false))) => {
                "off".into()
            }
            (Some(value), Some(spec)) => {
                let coefficients = spec.number().map_or(&[][..], |number| number.coefficients);
                let factors = coefficients.iter().filter(|_| value.number().is_some());
                factors.fold(value.to_string(), |text, epc| format!("{text} × {epc:#04X}"))
            }
            (None, Some(spec)) => match spec.decode(self.edt) {
                Err(error) => format!("0x{} ({})", hex(self.edt), error.cause),
                Ok(value) => value.to_string(),
            },
            (_, None) => format!("0x{}", hex(self.edt)),
        }
    }

    /// Property maps and lists of instances, which the tables leave as bytes.
    fn list(self) -> Option<Vec<String>> {
        let is_profile = self.class?.code == class::NODE_PROFILE.code;
        match self.epc {
            0x9D..=0x9F => {
                let map = PropertySet::decode_map(self.edt).ok()?;
                Some(map.iter().map(|epc| Self { epc, ..self }.name()).collect())
            }
            0xD5 | 0xD6 if is_profile => {
                let (count, list) = self.edt.split_first()?;
                let (eojs, []) = list.as_chunks::<3>() else { return None };
                (eojs.len() == usize::from(*count))
                    .then(|| eojs.iter().map(|eoj| object(Eoj::from_bytes(*eoj))).collect())
            }
            0xD7 if is_profile => {
                let (_, list) = self.edt.split_first()?;
                let (codes, []) = list.as_chunks::<2>() else { return None };
                let name = |&[group, class]: &[u8; 2]| {
                    let code = echonet_lite::wire::ClassCode::new(group, class);
                    class::find(code).map_or_else(|| code.to_string(), |class| class.short_name.to_owned())
                };
                Some(codes.iter().map(name).collect())
            }
            _ => None,
        }
    }

    /// Code and name as JSON, to which more can be added.
    pub(crate) fn json_name(self) -> Map<String, serde_json::Value> {
        let mut map = Map::new();
        map.insert("epc".into(), json!(format!("{:#04X}", self.epc)));
        map.insert("name".into(), json!(self.spec().map(|spec| spec.short_name)));
        map
    }

    /// Code, name and value as JSON.
    pub(crate) fn json(self) -> Map<String, serde_json::Value> {
        let mut map = self.json_name();
        map.insert("edt".into(), json!(hex(self.edt)));
        let value = match (self.list(), self.value()) {
            (Some(list), _) => json!(list),
            // It writes JSON; if ever not, better its text than nothing.
            (None, Some(value)) => {
                serde_json::from_str(&value.json().to_string()).unwrap_or_else(|_| json!(value.to_string()))
            }
            (None, None) => serde_json::Value::Null,
        };
        map.insert("value".into(), value);
        if let Some(number) = self.value().and_then(Value::number) {
            let unit = number.unit.symbol();
            if !unit.is_empty() {
                map.insert("unit".into(), json!(unit));
            }
            let coefficients = self.spec().and_then(PropertySpec::number).map_or(&[][..], |number| number.coefficients);
            if !coefficients.is_empty() {
                let codes: Vec<_> = coefficients.iter().map(|epc| format!("{epc:#04X}")).collect();
                map.insert("coefficients".into(), json!(codes));
            }
        }
        map
    }
}
