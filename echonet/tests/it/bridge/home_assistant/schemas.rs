//! Home Assistant validates descriptions while another of its threads imports a platform. The import compiles parts of all
//! schemas anew, and a part that is being compiled lets everything pass without its defaults. Under load this happened to
//! one entity of thousands, which was missing then.

use super::*;

const NET: u8 = 72;

#[test]
fn descriptions_need_no_defaults_of_schemas() {
    if !is_there() {
        return;
    }
    let Some(kit) = server::installed() else { return };
    let broker = Mosquitto::start("hass-schemas");
    let _home = home(NET, &CLASSES.map(|code| class::by_name(code).unwrap()), 1);
    let _bridge = bridge(NET, &broker, "1");
    let descriptions = Listener::new(&broker).devices(CLASSES.len());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("descriptions.json");
    std::fs::write(&file, json!(descriptions).to_string()).unwrap();
    let mut python = Command::new(kit.join("venv/bin/python"));
    let printed = test_peers::printed(python.arg(kit.join("schemas.py")).arg(file));
    println!("{printed}");
    let counts: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(counts["stated"]["differ"], 0);
    assert_ne!(counts["left_out"]["differ"], 0, "nothing happens to descriptions without them, either");
}
