//! Nodes that swap their addresses, seen by clients of the Web API.

use std::time::Instant;

use echonet_lite::class;
use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use serde_json::json;

use super::client::{Web, id, one, path};
use super::{PORT, wait};
use crate::emulated::Home;

const LEVEL: u8 = 0xB0;

fn light(serial: u64, level: u8, is_silent: bool) -> NodePlan {
    let mut object = ObjectPlan::new(class::by_name("0290").unwrap(), 1);
    object.values.push((LEVEL, vec![level]));
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
            let is_new = |device: &serde_json::Value| device["id"] == id(3, "0290");
            list["devices"].as_array().unwrap().iter().any(is_new).then_some(())
        });
        assert_eq!(web.get(&level(3)), one("lightLevel", json!(33)));
    }
}
