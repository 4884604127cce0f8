//! The `echonet` command, run as its users run it: on addresses of the loopback interface, on a port of each test's own.

pub mod data;
mod language;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

const GET: &str = "1081 0001 05ff01 029001 62 01 8000";

fn echonet(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    echonet(arguments).output().expect("the command can be started")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs it with an exit code, and gives what it printed.
fn check(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// The lines of JSON that it printed.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

/// `echonet serve` or `watch`, which ends with the test.
struct Running {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut command = echonet(arguments);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// The next line of JSON.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
    }

    /// The next line that is about a property.
    fn next_of(&mut self, property: &str) -> Value {
        loop {
            let line = self.next();
            if line["property"]["name"] == property {
                return line;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node that serves these classes on a port and address of its own.
fn serve(port: &str, address: &str, classes: &[&str]) -> Running {
    let head = ["--quiet", "--json", "--port", port, "--address", address, "serve", "--delay", "0", "--serial", "7"];
    let mut running = Running::start(&[&head[..], classes].concat());
    for _ in classes {
        assert_eq!(running.next()["event"], "serving");
    }
    running
}

#[test]
fn frames_are_explained() {
    for (frame, expected) in [
        (GET, "controller:1 > generalLighting:1 Get operationStatus"),
        ("1081000102900105ff017201800130", "0x80 operationStatus  on"),
        ("10:81:00:01:01:30:01:05:ff:01:72:01:b3:01:16", "0xB3 targetTemperature  22 °C"),
        ("0x1081000101300105ff01 51 02 b3 01 33 80 00", "targetTemperature=0x33 (51 is not in 0..=50 °C) refused"),
        ("1081000101300105ff01 51 02 b3 01 33 80 00", "operationStatus accepted"),
        ("1081000105ff01013001 6e 01 800130 01 bb00", "SetGet operationStatus=on / roomTemperature"),
        ("108100010ef0010ef001 73 01 d5 04 01029001", "generalLighting:1"),
        ("1081000102900105ff01 72 01 9f 03 02 80 ff", "operationStatus, 0xFF"),
        ("108200090102", "format 2, 2 bytes: 01 02"),
    ] {
        let text = check(&["decode", frame], 0);
        assert!(text.contains(expected), "{frame}: {text}");
    }
}

#[test]
fn bytes_that_are_no_frame() {
    for (bytes, offset, part) in [
        ("1081 0001 05ff01 029001 62 01 80", 13, "byte 13: the frame ends inside a field"),
        ("1081 0001 05ff01 029001 62 00", 11, "byte 11: OPC is 0"),
        ("1081 0001 05ff01 029001 62 01 8000 ff", 14, "byte 14: bytes follow the last property"),
        ("1081 0001 05ff01 029001 64 01 8000", 10, "byte 10: ESV 0x64 is unknown"),
        ("2081 0001", 0, "byte 0: EHD1 is 0x20"),
        ("1083 0001", 1, "byte 1: EHD2 is 0x83"),
    ] {
        let output = run(&["--json", "decode", bytes]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{bytes}: {}", stderr(&output));
        assert_eq!(lines(&stdout(&output))[0]["error"]["offset"], offset, "{bytes}");
    }
    for text in ["108", "10 8g", "-"] {
        check(&["decode", text], 2);
    }
}

#[test]
fn frames_as_json() {
    let text = check(&["--json", "decode", "1081000101300105ff01 52 02 b3 01 16 80 00"], 0);
    let expected = json!({
        "tid": "0x0001",
        "seoj": { "eoj": "0x013001", "class": "homeAirConditioner", "instance": 1 },
        "deoj": { "eoj": "0x05FF01", "class": "controller", "instance": 1 },
        "esv": "Get_SNA",
        "properties": [
            { "epc": "0xB3", "name": "targetTemperature", "edt": "16", "value": 22, "unit": "°C" },
            { "epc": "0x80", "name": "operationStatus", "status": "refused" },
        ],
    });
    assert_eq!(lines(&text), [expected]);
}

#[test]
fn standard_input_is_decoded_line_by_line() {
    let mut child = echonet(&["--json", "decode"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("# two\n{GET}\n\n{GET} 00\n{GET}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(lines(&stdout(&output)).len(), 3, "the one at fault does not end it");
}

#[test]
fn classes_are_listed() {
    let all = lines(&check(&["--json", "classes"], 0));
    assert!(all.len() >= 57 && all.iter().any(|class| class["class"] == "homeAirConditioner"));
    let one = lines(&check(&["--json", "classes", "0x0130"], 0)).remove(0);
    let properties = one["properties"].as_array().unwrap();
    let target = properties.iter().find(|property| property["epc"] == "0xB3").unwrap();
    assert_eq!(
        (&target["name"], &target["set"], &target["unit"]),
        (&json!("targetTemperature"), &json!("required"), &json!("°C"))
    );
    assert!(check(&["classes", "GENERALLIGHTING", "--lang", "ja"], 0).contains("一般照明"));
    // A switch is on or off, as `get` shows it; a name of several codes stands there once.
    let classes = check(&["classes", "0130"], 0);
    for (property, values) in
        [("operationStatus", "on, off"), ("faultStatus", "true, false"), ("remoteControl", "true, false")]
    {
        let row = classes.lines().find(|line| line.split_whitespace().nth(1) == Some(property)).unwrap();
        assert!(row.ends_with(&format!("  {values}")), "{row}");
    }
    assert!(check(&["classes", "light"], 0).contains("generalLighting"), "not lightingSystem");
}

#[test]
fn invalid_names_and_arguments_fail_with_a_reason() {
    for (arguments, part) in [
        (&["classes", "homeAirConditoner"][..], "did you mean homeAirConditioner?"),
        (&["classes", "electric"], "ambiguous: electricLeakSensor"),
        (&["get", "127.0.62.1", "homeAirConditioner", "targetTemprature"], "targetTemperature"),
        (&["get", "127.0.62.1", "homeAirConditioner:200"], "from 1 to 127"),
        (&["get", "no.such.node.invalid", "homeAirConditioner"], "no address of a node"),
        (&["get", "127.0.62.1:99", "homeAirConditioner"], "port 3610"),
        (
            &["set", "127.0.62.1", "homeAirConditioner", "targetTemperature=51"],
            "0xB3 target temperature: 51 is not in 0..=50 °C",
        ),
        (&["set", "127.0.62.1", "homeAirConditioner", "targetTemperature"], "says no value"),
        (&["set", "127.0.62.1", "homeAirConditioner", "F1=12"], "give its bytes as 0x"),
        (&["serve", "nodeProfile"], "cannot be served"),
        (&["serve", "generalLighting:1", "029001"], "named twice"),
        (&["dump", "--read", "/nonexistent"], "/nonexistent"),
        (&["discover", "--interface", "none0"], "no interface named none0"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
    check(&["get"], 1);
    check(&["--timeout", "soon", "discover"], 1);
    check(&["--address", "203.0.113.1", "discover"], 5);
}

#[test]
fn a_served_node_is_found_read_and_written() {
    let port = "13621";
    let mut node = serve(port, "127.0.62.1", &["homeAirConditioner", "generalLighting:3", "generalLighting"]);
    let head = ["--json", "--port", port, "--address", "127.0.62.2", "--timeout", "2"];
    let tool = |rest: &[&'static str]| [&head[..], rest].concat();

    let found = lines(&check(&tool(&["discover"]), 0));
    let names: Vec<_> = found[0]["objects"].as_array().unwrap().iter().map(|object| &object["eoj"]).collect();
    assert_eq!((found.len(), &found[0]["address"]), (1, &json!("127.0.62.1")));
    assert_eq!(names, ["0x013001", "0x029001", "0x029003"]);
    assert_eq!(found[0]["maker"], "000077");

    let target = |edt: &str, value: u8| json!({ "epc": "0xB3", "name": "targetTemperature", "edt": edt, "value": value, "unit": "°C" });
    let read = lines(&check(&tool(&["get", "127.0.62.1", "homeair:1", "b3"]), 0));
    assert_eq!(read[0]["properties"], json!([target("16", 22)]));
    assert_eq!(read[0]["object"], json!({ "eoj": "0x013001", "class": "homeAirConditioner", "instance": 1 }));

    let mut accepted = target("19", 25);
    accepted["status"] = json!("accepted");
    let written = lines(&check(&tool(&["set", "127.0.62.1", "013001", "targetTemperature=25 C"]), 0));
    assert_eq!(written[0]["properties"], json!([accepted]));
    let told = node.next_of("targetTemperature");
    assert_eq!((&told["event"], &told["property"]), (&json!("set"), &target("19", 25)));

    // Everything, with more properties than a map can list, and every instance of a class.
    let all = lines(&check(&tool(&["get", "127.0.62.1", "homeAirConditioner"]), 0));
    let all = all[0]["properties"].as_array().unwrap();
    assert!(all.len() > 40 && all.contains(&target("19", 25)), "{}", all.len());
    assert!(all.iter().all(|property| property["status"].is_null()), "all that the map names is there");
    let lights = lines(&check(&tool(&["get", "127.0.62.1", "generalLighting:all", "operationStatus"]), 0));
    assert_eq!(lights.len(), 2);

    // Refused: no such property; one that can only be read; a value past the command's own check.
    let none = lines(&check(&tool(&["get", "127.0.62.1", "generalLighting:3", "0xF1", "80"]), 4));
    assert_eq!(none[0]["properties"][0], json!({ "epc": "0xF1", "name": null, "status": "refused" }));
    assert_eq!(none[0]["properties"][1]["value"], true);
    check(&tool(&["set", "127.0.62.1", "generalLighting:3", "faultStatus=true"]), 4);
    check(&tool(&["set", "127.0.62.1", "generalLighting:3", "0xF1=0x01"]), 4);
    // An object that the node does not have, which it says nothing about.
    for (object, rest) in [("generalLighting:2", ["get", "80"]), ("airCleaner:all", ["set", "80=0x30"])] {
        let output = run(&[&head[..3], &["--address", "127.0.62.2", rest[0], "127.0.62.1", object, rest[1]]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let has =
            format!("127.0.62.1 has no {object}; it has homeAirConditioner:1, generalLighting:1, generalLighting:3");
        assert!(stderr(&output).contains(&has), "{}", stderr(&output));
    }
    // No node at that address, and none to be found.
    check(&["--port", port, "--address", "127.0.62.2", "--timeout", "0.3", "get", "127.0.62.3", "node", "80"], 3);
    check(&["--port", "13629", "--address", "127.0.62.2", "--timeout", "0.3", "discover"], 3);
}

#[test]
fn changes_are_watched() {
    let port = "13622";
    let mut node = serve(port, "127.0.62.4", &["generalLighting"]);
    let head = ["--quiet", "--json", "--port", port, "--address", "127.0.62.5", "watch"];
    let mut watch = Running::start(&[&head[..], &["127.0.62.4", "--interval", "0.2"]].concat());
    // The first round tells all there is; then it listens for sure.
    let first = watch.next_of("lightLevel");
    assert_eq!((&first["source"], &first["property"]["value"]), (&json!("poll"), &json!(50)));
    node.stdin.write_all(b"generalLighting lightLevel=70 %\n").unwrap();
    assert_eq!(node.next()["event"], "changed");
    let news = watch.next_of("lightLevel");
    assert_eq!((&news["property"]["value"], &news["property"]["unit"]), (&json!(70), &json!("%")));
    assert_eq!((&news["address"], &news["object"]["eoj"]), (&json!("127.0.62.4"), &json!("0x029001")));

    node.stdin.write_all(b"generalLighting:1 operationStatus=off\n").unwrap();
    let news = watch.next_of("operationStatus");
    assert_eq!(news["property"]["edt"], "31");
}

#[test]
fn multicast_is_dumped_and_read_again() {
    let port = "13623";
    let file = std::env::temp_dir().join(format!("echonet-cli-{}.pcap", std::process::id()));
    let path = file.to_str().unwrap();
    let head =
        ["--json", "--port", port, "--interface", "lo", "--timeout", "20", "dump", "--count", "1", "--pcap", path];
    let mut dump = echonet(&head).spawn().unwrap();
    let mut said = BufReader::new(dump.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let _node = serve(port, "127.0.62.6", &["temperatureSensor"]);
    let live = lines(&stdout(&dump.wait_with_output().unwrap())).remove(0);
    assert_eq!((&live["esv"], &live["properties"][0]["value"]), (&json!("INF"), &json!(["temperatureSensor:1"])));

    let again = lines(&check(&["--json", "--port", port, "dump", "--read", path], 0)).remove(0);
    assert_eq!(again, live);
    let text = check(&["--port", port, "dump", "--verbose", "--read", path], 0);
    assert!(text.contains("127.0.62.6:13623 > 224.0.23.0:13623"), "{text}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn answers_are_counted_and_timed() {
    let port = "13624";
    let _node = serve(port, "127.0.62.7", &["generalLighting"]);
    let head = ["--json", "--port", port, "--address", "127.0.62.8", "bench", "127.0.62.7"];
    let report = lines(&check(&[&head[..], &["generalLighting", "80", "--window", "8", "--count", "500"]].concat(), 0));
    assert_eq!(
        (&report[0]["requests"], &report[0]["answered"], &report[0]["lost"]),
        (&json!(500), &json!(500), &json!(0))
    );
    assert!(report[0]["microseconds"]["p50"].as_f64().unwrap() > 0.0);
    check(&[&head[..], &["generalLighting", "F1"]].concat(), 4);
}

#[test]
fn a_port_that_is_held_is_named() {
    let holder = std::net::UdpSocket::bind("127.0.62.9:13625").unwrap();
    let output = run(&["--port", "13625", "--address", "127.0.62.9", "get", "127.0.62.1", "node", "80"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("13625") && stderr(&output).contains("ss -ulpn"), "{}", stderr(&output));
    drop(holder);
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let mut child = echonet(&["--json", "classes"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(check(&["completions", shell], 0).contains("discover"), "{shell}");
    }
}

/// A namespace with a cable to the other one's; both end with the test.
struct Machines([String; 2]);

impl Machines {
    fn new() -> Option<Self> {
        let names = ["a", "b"].map(|side| format!("echonet-cli-{}{side}", std::process::id()));
        let machines = Self(names.clone());
        let [a, b] = &names;
        let made = ip(&["netns", "add", a]).and_then(|()| ip(&["netns", "add", b]));
        if let Err(reason) = made {
            test_peers::skip(&format!("there are no network namespaces: {reason}"));
            return None;
        }
        ip(&["link", "add", "lan", "netns", a, "type", "veth", "peer", "name", "lan", "netns", b]).unwrap();
        for (name, address) in [(a, "fe80::a/64"), (b, "fe80::b/64")] {
            ip(&["-n", name, "link", "set", "lan", "addrgenmode", "none"]).unwrap();
            ip(&["-n", name, "link", "set", "lan", "up"]).unwrap();
            ip(&["-n", name, "address", "add", address, "dev", "lan", "nodad"]).unwrap();
        }
        Some(machines)
    }

    /// The command on one of the machines.
    fn on(&self, side: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[side], env!("CARGO_BIN_EXE_echonet")]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {}: {}", arguments.join(" "), stderr(&output).trim()))
    }
}

#[test]
fn ipv6_on_a_link() {
    let Some(machines) = Machines::new() else { return };
    let mut child =
        machines.on(1, &["--json", "--ipv6", "serve", "generalLighting"]).stdin(Stdio::piped()).spawn().unwrap();
    let (stdin, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut node = Running { child, stdin, stdout: output };
    assert_eq!(node.next()["event"], "serving");

    let run = |arguments: &[&str]| {
        let output = machines.on(0, arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        lines(&stdout(&output)).remove(0)
    };
    let found = run(&["--json", "--ipv6", "--interface", "lan", "--timeout", "2", "discover"]);
    let address = found["address"].as_str().unwrap();
    assert!(address.starts_with("fe80::b%lan"), "{found}");
    assert_eq!(found["objects"][0]["class"], "generalLighting");
    for target in [address, "fe80::b%lan", "fe80::b", "[fe80::b%lan]:3610"] {
        let read = run(&["--json", "get", target, "generalLighting", "80"]);
        assert_eq!(read["properties"][0]["edt"], "30", "{target}");
    }
}

#[test]
fn a_home_from_a_file_has_its_values_script_and_faults() {
    let file = std::env::temp_dir().join(format!("echonet-home-{}.toml", std::process::id()));
    let home = r#"
        [[node]]
        address = "127.0.71.2"
        [[node.object]]
        class = "generalLighting"
        values = { lightLevel = "40" }
        script = [{ after = 0.2, set = { lightLevel = "70" } }]

        [[node]]
        address = "127.0.71.3"
        [[node.object]]
        class = "temperatureSensor"
        [[node.fault]]
        kind = "wrong-size"
        object = "temperatureSensor"
        property = "value"
    "#;
    std::fs::write(&file, home).unwrap();
    let mut running = Running::start(&["--json", "--port", "36171", "emulate", file.to_str().unwrap()]);
    let served = [running.next(), running.next()].map(|line| line["object"]["class"].clone());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(served, ["generalLighting", "temperatureSensor"]);
    let level = |address| {
        let get = ["--json", "--port", "36171", "--address", "127.0.71.1", "get", address];
        move |rest: &[&str]| lines(&check(&[&get[..], rest].concat(), 0))[0]["properties"][0].clone()
    };
    let begun = std::time::Instant::now();
    while level("127.0.71.2")(&["generalLighting", "lightLevel"])["value"] != 70 {
        assert!(begun.elapsed().as_secs() < 30, "the script has set it");
    }
    let wrong = level("127.0.71.3")(&["temperatureSensor", "value"]);
    assert_eq!((&wrong["edt"], &wrong["value"]), (&json!("00DC00"), &Value::Null));
    drop(running);
    let missing = run(&["emulate", "no-such-file.toml"]);
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
}

#[test]
fn values_are_multiplied_with_their_coefficients() {
    let port = "13634";
    let mut node = serve(port, "127.0.62.21", &["lvSmartElectricEnergyMeter"]);
    for line in
        ["coefficient=3", "unitForCumulativeElectricEnergy=0.1", "normalDirectionCumulativeElectricEnergy=12345 kWh"]
    {
        node.stdin.write_all(format!("lvSmartElectricEnergyMeter {line}\n").as_bytes()).unwrap();
        assert_eq!(node.next()["event"], "changed", "{line}");
    }
    let get = |json: &[&str], properties: &[&str]| {
        let head = ["--quiet", "--port", port, "--address", "127.0.62.22", "get", "127.0.62.21", "0288"];
        check(&[json, &head[..], properties].concat(), 0)
    };
    // Alone the command asks for what it needs besides; among all others it is there.
    let all = lines(&get(&["--json"], &[]));
    let all = all[0]["properties"].as_array().unwrap();
    let alone = lines(&get(&["--json"], &["E0"]));
    for energy in [&alone[0]["properties"][0], all.iter().find(|property| property["epc"] == "0xE0").unwrap()] {
        assert_eq!((&energy["value"], &energy["unit"]), (&json!(3703.5), &json!("kWh")), "{energy}");
        assert_eq!((energy.get("raw"), energy.get("coefficients")), (None, None), "{energy}");
    }
    assert_eq!(alone[0]["properties"].as_array().unwrap().len(), 1, "{alone:?}");
    assert!(get(&[], &["E0"]).contains("3703.5 kWh"));
    let currents = all.iter().find(|property| property["epc"] == "0xE8").unwrap();
    assert_eq!(currents["unit"], json!({ "rPhase": "A", "tPhase": "A" }));
    // A frame alone does not tell them.
    let frame = lines(&check(&["--json", "decode", "1081000102880105ff01 72 01 e0 04 00003039"], 0));
    let energy = &frame[0]["properties"][0];
    assert_eq!((&energy["value"], &energy["raw"]), (&json!(12345), &json!(true)));
    assert_eq!(energy["coefficients"], json!(["0xD3", "0xE1"]));
    let frame =
        lines(&check(&["--json", "decode", "1081000102880105ff01 72 03 e0 04 00003039 d3 04 00000003 e1 01 01"], 0));
    assert_eq!((&frame[0]["properties"][0]["value"], frame[0]["properties"][0].get("raw")), (&json!(3703.5), None));
    // Releases and makers are words.
    let release = all.iter().find(|property| property["epc"] == "0x82").unwrap();
    assert!(release["text"].as_str().unwrap().starts_with("Release "), "{release}");
}

#[test]
fn a_watch_that_hears_too_little_fails() {
    let port = "13635";
    let watch = ["--quiet", "--json", "--port", port, "--address", "127.0.62.24", "--timeout"];
    let output = run(&[&watch[..], &["0.3", "watch"]].concat());
    assert_eq!((output.status.code(), stdout(&output)), (Some(3), String::new()));
    let _node = serve(port, "127.0.62.23", &["generalLighting"]);
    let polled = ["watch", "127.0.62.23", "--interval", "0.1"];
    assert!(!lines(&check(&[&watch[..], &["2"], &polled[..]].concat(), 0)).is_empty());
    assert_eq!(lines(&check(&[&watch[..], &["20"], &polled[..], &["--count", "2"]].concat(), 0)).len(), 2);
    let output = run(&[&watch[..], &["2"], &polled[..], &["--count", "1000"]].concat());
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(" of 1000 values came in time"), "{}", stderr(&output));
}
