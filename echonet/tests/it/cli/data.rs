//! Makers, makers' properties and classes of a user's file.

use super::*;

/// Properties of a maker, one of them of one product, and a class.
pub const FILE: &str = r#"
[[maker]]
code = "0000FE"
name = "Example Works"

[[property]]
maker = "0000FE"
class = "homeAirConditioner"
epc = "F0"
name = "purifierPower"
access = ["get", "set", "announce"]
type = "number"
format = "uint16"
unit = "W"
range = [0, 150.5]
multiple = 0.1

[[property]]
maker = "0000FE"
class = "homeAirConditioner"
product = "echonet"
epc = "F1"
name = "nightMode"
access = ["get", "set", "announce"]
type = "state"
values = { 41 = "on", 42 = "off", 43 = "auto" }

[[property]]
maker = "0000FE"
class = "homeAirConditioner"
product = "another"
epc = "F2"
name = "ofAnotherProduct"
type = "raw"
size = 1

[[class]]
code = "05F1"
name = "petFeeder"
title = "Feeder for pets"

[[class.property]]
epc = "E0"
name = "label"
access = ["get", "set", "announce"]
type = "text"
size = 8

[[class.property]]
epc = "E1"
name = "state"
access = ["get", "announce"]
type = "bitmap"
size = 1
flags = [{ name = "lidOpen", bit = 0 }, { name = "empty", bit = 7 }]

[[class.property]]
epc = "E2"
name = "asleep"
access = ["get", "set", "announce"]
type = "state"
values = { 30 = "on", 31 = "off" }
"#;

/// The file, written for a test.
pub fn file(test: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.toml"));
    std::fs::write(&path, FILE).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A node with the properties and the class of the file.
pub struct Device(Running);

/// Serves such a node; it ends with the test.
pub fn serve(file: &str, port: u16, address: &str) -> Device {
    let port = port.to_string();
    let serve = ["--quiet", "--json", "--data", file, "--port", &port, "--address", address, "serve", "--delay", "0"];
    let maker = ["--serial", "1", "--maker", "0000FE", "homeAirConditioner", "petFeeder"];
    let mut running = Running::start(&[&serve[..], &maker].concat());
    for class in ["homeAirConditioner", "petFeeder"] {
        assert_eq!(running.next()["object"]["class"], class);
    }
    Device(running)
}

impl Device {
    /// Changes a property, as the device itself does: `CLASS PROPERTY=VALUE`.
    pub fn change(&mut self, change: &str) {
        writeln!(self.0.stdin, "{change}").unwrap();
    }
}

#[test]
fn properties_of_makers_and_classes_of_the_user_have_names_and_values() {
    let (file, port, node) = (file("user-data"), "13641", "127.0.62.31");
    let mut device = serve(&file, 13_641, node);
    let head = ["--quiet", "--json", "--port", port, "--address", "127.0.62.32", "--timeout", "2"];
    let tool = |rest: &[&str], code: i32| check(&[&head[..], &["--data", &file], rest].concat(), code);
    let properties = |text: &str| lines(text).remove(0)["properties"].clone();

    let set = ["set", node, "homeAirConditioner", "purifierPower=12.5 W", "nightmode=auto"];
    assert_eq!(properties(&tool(&set, 0))[1]["value"], "auto");
    let got = properties(&tool(&["get", node, "homeAirConditioner", "purifierPower", "F1", "targetTemperature"], 0));
    let expected = json!({ "epc": "0xF0", "name": "purifierPower", "edt": "007D", "value": 12.5, "unit": "W" });
    assert_eq!(got[0], expected);
    assert_eq!((&got[1]["name"], &got[1]["value"]), (&json!("nightMode"), &json!("auto")));
    assert_eq!(got[2]["name"], "targetTemperature");
    let all = properties(&tool(&["get", node, "homeAirConditioner"], 0));
    assert!(all.as_array().unwrap().iter().any(|property| property["name"] == "purifierPower"));
    // A value out of range, and a property that only another product has.
    tool(&["set", node, "homeAirConditioner", "purifierPower=151"], 2);
    tool(&["get", node, "homeAirConditioner", "ofAnotherProduct"], 2);
    let rest = ["--data", &file, "get", node, "homeAirConditioner", "ofAnotherProduct"];
    let refused = stderr(&run(&[&head[..], &rest].concat()));
    assert!(refused.contains("a property of maker 0000FE, product another alone"), "{refused}");
    // Without the file it is a code.
    let text = check(&[&head[..], &["get", node, "homeAirConditioner", "F0"]].concat(), 0);
    assert_eq!((&properties(&text)[0]["name"], &properties(&text)[0]["value"]), (&Value::Null, &Value::Null));

    tool(&["set", node, "petFeeder", "label=Kitty \"\\"], 0);
    let got = properties(&tool(&["get", node, "petFeeder", "label", "state", "asleep"], 0));
    assert_eq!(
        (&got[0]["value"], &got[1]["value"]),
        (&json!("Kitty \"\\"), &json!({ "lidOpen": false, "empty": false }))
    );
    tool(&["set", node, "petFeeder", "label=nine bytes"], 2);

    let found = check(&["--port", port, "--address", "127.0.62.32", "--timeout", "1", "--data", &file, "discover"], 0);
    assert!(found.contains("0000FE Example Works") && found.contains("petFeeder:1"), "{found}");
    let classes = check(&["--data", &file, "classes", "petFeeder"], 0);
    assert!(classes.contains("Feeder for pets") && classes.contains("text of 8 bytes"), "{classes}");

    let head = ["--quiet", "--json", "--port", port, "--address", "127.0.62.32", "--timeout", "10"];
    let mut watch = Running::start(&[&head[..], &["--data", &file, "watch"]].concat());
    let is_told = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The watcher is told again until it listens.
        scope.spawn(|| {
            for watts in (0..100).take_while(|_| !is_told.load(std::sync::atomic::Ordering::Relaxed)) {
                device.change(&format!("homeAirConditioner purifierPower={watts}"));
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let news = watch.next_of("purifierPower");
        is_told.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!((&news["property"]["unit"], news["property"]["value"].is_number()), (&json!("W"), true));
    });
}

#[test]
fn a_file_with_a_mistake_is_refused_at_the_start() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong-data.toml");
    let path = file.to_str().unwrap();
    for (text, parts) in [
        ("[[maker]]\ncode = \"FE\"\nname = \"a\"", &["line 2", "code = \"FE\"", "six hexadecimal digits"][..]),
        ("[[property]]\nmakr = \"0000FE\"", &["line 2", "unknown field `makr`"]),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in [&["classes"][..], &["get", "127.0.0.1", "node"], &["watch"], &["discover"]] {
            let output = run(&[&["--data", path], command].concat());
            assert_eq!(output.status.code(), Some(2));
            let error = stderr(&output);
            assert!(error.contains(path) && parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
    std::fs::remove_file(&file).unwrap();
    assert!(stderr(&run(&["--data", path, "classes"])).contains(path));
}
