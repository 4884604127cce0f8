//! The pictures of docs/echonet-lite/home.md: a home of emulated devices in Home Assistant's own pages.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use echonet_lite::emulate::{NodePlan, ObjectPlan};
use test_peers::Browser;

use super::*;

const NET: u8 = 71;
const LARGEST: usize = 200 * 1024;

/// Class, name and room of a device, and the values that its page shows.
type Row = (&'static str, &'static str, &'static str, &'static [(u8, &'static [u8])]);

const DEVICES: &[Row] = &[
    (
        "0130",
        "Air conditioner",
        "Living room",
        &[
            (0x80, &[0x30]),
            (0x84, &410_u16.to_be_bytes()),
            (0x85, &212_400_u32.to_be_bytes()),
            (0xA0, &[0x41]),
            (0xB0, &[0x43]),
            (0xB3, &[22]),
            (0xB8, &[0x02, 0x58, 0x02, 0x8A, 0x01, 0x2C, 0x00, 0x28]),
            (0xB9, &42_u16.to_be_bytes()),
            (0xBA, &[44]),
            (0xBB, &[21]),
            (0xBD, &[38]),
            (0xBE, &[6]),
        ],
    ),
    ("0290", "Ceiling light", "Living room", &[(0x80, &[0x30]), (0xB0, &[80])]),
    ("0290", "Bedside light", "Bedroom", &[(0x80, &[0x31]), (0xB0, &[40])]),
    ("0260", "Blind", "Living room", &[(0xE0, &[0x41]), (0xE1, &[70]), (0xEA, &[0x41])]),
    ("026F", "Front door", "Hall", &[(0xE0, &[0x41]), (0xE3, &[0x42])]),
    ("0011", "Thermometer", "Bedroom", &[(0xE0, &194_u16.to_be_bytes())]),
    ("0012", "Hygrometer", "Bedroom", &[(0xE0, &[48])]),
    ("001B", "Air quality", "Living room", &[(0xE0, &640_u16.to_be_bytes())]),
    (
        "0288",
        "Electricity meter",
        "Hall",
        &[
            (0xD3, &1_u32.to_be_bytes()),
            (0xD7, &[6]),
            (0xE0, &125_316_u32.to_be_bytes()),
            (0xE1, &[0x01]),
            (0xE7, &1240_u32.to_be_bytes()),
        ],
    ),
    ("0279", "Solar power", "Roof", &[(0xE0, &2380_u16.to_be_bytes()), (0xE1, &8_410_500_u32.to_be_bytes())]),
    ("026B", "Water heater", "Hall", &[(0xB0, &[0x41]), (0xB2, &[0x41]), (0xB3, &[65]), (0xC1, &[58])]),
];

fn plan((at, (code, .., values)): (usize, &Row)) -> NodePlan {
    let mut object = ObjectPlan::new(class::by_name(code).unwrap(), 1);
    object.values = values.iter().map(|(epc, edt)| (*epc, edt.to_vec())).collect();
    NodePlan::new(at as u64 + 1, [object])
}

/// The entity of a device, by its name, and of one of its properties.
fn entity(scene: &Scene, entities: &BTreeMap<String, Value>, name: &str, property: &str) -> String {
    let at = DEVICES.iter().position(|(_, of, ..)| *of == name).unwrap();
    scene.entity(entities, at, property).unwrap_or_else(|| panic!("{name} has no {property}"))
}

/// A dashboard as a user makes it.
fn dashboard(scene: &Scene, entities: &BTreeMap<String, Value>) -> Value {
    let of = |name: &str, property: &str| entity(scene, entities, name, property);
    let tile = |name: &str, property: &str, features: &[&str]| {
        let features: Vec<_> = features.iter().map(|kind| json!({"type": kind})).collect();
        json!({
            "type": "tile", "entity": of(name, property), "name": name, "state_content": "state", "features": features,
        })
    };
    let heading = |text: &str| json!({"type": "heading", "heading": text});
    let thermostat = json!({
        "type": "thermostat", "entity": of("Air conditioner", "main"), "name": "Air conditioner",
        "features": [{"type": "climate-hvac-modes"}],
    });
    let gauge = json!({
        "type": "gauge", "entity": of("Electricity meter", "instantaneousElectricPower"), "name": "From the grid",
        "min": -4000, "max": 6000, "needle": true,
    });
    let sections = json!([
        {"type": "grid", "cards": [heading("Living room"), thermostat]},
        {"type": "grid", "cards": [
            heading("Lights, blind, door"),
            tile("Ceiling light", "main", &["light-brightness"]),
            tile("Bedside light", "main", &["light-brightness"]),
            tile("Blind", "main", &["cover-open-close", "cover-position"]),
            tile("Front door", "main", &["lock-commands"]),
            heading("Air"),
            tile("Thermometer", "value", &[]),
            tile("Hygrometer", "value", &[]),
            tile("Air quality", "value", &[]),
            tile("Water heater", "main", &[]),
        ]},
        {"type": "grid", "cards": [
            heading("Energy"),
            gauge,
            tile("Electricity meter", "normalDirectionCumulativeElectricEnergy", &[]),
            tile("Solar power", "instantaneousElectricPowerGeneration", &[]),
        ]},
    ]);
    json!({"views": [{"title": "Home", "type": "sections", "max_columns": 3, "sections": sections}]})
}

/// All texts of a page, those of its components among them.
const TEXTS: &str = "const texts = []; const walk = (node) => { if (node.nodeType === 3) texts.push(node.data); \
                     if (node.shadowRoot) walk(node.shadowRoot); node.childNodes.forEach(walk); }; \
                     walk(document.body); return texts.join(' ')";

/// Opens a page, waits until it shows all of these words, and keeps its picture.
fn take(browser: &Browser, url: &str, (width, height): (u32, u32), words: &[&str], name: &str) {
    browser.appear(width, height, "light");
    browser.open(url);
    let end = Instant::now() + PATIENCE;
    loop {
        let texts = browser.run(TEXTS);
        let texts = texts.as_str().unwrap();
        let missing: Vec<_> = words.iter().filter(|word| !texts.contains(**word)).collect();
        if missing.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "{url} does not show {missing:?}: {texts}");
        thread::sleep(Duration::from_millis(200));
    }
    // The cards move to their places.
    thread::sleep(Duration::from_secs(3));
    let picture = BASE64_STANDARD.decode(browser.screenshot()).unwrap();
    println!("{name}: {} bytes", picture.len());
    assert!(picture.starts_with(b"\x89PNG") && picture.len() < LARGEST, "{name}: {} bytes", picture.len());
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/echonet-lite");
    std::fs::write(folder.join(format!("home-{name}.png")), picture).unwrap();
}

/// Writes the pictures of docs/echonet-lite/home.md: `cargo test -p echonet pictures_of_a_home -- --ignored`.
#[test]
#[ignore = "writes into docs/echonet-lite"]
fn pictures_of_a_home() {
    if !is_there() {
        return;
    }
    let broker = Mosquitto::start("pictures");
    let Some(hass) = HomeAssistant::start("pictures", &broker) else { return };
    let home = Home::of([127, 74, NET], PORT + u16::from(NET), DEVICES.iter().enumerate().map(plan));
    let wishes = DEVICES.iter().enumerate().map(|(at, (_, name, area, _))| {
        let place = topic(&home, at).replacen("echonet/", "", 1);
        format!("[device.\"{place}\"]\nname = \"{name}\"\narea = \"{area}\"\n")
    });
    let config = hass.folder.join("bridge.toml");
    std::fs::write(&config, wishes.collect::<String>()).unwrap();
    let bridge = bridge_with(NET, &broker, "1", &["--config", config.to_str().unwrap()]);
    let scene = Scene { home, _bridge: bridge, hass, _broker: broker };
    let entities = scene.registry(DEVICES.len());
    let socket = &scene.hass.socket;
    socket.ask("lovelace/config/save", json!({"config": dashboard(&scene, &entities)})).unwrap();

    let Some(browser) = Browser::start(&scene.hass.folder) else { return };
    let rest = &scene.hass.rest;
    let mut tokens = rest.tokens.clone();
    let url = rest.url("");
    (tokens["hassUrl"], tokens["clientId"]) = (url.as_str().into(), rest.url("/").into());
    // In milliseconds; a page whose token has no time of its end asks for another one.
    tokens["expires"] = json!(4_000_000_000_000_u64);
    browser.open(&rest.url("/manifest.json"));
    browser.run(&format!("localStorage.setItem('hassTokens', JSON.stringify({tokens}))"));
    browser.run("localStorage.setItem('dockedSidebar', JSON.stringify('always_hidden'))");
    let words = ["Heating", "80%", "Locked", "19.4", "640", "1,240", "12,531.6", "2,380", "Eco"];
    take(&browser, &rest.url("/lovelace/0"), (1200, 660), &words, "dashboard");
    let devices = scene.hass.registry("device");
    let device = devices.iter().find(|device| device["name"] == "Air conditioner").unwrap();
    let page = rest.url(&format!("/config/devices/device/{}", device["id"].as_str().unwrap()));
    take(&browser, &page, (900, 900), &["Air conditioner", "Living Room", "212.4", "Outdoor air temp"], "device");
}
