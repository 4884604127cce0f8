//! The home in a genuine Home Assistant: what its user sees of every class, and what its services do.

mod commands;
mod expected;
mod fakes;
#[cfg(feature = "web")]
mod identity;
mod language;
#[cfg(feature = "web")]
mod page;
mod pictures;
mod rest;
mod schemas;
mod server;
mod socket;

use std::collections::BTreeMap;

use commands::Way;
use server::HomeAssistant;

use super::*;

/// Home Assistant shows a change within this time (the requirement is 5 s; the rest is for a loaded machine).
const SOON: Duration = Duration::from_secs(30);

/// A home with its broker and bridge in Home Assistant.
struct Scene {
    home: Home,
    _bridge: Running,
    hass: HomeAssistant,
    _broker: Mosquitto,
}

/// Values of a node's first object.
fn values(home: &Home, at: usize) -> HashMap<u8, Vec<u8>> {
    home.nodes[at].1.with_node(|device| device.objects()[0].values().map(|(epc, edt)| (epc, edt.to_vec())).collect())
}

/// The permanent id of a node's first object in Home Assistant.
fn unique(home: &Home, at: usize) -> String {
    topic(home, at).replacen("echonet/", "echonet_", 1).replace('/', "_")
}

impl Scene {
    /// With all properties of all objects enabled, and names in a language.
    fn new(net: u8, name: &str, classes: &[&'static class::Class], language: &str) -> Option<Self> {
        if !is_there() {
            return None;
        }
        let broker = Mosquitto::start(name);
        let hass = HomeAssistant::start(name, &broker)?;
        let home = home(net, classes, 1);
        let wishes = classes.iter().enumerate().map(|(at, class)| {
            let names: Vec<_> = class.all_properties().map(|spec| spec.short_name).collect();
            let place = topic(&home, at).replacen("echonet/", "", 1);
            format!("[device.\"{place}\"]\nenable = {}\n", json!(names))
        });
        let config = hass.folder.join("bridge.toml");
        std::fs::write(&config, format!("language = \"{language}\"\n") + &wishes.collect::<String>()).unwrap();
        let bridge = bridge_with(net, &broker, "1", &["--config", config.to_str().unwrap()]);
        Some(Self { home, _bridge: bridge, hass, _broker: broker })
    }

    /// Entities of the registry by their permanent ids, when all of these devices have come and have their values.
    fn registry(&self, devices: usize) -> BTreeMap<String, Value> {
        let end = Instant::now() + PATIENCE;
        let is_ours = |device: &&Value| device["identifiers"][0][0] == "mqtt";
        loop {
            let found = self.hass.registry("device").iter().filter(is_ours).count();
            let entities = self.hass.registry("entity");
            let entities: Vec<_> = entities.into_iter().filter(|entity| entity["platform"] == "mqtt").collect();
            let states = self.hass.socket.states();
            let waits = |entity: &&Value| {
                let state = states.get(entity["entity_id"].as_str().unwrap_or_default());
                entity["disabled_by"].is_null() && state.is_none_or(|state| state["state"] == "unavailable")
            };
            let waiting = entities.iter().filter(waits).count();
            if found == devices && waiting == 0 {
                let id = |entity: &Value| entity["unique_id"].as_str().unwrap_or_default().to_owned();
                return entities.into_iter().map(|entity| (id(&entity), entity)).collect();
            }
            assert!(Instant::now() < end, "{found} devices of {devices}, {waiting} entities without a value");
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// The faults of all entities of single properties.
    fn faults(&self, classes: &[&'static class::Class], entities: &BTreeMap<String, Value>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut count = 0;
        for (at, class) in classes.iter().enumerate() {
            for expected in expected::entities(class, &values(&self.home, at)) {
                count += 1;
                let Some(entity) = self.entity(entities, at, &expected.id) else {
                    faults.push(format!("{}: {} is not there", class.short_name, expected.id));
                    continue;
                };
                let expected = self.in_its_words(expected, &entity);
                // The last values arrive after the description.
                let shown = |state: &Value| expected.faults(state).is_empty();
                if let Err(state) = self.hass.socket.until(&entity, PATIENCE, shown) {
                    faults.extend(expected.faults(&state).into_iter().map(|fault| format!("{entity}: {fault}")));
                }
            }
        }
        println!("{count} entities of single properties");
        faults
    }
}

/// All classes of devices.
fn classes() -> Vec<&'static class::Class> {
    class::all().iter().copied().filter(|class| class.code.to_u16() < 0x0E00).collect()
}

/// The faults of names and ids: ids that Home Assistant had to make different, names for programs.
fn faults_of_names(entities: &BTreeMap<String, Value>) -> Vec<String> {
    let mut faults = Vec::new();
    for entity in entities.values() {
        let (id, name) = (entity["entity_id"].as_str().unwrap(), entity["original_name"].as_str().unwrap_or_default());
        // Japanese names end with wide digits.
        let last = name.chars().last().map_or(' ', |last| match last {
            '０'..='９' => char::from((last as u32 - '０' as u32) as u8 + b'0'),
            _ => last,
        });
        let is_doubled = id
            .rsplit_once('_')
            .is_some_and(|(_, end)| end.len() == 1 && !end.starts_with(last) && "23456789".contains(end));
        let pairs = name.as_bytes().windows(2);
        let is_for_programs = !name.contains("Hz")
            && pairs.clone().any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
        if is_doubled || is_for_programs || id.ends_with('_') || name.len() > 120 {
            faults.push(format!("{id}: {name}"));
        }
    }
    faults
}

#[test]
fn a_home_of_all_classes() {
    let classes = classes();
    let Some(scene) = Scene::new(40, "all-classes", &classes, "en") else { return };
    let begun = Instant::now();
    let entities = scene.registry(classes.len());
    println!("{} devices with {} entities after {:?}", classes.len(), entities.len(), begun.elapsed());
    let mut faults = faults_of_names(&entities);
    faults.extend(scene.faults(&classes, &entities));
    faults.extend(scene.services_of_whole_devices(Way::WebSocket, &classes, &entities).1);
    faults.extend(scene.services_of_all_properties(&classes, &entities));
    faults.extend(scene.faults_of_rest(&classes, &entities));
    println!("all services after {:?}", begun.elapsed());
    faults.extend(scene.hass.complaints());
    faults.iter().for_each(|fault| println!("FAULT {fault}"));
    assert_eq!(faults.len(), 0, "{faults:#?}");
}
