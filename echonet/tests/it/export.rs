//! `echonet export` between emulated devices and a scraper.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use echonet_lite::class;
use serde_json::Value;

use crate::emulated::{Home, Running};

const PORT: u16 = 13_707;

/// The exporter, and the address of its metrics.
struct Exporter {
    _running: Running,
    addr: String,
}

impl Exporter {
    fn start(command: Command) -> Self {
        Self::start_with(command, &[])
    }

    fn start_with(mut command: Command, more: &[&str]) -> Self {
        command.args(["export", "--listen", "127.0.0.1:0"]).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let addr = loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["event"] == "listening" {
                let url = line["url"].as_str().unwrap();
                break url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
            }
        };
        // Its pipe is read to the end, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        Self { _running: Running(child), addr }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.addr).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.addr).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Scrapes until the metrics are as wanted.
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.wait_for(Duration::from_secs(90), what, wanted)
    }

    /// The same, for no longer than this.
    fn wait_for(&self, time: Duration, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + time;
        loop {
            let text = self.get("/metrics");
            if wanted(&text) {
                return text;
            }
            assert!(Instant::now() < end, "{what} did not come: {text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn export(own: &str) -> Exporter {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--json", "--port", &PORT.to_string(), "--address", own]);
    Exporter::start(command)
}

/// The values of a metric.
fn values<'a>(text: &'a str, metric: &str) -> Vec<&'a str> {
    let of = |line: &&str| line.split(['{', ' ']).next() == Some(metric);
    text.lines().filter(of).filter_map(|line| line.rsplit_once(' ')).map(|(_, value)| value).collect()
}

#[test]
fn the_home_is_metrics() {
    let classes = ["0130", "0011", "0288", "0290"].map(|code| class::by_name(code).unwrap());
    let home = Home::new([127, 0, 108], PORT, &classes, 1);
    home.change(0, 0xBB, &[21]);
    home.change(1, 0xE0, &215_i16.to_be_bytes());
    home.change(2, 0xE0, &100_000_u32.to_be_bytes());
    let exporter = export("127.0.109.1");
    let all = |text: &str| {
        values(text, "echonet_up") == ["1"; 4]
            && ["echonet_room_temperature_celsius", "echonet_value_celsius"]
                .iter()
                .all(|name| !values(text, name).is_empty())
            && values(text, "echonet_normal_direction_cumulative_electric_energy_kilowatt_hours_total").len() == 1
    };
    let text = exporter.wait("every device", all);
    assert_eq!(values(&text, "echonet_room_temperature_celsius"), ["21"], "{text}");
    assert_eq!(values(&text, "echonet_value_celsius"), ["21.5"], "{text}");
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("content-type: text/plain; version=0.0.4"),
        "{text:.300}"
    );
    let total = "echonet_normal_direction_cumulative_electric_energy_kilowatt_hours_total";
    assert!(text.contains(&format!("# TYPE {total} counter\n")), "{text}");
    assert!(text.contains("class=\"generalLighting\",instance=\"1\",property=\"operationStatus\",value=\""), "{text}");
    is_well_formed(text.split_once("\r\n\r\n").unwrap().1);
    dashboard_shows(&text);

    // A value that the device does not announce, and one that it announces.
    home.change(0, 0xBB, &[24]);
    exporter.wait("a change", |text| values(text, "echonet_room_temperature_celsius") == ["24"]);
    // Nothing else is served.
    assert!(exporter.get("/elapi/v1/devices").starts_with("HTTP/1.1 404"));
}

/// Each line is one that Prometheus takes: HELP and TYPE first, no series twice.
fn is_well_formed(text: &str) {
    let (mut seen, mut family) = (HashSet::new(), "");
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().unwrap();
            assert!(seen.insert(family.to_owned()), "{family} comes twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert_eq!(rest.split(' ').next(), Some(family));
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert_eq!(series.split('{').next(), Some(family));
            assert!(seen.insert(series.to_owned()), "{series} comes twice");
        }
    }
}

/// Every metric of the dashboard in the documents is one that is exported.
fn dashboard_shows(text: &str) {
    let dashboard: Value = serde_json::from_str(include_str!("../../../docs/echonet-lite/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut count = 0;
    for target in targets {
        let expression = target["expr"].as_str().unwrap();
        for name in expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            if name.starts_with("echonet_") {
                assert!(!values(text, name).is_empty(), "{name} of the dashboard is not exported");
                count += 1;
            }
        }
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn circuits_of_a_board_are_metrics() {
    let port = PORT + 5;
    let home = Home::of([127, 0, 116], port, [crate::emulated::board(1, 61, 1)]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--json", "--port", &port.to_string(), "--address", "127.0.117.1"]);
    let exporter = Exporter::start_with(command, &["--poll", "0.5"]);
    let energy = "echonet_circuit_energy_kilowatt_hours_total";
    let power = "echonet_circuit_power_watts";
    let all = |text: &str| values(text, energy).len() == 61 + 2 && values(text, power).len() == 61 + 1;
    let text = exporter.wait("all circuits", all);
    let lines = |end: &str| text.lines().filter(|line| line.starts_with(energy) && line.ends_with(end)).count();
    // Sixty of the weights 1 to 5, and one more 1: 210.0 kWh in 181 parts.
    assert_eq!(lines("kind=\"simplex\",circuit=\"61\"} 1.1"), 1, "{text}");
    assert_eq!(lines("kind=\"simplex\",circuit=\"60\"} 5.8"), 1, "{text}");
    assert_eq!(lines("kind=\"duplex\",circuit=\"1\",field=\"normalDirectionElectricEnergy\"} 210.0"), 1, "{text}");
    assert!(!text.contains("startChannel"), "{text}");
    assert!(text.contains(&format!("# TYPE {energy} counter\n")) && text.contains("echonet_circuit_current_amperes{"));
    is_well_formed(text.split_once("\r\n\r\n").unwrap().1);
    home.change(0, 0xC6, &18_100_i32.to_be_bytes());
    exporter.wait("the power of circuit 2", |text| values(text, power).contains(&"200"));
}

/// Announcements of such a node do not arrive, so it is asked for these values as often as for all others.
#[test]
fn a_node_without_multicast_is_asked_for_what_it_announces() {
    let _node = crate::reach::Deaf::new([127, 0, 111, 4], PORT + 2, "generalLighting");
    let echonet = |own: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
        command.args(["--json", "--port", &(PORT + 2).to_string(), "--address", own]);
        command
    };
    let exporter = Exporter::start_with(echonet("127.0.111.1"), &["--node", "127.0.111.4", "--poll", "0.5"]);
    exporter.wait("the light", |text| !values(text, "echonet_operation_status").is_empty());
    for (status, value) in [("on", "1"), ("off", "0"), ("on", "1")] {
        let set = ["set", "127.0.111.4", "generalLighting", &format!("operationStatus={status}")].map(str::to_owned);
        assert!(echonet("127.0.111.2").args(set).output().unwrap().status.success());
        let is_seen = |text: &str| values(text, "echonet_operation_status") == [value];
        exporter.wait_for(Duration::from_secs(8), status, is_seen);
    }
}

/// Properties of makers and classes of a user's file.
#[test]
fn properties_of_a_users_file_are_metrics() {
    let (port, file) = (PORT + 4, crate::cli::data::file("export-data"));
    let mut device = crate::cli::data::serve(&file, port, "127.0.114.1");
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--json", "--data", &file, "--port", &port.to_string(), "--address", "127.0.115.1"]);
    let exporter = Exporter::start_with(command, &["--poll", "0.5"]);
    let all = |text: &str| {
        let names = ["purifier_power_watts", "night_mode", "asleep", "property_state"];
        names.iter().all(|name| !values(text, &format!("echonet_{name}")).is_empty())
    };
    let text = exporter.wait("all properties of the file", all);
    is_well_formed(text.split_once("\r\n\r\n").unwrap().1);
    let has = |text: &str, metric: &str, class: &str, labels: &str, value: &str| {
        let is_it = |line: &&str| {
            line.starts_with(&format!("{metric}{{device=\"fe0000fe"))
                && line.contains(&format!("class=\"{class}\",instance=\"1\"{labels}}} {value}"))
        };
        text.lines().any(|line| is_it(&line))
    };
    for (metric, class, labels, value) in [
        ("echonet_purifier_power_watts", "homeAirConditioner", "", "100.0"),
        ("echonet_state", "homeAirConditioner", ",property=\"nightMode\",value=\"on\"", "1"),
        ("echonet_asleep", "petFeeder", "", "1"),
        ("echonet_state", "petFeeder", ",property=\"asleep\",value=\"on\"", "1"),
        // The property is called `state`, as the metric of all states.
        ("echonet_property_state", "petFeeder", ",field=\"lidOpen\"", "0"),
        ("echonet_state", "petFeeder", ",field=\"lidOpen\",property=\"state\",value=\"false\"", "1"),
    ] {
        assert!(has(&text, metric, class, labels, value), "{metric} of {class} {labels}: {text}");
    }
    assert!(!text.contains("another_product") && text.contains("# HELP echonet_purifier_power_watts Purifier power\n"));
    // The metric of all states names a property in each line.
    assert!(text.lines().filter(|line| line.starts_with("echonet_state{")).all(|line| line.contains("property=\"")));
    for (change, metric, labels, value) in [
        ("homeAirConditioner purifierPower=99.5", "echonet_purifier_power_watts", "", "99.5"),
        ("homeAirConditioner nightMode=auto", "echonet_state", ",property=\"nightMode\",value=\"auto\"", "1"),
    ] {
        device.change(change);
        exporter.wait(change, |text| has(text, metric, "homeAirConditioner", labels, value));
    }
}

#[cfg(feature = "serial")]
#[test]
fn a_meter_behind_a_module_is_exported_through_trouble() {
    use crate::route_b::{Fault, POWER, echonet, server};
    use echonet_lite::serial::Module;

    let faults = vec![Fault::Noise, Fault::Close, Fault::Forge, Fault::FindNeighbour, Fault::Expire];
    let line = server(Module::Bp35c0, faults);
    let mut command = echonet(&line, Module::Bp35c0, 13_708);
    command.args(["--address", "127.0.110.1"]);
    let exporter = Exporter::start(command);
    let expected = POWER.to_string();
    exporter
        .wait("the power", |text| values(text, "echonet_instantaneous_electric_power_watts") == [expected.as_str()]);
}
