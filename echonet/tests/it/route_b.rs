//! A smart meter behind a Wi-SUN module that is acted out, used by the `echonet` command as any other node.

#[path = "../../../echonet-lite/tests/serial/module.rs"]
#[allow(dead_code, reason = "the tests of the driver use all of it")]
mod module;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;

use echonet_lite::class;
use echonet_lite::emulate::Emulated;
use echonet_lite::node::{Arrival, Config, Identity, Instant, Node, Outbox};
use echonet_lite::serial::Module;
pub(crate) use module::Fault;
use module::{ID, PASSWORD, Simulator};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use crate::MAKER;

/// The meter's power, in watts.
pub(crate) const POWER: i32 = 1234;

/// A module with a meter: an emulated node with all properties of its class.
fn simulator(kind: Module, faults: &[Fault]) -> Simulator {
    let mut meter = Emulated::new(class::by_name("0288").unwrap(), 1, false, MAKER, 7);
    assert!(meter.put(0xE7, &POWER.to_be_bytes()));
    let mut node = Node::new(Config::new(Identity::new(MAKER, 7)), vec![meter]);
    let mut now = 1;
    let answers = move |request: &[u8]| {
        let (mut buffer, mut sent) = ([0; 1232], None);
        let mut out = Outbox::new(&mut buffer, |_, bytes: &[u8]| sent = Some(bytes.to_vec()));
        now += 1000;
        node.handle(Instant(now), SocketAddr::from(([192, 0, 2, 9], 3610)), Arrival::Unicast, request, &mut out);
        sent
    };
    Simulator::new(kind, faults).with_meter(Box::new(answers))
}

/// Acts a module out until the other end is closed.
fn act(mut module: Simulator, mut line: impl Read + Write + Send + 'static) {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = line.read(&mut bytes) {
            let said = module.feed(&bytes[..length]);
            if line.write_all(&said).is_err() {
                return;
            }
        }
    });
}

/// The path of a serial port with a module behind it.
pub(crate) fn port(kind: Module, faults: &[Fault]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    // While no program has the other end open, reading would fail.
    let held = rustix::fs::open(
        name.as_str(),
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY,
        rustix::fs::Mode::empty(),
    );
    std::mem::forget(held.unwrap());
    act(simulator(kind, faults), File::from(master));
    name
}

/// The URL of a serial server with a module behind it.
pub(crate) fn server(kind: Module, faults: Vec<Fault>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            act(simulator(kind, &faults), stream.unwrap());
        }
    });
    url
}

/// The command with the meter, on a port of its own.
pub(crate) fn echonet(line: &str, kind: Module, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--json", "--port", &port.to_string(), "--meter", line, "--module", kind.name()]);
    command.env("ROUTE_B_ID", ID).env("ROUTE_B_PASSWORD", PASSWORD).stdin(Stdio::null());
    command
}

#[test]
fn a_meter_is_found_and_read() {
    for (at, kind) in Module::ALL.into_iter().enumerate() {
        let line = if at % 2 == 0 { port(kind, &[]) } else { server(kind, Vec::new()) };
        let run = |rest: &[&str]| {
            let output = echonet(&line, kind, 13_706).args(rest).output().unwrap();
            assert!(output.status.success(), "{kind:?} {rest:?}: {}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
        };
        let read = run(&["get", "meter", "lvSmartElectricEnergyMeter", "E7"]);
        assert_eq!(read[0]["properties"][0]["value"], POWER, "{kind:?}: {read:?}");
        let own = ["--address", "127.0.106.1"];
        let found = run(&[&own[..], &["--timeout", "1", "discover"]].concat());
        let is_meter = |node: &&Value| node["address"] == "127.36.10.1";
        let meter = found.iter().find(is_meter).unwrap_or_else(|| panic!("{kind:?}: {found:?}"));
        assert_eq!(meter["objects"][0]["class"], "lvSmartElectricEnergyMeter");
    }
}

#[test]
fn errors_name_missing_or_wrong_meter_settings() {
    let line = port(Module::Bp35a1, &[]);
    for (variable, module, code, why) in [
        ("ROUTE_B_ID", "BP35A1", 2, "ROUTE_B_ID is not set"),
        ("ROUTE_B_PASSWORD", "BP35A1", 2, "ROUTE_B_PASSWORD is not set"),
        ("", "BP35X", 1, "one of BP35A1, BP35C0"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
        command.args(["--port", "13706", "--meter", &line, "--module", module, "get", "meter", "node"]);
        command.env("ROUTE_B_ID", ID).env("ROUTE_B_PASSWORD", PASSWORD).env_remove(variable);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
    }
    let output = echonet(&line, Module::Bp35a1, 13_706).args(["classes"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--meter is for discover"));
    let output = echonet("/dev/no-such-port", Module::Bp35a1, 13_706).args(["get", "meter", "node"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/no-such-port: "));
}
