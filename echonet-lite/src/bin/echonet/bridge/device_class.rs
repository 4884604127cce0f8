//! What Home Assistant calls things: device classes, units, state classes.

use echonet_lite::class::{Class, PropertySpec, Unit};

/// What a two-valued property of a class tells of: class, EPC, device class.
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
];

/// What a two-valued property tells of.
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
    let counts_up = has("cumulative") || has("integral");
    let measured = Some("measurement");
    let of_volume = |what: &'static str| match (counts_up, class.code.to_u16()) {
        (true, 0x0282) => (Some("gas"), Some("total_increasing")),
        (true, _) => (Some("water"), Some("total_increasing")),
        (false, _) => (Some(what), measured),
    };
    match unit {
        Unit::Celsius => (Some("temperature"), measured),
        Unit::Percent if has("humid") || class.code.to_u16() == 0x0012 => (Some("humidity"), measured),
        Unit::Percent if has("remaining") && matches!(class.code.to_u16(), 0x027D | 0x027E) => {
            (Some("battery"), measured)
        }
        Unit::Ppm if has("co2") || class.code.to_u16() == 0x001B => (Some("carbon_dioxide"), measured),
        Unit::Watt | Unit::Kilowatt => (Some("power"), measured),
        Unit::WattHour | Unit::KilowattHour | Unit::Megajoule if counts_up => {
            (Some("energy"), Some("total_increasing"))
        }
        Unit::WattHour | Unit::KilowattHour | Unit::Megajoule => (Some("energy_storage"), measured),
        Unit::Volt => (Some("voltage"), measured),
        Unit::Ampere | Unit::Milliampere => (Some("current"), measured),
        Unit::Lux => (Some("illuminance"), measured),
        Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour | Unit::Day => (Some("duration"), measured),
        Unit::Litre | Unit::CubicMetre => of_volume("volume_storage"),
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

/// What a room is called, after the code of an installation location (0x81, super class): bits 6 to 3.
pub(super) fn area(location: u8) -> Option<&'static str> {
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
    let is_free = location & 0x80 != 0;
    let room = ROOMS[usize::from(location >> 3 & 0x0F)];
    (!is_free && !room.is_empty()).then_some(room)
}
