//! Descriptions of devices against what Home Assistant documents of MQTT discovery: which keys each platform has, which
//! device classes with which units, and which states.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// Keys of every entity.
const COMMON: &[&str] = &[
    "platform",
    "unique_id",
    "name",
    "entity_category",
    "state_topic",
    "command_topic",
    "device_class",
    "enabled_by_default",
];

/// Platforms: the keys that each needs, and those that it may have besides.
const PLATFORMS: &[(&str, &[&str], &[&str])] = &[
    ("sensor", &["state_topic"], &["unit_of_measurement", "state_class", "options"]),
    ("binary_sensor", &["state_topic"], &["payload_on", "payload_off"]),
    ("switch", &["command_topic"], &["payload_on", "payload_off"]),
    ("number", &["command_topic"], &["min", "max", "step", "mode", "unit_of_measurement"]),
    ("select", &["command_topic", "options"], &[]),
    ("button", &["command_topic"], &["payload_press"]),
    ("text", &["command_topic"], &["pattern", "min", "max"]),
    (
        "light",
        &["command_topic"],
        &[
            "payload_on",
            "payload_off",
            "brightness_state_topic",
            "brightness_command_topic",
            "brightness_scale",
            "on_command_type",
        ],
    ),
    (
        "fan",
        &["command_topic"],
        &["payload_on", "payload_off", "preset_mode_state_topic", "preset_mode_command_topic", "preset_modes"],
    ),
    ("event", &["state_topic", "event_types"], &[]),
    (
        "climate",
        &["mode_command_topic"],
        &[
            "modes",
            "mode_state_topic",
            "temperature_state_topic",
            "temperature_command_topic",
            "min_temp",
            "max_temp",
            "temp_step",
            "precision",
            "temperature_unit",
            "current_temperature_topic",
            "fan_mode_state_topic",
            "fan_mode_command_topic",
            "fan_modes",
            "power_command_topic",
            "payload_on",
            "payload_off",
            "action_topic",
            "current_humidity_topic",
            "target_humidity_state_topic",
            "target_humidity_command_topic",
            "min_humidity",
            "max_humidity",
            "swing_mode_state_topic",
            "swing_mode_command_topic",
            "swing_modes",
        ],
    ),
    (
        "cover",
        &["command_topic"],
        &[
            "payload_open",
            "payload_close",
            "payload_stop",
            "state_open",
            "state_closed",
            "state_opening",
            "state_closing",
            "state_stopped",
            "position_topic",
            "set_position_topic",
            "position_open",
            "position_closed",
            "tilt_status_topic",
            "tilt_command_topic",
            "tilt_min",
            "tilt_max",
            "tilt_closed_value",
            "tilt_opened_value",
        ],
    ),
    (
        "humidifier",
        &["command_topic", "target_humidity_command_topic"],
        &[
            "payload_on",
            "payload_off",
            "target_humidity_state_topic",
            "current_humidity_topic",
            "min_humidity",
            "max_humidity",
        ],
    ),
    (
        "water_heater",
        &["mode_command_topic"],
        &[
            "modes",
            "mode_state_topic",
            "power_command_topic",
            "payload_on",
            "payload_off",
            "temperature_state_topic",
            "temperature_command_topic",
            "current_temperature_topic",
            "min_temp",
            "max_temp",
            "precision",
            "temperature_unit",
        ],
    ),
    ("lock", &["command_topic"], &["payload_lock", "payload_unlock", "state_locked", "state_unlocked"]),
];

/// Device classes of sensors and numbers, and the units that each may have.
const QUANTITIES: &[(&str, &[&str])] = &[
    ("atmospheric_pressure", &["Pa", "hPa", "kPa", "mbar"]),
    ("battery", &["%"]),
    ("carbon_dioxide", &["ppm"]),
    ("current", &["A", "mA"]),
    ("distance", &["km", "m", "cm", "mm"]),
    ("duration", &["d", "h", "min", "s", "ms"]),
    ("energy", &["Wh", "kWh", "MWh", "MJ", "GJ"]),
    ("energy_storage", &["Wh", "kWh", "MWh", "MJ", "GJ"]),
    ("gas", &["m³", "ft³", "CCF"]),
    ("humidity", &["%"]),
    ("illuminance", &["lx"]),
    ("power", &["W", "kW"]),
    ("pressure", &["Pa", "hPa", "kPa", "bar"]),
    ("temperature", &["°C", "°F", "K"]),
    ("voltage", &["V", "mV"]),
    ("volume", &["L", "mL", "m³"]),
    ("volume_flow_rate", &["m³/h", "L/min"]),
    ("volume_storage", &["L", "mL", "m³"]),
    ("water", &["L", "m³", "gal"]),
    ("weight", &["kg", "g"]),
    ("wind_speed", &["m/s", "km/h"]),
];

const BINARY: &[&str] = &[
    "door",
    "gas",
    "heat",
    "lock",
    "moisture",
    "motion",
    "occupancy",
    "opening",
    "problem",
    "safety",
    "smoke",
    "sound",
    "vibration",
];
const COVERS: &[&str] = &["blind", "curtain", "door", "gate", "shutter", "window"];
const MODES: &[&str] = &["auto", "off", "cool", "heat", "dry", "fan_only"];
const WATER_MODES: &[&str] = &["eco", "electric", "gas", "heat_pump", "high_demand", "performance", "off"];

fn components(device: &Value) -> impl Iterator<Item = (&String, &Map<String, Value>)> {
    device["components"].as_object().unwrap().iter().map(|(id, component)| (id, component.as_object().unwrap()))
}

/// The topics that say how things are.
pub(super) fn topics(device: &Value) -> impl Iterator<Item = &str> {
    let is_state = |key: &str| key.ends_with("_topic") && !key.contains("command") && !key.starts_with("set_");
    // An event says nothing that is true for longer.
    let lasting = components(device).filter(|(_, component)| component["platform"] != "event");
    let of = lasting.flat_map(|(_, component)| component.iter());
    of.filter(move |(key, _)| is_state(key)).map(|(_, topic)| topic.as_str().unwrap())
}

/// No two entities have one name.
pub(super) fn is_unique(devices: &[Value]) {
    let mut seen = HashSet::new();
    for (_, component) in devices.iter().flat_map(components) {
        assert!(seen.insert(component["unique_id"].clone()), "{} twice", component["unique_id"]);
    }
}

/// The faults of a device's description that Home Assistant would not accept.
pub(super) fn problems(device: &Value, values: &HashMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for key in device.as_object().unwrap().keys() {
        let known = ["device", "origin", "components", "availability", "availability_mode", "qos"];
        if !known.contains(&key.as_str()) {
            found.push(format!("there is no {key}"));
        }
    }
    let info = &device["device"];
    if info["identifiers"].as_array().is_none_or(Vec::is_empty) || !info["name"].is_string() {
        found.push(format!("nothing says which device {info} is"));
    }
    if !device["origin"]["name"].is_string() {
        found.push("an origin has a name".to_owned());
    }
    for topic in device["availability"].as_array().unwrap() {
        let state = topic["topic"].as_str().and_then(|topic| values.get(topic));
        if state.is_none_or(|state| state != "online") {
            found.push(format!("{topic} is {state:?}"));
        }
    }
    for (id, component) in components(device) {
        if let Err(problem) = check(component, values) {
            found.push(format!("{id} of {info}: {problem}"));
        }
    }
    found
}

fn check(component: &Map<String, Value>, values: &HashMap<String, String>) -> Result<(), String> {
    let text = |key: &str| component.get(key).and_then(Value::as_str);
    let platform = text("platform").ok_or("no platform")?;
    let (_, needed, optional) =
        PLATFORMS.iter().find(|(name, ..)| *name == platform).ok_or_else(|| format!("there is no {platform}"))?;
    for key in [&["unique_id", "name"][..], needed].concat() {
        component.get(key).ok_or_else(|| format!("{platform} needs {key}"))?;
    }
    let known = [COMMON, needed, optional].concat();
    for (key, value) in component {
        if !known.contains(&key.as_str()) || (value.is_null() && key != "name") {
            return Err(format!("{platform} has no {key}"));
        }
        if key.ends_with("_topic") && value.as_str().is_none_or(|topic| topic.contains(['+', '#', ' '])) {
            return Err(format!("{key}: {value} is no topic"));
        }
    }
    let class = text("device_class");
    let state = text("state_topic").and_then(|topic| values.get(topic)).filter(|state| *state != "None");
    let options: Vec<_> = component.get("options").and_then(Value::as_array).into_iter().flatten().collect();
    let is_option = |state: &String| options.iter().any(|option| *option == state);
    match platform {
        "sensor" if class == Some("enum") => {
            if component.contains_key("unit_of_measurement")
                || component.contains_key("state_class")
                || options.is_empty()
            {
                return Err("an enum has options and nothing else".to_owned());
            }
            state.is_none_or(is_option).then_some(()).ok_or_else(|| format!("{state:?} is none of {options:?}"))
        }
        "sensor" => {
            quantity(class, text("unit_of_measurement"))?;
            let is_number = class.is_some() || component.contains_key("state_class");
            let measures =
                text("state_class").is_none_or(|class| ["measurement", "total", "total_increasing"].contains(&class));
            let counts = matches!(class, Some("energy" | "gas" | "water"));
            if !measures || (counts && text("state_class") == Some("measurement")) {
                return Err(format!("{class:?} with {:?}", text("state_class")));
            }
            let fits = state.is_none_or(|state| state.len() <= 255 && (!is_number || state.parse::<f64>().is_ok()));
            fits.then_some(()).ok_or_else(|| format!("{state:?} is no number"))
        }
        "number" => {
            quantity(class, text("unit_of_measurement"))?;
            number(component, state)
        }
        "select" => {
            state.is_none_or(is_option).then_some(()).ok_or_else(|| format!("{state:?} is none of {options:?}"))
        }
        "binary_sensor" | "switch" => {
            let names = [text("payload_on"), text("payload_off")];
            let fits = state.is_none_or(|state| names.contains(&Some(state)));
            let is_known = platform == "switch" || class.is_none_or(|class| BINARY.contains(&class));
            (fits && is_known).then_some(()).ok_or_else(|| format!("{state:?} of {names:?}, {class:?}"))
        }
        "cover" => class.is_some_and(|class| COVERS.contains(&class)).then_some(()).ok_or_else(|| format!("{class:?}")),
        "climate" | "water_heater" => {
            let modes = component["modes"].as_array().unwrap();
            let state = text("mode_state_topic").and_then(|topic| values.get(topic));
            let known = if platform == "climate" { MODES } else { WATER_MODES };
            let fits = modes.iter().all(|mode| known.contains(&mode.as_str().unwrap()))
                && state.is_some_and(|state| modes.iter().any(|mode| mode == state));
            fits.then_some(()).ok_or_else(|| format!("{state:?} of {modes:?}"))
        }
        _ => Ok(()),
    }
}

fn number(component: &Map<String, Value>, state: Option<&String>) -> Result<(), String> {
    let bound = |key: &str| component.get(key).and_then(Value::as_f64).ok_or_else(|| format!("no {key}"));
    let (minimum, maximum, step) = (bound("min")?, bound("max")?, bound("step")?);
    let number = state.map(|state| state.parse::<f64>().map_err(|_| format!("{state} is no number"))).transpose()?;
    let fits = minimum < maximum && step >= 0.001 && number.is_none_or(|it| (minimum..=maximum).contains(&it));
    fits.then_some(()).ok_or_else(|| format!("{number:?} in {minimum}..={maximum} by {step}"))
}

fn quantity(class: Option<&str>, unit: Option<&str>) -> Result<(), String> {
    let Some(class) = class else { return Ok(()) };
    let row = QUANTITIES.iter().find(|(name, _)| *name == class).ok_or_else(|| format!("there is no {class}"))?;
    unit.filter(|unit| row.1.contains(unit)).map(|_| ()).ok_or_else(|| format!("{class} in {unit:?}"))
}
