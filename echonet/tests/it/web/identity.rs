//! Nodes that swap their addresses, seen by clients of the Web API.

use std::thread;
use std::time::{Duration, Instant};

use echonet_lite::class;
use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use serde_json::{Value, json};

use super::client::{Events, Web, id, one, path};
use super::{PORT, wait};
use crate::emulated::Home;

const LEVEL: u8 = 0xB0;
const NIGHT: u8 = 0xB9;

/// The time in which a change must be seen.
const LIMIT: Duration = Duration::from_secs(5);

fn light(serial: u64, level: u8, is_silent: bool) -> NodePlan {
    let mut object = ObjectPlan::new(class::by_name("0290").unwrap(), 1);
    object.values.extend([LEVEL, NIGHT].map(|epc| (epc, vec![level])));
    // Otherwise the times of its timers are those of its making: a light made in the next minute would be another device.
    object.values.extend([0x91, 0x95].map(|timer| (timer, vec![7, 30])));
    let faults = if is_silent { vec![Fault::new(Kind::NoAnnouncement)] } else { Vec::new() };
    NodePlan { faults, ..NodePlan::new(serial, [object]) }
}

fn becomes(home: &mut Home, nodes: &[(NodePlan, u8)]) {
    home.nodes.clear();
    for (plan, host) in nodes {
        home.serve(plan, *host);
    }
}

#[test]
fn names_are_those_of_nodes_wherever_they_are() {
    for (net, is_silent) in [(30, false), (31, true)] {
        let port = PORT + u16::from(net);
        let of = |serial, level| light(serial, level, is_silent);
        let mut home = Home::of([127, 78, net], port, [of(1, 11), of(2, 22)]);
        let web = Web::start(&format!("127.79.{net}.1"), port, 2, &[]);
        let level = |serial: usize| path(&id(serial, "0290"), "properties/lightLevel");
        let sets = |serial: usize, value: u8| {
            let body = one("lightLevel", json!(value));
            let begun = Instant::now();
            assert_eq!(web.put(&level(serial), &body), body);
            println!("light {serial} is set after {:?}", begun.elapsed());
        };
        becomes(&mut home, &[(of(1, 31), 2), (of(2, 32), 1)]);
        sets(1, 41);
        sets(2, 42);
        assert_eq!((home.value(0, LEVEL), home.value(1, LEVEL)), (vec![41], vec![42]));
        assert_eq!(web.get(&level(1)), one("lightLevel", json!(41)));
        assert_eq!(web.get(&level(2)), one("lightLevel", json!(42)));

        // Another device at the address of the second, which is nowhere now: nothing reaches the wrong one.
        becomes(&mut home, &[(of(1, 41), 2), (of(3, 33), 1)]);
        let problem = web.expect("PUT", &level(2), &one("lightLevel", json!(99)), 500);
        assert_eq!(problem["type"], "timeoutError", "{problem}");
        assert_eq!(home.value(1, LEVEL), [33]);
        wait("the new light", || {
            let list = web.get("/elapi/v1/devices");
            let is_new = |device: &Value| device["id"] == id(3, "0290");
            list["devices"].as_array().unwrap().iter().any(is_new).then_some(())
        });
        assert_eq!(web.get(&level(3)), one("lightLevel", json!(33)));
    }
}

/// Waits until the page shows a value of a light; returns the time since `begun`.
fn shown(page: &mut Events, begun: Instant, serial: usize, name: &str, value: u8) -> Duration {
    let of = id(serial, "0290");
    loop {
        let (kind, data) = page.next().expect("the stream goes on");
        let told = match kind.as_str() {
            "device" => &data["properties"][name]["value"],
            "property" if data["name"] == name => &data["value"],
            _ => continue,
        };
        if data["id"] == *of && *told == json!(value) {
            return begun.elapsed();
        }
    }
}

/// Writes a property of a light and waits until the page shows it: the times since `begun`.
fn sets_and_shows(web: &Web, begun: Instant, serial: usize, name: &str, value: u8) -> [Duration; 2] {
    let mut page = web.events("");
    let (path, body) = (path(&id(serial, "0290"), &format!("properties/{name}")), one(name, json!(value)));
    thread::scope(|scope| {
        let put = scope.spawn(|| {
            assert_eq!(web.put(&path, &body), body);
            begun.elapsed()
        });
        let shown = shown(&mut page, begun, serial, name, value);
        let times = [put.join().unwrap(), shown];
        println!("{name} of light {serial}: written and shown after {times:?}");
        times
    })
}

#[test]
fn a_light_that_moves_is_written_to_and_shown_soon() {
    let mut home = Home::of([127, 78, 32], PORT + 32, [light(1, 11, false), light(2, 22, false)]);
    let web = Web::start("127.79.32.1", PORT + 32, 2, &["--poll", "1"]);
    for (host, value) in [(7, 41), (8, 42), (9, 43)] {
        let begun = Instant::now();
        becomes(&mut home, &[(light(1, 31, false), host), (light(2, 22, false), 2)]);
        let times = sets_and_shows(&web, begun, 1, "lightLevelForNightLighting", value);
        assert_eq!(home.value(0, NIGHT), [value]);
        assert!(times.into_iter().all(|time| time < LIMIT), "{times:?}");
    }
}

#[test]
fn a_light_that_loses_its_first_address_is_written_to_and_shown_soon() {
    let mut home = Home::of([127, 78, 33], PORT + 33, [light(1, 11, false)]);
    let web = Web::start("127.79.33.1", PORT + 33, 1, &["--poll", "1"]);
    home.serve(&light(1, 11, false), 7);
    // When a later light is there, the server has dealt with the second address.
    home.serve(&light(2, 22, false), 8);
    shown(&mut web.events(""), Instant::now(), 2, "lightLevel", 22);
    drop(home.nodes.remove(0));
    let begun = Instant::now();
    let times = thread::scope(|scope| {
        let writes = [("lightLevel", 41), ("lightLevelForNightLighting", 42)];
        let web = &web;
        let write = |(name, value)| scope.spawn(move || sets_and_shows(web, begun, 1, name, value));
        writes.map(write).map(|write| write.join().unwrap())
    });
    assert_eq!((home.value(0, LEVEL), home.value(0, NIGHT)), (vec![41], vec![42]));
    assert!(times.as_flattened().iter().all(|time| *time < LIMIT), "{times:?}");
}
