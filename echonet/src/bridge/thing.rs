//! An object of a node as Home Assistant sees it: a device with its entities and their values.

use std::collections::HashMap;
use std::time::Duration;

use echonet_lite::class::{Class, Data, PropertySpec, Value};
use echonet_lite::controller::PropertyMaps;
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Map, Value as Json, json};

use super::broker::{OFFLINE, ONLINE};
use super::config::Wanted;
use super::shown::{self, Kind, Leaf, UNKNOWN};
use super::{composite, device_class, translated};
use crate::circuits::{self, Circuits};
use crate::language::{Language, spelled};
use crate::quirks::Quirks;
use crate::render::coefficients;
use crate::{data, names, render};

/// The properties that identify the device, or tell how it is made: read once, shown with the device or not at all.
const DESCRIPTION: PropertySet =
    PropertySet::of(&[0x81, 0x82, 0x83, 0x86, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x97, 0x98, 0x9D, 0x9E, 0x9F]);
/// Those of them that are read.
const DESCRIBES: PropertySet = PropertySet::of(&[0x81, 0x82, 0x8C, 0x8D]);
/// The properties that show a fault.
const DIAGNOSTIC: PropertySet = PropertySet::of(&[0x88, 0x89, 0x9A]);

/// The event of a command that was not carried out.
const TROUBLE: &str = "trouble";

/// Which questions are asked together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// Everything, once.
    First,
    /// Properties that change without an announcement.
    Silent,
    /// Properties that are announced: in case that an announcement was lost.
    Announced,
    /// The values of a board's circuits, range by range.
    Circuits,
    /// The identity of the node: from its profile.
    Identity,
}

/// An object that is shown.
#[derive(Debug)]
pub(super) struct Thing {
    pub(super) class: &'static Class,
    pub(super) maps: PropertyMaps,
    pub(super) quirks: Quirks,
    /// The topics of its properties are below this one.
    pub(super) base: String,
    /// The permanent id of it and its entities.
    pub(super) unique: String,
    /// The number behind the name of the class, for the second object and further ones.
    number: String,
    maker: Option<[u8; 3]>,
    pub(super) values: HashMap<u8, Vec<u8>>,
    pub(super) circuits: Circuits,
    /// The values of its circuits are being asked for.
    pub(super) asks_circuits: bool,
    /// How long to wait between two questions.
    intervals: [Duration; 3],
    pub(super) is_described: bool,
    pub(super) wanted: Wanted,
    /// The language of the names that Home Assistant shows.
    pub(super) language: Language,
}

/// The shortest and the longest time between two questions of a group, by the shortest that the user wants.
fn bounds(group: Group, least: Duration) -> (Duration, Duration) {
    match group {
        Group::First | Group::Identity => (6 * least, 6 * least),
        Group::Silent | Group::Circuits => (least, 30 * least),
        Group::Announced => (30 * least, 180 * least),
    }
}

impl Thing {
    pub(super) fn new(
        class: &'static Class,
        eoj: Eoj,
        maps: PropertyMaps,
        (quirks, maker): (Quirks, Option<[u8; 3]>),
        (prefix, id): (&str, &str),
        least: Duration,
    ) -> Self {
        let maps = quirks.mend(maps);
        let place = eoj.to_string().to_lowercase();
        let least = least.max(quirks.poll_least);
        let number = if eoj.instance() == 1 { String::new() } else { format!(" {}", eoj.instance()) };
        Self {
            class,
            maps,
            quirks,
            base: format!("{prefix}/{id}/{place}"),
            unique: format!("echonet_{id}_{place}"),
            number,
            maker,
            values: HashMap::new(),
            circuits: Circuits::default(),
            asks_circuits: false,
            intervals: [Group::Silent, Group::Announced, Group::Circuits].map(|group| bounds(group, least).0),
            is_described: false,
            wanted: Wanted::default(),
            language: Language::En,
        }
    }

    /// The properties of a group to ask for.
    pub(super) fn properties(&self, group: Group) -> PropertySet {
        let all = self.shown().fold(PropertySet::EMPTY, |set, spec| {
            let counted_in = shown::leaves(spec.data).into_iter().flat_map(|leaf| coefficients(leaf.data));
            counted_in.fold(set.with(spec.epc), |set, epc| set.with(*epc))
        });
        let readable = all.intersection(self.maps.readable);
        match group {
            Group::First => readable.union(DESCRIBES.intersection(self.maps.readable)),
            Group::Silent => readable.difference(self.maps.announced),
            Group::Announced => readable.intersection(self.maps.announced),
            Group::Identity | Group::Circuits => PropertySet::EMPTY,
        }
    }

    /// Takes the class of the product code that it has told: true if that has other properties than the class before.
    pub(super) fn is_now_of_product(&mut self) -> bool {
        const PRODUCT: u8 = 0x8C;
        let product = self.values.get(&PRODUCT).map(Vec::as_slice);
        let class = data::variant(self.class, self.maker, product);
        let before = std::mem::replace(&mut self.class, class);
        !std::ptr::eq(before, class)
    }

    /// How long to wait until a group is asked for again: less if something had changed, more if not.
    pub(super) fn next(&mut self, group: Group, least: Duration, changed: bool) -> Duration {
        let mut least = least.max(self.quirks.poll_least);
        if group == Group::Circuits {
            // Each range is a question.
            least *= u32::try_from(self.parts().len()).unwrap_or(u32::MAX).max(1);
        }
        let (shortest, longest) = bounds(group, least);
        let interval = match group {
            Group::First | Group::Identity => return shortest,
            Group::Silent => &mut self.intervals[0],
            Group::Announced => &mut self.intervals[1],
            Group::Circuits => &mut self.intervals[2],
        };
        *interval = if changed { *interval / 2 } else { *interval + *interval / 2 }.clamp(shortest, longest);
        *interval
    }

    /// The properties that are shown.
    fn shown(&self) -> impl Iterator<Item = &'static PropertySpec> {
        let hidden = DESCRIPTION.union(self.quirks.broken).union(circuits::replaced(self.class, &self.maps));
        let has = self.maps.readable.union(self.maps.writable).difference(hidden);
        let is_shown = move |spec: &&PropertySpec| has.contains(spec.epc) && !shown::leaves(spec.data).is_empty();
        self.class.all_properties().filter(is_shown)
    }

    /// Where Home Assistant looks for its description.
    pub(super) fn description_topic(&self, discovery: &str) -> String {
        format!("{discovery}/device/{}/config", self.unique)
    }

    /// Its description for Home Assistant, as the documentation of MQTT discovery has it: one message for a device.
    ///
    /// It states defaults, too, if Home Assistant's schemas have them within a list or a device. While one thread of Home
    /// Assistant imports a platform, another one can skip these parts of a schema: it then fails at the missing default,
    /// and the entity is missing.
    pub(super) fn description(&self, availability: [&str; 2]) -> Json {
        let mut components = Map::new();
        let whole = composite::component(self.class, &self.maps, &self.quirks.ranges, &self.base);
        let (composite, shown_there) = whole.map_or((None, PropertySet::EMPTY), |(map, set)| (Some(map), set));
        if let Some(mut component) = composite {
            component.insert("unique_id".into(), self.unique.clone().into());
            components.insert("main".into(), component.into());
        }
        for spec in self.shown().filter(|spec| !shown_there.contains(spec.epc)) {
            for (id, component) in self.components(spec) {
                components.insert(id, component.into());
            }
        }
        self.circuit_components(&mut components);
        if !self.maps.writable.is_empty() {
            components.insert(
                TROUBLE.into(),
                json!({
                    "platform": "event", "name": self.language.word("Trouble"), "unique_id": format!("{}_{TROUBLE}", self.unique),
                    "event_types": ["refused", "unanswered"], "state_topic": self.trouble_topic(),
                    "entity_category": "diagnostic",
                }),
            );
        }
        json!({
            "device": self.device(),
            "origin": { "name": "echonet-lite", "sw_version": env!("CARGO_PKG_VERSION") },
            "availability": availability.map(available),
            "availability_mode": "all",
            "components": components,
        })
    }

    /// Where it is told what was not written, and why.
    pub(super) fn trouble_topic(&self) -> String {
        format!("{}/{TROUBLE}", self.base)
    }

    fn device(&self) -> Map<String, Json> {
        let text = |epc| {
            let bytes = self.values.get(&epc)?;
            let text: String =
                bytes.iter().map(|&byte| byte as char).filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
            (!text.trim().is_empty()).then(|| text.trim().to_owned())
        };
        let mut device = Map::new();
        device.insert("identifiers".into(), json!([self.unique]));
        device.insert("connections".into(), json!([]));
        let told = self.values.get(&0x81).and_then(|edt| device_class::area(*edt.first()?));
        let told = told.map(|room| self.language.room(room).to_owned());
        let area = self.wanted.area.clone().or(told);
        let title = || self.title(area.as_deref(), text(0x8C));
        device.insert("name".into(), self.wanted.name.clone().unwrap_or_else(title).into());
        let code = |[a, b, c]: [u8; 3]| format!("maker {a:02X}{b:02X}{c:02X}");
        let maker = self.maker.map(|maker| names::maker(maker).map_or_else(|| code(maker), str::to_owned));
        let release = self.values.get(&0x82).and_then(|edt| match edt[..] {
            [_, _, letter, revision] if letter.is_ascii_uppercase() => {
                Some(format!("ECHONET Lite release {}, revision {revision}", letter as char))
            }
            _ => None,
        });
        let known = [
            ("manufacturer", maker),
            ("model", text(0x8C).or_else(|| Some(self.language.class(self.class).to_owned()))),
            ("serial_number", text(0x8D)),
            ("hw_version", release),
            ("suggested_area", area),
        ];
        device.extend(known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))));
        device
    }

    /// The name of the device: its room, and its model or the end of its node's name where there may be several.
    fn title(&self, area: Option<&str>, model: Option<String>) -> String {
        let node = self.unique.rsplit_once('_').map_or("", |(node, _)| node);
        let end = node.get(node.len().saturating_sub(4)..).unwrap_or_default();
        let name = format!("{}{}", self.language.class(self.class), self.number);
        match (area, model) {
            // A German noun keeps its capital.
            (Some(area), _) if self.language == Language::En => format!("{area} {}", lower_first(&name)),
            (Some(area), _) => format!("{area} {name}"),
            (None, Some(model)) => format!("{name} {model} {end}"),
            (None, None) => format!("{name} {end}"),
        }
    }

    /// The entities of a property, each with a name that no other of the device has.
    fn components(&self, spec: &PropertySpec) -> Vec<(String, Map<String, Json>)> {
        let [readable, writable] = [self.maps.readable, self.maps.writable].map(|map| map.contains(spec.epc));
        let mut found = Vec::new();
        for leaf in shown::leaves(spec.data) {
            let Some(kind) = Kind::of(leaf.data) else { continue };
            let id = [&[spec.short_name][..], &leaf.path].concat().join("_");
            let topic = [&[self.base.as_str(), spec.short_name], &leaf.path[..]].concat().join("/");
            // A part cannot be written alone.
            let writable = writable && leaf.path.is_empty();
            if !readable && !writable {
                continue;
            }
            let name = translated::name(self.language, self.class, spec, &leaf);
            let name = name.unwrap_or_else(|| entity_name(self.class, spec, &leaf));
            let Some(mut component) = self.component(spec, &kind, readable, writable) else { continue };
            translated::options(self.language, &mut component);
            component.insert("name".into(), name.clone().into());
            component.insert("unique_id".into(), format!("{}_{id}", self.unique).into());
            if readable && !matches!(kind, Kind::Button(_)) {
                component.insert("state_topic".into(), topic.clone().into());
            }
            if writable {
                component.insert("command_topic".into(), format!("{topic}/set").into());
            }
            if DIAGNOSTIC.contains(spec.epc) {
                component.insert("entity_category".into(), "diagnostic".into());
            }
            let is_enabled = self.wanted.enables(spec.short_name).unwrap_or_else(|| self.is_of_use(spec, &component));
            if !is_enabled {
                component.insert("enabled_by_default".into(), false.into());
            }
            found.push((id.clone(), component));
            // The named codes of a number get a button each.
            if let (Kind::Number { names, .. }, true) = (&kind, writable) {
                for choice in names {
                    let button = json!({
                        "platform": "button", "name": format!("{name}: {}", translated::word(self.language, choice)),
                        "payload_press": choice, "unique_id": format!("{}_{id}_{choice}", self.unique),
                        "command_topic": format!("{topic}/set"),
                    });
                    let Json::Object(mut button) = button else { continue };
                    if !is_enabled {
                        button.insert("enabled_by_default".into(), false.into());
                    }
                    found.push((format!("{id}_{choice}"), button));
                }
            }
        }
        found
    }

    /// Most users want to see an entity that every device of the class has, or that is measured or detected: true for these.
    /// An air conditioner has 70 others, which a user can switch on.
    fn is_of_use(&self, spec: &PropertySpec, component: &Map<String, Json>) -> bool {
        let is_own = self.class.properties.iter().any(|own| own.epc == spec.epc);
        let is_required = is_own && (spec.access.get.is_required() || spec.access.set.is_required());
        let platform = component.get("platform").and_then(Json::as_str);
        let class = component.get("device_class").and_then(Json::as_str);
        let is_measured = match platform {
            Some("sensor") => class.is_some_and(|class| !["enum", "duration"].contains(&class)),
            Some("binary_sensor") => class.is_some(),
            _ => false,
        };
        // Devices that only switch.
        let is_switch = spec.epc == 0x80 && self.maps.writable.contains(0x80);
        is_required || is_measured || is_switch || data::is_users(self.class, spec.epc)
    }

    /// The part of a component that depends on the kind of entity.
    pub(super) fn component(
        &self,
        spec: &PropertySpec,
        kind: &Kind,
        readable: bool,
        writable: bool,
    ) -> Option<Map<String, Json>> {
        let (detection, epc) = (device_class::detection(self.class, spec.epc), spec.epc);
        let component = match (kind, writable) {
            (Kind::Button(payload), true) => json!({ "platform": "button", "payload_press": payload }),
            (Kind::Button(_), false) => return None,
            (Kind::Switch([on, off]), true) => json!({ "platform": "switch", "payload_on": on, "payload_off": off }),
            (Kind::Switch([on, off]), false) => {
                json!({ "platform": "binary_sensor", "payload_on": on, "payload_off": off, "device_class": detection })
            }
            (Kind::Number { minimum, maximum, step, unit, .. }, true) => {
                let (device_class, _) = device_class::quantity(self.class, spec, *unit);
                json!({
                    "platform": "number", "min": minimum.to_f64(), "max": maximum.to_f64(), "step": step.to_f64(), "mode": "box",
                    "unit_of_measurement": device_class::unit(*unit), "device_class": device_class,
                })
            }
            (Kind::Number { unit, .. }, false) => {
                let (device_class, state_class) = device_class::quantity(self.class, spec, *unit);
                json!({
                    "platform": "sensor", "unit_of_measurement": device_class::unit(*unit), "device_class": device_class,
                    "state_class": state_class,
                })
            }
            (Kind::Choice { settable, .. }, true) => json!({ "platform": "select", "options": settable }),
            (Kind::Choice { all, .. }, false) => {
                json!({ "platform": "sensor", "device_class": "enum", "options": all })
            }
            (Kind::Moment(pattern), true) => json!({ "platform": "text", "pattern": pattern, "max": 20 }),
            (Kind::Text(maximum), true) => json!({ "platform": "text", "max": maximum }),
            (Kind::Moment(_) | Kind::Text(_), false) => json!({ "platform": "sensor" }),
        };
        debug_assert!(readable || writable, "{epc:02X} is there for nothing");
        let Json::Object(component) = component else { return None };
        Some(component.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }

    /// Takes a value; gives what is to be published because of it, or nothing if it is the value that was known.
    pub(super) fn take(&mut self, epc: u8, edt: &[u8]) -> Vec<(String, String)> {
        if self.values.get(&epc).is_some_and(|before| before == edt) {
            return Vec::new();
        }
        self.values.insert(epc, edt.to_vec());
        let mut topics = self.topics(epc);
        // Those that are counted in what has changed.
        for spec in self.class.all_properties().filter(|spec| counts_in(spec.data, epc)) {
            topics.extend(self.topics(spec.epc));
        }
        topics.extend(self.circuit_topics_counted_in(epc));
        if let Some(mode) = composite::mode(self.class, &self.values) {
            topics.push((format!("{}/{}", self.base, composite::MODE), mode.to_owned()));
        }
        if let Some(action) = composite::action(self.class, &self.values) {
            topics.push((format!("{}/{}", self.base, composite::ACTION), action.to_owned()));
        }
        topics
    }

    /// The topics of a property, and their payloads.
    pub(super) fn topics(&self, epc: u8) -> Vec<(String, String)> {
        let Some((spec, value)) = self.value(epc) else { return Vec::new() };
        let is_shown = !DESCRIPTION.contains(epc);
        let parts = shown::values(value, spec.data).into_iter().filter(|_| is_shown);
        let topic = |path: &[&str]| [&[self.base.as_str(), spec.short_name], path].concat().join("/");
        let said = parts.filter_map(|(path, data, value)| {
            let kind = Kind::of(data)?;
            let value = self.scaled(data, value)?;
            let payload = match (&kind, kind.payload(value)) {
                // A value that cannot be chosen is no option.
                (Kind::Choice { settable, .. }, text)
                    if self.maps.writable.contains(epc) && !settable.contains(&text) =>
                {
                    UNKNOWN.to_owned()
                }
                (_, text) => text,
            };
            Some((topic(&path), payload))
        });
        said.collect()
    }

    /// All topics that say something of it.
    pub(super) fn all_topics(&self) -> impl Iterator<Item = String> {
        let of_properties = self.shown().flat_map(|spec| {
            let topic = |leaf: shown::Leaf| [&[self.base.as_str(), spec.short_name], &leaf.path[..]].concat().join("/");
            shown::leaves(spec.data).into_iter().map(topic)
        });
        let of_whole = [composite::MODE, composite::ACTION].map(|name| format!("{}/{name}", self.base));
        of_properties.chain(of_whole).chain(self.circuit_topics())
    }

    /// The value of a property, by its newest form or an earlier one.
    fn value(&self, epc: u8) -> Option<(&'static PropertySpec, Value<'_>)> {
        render::decode(self.class, epc, self.values.get(&epc)?)
    }

    /// A number times the properties that it is counted in; none while these are not known.
    pub(super) fn scaled<'a>(&self, data: &'static Data, value: Value<'a>) -> Option<Value<'a>> {
        let Value::Number(number) = value else { return Some(value) };
        // A meter without the unit of its count tells no energy; an optional coefficient that it lacks is one.
        let counts = |epc: u8| self.maps.readable.contains(epc) || !render::is_one_if_absent(self.class, epc);
        let factors = coefficients(data).iter().filter(|epc| counts(**epc));
        let product = factors.copied().try_fold(number, |product, epc| product.times(self.value(epc)?.1.number()?))?;
        Some(Value::Number(product))
    }
}

fn available(topic: &str) -> Json {
    json!({ "topic": topic, "payload_available": ONLINE, "payload_not_available": OFFLINE })
}

/// The English names of property and part; where these are too long, or another property has the same, the short ones as words.
fn entity_name(class: &Class, spec: &PropertySpec, leaf: &Leaf) -> String {
    let of = |title: String, part: &str| if part.is_empty() { title } else { format!("{title}: {part}") };
    let title = device_class::title(spec.name());
    let is_other = |other: &&PropertySpec| other.epc != spec.epc && device_class::title(other.name()) == title;
    let full = of(title.clone(), &leaf.name);
    if full.len() <= translated::LONGEST_NAME && !class.all_properties().any(|other| is_other(&other)) {
        return full;
    }
    let path: Vec<_> = leaf.path.iter().map(|step| device_class::readable(step)).collect();
    of(spelled(spec.short_name), &path.join(" "))
}

/// Lower case, unless the word is an abbreviation.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let (Some(first), second) = (letters.next(), text.chars().nth(1)) else { return String::new() };
    let is_word = second.is_none_or(char::is_lowercase);
    if is_word { first.to_lowercase().chain(letters).collect() } else { text.to_owned() }
}

fn counts_in(data: &'static Data, epc: u8) -> bool {
    shown::leaves(data).iter().any(|leaf| coefficients(leaf.data).contains(&epc))
}
