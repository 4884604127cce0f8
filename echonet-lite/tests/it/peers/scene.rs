//! Two network namespaces joined by a cable, so that programs that insist on port 3610 do not meet.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// A side of the cable.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Ours,
    Peers,
}

impl Side {
    /// Its address on the cable.
    pub(super) fn address(self) -> &'static str {
        match self {
            Self::Ours => "10.61.0.1",
            Self::Peers => "10.61.0.2",
        }
    }
}

/// The two namespaces; they vanish with the processes that hold them.
pub(super) struct Scene {
    ours: Holder,
    peers: Holder,
}

impl Scene {
    /// Lays the cable.
    ///
    /// # Errors
    /// The step that the kernel does not allow here.
    pub(super) fn new() -> Result<Self, String> {
        let root = fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0);
        let mut unshare = Command::new("unshare");
        unshare.args(if root { &["--net"][..] } else { &["--user", "--map-root-user", "--net"] });
        let ours = Holder::start(unshare)?;
        let mut inside = ours.command("unshare");
        inside.arg("--net");
        let peers = Holder::start(inside)?;
        let other = peers.pid().to_string();
        ours.ip(&["link", "add", "echo", "type", "veth", "peer", "name", "echo", "netns", &other])?;
        for (holder, side) in [(&ours, Side::Ours), (&peers, Side::Peers)] {
            holder.ip(&["link", "set", "lo", "up"])?;
            holder.ip(&["address", "add", &format!("{}/24", side.address()), "dev", "echo"])?;
            holder.ip(&["link", "set", "echo", "up"])?;
            // Peers send to the group without naming an interface.
            holder.ip(&["route", "add", "224.0.0.0/4", "dev", "echo"])?;
        }
        Ok(Self { ours, peers })
    }

    /// A program on one of the sides.
    pub(super) fn command(&self, side: Side, program: &str) -> Command {
        match side {
            Side::Ours => self.ours.command(program),
            Side::Peers => self.peers.command(program),
        }
    }
}

/// A process that does nothing but keep a namespace alive.
struct Holder(Running);

impl Holder {
    fn start(mut command: Command) -> Result<Self, String> {
        let child = command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut holder = Self(Running(child.map_err(|error| format!("cannot start unshare: {error}"))?));
        let name = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let start = Instant::now();
        // It has its namespace when it has become `cat`.
        while !name(&holder.pid().to_string())
            .is_some_and(|name| !name.ends_with("unshare") && !name.ends_with("nsenter"))
        {
            if holder.0.0.try_wait().is_ok_and(|status| status.is_some()) || start.elapsed() > PATIENCE {
                let mut reason = String::new();
                let _ = holder.0.0.stderr.take().map(|mut stderr| stderr.read_to_string(&mut reason));
                return Err(format!("no network namespaces here: {reason}"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(holder)
    }

    fn pid(&self) -> u32 {
        self.0.0.id()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid().to_string(), "--net"]);
        // Only a scene with a user namespace of its own needs to enter that.
        let own = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
        if own("self") != own(&self.pid().to_string()) {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--", program]);
        command
    }

    fn ip(&self, arguments: &[&str]) -> Result<(), String> {
        let output = self.command("ip").args(arguments).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)))
    }
}

/// A process that ends with its test.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Those that read their input end by themselves with it, which this closes; failures here hide nothing.
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program that lives until its input ends, and waits for the line with which it says that it is ready;
    /// what that line says.
    pub(super) fn start(mut command: Command) -> (Self, String) {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut running = Self(child);
        let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = lines.find_map(|line| line.split_once("ready: ").map(|(_, what)| what.to_owned()));
        let ready = ready.unwrap_or_else(|| panic!("{command:?} never got ready"));
        // Reads the rest, so that the program never blocks on a full pipe.
        thread::spawn(move || lines.for_each(drop));
        (running, ready)
    }
}
