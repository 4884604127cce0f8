//! Devices that Home Assistant shows as one thing: lights, air conditioners, covers, locks.

use std::collections::HashMap;

use echonet_lite::class::{Class, Data};
use echonet_lite::controller::PropertyMaps;
use echonet_lite::wire::PropertySet;
use serde_json::{Map, Value, json};

use super::shown::UNKNOWN;

/// The topic below an object that has no property of its own: what an air conditioner does, or nothing when it is off.
pub(super) const MODE: &str = "mode";

const OPERATION_STATUS: u8 = 0x80;
const OPERATION_MODE: u8 = 0xB0;

/// Modes of air conditioners: Home Assistant's, and the code of 0xB0.
const MODES: [(&str, u8); 5] = [("auto", 0x41), ("cool", 0x42), ("heat", 0x43), ("dry", 0x44), ("fan_only", 0x45)];

const GENERAL_LIGHTING: u16 = 0x0290;
const MONO_FUNCTIONAL_LIGHTING: u16 = 0x0291;
const HOME_AIR_CONDITIONER: u16 = 0x0130;
const ELECTRIC_LOCK: u16 = 0x026F;

/// Blinds, shutters, curtains, gates, windows, doors: what Home Assistant calls them.
const COVERS: [(u16, &str); 7] = [
    (0x0260, "blind"),
    (0x0261, "shutter"),
    (0x0262, "curtain"),
    (0x0263, "shutter"),
    (0x0264, "gate"),
    (0x0265, "window"),
    (0x0266, "door"),
];

/// The component that shows an object as one thing, and the properties that it shows.
pub(super) fn component(class: &Class, maps: &PropertyMaps, base: &str) -> Component {
    let thing = Whole { class, maps, base };
    let code = class.code.to_u16();
    match code {
        GENERAL_LIGHTING | MONO_FUNCTIONAL_LIGHTING => thing.light(),
        HOME_AIR_CONDITIONER => thing.climate(),
        ELECTRIC_LOCK => thing.lock(),
        _ => thing.cover(COVERS.iter().find(|(of, _)| *of == code)?.1),
    }
}

/// An object that may be shown as one thing.
struct Whole<'a> {
    class: &'a Class,
    maps: &'a PropertyMaps,
    base: &'a str,
}

type Component = Option<(Map<String, Value>, PropertySet)>;

impl Whole<'_> {
    /// Whether a property can be read and written.
    fn has(&self, epc: u8) -> bool {
        self.maps.readable.contains(epc) && self.maps.writable.contains(epc)
    }

    /// Whether a property has these states, and no other meaning in this class.
    fn shows(&self, epc: u8, names: [&str; 2]) -> bool {
        match self.class.property(epc).map(|spec| spec.data) {
            Some(Data::State(states)) => names.iter().all(|name| states.all.iter().any(|state| state.name == *name)),
            _ => false,
        }
    }

    fn topic(&self, epc: u8) -> String {
        self.class.property(epc).map_or_else(String::new, |spec| format!("{}/{}", self.base, spec.short_name))
    }

    fn command(&self, epc: u8) -> String {
        format!("{}/set", self.topic(epc))
    }

    fn light(&self) -> Component {
        const LEVEL: u8 = 0xB0;
        if !self.has(OPERATION_STATUS) {
            return None;
        }
        let mut light = object(json!({
            "platform": "light", "name": null, "payload_on": "on", "payload_off": "off",
            "state_topic": self.topic(OPERATION_STATUS), "command_topic": self.command(OPERATION_STATUS),
        }));
        let mut shown = PropertySet::EMPTY.with(OPERATION_STATUS);
        if self.has(LEVEL) {
            shown = shown.with(LEVEL);
            light.extend(object(json!({
                "brightness_state_topic": self.topic(LEVEL), "brightness_command_topic": self.command(LEVEL),
                "brightness_scale": 100, "on_command_type": "first",
            })));
        }
        Some((light, shown))
    }

    fn climate(&self) -> Component {
        const AIR_FLOW: u8 = 0xA0;
        const TARGET: u8 = 0xB3;
        const ROOM: u8 = 0xBB;
        if !self.has(OPERATION_STATUS) || !self.has(OPERATION_MODE) {
            return None;
        }
        let modes: Vec<_> = ["off"].into_iter().chain(MODES.map(|(name, _)| name)).collect();
        let mode = format!("{}/{MODE}", self.base);
        let mut climate = object(json!({
            "platform": "climate", "name": null, "modes": modes,
            "mode_state_topic": mode, "mode_command_topic": format!("{mode}/set"),
        }));
        let mut shown = PropertySet::of(&[OPERATION_STATUS, OPERATION_MODE]);
        if self.has(TARGET) {
            shown = shown.with(TARGET);
            let range = self.class.property(TARGET).and_then(|spec| spec.number());
            let (minimum, maximum) = range.map_or((0, 50), |range| (range.minimum, range.maximum));
            climate.extend(object(json!({
                "temperature_state_topic": self.topic(TARGET), "temperature_command_topic": self.command(TARGET),
                "min_temp": minimum, "max_temp": maximum, "temp_step": 1, "precision": 1.0, "temperature_unit": "C",
            })));
        }
        if self.maps.readable.contains(ROOM) {
            climate.insert("current_temperature_topic".into(), self.topic(ROOM).into());
        }
        if self.has(AIR_FLOW) {
            shown = shown.with(AIR_FLOW);
            let speeds: Vec<_> = (1..=8).map(|level| format!("level {level}")).chain(["auto".to_owned()]).collect();
            climate.extend(object(json!({
                "fan_mode_state_topic": self.topic(AIR_FLOW), "fan_mode_command_topic": self.command(AIR_FLOW),
                "fan_modes": speeds,
            })));
        }
        Some((climate, shown))
    }

    fn cover(&self, device_class: &str) -> Component {
        const OPERATION: u8 = 0xE0;
        const DEGREE: u8 = 0xE1;
        const STATUS: u8 = 0xEA;
        if !self.shows(OPERATION, ["open", "close"]) || !self.maps.writable.contains(OPERATION) {
            return None;
        }
        let mut cover = object(json!({
            "platform": "cover", "name": null, "device_class": device_class, "command_topic": self.command(OPERATION),
            "payload_open": "open", "payload_close": "close", "payload_stop": "stop",
        }));
        let mut shown = PropertySet::EMPTY.with(OPERATION);
        if self.maps.readable.contains(STATUS) && self.shows(STATUS, ["fullyOpen", "fullyClosed"]) {
            shown = shown.with(STATUS);
            cover.extend(object(json!({
                "state_topic": self.topic(STATUS), "state_open": "fullyOpen", "state_closed": "fullyClosed",
                "state_opening": "opening", "state_closing": "closing", "state_stopped": "stoppedHalfway",
            })));
        }
        if self.has(DEGREE) && self.class.property(DEGREE).is_some_and(|spec| spec.number().is_some()) {
            shown = shown.with(DEGREE);
            cover.extend(object(json!({
                "position_topic": self.topic(DEGREE), "set_position_topic": self.command(DEGREE),
                "position_open": 100, "position_closed": 0,
            })));
        }
        Some((cover, shown))
    }

    fn lock(&self) -> Component {
        const LOCK: u8 = 0xE0;
        let lock = json!({
            "platform": "lock", "name": null, "state_topic": self.topic(LOCK), "command_topic": self.command(LOCK),
            "payload_lock": "on", "payload_unlock": "off", "state_locked": "on", "state_unlocked": "off",
        });
        self.has(LOCK).then(|| (object(lock), PropertySet::EMPTY.with(LOCK)))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What an air conditioner's mode topic says; none for other classes.
pub(super) fn mode(class: &Class, values: &HashMap<u8, Vec<u8>>) -> Option<&'static str> {
    if class.code.to_u16() != HOME_AIR_CONDITIONER {
        return None;
    }
    let (status, mode) = (values.get(&OPERATION_STATUS)?, values.get(&OPERATION_MODE)?);
    if status[..] == [0x31] {
        return Some("off");
    }
    Some(MODES.iter().find(|(_, code)| mode[..] == [*code]).map_or(UNKNOWN, |(name, _)| *name))
}

/// What is to be written so that an air conditioner has a mode.
pub(super) fn mode_writes(mode: &str) -> Option<Vec<(u8, Vec<u8>)>> {
    if mode == "off" {
        return Some(vec![(OPERATION_STATUS, vec![0x31])]);
    }
    let (_, code) = MODES.iter().find(|(name, _)| *name == mode)?;
    Some(vec![(OPERATION_STATUS, vec![0x30]), (OPERATION_MODE, vec![*code])])
}
