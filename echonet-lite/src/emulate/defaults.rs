//! Plausible values of properties, made from their data types.

use std::format;
use std::vec;
use std::vec::Vec;

use crate::class::{Class, Data, Format, Number, PropertySpec, States, Unit};

use super::Moment;

/// A value that an emulated object begins with. It is one of those that the type has.
pub(super) fn value(class: &Class, spec: &PropertySpec, maker: [u8; 3], serial: u64) -> Vec<u8> {
    known(class, spec.epc, maker, serial)
        .into_iter()
        .chain(candidates(spec.data))
        .find(|edt| spec.decode(edt).is_ok())
        .unwrap_or_else(|| vec![0; spec.data.sizes().0])
}

/// Properties of all devices whose bytes the tables leave open.
fn known(class: &Class, epc: u8, maker: [u8; 3], serial: u64) -> Option<Vec<u8>> {
    const SUPER_CLASS_END: u8 = 0x9F;
    if epc > SUPER_CLASS_END {
        return None;
    }
    let text = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(12, 0);
        bytes
    };
    let [class_high, class_low] = class.code.to_u16().to_be_bytes();
    Some(match epc {
        0x82 => vec![0, 0, b'R', 4],
        0x83 => {
            let mut number = [&[0xFE][..], &maker, &[class_high, class_low]].concat();
            number.resize(9, 0);
            number.extend_from_slice(&serial.to_be_bytes());
            number
        }
        0x8A => maker.to_vec(),
        0x8C => text("echonet"),
        0x8D => text(&format!("{serial:012}")[..12]),
        _ => return None,
    })
}

/// Values of a type, the most plausible first.
fn candidates(data: &'static Data) -> Vec<Vec<u8>> {
    let (now, least) = (Moment::now(), data.sizes().0);
    let ((year, month, day), (hour, minute, second)) = (now.date(), now.time());
    let [year_high, year_low] = year.to_be_bytes();
    let one = match data {
        Data::Number(number) => return vec![plausible(number)],
        Data::Numeric(codes) => return codes.iter().map(|code| vec![code.code]).collect(),
        Data::State(states) => return states_in_order(states),
        Data::Level(level) => {
            let code = u64::from(level.base) + u64::from(level.maximum.saturating_sub(1) / 2);
            big_endian(code, level.size.into())
        }
        Data::Date => vec![year_high, year_low, month, day],
        Data::Time(format) if format.seconds => vec![0, 0, 0],
        Data::Time(format) if format.maximum_hour <= 23 => vec![hour, minute],
        Data::Time(_) => vec![0, 0],
        Data::DateTime { seconds: true } => vec![year_high, year_low, month, day, hour, minute, second],
        Data::DateTime { seconds: false } => vec![year_high, year_low, month, day, hour, minute],
        Data::Bitmap(_) | Data::Text { .. } | Data::Raw { .. } => vec![0; least],
        Data::Array(array) => {
            let item = candidates(array.items).into_iter().next().unwrap_or_default();
            let fits = item.len() == usize::from(array.item_size);
            let item = if fits { item } else { vec![0; array.item_size.into()] };
            // One item where there may be none: of a board with one circuit, its value.
            item.repeat(array.minimum.max(1).min(array.maximum).into())
        }
        Data::Object(fields) => {
            let first = |data| candidates(data).into_iter().next().unwrap_or_default();
            fields.iter().flat_map(|field| first(field.data)).collect()
        }
        // A measurement is more than the code that says there is none.
        Data::OneOf(arms) => {
            let is_state = |arm: &&'static Data| matches!(arm, Data::State(_));
            let numbers = arms.iter().filter(|arm| !is_state(arm));
            return numbers.chain(arms.iter().filter(is_state)).flat_map(candidates).collect();
        }
    };
    vec![one]
}

/// Without a fault, on, and otherwise in the order of the table; read-only states come last.
fn states_in_order(states: &States) -> Vec<Vec<u8>> {
    let mut all: Vec<_> = states.all.iter().collect();
    let is_switch = |code| matches!(code, 0x30 | 0x31);
    all.sort_by_key(|state| {
        let unlikely = match state.name {
            "true" => !is_switch(state.code),
            "false" => is_switch(state.code),
            _ => false,
        };
        (state.read_only, unlikely)
    });
    all.iter().map(|state| big_endian(state.code, states.size.into())).collect()
}

fn plausible(number: &Number) -> Vec<u8> {
    let usual: i64 = match number.unit {
        Unit::Celsius => 22,
        Unit::Percent => 50,
        Unit::Ppm => 600,
        Unit::Lux => 300,
        Unit::Watt | Unit::Volt => 100,
        Unit::Kilowatt | Unit::Ampere => 1,
        Unit::KilowattHour | Unit::WattHour | Unit::CubicMetre => 1234,
        _ => 0,
    };
    let scale = 10_i64.pow(u32::from(number.exponent.unsigned_abs()).min(9));
    let raw = if number.exponent < 0 { usual * scale } else { usual / scale };
    let raw = raw.clamp(number.minimum, number.maximum);
    let size = match number.format {
        Format::Int8 | Format::Uint8 => 1,
        Format::Int16 | Format::Uint16 => 2,
        Format::Uint24 => 3,
        Format::Int32 | Format::Uint32 => 4,
    };
    big_endian(raw as u64, size)
}

fn big_endian(number: u64, size: usize) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    bytes[bytes.len() - size.min(bytes.len())..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_of_every_class_begins_with_a_value_it_can_have() {
        for class in crate::class::all() {
            for spec in class.all_properties() {
                let edt = value(class, spec, [0, 0, 0x77], 1);
                let decoded = spec.decode(&edt);
                assert!(decoded.is_ok(), "{class} {:02X} {}: {edt:02X?} {decoded:?}", spec.epc, spec.short_name);
            }
        }
    }
}
