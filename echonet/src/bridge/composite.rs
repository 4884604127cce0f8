//! Devices that Home Assistant shows as one thing: lights, air conditioners, water heaters, covers, locks.

use std::collections::HashMap;

use echonet_lite::class::{Class, Data};
use echonet_lite::controller::PropertyMaps;
use echonet_lite::wire::PropertySet;
use serde_json::{Map, Value, json};

use super::shown::{Kind, UNKNOWN};

/// The topic below an object that has no property of its own: the mode of an air conditioner or a water heater, or `off`.
pub(super) const MODE: &str = "mode";

/// The topic of its current action.
pub(super) const ACTION: &str = "action";

const OPERATION_STATUS: u8 = 0x80;
const OPERATION_MODE: u8 = 0xB0;

/// Modes of air conditioners: Home Assistant's, and the code of 0xB0.
const MODES: [(&str, u8); 5] = [("auto", 0x41), ("cool", 0x42), ("heat", 0x43), ("dry", 0x44), ("fan_only", 0x45)];

/// Modes of electric water heaters: Home Assistant's, and the code of 0xB0. Automatic heating chooses cheap hours, manual
/// heating begins at once, and the third code heats no water.
const HEATING: [(&str, u8); 3] = [("eco", 0x41), ("high_demand", 0x42), ("off", 0x43)];
/// Modes of instantaneous water heaters: Home Assistant's, and the operation status.
const BURNING: [(&str, u8); 2] = [("gas", 0x30), ("off", 0x31)];

const GENERAL_LIGHTING: u16 = 0x0290;
const MONO_FUNCTIONAL_LIGHTING: u16 = 0x0291;
const HOME_AIR_CONDITIONER: u16 = 0x0130;
const ELECTRIC_WATER_HEATER: u16 = 0x026B;
const INSTANTANEOUS_WATER_HEATER: u16 = 0x0272;
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
        ELECTRIC_WATER_HEATER => thing.electric_water_heater(),
        INSTANTANEOUS_WATER_HEATER => thing.instantaneous_water_heater(),
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

    /// A water heater with a tank: automatic heating, manual heating or none, and the temperature of the tank's water.
    fn electric_water_heater(&self) -> Component {
        const TANK: u8 = 0xC1;
        const TARGETS: [u8; 2] = [0xB3, 0xD1];
        let mut heater = self.water_heater(OPERATION_MODE, &HEATING)?;
        let mut shown = PropertySet::EMPTY.with(OPERATION_MODE);
        // The temperature of the tank where that can be set, else that of the supplied water.
        if let Some(target) = TARGETS.into_iter().find(|epc| self.has(*epc)) {
            shown = shown.with(target);
            heater.extend(self.target_temperature(target));
        }
        if self.maps.readable.contains(TANK) {
            heater.insert("current_temperature_topic".into(), self.topic(TANK).into());
        }
        Some((heater, shown))
    }

    /// A water heater without a tank. One whose temperature cannot be set is a switch.
    fn instantaneous_water_heater(&self) -> Component {
        const TARGET: u8 = 0xD1;
        let mut heater = self.water_heater(OPERATION_STATUS, &BURNING).filter(|_| self.has(TARGET))?;
        heater.extend(self.target_temperature(TARGET));
        Some((heater, PropertySet::of(&[OPERATION_STATUS, TARGET])))
    }

    /// A water heater with the modes of a property, the first of which is on.
    fn water_heater(&self, epc: u8, modes: &[(&str, u8)]) -> Option<Map<String, Value>> {
        let mode = format!("{}/{MODE}", self.base);
        let names: Vec<_> = modes.iter().map(|(name, _)| *name).collect();
        self.has(epc).then(|| {
            object(json!({
                "platform": "water_heater", "name": null, "modes": names,
                "mode_state_topic": mode, "mode_command_topic": format!("{mode}/set"),
                "power_command_topic": format!("{mode}/set"), "payload_on": names.first(), "payload_off": "off",
            }))
        })
    }

    fn target_temperature(&self, epc: u8) -> Map<String, Value> {
        let [minimum, maximum] = self.range(epc).unwrap_or([0, 100]);
        object(json!({
            "temperature_state_topic": self.topic(epc), "temperature_command_topic": self.command(epc),
            "min_temp": minimum, "max_temp": maximum, "precision": 1.0, "temperature_unit": "C",
        }))
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

/// The payload of the mode topic of an air conditioner or a water heater; none for other classes.
pub(super) fn mode(class: &Class, values: &HashMap<u8, Vec<u8>>) -> Option<&'static str> {
    let named = |modes: &[(&'static str, u8)], edt: &[u8]| {
        modes.iter().find(|(_, code)| *edt == [*code]).map_or(UNKNOWN, |(name, _)| *name)
    };
    match class.code.to_u16() {
        HOME_AIR_CONDITIONER => {
            let (status, mode) = (values.get(&OPERATION_STATUS)?, values.get(&OPERATION_MODE)?);
            Some(if status[..] == [0x31] { "off" } else { named(&MODES, mode) })
        }
        ELECTRIC_WATER_HEATER => Some(named(&HEATING, values.get(&OPERATION_MODE)?)),
        INSTANTANEOUS_WATER_HEATER => Some(named(&BURNING, values.get(&OPERATION_STATUS)?)),
        _ => None,
    }
}

/// The writes that set the mode of an air conditioner or a water heater; none if it has no such mode.
pub(super) fn mode_writes(class: &Class, mode: &str) -> Option<Vec<(u8, Vec<u8>)>> {
    let code = |modes: &[(&str, u8)]| modes.iter().find(|(name, _)| *name == mode).map(|(_, code)| vec![*code]);
    match (class.code.to_u16(), mode) {
        (HOME_AIR_CONDITIONER, "off") => Some(vec![(OPERATION_STATUS, vec![0x31])]),
        (HOME_AIR_CONDITIONER, _) => Some(vec![(OPERATION_STATUS, vec![0x30]), (OPERATION_MODE, code(&MODES)?)]),
        (ELECTRIC_WATER_HEATER, _) => Some(vec![(OPERATION_MODE, code(&HEATING)?)]),
        (INSTANTANEOUS_WATER_HEATER, _) => Some(vec![(OPERATION_STATUS, code(&BURNING)?)]),
        _ => None,
    }
}

/// The action of an air conditioner, as far as its mode tells: in automatic mode it is not known.
pub(super) fn action(class: &Class, values: &HashMap<u8, Vec<u8>>) -> Option<&'static str> {
    const SPECIAL_STATE: u8 = 0xAA;
    if class.code.to_u16() != HOME_AIR_CONDITIONER {
        return None;
    }
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

    #[test]
    fn water_heaters_have_what_their_maps_have() {
        type Keys<'a> = &'a [(&'a str, Value)];
        // Class, properties to read and to write, the properties that are shown, keys.
        type Row<'a> = (&'a str, &'a [u8], &'a [u8], Option<(&'a [u8], Keys<'a>)>);
        let rows: [Row<'_>; 6] = [
            (
                "026B",
                &[0x80, 0xB0, 0xB3, 0xC1, 0xD1],
                &[0x80, 0xB0, 0xB3, 0xD1],
                Some((
                    &[0xB0, 0xB3],
                    &[
                        ("platform", json!("water_heater")),
                        ("modes", json!(["eco", "high_demand", "off"])),
                        ("mode_command_topic", json!("base/mode/set")),
                        ("payload_on", json!("eco")),
                        ("temperature_command_topic", json!("base/targetWaterHeatingTemperature/set")),
                        ("current_temperature_topic", json!("base/tankWaterTemperature")),
                        ("min_temp", json!(0)),
                        ("max_temp", json!(75)),
                    ],
                )),
            ),
            (
                "026B",
                &[0xB0, 0xB3, 0xD1],
                &[0xB0, 0xD1],
                Some((
                    &[0xB0, 0xD1],
                    &[
                        ("temperature_state_topic", json!("base/targetSuppliedWaterTemperature")),
                        ("max_temp", json!(100)),
                        ("current_temperature_topic", Value::Null),
                    ],
                )),
            ),
            ("026B", &[0xB0], &[0xB0], Some((&[0xB0], &[("temperature_state_topic", Value::Null)]))),
            ("026B", &[0xB0, 0xB3], &[0xB3], None),
            (
                "0272",
                &[0x80, 0xD1],
                &[0x80, 0xD1],
                Some((&[0x80, 0xD1], &[("modes", json!(["gas", "off"])), ("payload_on", json!("gas"))])),
            ),
            ("0272", &[0x80, 0xD1], &[0x80], None),
        ];
        for (name, readable, writable, expected) in rows {
            let class = class::by_name(name).unwrap();
            let maps = PropertyMaps {
                readable: PropertySet::of(readable),
                writable: PropertySet::of(writable),
                ..PropertyMaps::default()
            };
            let found = component(class, &maps, &[(0xB3, [0, 75])], "base");
            assert_eq!(found.is_some(), expected.is_some(), "{name} {writable:02X?}");
            let (Some((heater, shown)), Some((epcs, keys))) = (found, expected) else { continue };
            assert_eq!(shown, PropertySet::of(epcs), "{name} {writable:02X?}");
            for (key, value) in keys {
                assert_eq!(heater.get(*key).unwrap_or(&Value::Null), value, "{key} of {name} {writable:02X?}");
            }
        }
    }

    #[test]
    fn modes_are_read_and_written() {
        for (name, epc, code, mode) in [
            ("026B", 0xB0, 0x41, "eco"),
            ("026B", 0xB0, 0x42, "high_demand"),
            ("026B", 0xB0, 0x43, "off"),
            ("0272", 0x80, 0x30, "gas"),
            ("0272", 0x80, 0x31, "off"),
        ] {
            let class = class::by_name(name).unwrap();
            assert_eq!(super::mode(class, &HashMap::from([(epc, vec![code])])), Some(mode));
            assert_eq!(mode_writes(class, mode), Some(vec![(epc, vec![code])]), "{name} {mode}");
            assert_eq!(super::mode(class, &HashMap::from([(epc, vec![0x50])])), Some(UNKNOWN));
            assert_eq!(super::mode(class, &HashMap::new()), None);
            assert_eq!(action(class, &HashMap::from([(0x80, vec![0x31]), (0xB0, vec![0x41])])), None);
            assert_eq!(mode_writes(class, "heat_pump"), None);
        }
        let conditioner = class::by_name("0130").unwrap();
        assert_eq!(mode_writes(conditioner, "cool"), Some(vec![(0x80, vec![0x30]), (0xB0, vec![0x42])]));
        assert_eq!(mode_writes(class::by_name("0290").unwrap(), "off"), None);
    }
}
