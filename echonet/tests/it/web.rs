//! `echonet web` between emulated devices and clients of HTTP.

pub mod client;
mod data;
mod identity;

use std::process::Command;
use std::time::{Duration, Instant};

use client::{Web, id, one, path};
use echonet_lite::class;
use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use serde_json::{Value, json};
use test_peers::{Browser, Kit, kit};

use crate::emulated::Home;

const PORT: u16 = 13_690;

/// The classes of the devices: truths, names, numbers with units and coefficients, lists, fields, actions are among them.
const CLASSES: [&str; 8] = ["0290", "0130", "0011", "0288", "026F", "0001", "0260", "027D"];

const OPENAPI: Kit = kit! {
    name: "echonet-openapi",
    sources: &["tests/web"],
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
};

/// A home of some classes, and the server of it.
fn serve(net: u8, classes: &[&str], more: &[&str]) -> (Home, Web) {
    let port = PORT + u16::from(net);
    let classes: Vec<_> = classes.iter().map(|code| class::by_name(code).unwrap()).collect();
    let home = Home::new([127, 78, net], port, &classes, 1);
    let web = Web::start(&format!("127.79.{net}.1"), port, classes.len(), more);
    (home, web)
}

/// Waits until something is so.
fn wait<R>(what: &str, look: impl Fn() -> Option<R>) -> R {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_route_of_devices() {
    let (home, web) = serve(0, &CLASSES, &[]);
    assert_eq!(web.get("/elapi")["versions"][0]["id"], "v1");
    let services = web.get("/elapi/v1");
    let totals: Vec<_> = services["v1"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (of["name"].as_str().unwrap(), of["total"].as_u64().unwrap()))
        .collect();
    assert_eq!(totals, [("devices", 8), ("groups", 0), ("bulks", 0), ("histories", 0)]);

    let list = wait("the standard version of every device", || {
        let list = web.get("/elapi/v1/devices");
        let is_known = |device: &Value| device["protocol"]["version"] == "Rel.R rev.4";
        list["devices"].as_array().unwrap().iter().all(is_known).then_some(list)
    });
    assert_eq!(
        (list["hasMore"].clone(), list["offset"].clone(), list["limit"].clone()),
        (json!(false), json!(0), json!(100))
    );
    let light = &list["devices"][0];
    assert_eq!(light["id"], id(1, "0290"));
    assert_eq!(light["deviceType"], "generalLighting");
    assert_eq!(light["protocol"]["type"], "ECHONET_Lite v1.14");
    assert_eq!(light["manufacturer"]["code"], "0x000077");
    let part = web.get("/elapi/v1/devices?offset=3&limit=2");
    assert_eq!(part["devices"], json!([list["devices"][3], list["devices"][4]]));
    assert_eq!(part["hasMore"], true);

    let mut writes = 0;
    for (at, class) in CLASSES.iter().enumerate() {
        writes += check_device_properties(&web, &id(at + 1, class));
    }
    assert!(writes > 100, "{writes} values were written back");
    web_writes_reach_the_devices(&home, &web);
}

/// The description, all properties and each of them agree, and writable values are accepted again. Returns the number
/// of writes.
fn check_device_properties(web: &Web, device: &str) -> usize {
    let description = web.get(&format!("/elapi/v1/devices/{device}"));
    let described = description["properties"].as_object().unwrap();
    let all = web.get(&path(device, "properties"));
    let all = all.as_object().unwrap();
    assert!(all.keys().eq(described.keys()), "{device}: {:?} {:?}", all.keys(), described.keys());
    let mut writes = 0;
    for (name, value) in all {
        let place = path(device, &format!("properties/{name}"));
        let of = &described[name];
        assert!(
            of["descriptions"]["ja"].is_string() && of["schema"].is_object() && of["epc"].is_string(),
            "{name}: {of}"
        );
        let read = web.get(&place);
        // Clocks go on.
        if !["currentTimeSetting", "currentDateAndTime"].contains(&name.as_str()) {
            assert_eq!(read, one(name, value.clone()), "{device}");
        }
        let answer = web.ask("PUT", &place, &read);
        match (of["writable"].as_bool().unwrap(), answer.status) {
            (true, 200) => {
                assert_eq!(answer.json(), read, "{device}");
                writes += 1;
            }
            // Such as `undefined`, or a number that overflows: it is told, and cannot be set.
            (true, 400) => assert!(answer.json()["type"].is_string(), "{device} {name}"),
            (false, 405) => assert_eq!(answer.field("allow"), Some("GET, HEAD"), "{device} {name}"),
            (_, status) => panic!("{device} {name}: {status} {}", answer.text),
        }
    }
    writes
}

fn web_writes_reach_the_devices(home: &Home, web: &Web) {
    let (light, conditioner, meter, lock, leak) =
        (id(1, "0290"), id(2, "0130"), id(4, "0288"), id(5, "026F"), id(6, "0001"));
    for (device, at, name, value, epc, bytes) in [
        (&light, 0, "operationStatus", json!(false), 0x80, &[0x31][..]),
        (&light, 0, "lightLevel", json!(42), 0xB0, &[42]),
        (&light, 0, "brightness", json!(43), 0xB0, &[43]),
        (&light, 0, "rgb", json!({ "red": 1, "green": 2, "blue": 3 }), 0xC0, &[1, 2, 3]),
        (&conditioner, 1, "operationMode", json!("cooling"), 0xB0, &[0x42]),
        (&conditioner, 1, "airFlowLevel", json!("auto"), 0xA0, &[0x41]),
        (&conditioner, 1, "airFlowLevel", json!(8), 0xA0, &[0x38]),
        (&lock, 4, "mainElectricLock", json!(true), 0xE0, &[0x41]),
    ] {
        let place = path(device, &format!("properties/{name}"));
        assert_eq!(web.put(&place, &one(name, value.clone())), one(name, value.clone()));
        assert_eq!(home.value(at, epc), bytes, "{name}");
        assert_eq!(web.get(&place), one(name, value));
    }
    home.change(2, 0xE0, &(-55i16).to_be_bytes());
    assert_eq!(web.get(&path(&id(3, "0011"), "properties/value")), one("value", -5.5));

    // The energy is told as what it is: multiplied with both coefficients. A history is of the day that was asked for.
    for (epc, bytes) in [(0xD3, vec![0, 0, 0, 2]), (0xE1, vec![2]), (0xE0, vec![0, 0, 0x30, 0x39])] {
        home.change(3, epc, &bytes);
    }
    let energy = "normalDirectionCumulativeElectricEnergy";
    assert_eq!(web.get(&path(&meter, &format!("properties/{energy}"))), one(energy, 246.9));
    let log = path(&meter, "properties/normalDirectionCumulativeElectricEnergyLog1");
    assert_eq!(web.get(&format!("{log}?day=3")).as_object().unwrap().len(), 1);
    assert_eq!(home.value(3, 0xE5), [3]);
    for (query, kind) in [("day=100", "rangeError"), ("day=x", "rangeError"), ("night=3", "typeError")] {
        assert_eq!(web.expect("GET", &format!("{log}?{query}"), &Value::Null, 400)["type"], kind, "{query}");
    }

    let description = web.get(&format!("/elapi/v1/devices/{leak}"));
    assert!(description["actions"]["reset"].is_object());
    assert_eq!(web.expect("POST", &path(&leak, "actions/reset"), &Value::Null, 200), json!({}));
    assert_eq!(web.expect("POST", &path(&leak, "actions/reset"), &one("reset", "reset"), 200), json!({}));
}

#[test]
fn errors_have_types_and_say_why() {
    let port = PORT + 1;
    let of = |class: &str| class::by_name(class).unwrap();
    let mut light = NodePlan::new(1, [ObjectPlan::new(of("0290"), 1)]);
    let fault = |kind, epc| Fault { kind, eoj: None, epc, edt: Vec::new(), delay: Duration::ZERO };
    light.faults = vec![fault(Kind::Unwritable, 0xB6)];
    let plans = [light, NodePlan::new(2, [ObjectPlan::new(of("0001"), 1)])];
    let home = Home::of([127, 78, 1], port, plans);
    let web = Web::start("127.79.1.1", port, 2, &[]);
    let (light, leak) = (id(1, "0290"), id(2, "0001"));
    let check = |method: &str, place: &str, body: Value, status: u16, kind: &str, part: &str| {
        let problem = web.expect(method, place, &body, status);
        assert_eq!(problem["type"], kind, "{method} {place} {body}: {problem}");
        assert!(problem["message"].as_str().unwrap().contains(part), "{method} {place} {body}: {problem}");
    };
    let of = |rest: &str| path(&light, rest);
    let nothing = || Value::Null;
    check("GET", "/elapi/v2", nothing(), 404, "referenceError", "nothing at /elapi/v2");
    check("GET", "/nothing", nothing(), 404, "referenceError", "nothing at /nothing");
    check("GET", "/elapi/v1/devices/none", nothing(), 404, "referenceError", "no device none");
    check("GET", &of("properties/none"), nothing(), 404, "referenceError", "no property or action none");
    check("GET", &path(&leak, "properties/reset"), nothing(), 405, "referenceError", "is an action");
    check("POST", &path(&leak, "actions/detection"), nothing(), 405, "referenceError", "is a property");
    check("POST", &path(&leak, "actions/reset"), one("reset", 1), 400, "typeError", "reset");
    check("DELETE", "/elapi/v1/devices", nothing(), 405, "referenceError", "no method DELETE");
    check("PUT", &of("properties/id"), one("id", "0x00"), 405, "referenceError", "cannot be written");
    check("PUT", &of("properties/lightLevel"), one("lightLevel", 101), 400, "rangeError", "101 is not in 0..=100 %");
    check("PUT", &of("properties/lightLevel"), one("lightLevel", "much"), 400, "typeError", "0..=100 %");
    check("PUT", &of("properties/lightLevel"), one("level", 1), 400, "typeError", "{\"lightLevel\": …} is wanted");
    check("PUT", &of("properties/lightLevel"), json!([1]), 400, "typeError", "is wanted");
    check("PUT", &of("properties/operationMode"), one("operationMode", "dazzling"), 400, "rangeError", "dazzling");
    check(
        "PUT",
        &of("properties/operationMode"),
        one("operationMode", "night"),
        500,
        "deviceError",
        "refuses 0xB6 = 0x43",
    );
    check("GET", "/elapi/v1/devices?limit=0", nothing(), 400, "rangeError", "1 to 1000");
    check("GET", "/elapi/v1/devices?limit=many", nothing(), 400, "typeError", "many");
    check("GET", "/elapi/v1/devices?page=1", nothing(), 400, "typeError", "there are offset, limit");
    let long = "x".repeat(70_000);
    check("PUT", &of("properties/lightLevel"), one("lightLevel", long), 413, "typeError", "65536");
    let broken =
        web.send("PUT", &of("properties/lightLevel"), &[("Content-Type", "application/json")], "{\"lightLevel\": ");
    assert_eq!((broken.status, &broken.json()["type"]), (400, &json!("typeError")), "{broken:?}");
    let plain = web.send("PUT", &of("properties/lightLevel"), &[("Content-Type", "text/plain")], "{\"lightLevel\": 1}");
    assert_eq!(plain.status, 415, "{plain:?}");
    assert_eq!(home.value(0, 0xB0).len(), 1);

    // A node that cannot be reached is waited for, and the wait has an end.
    home.nodes[0].1.with_node(|device| device.set_faults(vec![fault(Kind::Silent, 0)]));
    check("GET", &of("properties/lightLevel"), nothing(), 500, "timeoutError", "the node answers nothing");
    assert_eq!(web.get("/elapi/v1/devices")["devices"].as_array().unwrap().len(), 2);
}

#[test]
fn groups_and_bulks() {
    let (home, web) = serve(2, &["0290", "0290", "0130", "0011"], &[]);
    let ids = [id(1, "0290"), id(2, "0290"), id(3, "0130"), id(4, "0011")];
    let evening = json!({ "en": "evening", "ja": "夜" });
    let group = web.expect("POST", "/elapi/v1/groups", &json!({ "descriptions": evening, "devices": ids[..3] }), 201);
    let place = format!("/elapi/v1/groups/{}", group["id"].as_str().unwrap());
    assert_eq!((&group["descriptions"], &group["devices"]), (&evening, &json!(ids[..3])));
    assert!(group["properties"]["operationStatus"]["writable"].as_bool().unwrap());
    // Both have it, and of each it is another thing.
    assert_eq!(
        (&group["properties"]["operationMode"], &group["properties"]["lightLevel"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(web.get(&place), group);
    let off = web.put(&format!("{place}/properties/operationStatus"), &one("operationStatus", false));
    let results = off["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for (result, id) in results.iter().zip(&ids) {
        assert_eq!(*result, json!({ "deviceId": id, "status": 200, "body": { "operationStatus": false } }));
    }
    assert_eq!((0..3).map(|at| home.value(at, 0x80)).collect::<Vec<_>>(), vec![vec![0x31]; 3]);
    let read = web.get(&format!("{place}/properties/lightLevel"));
    let statuses: Vec<_> =
        read["results"].as_array().unwrap().iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 200, 404]);
    assert_eq!(web.get(&format!("{place}/properties"))["results"][2]["body"]["operationStatus"], false);
    let done = web.expect("POST", &format!("{place}/actions/beepBuzzer"), &json!({}), 200);
    assert_eq!(done["results"].as_array().unwrap().len(), 3);
    let lights = web.put(&place, &json!({ "devices": ids[..2] }));
    assert!(lights["properties"]["lightLevel"].is_object(), "{lights}");
    for (body, kind) in [
        (json!({ "devices": [] }), "rangeError"),
        (json!({ "devices": [ids[0], ids[0]] }), "rangeError"),
        (json!({ "devices": "all" }), "typeError"),
        (json!({ "devices": [1] }), "typeError"),
        (json!({ "devices": ids[..1], "name": "x" }), "typeError"),
        (json!({ "devices": ids[..1], "descriptions": "evening" }), "typeError"),
    ] {
        assert_eq!(web.expect("POST", "/elapi/v1/groups", &body, 400)["type"], kind, "{body}");
    }
    web.expect("POST", "/elapi/v1/groups", &json!({ "devices": ["none"] }), 404);
    assert_eq!(web.get("/elapi/v1/groups")["groups"].as_array().unwrap().len(), 1);
    web.expect("DELETE", &place, &Value::Null, 204);
    web.expect("GET", &place, &Value::Null, 404);

    for mode in ["sequential", "parallel"] {
        bulk(&home, &web, &ids, mode);
    }
    let get = |device: &str| json!({ "method": "GET", "path": format!("/devices/{device}/properties") });
    for (requests, status) in [
        (json!([get("none")]), 404),
        (json!([]), 400),
        (json!([{ "method": "DELETE", "path": format!("/devices/{}", ids[0]) }]), 400),
        (json!([{ "method": "GET", "path": "/bulks/bulk-1" }]), 400),
        (json!(vec![get(&ids[0]); 101]), 400),
    ] {
        web.expect("POST", "/elapi/v1/bulks", &json!({ "requests": requests }), status);
    }
    web.expect("POST", "/elapi/v1/bulks", &json!({ "requests": [get(&ids[0])], "mode": "fast" }), 400);
}

/// Three devices are told by one request, and a fourth refuses.
fn bulk(home: &Home, web: &Web, ids: &[String; 4], mode: &str) {
    let level = if mode == "parallel" { 11 } else { 10 };
    let put = |device: &str, name: &str, value: Value| json!({ "method": "PUT", "path": format!("/devices/{device}/properties/{name}"), "body": one(name, value) });
    let requests = json!([
        put(&ids[0], "lightLevel", json!(level)),
        put(&ids[1], "lightLevel", json!(level + 10)),
        put(&ids[2], "targetTemperature", json!(level + 10)),
        put(&ids[3], "value", json!(1)),
        { "method": "GET", "path": format!("/devices/{}/properties/lightLevel", ids[0]) },
    ]);
    let made = web.expect("POST", "/elapi/v1/bulks", &json!({ "mode": mode, "requests": requests }), 201);
    let place = format!("/elapi/v1/bulks/{}", made["id"].as_str().unwrap());
    assert_eq!(web.get(&place), made);
    assert!(made["actions"]["execute"].is_object());
    let done = web.expect("POST", &format!("{place}/actions/execute"), &json!({}), 200);
    let results = done["results"].as_array().unwrap();
    let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 200, 200, 405, 200], "{done}");
    assert_eq!(home.value(0, 0xB0), [level]);
    assert_eq!(home.value(1, 0xB0), [level + 10]);
    assert_eq!(home.value(2, 0xB3), [level + 10]);
    if mode == "sequential" {
        assert_eq!(results[4]["body"], one("lightLevel", level), "a request waits for the one before it");
    }
    let other = web.put(&place, &json!({ "requests": [put(&ids[0], "lightLevel", json!(7))] }));
    assert_eq!((&other["mode"], other["requests"].as_array().unwrap().len()), (&json!("sequential"), 1));
    let count = web.get("/elapi/v1/bulks")["bulks"].as_array().unwrap().len();
    web.expect("DELETE", &place, &Value::Null, 204);
    assert_eq!(web.get("/elapi/v1/bulks")["bulks"].as_array().unwrap().len(), count - 1);
}

#[test]
fn histories_keep_changes_and_samples() {
    let (home, web) = serve(3, &["0011", "0290"], &[]);
    let (sensor, light) = (id(1, "0011"), id(2, "0290"));
    home.change(0, 0xE0, &200i16.to_be_bytes());
    let wanted = json!({ "descriptions": { "en": "warmth" }, "deviceId": sensor, "propertyName": "value", "limit": 3 });
    let made = web.expect("POST", "/elapi/v1/histories", &wanted, 201);
    let place = format!("/elapi/v1/histories/{}", made["id"].as_str().unwrap());
    assert_eq!((&made["interval"], &made["limit"], &made["total"]), (&Value::Null, &json!(3), &json!(1)));
    for tenths in [201i16, 202, 203] {
        home.change(0, 0xE0, &tenths.to_be_bytes());
        let is_last = |history: &Value| {
            history["history"]
                .as_array()
                .unwrap()
                .last()
                .is_some_and(|entry| entry["value"] == f64::from(tenths) / 10.0)
        };
        wait("the change", || Some(web.get(&format!("{place}/properties/history"))).filter(is_last));
    }
    let kept = web.get(&format!("{place}/properties/history"));
    let values: Vec<_> =
        kept["history"].as_array().unwrap().iter().map(|entry| entry["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [20.1, 20.2, 20.3], "the oldest has gone");
    assert!(kept["history"][0]["timestamp"].as_str().unwrap().ends_with('Z'));
    let part = web.get(&format!("{place}/properties/history?offset=1&limit=1"));
    assert_eq!((&part["history"][0]["value"], &part["hasMore"]), (&json!(20.2), &json!(true)));

    let sampled = json!({ "deviceId": light, "propertyName": "lightLevel", "interval": 1 });
    let sampled = web.expect("POST", "/elapi/v1/histories", &sampled, 201);
    let samples = format!("/elapi/v1/histories/{}/properties/history", sampled["id"].as_str().unwrap());
    let two = |history: &Value| history["history"].as_array().unwrap().len() >= 2;
    let taken = wait("two samples", || Some(web.get(&samples)).filter(two));
    assert_eq!(taken["history"][1]["value"], home.value(1, 0xB0)[0]);
    assert_eq!(web.get("/elapi/v1/histories")["histories"].as_array().unwrap().len(), 2);
    for (change, kind) in [
        (json!({ "interval": 0 }), "rangeError"),
        (json!({ "interval": "often" }), "typeError"),
        (json!({ "limit": 10_001 }), "rangeError"),
        (json!({ "deviceId": 1 }), "typeError"),
        (json!({ "every": 1 }), "typeError"),
    ] {
        let mut body = wanted.clone();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert_eq!(web.expect("POST", "/elapi/v1/histories", &body, 400)["type"], kind, "{body}");
    }
    web.expect("DELETE", &place, &Value::Null, 204);
    web.expect("GET", &format!("{place}/properties/history"), &Value::Null, 404);
    // All together have an end.
    let long = json!({ "deviceId": sensor, "propertyName": "value", "limit": 10_000 });
    let statuses: Vec<_> = (0..10).map(|_| web.ask("POST", "/elapi/v1/histories", &long).status).collect();
    assert_eq!(statuses, [201, 201, 201, 201, 201, 201, 201, 201, 201, 400]);
}

#[test]
fn events_tell_what_is_and_what_changes() {
    let (mut home, web) = serve(4, &["0290", "0011"], &["--poll", "0.5"]);
    let (light, sensor) = (id(1, "0290"), id(2, "0011"));
    let mut events = web.events("");
    assert_eq!(events.status, 200);
    let first = events.wait("device", |device| device["id"] == light);
    assert_eq!((&first["deviceType"], &first["online"]), (&json!("generalLighting"), &json!(true)));
    assert_eq!(first["properties"]["lightLevel"]["writable"], true);
    events.wait("device", |device| device["id"] == sensor);
    // An announced change comes at once, another one with the next request.
    let begun = Instant::now();
    home.change(1, 0xE0, &300i16.to_be_bytes());
    events.wait("property", |news| news["id"] == sensor && news["name"] == "value" && news["value"] == 30.0);
    println!("a change is told within {:?}", begun.elapsed());
    home.nodes[0].1.with_node(|device| device.objects_mut()[0].put(0xC0, &[9, 8, 7]));
    events.wait("property", |news| news["name"] == "rgb" && news["value"]["red"] == 9);
    web.put(&path(&light, "properties/lightLevel"), &one("lightLevel", 77));
    events.wait("property", |news| news["id"] == light && news["name"] == "lightLevel" && news["value"] == 77);
    // A device goes.
    home.nodes.pop();
    let lost = events.wait("status", |news| news["id"] == sensor);
    assert_eq!(lost["online"], false);

    // The number of readers is bounded, and a reader that goes leaves its place.
    let many: Vec<_> = (1..32).map(|_| web.events("")).collect();
    assert!(many.iter().all(|events| events.status == 200));
    assert_eq!(web.events("").status, 503);
    drop(many);
    wait("a place", || (web.events("").status == 200).then_some(()));
}

#[test]
fn access_requires_the_token_and_a_known_host() {
    let token = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-token");
    std::fs::write(&token, "a-token-of-many-letters\n").unwrap();
    let file = token.to_str().unwrap();
    let (home, web) = serve(5, &["0290"], &["--token-file", file, "--host", "home.example"]);
    let devices = "/elapi/v1/devices";
    let bearer = ("Authorization", "Bearer a-token-of-many-letters");
    assert_eq!(web.ask("GET", "/", &Value::Null).status, 200);
    let refused = web.ask("GET", devices, &Value::Null);
    assert_eq!((refused.status, refused.field("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(refused.json()["type"], "referenceError");
    assert_eq!(web.events("").status, 401);
    assert_eq!(web.events("Authorization: Bearer a-token-of-many-letters\r\n").status, 200);
    assert_eq!(web.send("GET", devices, &[bearer], "").status, 200);
    assert_eq!(web.send("GET", devices, &[("X-Elapi-key", "a-token-of-many-letters")], "").status, 200);
    assert_eq!(web.send("GET", devices, &[bearer, ("Host", "home.example:80")], "").status, 200);
    assert_eq!(web.send("GET", devices, &[bearer, ("Host", "other.example")], "").status, 421);
    let place = path(&id(1, "0290"), "properties/lightLevel");
    let json = ("Content-Type", "application/json");
    let before = home.value(0, 0xB0);
    let foreign = web.send("PUT", &place, &[bearer, json, ("Origin", "http://other.example")], "{\"lightLevel\": 1}");
    assert_eq!((foreign.status, home.value(0, 0xB0)), (403, before));
    let own = format!("http://{}", web.addr);
    assert_eq!(web.send("PUT", &place, &[bearer, json, ("Origin", &own)], "{\"lightLevel\": 1}").status, 200);
    assert_eq!(home.value(0, 0xB0), [1]);
    // Pages of other sites are not told that they may read.
    let answer = web.send("GET", devices, &[bearer, ("Origin", "http://other.example")], "");
    assert_eq!((answer.status, answer.field("access-control-allow-origin")), (200, None));
    assert_eq!(
        (answer.field("x-content-type-options"), answer.field("cache-control")),
        (Some("nosniff"), Some("no-store"))
    );

    let refuses = |arguments: &[&str], part: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_echonet")).arg("web").args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(part), "{arguments:?}: {text}");
    };
    refuses(&["--listen", "0.0.0.0:0"], "--token-file is needed");
    refuses(&["--host", "a:80"], "--host `a:80`");
    let short = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-short");
    std::fs::write(&short, "short").unwrap();
    refuses(&["--token-file", short.to_str().unwrap()], "16 or more letters");
}

/// The document is valid, every path in it answers, and the devices' values are as it describes them.
#[test]
fn the_openapi_document() {
    let (_home, web) = serve(6, &CLASSES, &[]);
    let document = web.get("/openapi.json");
    for (place, item) in document["paths"].as_object().unwrap() {
        let is_method = |name: &&String| *name != "parameters";
        for method in item.as_object().unwrap().keys().filter(is_method) {
            if place == "/events" {
                continue;
            }
            let at = place.replace("{id}", "none").replace("{name}", "none");
            let answer = web.ask(&method.to_uppercase(), &at, &Value::Null);
            let is_missing = answer.status == 405 || answer.text.contains("there is nothing at");
            assert!(!is_missing, "{method} {place}: {answer:?}");
        }
    }
    let Some(kit) = OPENAPI.installed() else { return };
    let values: Vec<Value> = CLASSES
        .iter()
        .enumerate()
        .map(|(at, class)| {
            let name = class::by_name(class).unwrap().short_name;
            json!({ "type": name, "values": web.get(&path(&id(at + 1, class), "properties")) })
        })
        .chain([
            json!({ "type": "Devices", "values": web.get("/elapi/v1/devices") }),
            json!({ "type": "Services", "values": web.get("/elapi/v1") }),
            json!({ "type": "Description", "values": web.get(&format!("/elapi/v1/devices/{}", id(1, "0290"))) }),
            json!({ "type": "Problem", "values": web.expect("GET", "/elapi/v1/devices/none", &Value::Null, 404) }),
        ])
        .collect();
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-openapi.json");
    std::fs::write(&file, json!({ "document": document, "values": values }).to_string()).unwrap();
    let mut validate = Command::new(kit.join("venv/bin/python"));
    let said = test_peers::printed(validate.arg(kit.join("validate.py")).arg(&file));
    assert!(said.starts_with("valid"), "{said}");
    println!("{said}");
}

#[test]
fn the_page_shows_the_home() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("web-browser-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let token = folder.join("token");
    std::fs::write(&token, "a-token-of-many-letters").unwrap();
    let Some(browser) = Browser::start(&folder) else { return };
    let (mut home, web) =
        serve(7, &["0290", "0130", "0011", "0001"], &["--poll", "0.5", "--token-file", token.to_str().unwrap()]);
    browser.open(&format!("http://{}/", web.addr));
    browser.wait("return document.getElementById('state').textContent", "the token is missing");
    browser.run("document.getElementById('token').value = 'a-token-of-many-letters'; document.querySelector('#login button').click()");
    browser.wait("return String(document.querySelectorAll('.device').length)", "4");
    let cell = |device: &str, property: &str| {
        format!("document.querySelector('[data-device=\"{device}\"] [data-property=\"{property}\"]')")
    };
    let text = |device: &str, property: &str| format!("return {}.textContent", cell(device, property));
    let (light, conditioner, sensor) = (id(1, "0290"), id(2, "0130"), id(3, "0011"));
    home.change(2, 0xE0, &(-123i16).to_be_bytes());
    browser.wait(&text(&sensor, "value"), "-12.3 °C");
    // A settable property is set, and comes back as the device tells it.
    let row = |device: &str, property: &str| format!("{}.closest('tr')", cell(device, property));
    browser.run(&format!(
        "const row = {}; row.querySelector('input').value = '33'; row.querySelector('button').click()",
        row(&light, "lightLevel")
    ));
    browser.wait(&text(&light, "lightLevel"), "33 %");
    assert_eq!(home.value(0, 0xB0), [33]);
    browser.run(&format!(
        "const select = {}.querySelector('select'); select.value = 'false'; select.dispatchEvent(new Event('change'))",
        row(&light, "operationStatus")
    ));
    browser.wait(&text(&light, "operationStatus"), "no");
    assert_eq!(home.value(0, 0x80), [0x31]);
    browser.run(&format!(
        "const select = {}.querySelector('select'); select.value = '\"heating\"'; select.dispatchEvent(new Event('change'))",
        row(&conditioner, "operationMode")
    ));
    browser.wait(&text(&conditioner, "operationMode"), "heating");
    // A refusal of the device is shown where the value was entered.
    browser.run(&format!(
        "const row = {}; row.querySelector('input').value = '101'; row.querySelector('button').click()",
        row(&light, "lightLevel")
    ));
    browser.wait(
        &format!("return {}.querySelector('.problem')?.textContent", row(&light, "lightLevel")),
        "101 is not in 0..=100 %",
    );
    home.nodes.pop();
    let lost = "return document.querySelectorAll('.device.lost').length";
    wait("the device that is lost", || (browser.run(lost) == 1).then_some(()));
    let loaded = browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name).join(' ')");
    let origin = format!("http://{}/", web.addr);
    assert!(loaded.as_str().unwrap().split(' ').all(|name| name.starts_with(&origin)), "{loaded}");
    let refused = browser.run("const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran ?? 0");
    assert_eq!(refused, 0, "the policy lets no script in");

    browser.open(&format!("http://{}/api", web.addr));
    browser
        .wait("return document.getElementById('operations').textContent", "/elapi/v1/devices/{id}/properties/{name}");
    browser.run("const find = document.getElementById('find'); find.value = '0x0290'; find.dispatchEvent(new Event('input')); document.querySelector('.type:not([hidden]) summary').click()");
    browser.wait("return document.querySelector('.type[open]').textContent", "0 to 100 %");
    drop(browser);
    let _ = std::fs::remove_dir_all(folder);
}

/// Devices of a file are played beside, by the same program.
#[test]
fn a_home_that_is_not_there() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-home.toml");
    std::fs::write(&file, "[[node]]\naddress = \"127.78.8.1\"\n[[node.object]]\nclass = \"generalLighting\"\nvalues = { lightLevel = \"12\" }\n").unwrap();
    let web = Web::start("127.79.8.1", PORT + 8, 1, &["--emulate", file.to_str().unwrap()]);
    let list = web.get("/elapi/v1/devices");
    let light = list["devices"][0]["id"].as_str().unwrap();
    assert_eq!(web.get(&path(light, "properties/lightLevel")), one("lightLevel", 12));
}

/// The lists of a board are read range by range, and shown by circuit.
#[test]
fn circuits_of_a_board() {
    let port = PORT + 12;
    let home = Home::of([127, 78, 12], port, [crate::emulated::board(1, 62, 1)]);
    let web = Web::start("127.79.12.1", port, 1, &["--poll", "0.5"]);
    let board = id(1, "0287");
    let circuits = path(&board, "properties/circuits");
    let read = web.get(&circuits);
    let listed = read["circuits"].as_array().unwrap();
    assert_eq!(listed.len(), 63);
    // 210.0 kWh in 183 parts.
    let current = json!({ "rPhase": 0.0, "tPhase": 0.0 });
    let of = |circuit: u8, energy: f64| json!({ "circuit": circuit, "kind": "simplex", "energy": energy, "current": current, "power": 0 });
    assert_eq!((&listed[0], &listed[61]), (&of(1, 1.1), &of(62, 2.2)));
    assert_eq!(listed[62]["kind"], "duplex");
    assert_eq!(
        listed[62]["energy"],
        json!({ "normalDirectionElectricEnergy": 210.0, "reverseDirectionElectricEnergy": 0.0 })
    );
    assert_eq!(web.get(&path(&board, "properties"))["circuits"], read["circuits"]);
    let description = web.get(&format!("/elapi/v1/devices/{board}"));
    assert_eq!(description["properties"]["circuits"]["schema"]["type"], "array");
    web.expect("PUT", &circuits, &one("circuits", json!([])), 404);

    let mut events = web.events("");
    home.change(0, 0xC6, &18_300_i32.to_be_bytes());
    let is_news = |news: &Value| news["name"] == "circuits" && news["value"][61]["power"] == 200;
    events.wait("property", |news| news["id"] == board && is_news(news));

    // A board whose list is of another range tells nothing of it.
    let mut fault = Fault::new(Kind::WrongValue);
    (fault.eoj, fault.epc, fault.edt) = (Some(home.nodes[0].0), 0xB7, vec![2, 1, 0, 0, 0, 9]);
    home.nodes[0].1.with_node(|device| device.set_faults(vec![fault]));
    let read = web.get(&circuits);
    assert_eq!((&read["circuits"][0]["power"], &read["circuits"][0]["energy"]), (&Value::Null, &json!(1.1)));
}

/// Invented nodes cost little, and a client that asks for a device is answered meanwhile.
#[test]
fn five_thousand_nodes_that_are_not_there() {
    const NODES: usize = 5000;
    /// Between two of them: a thousand a second, which no home has.
    const PACE: Duration = Duration::from_millis(1);
    /// Of so many, one is followed by a read.
    const ASKED: usize = 5;
    let (_home, web) = serve(9, &["0290"], &[]);
    let place = path(&id(1, "0290"), "properties/operationStatus");
    let kibibytes = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", web.running.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let ask = || {
        let begun = Instant::now();
        web.get(&place);
        begun.elapsed()
    };
    let p99 = |times: &mut Vec<Duration>| {
        times.sort();
        times[(times.len() - 1) * 99 / 100]
    };
    let mut alone: Vec<_> = (0..NODES / ASKED).map(|_| ask()).collect();
    let before = kibibytes();
    let announcement = b"\x10\x81\x00\x01\x0E\xF0\x01\x0E\xF0\x01\x73\x01\xD5\x04\x01\x02\x90\x01";
    let mut beside = Vec::new();
    for at in 0..NODES {
        let source = std::net::Ipv4Addr::new(127, 90, (at / 250) as u8, (at % 250) as u8 + 1);
        let socket = std::net::UdpSocket::bind((source, 0)).unwrap();
        socket.send_to(announcement, ("127.79.9.1", PORT + 9)).unwrap();
        std::thread::sleep(PACE);
        if at % ASKED == 0 {
            beside.push(ask());
        }
    }
    let (alone, beside, after) = (p99(&mut alone), p99(&mut beside), kibibytes());
    println!(
        "{before} KiB before {NODES} made-up nodes, {after} KiB after them; p99 {alone:?} alone, {beside:?} beside them"
    );
    assert!(after < before + 32 * 1024, "{before} KiB, then {after} KiB");
    assert_eq!(web.get("/elapi/v1/devices")["devices"].as_array().unwrap().len(), 1, "only what answers is a device");
}

/// A device that moves keeps its id; two that their maker gave the same number have one each. Those two differ in a setting:
/// otherwise they count as one node with two addresses.
#[test]
fn ids_follow_identification_numbers() {
    let port = PORT + 10;
    let light = |serial: u64, level: u8| {
        let mut object = ObjectPlan::new(class::by_name("0290").unwrap(), 1);
        object.values.push((0xB0, vec![level]));
        NodePlan::new(serial, [object])
    };
    let mut home = Home::of([127, 78, 10], port, [light(1, 11), light(1, 12), light(2, 21)]);
    let web = Web::start("127.79.10.1", port, 3, &["--poll", "0.5"]);
    let list = web.get("/elapi/v1/devices");
    let ids: Vec<_> = list["devices"].as_array().unwrap().iter().map(|device| device["id"].as_str().unwrap()).collect();
    let plain = id(1, "0290");
    let (number, eoj) = plain.split_once('-').unwrap();
    // Which of the two was heard first is chance.
    let others = [1, 2].map(|at| format!("{number}-127-78-10-{at}-{eoj}"));
    assert!(ids.contains(&&plain[..]) && ids.contains(&&id(2, "0290")[..]), "{ids:?}");
    assert!(ids.iter().any(|id| others.iter().any(|other| id == other)), "{ids:?}");

    let mut events = web.events("");
    let before = events.wait("device", |device| device["id"] == id(2, "0290"));
    assert_eq!(before["address"], "127.78.10.3");
    home.nodes.pop();
    events.wait("status", |news| news["id"] == id(2, "0290") && news["online"] == false);
    let moved = Home::of([127, 78, 11], port, [light(2, 21)]);
    let after = events.wait("device", |device| device["id"] == id(2, "0290"));
    assert_eq!((&after["address"], &after["online"]), (&json!("127.78.11.1"), &json!(true)));
    web.put(&path(&id(2, "0290"), "properties/lightLevel"), &one("lightLevel", 5));
    assert_eq!(moved.value(0, 0xB0), [5]);
}
