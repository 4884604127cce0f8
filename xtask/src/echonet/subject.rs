//! What is measured: programs, as devices and as controllers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::space::{DEVICE, OTHER, Space};
use crate::process::run_quietly;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Device,
    Controller,
}

/// A program that takes part.
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// Serves object 029001 until its input ends.
    device: Option<Vec<String>>,
    /// Reads property 80 of object 029001 at [`DEVICE`]; the number of requests is appended.
    controller: Option<Vec<String>>,
    /// Requests of a run as a controller: for about a second.
    pub(super) requests: u64,
}

impl Subject {
    pub(super) fn command(&self, role: Role) -> Option<&[String]> {
        match role {
            Role::Device => self.device.as_deref(),
            Role::Controller => self.controller.as_deref(),
        }
    }
}

/// Where the programs are built, and those that are no subjects.
pub(super) struct Workshop {
    folder: PathBuf,
    pub(super) generator: String,
    pub(super) floor: String,
}

/// Builds or fetches a subject.
type Maker = fn(&Workshop) -> Result<Subject>;

/// Name of the subject that all others are compared with.
pub(super) const FLOOR: &str = "floor (C)";

impl Workshop {
    /// Compiles generator and floor.
    pub(super) fn open() -> Result<Self> {
        let folder = crate::target_dir().join("echonet");
        fs::create_dir_all(&folder)?;
        let source = crate::root().join("xtask/echonet");
        let compile = |name: &str| -> Result<String> {
            let (program, file) = (folder.join(name), source.join(format!("{name}.c")));
            let mut command = Command::new("cc");
            command.args(["-O2", "-Wall", "-Wextra", "-o"]).args([&program, &file]);
            run_quietly(&mut command)?;
            Ok(program.display().to_string())
        };
        Ok(Self { generator: compile("generator")?, floor: compile("floor")?, folder })
    }

    /// The subjects whose names contain `part`, and the floor. A peer that cannot be had is left out, which is printed.
    pub(super) fn subjects(&self, part: &str) -> Result<Vec<Subject>> {
        let makers: [(&str, Maker); 5] = [
            ("ours, blocking", Self::ours_blocking),
            ("ours, tokio", Self::ours_tokio),
            ("uecho-go", Self::uecho_go),
            ("npm echonet-lite", Self::npm),
            (FLOOR, |shop| Ok(shop.floor())),
        ];
        let mut subjects = Vec::new();
        for (name, make) in makers.into_iter().filter(|(name, _)| name.contains(part) || *name == FLOOR) {
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
        let controller = words(&[&self.generator, "count", OTHER, OTHER, DEVICE, "32"]);
        let device = words(&[&self.floor, DEVICE]);
        Subject { name: FLOOR, device: Some(device), controller: Some(controller), requests: 300_000 }
    }

    fn ours_blocking(&self) -> Result<Subject> {
        let bench = example("bench")?;
        let device = words(&[&bench, "serve", "--interface", "echo", "-4"]);
        let controller = words(&[&bench, "ask", "--interface", "echo", "-4", "--window", "32", DEVICE]);
        Ok(Subject { name: "ours, blocking", device: Some(device), controller: Some(controller), requests: 300_000 })
    }

    fn ours_tokio(&self) -> Result<Subject> {
        let device = words(&[&example("light")?, "--interface", "echo", "-4"]);
        let bench = example("bench")?;
        let controller = words(&[&bench, "ask", "--tokio", "--interface", "echo", "-4", "--window", "32", DEVICE]);
        Ok(Subject { name: "ours, tokio", device: Some(device), controller: Some(controller), requests: 200_000 })
    }

    fn uecho_go(&self) -> Result<Subject> {
        let folder = self.copied("go")?;
        run_quietly(Command::new("go").args(["build", "-o", "speed", "."]).current_dir(&folder))?;
        let program = folder.join("speed").display().to_string();
        let (device, controller) = (words(&[&program, "device"]), words(&[&program, "controller", DEVICE]));
        Ok(Subject { name: "uecho-go", device: Some(device), controller: Some(controller), requests: 10_000 })
    }

    fn npm(&self) -> Result<Subject> {
        let folder = self.copied("js")?;
        if !folder.join("node_modules").exists() {
            let mut install = Command::new("npm");
            install.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]);
            run_quietly(install.current_dir(&folder))?;
        }
        let device = words(&["node", &folder.join("speed.js").display().to_string()]);
        Ok(Subject { name: "npm echonet-lite", device: Some(device), controller: None, requests: 0 })
    }

    /// A copy of one of the folders of `xtask/echonet`, to install libraries in.
    fn copied(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(crate::root().join("xtask/echonet").join(name))? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        Ok(folder)
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Builds an example of ours as it is shipped.
fn example(name: &str) -> Result<String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--release", "--package", "echonet-lite", "--example", name]);
    run_quietly(command.current_dir(crate::root()))?;
    Ok(crate::target_dir().join("release/examples").join(name).display().to_string())
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
        let mut total = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            total += text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
        }
        Ok(total / 1000.0)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Name and version of what the record should tell about the machine's tools.
pub(super) fn versions() -> String {
    let first_line = |program: &str, argument: &str| {
        let text = run_quietly(Command::new(program).arg(argument)).unwrap_or_default();
        format!("# {program}: {}\n", text.lines().next().unwrap_or("none"))
    };
    let model = fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let model = model.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("unknown").to_owned();
    let tools =
        [("uname", "-sr"), ("rustc", "--version"), ("cc", "--version"), ("go", "version"), ("node", "--version")];
    tools
        .into_iter()
        .fold(format!("# processor: {model}\n"), |text, (name, argument)| text + &first_line(name, argument))
}
