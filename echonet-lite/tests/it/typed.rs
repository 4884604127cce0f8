//! Properties as types: each says what the table says.

use echonet_lite::class::general_lighting::{self, LightLevel, OperationStatus, Rgb};
use echonet_lite::class::home_air_conditioner::{
    AirCleaningMethod, AirFlowLevel, OperationMode, RoomTemperature, TargetTemperature,
};
use echonet_lite::class::lv_smart_electric_energy_meter::UnitForCumulativeElectricEnergy;
use echonet_lite::class::{self, EdtError, Property, Scaled, Unit, Value, temperature_sensor};
use echonet_lite::node::check;
use echonet_lite::wire::ClassCode;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::values::valid;

/// The value read and written again, and whether that can be set.
type Read = Result<(Vec<u8>, bool), EdtError>;

struct Entry {
    class: ClassCode,
    epc: u8,
    read: fn(&[u8]) -> Read,
}

fn entry<P: Property>() -> Entry {
    let read = |edt: &[u8]| {
        let value = P::decode(edt)?;
        let mut buffer = [0; 255];
        let length = value.encode(&mut buffer)?;
        Ok((buffer[..length].to_vec(), value.is_settable()))
    };
    Entry { class: P::CLASS, epc: P::EPC, read }
}

/// All of them.
fn every_type() -> Vec<Entry> {
    Vec::from(include!(concat!(env!("OUT_DIR"), "/every_type.rs")))
}

#[test]
fn every_type_reads_and_takes_what_the_table_does() {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    for Entry { class, epc, read } in every_type() {
        let class = class::find(class).expect("its class is there");
        let property = class.property(epc).expect("its property is there");
        let say = || format!("{class} {}", property.short_name);
        let compare = |edt: &[u8]| {
            let by_table = property.decode(edt).map(|_| edt.to_vec()).ok();
            let by_type = read(edt);
            assert_eq!(by_type.as_ref().ok().map(|(edt, _)| edt.clone()), by_table, "{} {edt:02X?}", say());
            if let Ok((_, settable)) = by_type {
                assert_eq!(settable, check(class, epc, edt).is_ok(), "{} {edt:02X?}", say());
            }
        };
        for _ in 0..40 {
            let edt = valid(property.data, &mut rng);
            assert!(read(&edt).is_ok(), "{} {edt:02X?}", say());
            compare(&edt);
        }
        for length in [0, property.data.sizes().0, property.data.sizes().1, 255] {
            for _ in 0..40 {
                let edt: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
                compare(&edt);
            }
        }
        for byte in 0..=255 {
            compare(&[byte]);
        }
    }
}

#[test]
fn every_property_has_a_type() {
    let types = every_type();
    for class in class::all() {
        for property in class.properties {
            let is = |class: ClassCode| types.iter().any(|entry| (entry.class, entry.epc) == (class, property.epc));
            let common = class::SUPER_CLASS.property(property.epc);
            let inherited =
                || common.is_some_and(|common| common.short_name == property.short_name && is(ClassCode::new(0, 0)));
            assert!(is(class.code) || inherited(), "{class} {}", property.short_name);
        }
    }
}

#[test]
fn numbers_levels_and_states() {
    assert_eq!((LightLevel::EPC, general_lighting::LIGHT_LEVEL), (0xB0, 0xB0));
    assert_eq!(LightLevel::CLASS, class::GENERAL_LIGHTING.code);
    assert_eq!([LightLevel::MIN, LightLevel::MAX].map(LightLevel::code), [0, 100]);
    assert_eq!(LightLevel::new(50), Some(LightLevel::of::<50>()));
    assert_eq!([LightLevel::new(101), LightLevel::new(-1), LightLevel::level(1)], [None; 3]);
    assert_eq!(RoomTemperature::of::<-5>().code(), 0xFB);
    assert_eq!(RoomTemperature::of::<-5>().steps(), Some(-5));
    assert_eq!(RoomTemperature::UNMEASURABLE.to_string(), "unmeasurable");
    assert_eq!(RoomTemperature::decode(&[0x7F]).map(|value| value.value()), Ok(Value::Overflow));
    assert_eq!(TargetTemperature::decode(&[51]), Err(EdtError::Value));
    assert_eq!(temperature_sensor::Value::nearest(22.46).map(|value| value.to_string()).as_deref(), Some("22.5 °C"));
    let half = Scaled { raw: 5, exponent: -1, unit: Unit::Celsius };
    assert_eq!(temperature_sensor::Value::from_scaled(half), Some(temperature_sensor::Value::of::<5>()));
    assert_eq!(TargetTemperature::from_scaled(half), None, "it counts whole degrees");
    assert_eq!([AirFlowLevel::level(0), AirFlowLevel::level(9)], [None; 2]);
    assert_eq!(AirFlowLevel::level(8).and_then(AirFlowLevel::as_level), Some(8));
    assert_eq!(AirFlowLevel::AUTO.as_level(), None);
    assert_eq!(UnitForCumulativeElectricEnergy::new(10).map(UnitForCumulativeElectricEnergy::code), Some(0x0A));
    assert_eq!(OperationMode::decode(&[0x42]), Ok(OperationMode::Cooling));
    assert_eq!(OperationMode::decode(&[0x42, 0x42]), Err(EdtError::Length));
    assert_eq!(OperationStatus::On.encode(&mut []), Err(EdtError::Room));
    assert!(bool::from(OperationStatus::from(true)));
    assert_eq!(OperationStatus::CLASS, class::SUPER_CLASS.code, "one type for all devices");
}

#[test]
fn records() {
    let rgb = Rgb::new(Value::List(&[255.into(), 128.into(), 0.into()])).unwrap();
    assert_eq!(rgb.value().field("green"), Some(Value::whole(128)));
    assert_eq!(Rgb::new(Value::List(&[256.into(), 0.into(), 0.into()])), Err(EdtError::Value));
    let method = AirCleaningMethod::EMPTY.with_equipped_cluster_ion(true);
    assert_eq!(
        (method.as_bytes(), method.equipped_electronic(), method.equipped_cluster_ion()),
        (&[2][..], false, true)
    );
}
