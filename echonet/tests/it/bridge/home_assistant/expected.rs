//! The entities that Home Assistant must have of an object, after the tables of its class and the values of the device.

use std::collections::HashMap;

use echonet_lite::class::{Class, Data, Number, PropertySpec, Scaled, Unit, Value as Told};
use serde_json::{Value, json};

/// An entity as it must be.
#[derive(Debug)]
pub(super) struct Expected {
    /// The end of its permanent id: the property, and the path of a part.
    pub(super) id: String,
    pub(super) spec: &'static PropertySpec,
    pub(super) domain: &'static str,
    state: State,
    /// Unit and range, for numbers.
    pub(super) number: Option<(Unit, [f64; 3])>,
    /// The texts that can be chosen, or shown, as the device has them.
    pub(super) options: Vec<String>,
    /// The same in the language of the home.
    pub(super) shown: Vec<String>,
    /// Written as `true` and `false`, or by these two names.
    pub(super) pair: Option<[&'static str; 2]>,
}

#[derive(Debug, PartialEq)]
enum State {
    Unknown,
    Number(f64),
    Text(String),
}

/// Device classes that a unit asks for.
const QUANTITIES: &[(Unit, &[&str])] = &[
    (Unit::Celsius, &["temperature"]),
    (Unit::Watt, &["power"]),
    (Unit::Kilowatt, &["power"]),
    (Unit::KilowattHour, &["energy"]),
    (Unit::WattHour, &["energy", "energy_storage"]),
    (Unit::Megajoule, &["energy", "energy_storage"]),
    (Unit::Volt, &["voltage"]),
    (Unit::Ampere, &["current"]),
    (Unit::Milliampere, &["current"]),
    (Unit::Lux, &["illuminance"]),
    (Unit::CubicMetre, &["gas", "water", "volume", "volume_storage"]),
    (Unit::Litre, &["gas", "water", "volume", "volume_storage"]),
    (Unit::MetrePerSecond, &["wind_speed"]),
    (Unit::Second, &["duration"]),
    (Unit::Minute, &["duration"]),
];

/// Properties of a class that one entity for the whole device shows.
const WHOLE: &[(u16, &[u8])] = &[
    (0x0290, &[0x80, 0xB0]),
    (0x0291, &[0x80, 0xB0]),
    (0x0130, &[0x80, 0xB0, 0xB3, 0xA0, 0xA3, 0xB4]),
    (0x026B, &[0xB0, 0xB3]),
    (0x0272, &[0x80, 0xD1]),
    // The lists of circuits and their ranges: each circuit has entities of its own.
    (0x0287, &[0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB9, 0xBA, 0xBB, 0xBC, 0xBD, 0xBE]),
    (0x026F, &[0xE0]),
    (0x0139, &[0x80]),
    (0x0133, &[0x80, 0xA0]),
    (0x0134, &[0x80, 0xA0]),
    (0x0135, &[0x80, 0xA0]),
    (0x0260, &[0xE0, 0xE1, 0xE2, 0xEA]),
    (0x0261, &[0xE0, 0xE1, 0xE2, 0xEA]),
    (0x0263, &[0xE0, 0xE1, 0xE2, 0xEA]),
    (0x0264, &[0xE0, 0xE1, 0xEA]),
    (0x0265, &[0xE0, 0xE1, 0xEA]),
    (0x0266, &[0xE0, 0xE1, 0xEA]),
];

/// Properties that describe the device.
const DESCRIPTION: [u8; 14] = [0x81, 0x82, 0x83, 0x86, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x97, 0x98, 0x9D, 0x9E, 0x9F];

/// All entities of single properties, for a device with all properties of its class and these values.
pub(super) fn entities(class: &'static Class, values: &HashMap<u8, Vec<u8>>) -> Vec<Expected> {
    let in_whole = WHOLE.iter().find(|(code, _)| *code == class.code.to_u16()).map_or(&[][..], |(_, epcs)| epcs);
    let mut found = Vec::new();
    for spec in class.all_properties() {
        let [readable, writable] = [spec.access.get, spec.access.set].map(|rule| rule.is_applicable());
        if DESCRIPTION.contains(&spec.epc) || in_whole.contains(&spec.epc) || !values.contains_key(&spec.epc) {
            continue;
        }
        let value = spec.decode(&values[&spec.epc]).ok().filter(|_| readable);
        let mut leaves = Vec::new();
        collect(spec.data, value, &mut Vec::new(), &mut leaves);
        for (path, data, told) in leaves {
            let writable = writable && path.is_empty();
            if !readable && !writable {
                continue;
            }
            let id = [&[spec.short_name][..], &path].concat().join("_");
            found.extend(entity(class, spec, (id, data, told), writable, values));
        }
    }
    found
}

type Leaf<'a> = (Vec<&'static str>, &'static Data, Option<Told<'a>>);

fn collect<'a>(data: &'static Data, value: Option<Told<'a>>, path: &mut Vec<&'static str>, found: &mut Vec<Leaf<'a>>) {
    match data {
        Data::Object(fields) => {
            for field in *fields {
                path.push(field.short_name);
                collect(field.data, value.and_then(|value| value.field(field.short_name)), path, found);
                path.pop();
            }
        }
        Data::Bitmap(bitmap) => {
            for flag in bitmap.flags {
                let told = match value {
                    Some(Told::Bitmap(flags)) => flags.iter().find(|(of, _)| of.name == flag.name),
                    _ => None,
                };
                path.push(flag.name);
                collect(flag.data, told.map(|(_, value)| value), path, found);
                path.pop();
            }
        }
        _ => found.push((path.clone(), data, value)),
    }
}

/// The alternatives of a type.
fn arms(data: &'static Data) -> &'static [Data] {
    match data {
        Data::OneOf(arms) => arms,
        one => std::slice::from_ref(one),
    }
}

/// The texts of a type, and whether each can be chosen.
fn texts(data: &'static Data) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    for arm in arms(data) {
        let more: Vec<_> = match arm {
            Data::State(states) => {
                // "none" is no state for Home Assistant.
                let name = |name: &str| if name == "none" { "(none)" } else { name }.to_owned();
                states.all.iter().map(|state| (name(state.name), !state.read_only)).collect()
            }
            Data::Level(level) => {
                let series = if level.base == 0x31 || level.size == 0 {
                    String::new()
                } else {
                    format!(" from {:#X}", level.base)
                };
                (1..=level.maximum).map(|level| (format!("level {level}{series}"), true)).collect()
            }
            Data::Numeric(codes) => {
                let number = |code: &echonet_lite::class::Numeric| Scaled {
                    raw: code.number.into(),
                    exponent: code.exponent,
                    unit: Unit::None,
                };
                codes.iter().map(|code| (number(code).to_string(), true)).collect()
            }
            _ => Vec::new(),
        };
        for one in more {
            if !found.iter().any(|(text, _)| *text == one.0) {
                found.push(one);
            }
        }
    }
    found
}

fn entity(
    class: &'static Class,
    spec: &'static PropertySpec,
    (id, data, told): (String, &'static Data, Option<Told<'_>>),
    writable: bool,
    values: &HashMap<u8, Vec<u8>>,
) -> Option<Expected> {
    let numbers: Vec<&Number> = arms(data)
        .iter()
        .filter_map(|arm| match arm {
            Data::Number(number) => Some(number),
            _ => None,
        })
        .collect();
    let is_opaque = |arm: &Data| {
        matches!(arm, Data::Raw { .. } | Data::Array(_) | Data::Object(_) | Data::Bitmap(_) | Data::OneOf(_))
    };
    let is_moment = |arm: &Data| matches!(arm, Data::Time(_) | Data::Date | Data::DateTime { .. });
    if arms(data).iter().any(is_opaque) {
        return None;
    }
    let made = |domain, state, number, options: Vec<String>, pair| {
        Some(Expected { id: id.clone(), spec, domain, state, number, shown: options.clone(), options, pair })
    };
    let text = told.map_or(State::Unknown, |value| State::Text(value.to_string()));
    if arms(data).iter().any(is_moment) {
        return made(if writable { "text" } else { "sensor" }, text, None, Vec::new(), None);
    }
    let domain = if writable { "number" } else { "sensor" };
    if let Some(number) = numbers.first() {
        let state = match told {
            Some(Told::Number(one)) => State::Number(one.to_f64() * factor(class, number, values)),
            _ => State::Unknown,
        };
        let at = |raw| Scaled { raw, exponent: number.exponent, unit: Unit::None }.to_f64();
        let (least, most) = ends(data, &numbers);
        return made(domain, state, Some((number.unit, [at(least), at(most), at(1)])), Vec::new(), None);
    }
    if let [Data::Level(level)] = arms(data) {
        let state = match told {
            Some(Told::Level(step)) => State::Number(step.level.into()),
            _ => State::Unknown,
        };
        return made(domain, state, Some((Unit::None, [1.0, level.maximum.into(), 1.0])), Vec::new(), None);
    }
    let all = texts(data);
    let settable: Vec<String> = all.iter().filter(|(_, can)| *can).map(|(text, _)| text.clone()).collect();
    if let ([one], [Data::State(_)]) = (&settable[..], arms(data)) {
        return writable.then(|| made("button", State::Unknown, None, vec![one.clone()], None)).flatten();
    }
    let pairs = [["true", "false"], ["on", "off"], ["open", "closed"], ["open", "close"], ["anyOpen", "allClose"]];
    let is_pair = |pair: &&[&str; 2]| all.len() == 2 && all.iter().all(|(text, _)| pair.contains(&text.as_str()));
    let named = |value: Told<'_>| match value {
        Told::State(named) if named.name() == "none" => "(none)".to_owned(),
        Told::State(named) => named.name().to_owned(),
        other => other.to_string(),
    };
    if let Some(pair) = pairs.iter().find(is_pair) {
        let on = |value| State::Text(if named(value) == pair[0] { "on" } else { "off" }.to_owned());
        let domain = if writable { "switch" } else { "binary_sensor" };
        return made(domain, told.map_or(State::Unknown, on), None, Vec::new(), Some(*pair));
    }
    let state = told.map(named).filter(|text| !writable || settable.contains(text));
    let options = if writable { settable } else { all.into_iter().map(|(text, _)| text).collect() };
    made(if writable { "select" } else { "sensor" }, state.map_or(State::Unknown, State::Text), None, options, None)
}

/// The ends of several ranges. A code for a state is no number, though it lies in the range.
fn ends(data: &'static Data, numbers: &[&Number]) -> (i64, i64) {
    let is_state = |raw: i64| {
        arms(data).iter().any(|arm| match arm {
            Data::State(states) => states.all.iter().any(|state| i64::try_from(state.code) == Ok(raw)),
            _ => false,
        })
    };
    let least = numbers.iter().map(|number| number.minimum).min().unwrap();
    let most = numbers.iter().map(|number| number.maximum).max().unwrap();
    (least + i64::from(is_state(least)), most - i64::from(is_state(most)))
}

/// The product of the properties that a number is counted in.
fn factor(class: &Class, number: &Number, values: &HashMap<u8, Vec<u8>>) -> f64 {
    let value = |epc: &u8| match class.property(*epc)?.decode(values.get(epc)?).ok()? {
        Told::Number(number) => Some(number.to_f64()),
        _ => None,
    };
    number.coefficients.iter().filter_map(value).product()
}

impl Expected {
    /// The same entity in a home with these words for the options, in their order.
    pub(super) fn in_words(mut self, words: &[String]) -> Self {
        if words.len() == self.options.len() {
            if let State::Text(text) = &mut self.state
                && let Some(at) = self.options.iter().position(|option| option == text)
            {
                text.clone_from(&words[at]);
            }
            self.shown = words.to_vec();
        }
        self
    }

    /// The faults of an entity's state in Home Assistant.
    pub(super) fn faults(&self, state: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let mut must = |what: &str, is: &Value, expected: Value| {
            if *is != expected {
                found.push(format!("{what} is {is}, not {expected}"));
            }
        };
        let attributes = &state["attributes"];
        let unit = attributes["unit_of_measurement"].as_str();
        let is = state["state"].as_str().unwrap_or_default();
        match &self.state {
            State::Unknown => must("state", &is.into(), json!("unknown")),
            State::Text(text) => must("state", &is.into(), json!(text)),
            State::Number(number) => {
                // A metric home sees wind in kilometres per hour.
                let shown = if unit == Some("km/h") { number * 3.6 } else { *number };
                let is_close = is.parse::<f64>().is_ok_and(|is| (is - shown).abs() <= 1e-6 * shown.abs().max(1.0));
                if !is_close {
                    must("state", &is.into(), json!(shown));
                }
            }
        }
        if let Some((of, [least, most, step])) = self.number {
            let symbol = match of {
                Unit::None | Unit::Digit => Value::Null,
                Unit::Lux => "lx".into(),
                Unit::RevolutionPerMinute => "rpm".into(),
                Unit::MetrePerSecond => "km/h".into(),
                other => other.symbol().into(),
            };
            must("unit", &attributes["unit_of_measurement"], symbol);
            let class = attributes["device_class"].as_str().unwrap_or_default();
            if let Some((_, classes)) = QUANTITIES.iter().find(|(unit, _)| *unit == of)
                && !classes.contains(&class)
            {
                must("device_class", &class.into(), json!(classes));
            }
            if self.domain == "sensor" && of != Unit::None && of != Unit::Digit {
                let counts = ["energy", "gas", "water", "volume"].contains(&class);
                must(
                    "state_class",
                    &attributes["state_class"],
                    if counts { "total_increasing" } else { "measurement" }.into(),
                );
            }
            if self.domain == "number" {
                let range = [("min", least), ("max", most), ("step", step)];
                range.into_iter().for_each(|(key, number)| must(key, &json!(attributes[key].as_f64()), json!(number)));
            }
        }
        if !self.options.is_empty() && self.domain != "button" {
            must("options", &attributes["options"], json!(self.shown));
        }
        found
    }
}
