//! Typed values: bytes, values and text of every property of every class, and known values by hand.

use echonet_lite::class::{self, Access, Data, Date, DateTime, PropertySpec, Rule, Scaled, Time, Unit, Value};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

fn property(class: &str, name: &str) -> &'static PropertySpec {
    let class = class::by_name(class).unwrap_or_else(|| panic!("{class}"));
    class.property_by_name(name).unwrap_or_else(|| panic!("{class} {name}"))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

/// Every form of every property.
fn every_property() -> impl Iterator<Item = &'static PropertySpec> {
    class::all().iter().flat_map(|class| class.properties.iter().chain(class.superseded))
}

/// EDT, its `Display` text, and its JSON; and the way back.
#[track_caller]
fn check(class: &str, name: &str, edt: &str, text: &str, json: &str) {
    let property = property(class, name);
    let edt = bytes(edt);
    let value = property.decode(&edt).unwrap_or_else(|error| panic!("{class} {error}"));
    assert_eq!(value.to_string(), text, "{class} {name}");
    assert_eq!(value.json().to_string(), json, "{class} {name}");
    let mut buffer = [0; 255];
    for length in
        [property.encode(value, &mut buffer), property.parse(text, &mut buffer), property.parse(json, &mut buffer)]
    {
        assert_eq!(
            length.map(|length| &buffer[..length]).map_err(|error| error.to_string()),
            Ok(&edt[..]),
            "{class} {name} {text}"
        );
    }
}

#[test]
#[rustfmt::skip]
#[allow(clippy::too_many_lines, reason = "a table")]
fn known_values() {
    check("homeAirConditioner", "80", "30", "true", "true");
    check("homeAirConditioner", "B0", "42", "cooling", r#""cooling""#);
    check("homeAirConditioner", "B3", "16", "22 °C", "22");
    check("homeAirConditioner", "B3", "FD", "undefined", r#""undefined""#);
    check("homeAirConditioner", "BB", "FB", "-5 °C", "-5");
    check("homeAirConditioner", "BB", "7E", "unmeasurable", r#""unmeasurable""#);
    check("homeAirConditioner", "BB", "7F", "overflow", r#""overflow""#);
    check("homeAirConditioner", "BB", "80", "underflow", r#""underflow""#);
    check("homeAirConditioner", "BF", "F6", "-1.0 °C", "-1.0");
    check("homeAirConditioner", "A0", "33", "level 3", "3");
    check("homeAirConditioner", "A0", "41", "auto", r#""auto""#);
    check("homeAirConditioner", "91", "0E1E", "14:30", r#""14:30""#);
    check("homeAirConditioner", "92", "6300", "99:00", r#""99:00""#);
    check("homeAirConditioner", "B9", "0069", "10.5 A", "10.5");
    check("homeAirConditioner", "B8", "0064 0000 FFFE 0001",
        "{cooling: 100 W, heating: 0 W, dehumidifying: unsupported, circulation: 1 W}",
        r#"{"cooling": 100, "heating": 0, "dehumidifying": "unsupported", "circulation": 1}"#);
    check("homeAirConditioner", "C6", "03", "{equippedElectronic: true, equippedClusterIon: true}",
        r#"{"equippedElectronic": true, "equippedClusterIon": true}"#);
    check("homeAirConditioner", "C6", "81", "{equippedElectronic: true, equippedClusterIon: false, reserved: 0x80}",
        r#"{"equippedElectronic": true, "equippedClusterIon": false, "reserved": "0x80"}"#);
    check("generalLighting", "B0", "64", "100 %", "100");
    check("generalLighting", "C0", "FF8000", "{red: 255, green: 128, blue: 0}", r#"{"red": 255, "green": 128, "blue": 0}"#);
    check("temperatureSensor", "E0", "00E1", "22.5 °C", "22.5");
    check("temperatureSensor", "E0", "FFFB", "-0.5 °C", "-0.5");
    check("temperatureSensor", "E0", "8000", "underflow", r#""underflow""#);
    check("lvSmartElectricEnergyMeter", "E7", "000001F8", "504 W", "504");
    check("lvSmartElectricEnergyMeter", "E7", "FFFFFE0C", "-500 W", "-500");
    check("lvSmartElectricEnergyMeter", "E7", "7FFFFFFE", "noData", r#""noData""#);
    check("lvSmartElectricEnergyMeter", "D3", "00000001", "1", "1");
    check("lvSmartElectricEnergyMeter", "E1", "01", "0.1", "0.1");
    check("lvSmartElectricEnergyMeter", "E1", "0A", "10", "10");
    check("lvSmartElectricEnergyMeter", "E0", "0001E240", "123456 kWh", "123456");
    check("lvSmartElectricEnergyMeter", "E8", "000A 7FFE", "{rPhase: 1.0 A, tPhase: noData}", r#"{"rPhase": 1.0, "tPhase": "noData"}"#);
    check("lvSmartElectricEnergyMeter", "EA", "07E8 0C 1F 0E 1E 00 0001E240",
        "{dateAndTime: 2024-12-31 14:30:00, electricEnergy: 123456 kWh}",
        r#"{"dateAndTime": "2024-12-31 14:30:00", "electricEnergy": 123456}"#);
    check("lvSmartElectricEnergyMeter", "ED", "FFFFFFFFFFFF 01", "{dateAndTime: unset, numberOfCollectionSegments: 1}",
        r#"{"dateAndTime": "unset", "numberOfCollectionSegments": 1}"#);
    check("lvSmartElectricEnergyMeter", "EC", "07E8 0C1F 0E1E 02 00000001 FFFFFFFE 00000002 00000003",
        "{dateAndTime: 2024-12-31 14:30, numberOfCollectionSegments: 2, electricEnergy: [{normalDirectionElectricEnergy: 1 kWh, reverseDirectionElectricEnergy: noData}, {normalDirectionElectricEnergy: 2 kWh, reverseDirectionElectricEnergy: 3 kWh}]}",
        r#"{"dateAndTime": "2024-12-31 14:30", "numberOfCollectionSegments": 2, "electricEnergy": [{"normalDirectionElectricEnergy": 1, "reverseDirectionElectricEnergy": "noData"}, {"normalDirectionElectricEnergy": 2, "reverseDirectionElectricEnergy": 3}]}"#);
    check("storageBattery", "E4", "32", "50 %", "50");
    check("storageBattery", "D3", "FFFFFC18", "-1000 W", "-1000");
    check("storageBattery", "DA", "42", "charging", r#""charging""#);
    check("storageBattery", "E0", "FFFFFFFF", "-1 Wh", "-1");
    check("storageBattery", "E1", "0064", "10.0 Ah", "10.0");
    check("evCharger", "C7", "30", "notConnected", r#""notConnected""#);
    check("electricWaterHeater", "B3", "2A", "42 °C", "42");
    check("electricWaterHeater", "C2", "06000000", "{noHotWater: true, leaking: false, freezing: false}", r#"{"noHotWater": true, "leaking": false, "freezing": false}"#);
    check("electricWaterHeater", "C8", "14", "20", "20");
    check("washerDryer", "D6", "A2", "level 3 from 0xA0", r#""level 3 from 0xA0""#);
    check("washerDryer", "D7", "0320", "800 r/min", "800");
    check("coldOrHotWaterHeatSourceEquipment", "E2", "23", "level 3 from 0x21", r#""level 3 from 0x21""#);
    check("common", "81", "08", "0x08", r#""0x08""#);
    check("common", "8E", "07E80C1F", "2024-12-31", r#""2024-12-31""#);
    check("common", "93", "61", "true (0x61)", r#""true (0x61)""#);
    check("common", "89", "000B", "abnormalEventOrSafety (0x000B)", r#""abnormalEventOrSafety (0x000B)""#);
    check("common", "9A", "43 00000010", "{unit: hour, time: 16}", r#"{"unit": "hour", "time": 16}"#);
    check("nodeProfile", "D5", "02 029001 013001", "{numberOfinstances: 2, instanceList: [0x029001, 0x013001]}",
        r#"{"numberOfinstances": 2, "instanceList": ["0x029001", "0x013001"]}"#);
    check("nodeProfile", "D6", "00", "{numberOfInstances: 0, instanceList: []}", r#"{"numberOfInstances": 0, "instanceList": []}"#);
}

/// Further texts that people type.
#[test]
fn text_for_people() {
    let check = |class: &str, name: &str, text: &str, edt: &str| {
        let mut buffer = [0; 255];
        let length = property(class, name).parse(text, &mut buffer).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(buffer[..length], bytes(edt), "{class} {name} {text}");
    };
    for text in ["on", "ON", "true", "yes", "0x30", " on ", "\"on\""] {
        check("generalLighting", "80", text, "30");
    }
    for text in ["off", "No", "false", "0x31"] {
        check("generalLighting", "80", text, "31");
    }
    for text in ["22", "22 °C", "22C", "22 c", "22.0", "0x16", "+22"] {
        check("homeAirConditioner", "B3", text, "16");
    }
    for text in ["-0.5", "-0.50 °C", "-0.5C", "0xFFFB"] {
        check("temperatureSensor", "E0", text, "FFFB");
    }
    for text in ["level 3", "3", "level3"] {
        check("homeAirConditioner", "A0", text, "33");
    }
    for text in ["{255, 128, 0}", "255,128,0", "{\"blue\":0,\"red\":255,\"green\":128}", "0xFF8000"] {
        check("generalLighting", "C0", text, "FF8000");
    }
    for text in ["{zone0: true, zone3: on}", "zone0, zone3", "0x09"] {
        check("floorHeater", "E4", text, "09");
    }
    check("homeAirConditioner", "91", "7:05", "0705");
    check("drElectricEnergyMeter", "DA", "14:30:15", "0E1E0F");
    check("lvSmartElectricEnergyMeter", "E5", "defaultValue", "FF");
    check("lvSmartElectricEnergyMeter", "ED", "2024-12-31T14:30, 12", "07E80C1F0E1E0C");
    check("lvSmartElectricEnergyMeter", "E7", "1.5 kW", "000005DC");
    check("lvSmartElectricEnergyMeter", "E1", "0.0001", "04");
    check("common", "93", "on", "41");
    check("common", "8C", "41:42:43 44 45 46 47 48 49 4A 4B 4C", "4142434445464748494A4B4C");
    check("common", "81", "08", "08");
}

/// The errors for bad values.
#[test]
fn errors_name_the_property_the_value_and_what_is_allowed() {
    let text = |class: &str, name: &str, text: &str, expected: &str| {
        let error = property(class, name).parse(text, &mut [0; 255]).expect_err(text);
        assert_eq!(error.to_string(), expected);
    };
    text("homeAirConditioner", "B3", "51", "0xB3 target temperature: 51 is not in 0..=50 °C");
    text("homeAirConditioner", "B3", "22.5", "0xB3 target temperature: 22.5 is not a multiple of 1 °C");
    text("homeAirConditioner", "B3", "warm", "0xB3 target temperature: `warm` is not in 0..=50 °C");
    text("homeAirConditioner", "B3", "0x1", "0xB3 target temperature: `0x1` is not in 0..=50 °C");
    text("homeAirConditioner", "B3", "20 kW", "0xB3 target temperature: 20 is not in 0..=50 °C");
    text("homeAirConditioner", "B3", "0x0102", "0xB3 target temperature: 2 bytes instead of 1");
    text("homeAirConditioner", "A0", "9", "0xA0 air flow level: 9 is not a level 1..=8 or auto");
    text("homeAirConditioner", "91", "25:00", "0x91 time of on timer: `25:00` is not a time (14:30)");
    text("temperatureSensor", "E0", "4000", "0xE0 value: 4000 is not in -273.2..=3276.6 °C");
    text("generalLighting", "C0", "{1, 2, 300}", "0xC0 rgb, blue: 300 is not in 0..=255");
    text("generalLighting", "B6", "dim", "0xB6 operation mode: `dim` is not one of auto, normal, night, color");
    text("common", "8A", "0x0102", "0x8A manufacturer: 2 bytes instead of 3");
    let edt = |class: &str, name: &str, edt: &[u8], expected: &str| {
        let error = property(class, name).decode(edt).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    edt("homeAirConditioner", "B3", &[51], "0xB3 target temperature: 51 is not in 0..=50 °C");
    edt("homeAirConditioner", "B3", &[], "0xB3 target temperature: 0 bytes instead of 1");
    edt(
        "homeAirConditioner",
        "B0",
        &[0x99],
        "0xB0 operation mode: 0x99 is not one of auto, cooling, heating, dehumidification, circulation, other",
    );
    edt(
        "lvSmartElectricEnergyMeter",
        "E0",
        &[0xFF; 4],
        "0xE0 normal direction cumulative electric energy: 4294967295 is not in 0..=99999999 kWh",
    );
    let room = property("common", "8A").encode(Value::Raw(&[1, 2, 3]), &mut [0; 2]).expect_err("too small");
    assert_eq!(room.to_string(), "0x8A manufacturer: the value needs 3 bytes, the buffer has 2");
}

/// Values made by a program rather than decoded.
#[test]
fn encode_made_values() {
    let check = |class: &str, name: &str, value: Value<'_>, edt: &str| {
        let mut buffer = [0; 255];
        let length = property(class, name).encode(value, &mut buffer).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(buffer[..length], bytes(edt), "{class} {name} {value}");
    };
    check("homeAirConditioner", "B3", Value::whole(22), "16");
    check("homeAirConditioner", "B3", Value::Number(Scaled { raw: 220, exponent: -1, unit: Unit::Celsius }), "16");
    check("temperatureSensor", "E0", Value::whole(22), "00DC");
    check("temperatureSensor", "E0", Value::Overflow, "7FFF");
    check("storageBattery", "E0", Value::Overflow, "7FFFFFFF");
    check("storageBattery", "E0", Value::whole(-5), "FFFFFFFB");
    let nearest = property("temperatureSensor", "E0").nearest(22.46).expect("a number");
    check("temperatureSensor", "E0", nearest, "00E1");
    let moment = DateTime {
        date: Date { year: 2024, month: 12, day: 31 },
        time: Time { hour: 14, minute: 30, second: Some(0) },
    };
    let measured = [Value::DateTime(moment), Value::whole(123_456)];
    check("lvSmartElectricEnergyMeter", "EA", Value::List(&measured), "07E80C1F0E1E000001E240");
    let phases = [Value::Number(Scaled { raw: 10, exponent: -1, unit: Unit::Ampere }), Value::Raw(&[0x7F, 0xFE])];
    check("lvSmartElectricEnergyMeter", "E8", Value::List(&phases), "000A7FFE");
    let refuse = |class: &str, name: &str, value: Value<'_>| {
        assert!(property(class, name).encode(value, &mut [0; 255]).is_err(), "{class} {name} {value}");
    };
    refuse("homeAirConditioner", "B3", Value::whole(51));
    refuse("homeAirConditioner", "B3", Value::whole(i64::MIN));
    refuse("homeAirConditioner", "91", Value::Time(Time { hour: 24, minute: 0, second: None }));
    refuse("homeAirConditioner", "91", Value::Time(Time { hour: 14, minute: 0, second: Some(0) }));
    refuse("generalLighting", "C0", Value::List(&[Value::whole(1)]));
    refuse("lvSmartElectricEnergyMeter", "E0", Value::Overflow);
    refuse("lvSmartElectricEnergyMeter", "E2", Value::List(&[]));
}

/// A meter's energy is its number times 0xD3 and 0xE1.
#[test]
fn texts_are_filled_with_zeros_and_checked() {
    static TEXT: Data = Data::Text { minimum: 4, maximum: 6 };
    let access = Access { get: Rule::Optional, set: Rule::Optional, inf: Rule::Optional };
    let label = PropertySpec::new(0xF0, ["label", "Label"], access, &TEXT);
    let mut edt = [0xAA; 8];
    for (text, expected, json) in [
        ("Kit", &b"Kit\0"[..], "\"Kit\""),
        ("", b"\0\0\0\0", "\"\""),
        ("Küche", "Küche".as_bytes(), "\"Küche\""),
        ("a\"\\", b"a\"\\\0", r#""a\"\\""#),
    ] {
        let length = label.encode(Value::Text(text), &mut edt).expect(text);
        assert_eq!(&edt[..length], expected, "{text}");
        let value = label.decode(expected).expect(text);
        assert_eq!(
            (value, value.to_string(), value.json().to_string()),
            (Value::Text(text), text.to_owned(), json.to_owned())
        );
        assert_eq!(label.parse(text, &mut edt).map(|length| edt[..length].to_vec()).expect(text), expected);
    }
    assert_eq!(label.decode(b"Kit  \0").expect("spaces end it"), Value::Text("Kit"));
    for (bytes, part) in [
        (&b"Kit"[..], "3 bytes instead of 4 to 6"),
        (b"Kitchen", "7 bytes"),
        (b"Ki\nt", "0x4B690A74 is not a text of 4 to 6 bytes"),
        (b"K\xFFit", "is not a text"),
    ] {
        let error = label.decode(bytes).expect_err("it is wrong").to_string();
        assert!(error.contains(part), "{bytes:02X?}: {error}");
    }
    for (text, part) in [("Kitchen", "7 bytes instead of 4 to 6"), ("Ki\nt", "this text is not a text of")] {
        let error = label.encode(Value::Text(text), &mut edt).expect_err("it is wrong").to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let error = label.encode(Value::Text("Kit"), &mut [0; 3]).expect_err("no room").to_string();
    assert!(error.contains("needs 4 bytes, the buffer has 3"), "{error}");
    assert_eq!(TEXT.to_string(), "text of 4 to 6 bytes");
    for (text, unit) in [
        ("°C", Some(Unit::Celsius)),
        ("c", Some(Unit::Celsius)),
        ("KWH", Some(Unit::KilowattHour)),
        ("", None),
        ("x", None),
    ] {
        assert_eq!(Unit::parse(text), unit, "{text}");
    }
}

#[test]
fn coefficients() {
    let read =
        |name, edt: &str| property("lvSmartElectricEnergyMeter", name).decode(&bytes(edt)).expect("valid").number();
    let energy = property("lvSmartElectricEnergyMeter", "E0");
    assert_eq!(energy.number().map(|number| number.coefficients), Some(&[0xD3, 0xE1][..]));
    let counted = read("E0", "0001E240").expect("a number");
    let product = [read("D3", "00000002"), read("E1", "02")].into_iter().flatten();
    let product = product.fold(counted, |product, factor| product.times(factor).expect("small"));
    assert_eq!(product.to_string(), "2469.12 kWh");
    assert!((product.to_f64() - 2469.12).abs() < 1e-9);
}

/// Bytes that are a value of the type, chosen by the generator.
pub(super) fn valid(data: &Data, rng: &mut TestRng) -> Vec<u8> {
    let mut pick = |count: usize| (rng.next_u64() % count.max(1) as u64) as usize;
    match data {
        Data::Number(number) => {
            let span = (number.maximum - number.minimum) as u64 + 1;
            let at_edge = pick(4);
            let raw = match at_edge {
                0 => number.minimum,
                1 => number.maximum,
                _ => number.minimum + (rng.next_u64() % span) as i64,
            };
            raw.to_be_bytes()[8 - number.format.size()..].to_vec()
        }
        Data::Numeric(codes) => vec![codes[pick(codes.len())].code],
        Data::State(states) => {
            let state = &states.all[pick(states.all.len())];
            let code = state.code + pick(usize::from(state.more) + 1) as u64;
            code.to_be_bytes()[8 - usize::from(states.size)..].to_vec()
        }
        Data::Level(level) => {
            let code = level.base + pick(level.maximum.into()) as u16;
            code.to_be_bytes()[2 - usize::from(level.size)..].to_vec()
        }
        Data::Bitmap(bitmap) => (0..bitmap.size).map(|_| pick(256) as u8).collect(),
        Data::Date | Data::DateTime { .. } if pick(8) == 0 => vec![0xFF; data.sizes().0],
        Data::Date => day(&mut pick).to_vec(),
        Data::DateTime { .. } => {
            let time = [pick(24) as u8, pick(60) as u8, pick(60) as u8];
            [&day(&mut pick), &time[..data.sizes().0 - 4]].concat()
        }
        Data::Time(format) => {
            let time = [pick(usize::from(format.maximum_hour) + 1) as u8, pick(60) as u8, pick(60) as u8];
            time[..data.sizes().0].to_vec()
        }
        Data::Text { minimum, .. } => vec![b'a' + pick(26) as u8; (*minimum).max(1).into()],
        Data::Raw { minimum, maximum } => {
            let length = usize::from(*minimum) + pick(usize::from(maximum - minimum) + 1);
            (0..length).map(|_| pick(256) as u8).collect()
        }
        Data::Array(array) => {
            let count = usize::from(array.minimum) + pick(usize::from(array.maximum - array.minimum) + 1);
            (0..count).flat_map(|_| valid(array.items, rng)).collect()
        }
        Data::Object(fields) => fields.iter().flat_map(|field| valid(field.data, rng)).collect(),
        Data::OneOf(arms) => {
            let arm = pick(arms.len());
            valid(&arms[arm], rng)
        }
    }
}

fn day(mut pick: impl FnMut(usize) -> usize) -> [u8; 4] {
    let [high, low] = (pick(10_000) as u16).to_be_bytes();
    [high, low, 1 + pick(12) as u8, 1 + pick(31) as u8]
}

/// Decoding and then encoding, or writing as text and then reading, gives the same bytes.
fn check_round_trip(property: &PropertySpec, edt: &[u8]) {
    let name = property.short_name;
    let value = property.decode(edt).unwrap_or_else(|error| panic!("{edt:02X?}: {error}"));
    let mut buffer = [0; 255];
    let length = property.encode(value, &mut buffer).unwrap_or_else(|error| panic!("{name} {value}: {error}"));
    assert_eq!(&buffer[..length], edt, "{name} {value}");
    for text in [value.to_string(), value.json().to_string()] {
        buffer.fill(0);
        let length = property.parse(&text, &mut buffer).unwrap_or_else(|error| panic!("{name} {text}: {error}"));
        assert_eq!(&buffer[..length], edt, "{name} {text}");
    }
}

#[test]
fn every_valid_value_round_trips() {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    for property in every_property() {
        for _ in 0..40 {
            let edt = valid(property.data, &mut rng);
            let (least, most) = property.data.sizes();
            assert!((least..=most).contains(&edt.len()), "{} {:02X?}", property.short_name, edt);
            check_round_trip(property, &edt);
        }
    }
}

#[test]
fn every_named_state_round_trips() {
    let mut states = 0;
    for property in every_property() {
        let arms = if let Data::OneOf(arms) = property.data { arms } else { std::slice::from_ref(property.data) };
        for arm in arms {
            let Data::State(list) = arm else { continue };
            for state in list.all {
                let size = usize::from(list.size);
                for code in [state.code, state.code + u64::from(state.more)] {
                    check_round_trip(property, &code.to_be_bytes()[8 - size..]);
                    states += 1;
                }
            }
        }
    }
    assert!(states > 1000, "{states}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes for any property: no panic, and accepted bytes round trip.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..=255)) {
        for property in every_property() {
            let (least, most) = property.data.sizes();
            for length in [0, least, most, bytes.len()] {
                let Some(edt) = bytes.get(..length) else { continue };
                if property.decode(edt).is_ok() {
                    check_round_trip(property, edt);
                }
            }
        }
    }

    /// Any text for any property: no panic, and an accepted text gives a value of the property.
    #[test]
    fn any_text(text in r#"(0x)?[\[\{"]?([0-9a-zA-Z:., °%-]|[\]\[}{"]|true|level )*[\]\}]?"#, room in 0usize..=255) {
        let mut buffer = [0; 255];
        for property in every_property() {
            if let Ok(length) = property.parse(&text, &mut buffer[..room]) {
                prop_assert!(property.decode(&buffer[..length]).is_ok(), "{} {}", property.short_name, text);
            }
        }
    }
}
