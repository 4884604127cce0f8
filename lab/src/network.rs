//! Network namespaces, for programs that are to be alone in one or to be cut off.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::process::run_quietly;

/// How long the kernel may take to make a namespace.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that keeps a namespace alive, which vanishes with it.
pub(crate) struct Holder(Child);

impl Holder {
    /// Starts `command`, the beginning of a command line, in the network.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let held = command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut holder = Self(held.context("cannot start unshare")?);
        let start = Instant::now();
        // The namespace is made when its process has become `cat`.
        while !holder.program().is_some_and(|path| !path.ends_with("unshare") && !path.ends_with("nsenter")) {
            if holder.0.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                bail!("no network namespaces here: they need root, or user namespaces");
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(holder)
    }

    fn program(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.0.id())).ok()
    }

    /// Runs `ip` inside.
    pub(crate) fn ip(&self, line: &str) -> Result<String> {
        run_quietly(self.command("ip").args(line.split(' ')))
    }

    /// A program inside.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string(), "--net"]);
        let users = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
        if users("self") != users(&self.0.id().to_string()) {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--", program]);
        command
    }

    /// The process whose namespace it is.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
