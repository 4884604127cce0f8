//! The services of Home Assistant: each has its effect at the device, and its user sees it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use echonet_lite::class::{Class, Data, Scaled};
use serde_json::{Value, json};

use super::expected::{self, Expected};
use super::*;

/// A service of an entity for a whole device: class, service, data; what the device must have then, and what the
/// attribute of the entity must be (`state` is the state itself).
type Row = (&'static str, &'static str, &'static str, &'static [(u8, &'static [u8])], &'static str, &'static str);

/// The API that a service is called and a state is read by.
#[derive(Clone, Copy)]
pub(super) enum Way {
    WebSocket,
    Rest,
}

/// How many commands changed something at a device, by domain.
pub(super) type Effects = BTreeMap<String, usize>;

/// Air conditioners, water heaters, lights, covers, locks, fans, humidifiers.
const WHOLE: &[Row] = &[
    ("0130", "set_hvac_mode", r#"{"hvac_mode":"heat"}"#, &[(0x80, &[0x30]), (0xB0, &[0x43])], "state", "\"heat\""),
    ("0130", "set_hvac_mode", r#"{"hvac_mode":"off"}"#, &[(0x80, &[0x31]), (0xB0, &[0x43])], "state", "\"off\""),
    ("0130", "turn_on", "{}", &[(0x80, &[0x30]), (0xB0, &[0x43])], "state", "\"heat\""),
    ("0130", "turn_off", "{}", &[(0x80, &[0x31]), (0xB0, &[0x43])], "state", "\"off\""),
    (
        "0130",
        "set_hvac_mode",
        r#"{"hvac_mode":"fan_only"}"#,
        &[(0x80, &[0x30]), (0xB0, &[0x45])],
        "hvac_action",
        "\"fan\"",
    ),
    ("0130", "set_hvac_mode", r#"{"hvac_mode":"dry"}"#, &[(0xB0, &[0x44])], "hvac_action", "\"drying\""),
    ("0130", "set_hvac_mode", r#"{"hvac_mode":"auto"}"#, &[(0xB0, &[0x41])], "state", "\"auto\""),
    ("0130", "set_hvac_mode", r#"{"hvac_mode":"cool"}"#, &[(0xB0, &[0x42])], "hvac_action", "\"cooling\""),
    ("0130", "set_temperature", r#"{"temperature":16}"#, &[(0xB3, &[16])], "temperature", "16"),
    ("0130", "set_temperature", r#"{"temperature":32}"#, &[(0xB3, &[32])], "temperature", "32"),
    (
        "0130",
        "set_temperature",
        r#"{"temperature":27,"hvac_mode":"heat"}"#,
        &[(0xB3, &[27]), (0xB0, &[0x43])],
        "temperature",
        "27",
    ),
    ("0130", "set_fan_mode", r#"{"fan_mode":"level 8"}"#, &[(0xA0, &[0x38])], "fan_mode", "\"level 8\""),
    ("0130", "set_fan_mode", r#"{"fan_mode":"auto"}"#, &[(0xA0, &[0x41])], "fan_mode", "\"auto\""),
    ("0130", "set_swing_mode", r#"{"swing_mode":"vertical"}"#, &[(0xA3, &[0x41])], "swing_mode", "\"vertical\""),
    ("0130", "set_swing_mode", r#"{"swing_mode":"off"}"#, &[(0xA3, &[0x31])], "swing_mode", "\"off\""),
    (
        "026B",
        "set_operation_mode",
        r#"{"operation_mode":"high_demand"}"#,
        &[(0xB0, &[0x42])],
        "state",
        "\"high_demand\"",
    ),
    ("026B", "set_operation_mode", r#"{"operation_mode":"off"}"#, &[(0xB0, &[0x43])], "state", "\"off\""),
    ("026B", "turn_on", "{}", &[(0xB0, &[0x41])], "state", "\"eco\""),
    ("026B", "turn_off", "{}", &[(0xB0, &[0x43])], "state", "\"off\""),
    ("026B", "set_temperature", r#"{"temperature":65}"#, &[(0xB3, &[65])], "temperature", "65"),
    ("0272", "turn_off", "{}", &[(0x80, &[0x31])], "state", "\"off\""),
    ("0272", "turn_on", "{}", &[(0x80, &[0x30])], "state", "\"gas\""),
    ("0272", "set_temperature", r#"{"temperature":42}"#, &[(0xD1, &[42])], "temperature", "42"),
    ("0290", "turn_off", "{}", &[(0x80, &[0x31])], "state", "\"off\""),
    ("0290", "turn_on", r#"{"brightness":255}"#, &[(0x80, &[0x30]), (0xB0, &[100])], "brightness", "255"),
    ("0290", "turn_on", r#"{"brightness_pct":20}"#, &[(0x80, &[0x30]), (0xB0, &[20])], "brightness", "51"),
    ("0290", "toggle", "{}", &[(0x80, &[0x31]), (0xB0, &[20])], "state", "\"off\""),
    ("0291", "turn_off", "{}", &[(0x80, &[0x31])], "state", "\"off\""),
    ("0291", "turn_on", r#"{"brightness_pct":100}"#, &[(0x80, &[0x30]), (0xB0, &[100])], "brightness", "255"),
    ("026F", "unlock", "{}", &[(0xE0, &[0x42])], "state", "\"unlocked\""),
    ("026F", "lock", "{}", &[(0xE0, &[0x41])], "state", "\"locked\""),
    ("0139", "turn_off", "{}", &[(0x80, &[0x31])], "state", "\"off\""),
    ("0139", "turn_on", "{}", &[(0x80, &[0x30])], "state", "\"on\""),
    ("0139", "set_humidity", r#"{"humidity":60}"#, &[(0xC0, &[60])], "humidity", "60"),
    ("0133", "turn_off", "{}", &[(0x80, &[0x31])], "state", "\"off\""),
    (
        "0133",
        "turn_on",
        r#"{"preset_mode":"level 3"}"#,
        &[(0x80, &[0x30]), (0xA0, &[0x33])],
        "preset_mode",
        "\"level 3\"",
    ),
    ("0133", "set_preset_mode", r#"{"preset_mode":"auto"}"#, &[(0xA0, &[0x41])], "preset_mode", "\"auto\""),
    ("0134", "turn_on", "{}", &[(0x80, &[0x30])], "state", "\"on\""),
    ("0134", "toggle", "{}", &[(0x80, &[0x31])], "state", "\"off\""),
    ("0135", "set_preset_mode", r#"{"preset_mode":"level 8"}"#, &[(0xA0, &[0x38])], "preset_mode", "\"level 8\""),
    ("0260", "close_cover", "{}", &[(0xE0, &[0x42])], "", ""),
    ("0260", "stop_cover", "{}", &[(0xE0, &[0x43])], "", ""),
    ("0260", "open_cover", "{}", &[(0xE0, &[0x41])], "", ""),
    ("0260", "set_cover_position", r#"{"position":30}"#, &[(0xE1, &[30])], "current_position", "30"),
    ("0260", "set_cover_tilt_position", r#"{"tilt_position":50}"#, &[(0xE2, &[90])], "current_tilt_position", "50"),
    ("0260", "open_cover_tilt", "{}", &[(0xE2, &[180])], "current_tilt_position", "100"),
    ("0260", "close_cover_tilt", "{}", &[(0xE2, &[0])], "current_tilt_position", "0"),
    ("0261", "close_cover", "{}", &[(0xE0, &[0x42])], "", ""),
    ("0263", "set_cover_position", r#"{"position":100}"#, &[(0xE1, &[100])], "current_position", "100"),
    ("0264", "stop_cover", "{}", &[(0xE0, &[0x43])], "", ""),
    ("0265", "close_cover", "{}", &[(0xE0, &[0x42])], "", ""),
    ("0266", "open_cover", "{}", &[(0xE0, &[0x41])], "", ""),
];

impl Scene {
    /// The id of an entity by the end of its permanent id.
    pub(super) fn entity(&self, entities: &BTreeMap<String, Value>, at: usize, id: &str) -> Option<String> {
        let unique = if id == "main" { unique(&self.home, at) } else { format!("{}_{id}", unique(&self.home, at)) };
        entities.get(&unique).map(|entity| entity["entity_id"].as_str().unwrap().to_owned())
    }

    /// Calls a service; then the device must have these values, and the entity must be so. Returns whether the device
    /// had other values before, or the fault.
    fn does(
        &self,
        way: Way,
        (entity, at): (&str, usize),
        (service, data): (&str, &Value),
        effect: &[(u8, Vec<u8>)],
        shown: impl Fn(&Value) -> bool,
    ) -> Result<bool, String> {
        let (socket, rest) = (&self.hass.socket, &self.hass.rest);
        let is_done = || effect.iter().all(|(epc, edt)| self.home.value(at, *epc) == *edt);
        let is_change = !is_done();
        let called = match way {
            Way::WebSocket => socket.call(entity, service, data),
            Way::Rest => rest.call(entity, service, data),
        };
        called.map_err(|why| format!("{entity} {service} {data}: {why}"))?;
        let begun = Instant::now();
        while !is_done() {
            if begun.elapsed() > SOON {
                let has: Vec<_> = effect.iter().map(|(epc, _)| self.home.value(at, *epc)).collect();
                return Err(format!("{entity} {service} {data}: {effect:02X?} are {has:02X?}"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        let is_shown = match way {
            Way::WebSocket => socket.until(entity, SOON, shown).map(drop),
            Way::Rest => rest.until(entity, SOON, shown),
        };
        is_shown.map_err(|state| format!("{entity} {service} {data}: it shows {state}"))?;
        Ok(is_change)
    }

    /// The services of entities for whole devices.
    pub(super) fn services_of_whole_devices(
        &self,
        way: Way,
        classes: &[&Class],
        entities: &BTreeMap<String, Value>,
    ) -> (Effects, Vec<String>) {
        let (mut effects, mut faults) = (Effects::new(), Vec::new());
        for (code, service, data, effect, key, expected) in WHOLE {
            let at = classes.iter().position(|class| class.code == class::by_name(code).unwrap().code).unwrap();
            let Some(entity) = self.entity(entities, at, "main") else {
                faults.push(format!("{code} is no whole"));
                continue;
            };
            let effect: Vec<_> = effect.iter().map(|(epc, edt)| (*epc, edt.to_vec())).collect();
            let expected: Value = serde_json::from_str(expected).unwrap_or_default();
            let is_shown = |state: &Value| {
                let shown = if *key == "state" { &state["state"] } else { &state["attributes"][*key] };
                // 27 and 27.0 are one temperature.
                let is_number = shown.is_number() && shown.as_f64() == expected.as_f64();
                key.is_empty() || is_number || *shown == expected
            };
            let data = serde_json::from_str(data).unwrap();
            take(
                &mut effects,
                &mut faults,
                &entity,
                self.does(way, (&entity, at), (service, &data), &effect, is_shown),
            );
        }
        println!("{} services of whole devices", WHOLE.len());
        (effects, faults)
    }

    /// The services of the entities of single properties of all devices, several devices at once.
    pub(super) fn services_of_all_properties(
        &self,
        classes: &[&'static Class],
        entities: &BTreeMap<String, Value>,
    ) -> Vec<String> {
        let (next, count, faults) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some((at, class)) = Some(next.fetch_add(1, Relaxed)).and_then(|at| Some((at, classes.get(at)?))) {
                let (services, _, more) = self.services_of_properties(Way::WebSocket, at, class, entities);
                count.fetch_add(services, Relaxed);
                faults.lock().unwrap().extend(more);
            }
        };
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
        println!("{} services of single properties", count.into_inner());
        faults.into_inner().unwrap()
    }

    /// The services of the entities of single properties of a device: how many, their effects and their faults.
    pub(super) fn services_of_properties(
        &self,
        way: Way,
        at: usize,
        class: &'static Class,
        entities: &BTreeMap<String, Value>,
    ) -> (usize, Effects, Vec<String>) {
        let (mut count, mut effects, mut faults) = (0, Effects::new(), Vec::new());
        for of in expected::entities(class, &values(&self.home, at)) {
            let Some(entity) = self.entity(entities, at, &of.id) else { continue };
            let of = self.in_its_words(of, &entity);
            for (service, data, payload, shown) in services(&of) {
                let mut edt = [0; 255];
                let payload = if payload == "(none)" { "none" } else { payload.as_str() };
                // Between two ranges is nothing.
                let Ok(length) = of.spec.parse(payload, &mut edt) else { continue };
                let effect = [(of.spec.epc, edt[..length].to_vec())];
                let is_readable = of.spec.access.get.is_applicable();
                let is_shown = |state: &Value| match state["state"].as_str() {
                    _ if !is_readable || of.domain == "button" => true,
                    Some(text) => text == shown || text.parse::<f64>().is_ok_and(|is| shown.parse() == Ok(is)),
                    None => false,
                };
                count += 1;
                let done = self.does(way, (&entity, at), (service, &data), &effect, is_shown);
                take(&mut effects, &mut faults, &entity, done);
            }
        }
        (count, effects, faults)
    }
}

/// Counts a command of an entity that changed something, or keeps its fault.
fn take(effects: &mut Effects, faults: &mut Vec<String>, entity: &str, done: Result<bool, String>) {
    let (domain, _) = entity.split_once('.').unwrap();
    match done {
        Ok(true) => *effects.entry(domain.to_owned()).or_default() += 1,
        Ok(false) => {}
        Err(fault) => faults.push(fault),
    }
}

/// Services to try of an entity: the data, the payload that the device's value stands for, the state that follows.
fn services(of: &Expected) -> Vec<(&'static str, Value, String, String)> {
    match of.domain {
        "switch" => {
            let [on, off] = of.pair.unwrap();
            [("turn_off", off, "off"), ("turn_on", on, "on"), ("toggle", off, "off")]
                .map(|(service, payload, state)| (service, json!({}), payload.to_owned(), state.to_owned()))
                .to_vec()
        }
        "select" => {
            let pairs = || of.options.iter().zip(&of.shown);
            let ends = [pairs().next_back(), pairs().next()].into_iter().flatten();
            ends.map(|(payload, shown)| ("select_option", json!({"option": shown}), payload.clone(), shown.clone()))
                .collect()
        }
        "button" => vec![("press", json!({}), of.options[0].clone(), String::new())],
        "number" => {
            let (_, [least, most, step]) = of.number.unwrap();
            let middle = least + ((most - least) / 2.0 / step).round() * step;
            let exponent = of.spec.number().map_or(0, |number| number.exponent);
            let text = |value| Scaled::nearest(value, exponent).to_string();
            let texts = [least, most, middle].map(|value| (value, text(value)));
            texts.into_iter().map(|(value, text)| ("set_value", json!({"value": value}), text.clone(), text)).collect()
        }
        "text" => {
            let text = match of.spec.data {
                Data::Date => "2028-02-29",
                Data::DateTime { seconds: true } => "2028-02-29 12:34:56",
                Data::DateTime { seconds: false } => "2028-02-29 12:34",
                Data::Time(format) if format.seconds => "12:34:56",
                _ => "12:34",
            };
            vec![("set_value", json!({"value": text}), text.to_owned(), text.to_owned())]
        }
        _ => Vec::new(),
    }
}
