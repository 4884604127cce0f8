//! Other libraries' devices held against the specification: the known faults of each are found.

#[path = "../../../echonet-lite/tests/it/peers/install.rs"]
#[allow(dead_code, reason = "the tests of the library use all of it")]
mod install;
#[path = "../../../echonet-lite/tests/it/peers/scene.rs"]
mod scene;

use std::collections::HashSet;

use test_peers::{Kit, kit, skip};

use install::{GO, JS, PYTHON};
use scene::{Running, Scene, Side};

/// A program on one of the libraries.
struct Peer {
    kit: Kit,
    /// The program, by its path in the kit's folder or by its name, and its arguments before the role.
    program: &'static [&'static str],
}

const UECHO_GO: Peer = Peer { kit: GO, program: &["peer"] };
const UECHO_PYTHON: Peer = Peer { kit: PYTHON, program: &["venv/bin/python", "uecho_peer.py"] };
const NPM_ECHONET_LITE: Peer = Peer { kit: JS, program: &["node", "echonet-lite.js"] };

/// Of a checkout that the variable `OPENECHO` names: Maven Central does not have it.
const OPENECHO: Peer = Peer {
    kit: kit! {
        name: "echonet-java",
        sources: &["tests/peers/java"],
        programs: &["java", "javac"],
        install: "javac -nowarn -encoding UTF-8 -sourcepath \"$OPENECHO/src\" -d classes Peer.java",
    },
    program: &["java", "-Djava.net.preferIPv4Stack=true", "-cp", "classes", "Peer"],
};

/// The crate whose tests have the programs.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../echonet-lite");

/// An item that all of them meet: where it has failed, nothing was examined.
const MET: &str = "0x0EF001 get.maps";

impl Peer {
    /// Examines it; `known` are items that it is known to fail.
    fn fails(&self, known: &[&str]) {
        let Some(folder) = (Kit { home: LIBRARY, ..self.kit }).installed() else { return };
        let Some(scene) = Scene::new().map_err(|reason| skip(&reason)).ok() else { return };
        let inside = folder.join(self.program[0]);
        let program = if inside.exists() { inside.to_str().unwrap() } else { self.program[0] };
        let mut command = scene.command(Side::Peers, program);
        command.args(&self.program[1..]).arg("device").current_dir(folder);
        let (_device, _) = Running::start(command);
        let mut examination = scene.command(Side::Ours, env!("CARGO_BIN_EXE_echonet"));
        let output = examination.args(["--json", "--quiet", "certify", Side::Peers.address()]).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        let items: Vec<serde_json::Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let name = |item: &serde_json::Value| {
            format!("{} {}", item["object"]["eoj"].as_str().unwrap(), item["item"].as_str().unwrap())
        };
        let failed: HashSet<_> = items.iter().filter(|item| item["outcome"] == "failed").map(name).collect();
        println!("{} of {} items failed", failed.len(), items.len());
        let passed: HashSet<_> = items.iter().filter(|item| item["outcome"] == "passed").map(name).collect();
        assert!(items.len() >= 90 && passed.contains(MET), "{} items: {report}", items.len());
        let missed: Vec<_> = known.iter().filter(|item| !failed.contains(**item)).collect();
        assert!(missed.is_empty(), "not found: {missed:?} in {report}");
    }
}

#[test]
fn uecho_go_is_examined() {
    UECHO_GO.fails(&[
        "0x0EF001 get.unknown",
        "0x0EF001 get.mixed",
        "0x0EF001 setc.unknown",
        "0x0EF001 setget.unknown",
        "0x0EF001 silence.esv-64",
        "0x0EF001 silence.trailing",
        "0x0EF001 survives",
    ]);
}

#[test]
fn uecho_python_is_examined() {
    // A SetGet of properties that are not there ends it.
    UECHO_PYTHON.fails(&[
        "0x0EF001 infc",
        "0x0EF001 setc.unknown",
        "0x0EF001 setc.low",
        "0x0EF001 setget.both-unknown",
        "0x0EF001 survives",
    ]);
}

#[test]
fn npm_echonet_lite_is_examined() {
    NPM_ECHONET_LITE.fails(&[
        "0x0EF001 infc",
        "0x0EF001 infreq.unknown",
        "0x0EF001 seti.unknown",
        "0x0EF001 setget.unknown",
        "0x0EF001 silence.instance",
        "0x013001 setc.readonly",
        "0x013001 infreq",
        "0x013001 BB.set.unlisted",
        "0x013001 A0.set.required",
    ]);
}

/// `OPENECHO=PATH cargo test -p echonet --test it openecho -- --nocapture`: Maven Central does not have OpenECHO, so it is examined
/// where there is a checkout of its sources.
#[test]
fn openecho_is_examined() {
    if std::env::var_os("OPENECHO").is_none() {
        println!("skipped: OPENECHO is not the path of a checkout of github.com/SonyCSL/OpenECHO");
        return;
    }
    OPENECHO.fails(&[
        "0x0EF001 setget.unknown",
        "0x0EF001 setget.both-unknown",
        "0x0EF001 silence.opc-0",
        "0x0EF001 silence.trailing",
        "0x0EF001 silence.setget-cut",
        "0x013001 setget.own",
        "0x013001 A0.get.required",
        "0x013001 BB.get.required",
        "0x013001 B0.set.impossible",
        "0x013001 B3.set.impossible",
    ]);
}
