//! Devices that Home Assistant shows as one thing: lights, air conditioners, covers, locks.

use std::collections::HashMap;

use echonet_lite::class::{Class, Data};
use echonet_lite::controller::PropertyMaps;
use echonet_lite::wire::PropertySet;
use serde_json::{Map, Value, json};

use super::shown::{Kind, UNKNOWN};

/// The topic below an object that has no property of its own: an air conditioner's mode, or `off`.
pub(super) const MODE: &str = "mode";

/// The topic of its current action.
pub(super) const ACTION: &str = "action";

const OPERATION_STATUS: u8 = 0x80;
const OPERATION_MODE: u8 = 0xB0;

/// Modes of air conditioners: Home Assistant's, and the code of 0xB0.
const MODES: [(&str, u8); 5] = [("auto", 0x41), ("cool", 0x42), ("heat", 0x43), ("dry", 0x44), ("fan_only", 0x45)];

const GENERAL_LIGHTING: u16 = 0x0290;
const MONO_FUNCTIONAL_LIGHTING: u16 = 0x0291;
const HOME_AIR_CONDITIONER: u16 = 0x0130;
const ELECTRIC_LOCK: u16 = 0x026F;
const HUMIDIFIER: u16 = 0x0139;
/// Ventilation fans, and air cleaners, which Home Assistant shows as fans, too.
const FANS: [u16; 3] = [0x0133, 0x0134, 0x0135];
/// Temperatures that air conditioners can be set to, where nothing else is known of one.
const USUAL_TEMPERATURES: [i64; 2] = [16, 32];

/// Blinds, shutters, curtains, gates, windows, doors: their device classes in Home Assistant.
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
pub(super) fn component(class: &Class, maps: &PropertyMaps, ranges: &[(u8, [i64; 2])], base: &str) -> Component {
    let thing = Whole { class, maps, ranges, base };
    let code = class.code.to_u16();
    match code {
        GENERAL_LIGHTING | MONO_FUNCTIONAL_LIGHTING => thing.light(),
        HOME_AIR_CONDITIONER => thing.climate(),
        ELECTRIC_LOCK => thing.lock(),
        HUMIDIFIER => thing.humidifier(),
        code if FANS.contains(&code) => thing.fan(),
        _ => thing.cover(COVERS.iter().find(|(of, _)| *of == code)?.1),
    }
}

/// An object that may be shown as one thing.
struct Whole<'a> {
    class: &'a Class,
    maps: &'a PropertyMaps,
    /// Ranges that devices of this maker have.
    ranges: &'a [(u8, [i64; 2])],
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

    /// The range of a number: the device's by its maker's quirks, else the class's if that is one that devices can have.
    fn range(&self, epc: u8) -> Option<[i64; 2]> {
        let own = self.ranges.iter().find(|(of, _)| *of == epc).map(|(_, range)| *range);
        // 0 to 50 °C is what every air conditioner may have, and none has.
        let of_class =
            self.class.property(epc).and_then(|spec| spec.number()).map(|number| [number.minimum, number.maximum]);
        own.or_else(|| of_class.filter(|range| *range != [0, 50]))
    }

    /// The common part of components that are switched on and off by the operation status.
    fn switched(&self, platform: &str) -> Component {
        self.has(OPERATION_STATUS).then(|| {
            let component = object(json!({
                "platform": platform, "name": null, "payload_on": "on", "payload_off": "off",
                "state_topic": self.topic(OPERATION_STATUS), "command_topic": self.command(OPERATION_STATUS),
            }));
            (component, PropertySet::EMPTY.with(OPERATION_STATUS))
        })
    }

    /// A fan: on and off, and the levels of its air flow with its automatic mode.
    fn fan(&self) -> Component {
        const AIR_FLOW: u8 = 0xA0;
        let (mut fan, mut shown) = self.switched("fan")?;
        let flow = self.class.property(AIR_FLOW).and_then(|spec| Kind::of(spec.data));
        if let (Some(Kind::Choice { settable: modes, .. }), true) = (flow, self.has(AIR_FLOW)) {
            shown = shown.with(AIR_FLOW);
            fan.extend(object(json!({
                "preset_mode_state_topic": self.topic(AIR_FLOW), "preset_mode_command_topic": self.command(AIR_FLOW),
                "preset_modes": modes,
            })));
        }
        Some((fan, shown))
    }

    /// A humidifier: on and off, and its humidity. Its automatic modes stay with the setting, which is an entity, too.
    fn humidifier(&self) -> Component {
        const HUMIDITY: u8 = 0xB4;
        const SETTING: u8 = 0xC0;
        let (mut humidifier, shown) = self.switched("humidifier").filter(|_| self.has(SETTING))?;
        let [minimum, maximum] = self.range(SETTING).unwrap_or([0, 100]);
        humidifier.extend(object(json!({
            "device_class": "humidifier", "min_humidity": minimum, "max_humidity": maximum,
            "target_humidity_state_topic": self.topic(SETTING),
            "target_humidity_command_topic": self.command(SETTING),
        })));
        if self.maps.readable.contains(HUMIDITY) {
            humidifier.insert("current_humidity_topic".into(), self.topic(HUMIDITY).into());
        }
        Some((humidifier, shown))
    }

    fn light(&self) -> Component {
        const LEVEL: u8 = 0xB0;
        let (mut light, mut shown) = self.switched("light")?;
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
        const HUMIDITY: u8 = 0xBA;
        const TARGET_HUMIDITY: u8 = 0xB4;
        const SWING: u8 = 0xA3;
        if !self.has(OPERATION_STATUS) || !self.has(OPERATION_MODE) {
            return None;
        }
        let modes: Vec<_> = ["off"].into_iter().chain(MODES.map(|(name, _)| name)).collect();
        let mode = format!("{}/{MODE}", self.base);
        let mut climate = object(json!({
            "platform": "climate", "name": null, "modes": modes,
            "mode_state_topic": mode, "mode_command_topic": format!("{mode}/set"),
            // On is the mode that it had; without this Home Assistant chooses one.
            "power_command_topic": self.command(OPERATION_STATUS), "payload_on": "on", "payload_off": "off",
            "action_topic": format!("{}/{ACTION}", self.base),
        }));
        let mut shown = PropertySet::of(&[OPERATION_STATUS, OPERATION_MODE]);
        if self.has(TARGET) {
            shown = shown.with(TARGET);
            let [minimum, maximum] = self.range(TARGET).unwrap_or(USUAL_TEMPERATURES);
            climate.extend(object(json!({
                "temperature_state_topic": self.topic(TARGET), "temperature_command_topic": self.command(TARGET),
                "min_temp": minimum, "max_temp": maximum, "temp_step": 1, "precision": 1.0, "temperature_unit": "C",
            })));
        }
        if self.maps.readable.contains(ROOM) {
            climate.insert("current_temperature_topic".into(), self.topic(ROOM).into());
        }
        if self.maps.readable.contains(HUMIDITY) {
            climate.insert("current_humidity_topic".into(), self.topic(HUMIDITY).into());
        }
        if self.has(TARGET_HUMIDITY) {
            shown = shown.with(TARGET_HUMIDITY);
            let [minimum, maximum] = self.range(TARGET_HUMIDITY).unwrap_or([0, 100]);
            climate.extend(object(json!({
                "target_humidity_state_topic": self.topic(TARGET_HUMIDITY),
                "target_humidity_command_topic": self.command(TARGET_HUMIDITY),
                "min_humidity": minimum, "max_humidity": maximum,
            })));
        }
        if self.has(SWING) {
            shown = shown.with(SWING);
            climate.extend(object(json!({
                "swing_mode_state_topic": self.topic(SWING), "swing_mode_command_topic": self.command(SWING),
                "swing_modes": ["off", "vertical", "horizontal", "verticalAndHorizontal"],
            })));
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
        const ANGLE: u8 = 0xE2;
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
        if self.has(ANGLE) && self.class.property(ANGLE).is_some_and(|spec| spec.number().is_some()) {
            shown = shown.with(ANGLE);
            let [minimum, maximum] = self.range(ANGLE).unwrap_or([0, 180]);
            cover.extend(object(json!({
                "tilt_status_topic": self.topic(ANGLE), "tilt_command_topic": self.command(ANGLE),
                "tilt_min": minimum, "tilt_max": maximum, "tilt_closed_value": minimum, "tilt_opened_value": maximum,
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

/// The payload of an air conditioner's mode topic; none for other classes.
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

/// The writes that set an air conditioner's mode.
pub(super) fn mode_writes(mode: &str) -> Option<Vec<(u8, Vec<u8>)>> {
    if mode == "off" {
        return Some(vec![(OPERATION_STATUS, vec![0x31])]);
    }
    let (_, code) = MODES.iter().find(|(name, _)| *name == mode)?;
    Some(vec![(OPERATION_STATUS, vec![0x30]), (OPERATION_MODE, vec![*code])])
}

/// The action of an air conditioner, as far as its mode tells: in automatic mode it is not known.
pub(super) fn action(class: &Class, values: &HashMap<u8, Vec<u8>>) -> Option<&'static str> {
    const SPECIAL_STATE: u8 = 0xAA;
    let mode = mode(class, values)?;
    // Defrosting, preheating, removing heat.
    let is_special = values.get(&SPECIAL_STATE).is_some_and(|state| matches!(state[..], [0x41..=0x43]));
    Some(match mode {
        "off" => "off",
        _ if is_special => "idle",
        "cool" => "cooling",
        "heat" => "heating",
        "dry" => "drying",
        "fan_only" => "fan",
        _ => UNKNOWN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;

    #[test]
    fn a_humidifier_is_one_if_its_humidity_can_be_set() {
        let class = class::by_name("0139").unwrap();
        let of = |readable: &[u8], writable: &[u8]| {
            let (readable, writable) = (PropertySet::of(readable), PropertySet::of(writable));
            component(class, &PropertyMaps { readable, writable, ..PropertyMaps::default() }, &[], "base")
        };
        let (humidifier, shown) = of(&[0x80, 0xB4, 0xC0], &[0x80, 0xC0]).unwrap();
        assert_eq!(shown, PropertySet::of(&[0x80]));
        for (key, expected) in [
            ("platform", json!("humidifier")),
            ("command_topic", json!("base/operationStatus/set")),
            ("target_humidity_command_topic", json!("base/humidifyingSetting1/set")),
            ("current_humidity_topic", json!("base/humidity")),
            ("max_humidity", json!(100)),
        ] {
            assert_eq!(humidifier[key], expected, "{key}");
        }
        assert!(of(&[0x80, 0xB4, 0xC0], &[0x80]).is_none());
    }
}
