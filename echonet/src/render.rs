//! Objects, properties and values for people and as JSON.

use std::collections::BTreeMap;

use echonet_lite::class::{self, Class, Data, PropertySpec, Scaled, Unit, Value};
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Map, Value as Json, json};

use crate::language::Language;
use crate::names::{class_of, find, maker};

/// `homeAirConditioner:1`; in hexadecimal where the tables do not have the class.
pub(crate) fn object(eoj: Eoj) -> String {
    match find(eoj.class_code()) {
        Some(class) if eoj.instance() == 0 => format!("{class}:all"),
        Some(class) => format!("{class}:{}", eoj.instance()),
        None => eoj.to_string(),
    }
}

/// The same with the name of the class in another language than English: `homeAirConditioner:1 (Klimaanlage)`.
pub(crate) fn object_in(language: Language, eoj: Eoj) -> String {
    let name = find(eoj.class_code()).filter(|_| language != Language::En).map(|class| language.class(class));
    name.map_or_else(|| object(eoj), |name| format!("{} ({name})", object(eoj)))
}

pub(crate) fn object_json(eoj: Eoj) -> serde_json::Value {
    let class = find(eoj.class_code()).map(|class| class.short_name);
    json!({ "eoj": format!("0x{eoj}"), "class": class, "instance": eoj.instance() })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Decodes bytes of a property by its newest form, or else by an earlier one.
pub(crate) fn decode<'a>(class: &Class, epc: u8, edt: &'a [u8]) -> Option<(&'static PropertySpec, Value<'a>)> {
    let newest = class.property(epc)?;
    let earlier = class.superseded.iter().filter(|spec| spec.epc == epc);
    std::iter::once(newest).chain(earlier).find_map(|spec| Some((spec, spec.decode(edt).ok()?)))
}

/// One, which changes no number.
pub(crate) const ONE: Scaled = Scaled { raw: 1, exponent: 0, unit: Unit::None };

/// The types that a value may be of.
pub(crate) fn arms(data: &'static Data) -> &'static [Data] {
    match data {
        Data::OneOf(arms) => arms,
        one => std::slice::from_ref(one),
    }
}

/// The properties that the numbers of a type are counted in.
pub(crate) fn coefficients(data: &'static Data) -> &'static [u8] {
    let of = |arm: &'static Data| if let Data::Number(number) = arm { Some(number.coefficients) } else { None };
    arms(data).iter().filter_map(of).find(|list| !list.is_empty()).unwrap_or_default()
}

/// True if a coefficient that an object lacks counts as one, because not every object of the class must have it. A meter without the
/// unit of its count tells no energy.
pub(crate) fn is_one_if_absent(class: &Class, epc: u8) -> bool {
    class.property(epc).is_none_or(|spec| !spec.access.get.is_required())
}

/// All properties that something within a type is counted in.
pub(crate) fn counted_in(data: &'static Data) -> Vec<u8> {
    match data {
        Data::Number(number) => number.coefficients.to_vec(),
        Data::OneOf(arms) => arms.iter().flat_map(counted_in).collect(),
        Data::Array(array) => counted_in(array.items),
        Data::Object(fields) => fields.iter().flat_map(|field| counted_in(field.data)).collect(),
        _ => Vec::new(),
    }
}

/// The type of the items, of a type that is or may be a list.
fn items_of(data: &'static Data) -> Option<&'static Data> {
    arms(data).iter().find_map(|arm| if let Data::Array(array) = arm { Some(array.items) } else { None })
}

/// Values of an object's properties that numbers of its other properties are multiplied with.
#[derive(Debug, Default)]
pub(crate) struct Factors(BTreeMap<u8, Scaled>);

impl Factors {
    /// The factors among some properties of an object of a class.
    pub(crate) fn of<'a>(class: Option<&Class>, properties: impl IntoIterator<Item = (u8, &'a [u8])>) -> Self {
        let number = |(epc, edt)| Some((epc, decode(class?, epc, edt)?.1.number()?));
        Self(properties.into_iter().filter_map(number).collect())
    }

    /// The object does not have a property: its numbers are multiplied with nothing for it.
    pub(crate) fn lacks(&mut self, epc: u8) {
        self.0.insert(epc, ONE);
    }

    /// The product of some properties; none if one of them is not known.
    fn product(&self, epcs: &[u8]) -> Option<Scaled> {
        epcs.iter().try_fold(ONE, |product, epc| product.times(*self.0.get(epc)?))
    }
}

/// A value with its numbers multiplied, or as it was sent.
#[derive(Clone, Copy)]
struct Shown<'a> {
    value: Value<'a>,
    data: &'static Data,
    /// None where a factor is not known: nothing in the value is multiplied then.
    factors: Option<&'a Factors>,
    language: Language,
}

impl<'a> Shown<'a> {
    fn number(self, number: Scaled) -> Scaled {
        let product = self.factors.and_then(|factors| factors.product(coefficients(self.data))?.times(number));
        product.unwrap_or(number)
    }

    fn parts(self) -> Option<Parts<'a>> {
        match self.value {
            Value::Array(items) => {
                let data = items_of(self.data)?;
                Some(Parts::Items(items.map(|value| Self { value, data, ..self }).collect()))
            }
            Value::Object(fields) => {
                let part = |(field, value): (&'static class::Field, _)| {
                    (field.short_name, Self { value, data: field.data, ..self })
                };
                Some(Parts::Fields(fields.map(part).collect()))
            }
            _ => None,
        }
    }

    /// For people, with units.
    fn text(self) -> String {
        match (self.parts(), self.value) {
            (Some(Parts::Items(items)), _) => {
                format!("[{}]", items.into_iter().map(Self::text).collect::<Vec<_>>().join(", "))
            }
            (Some(Parts::Fields(fields)), _) => {
                let fields = fields.into_iter().map(|(name, part)| format!("{name}: {}", part.text()));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            (None, Value::Number(number)) => self.number(number).to_string(),
            (None, Value::State(_) | Value::Level(_)) => self.language.shown(&self.value.to_string()),
            (None, value) => value.to_string(),
        }
    }

    fn json(self) -> Json {
        match (self.parts(), self.value) {
            (Some(Parts::Items(items)), _) => items.into_iter().map(Self::json).collect(),
            (Some(Parts::Fields(fields)), _) => {
                Json::Object(fields.into_iter().map(|(name, part)| (name.to_owned(), part.json())).collect())
            }
            // These write JSON; if ever not, better their text than nothing.
            (None, Value::Number(number)) => {
                let digits = self.number(number).digits().to_string();
                serde_json::from_str(&digits).unwrap_or_else(|_| json!(digits))
            }
            (None, value) => {
                serde_json::from_str(&value.json().to_string()).unwrap_or_else(|_| json!(value.to_string()))
            }
        }
    }

    /// The units, in the shape of the value: of a number its unit, of a list that of its items, of fields those of each that
    /// has one.
    fn unit(self) -> Option<Json> {
        match self.value {
            Value::Number(number) => symbol(number.unit),
            Value::Array(_) | Value::Object(_) => units(self.data),
            _ => None,
        }
    }
}

enum Parts<'a> {
    Items(Vec<Shown<'a>>),
    Fields(Vec<(&'static str, Shown<'a>)>),
}

fn symbol(unit: Unit) -> Option<Json> {
    let symbol = unit.symbol();
    (!symbol.is_empty()).then(|| json!(symbol))
}

/// The units of a type, as [`Shown::unit`] has them.
fn units(data: &'static Data) -> Option<Json> {
    match data {
        Data::Number(number) => symbol(number.unit),
        Data::OneOf(arms) => arms.iter().find_map(units),
        Data::Array(array) => units(array.items),
        Data::Object(fields) => {
            let units = fields.iter().filter_map(|field| Some((field.short_name.to_owned(), units(field.data)?)));
            let units: Map<_, _> = units.collect();
            (!units.is_empty()).then_some(Json::Object(units))
        }
        _ => None,
    }
}

/// A property of an object, and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Property<'a> {
    class: Option<&'static Class>,
    epc: u8,
    edt: &'a [u8],
    factors: Option<&'a Factors>,
    /// The language of its text; JSON has English names.
    language: Language,
}

impl<'a> Property<'a> {
    pub(crate) fn new(eoj: Eoj, epc: u8, edt: &'a [u8]) -> Self {
        Self::of(class_of(eoj), epc, edt)
    }

    /// A property of an object of a class, which may have properties of a maker.
    pub(crate) fn of(class: Option<&'static Class>, epc: u8, edt: &'a [u8]) -> Self {
        Self { class, epc, edt, factors: None, language: Language::En }
    }

    /// With what is known of the properties that its numbers are multiplied with.
    pub(crate) fn counted(self, factors: &'a Factors) -> Self {
        Self { factors: Some(factors), ..self }
    }

    /// With names in another language, for people.
    pub(crate) fn shown_in(self, language: Language) -> Self {
        Self { language, ..self }
    }

    /// The properties that its numbers are multiplied with.
    pub(crate) fn counted_in(self) -> PropertySet {
        let newest = self.spec().map(|spec| counted_in(spec.data)).unwrap_or_default();
        PropertySet::of(&newest)
    }

    fn spec(self) -> Option<&'static PropertySpec> {
        self.class?.property(self.epc)
    }

    /// Its short name, or its code where the tables do not have it.
    pub(crate) fn name(self) -> String {
        self.title().map_or_else(|| format!("{:#04X}", self.epc), str::to_owned)
    }

    /// Code and name in two cells.
    pub(crate) fn cells(self) -> [String; 2] {
        [format!("{:#04X}", self.epc), self.title().unwrap_or_default().to_owned()]
    }

    /// The name for programs, or that in another language than English.
    fn title(self) -> Option<&'static str> {
        let spec = self.spec()?;
        Some(if self.language == Language::En { spec.short_name } else { self.language.property(spec) })
    }

    /// The value of the bytes by the newest form of the property, or else by an earlier one.
    fn value(self) -> Option<Value<'a>> {
        decode(self.class?, self.epc, self.edt).map(|(_, value)| value)
    }

    /// The value, and the properties that its numbers should be multiplied with and are not.
    fn shown(self) -> Option<(Shown<'a>, Vec<u8>)> {
        let (spec, value) = decode(self.class?, self.epc, self.edt)?;
        let is_numeric = matches!(value, Value::Number(_) | Value::Array(_) | Value::Object(_));
        let mut counted_in = if is_numeric { counted_in(spec.data) } else { Vec::new() };
        counted_in.sort_unstable();
        counted_in.dedup();
        let factors = self.factors.filter(|factors| factors.product(&counted_in).is_some());
        if factors.is_some() {
            counted_in.clear();
        }
        Some((Shown { value, data: spec.data, factors, language: self.language }, counted_in))
    }

    /// The text of properties that the tables leave as bytes: the release of the specification, the maker's name,
    /// texts.
    fn words(self) -> Option<String> {
        let class = self.class?;
        match (self.epc, self.edt) {
            (0x82, &[major, minor, formats, _]) if class.code == class::NODE_PROFILE.code => {
                let formats: Vec<_> = (0..2).filter(|bit| formats >> bit & 1 == 1).map(|bit| bit + 1).collect();
                let formats = formats.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
                let formats = if formats.is_empty() { String::new() } else { format!(", format {formats}") };
                Some(format!("ECHONET Lite {major}.{minor:02}{formats}"))
            }
            (0x82, &[0, 0, letter @ b'A'..=b'Z', revision]) => Some(match revision {
                0 | 1 => format!("Release {}", char::from(letter)),
                _ => format!("Release {} rev.{revision}", char::from(letter)),
            }),
            (0x8A, &[a, b, c]) => maker([a, b, c]).map(str::to_owned),
            (0x8C | 0x8D, text) => {
                let end = text.iter().rposition(|byte| !matches!(byte, 0 | b' ')).map_or(0, |last| last + 1);
                let is_text = end > 0 && text[..end].iter().all(|byte| matches!(byte, b' '..=b'~'));
                is_text.then(|| text[..end].iter().copied().map(char::from).collect())
            }
            _ => None,
        }
    }

    /// The value for people: with its unit, or in hexadecimal with the reason.
    pub(crate) fn text(self) -> String {
        if let Some(list) = self.list() {
            return if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        }
        if let Some(words) = self.words() {
            return format!("{words} (0x{})", hex(self.edt));
        }
        match (self.value(), self.spec()) {
            // A state that the tables call true is on, where the code is that of a switch.
            (Some(Value::State(state)), _) if matches!((state.code(), state.as_bool()), (0x30, Some(true))) => {
                self.language.shown("on")
            }
            (Some(Value::State(state)), _) if matches!((state.code(), state.as_bool()), (0x31, Some(false))) => {
                self.language.shown("off")
            }
            (Some(_), Some(_)) => {
                let Some((shown, raw)) = self.shown() else { return format!("0x{}", hex(self.edt)) };
                raw.iter().fold(shown.text(), |text, epc| format!("{text} × {epc:#04X}"))
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
                // As the controller reads it: some devices list or count otherwise than the specification says.
                let map = (!self.edt.is_empty()).then(|| PropertySet::decode_map_lenient(self.edt))?;
                Some(map.iter().map(|epc| Self { epc, ..self }.name()).collect())
            }
            0xD5 | 0xD6 if is_profile => {
                let (count, list) = self.edt.split_first()?;
                let (eojs, []) = list.as_chunks::<3>() else { return None };
                (eojs.len() == usize::from(*count))
                    .then(|| eojs.iter().map(|eoj| object_in(self.language, Eoj::from_bytes(*eoj))).collect())
            }
            0xD7 if is_profile => {
                let (_, list) = self.edt.split_first()?;
                let (codes, []) = list.as_chunks::<2>() else { return None };
                let name = |&[group, class]: &[u8; 2]| {
                    let code = echonet_lite::wire::ClassCode::new(group, class);
                    find(code).map_or_else(|| code.to_string(), |class| class.short_name.to_owned())
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

    /// Code, name and value as JSON. Numbers are multiplied with the properties that they are counted in, or it says `raw` and
    /// names these.
    pub(crate) fn json(self) -> Map<String, Json> {
        let mut map = self.json_name();
        map.insert("edt".into(), json!(hex(self.edt)));
        let shown = self.shown();
        let value = match (self.shown_in(Language::En).list(), &shown) {
            (Some(list), _) => json!(list),
            (None, Some((shown, _))) => shown.json(),
            (None, None) => Json::Null,
        };
        map.insert("value".into(), value);
        if let Some(words) = self.words() {
            map.insert("text".into(), json!(words));
        }
        let Some((shown, raw)) = shown else { return map };
        if let Some(unit) = shown.unit() {
            map.insert("unit".into(), unit);
        }
        if !raw.is_empty() {
            let codes: Vec<_> = raw.iter().map(|epc| format!("{epc:#04X}")).collect();
            map.insert("raw".into(), json!(true));
            map.insert("coefficients".into(), json!(codes));
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METER: Eoj = Eoj::new(0x02, 0x88, 1);

    fn shown(epc: u8, edt: &[u8], factors: Option<&Factors>) -> (String, Json) {
        let property = Property::new(METER, epc, edt);
        let property = factors.map_or(property, |factors| property.counted(factors));
        (property.text(), Json::Object(property.json()))
    }

    #[test]
    fn numbers_are_multiplied_or_said_to_be_raw() {
        let energy = 123_456_u32.to_be_bytes();
        let known = Factors::of(class_of(METER), [(0xD3, &[0, 0, 0, 2][..]), (0xE1, &[1])]);
        let (text, json) = shown(0xE0, &energy, Some(&known));
        assert_eq!((text.as_str(), &json["value"], &json["unit"]), ("24691.2 kWh", &json!(24691.2), &json!("kWh")));
        assert_eq!((json.get("raw"), json.get("coefficients")), (None, None));
        // One of the two is not known.
        let partly = Factors::of(class_of(METER), [(0xE1, &[1][..])]);
        for factors in [Some(&partly), None] {
            let (text, json) = shown(0xE0, &energy, factors);
            assert_eq!((text.as_str(), &json["value"]), ("123456 kWh × 0xD3 × 0xE1", &json!(123_456)));
            assert_eq!((&json["raw"], &json["coefficients"]), (&json!(true), &json!(["0xD3", "0xE1"])));
        }
        // A meter without the coefficient counts in units.
        let mut without = partly;
        without.lacks(0xD3);
        assert_eq!(shown(0xE0, &energy, Some(&without)).1["value"], json!(12345.6));
        // A value that is no number is not raw.
        let (text, json) = shown(0xE0, &[0xFF, 0xFF, 0xFF, 0xFE], None);
        assert_eq!((text.as_str(), json.get("raw"), json.get("unit")), ("noData", None, None));
    }

    #[test]
    fn nested_numbers_have_units_and_are_multiplied() {
        let (text, json) = shown(0xE8, &[0, 25, 0x7F, 0xFE], None);
        assert_eq!(text, "{rPhase: 2.5 A, tPhase: noData}");
        assert_eq!(json["value"], json!({ "rPhase": 2.5, "tPhase": "noData" }));
        assert_eq!(json["unit"], json!({ "rPhase": "A", "tPhase": "A" }));
        let history = [&[0, 1][..], &[0, 0, 0, 5].repeat(48)].concat();
        let (text, json) = shown(0xE2, &history, None);
        assert!(text.ends_with(" × 0xD3 × 0xE1"), "{text}");
        assert_eq!((&json["raw"], &json["value"]["electricEnergy"][47]), (&json!(true), &json!(5)));
        let known = Factors::of(class_of(METER), [(0xD3, &[0, 0, 0, 3][..]), (0xE1, &[1])]);
        let (text, json) = shown(0xE2, &history, Some(&known));
        assert!(text.starts_with("{day: 1, electricEnergy: [1.5 kWh, 1.5 kWh"), "{text}");
        assert_eq!((json.get("raw"), &json["value"]["electricEnergy"][47]), (None, &json!(1.5)));
        assert_eq!(json["unit"], json!({ "electricEnergy": "kWh" }));
    }

    #[test]
    fn releases_makers_and_texts_are_words() {
        let check = |eoj: Eoj, epc: u8, edt: &[u8], text: &str, words: Option<&str>| {
            let property = Property::new(eoj, epc, edt);
            assert_eq!(property.text(), text, "{epc:02X}");
            assert_eq!(property.json().get("text").cloned(), words.map(Json::from), "{epc:02X}");
        };
        check(METER, 0x82, &[0, 0, b'R', 2], "Release R rev.2 (0x00005202)", Some("Release R rev.2"));
        check(METER, 0x82, &[0, 0, b'I', 0], "Release I (0x00004900)", Some("Release I"));
        check(METER, 0x82, &[1, 2, 3, 4], "0x01020304", None);
        let profile = "ECHONET Lite 1.14, format 1";
        check(Eoj::NODE_PROFILE, 0x82, &[1, 14, 1, 0], &format!("{profile} (0x010E0100)"), Some(profile));
        check(METER, 0x8A, &[0, 0, 0x0B], "Panasonic (0x00000B)", Some("Panasonic"));
        check(METER, 0x8A, &[0, 0, 0x77], "0x000077", None);
        check(METER, 0x8C, b"AB-1\0\0\0\0\0\0\0\0", "AB-1 (0x41422D310000000000000000)", Some("AB-1"));
        check(METER, 0x8D, &[0; 12], "0x000000000000000000000000", None);
    }
}
