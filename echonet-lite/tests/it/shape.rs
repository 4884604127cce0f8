//! The shapes that serde gives: a written value can be read again, and an error names its cause.

use std::fmt::Debug;

use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, LightLevel, OnTimerTime, OperationStatus, Rgb};
use echonet_lite::class::home_air_conditioner::{AirFlowLevel, TargetTemperature};
use echonet_lite::class::temperature_sensor;
use echonet_lite::class::{Time, Value};
use echonet_lite::controller::NodeAddr;
use echonet_lite::wire::{ClassCode, Eoj, Esv, Frame, FrameWriter, Header, Message, MessageBuf, PropertySet};
use serde_json::{from_str, json, to_value};

/// Checks that a value is written so, and read again.
fn check<T>(value: &T, expected: &serde_json::Value)
where
    T: serde_core::Serialize + for<'de> serde_core::Deserialize<'de> + PartialEq + Debug,
{
    assert_eq!(to_value(value).unwrap(), *expected, "{value:?}");
    assert_eq!(from_str::<T>(&expected.to_string()).unwrap(), *value);
    assert_eq!(serde_json::from_value::<T>(expected.clone()).unwrap(), *value);
}

/// Checks that a text is refused for a reason that begins so.
fn refuse<T: for<'de> serde_core::Deserialize<'de> + Debug>(text: &str, reason: &str) {
    let error = from_str::<T>(text).unwrap_err().to_string();
    assert!(error.starts_with(reason), "{text}: {error}");
}

#[test]
fn codes() {
    check(&ClassCode::new(0x02, 0x90), &json!("0x0290"));
    check(&Eoj::new(0x02, 0x90, 1), &json!("0x029001"));
    for esv in Esv::ALL {
        check(&esv, &json!(esv.name()));
    }
    check(&PropertySet::of(&[0x80, 0xB0, 0xFF]), &json!(["0x80", "0xB0", "0xFF"]));
    for text in ["192.168.1.5", "fe80::5%2"] {
        check::<NodeAddr>(&text.parse().unwrap(), &json!(text));
    }
    refuse::<Eoj>("\"0290\"", "invalid value: string \"0290\", expected an object, such as \"0x029001\"");
    refuse::<Esv>("\"Got\"", "invalid value: string \"Got\", expected the name of a service");
    refuse::<PropertySet>(
        "[\"0x7F\"]",
        "invalid value: integer `127`, expected a list of codes of properties, 0x80 to 0xFF",
    );
}

#[test]
fn values() {
    check(&OperationStatus::On, &json!("On"));
    check(&LightLevel::of::<50>(), &json!(50));
    check(&temperature_sensor::Value::of::<225>(), &json!(22.5));
    check(&temperature_sensor::Value::of::<-1>(), &json!(-0.1));
    check(&TargetTemperature::UNDEFINED, &json!("undefined"));
    check(&AirFlowLevel::level(3).unwrap(), &json!("level 3"));
    check(
        &Rgb::new(Value::List(&[255.into(), 128.into(), 0.into()])).unwrap(),
        &json!("{red: 255, green: 128, blue: 0}"),
    );
    check(&OnTimerTime::new(Value::Time(Time { hour: 7, minute: 0, second: None })).unwrap(), &json!("07:00"));
    assert_eq!(from_str::<temperature_sensor::Value>("\"22.5 °C\"").unwrap(), temperature_sensor::Value::of::<225>());
    refuse::<LightLevel>("101", "invalid value: integer `101`, expected 0..=100 %");
    refuse::<temperature_sensor::Value>("22.55", "invalid value: floating point `22.55`, expected ");
    refuse::<OperationStatus>("\"Broken\"", "unknown variant `Broken`, expected `On` or `Off`");
}

#[test]
fn values_without_types() {
    let shown = |epc, edt: &[u8]| to_value(GENERAL_LIGHTING.property(epc).unwrap().decode(edt).unwrap()).unwrap();
    assert_eq!(shown(0x80, &[0x30]), json!(true));
    assert_eq!(shown(0xB0, &[50]), json!(50));
    assert_eq!(shown(0xC0, &[1, 2, 3]), json!({ "red": 1, "green": 2, "blue": 3 }));
}

#[test]
fn tables() {
    let class = to_value(&GENERAL_LIGHTING).unwrap();
    assert_eq!((&class["code"], &class["class"]), (&json!("0x0290"), &json!("generalLighting")));
    let properties = class["properties"].as_array().unwrap();
    let level = properties.iter().find(|property| property["epc"] == "0xB0").unwrap();
    assert_eq!(
        (&level["name"], &level["unit"], &level["get"]),
        (&json!("lightLevel"), &json!("%"), &json!("optional"))
    );
}

/// A message that was written.
fn message<'b>(buffer: &'b mut [u8], esv: Esv, properties: &[(u8, &[u8])], more: &[u8]) -> Message<'b> {
    let header = Header { tid: 0x0102, seoj: Eoj::CONTROLLER, deoj: Eoj::new(0x02, 0x90, 1), esv };
    let mut writer = FrameWriter::new(buffer, header).unwrap();
    properties.iter().for_each(|(epc, edt)| writer.property(*epc, edt).unwrap());
    if esv.has_two_lists() {
        writer.second_list().unwrap();
        more.iter().for_each(|epc| writer.property(*epc, &[]).unwrap());
    }
    match Frame::parse(writer.finish().unwrap()) {
        Ok(Frame::Format1(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages() {
    let mut buffer = [0; 300];
    let set = message(&mut buffer, Esv::SetC, &[(0x80, &[0x30]), (0xB0, &[50])], &[]);
    let expected = json!({
        "tid": 258, "seoj": "0x05FF01", "deoj": "0x029001", "esv": "SetC",
        "properties": [{ "epc": "0x80", "edt": "30" }, { "epc": "0xB0", "edt": "32" }],
    });
    assert_eq!(to_value(set).unwrap(), expected);
    let read: MessageBuf<64> = from_str(&expected.to_string()).unwrap();
    assert_eq!(read.message(), set);
    check(&read, &expected);

    let mut buffer = [0; 300];
    let both = message(&mut buffer, Esv::SetGet, &[(0x80, &[0x30])], &[0x80, 0x9F]);
    let expected = to_value(both).unwrap();
    assert_eq!(expected["getProperties"], json!([{ "epc": "0x80", "edt": "" }, { "epc": "0x9F", "edt": "" }]));
    assert_eq!(from_str::<MessageBuf<24>>(&expected.to_string()).unwrap().as_bytes(), both.as_bytes());
}

#[test]
fn messages_that_are_none() {
    type Short = MessageBuf<20>;
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut text = json!({
            "tid": 1, "seoj": "0x05FF01", "deoj": "0x029001", "esv": "Get", "properties": [{ "epc": "0x80", "edt": "" }],
        });
        change(&mut text);
        text.to_string()
    };
    assert!(from_str::<Short>(&with(&|_| ())).is_ok());
    refuse::<Short>(&with(&|text| text["esv"] = json!("Got")), "invalid value: string \"Got\"");
    refuse::<Short>(&with(&|text| text["properties"] = json!([])), "byte 11: OPC is 0");
    refuse::<Short>(&with(&|text| text["esv"] = json!("SetGet")), "missing field `getProperties`");
    refuse::<Short>(&with(&|text| drop(text.as_object_mut().unwrap().remove("deoj"))), "missing field `deoj`");
    refuse::<Short>(&with(&|text| text["opc"] = json!(1)), "unknown field `opc`");
    refuse::<Short>(
        &with(&|text| text["properties"][0]["edt"] = json!("1")),
        "invalid value: string \"1\", expected at most",
    );
    refuse::<Short>(&with(&|text| text["properties"][0]["edt"] = json!("+1")), "invalid value: string \"+1\"");
    let long = json!([{ "epc": "0x80", "edt": "010203040506070809" }]);
    refuse::<Short>(&with(&|text| text["properties"] = long.clone()), "invalid value: string \"010203040506070809\"");
    refuse::<MessageBuf<8>>(&with(&|_| ()), "the buffer has no room for a header");
}
