//! A network of its own for each device.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::run_quietly;

/// The device's address, on an interface that can multicast.
pub(super) const DEVICE: &str = "10.61.0.1";

/// The other side's, where no device listens: libraries leave the loopback interface alone.
pub(super) const OTHER: &str = "10.61.0.2";

/// How long the kernel may take to make a namespace.
const PATIENCE: Duration = Duration::from_secs(5);

/// A network namespace; it vanishes with the process that holds it.
pub(super) struct Space(Child);

impl Space {
    /// Makes a namespace with both addresses.
    pub(super) fn new() -> Result<Self> {
        let mut command = Command::new("unshare");
        let is_root = run_quietly(Command::new("id").arg("-u"))?.trim() == "0";
        command.args(if is_root { &["--net"][..] } else { &["--user", "--map-root-user", "--net"] });
        let held = command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut space = Self(held.context("cannot start unshare")?);
        let start = Instant::now();
        while !space.is_made() {
            if space.0.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                bail!("no network namespaces here: they need root, or user namespaces");
            }
            thread::sleep(Duration::from_millis(2));
        }
        let words = [
            "link set lo up",
            "link add echo type veth peer name far",
            "link set far up",
            "link set echo up",
            &format!("address add {DEVICE}/24 dev echo"),
            &format!("address add {OTHER}/32 dev lo"),
            "route add 224.0.0.0/4 dev echo",
        ];
        for line in words {
            run_quietly(space.command("ip").args(line.split(' ')))?;
        }
        Ok(space)
    }

    /// It is made when its process has become `cat`.
    fn is_made(&self) -> bool {
        fs::read_link(format!("/proc/{}/exe", self.0.id())).is_ok_and(|program| !program.ends_with("unshare"))
    }

    /// A program inside.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string(), "--net"]);
        let users = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
        if users("self") != users(&self.0.id().to_string()) {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--", program]);
        command
    }

    /// A program inside, on one core.
    pub(super) fn pinned(&self, core: &str, words: &[String]) -> Command {
        let mut command = self.command("taskset");
        command.args(["-c", core]).args(words);
        command
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
