//! Properties of makers and classes of a user's file, seen by clients of the Web API.

use serde_json::{Value, json};

use super::client::{Web, one};
use super::{PORT, wait};
use crate::cli::data::{file, serve};

/// The property of a description.
fn described(web: &Web, device: &str, property: &str) -> Value {
    web.get(&format!("/elapi/v1/devices/{device}"))["properties"][property].clone()
}

#[test]
fn properties_of_a_users_file_are_resources() {
    let (file, port) = (file("web-data"), PORT + 33);
    let mut device = serve(&file, port, "127.78.33.1");
    let web = Web::start("127.79.33.1", port, 2, &["--data", &file]);
    let devices = wait("the standard version of both devices", || {
        let list = web.get("/elapi/v1/devices")["devices"].clone();
        let is_known = |device: &Value| device["protocol"]["version"].is_string();
        list.as_array().unwrap().iter().all(is_known).then_some(list)
    });
    let id = |kind: &str| {
        let device = devices.as_array().unwrap().iter().find(|device| device["deviceType"] == kind).unwrap();
        let maker = json!({ "code": "0x0000FE", "descriptions": { "ja": "Example Works", "en": "Example Works" } });
        assert_eq!(device["manufacturer"], maker);
        device["id"].as_str().unwrap().to_owned()
    };
    let (conditioner, feeder) = (id("homeAirConditioner"), id("petFeeder"));
    assert_eq!(web.get(&format!("/elapi/v1/devices/{feeder}"))["descriptions"]["en"], "Feeder for pets");

    let power = json!({ "type": "number", "unit": "W", "minimum": 0.0, "maximum": 150.5, "multipleOf": 0.1 });
    assert_eq!(described(&web, &conditioner, "purifierPower")["schema"], power);
    // The product code decides, and the server reads it after it has found the device.
    wait("the properties of the product", || described(&web, &conditioner, "nightMode").is_object().then_some(()));
    assert_eq!(described(&web, &conditioner, "nightMode")["schema"]["enum"], json!(["on", "off", "auto"]));
    assert_eq!(described(&web, &conditioner, "ofAnotherProduct"), Value::Null);
    assert_eq!(described(&web, &feeder, "label")["schema"], json!({ "type": "string", "maxLength": 8 }));
    assert_eq!(described(&web, &feeder, "state")["writable"], false);

    let at = |device: &str, name: &str| format!("/elapi/v1/devices/{device}/properties/{name}");
    for (device, name, value) in [
        (&conditioner, "purifierPower", json!(12.5)),
        (&conditioner, "nightMode", json!("auto")),
        (&conditioner, "targetTemperature", json!(21)),
        (&feeder, "label", json!("Kitty \"\\")),
        (&feeder, "asleep", json!("off")),
    ] {
        let body = one(name, value);
        assert_eq!(web.put(&at(device, name), &body), body);
        assert_eq!(web.get(&at(device, name)), body);
    }
    assert_eq!(web.get(&at(&feeder, "state")), json!({ "state": { "lidOpen": false, "empty": false } }));
    let all = web.get(&format!("/elapi/v1/devices/{conditioner}/properties"));
    assert_eq!((&all["purifierPower"], &all["nightMode"]), (&json!(12.5), &json!("auto")));
    for (device, name, value, status, kind) in [
        (&conditioner, "purifierPower", json!(151), 400, "rangeError"),
        (&conditioner, "nightMode", json!("sometimes"), 400, "rangeError"),
        (&conditioner, "ofAnotherProduct", json!("0x00"), 404, "referenceError"),
        (&feeder, "label", json!("nine bytes"), 400, "rangeError"),
        (&feeder, "asleep", json!(true), 400, "typeError"),
        (&feeder, "state", json!({ "lidOpen": true }), 405, "referenceError"),
    ] {
        let refused = web.expect("PUT", &at(device, name), &one(name, value), status);
        assert_eq!(refused["type"], kind, "{name}");
    }

    let mut events = web.events("");
    device.change("homeAirConditioner purifierPower=99.5");
    events.wait("property", |news| {
        news["id"] == conditioner && news["name"] == "purifierPower" && news["value"] == json!(99.5)
    });

    let schemas = web.get("/openapi.json")["components"]["schemas"].clone();
    let of_maker = &schemas["homeAirConditioner"]["properties"];
    assert_eq!(of_maker["purifierPower"]["description"], "Purifier power, of maker 0000FE");
    assert_eq!((&of_maker["purifierPower"]["maximum"], &of_maker["nightMode"]["epc"]), (&json!(150.5), &json!("0xF1")));
    assert_eq!(schemas["petFeeder"]["properties"]["label"]["maxLength"], 8);
}
