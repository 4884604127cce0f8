//! Nodes that swap their addresses, move, disappear or are replaced: the state in MQTT, and the nodes that commands
//! reach.

use super::*;
use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};

const LEVEL: u8 = 0xB0;

/// MQTT shows a change within this time (the requirement is 5 s; the rest is for a loaded machine).
const SOON: Duration = Duration::from_secs(60);

fn light(serial: u64, level: u8) -> NodePlan {
    let mut object = ObjectPlan::new(class::by_name("0290").unwrap(), 1);
    object.values.push((LEVEL, vec![level]));
    // Otherwise the times of its timers are those of its making: a light made in the next minute would be another device.
    object.values.extend([0x91, 0x95].map(|timer| (timer, vec![7, 30])));
    NodePlan::new(serial, [object])
}

/// The same light, which says nothing of itself.
fn silent(plan: NodePlan) -> NodePlan {
    NodePlan { faults: vec![Fault::new(Kind::NoAnnouncement)], ..plan }
}

/// The topic of the light with a serial number.
fn of(serial: u64) -> String {
    format!("echonet/fe000077{serial:026x}/029001")
}

fn available(serial: u64) -> String {
    format!("echonet/fe000077{serial:026x}/availability")
}

struct Scene {
    broker: Mosquitto,
    home: Home,
    net: u8,
    bridge: Option<Running>,
    listener: Listener,
}

impl Scene {
    fn new(net: u8, name: &str, plans: &[NodePlan]) -> Option<Self> {
        if !is_there() {
            return None;
        }
        let broker = Mosquitto::start(name);
        let home = Home::of([127, 74, net], PORT + u16::from(net), plans.to_vec());
        let bridge = Some(bridge(net, &broker, "1"));
        let listener = Listener::new(&broker);
        listener.devices(plans.len());
        Some(Self { broker, home, net, bridge, listener })
    }

    /// Other nodes instead of all that there were: each at the address that ends so.
    fn becomes(&mut self, plans: &[(NodePlan, u8)]) {
        self.home.nodes.clear();
        for (plan, host) in plans {
            self.home.serve(plan, *host);
        }
    }

    fn says(&self, what: &str, begun: Instant, topic: &str, payload: &str) {
        let at = self.listener.wait_for(topic, payload);
        let took = at.saturating_duration_since(begun);
        println!("{what}: {topic} {payload} after {took:?}");
        assert!(took < SOON, "{what}: {topic} {payload} came after {took:?}");
    }

    /// A command reaches the node that it is for: its place in the home, and the others stay as they are.
    fn reaches(&self, what: &str, serial: u64, level: u8, at: usize) {
        let others: Vec<_> = (0..self.home.nodes.len()).filter(|other| *other != at).collect();
        let before: Vec<_> = others.iter().map(|other| self.home.value(*other, LEVEL)).collect();
        let (begun, topic) = (Instant::now(), format!("{}/lightLevel", of(serial)));
        self.listener.command(&topic, &level.to_string());
        self.says(what, begun, &topic, &level.to_string());
        assert_eq!(self.home.value(at, LEVEL), [level], "{what}");
        let after: Vec<_> = others.iter().map(|other| self.home.value(*other, LEVEL)).collect();
        assert_eq!(after, before, "{what}: another node was written to");
    }
}

#[test]
fn two_nodes_swap_their_addresses() {
    let Some(mut scene) = Scene::new(3, "swap", &[light(1, 11), light(2, 22)]) else { return };
    let begun = Instant::now();
    scene.becomes(&[(light(1, 31), 2), (light(2, 32), 1)]);
    // While the addresses of the nodes are uncertain.
    scene.reaches("a command during the swap", 1, 41, 0);
    scene.reaches("a command during the swap", 2, 42, 1);
    scene.home.change(0, LEVEL, &[51]);
    scene.home.change(1, LEVEL, &[52]);
    scene.says("swapped", begun, &format!("{}/lightLevel", of(1)), "51");
    scene.says("swapped", begun, &format!("{}/lightLevel", of(2)), "52");
    for serial in [1, 2] {
        scene.says("swapped", begun, &available(serial), "online");
    }
}

#[test]
fn two_nodes_swap_their_addresses_without_a_word() {
    let Some(mut scene) = Scene::new(4, "silent-swap", &[light(1, 11), light(2, 22)].map(silent)) else { return };
    let before = [1, 2].map(|serial| scene.listener.wait_for(&available(serial), "online"));
    scene.becomes(&[(silent(light(1, 31)), 2), (silent(light(2, 32)), 1)]);
    scene.reaches("a command after a silent swap", 2, 42, 1);
    scene.reaches("a command after a silent swap", 1, 41, 0);
    let after = [1, 2].map(|serial| scene.listener.wait_for(&available(serial), "online"));
    assert_eq!(after, before, "they were offline: Home Assistant drops commands then");
}

#[test]
fn a_node_moves_and_another_takes_its_place() {
    let Some(mut scene) = Scene::new(5, "move", &[light(1, 11), light(2, 22)]) else { return };
    let begun = Instant::now();
    scene.becomes(&[(light(1, 31), 7), (light(2, 22), 2)]);
    scene.reaches("a command after a move", 1, 41, 0);
    scene.says("moved", begun, &available(1), "online");

    // A new device at the address of an old one, which is nowhere now.
    let begun = Instant::now();
    scene.becomes(&[(light(3, 33), 7), (light(2, 22), 2)]);
    scene.says("replaced", begun, &available(1), "offline");
    scene.says("replaced", begun, &available(3), "online");
    scene.says("replaced", begun, &format!("{}/lightLevel", of(3)), "33");
    scene.listener.command(&format!("{}/lightLevel", of(1)), "99");
    scene.reaches("a command to the new one", 3, 43, 0);
    assert_eq!(scene.listener.values()[&available(1)], "offline");

    // It comes back somewhere else; commands to the new node were not for it.
    let begun = Instant::now();
    scene.home.serve(&light(1, 61), 9);
    scene.says("back", begun, &available(1), "online");
    scene.reaches("a command after it came back", 1, 71, 2);
}

#[test]
fn a_node_with_two_addresses_is_one() {
    let Some(mut scene) = Scene::new(6, "two-addresses", &[light(1, 11), light(2, 22)]) else { return };
    scene.home.serve(&light(1, 11), 9);
    // When a later node is there, the bridge has dealt with the second address.
    let begun = Instant::now();
    scene.home.serve(&light(3, 33), 10);
    scene.says("found", begun, &format!("{}/lightLevel", of(3)), "33");
    assert_eq!(scene.listener.devices(3).len(), 3);
    // Without its first address it is asked at the other. Only the first of several commands waits until that is clear.
    scene.home.nodes.remove(0);
    let night = format!("{}/lightLevelForNightLighting", of(1));
    let (begun, level) = (Instant::now(), format!("{}/lightLevel", of(1)));
    scene.listener.command(&level, "41");
    scene.listener.command(&night, "42");
    let [first, second] = [(&level, "41"), (&night, "42")].map(|(topic, payload)| {
        scene.says("a command to the second address", begun, topic, payload);
        Instant::now()
    });
    assert_eq!((scene.home.value(1, LEVEL), scene.home.value(1, 0xB9)), (vec![41], vec![42]));
    assert!(second.saturating_duration_since(first) < Duration::from_secs(1), "each command waits by itself");
}

#[test]
fn after_a_restart_what_is_not_there_is_offline_and_can_be_cleaned_away() {
    let plans = [light(1, 11), light(2, 22), light(3, 33), light(4, 44)];
    let Some(mut scene) = Scene::new(8, "restart", &plans) else { return };
    // The bridge dies, and half of the devices go.
    drop(scene.bridge.take());
    scene.listener.wait_for("echonet/bridge/availability", "offline");
    assert_eq!(scene.listener.values()[&available(3)], "online", "what is retained is as it was");
    scene.home.nodes.truncate(2);
    let begun = Instant::now();
    scene.bridge = Some(bridge(scene.net, &scene.broker, "1"));
    for (serial, state) in [(3, "offline"), (4, "offline"), (1, "online"), (2, "online")] {
        scene.says("restarted", begun, &available(serial), state);
    }
    scene.says("restarted", begun, "echonet/bridge/availability", "online");
    drop(scene.bridge.take());

    let (address, url) = (format!("127.75.{}.2", scene.net), format!("mqtt://127.0.0.1:{}", scene.broker.port));
    let port = (PORT + u16::from(scene.net)).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--port", &port, "--address", &address, "--timeout", "4", "bridge", &url, "--clean"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().count(), 2, "{said}");
    // A new client hears what is still retained.
    let listener = Listener::new(&scene.broker);
    listener.wait_for(&available(1), "online");
    listener.wait_for(&available(2), "online");
    let ghosts = |topic: &&String| [3, 4].iter().any(|serial| topic.contains(&format!("{serial:026x}")));
    listener.wait("a retained value of a device that is there", |heard| {
        heard.keys().any(|topic| topic.starts_with(&of(1))).then_some(())
    });
    let values = listener.values();
    assert_eq!(values.keys().filter(ghosts).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// A user sees why a command came to nothing.
#[test]
fn a_refusal_is_an_event_of_the_device() {
    let eoj = echonet_lite::wire::Eoj::new(0x02, 0x90, 1);
    let plan = NodePlan { faults: vec![Fault::of_property(Kind::Unwritable, eoj, LEVEL)], ..light(1, 11) };
    let Some(scene) = Scene::new(9, "refusal", &[plan]) else { return };
    let (topic, trouble) = (format!("{}/lightLevel", of(1)), format!("{}/trouble", of(1)));
    scene.listener.command(&topic, "77");
    let said = |heard: &Heard| heard.get(&trouble).map(|(text, _)| text.clone());
    let event: Value = serde_json::from_str(&scene.listener.wait("a refusal", said)).unwrap();
    assert_eq!(event["event_type"], "refused", "{event}");
    assert_eq!((&event["property"], &event["value"]), (&json!("lightLevel"), &json!("77")));
    scene.listener.wait_for(&topic, "11");
}
