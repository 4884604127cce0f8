//! The devices and controllers of the README and of the guides, built and run by a program that depends on the crate from outside.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::PATIENCE;
use super::port::port_3610;

const PROGRAMS: [&str; 4] = ["device", "controller", "blocking_device", "blocking_controller"];

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(program: &Path) -> Self {
        let started = Command::new(program).stdout(Stdio::piped()).spawn();
        Self(started.unwrap_or_else(|error| panic!("{}: {error}", program.display())))
    }

    /// Reads its output up to a line with this in it; false if it ends without one.
    fn says(&mut self, part: &str) -> bool {
        let output = BufReader::new(self.0.stdout.as_mut().unwrap());
        output.lines().map_while(Result::ok).any(|line| line.contains(part))
    }
}

/// Waits until some program has opened port 3610: of two that share it, the last one hears the answers.
fn wait_for_the_port() {
    let end = Instant::now() + PATIENCE;
    while !fs::read_to_string("/proc/net/udp").unwrap().contains("00000000:0E1A ") {
        assert!(Instant::now() < end, "nothing opens port 3610");
        std::thread::yield_now();
    }
}

/// The documents' programs, built in a crate that knows nothing else; each is short, and speaks of no codes.
fn build() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [readme, device, controller] =
        ["README.md", "../docs/echonet-lite/device.md", "../docs/echonet-lite/controller.md"]
            .map(|path| manifest.join(path));
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let programs = test_peers::outside(env!("CARGO"), &[&readme, &device, &controller], &outside, &[]);
    for name in PROGRAMS {
        let program = fs::read_to_string(outside.join(format!("src/bin/{name}.rs"))).unwrap();
        let lines = program.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 40, "{name} has {lines} lines");
        let codes = program.matches("0x").count() - program.matches("[0x00, 0x00, 0x77]").count() * 3;
        assert_eq!(codes, 0, "{name} speaks of codes");
    }
    programs
}

/// Runs a device, and controllers until one finds it.
fn meet(programs: &Path, [device, controller]: [&str; 2], found: &str) -> (Running, Running) {
    let device = Running::start(&programs.join(device));
    wait_for_the_port();
    // An open port is no device yet: on a busy machine a controller's look around may be over before it answers.
    let mut controllers = (0..5).map(|_| Running::start(&programs.join(controller)));
    let controller = controllers.find_map(|mut it| it.says(found).then_some(it));
    (device, controller.unwrap_or_else(|| panic!("no controller says: {found}")))
}

#[test]
fn devices_and_controllers_of_the_readme_talk_to_each_other() {
    let programs = build();
    let _port = port_3610();
    let (mut device, mut controller) = meet(&programs, ["device", "controller"], "029001 is On, 100 %");
    assert!(device.says("the light is Off, 50 %"), "the device was not told");
    assert!(controller.says("001101 E0="), "the controller hears no temperature");
    drop((device, controller));
    meet(&programs, ["blocking_device", "blocking_controller"], "001101 measures 2");
}
