//! The smart meter behind a Wi-SUN module in MQTT.

use echonet_lite::serial::Module;

use super::*;
use crate::route_b::{Fault, POWER, echonet, server};

#[test]
fn a_meter_behind_a_module_is_a_device_through_trouble() {
    if !is_there() {
        return;
    }
    let broker = Mosquitto::start("bridge-meter");
    let faults = [Fault::Noise, Fault::Close, Fault::Forge, Fault::FindNeighbour, Fault::Expire];
    let line = server(Module::Bp35a1, faults.to_vec());
    let mut command = echonet(&line, Module::Bp35a1, PORT + 28);
    command.args(["--address", "127.75.28.1", "bridge", &format!("mqtt://127.0.0.1:{}", broker.port)]);
    let _bridge = Running(command.stdout(Stdio::null()).spawn().unwrap());
    let listener = Listener::new(&broker);
    let meter = format!("echonet/fe000077{:026x}", 7);
    listener.wait_for(&format!("{meter}/availability"), "online");
    listener.wait_for(&format!("{meter}/028801/instantaneousElectricPower"), &POWER.to_string());
    let devices = listener.devices(1);
    let name = devices[0]["device"]["name"].as_str().unwrap();
    assert!(name.starts_with("Low-voltage smart electric energy meter"), "{name}");
}
