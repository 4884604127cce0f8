//! Genuine ECHONET Lite libraries, unmodified: each asks our node, and answers our controller where it can.
//!
//! A small program on each library (`tests/peers`) prints what it learned, in the same words for all. Where a library is
//! known to be wrong, its row says so, line by line; everything else must be as with the others.

mod install;
mod ours;
mod scene;
mod tables;

use echonet_lite::wire::PropertySet;
use test_peers::{Kit, printed, skip};

use install::{GO, JS, PYTHON, RUST};
use scene::{Running, Scene, Side};

/// A program on one of the libraries.
struct Peer {
    kit: Kit,
    /// The program, by its path in the kit's folder or by its name, and its arguments before the role.
    program: &'static [&'static str],
    /// True if the program drops requests that come while it is busy.
    drops_requests: bool,
}

/// A line that a peer has otherwise, and why.
struct Deviation {
    instead_of: &'static str,
    line: &'static str,
    #[expect(dead_code, reason = "for who reads the table")]
    because: &'static str,
}

const UECHO_GO: Peer = Peer { kit: GO, program: &["peer"], drops_requests: false };
const PYCHONET: Peer =
    Peer { kit: PYTHON, program: &["venv/bin/python", "pychonet_controller.py"], drops_requests: false };
const UECHO_PYTHON: Peer = Peer { kit: PYTHON, program: &["venv/bin/python", "uecho_peer.py"], drops_requests: false };
const NPM_ECHONET_LITE: Peer = Peer { kit: JS, program: &["node", "echonet-lite.js"], drops_requests: false };
const NODE_ECHONET_LITE: Peer = Peer { kit: JS, program: &["node", "node-echonet-lite.js"], drops_requests: false };
/// Its `Node` looks for its lock once for each message (`try_lock`), and drops the message where another thread has it.
const ECHONET_CRATE: Peer = Peer { kit: RUST, program: &["target/debug/peer"], drops_requests: true };

/// The lines of a peer about our air conditioner.
const LEARNED: &[&str] = &[
    "found 013001",
    "map 9d: 80 81 88 b0",
    "map 9e: 80 81 93 a0 a1 a3 a4 b0 b3 c0 c1 cc cf d0 e3 f0 f1 ff",
    "map 9f: 80 81 82 83 88 8a 93 9d 9e 9f a0 a1 a3 a4 b0 b3 ba bb be c0 c1 cc cf d0 e3 f1 ff",
    "get b0: 72 [42]",
    "set b0: 71 []",
    "get b0: 72 [43]",
    "get c0: 72 [41]",
    "get ef: 52 []",
    "set bb: 51 [20]",
    "notified: true",
];

/// The lines of our controller about a peer's air conditioner, but for the maps.
const ASKED: &[&str] = &[
    "found 013001",
    "get b0: Done [42]",
    "set b0: Done []",
    "get b0: Done [43]",
    "get c0: Done [41]",
    "get ef: Refused []",
    "set bb: Refused []",
    "notified: true",
];

impl Peer {
    /// Its program in a role, on the peers' side of a scene; `None` where something is missing.
    fn ready(&self, role: &[&str]) -> Option<(Scene, std::process::Command)> {
        let folder = self.kit.installed()?;
        let scene = Scene::new().map_err(|reason| skip(&reason)).ok()?;
        let inside = folder.join(self.program[0]);
        let program = if inside.exists() { inside.to_str().unwrap() } else { self.program[0] };
        let mut command = scene.command(Side::Peers, program);
        command.args(&self.program[1..]).args(role).current_dir(folder);
        Some((scene, command))
    }

    /// Has it ask our node.
    fn asks_our_node(&self, deviations: &[Deviation]) {
        let Some((scene, command)) = self.ready(&["controller", Side::Ours.address()]) else { return };
        let (_device, _) = Running::start(ours::command(&scene, "device"));
        let said = printed(&command);
        let lines: Vec<_> = said.lines().filter(|line| LINES.iter().any(|start| line.starts_with(start))).collect();
        compare(&lines, LEARNED, deviations);
    }

    /// Has it answer our controller. `lost` are the properties that its map in the second form loses.
    fn answers_our_controller(&self, lost: PropertySet, deviations: &[Deviation]) {
        let Some((scene, command)) = self.ready(&["device"]) else { return };
        let (_device, readable) = Running::start(command);
        let said = printed(&ours::controller_for(&scene, self));
        let (maps, rest): (Vec<_>, Vec<_>) =
            ours::own_lines(&said).into_iter().partition(|line| line.starts_with("map"));
        compare(&rest, ASKED, deviations);
        let expected = codes(&readable).difference(lost);
        assert!(expected.len() >= 16, "too few to prove anything: {readable}");
        assert_eq!(maps[2], format!("map 9f: {}", ours::listed(expected)));
        // Which of its properties can be written and are announced is the peer's affair, but nothing may be made up.
        for map in &maps[..2] {
            let named = codes(&map["map 9d:".len()..]);
            assert!(!named.is_empty() && named.difference(expected).is_empty(), "{map}");
        }
    }
}

/// How the lines of a report begin; libraries print more than that.
const LINES: &[&str] = &["found ", "map ", "get ", "set ", "notified: "];

fn compare(lines: &[&str], expected: &[&'static str], deviations: &[Deviation]) {
    for deviation in deviations {
        assert!(expected.contains(&deviation.instead_of), "an outdated row: {}", deviation.instead_of);
    }
    let otherwise = |line: &&'static str| deviations.iter().find(|deviation| deviation.instead_of == *line);
    let expected: Vec<_> = expected.iter().map(|line| otherwise(line).map_or(*line, |other| other.line)).collect();
    assert_eq!(lines, expected);
}

fn codes(text: &str) -> PropertySet {
    text.split_whitespace().fold(PropertySet::EMPTY, |set, code| set.with(u8::from_str_radix(code, 16).unwrap()))
}

/// The part of a map in the second form that half of the peers lose, as senders or as receivers: they keep four bits of
/// eight.
const HIGH: PropertySet = PropertySet::from_bits(!0 << 64);

/// The same, in a line of a peer.
const HALF_OF_9E: Deviation = Deviation {
    instead_of: "map 9e: 80 81 93 a0 a1 a3 a4 b0 b3 c0 c1 cc cf d0 e3 f0 f1 ff",
    line: "map 9e: 80 81 93 a0 a1 a3 a4 b0 b3",
    because: "it reads four bits of eight",
};
const HALF_OF_9F: Deviation = Deviation {
    instead_of: "map 9f: 80 81 82 83 88 8a 93 9d 9e 9f a0 a1 a3 a4 b0 b3 ba bb be c0 c1 cc cf d0 e3 f1 ff",
    line: "map 9f: 80 81 82 83 88 8a 93 9d 9e 9f a0 a1 a3 a4 b0 b3 ba bb be",
    because: "it reads four bits of eight",
};

/// pychonet tells its caller whether something worked, not what the answer was.
const fn told(instead_of: &'static str, line: &'static str) -> Deviation {
    Deviation { instead_of, line, because: "it does not tell the service of an answer" }
}

#[test]
fn uecho_go_asks_our_node() {
    UECHO_GO.asks_our_node(&[HALF_OF_9E, HALF_OF_9F]);
}

#[test]
fn uecho_go_answers_our_controller() {
    UECHO_GO.answers_our_controller(HIGH, &[]);
}

#[test]
fn pychonet_asks_our_node() {
    PYCHONET.asks_our_node(&[
        told("get b0: 72 [42]", "get b0: done [42]"),
        told("set b0: 71 []", "set b0: done"),
        told("get b0: 72 [43]", "get b0: done [43]"),
        told("get c0: 72 [41]", "get c0: done [41]"),
        told("get ef: 52 []", "get ef: refused []"),
        told("set bb: 51 [20]", "set bb: refused"),
    ]);
}

#[test]
fn uecho_python_asks_our_node() {
    UECHO_PYTHON.asks_our_node(&[HALF_OF_9E, HALF_OF_9F]);
}

#[test]
fn uecho_python_answers_our_controller() {
    UECHO_PYTHON.answers_our_controller(HIGH, &[]);
}

#[test]
fn npm_echonet_lite_asks_our_node() {
    NPM_ECHONET_LITE.asks_our_node(&[]);
}

#[test]
fn npm_echonet_lite_answers_our_controller() {
    NPM_ECHONET_LITE.answers_our_controller(
        PropertySet::EMPTY,
        &[Deviation {
            instead_of: "set bb: Refused []",
            line: "set bb: Done []",
            because: "it confirms writes to any property that it has, though it does not take them",
        }],
    );
}

#[test]
fn node_echonet_lite_asks_our_node() {
    NODE_ECHONET_LITE.asks_our_node(&[]);
}

#[test]
fn echonet_crate_asks_our_node() {
    ECHONET_CRATE.asks_our_node(&[]);
}

#[test]
fn echonet_crate_answers_our_controller() {
    ECHONET_CRATE.answers_our_controller(HIGH, &[]);
}
