//! Home Assistant's terms: device classes, units, state classes.

use echonet_lite::class::{Class, PropertySpec, Unit};

use crate::language::spelled;

/// The device classes of two-valued properties: class, EPC, device class.
const DETECTIONS: &[(u16, u8, &str)] = &[
    (0x0001, 0xB1, "gas"),
    (0x0002, 0xB1, "safety"),
    (0x0003, 0xB1, "safety"),
    (0x0004, 0xB1, "safety"),
    (0x0005, 0xB1, "vibration"),
    (0x0006, 0xB1, "problem"),
    (0x0007, 0xB1, "motion"),
    (0x0008, 0xB1, "occupancy"),
    (0x000A, 0xB1, "moisture"),
    (0x000B, 0xB1, "problem"),
    (0x000E, 0xB1, "sound"),
    (0x0013, 0xB1, "moisture"),
    (0x0017, 0xB1, "moisture"),
    (0x0018, 0xB1, "moisture"),
    (0x0019, 0xB1, "smoke"),
    (0x001A, 0xB1, "smoke"),
    (0x001C, 0xB1, "gas"),
    (0x0021, 0xB1, "heat"),
    (0x0026, 0xB1, "motion"),
    (0x0028, 0xB1, "occupancy"),
    (0x0029, 0xB1, "opening"),
    (0x026F, 0xE3, "door"),
    (0x0283, 0xE8, "opening"),
    (0x0289, 0xEB, "opening"),
    (0x03B2, 0xB0, "opening"),
    (0x03B7, 0xB0, "door"),
    (0x03B7, 0xB1, "problem"),
    (0x03B7, 0xB2, "door"),
    (0x03B7, 0xB3, "door"),
    (0x03B7, 0xB4, "door"),
    (0x03B7, 0xB5, "door"),
    (0x03B7, 0xB6, "door"),
    (0x03B8, 0xB0, "door"),
    (0x03BB, 0xB0, "opening"),
    (0x03C5, 0xB0, "door"),
    (0x03C6, 0xB0, "door"),
    (0x03D3, 0xB0, "door"),
];

/// The amounts that have flown through a meter: class, EPC, device class. Volumes that are not here are contents or
/// settings.
const METERED: &[(u16, u8, &str)] = &[
    (0x0159, 0xC0, "gas"),
    (0x027C, 0xC8, "gas"),
    (0x027F, 0xC8, "gas"),
    (0x0281, 0xE0, "water"),
    (0x0282, 0xE0, "gas"),
    (0x0283, 0xE0, "gas"),
    (0x0283, 0xE1, "gas"),
    (0x0289, 0xD0, "gas"),
    (0x0289, 0xD1, "gas"),
    (0x0289, 0xE2, "gas"),
    (0x028B, 0xE0, "volume"),
    (0x028C, 0xD0, "volume"),
    (0x028C, 0xD1, "volume"),
    (0x028C, 0xE2, "volume"),
];

/// Energies in watt hours that are counted since the device was made, or the last reset. All in kilowatt hours are.
const COUNTED: &[(u16, &[u8])] = &[(0x02A7, &[0xDE])];

/// The device class of a two-valued property.
pub(super) fn detection(class: &Class, epc: u8) -> Option<&'static str> {
    const FAULT_STATUS: u8 = 0x88;
    if epc == FAULT_STATUS {
        return Some("problem");
    }
    let row = DETECTIONS.iter().find(|(of, property, _)| (*of, *property) == (class.code.to_u16(), epc));
    row.map(|(.., name)| *name)
}

/// How Home Assistant writes a unit; none for numbers without one.
pub(super) fn unit(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::None | Unit::Digit => None,
        Unit::Lux => Some("lx"),
        Unit::RevolutionPerMinute => Some("rpm"),
        other => Some(other.symbol()),
    }
}

/// Device class and state class of a number.
pub(super) fn quantity(class: &Class, spec: &PropertySpec, unit: Unit) -> (Option<&'static str>, Option<&'static str>) {
    let name = spec.short_name.to_ascii_lowercase();
    let has = |part: &str| name.contains(part);
    let (code, epc) = (class.code.to_u16(), spec.epc);
    let counted = COUNTED.iter().any(|(of, epcs)| [0, code].contains(of) && epcs.contains(&epc));
    let metered = METERED.iter().find(|(of, property, _)| (*of, *property) == (code, epc)).map(|(.., name)| *name);
    let measured = Some("measurement");
    match unit {
        Unit::Celsius => (Some("temperature"), measured),
        Unit::Percent if has("humid") || class.code.to_u16() == 0x0012 => (Some("humidity"), measured),
        Unit::Percent if has("remaining") && matches!(class.code.to_u16(), 0x027D | 0x027E) => {
            (Some("battery"), measured)
        }
        Unit::Ppm if has("co2") || class.code.to_u16() == 0x001B => (Some("carbon_dioxide"), measured),
        Unit::Watt | Unit::Kilowatt => (Some("power"), measured),
        Unit::KilowattHour => (Some("energy"), Some("total_increasing")),
        Unit::WattHour | Unit::Megajoule if counted => (Some("energy"), Some("total_increasing")),
        Unit::WattHour | Unit::Megajoule => (Some("energy_storage"), measured),
        Unit::Volt => (Some("voltage"), measured),
        Unit::Ampere | Unit::Milliampere => (Some("current"), measured),
        Unit::Lux => (Some("illuminance"), measured),
        Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour | Unit::Day => (Some("duration"), measured),
        Unit::Litre | Unit::CubicMetre if metered.is_some() => (metered, Some("total_increasing")),
        Unit::Litre | Unit::CubicMetre => (Some("volume_storage"), measured),
        Unit::CubicMetrePerHour => (Some("volume_flow_rate"), measured),
        Unit::Centimetre => (Some("distance"), measured),
        Unit::Hectopascal if class.code.to_u16() == 0x002D => (Some("atmospheric_pressure"), measured),
        Unit::Pascal | Unit::Hectopascal | Unit::Kilopascal => (Some("pressure"), measured),
        Unit::MetrePerSecond => (Some("wind_speed"), measured),
        Unit::Kilogram => (Some("weight"), measured),
        Unit::None | Unit::Digit => (None, None),
        Unit::Percent
        | Unit::Ppm
        | Unit::KilovarHour
        | Unit::AmpereHour
        | Unit::Kilolux
        | Unit::Degree
        | Unit::Millihertz
        | Unit::WattPerMillihertz
        | Unit::WattPerSecond
        | Unit::RevolutionPerMinute
        | Unit::Kine
        | Unit::CubicCentimetre
        | Unit::CubicCentimetrePerMinute
        | Unit::KilovoltAmpere => (None, measured),
    }
}

/// The name of an entity, after that of a property: the measured quantity comes first.
pub(super) fn title(name: &str) -> String {
    const LEADS: [&str; 8] = [
        "Measured value of ",
        "Measured amount of ",
        "Measured values of ",
        "Measurement value of ",
        "Set value of ",
        "Measured ",
        "Used to acquire measurements of ",
        "This property indicates the ",
    ];
    let rest = LEADS.iter().find_map(|lead| name.strip_prefix(lead)).unwrap_or(name);
    let mut letters = rest.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A name as it is, or its words if it is one for programs: `noHotWater`.
pub(super) fn readable(name: &str) -> String {
    let is_run_together =
        name.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    if is_run_together && !name.contains(' ') { spelled(name).to_lowercase() } else { name.to_owned() }
}

const ROOMS: [&str; 16] = [
    "",
    "Living room",
    "Dining room",
    "Kitchen",
    "Bathroom",
    "Lavatory",
    "Washroom",
    "Corridor",
    "Room",
    "Stairs",
    "Entrance",
    "Storeroom",
    "Garden",
    "Garage",
    "Veranda",
    "",
];

/// The name of a room, after the code of an installation location (0x81, super class): bits 6 to 3.
pub(super) fn area(location: u8) -> Option<&'static str> {
    let is_free = location & 0x80 != 0;
    let room = ROOMS[usize::from(location >> 3 & 0x0F)];
    (!is_free && !room.is_empty()).then_some(room)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::shown::{Kind, leaves};
    use super::*;
    use crate::language::Language;
    use echonet_lite::class;

    /// Names say what is cumulative; the tables here have the codes.
    #[test]
    fn only_cumulative_quantities_are_total_increasing() {
        let mut counted = 0;
        for class in class::all() {
            for spec in class.all_properties() {
                for leaf in leaves(spec.data) {
                    let Some(Kind::Number { unit, .. }) = Kind::of(leaf.data) else { continue };
                    let is_volume_or_energy = matches!(
                        unit,
                        Unit::WattHour | Unit::KilowattHour | Unit::Megajoule | Unit::Litre | Unit::CubicMetre
                    );
                    if !is_volume_or_energy {
                        continue;
                    }
                    let name = format!("{} {} {}", spec.short_name, spec.name(), leaf.name).to_lowercase();
                    let expected = name.contains("cumulative") || name.contains("integral");
                    let (device_class, state_class) = quantity(class, spec, unit);
                    let is = state_class == Some("total_increasing");
                    assert_eq!(is, expected, "{class} {:02X} {name}: {device_class:?}", spec.epc);
                    counted += usize::from(is);
                    let fluid = ["gas", "kerosene", "water"].into_iter().find(|fluid| name.contains(fluid));
                    let fluid = fluid.filter(|_| is && matches!(unit, Unit::Litre | Unit::CubicMetre));
                    let expected = fluid.map(|fluid| if fluid == "kerosene" { "volume" } else { fluid });
                    assert!(fluid.is_none() || device_class == expected, "{class} {name}: {device_class:?}");
                }
            }
        }
        println!("{counted} values count up");
    }

    #[test]
    fn rooms_have_names_of_their_own_in_each_language() {
        for language in [Language::De, Language::Ja] {
            let named: HashSet<_> = ROOMS.iter().map(|room| language.room(room)).collect();
            assert_eq!(named.len(), ROOMS.len() - 1, "{language:?}: {named:?}");
        }
        assert_eq!((Language::De.room("Kitchen"), Language::Ja.room("Kitchen")), ("Küche", "台所"));
    }

    #[test]
    fn names_lead_with_what_is_measured() {
        assert_eq!(title("Measured cumulative kerosene consumption"), "Cumulative kerosene consumption");
        assert_eq!(title("Measured value of room temperature"), "Room temperature");
        assert_eq!(title("Operation status"), "Operation status");
        assert_eq!(spelled("cumulativeEnergyAtEvery30Min"), "Cumulative energy at every 30 min");
        assert_eq!(["noHotWater", "mHz (W)", "hotWater"].map(readable), ["no hot water", "mHz (W)", "hot water"]);
    }
}
