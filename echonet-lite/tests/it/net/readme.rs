//! The README's device and controller, as somebody who depends on the crate from outside would build and run them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::PATIENCE;
use super::port::port_3610;

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

#[test]
fn device_and_controller_of_the_readme_talk_to_each_other() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(package.join("README.md")).unwrap();
    let programs: Vec<_> =
        readme.split("```rust,no_run\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [device, controller] = programs[..] else { panic!("the README has {} programs", programs.len()) };
    let lines = |program: &str| program.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines(device) <= 40 && lines(controller) <= 22, "{} and {} lines", lines(device), lines(controller));

    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    fs::create_dir_all(outside.join("src/bin")).unwrap();
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         echonet-lite = {{ path = {:?} }}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\", \"signal\"] }}\n",
        package.display().to_string()
    );
    fs::write(outside.join("Cargo.toml"), manifest).unwrap();
    fs::copy(package.join("../Cargo.lock"), outside.join("Cargo.lock")).unwrap();
    fs::write(outside.join("src/bin/device.rs"), device).unwrap();
    fs::write(outside.join("src/bin/controller.rs"), controller).unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--target-dir", "target"])
        .current_dir(&outside)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let _port = port_3610();
    let mut device = Running::start(&outside.join("target/debug/device"));
    wait_for_the_port();
    // An open port is no device yet: on a busy machine a controller's look around may be over before it answers.
    let mut controllers = (0..5).map(|_| Running::start(&outside.join("target/debug/controller")));
    let found = controllers.find_map(|mut it| it.says("029001 is On, 100 %").then_some(it));
    assert!(found.is_some(), "no controller has found the light on");
    assert!(device.says("the light is off, 50 %, Normal"), "the device was not told");
}
