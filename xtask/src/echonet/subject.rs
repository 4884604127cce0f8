//! What is measured: programs, as devices and as controllers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Scenario;
use super::space::{DEVICE, OTHER, Space};
use crate::process::run_quietly;
use crate::programs;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Device,
    Controller,
}

/// A program that takes part.
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// Serves object 029001 until it is killed.
    device: Option<Vec<String>>,
    /// Reads property 80 of object 029001 at [`DEVICE`] as often as the last word says.
    controller: Option<Vec<String>>,
    /// Searches for [`DEVICE`] by multicast, then reads 12 properties of its node profile, as often and as long as the last words say.
    published: Option<Vec<String>>,
    /// What it is.
    version: String,
}

impl Subject {
    pub(super) fn command(&self, scenario: Scenario) -> Option<&[String]> {
        match scenario {
            Scenario::DeviceSequential | Scenario::DeviceWindow | Scenario::Published => self.device.as_deref(),
            Scenario::Controller => self.controller.as_deref(),
            Scenario::ControllerPublished => self.published.as_deref(),
        }
    }
}

/// The programs that are no subjects.
pub(super) struct Workshop {
    pub(super) generator: String,
    pub(super) floor: String,
    /// Whether ours are taken as they lie in target/release.
    as_built: bool,
}

/// Builds or fetches a subject.
type Maker = fn(&Workshop) -> Result<Subject>;

/// Name of the subject that all others are compared with.
pub(super) const FLOOR: &str = "C floor";

/// Iterations and seconds of a run of the published benchmark, which had ten thousand: who is slow has fewer.
const TOUR: [&str; 2] = ["10000", "1"];

impl Workshop {
    /// Compiles generator and floor.
    pub(super) fn open(as_built: bool) -> Result<Self> {
        Ok(Self { generator: installed("echonet-generator")?, floor: installed("echonet-floor")?, as_built })
    }

    /// The subjects whose names are `wanted`, and the floor. A peer that cannot be had is left out, which is printed.
    pub(super) fn subjects(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Subject>> {
        let makers: [(&str, Maker); 8] = [
            ("ours", Self::ours_blocking),
            ("ours, tokio", Self::ours_tokio),
            ("uecho-go", |_| {
                // Its own benchmark asks as its controller does: one request under way, behind a lock.
                peer("uecho-go", "uecho-go", Some("10000"))
            }),
            ("echonet crate", |_| peer("echonet crate", "echonet-crate", None)),
            ("echonet crate, not optimised", |_| {
                let peer = peer("echonet crate, not optimised", "echonet-crate-debug", None)?;
                Ok(Subject { device: None, ..peer })
            }),
            ("uecho for Python", |_| peer("uecho for Python", "uecho-py", None)),
            ("npm echonet-lite", |_| peer("npm echonet-lite", "npm-echonet-lite", None)),
            (FLOOR, |shop| Ok(shop.floor())),
        ];
        let mut subjects = Vec::new();
        for (name, make) in makers.into_iter().filter(|(name, _)| wanted(name) || *name == FLOOR) {
            match make(self) {
                Ok(subject) => subjects.push(subject),
                // Ours is why we are here; the others come from registries.
                Err(error) if name.starts_with("ours") => return Err(error),
                Err(error) => println!("skipped: {name} ({error:#})"),
            }
        }
        Ok(subjects)
    }

    fn floor(&self) -> Subject {
        let [iterations, seconds] = TOUR;
        let ask =
            |what: &str, last: &[&str]| words(&[&[self.generator.as_str(), what, OTHER, OTHER, DEVICE], last].concat());
        Subject {
            name: FLOOR,
            device: Some(words(&[&self.floor, DEVICE])),
            controller: Some(ask("count", &["32", "300000"])),
            published: Some(ask("profile", &[iterations, seconds])),
            version: programs::version("echonet-floor"),
        }
    }

    fn ours_blocking(&self) -> Result<Subject> {
        self.ours("ours", "bench", &["serve"], &[], "300000")
    }

    fn ours_tokio(&self) -> Result<Subject> {
        self.ours("ours, tokio", "light", &[], &["--tokio"], "200000")
    }

    /// Ours: the example that is the device, and the options of the one that is the controller.
    fn ours(&self, name: &'static str, device: &str, serve: &[&str], ask: &[&str], requests: &str) -> Result<Subject> {
        let (device, bench) = (self.example(device)?, self.example("bench")?);
        let [iterations, seconds] = TOUR;
        let place = ["--interface", "echo", "-4"];
        Ok(Subject {
            name,
            device: Some(words(&[&[device.as_str()], serve, &place].concat())),
            controller: Some(words(&[&[&bench, "ask"], ask, &place, &["--window", "32", DEVICE, requests]].concat())),
            published: Some(words(&[&[&bench, "published"], ask, &place, &[DEVICE, iterations, seconds]].concat())),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// An example of ours as it is shipped.
    fn example(&self, name: &str) -> Result<String> {
        if !self.as_built {
            let build = ["build", "--quiet", "--release", "--package", "echonet-lite", "--example", name];
            run_quietly(programs::cargo().args(build))?;
        }
        Ok(crate::target_dir().join("release/examples").join(name).display().to_string())
    }
}

/// A peer's program, as a word.
fn installed(name: &str) -> Result<String> {
    Ok(programs::peer(name)?.display().to_string())
}

/// A peer of `benches/peers/install`, which all have the same words; with `requests`, it has a mode of one property.
fn peer(name: &'static str, package: &str, requests: Option<&str>) -> Result<Subject> {
    let program = installed(package)?;
    let [iterations, seconds] = TOUR;
    Ok(Subject {
        name,
        device: Some(words(&[&program, "device"])),
        controller: requests.map(|requests| words(&[&program, "controller", DEVICE, requests])),
        published: Some(words(&[&program, "published", DEVICE, iterations, seconds])),
        version: programs::version(package),
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A device that runs in a namespace of its own; it ends when dropped.
pub(super) struct Device {
    child: Child,
    pub(super) space: Space,
}

impl Device {
    /// Starts it on a core and waits until it says anything, which all do when they are ready.
    pub(super) fn start(name: &str, words: &[String], core: &str) -> Result<Self> {
        let space = Space::new()?;
        let mut command = space.device.pinned(core, words);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let output = child.stdout.take().context("its output is piped")?;
        let mut line = String::new();
        let mut reader = BufReader::new(output);
        let read = reader.read_line(&mut line)?;
        let device = Self { child, space };
        if read == 0 {
            bail!("{name} ended at once");
        }
        // Nobody may ever wait for a full pipe.
        std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        Ok(device)
    }

    /// CPU time of all its threads so far, in microseconds, to the nanosecond as the scheduler counts it.
    pub(super) fn cpu_us(&self) -> Result<f64> {
        cpu_us(self.child.id())
    }
}

/// The same of any process.
pub(super) fn cpu_us(process: u32) -> Result<f64> {
    let mut total = 0.0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        total += text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(total / 1000.0)
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Name and version of what the record should tell about the machine's tools, and of the subjects.
pub(super) fn versions(subjects: &[Subject]) -> String {
    let first_line = |program: &str, argument: &str| {
        let text = run_quietly(Command::new(program).arg(argument)).unwrap_or_default();
        format!("# {program}: {}\n", text.lines().next().unwrap_or("none"))
    };
    let model = fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let model = model.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("unknown").to_owned();
    let tools = [("uname", "-sr"), ("rustc", "--version")];
    let text = tools
        .into_iter()
        .fold(format!("# processor: {model}\n"), |text, (name, argument)| text + &first_line(name, argument));
    subjects.iter().fold(text, |text, subject| text + &format!("# {}: {}\n", subject.name, subject.version))
}
