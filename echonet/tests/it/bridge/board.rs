//! A distribution board: every circuit has its values, whatever the lists of the board tell.

use super::*;
use echonet_lite::emulate::{Fault, Kind, NodePlan};

use crate::emulated;

const ENERGY_LIST: u8 = 0xB3;

/// The topic of a measured value of a circuit of the first node.
fn of(home: &Home, circuit: &str) -> String {
    format!("{}/circuits/{circuit}", topic(home, 0))
}

/// A board with its bridge, in a network of its own.
fn scene(net: u8, name: &str, plan: NodePlan) -> (Mosquitto, Home, Running, Listener) {
    let broker = Mosquitto::start(name);
    let home = Home::of([127, 74, net], PORT + u16::from(net), [plan]);
    let bridge = bridge(net, &broker, "0.2");
    let listener = Listener::new(&broker);
    (broker, home, bridge, listener)
}

#[test]
fn every_circuit_of_a_board_is_shown() {
    if !is_there() {
        return;
    }
    let (_broker, home, _bridge, listener) = scene(50, "board", emulated::board(1, 70, 31));
    let devices = listener.devices(1);
    let problems = checker::problems(&devices[0], &listener.values());
    assert!(problems.is_empty(), "{problems:#?}");
    let components = devices[0]["components"].as_object().unwrap();
    let ids = |start: &str| components.keys().filter(|id| id.starts_with(start)).count();
    assert_eq!((ids("circuit_simplex_"), ids("circuit_duplex_")), (70 * 4, 31 * 5));
    // Weights are 1 to 5 in turn: 210 in all simplex channels, 91 in all duplex ones.
    for (circuit, value) in [
        ("simplex/1/energy", "1.0"),
        ("simplex/60/energy", "5.0"),
        ("simplex/61/energy", "1.0"),
        ("simplex/70/energy", "5.0"),
        ("simplex/70/power", "0"),
        ("duplex/31/energy/normalDirectionElectricEnergy", "2.3"),
        ("duplex/31/energy/reverseDirectionElectricEnergy", "0.0"),
        ("duplex/2/current/rPhase", "0.0"),
    ] {
        listener.wait_for(&of(&home, circuit), value);
    }
    home.change(0, 0xC6, &21_000_i32.to_be_bytes());
    for (circuit, value) in
        [("simplex/2/power", "200"), ("simplex/70/power", "500"), ("simplex/69/current/tPhase", "2.0")]
    {
        listener.wait_for(&of(&home, circuit), value);
    }
    // Circuits that are there no more are taken back, those that come are shown.
    home.change(0, 0xB1, &[69]);
    listener.wait("circuit 70 is taken back", |heard| {
        heard.get(&of(&home, "simplex/70/power")).is_none_or(|(payload, _)| payload.is_empty()).then_some(())
    });
    home.change(0, 0xB1, &[71]);
    listener.wait("circuit 71", |heard| {
        heard.get(&of(&home, "simplex/71/power")).is_some_and(|(payload, _)| !payload.is_empty()).then_some(())
    });
}

#[test]
fn lists_that_are_wrong_say_nothing_of_any_circuit() {
    if !is_there() {
        return;
    }
    let right = [&[1, 3][..], &[0, 0, 0, 10], &[0, 0, 0, 20], &[0xFF, 0xFF, 0xFF, 0xFE]].concat();
    let mut plan = emulated::board(1, 3, 1);
    let fault = |edt: &[u8]| {
        let mut fault = Fault::new(Kind::WrongValue);
        (fault.eoj, fault.epc, fault.edt) = (Some(plan.objects[0].eoj), ENERGY_LIST, edt.to_vec());
        vec![fault]
    };
    let wrong: [&[u8]; 5] = [
        &[1, 3],
        &right[..13],
        &[&right[..], &[0, 0, 0, 40]].concat(),
        &[&[2, 3][..], &right[2..]].concat(),
        &[&[1, 4][..], &right[2..], &[0, 0, 0, 40]].concat(),
    ];
    let faults: Vec<_> = wrong.iter().map(|edt| fault(edt)).collect();
    let last = fault(&right);
    plan.faults.clone_from(&faults[0]);
    let (_broker, home, _bridge, listener) = scene(51, "wrong-board", plan);
    let energies = |listener: &Listener| {
        let values = listener.values();
        values.keys().filter(|topic| topic.contains("/circuits/simplex/") && topic.ends_with("/energy")).count()
    };
    // Other lists of the board are right: with them it was asked for this one.
    let mut seen = 0_i32;
    for faults in faults {
        home.nodes[0].1.with_node(|device| device.set_faults(faults));
        for _ in 0..2 {
            seen += 1;
            home.change(0, 0xC6, &(6000 * seen).to_be_bytes());
            listener.wait_for(&of(&home, "simplex/1/power"), &(1000 * seen).to_string());
        }
        assert_eq!(energies(&listener), 0);
    }
    home.nodes[0].1.with_node(|device| device.set_faults(last));
    for (circuit, value) in [("simplex/1/energy", "1.0"), ("simplex/2/energy", "2.0"), ("simplex/3/energy", "None")] {
        listener.wait_for(&of(&home, circuit), value);
    }
    assert_eq!(energies(&listener), 3);
}
