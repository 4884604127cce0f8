//! Properties of makers and classes of a user's file.

use super::*;
use crate::cli::data::{file, serve};

#[test]
fn properties_of_a_users_file_are_entities() {
    if !is_there() {
        return;
    }
    const NET: u8 = 31;
    let (broker, file) = (Mosquitto::start("bridge-data"), file("bridge-data"));
    let _device = serve(&file, PORT + u16::from(NET), &format!("127.74.{NET}.1"));
    let _bridge = bridge_with(NET, &broker, "1", &["--data", &file]);
    let listener = Listener::new(&broker);
    let devices = listener.devices(2);
    let availability = devices.iter().flat_map(|device| device["availability"].as_array().unwrap());
    availability.for_each(|entry| {
        listener.wait_for(entry["topic"].as_str().unwrap(), "online");
    });
    for device in &devices {
        assert_eq!(checker::problems(device, &listener.values()), Vec::<String>::new());
    }
    let component = |id: &str| {
        let found = devices.iter().find_map(|device| device["components"].get(id));
        found.unwrap_or_else(|| panic!("no {id}: {devices:#?}")).clone()
    };
    let has = |id: &str, expected: Value| {
        let found = component(id);
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&found[key], value, "{key} of {id}: {found}");
        }
        assert_eq!(found["enabled_by_default"], Value::Null, "{id}");
    };
    has(
        "purifierPower",
        json!({ "platform": "number", "name": "Purifier power", "unit_of_measurement": "W", "max": 150.5, "step": 0.1 }),
    );
    has("nightMode", json!({ "platform": "select", "options": ["on", "off", "auto"] }));
    has("label", json!({ "platform": "text", "max": 8 }));
    has("state_lidOpen", json!({ "platform": "binary_sensor", "payload_on": "on" }));
    has("asleep", json!({ "platform": "switch" }));
    assert!(devices.iter().all(|device| device["components"].get("ofAnotherProduct").is_none()));
    assert!(devices.iter().all(|device| device["device"]["manufacturer"] == "Example Works"));
    assert!(devices.iter().any(|device| device["device"]["model"] == "echonet"));

    for (id, payload) in [("purifierPower", "99.5"), ("nightMode", "off"), ("label", "0x,[Kit]"), ("asleep", "off")] {
        let topic = component(id)["state_topic"].as_str().unwrap().to_owned();
        listener.command(&topic, payload);
        listener.wait_for(&topic, payload);
    }
}
