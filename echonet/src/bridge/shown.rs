//! How values of ECHONET properties appear in MQTT: which kind of entity shows them, and their payloads.

use echonet_lite::class::{Data, Number, Scaled, Unit, Value};

use super::device_class;

/// Home Assistant's payload for "not known".
pub(super) const UNKNOWN: &str = "None";

/// A state of some classes, and how it is written in MQTT: a select of Home Assistant takes "none" for "not known".
const NONE: [&str; 2] = ["none", "(none)"];

/// The name of a state, as it is written in MQTT.
fn written(name: &str) -> &str {
    if name == NONE[0] { NONE[1] } else { name }
}

/// The name of a state that is written so in MQTT.
pub(super) fn meant(payload: &str) -> &str {
    if payload == NONE[1] { NONE[0] } else { payload }
}

/// How a value can be shown, after its data type.
#[derive(Debug)]
pub(super) enum Kind {
    /// One of two names, the first of which is "on".
    Switch([&'static str; 2]),
    /// A number between two others, in steps, with a unit; and names that may be chosen instead.
    Number { minimum: Scaled, maximum: Scaled, step: Scaled, unit: Unit, names: Vec<&'static str> },
    /// One of these texts; of them the ones that can be chosen.
    Choice { all: Vec<String>, settable: Vec<String> },
    /// Something that is only told to do what it can do.
    Button(&'static str),
    /// A text of so many bytes at most.
    Text(u8),
    /// A time or a date, as text.
    Moment(&'static str),
}

const TIME: &str = "^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$";
const SPAN: &str = "^[0-9]{1,3}:[0-5][0-9](:[0-5][0-9])?$";
const DATE: &str = "^[0-9]{4}-[01][0-9]-[0-3][0-9]$";
const MOMENT: &str = "^[0-9]{4}-[01][0-9]-[0-3][0-9] [0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?$";

/// The types that a value may be of.
fn arms(data: &'static Data) -> &'static [Data] {
    match data {
        Data::OneOf(arms) => arms,
        one => std::slice::from_ref(one),
    }
}

impl Kind {
    /// How values of a type are shown; none for what has no form of its own: bytes, lists, fields (see [`leaves`]).
    pub(super) fn of(data: &'static Data) -> Option<Self> {
        let (mut numbers, mut all, mut settable) = (Vec::<&Number>::new(), Vec::new(), Vec::new());
        let (mut names, mut codes) = (Vec::new(), Vec::new());
        let mut levels = None;
        for arm in arms(data) {
            match arm {
                Data::Number(number) => numbers.push(number),
                Data::Numeric(codes) => {
                    let texts = codes.iter().map(|code| digits(i64::from(code.number), code.exponent));
                    all.extend(texts.clone());
                    settable.extend(texts);
                }
                Data::Level(level) => {
                    levels = Some(level.maximum);
                    let is_usual = level.base == 0x31 || level.size == 0;
                    let series = if is_usual { String::new() } else { format!(" from {:#X}", level.base) };
                    let texts = (1..=level.maximum).map(|level| format!("level {level}{series}"));
                    all.extend(texts.clone());
                    settable.extend(texts);
                }
                Data::State(states) => {
                    for state in states.all {
                        codes.extend(i64::try_from(state.code));
                        all.push(written(state.name).to_owned());
                        if !state.read_only {
                            settable.push(written(state.name).to_owned());
                            names.push(state.name);
                        }
                    }
                }
                Data::Time(format) => return Some(Self::Moment(if format.maximum_hour > 23 { SPAN } else { TIME })),
                Data::Text { maximum, .. } => return Some(Self::Text(*maximum)),
                Data::Date => return Some(Self::Moment(DATE)),
                Data::DateTime { .. } => return Some(Self::Moment(MOMENT)),
                Data::Bitmap(_) | Data::Raw { .. } | Data::Array(_) | Data::Object(_) | Data::OneOf(_) => return None,
            }
        }
        if let Some(first) = numbers.first() {
            return Self::number(first, &numbers, &codes, names);
        }
        if let ([one], [Data::State(_)]) = (&names[..], arms(data)) {
            return Some(Self::Button(one));
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|text| seen.insert(text.clone()));
        let pairs = [["true", "false"], ["on", "off"], ["open", "closed"], ["open", "close"], ["anyOpen", "allClose"]];
        let is_pair = |pair: &&[&str; 2]| all.len() == 2 && pair.iter().all(|name| all.iter().any(|text| text == name));
        match (pairs.iter().find(is_pair), levels) {
            (Some(["true", "false"]), None) => Some(Self::Switch(["on", "off"])),
            (Some(pair), None) => Some(Self::Switch(*pair)),
            // Levels and nothing else are a number.
            (None, Some(maximum)) if arms(data).len() == 1 => Some(Self::Number {
                minimum: Scaled::whole(1),
                maximum: Scaled::whole(maximum.into()),
                step: Scaled::whole(1),
                unit: Unit::None,
                names,
            }),
            _ => (!all.is_empty()).then_some(Self::Choice { all, settable }),
        }
    }

    /// The number that all ranges have room for; the code of a state at an end of them is none.
    fn number(first: &Number, ranges: &[&Number], codes: &[i64], names: Vec<&'static str>) -> Option<Self> {
        let scaled = |raw| Scaled { raw, exponent: first.exponent, unit: Unit::None };
        let minimum = ranges.iter().map(|range| range.minimum).min()?;
        let minimum = if codes.contains(&minimum) { minimum + 1 } else { minimum };
        let maximum = ranges.iter().map(|range| range.maximum).max()?;
        let maximum = if codes.contains(&maximum) { maximum - 1 } else { maximum };
        let same = ranges.iter().all(|range| range.exponent == first.exponent);
        let (minimum, maximum, step) = (scaled(minimum), scaled(maximum), scaled(1));
        same.then_some(Self::Number { minimum, maximum, step, unit: first.unit, names })
    }

    /// The payload of a value of this kind.
    pub(super) fn payload(&self, value: Value<'_>) -> String {
        match (self, value) {
            (Self::Number { .. }, Value::Number(number)) => number.digits().to_string(),
            (Self::Number { .. }, Value::Level(step)) => step.level.to_string(),
            (Self::Number { .. }, _) | (_, Value::Overflow | Value::Underflow | Value::Unset) => UNKNOWN.to_owned(),
            (Self::Switch(["on", "off"]), Value::State(named)) => match named.as_bool() {
                Some(on) => if on { "on" } else { "off" }.to_owned(),
                None => UNKNOWN.to_owned(),
            },
            // An empty payload would take the topic back.
            (Self::Text(_), Value::Text("")) => UNKNOWN.to_owned(),
            (_, Value::State(named)) => written(named.name()).to_owned(),
            (_, Value::Number(number)) => number.digits().to_string(),
            (_, value) => value.to_string(),
        }
    }
}

fn digits(number: i64, exponent: i8) -> String {
    Scaled { raw: number, exponent, unit: Unit::None }.to_string()
}

/// A part of a property's data that is shown by itself: the path of its names below the property, and its type.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) path: Vec<&'static str>,
    /// The names of these steps as the tables have them.
    pub(super) words: Vec<&'static str>,
    pub(super) name: String,
    pub(super) data: &'static Data,
}

/// The parts of a type that have a form of their own: itself, or its fields and flags. Lists are histories, which are not shown.
pub(super) fn leaves(data: &'static Data) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(data, &mut Vec::new(), &mut Vec::new(), &mut found);
    found
}

fn collect(data: &'static Data, path: &mut Vec<&'static str>, words: &mut Vec<&'static str>, found: &mut Vec<Leaf>) {
    let mut deeper = |step: &'static str, name: &'static str, data: &'static Data, found: &mut Vec<Leaf>| {
        path.push(step);
        words.push(name);
        collect(data, path, words, found);
        path.pop();
        words.pop();
    };
    match data {
        Data::Object(fields) => {
            fields.iter().for_each(|field| deeper(field.short_name, field.name(), field.data, found));
        }
        Data::Bitmap(bitmap) => {
            bitmap.flags.iter().for_each(|flag| deeper(flag.name, flag.name, flag.data, found));
        }
        data if Kind::of(data).is_some() => {
            let name = words.iter().map(|word| device_class::readable(word)).collect::<Vec<_>>().join(" ");
            found.push(Leaf { path: path.clone(), words: words.clone(), name, data });
        }
        _ => {}
    }
}

/// The values of the parts of a value, by their paths.
pub(super) fn values<'a>(value: Value<'a>, data: &'static Data) -> Vec<Part<'a>> {
    match (value, data) {
        (Value::Object(fields), _) => {
            let nested = fields.map(|(field, value)| (field.short_name, values(value, field.data)));
            nested.flat_map(|(name, inner)| beneath(name, inner)).collect()
        }
        (Value::Bitmap(flags), _) => {
            let nested = flags.iter().map(|(flag, value)| (flag.name, values(value, flag.data)));
            nested.flat_map(|(name, inner)| beneath(name, inner)).collect::<Vec<_>>()
        }
        (value, data) => vec![(Vec::new(), data, value)],
    }
}

/// The path of a part, its type and its value.
pub(super) type Part<'a> = (Vec<&'static str>, &'static Data, Value<'a>);

fn beneath<'a>(name: &'static str, inner: Vec<Part<'a>>) -> impl Iterator<Item = Part<'a>> {
    inner.into_iter().map(move |(mut path, data, value)| {
        path.insert(0, name);
        (path, data, value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;

    fn kind(class: &str, property: &str) -> Kind {
        let class = class::by_name(class).unwrap();
        Kind::of(class.property_by_name(property).unwrap().data).unwrap()
    }

    #[test]
    fn kinds_after_data_types() {
        assert!(matches!(kind("generalLighting", "operationStatus"), Kind::Switch(["on", "off"])));
        assert!(matches!(kind("openCloseSensor", "opening"), Kind::Switch(["open", "closed"])));
        assert!(matches!(kind("gasLeakSensor", "thresholdLevel"), Kind::Number { .. }));
        assert!(matches!(kind("gasLeakSensor", "reset"), Kind::Button("reset")));
        assert!(matches!(kind("homeAirConditioner", "timeOfOnTimer"), Kind::Moment(_)));
        let Kind::Number { minimum, maximum, step, unit, names } = kind("temperatureSensor", "value") else { panic!() };
        assert_eq!([minimum, maximum, step].map(|one| one.to_string()), ["-273.2", "3276.6", "0.1"]);
        assert_eq!((unit, names.len()), (Unit::Celsius, 0));
        let Kind::Choice { all, settable } = kind("homeAirConditioner", "airFlowLevel") else { panic!() };
        assert_eq!((all.len(), settable.last().map(String::as_str)), (9, Some("auto")));
    }

    #[test]
    fn payloads_of_every_property_can_be_set_again_where_they_can_be_chosen() {
        for class in class::all() {
            for spec in class.all_properties() {
                let Some(kind) = Kind::of(spec.data) else { continue };
                let texts = match &kind {
                    Kind::Switch(pair) => pair.iter().map(|&name| name.to_owned()).collect(),
                    Kind::Choice { settable, .. } => settable.clone(),
                    Kind::Button(name) => vec![(*name).to_owned()],
                    Kind::Number { minimum, maximum, names, .. } => {
                        let ends = [minimum, maximum].into_iter().map(ToString::to_string);
                        ends.chain(names.iter().map(|&name| name.to_owned())).collect()
                    }
                    Kind::Moment(_) | Kind::Text(_) => continue,
                };
                for text in texts {
                    let mut edt = [0; 255];
                    let length = spec.parse(meant(&text), &mut edt);
                    let length = length.unwrap_or_else(|error| panic!("{class} {:02X} `{text}`: {error}", spec.epc));
                    let value = spec.decode(&edt[..length]).unwrap();
                    let is_number = value.number().is_some() || matches!(value, Value::Level(_));
                    // Some codes of numbers are those of a name, or of an overflow.
                    let is_told = !matches!(kind, Kind::Number { .. }) || is_number;
                    let expected = if is_told { text.as_str() } else { UNKNOWN };
                    assert_eq!(kind.payload(value), expected, "{class} {:02X}", spec.epc);
                }
            }
        }
    }

    #[test]
    fn fields_and_flags_are_shown_by_themselves() {
        let meter = class::by_name("lvSmartElectricEnergyMeter").unwrap();
        let spec = meter.property_by_name("E8").unwrap();
        let paths: Vec<_> = leaves(spec.data).into_iter().map(|leaf| leaf.path.join("/")).collect();
        assert_eq!(paths, ["rPhase", "tPhase"]);
        let value = spec.decode(&[0, 25, 0x7F, 0xFE]).unwrap();
        let shown: Vec<_> = values(value, spec.data)
            .into_iter()
            .map(|(path, data, value)| (path.join("/"), Kind::of(data).unwrap().payload(value)))
            .collect();
        assert_eq!(shown, [("rPhase".into(), "2.5".into()), ("tPhase".into(), UNKNOWN.into())]);
    }
}
