//! Public reports of faults in other ECHONET Lite software, each tried here: the bytes of the report, and their meaning.
//!
//! Reports about behaviour have tests elsewhere:
//!
//! | report | test |
//! | --- | --- |
//! | banban525/echonetlite2mqtt 24, 62; scottyphillips/echonetlite_homeassistant 155: nodes that no search finds | `reach`, `export` |
//! | scottyphillips/echonetlite_homeassistant 99, 140, 144, 254: addresses that change | `bridge::identity`, `web::identity` |
//! | sayurin/hems_echonet_lite 33: nodes that are missing after a restart | `bridge::identity` |
//! | hsakoh/broute-mqtt 1, 5: sessions that end, answers that do not come | `serial`: `relay` |
//! | hsakoh/broute-mqtt 2: SKSCAN of a module with two networks | `serial`: `readings_of_every_module` |
//! | cybergarage/uecho 2: the two lists of SetGet | `vectors` |
//! | scottyphillips/echonetlite_homeassistant 150: a meter without its unit | `a_number_without_its_unit_is_raw` |

use std::process::Command;

use crate::emulated::Home;
use echonet_lite::class;
use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use serde_json::Value;

const PORT: u16 = 13_710;

/// The report, a frame as it stands there or with its values, and what the properties say.
const FRAMES: &[(&str, &str, &str)] = &[
    // Values for "not known" that were shown as temperatures: -3, 126.
    ("echonetlite_homeassistant 58, 69", "1081 0001 013001 05FF01 72 01 B3 01 FD", "targetTemperature=undefined"),
    ("homebridge-echonet-lite-eolia 27", "1081 0001 013001 05FF01 72 01 BB 01 7E", "roomTemperature=unmeasurable"),
    ("echonetlite_homeassistant 12", "1081 0001 013001 05FF01 72 01 BE 01 7E", "outdoorTemperature=unmeasurable"),
    ("pychonet 50", "1081 0001 013001 05FF01 72 01 BA 01 FD", "humidity=unmeasurable"),
    // A notification to the node profile about an air conditioner: the mode was lost, and the flow was not taken.
    ("echonetlite_homeassistant 162", "1081 F0B4 013001 0EF001 73 01 A0 01 33", "INF airFlowLevel=level 3"),
    // A class that users define, beside others: the whole node was refused.
    (
        "echonetlite_homeassistant 68, 148",
        "1081 01DB 0F0201 0EF001 73 01 D3 01 00",
        "0F0201 > nodeProfile:1 INF 0xD3=0x00",
    ),
    // Meters whose numbers were shown without their units.
    (
        "echonetlite_homeassistant 148",
        "1081 003E 028001 05FF01 72 03 80 01 30 E0 04 00007216 E2 01 02",
        "cumulativeElectricEnergy=292.06 kWh",
    ),
    (
        "echonetlite_homeassistant 148",
        "1081 003F 028101 05FF01 72 03 80 01 30 E0 04 0000F863 E1 01 03",
        "cumulativeFlowingWater=63.587 m³",
    ),
    (
        "echonetlite_homeassistant 112",
        "1081 0014 028101 05FF01 72 03 80 01 30 E0 04 00119E3C E1 01 04",
        "cumulativeFlowingWater=115.4620 m³",
    ),
    (
        "echonetlite_homeassistant 148",
        "1081 008D 027201 05FF01 72 03 D5 01 0C EE 02 00C8 EF 01 42",
        "maximumAllowableWaterVolume4=12, bathWaterVolume3=200 L, bathOperationStatus=noOperation",
    ),
    (
        "echonetlite_homeassistant 112",
        "1081 0002 013001 05FF01 72 04 BA 01 41 BB 01 19 84 02 012C 85 04 000A5CBC",
        "humidity=65 %, roomTemperature=25 °C, instantaneousElectricPowerConsumption=300 W, \
         consumedCumulativeElectricEnergy=679.100 kWh",
    ),
    // An instance number past 16; values that stayed unavailable.
    (
        "echonetlite_homeassistant 191",
        "1081 000B 027D1F 05FF01 72 05 A0 04 000023C7 E2 04 0000221B E4 01 64 A8 04 001989D7 CF 01 44",
        "storageBattery:31 > controller:1 Get_Res acEffectiveChargingCapacity=9159 Wh, remainingCapacity1=8731 Wh, \
         remainingCapacity3=100 %, acCumulativeChargingElectricEnergy=1673.687 kWh, actualOperationMode=standby",
    ),
    (
        "echonetlite_homeassistant 217",
        "1081 661D 013001 05FF01 72 04 80 01 30 B0 01 43 BB 01 15 BE 01 07",
        "operationStatus=on, operationMode=heating, roomTemperature=21 °C, outdoorTemperature=7 °C",
    ),
    // A distribution board that was never set up.
    (
        "hems_echonet_lite 98",
        "1081 0001 028701 05FF01 72 02 B2 02 FDFD B1 01 FD",
        "={startChannel: undefined, range: undefined}, numberOfMeasurementChannelsSimplex=undefined",
    ),
    // A class of a later release, a maker's own property.
    (
        "echonetlite2mqtt 51",
        "1081 0001 02A501 05FF01 72 02 E0 04 00000001 E7 04 FFFFFF9C",
        "multipleInputPCS:1 > controller:1 Get_Res normalDirectionElectricEnergy=0.001 kWh, instantaneousElectricPower=-100 W",
    ),
    ("echonetlite_homeassistant 209", "1081 0001 02A501 05FF01 72 01 F5 02 0001", "0xF5=0x0001"),
    // Property maps as bits, with codes past 0xB0, and as lists.
    (
        "pychonet 26",
        "1081 0010 029005 05FF01 72 02 9F 11 1A8B0B09090A0A09020301010100020202 9E 10 0F8081909194959798B0B1B2B3B6F0F8",
        "maximumSettableLevelForNightLighting, operationMode, 0xF0, setPropertyMap=operationStatus, installationLocation, \
         onTimerReservation",
    ),
    (
        "echonetlite2mqtt 9",
        "1081 0001 013001 05FF01 72 03 82 04 00004A00 9D 07 068081888FA0B0 9E 0C 0B80818F93A0A3B0B3B4C1C4",
        "protocol=Release J (0x00004A00), statusChangeAnnouncementPropertyMap=operationStatus, installationLocation",
    ),
    (
        "echonetlite2mqtt 9",
        "1081 0001 0EF001 05FF01 72 01 9F 0E 0D808283898A9D9E9FBFD3D4D6D7",
        "uid, selfNodeInstances, selfNodeClasses, selfNodeInstanceListS, selfNodeClassListS",
    ),
    // Bytes that ended a program.
    (
        "echonet-lite.js 18",
        "0100FFFF06062478230B995C888800FF00FF098305FF010EF001D662",
        "byte 0: EHD1 is 0x01, not 0x10",
    ),
    ("echonet-lite.js 4", "1081 0001 0EF001 05FF01 72 01 8888007700FF06820EF001E062", "the frame ends inside a field"),
];

fn echonet(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_echonet")).args(arguments).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn frames_of_reports_have_their_meaning() {
    for (report, frame, expected) in FRAMES {
        let said = echonet(&["decode", frame]);
        assert!(said.contains(expected), "{report}: {said}");
    }
}

/// A coefficient that every device of the class must have is not 1 if a device lacks it: a number without its unit would be
/// wrong by a power of ten. An optional one (0xD3) is 1.
#[test]
fn a_number_without_its_unit_is_raw() {
    const COUNT: u8 = 0xE0;
    const UNIT: u8 = 0xE1;
    let mut meter = ObjectPlan::new(class::by_name("0288").unwrap(), 1);
    meter.values.push((COUNT, 4321_u32.to_be_bytes().to_vec()));
    for (lacks, expected) in [
        (&[UNIT][..], r#""raw":true,"coefficients":["0xD3","0xE1"]"#),
        (&[0xD3], r#""value":432.1"#),
        (&[UNIT, 0xD3], r#""raw":true"#),
    ] {
        let mut object = meter.clone();
        object.values.push((UNIT, vec![1]));
        let mut plan = NodePlan::new(1, [object]);
        plan.faults = lacks.iter().map(|epc| Fault::of_property(Kind::Missing, plan.objects[0].eoj, *epc)).collect();
        let _home = Home::of([127, 0, 112], PORT, [plan]);
        let port = PORT.to_string();
        let head = ["--json", "--port", &port, "--address", "127.0.113.1", "get", "127.0.112.1"];
        let said = echonet(&[&head[..], &["lvSmartElectricEnergyMeter", "E0"]].concat());
        let value: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        assert!(value["properties"][0].to_string().contains(expected), "{lacks:02X?}: {said}");
    }
}
