//! `echonet bridge` between emulated homes and a genuine broker, seen as Home Assistant sees it.

mod board;
mod checker;
mod config;
mod data;
mod home_assistant;
mod identity;
mod language;
#[cfg(feature = "serial")]
mod meter;
mod tls;

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use echonet_lite::class;
use rumqttc::{Client, Event, MqttOptions, Packet, QoS};
use serde_json::{Value, json};

use crate::emulated::{Home, Running};

const PORT: u16 = 13_674;
const PATIENCE: Duration = Duration::from_secs(120);

/// The classes of the twenty devices: each kind of entity and each way to show a device as one thing is among them.
const CLASSES: [&str; 20] = [
    "0290", "0130", "0011", "0012", "0288", "027D", "0279", "026B", "0260", "026F", "0029", "0007", "001B", "0133",
    "0135", "0272", "03B7", "0281", "0282", "02A1",
];

/// A genuine broker on a port that was free, without a memory of its own.
struct Mosquitto {
    port: u16,
    config: std::path::PathBuf,
    running: Option<Running>,
}

impl Mosquitto {
    fn start(name: &str) -> Self {
        let port = test_peers::free_port();
        let config = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.conf"));
        // By itself it keeps a thousand messages for a client that is slow for a moment, and drops what comes behind them.
        let text =
            format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_queued_messages 0\n");
        std::fs::write(&config, text).unwrap();
        let mut broker = Self { port, config, running: None };
        broker.restart();
        broker
    }

    fn stop(&mut self) {
        self.running = None;
    }

    fn restart(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", "PATH=$PATH:/usr/sbin exec mosquitto -c \"$0\""]).arg(&self.config);
        self.running = Some(Running(command.stderr(Stdio::null()).spawn().unwrap()));
    }
}

/// By topic: the payload, and when it came.
type Heard = HashMap<String, (String, Instant)>;

/// A client of the broker, with the messages it has heard.
struct Listener {
    client: Client,
    heard: Arc<(Mutex<Heard>, Condvar)>,
}

impl Listener {
    /// Begins with what the broker remembers.
    fn new(broker: &Mosquitto) -> Self {
        let mut options = MqttOptions::new(format!("listener-{:?}", Instant::now()), "127.0.0.1", broker.port);
        options.set_max_packet_size(1 << 20, 1 << 20);
        let (client, mut connection) = Client::new(options, 64);
        let heard = Arc::<(Mutex<HashMap<_, _>>, Condvar)>::default();
        let (hears, subscriber) = (Arc::clone(&heard), client.clone());
        thread::spawn(move || {
            for event in connection.iter() {
                match event {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => subscriber.subscribe("#", QoS::AtMostOnce).unwrap(),
                    Ok(Event::Incoming(Packet::Publish(message))) => {
                        let payload = String::from_utf8(message.payload.to_vec()).unwrap();
                        hears.0.lock().unwrap().insert(message.topic, (payload, Instant::now()));
                        hears.1.notify_all();
                    }
                    Ok(_) => {}
                    // The test has ended, or the broker is away.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
                if Arc::strong_count(&hears) == 1 {
                    return;
                }
            }
        });
        Self { client, heard }
    }

    /// Waits until the messages are as wanted; returns the result.
    fn wait<R>(&self, what: &str, wanted: impl Fn(&Heard) -> Option<R>) -> R {
        let end = Instant::now() + PATIENCE;
        let mut heard = self.heard.0.lock().unwrap();
        loop {
            if let Some(result) = wanted(&heard) {
                return result;
            }
            let left = end.saturating_duration_since(Instant::now());
            let topics =
                || heard.iter().map(|(topic, (payload, _))| format!("{topic} {payload:.80}")).collect::<Vec<_>>();
            assert!(!left.is_zero(), "{what} did not come; there are {:#?}", topics());
            heard = self.heard.1.wait_timeout(heard, left).unwrap().0;
        }
    }

    /// Waits until a topic says so; tells when it did.
    fn wait_for(&self, topic: &str, payload: &str) -> Instant {
        let said = |heard: &Heard| heard.get(topic).filter(|(text, _)| text == payload).map(|(_, at)| *at);
        self.wait(&format!("{topic} {payload}"), said)
    }

    fn command(&self, topic: &str, payload: &str) {
        self.client.publish(format!("{topic}/set"), QoS::AtLeastOnce, false, payload).unwrap();
    }

    /// The current payload of every topic.
    fn values(&self) -> HashMap<String, String> {
        let heard = self.heard.0.lock().unwrap();
        heard.iter().map(|(topic, (text, _))| (topic.clone(), text.clone())).collect()
    }

    /// Waits for so many devices and for a value of each of their topics; gives the descriptions.
    fn devices(&self, count: usize) -> Vec<Value> {
        self.wait("every device with its values", |heard| {
            let configs = heard.iter().filter(|(topic, (text, _))| topic.ends_with("/config") && !text.is_empty());
            let found: Vec<Value> = configs.map(|(_, (text, _))| serde_json::from_str(text).unwrap()).collect();
            let has_said = |topic: &str| heard.get(topic).is_some_and(|(text, _)| !text.is_empty());
            let all_said = found.iter().all(|device| checker::topics(device).all(has_said));
            (found.len() == count && all_said).then_some(found)
        })
    }
}

/// Nodes of these classes, with so many objects each.
fn home(net: u8, classes: &[&'static class::Class], objects: u8) -> Home {
    Home::new([127, 74, net], PORT + u16::from(net), classes, objects)
}

/// The topic of a node's object.
fn topic(home: &Home, at: usize) -> String {
    let [group, class, instance] = home.nodes[at].0.to_bytes();
    format!("echonet/fe000077{:026x}/{group:02x}{class:02x}{instance:02x}", at + 1)
}

fn bridge(net: u8, broker: &Mosquitto, poll: &str) -> Running {
    bridge_with(net, broker, poll, &[])
}

fn bridge_with(net: u8, broker: &Mosquitto, poll: &str, more: &[&str]) -> Running {
    let (address, url) = (format!("127.75.{net}.1"), format!("mqtt://127.0.0.1:{}", broker.port));
    let port = (PORT + u16::from(net)).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command
        .args(["--port", &port, "--address", &address, "bridge", &url, "--poll", poll])
        .args(more)
        .stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

fn is_there() -> bool {
    let at_hand = std::path::Path::new("/usr/sbin/mosquitto").exists();
    at_hand || test_peers::is_there("mosquitto")
}

fn at(code: &str) -> usize {
    CLASSES.iter().position(|other| *other == code).unwrap()
}

#[test]
fn a_home_of_twenty_classes() {
    if !is_there() {
        return;
    }
    let mut broker = Mosquitto::start("home");
    let mut home = home(0, &CLASSES.map(|code| class::by_name(code).unwrap()), 1);
    let bridge = bridge(0, &broker, "1");
    let listener = Listener::new(&broker);
    let devices = listener.devices(CLASSES.len());
    let values = listener.values();
    let problems: Vec<_> = devices.iter().flat_map(|device| checker::problems(device, &values)).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    checker::is_unique(&devices);
    let count: usize = devices.iter().map(|device| device["components"].as_object().unwrap().len()).sum();
    println!("{} devices with {count} entities", devices.len());
    check_known_entities(&home, &devices);
    changes_arrive(&home, &listener);
    commands_are_carried_out(&home, &listener);

    // Home Assistant has started anew.
    let before = Instant::now();
    listener.client.publish("homeassistant/status", QoS::AtLeastOnce, false, "online").unwrap();
    let again = |heard: &Heard| {
        let configs = heard.iter().filter(|(topic, _)| topic.ends_with("/config"));
        (configs.filter(|(_, (_, at))| *at > before).count() == CLASSES.len()).then_some(())
    };
    listener.wait("the descriptions again", again);

    // The broker is away, and has forgotten everything when it is back.
    broker.stop();
    home.change(at("0011"), 0xE0, &[0x00, 0x7B]);
    home.change(at("0290"), 0xB0, &[7]);
    home.change(at("0290"), 0xB0, &[8]);
    broker.restart();
    let listener = Listener::new(&broker);
    listener.wait_for("echonet/bridge/availability", "online");
    listener.wait_for(&format!("{}/value", topic(&home, at("0011"))), "12.3");
    listener.wait_for(&format!("{}/lightLevel", topic(&home, at("0290"))), "8");
    assert_eq!(listener.devices(CLASSES.len()).len(), CLASSES.len());

    // A node goes.
    let gone = topic(&home, CLASSES.len() - 1);
    home.nodes.pop();
    let (node, _) = gone.rsplit_once('/').unwrap();
    listener.wait_for(&format!("{node}/availability"), "offline");
    let first = topic(&home, 0);
    let (node, _) = first.rsplit_once('/').unwrap();
    assert_eq!(listener.values()[&format!("{node}/availability")], "online");

    // The bridge ends.
    Command::new("kill").arg(bridge.0.id().to_string()).status().unwrap();
    listener.wait_for("echonet/bridge/availability", "offline");
}

/// The devices whose entities are written down here: classes, units, ranges, options.
fn check_known_entities(home: &Home, devices: &[Value]) {
    let component = |code: &str, id: &str| {
        let base = topic(home, at(code)).replacen("echonet/", "echonet_", 1).replace('/', "_");
        let device = devices.iter().find(|device| device["device"]["identifiers"][0] == base);
        device.unwrap_or_else(|| panic!("{base} is not there"))["components"][id].clone()
    };
    let has = |code: &str, id: &str, expected: Value| {
        let found = component(code, id);
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&found[key], value, "{key} of {id} of {code}: {found}");
        }
    };
    has("0011", "value", json!({ "platform": "sensor", "device_class": "temperature", "unit_of_measurement": "°C" }));
    has("0290", "main", json!({ "platform": "light", "brightness_scale": 100, "payload_on": "on" }));
    has("0130", "main", json!({ "platform": "climate", "min_temp": 16, "max_temp": 32, "payload_on": "on" }));
    has("0130", "roomTemperature", json!({ "platform": "sensor", "state_class": "measurement" }));
    has("0260", "main", json!({ "platform": "cover", "device_class": "blind", "state_open": "fullyOpen" }));
    has("026F", "main", json!({ "platform": "lock" }));
    has("026B", "main", json!({ "platform": "water_heater", "modes": ["eco", "high_demand", "off"] }));
    has("0272", "main", json!({ "platform": "water_heater", "modes": ["gas", "off"], "max_temp": 100 }));
    has("0133", "main", json!({ "platform": "fan" }));
    has("03B7", "doorOpenCloseStatus", json!({ "platform": "binary_sensor", "device_class": "door" }));
    has("0282", "cumulativeGasConsumption", json!({ "device_class": "gas", "state_class": "total_increasing" }));
    has("0288", "normalDirectionCumulativeElectricEnergy", json!({ "device_class": "energy" }));
    has("0130", "onTimerReservation", json!({ "enabled_by_default": false }));
    assert_eq!(component("0130", "roomTemperature")["enabled_by_default"], Value::Null);
    let names: std::collections::HashSet<_> =
        devices.iter().map(|device| device["device"]["name"].to_string()).collect();
    assert_eq!(names.len(), devices.len(), "every device has a name of its own");
    has("0029", "opening", json!({ "platform": "binary_sensor", "device_class": "opening", "payload_on": "open" }));
    has("0007", "detection", json!({ "platform": "binary_sensor", "device_class": "motion" }));
    has("001B", "value", json!({ "device_class": "carbon_dioxide", "unit_of_measurement": "ppm" }));
    has("0288", "instantaneousCurrent_rPhase", json!({ "device_class": "current", "unit_of_measurement": "A" }));
    has("0130", "faultStatus", json!({ "device_class": "problem", "entity_category": "diagnostic" }));
    has("0130", "airFlowDirectionVertical", json!({ "platform": "select" }));
    assert_eq!(component("0130", "airFlowDirectionVertical")["options"].as_array().unwrap().len(), 5);
}

/// Announcements of devices are in MQTT at once.
fn changes_arrive(home: &Home, listener: &Listener) {
    let (sensor, topic) = (at("0011"), format!("{}/value", topic(home, at("0011"))));
    let mut times: Vec<_> = (0..200u16)
        .map(|turn| {
            let (begun, tenths) = (Instant::now(), 100 + turn);
            home.change(sensor, 0xE0, &tenths.to_be_bytes());
            listener.wait_for(&topic, &format!("{}.{}", tenths / 10, tenths % 10)) - begun
        })
        .collect();
    times.sort();
    println!("a change is in MQTT within {:?} (median), {:?} (p99)", times[100], times[198]);
}

fn commands_are_carried_out(home: &Home, listener: &Listener) {
    let (light, conditioner, lock) = (at("0290"), at("0130"), at("026F"));
    let (tank, burner) = (at("026B"), at("0272"));
    let of = |at: usize, name: &str| format!("{}/{name}", topic(home, at));
    listener.command(&of(light, "lightLevel"), "101");
    listener.command(&of(light, "nothing"), "1");
    listener.command(&of(light, "lightLevel"), "42");
    listener.wait_for(&of(light, "lightLevel"), "42");
    assert_eq!(home.value(light, 0xB0), [42]);
    for (mode, status, code) in [("cool", 0x30, 0x42), ("off", 0x31, 0x42), ("fan_only", 0x30, 0x45)] {
        listener.command(&of(conditioner, "mode"), mode);
        listener.wait_for(&of(conditioner, "mode"), mode);
        assert_eq!(
            (home.value(conditioner, 0x80), home.value(conditioner, 0xB0)),
            (vec![status], vec![code]),
            "{mode}"
        );
    }
    // 77 °F and a bit.
    listener.command(&of(conditioner, "targetTemperature"), "25.278");
    listener.wait_for(&of(conditioner, "targetTemperature"), "25");
    listener.command(&of(conditioner, "airFlowLevel"), "level 3");
    listener.wait_for(&of(conditioner, "airFlowLevel"), "level 3");
    for (heater, epc, mode, code) in [
        (tank, 0xB0, "high_demand", 0x42),
        (tank, 0xB0, "off", 0x43),
        (tank, 0xB0, "eco", 0x41),
        (burner, 0x80, "off", 0x31),
        (burner, 0x80, "gas", 0x30),
    ] {
        listener.command(&of(heater, "mode"), mode);
        listener.wait_for(&of(heater, "mode"), mode);
        assert_eq!(home.value(heater, epc), [code], "{mode}");
    }
    listener.command(&of(tank, "targetWaterHeatingTemperature"), "65");
    listener.wait_for(&of(tank, "targetWaterHeatingTemperature"), "65");
    for (payload, code) in [("on", 0x41), ("off", 0x42)] {
        listener.command(&of(lock, "mainElectricLock"), payload);
        listener.wait_for(&of(lock, "mainElectricLock"), payload);
        assert_eq!(home.value(lock, 0xE0), [code]);
    }
}

/// The cost of a thousand devices:
/// `cargo test -p echonet --test it thousand -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement of a minute"]
fn a_thousand_devices() {
    const SECONDS: u64 = 60;
    let broker = Mosquitto::start("thousand");
    let classes: Vec<_> = CLASSES.into_iter().cycle().take(40).map(|code| class::by_name(code).unwrap()).collect();
    let home = home(1, &classes, 25);
    let bridge = bridge(1, &broker, "10");
    let listener = Listener::new(&broker);
    listener.devices(1000);
    let cpu = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", bridge.0.id())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // In ticks of 10 ms.
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    thread::sleep(Duration::from_secs(20));
    let before = cpu();
    for second in 0..SECONDS {
        for sensor in (0..10).map(|turn| at("0011") + 20 * (turn % 2)) {
            home.change(sensor, 0xE0, &(second as u16 * 10 + sensor as u16).to_be_bytes());
        }
        thread::sleep(Duration::from_secs(1));
    }
    let busy = cpu() - before;
    let topics: Vec<_> = (0..classes.len()).map(|at| format!("{}/faultStatus", topic(&home, at))).collect();
    let late = changed_faults(&home, &listener, &topics, 25);
    let memory = std::fs::read_to_string(format!("/proc/{}/status", bridge.0.id())).unwrap();
    let memory = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
    let busy = busy as f64 / SECONDS as f64;
    println!("1,000 devices: {busy:.1} % of a core, {memory}");
    assert!(busy <= 5.0 && late <= Duration::from_millis(50), "{busy} %, {late:?}");
}

/// The property that every device announces, and its values with their payloads.
const FAULT: u8 = 0x88;
const FAULTS: [(&[u8], &str); 2] = [(&[0x41], "on"), (&[0x42], "off")];

/// Changes the fault status of each of the first nodes so often, one at a time. Prints how long it takes until MQTT has them,
/// and returns the time within which 99 % are there.
fn changed_faults(home: &Home, listener: &Listener, topics: &[String], turns: usize) -> Duration {
    let mut times = Vec::new();
    for turn in 0..turns {
        let (edt, payload) = FAULTS[turn % 2];
        for (at, topic) in topics.iter().enumerate() {
            let begun = Instant::now();
            home.change(at, FAULT, edt);
            times.push(listener.wait_for(topic, payload) - begun);
        }
    }
    times.sort();
    let part = |percent: usize| times[(times.len() - 1) * percent / 100];
    let [half, most, all] = [50, 99, 100].map(part);
    println!("{} changes are in MQTT within {half:?} (median), {most:?} (p99), {all:?} (all)", times.len());
    most
}

/// How long changes take through the bridge: `cargo test -p echonet --test it figures_of_the_bridge -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement of two minutes"]
fn figures_of_the_bridge() {
    let mut broker = Mosquitto::start("figures");
    let home = home(2, &CLASSES.map(|code| class::by_name(code).unwrap()), 1);
    let _bridge = bridge(2, &broker, "10");
    let listener = Listener::new(&broker);
    listener.devices(CLASSES.len());
    let topics: Vec<_> = (0..CLASSES.len()).map(|at| format!("{}/faultStatus", topic(&home, at))).collect();
    changed_faults(&home, &listener, &topics, 100);

    broker.stop();
    for second in 0..60 {
        (0..topics.len()).for_each(|at| home.change(at, FAULT, FAULTS[(second + at) % 2].0));
        thread::sleep(Duration::from_secs(1));
    }
    let begun = Instant::now();
    broker.restart();
    let listener = Listener::new(&broker);
    for (at, topic) in topics.iter().enumerate() {
        listener.wait_for(topic, FAULTS[(59 + at) % 2].1);
    }
    listener.devices(CLASSES.len());
    println!("after a minute without a broker all that is true is there {:?} after its start", begun.elapsed());
}
