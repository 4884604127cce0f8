//! Public reports of faults in other ECHONET Lite software, each tried here. `reports.tsv` is the log: one row for each report,
//! with what we do and the test that shows it. Most have frames in the table below: the bytes of the report, and their meaning.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::emulated::Home;
use echonet_lite::class;
use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use serde_json::Value;

const PORT: u16 = 13_710;

/// The log.
const LOG: &str = include_str!("reports.tsv");

/// The folder of all crates.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The reports, a frame as it stands there or with its values, and what the properties say.
const FRAMES: &[(&str, &str, &str)] = &[
    // Values for "not known" that were shown as temperatures: -3, 126.
    ("echonetlite_homeassistant 58", "1081 0001 013001 05FF01 72 01 BB 01 7E", "roomTemperature=unmeasurable"),
    ("echonetlite_homeassistant 69", "1081 0001 013001 05FF01 72 01 B3 01 FD", "targetTemperature=undefined"),
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
    // Nodes that list controllers only, or more objects than they count.
    (
        "echonetlite_homeassistant 121",
        "1081 0001 0EF001 05FF01 72 03 8A 03 000106 83 11 FE0001060000000000000098F4AB1FA7F8 D6 04 0105FF01",
        "manufacturer=Nature (0x000106), id=0xFE0001060000000000000098F4AB1FA7F8, selfNodeInstanceListS=controller:1",
    ),
    (
        "echonetlite_homeassistant 121",
        "1081 0002 05FF01 05FF01 72 02 9D 04 03808188 9E 03 028193",
        "statusChangeAnnouncementPropertyMap=operationStatus, installationLocation, faultStatus, \
         setPropertyMap=installationLocation, remoteControl",
    ),
    (
        "echonetlite2mqtt 35",
        "1081 0001 0EF001 05FF01 72 03 D3 03 000001 D6 0A 0305FF01026301026302 D7 03 0105FF",
        "selfNodeInstanceListS=controller:1, electricRainDoor:1, electricRainDoor:2, selfNodeClassListS=controller",
    ),
    (
        "echonetlite2mqtt 8",
        "1081 0001 0EF001 05FF01 72 03 82 04 010C0100 83 11 FE0000089C50D148D05800000000000000 BF 02 342D",
        "version=ECHONET Lite 1.12, format 1 (0x010C0100), id=0xFE0000089C50D148D05800000000000000, uid=0x342D",
    ),
    (
        "echonetlite2mqtt 32",
        "1081 0001 027901 05FF01 72 01 83 11 FE00006C424D442D313039343833574455",
        "pvPowerGeneration:1 > controller:1 Get_Res id=0xFE00006C424D442D313039343833574455",
    ),
    // Property maps: a bitmap of 64, lists with makers' codes, a bitmap with codes that can only be written, a long list.
    (
        "echonetlite2mqtt 61",
        "1081 0001 027D1F 05FF01 72 01 9F 11 40A595D5A7C4C4C5869795A7E471339392",
        "remainingCapacity3, batteryHealthState, batteryType, chargingPower, dischargingPower, 0xF0, 0xF1",
    ),
    (
        "echonetlite_homeassistant 268",
        "1081 0A19 029106 05FF01 72 02 9D 05 04808188B0 9E 08 078081B0F1F2F5F6",
        "faultStatus, lightLevel, setPropertyMap=operationStatus, installationLocation, lightLevel, 0xF1, 0xF2, 0xF5, 0xF6",
    ),
    (
        "echonetlite_homeassistant 258",
        "1081 0001 027D01 05FF01 72 01 9E 11 110011900080000062C220244440000000",
        "dischargingMethod, resetCumulativeDischargingElectricEnergy, resetCumulativeChargingElectricEnergy, operationMode",
    ),
    (
        "echonetlite_homeassistant 48",
        "1081 0001 013501 05FF01 72 02 9E 05 048081A0F3 9F 11 1695818180010101000101010181820202",
        "airFlowLevel, 0xF3, getPropertyMap=operationStatus, installationLocation, protocol",
    ),
    (
        "echonetlite2mqtt 31",
        "1081 0001 013001 05FF01 72 01 9F 1E 1D80818283848588898A8B8C8D8F9397989D9E9FA0A3B0B1B3BABBBECCF6",
        "automaticTemperatureControl, targetTemperature, humidity, roomTemperature, outdoorTemperature, specialFunction, 0xF6",
    ),
    // Classes that programs did not have, or had in part.
    (
        "echonetlite_homeassistant 258",
        "1081 0001 027E01 05FF01 72 03 CC 01 22 CE 04 00009C40 CF 04 00001388",
        "equipmentType=dc_aa_chargedischarge, chargeableCapacity=40000 Wh, remainingChargeableCapacity=5000 Wh",
    ),
    (
        "echonetlite_homeassistant 109; hems_echonet_lite 1",
        "1081 0001 05FD01 05FF01 72 03 80 01 30 F0 01 00 F1 02 0001",
        "switch:1 > controller:1 Get_Res operationStatus=on, 0xF0=0x00, 0xF1=0x0001",
    ),
    ("pychonet 27", "1081 0001 02A301 05FF01 72 01 A3 01 41", "lightingSystem:1 > controller:1 Get_Res 0xA3=0x41"),
    (
        "echonetlite_homeassistant 268",
        "1081 0A30 02A301 05FF01 72 02 C0 01 01 C1 01 13",
        "sceneId=1, maximumNumberOfSceneId=19",
    ),
    (
        "echonetlite_homeassistant 228",
        "1081 0001 013001 05FF01 72 02 C6 01 02 CF 01 41",
        "airCleaningMethod={equippedElectronic: false, equippedClusterIon: true}, airPurification=on",
    ),
    // Values of batteries, heat pumps, water heaters, boards.
    (
        "echonetlite_homeassistant 268",
        "1081 0A56 027D01 05FF01 72 04 97 02 0A20 A0 04 000035E8 D3 04 00000000 E6 01 04",
        "currentTime=10:32, acEffectiveChargingCapacity=13800 Wh, \
         instantaneousChargingAndDischargingElectricPower=0 W, batteryType=lib",
    ),
    (
        "echonetlite_homeassistant 65",
        "1081 0001 013001 05FF01 72 05 80 01 31 B0 01 45 BB 01 13 BE 01 7E 85 04 00039468",
        "operationStatus=off, operationMode=circulation, roomTemperature=19 °C, outdoorTemperature=unmeasurable, \
         consumedCumulativeElectricEnergy=234.600 kWh",
    ),
    ("echonetlite_homeassistant 263", "1081 0001 013001 05FF01 72 01 A3 01 42", "automaticSwingAirFlow=horizontal"),
    ("echonetlite_homeassistant 181", "1081 F003 013001 0EF001 73 01 A0 01 32", "INF airFlowLevel=level 2"),
    (
        "pychonet 40",
        "1081 099C 027201 05FF01 72 0A 80 01 30 90 01 42 D0 01 42 91 02 151E D1 01 2B E1 01 29 E2 01 42 E3 01 41 D4 01 06 \
         E4 01 42",
        "onTimerTime=21:30, targetSuppliedWaterTemperature=43 °C, targetBathWaterTemperature=41 °C, \
         bathWaterHeatingStatus=false, automaticBathOperation=true, bathWaterVolume4=6",
    ),
    (
        "echonetlite_homeassistant 151",
        "1081 0001 026B01 05FF01 51 01 D1 01 3C",
        "SetC_SNA targetSuppliedWaterTemperature=60 °C refused",
    ),
    ("echonetlite2mqtt 46", "1081 0001 028701 05FF01 72 01 B1 01 2B", "numberOfMeasurementChannelsSimplex=43"),
    ("echonetlite_homeassistant 259", "1081 0001 028701 05FF01 72 01 97 02 141C", "currentTimeSetting=20:28"),
    // Lists of properties, refusals with values, refusals without.
    (
        "echonet-lite.js 9",
        "1081 0001 013001 05FF01 72 04 80 01 31 B0 01 42 BB 01 1C B3 01 18",
        "operationStatus=off, operationMode=cooling, roomTemperature=28 °C, targetTemperature=24 °C",
    ),
    ("uecho 6", "1081 000A 027D01 05FF01 52 02 80 01 30 DA 01 44", "Get_SNA operationStatus=on, operationMode=standby"),
    (
        "MoekadenRoom 5",
        "1081 0001 028801 05FF01 52 02 E0 00 EA 00",
        "normalDirectionCumulativeElectricEnergy refused, normalDirectionCumulativeElectricEnergyAtEvery30Min refused",
    ),
    (
        "echonetlite2mqtt 30",
        "1081 C034 0EF001 02910C 62 01 B0 00",
        "nodeProfile:1 > monoFunctionalLighting:12 Get lightLevel",
    ),
    // Frames of blogs.
    (
        "jinkouki.net",
        "1081000A0EF0010EF0017301D5070202791F027D1F",
        "instanceListNotification=pvPowerGeneration:31, storageBattery:31",
    ),
    (
        "jinkouki.net",
        "1081000C027D1F0EF0017307800130810100880142C10103C20103CF0144DA0146",
        "chargingMethod=designatedPower, dischargingMethod=designatedPower, actualOperationMode=standby, operationMode=auto",
    ),
    (
        "chakoku.hatenablog.com",
        "1081 0000 0EF001 0EF001 72 01 D6 04 01026301",
        "selfNodeInstanceListS=electricRainDoor:1",
    ),
    (
        "chakoku.hatenablog.com",
        "1081 0000 013005 05FF01 72 02 B0 01 42 9E 08 078180B0B3A0A1A4",
        "homeAirConditioner:5 > controller:1 Get_Res operationMode=cooling, setPropertyMap=operationStatus, installationLocation",
    ),
    ("joanjettsdog.blogspot.com", "1081000102880105FF017201E704000003A0", "instantaneousElectricPower=928 W"),
];

/// A row of the log.
struct Report<'a> {
    project: &'a str,
    number: &'a str,
    tried: &'a str,
    shown: &'a str,
}

impl Report<'_> {
    /// All of the log.
    ///
    /// # Errors
    /// The row that is none.
    fn all(log: &str) -> Result<Vec<Report<'_>>, String> {
        let rows = log.lines().filter(|line| !line.starts_with('#')).skip(1);
        let report = |row| {
            let columns: Vec<_> = str::split(row, '\t').collect();
            let [project, number, date, tried, symptom, verdict, ours, shown] = columns[..] else {
                return Err(format!("{} columns: {row}", columns.len()));
            };
            let is_day = |text: &str| text == "-" || text.split('-').all(|part| part.parse::<u16>().is_ok());
            let is_sentence = |text: &str| text.ends_with('.') && text.contains(' ');
            let is_whole = ["right", "mended", "excluded", "undecided"].contains(&verdict)
                && [symptom, ours].into_iter().all(is_sentence)
                && [date, tried].into_iter().all(is_day);
            is_whole.then_some(Report { project, number, tried, shown }).ok_or_else(|| format!("no report: {row}"))
        };
        rows.map(report).collect()
    }

    /// Its name in the table of frames.
    fn name(&self) -> String {
        let project = self.project.rsplit('/').next().unwrap();
        format!("{project} {}", self.number.trim_matches('-')).trim_end().to_owned()
    }
}

/// The reports of a frame: "a 1, 2; b 3" is that of three.
fn reports_of(frame: &str) -> impl Iterator<Item = String> {
    frame.split("; ").flat_map(|of_project| {
        let (project, numbers) = of_project.split_once(' ').unwrap_or((of_project, ""));
        numbers.split(", ").map(move |number| format!("{project} {number}").trim_end().to_owned())
    })
}

/// Whether the workspace has the test `PATH::NAME`, which runs without being asked for.
fn is_test(place: &str) -> bool {
    let Some((path, name)) = place.split_once("::") else { return false };
    let Ok(text) = fs::read_to_string(Path::new(WORKSPACE).join(path)) else { return false };
    let Some((before, _)) = text.split_once(&format!("fn {name}() {{")) else { return false };
    let attributes = before.lines().rev().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("#["));
    let attributes: Vec<_> = attributes.collect();
    attributes.contains(&"#[test]") && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

#[test]
fn every_report_is_tried_by_a_frame_or_a_test() {
    let reports = Report::all(LOG).unwrap();
    let framed: HashSet<String> = FRAMES.iter().flat_map(|(frame, ..)| reports_of(frame)).collect();
    for report in &reports {
        let name = report.name();
        let mut shown: Vec<_> = report.shown.split("; ").collect();
        assert_eq!(shown[0] == "frame", framed.contains(&name), "{name}: frames");
        shown.retain(|place| *place != "frame");
        let absent: Vec<_> = shown.into_iter().filter(|place| !is_test(place)).collect();
        assert!(absent.is_empty(), "{name}: no such test: {absent:?}");
    }
    let names: HashSet<_> = reports.iter().map(Report::name).collect();
    assert_eq!(names.len(), reports.len(), "a report has one row");
    let unlogged: Vec<_> = framed.difference(&names).collect();
    assert!(unlogged.is_empty(), "the log has no row for {unlogged:?}");
    let of_second_round = reports.iter().filter(|report| report.number != "-" && report.tried == "2026-12-01");
    assert!(of_second_round.count() >= 30);
}

#[test]
fn a_wrong_row_of_the_log_is_found() {
    const HEAD: &str = "project\tnumber\tdate\ttried\tsymptom\tverdict\tours\tshown\n";
    let row = "a/b\t1\t2026-01\t2026-12-01\tIt ends.\tright\tIt goes on.\tframe";
    assert_eq!(Report::all(&format!("# Log.\n{HEAD}{row}\n")).unwrap()[0].name(), "b 1");
    for (right, wrong) in [("right", "maybe"), ("It ends.", "end"), ("2026-01", "soon"), ("\tframe", "")] {
        assert!(Report::all(&format!("{HEAD}{}", row.replace(right, wrong))).is_err(), "{wrong}");
    }
    assert_eq!(reports_of("a 1, 2; b 3; c").collect::<Vec<_>>(), ["a 1", "a 2", "b 3", "c"]);
    let file = "echonet/tests/it/reports.rs";
    for (place, is_one) in [
        (format!("{file}::a_wrong_row_of_the_log_is_found"), true),
        (format!("{file}::a_wrong_row_of_the_log"), false),
        (format!("{file}::is_test"), false),
        ("echonet/tests/it/report.rs::a_wrong_row_of_the_log_is_found".to_owned(), false),
        // It runs only when asked for.
        ("echonet/tests/it/bridge.rs::a_thousand_devices".to_owned(), false),
        ("frames".to_owned(), false),
    ] {
        assert_eq!(is_test(&place), is_one, "{place}");
    }
}

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

/// banban525/echonetlite2mqtt 31: the maps that the controller takes are shown as maps.
#[test]
fn a_long_list_is_shown_as_a_map() {
    let mut plan = NodePlan::new(2, [ObjectPlan::new(class::by_name("0130").unwrap(), 1)]);
    plan.faults = vec![Fault::new(Kind::LongMapAsList)];
    let _home = Home::of([127, 0, 114], PORT, [plan]);
    let port = PORT.to_string();
    let head = ["--json", "--port", &port, "--address", "127.0.115.1", "get", "127.0.114.1"];
    let said = echonet(&[&head[..], &["homeAirConditioner", "9F"]].concat());
    let value: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let names = value["properties"][0]["value"].as_array().unwrap_or_else(|| panic!("{said}"));
    assert!(names.len() > 16 && names.contains(&"operationStatus".into()), "{said}");
}
