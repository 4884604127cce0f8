//! Servers as processes, each in a network namespace of its own behind a bridge, whose cable can be cut.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use xtask::process::{run_quietly, unshare};

use crate::network::Holder;

/// The bridge, with the nodes that are never cut off.
pub(super) const HUB: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// Where the kernel has a bridge drop what comes from a cable and what goes into it, and where not (bridge(8)).
const DISABLED: u8 = 0;
const FORWARDING: u8 = 3;

/// Lays the bridge, and one that nothing is at, into the namespace of this process.
pub(super) fn lay_bridge() -> Result<()> {
    for line in ["link set lo up", "link add hub type bridge", "link set hub up"] {
        ip(line)?;
    }
    // The other side of a parted network.
    ip("link add aside type bridge")?;
    ip("link set aside up")?;
    ip(&format!("address add {HUB}/16 dev hub"))
}

fn ip(line: &str) -> Result<()> {
    run_quietly(Command::new("ip").args(line.split(' '))).map(|_| ())
}

/// A namespace, and its cable to the bridge.
struct Place {
    holder: Holder,
    number: u8,
}

impl Place {
    fn new() -> Result<Self> {
        // A namespace goes some time after its last process: numbers are not used again.
        static LAST: AtomicU8 = AtomicU8::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Self { holder: Holder::start(unshare())?, number };
        ip(&format!("link add cable{number} type veth peer name cable netns {}", place.holder.pid()))?;
        ip(&format!("link set cable{number} master hub up"))?;
        for line in ["link set lo up", &format!("address add {}/16 dev cable", place.address()), "link set cable up"] {
            place.holder.ip(line)?;
        }
        Ok(place)
    }

    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 1, self.number)
    }

    /// Datagrams are dropped silently, as by a switch in the way, and no interface goes down.
    fn set_cable(&self, state: u8) -> Result<()> {
        let line = format!("link set dev cable{} state {state}", self.number);
        run_quietly(Command::new("bridge").args(line.split(' '))).map(|_| ())
    }

    /// It is at this bridge from now on.
    fn plug_into(&self, bridge: &str) -> Result<()> {
        ip(&format!("link set cable{} master {bridge}", self.number))
    }
}

/// A server that can be taken away, and comes back.
pub(super) struct Node {
    pub(super) addr: SocketAddr,
    place: Option<Place>,
    folder: PathBuf,
    command: Vec<String>,
    child: Option<Child>,
}

/// A fault of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Kill,
    Stop,
    Cut,
    /// Cut off together with the next shard's primary: the two see each other, and no other node.
    Part,
    /// It is told to hand over.
    Planned,
}

impl Node {
    /// `program` with the file that `settings` makes of its address, and `more` behind it, in a folder of its own below `root`; where
    /// a port is given, it stands at the bridge.
    pub(super) fn start(
        program: &Path,
        root: &Path,
        name: &str,
        port: Option<u16>,
        settings: impl FnOnce(SocketAddr) -> String,
        more: &[&str],
    ) -> Result<Self> {
        let place = if port.is_some() { None } else { Some(Place::new()?) };
        let addr = (place.as_ref().map_or(HUB, Place::address), port.unwrap_or(6379)).into();
        let folder = root.join(name);
        fs::create_dir_all(&folder)?;
        // A server that rewrites the file reads its own words the next time.
        fs::write(folder.join("server.conf"), settings(addr))?;
        let words = [program.to_str().context("a path that is no text")?, "server.conf"];
        let command = words.iter().chain(more).map(|word| (*word).to_owned()).collect();
        let mut node = Self { addr, place, folder, command, child: None };
        node.run()?;
        Ok(node)
    }

    fn run(&mut self) -> Result<()> {
        let log = File::options().append(true).create(true).open(self.folder.join("log"))?;
        let program = &self.command[0];
        let mut command =
            self.place.as_ref().map_or_else(|| Command::new(program), |place| place.holder.command(program));
        command.args(&self.command[1..]).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn().with_context(|| format!("cannot start {program}"))?);
        Ok(())
    }

    /// Takes the server away.
    pub(super) fn strike(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill => self.end(),
            Fault::Stop => self.signal(Signal::STOP)?,
            Fault::Cut => self.place()?.set_cable(DISABLED)?,
            Fault::Part => self.place()?.plug_into("aside")?,
            Fault::Planned => {}
        }
        Ok(())
    }

    /// Brings it back.
    pub(super) fn heal(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill => self.run(),
            Fault::Stop => self.signal(Signal::CONT),
            Fault::Cut => self.place()?.set_cable(FORWARDING),
            Fault::Part => self.place()?.plug_into("hub"),
            Fault::Planned => Ok(()),
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.as_ref().map(Pid::from_child).context("it does not run")?;
        Ok(kill_process(pid, signal)?)
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The network in which it stands, whatever becomes of the cable.
    pub(super) fn network(&self) -> Result<File> {
        Ok(File::open(format!("/proc/{}/ns/net", self.place()?.holder.pid()))?)
    }

    fn place(&self) -> Result<&Place> {
        self.place.as_ref().context("it stands at the bridge, without a cable")
    }
}

/// Later connections of the calling thread start within a network.
pub(super) fn enter(network: &File) -> Result<()> {
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}
