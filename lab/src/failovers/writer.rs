//! A client that counts a register up and pushes to a list, wherever the primary is, and keeps in mind what it was told.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::client::{Client, Reply};
use super::deployment::Finder;
use super::history::{self, Step};

/// Between two writes: what is looked for is not a server's rate.
const PACE: Duration = Duration::from_millis(2);
/// Until a client that was sent away looks again.
const REST: Duration = Duration::from_millis(10);

pub(super) struct Writer {
    pub(super) shard: usize,
    register: Key,
    list: Key,
    tried: u64,
    /// Whether a write counts when WAIT says that the replica has it, or when it was answered.
    waits: bool,
    /// When it was first told that the cluster is down.
    pub(super) refused: Option<Instant>,
}

struct Key {
    name: String,
    steps: Vec<Step>,
}

impl Writer {
    /// One with keys of its own among those that have `tag`.
    pub(super) fn new(name: &str, shard: usize, tag: &str, waits: bool) -> Self {
        let key = |kind| Key { name: format!("{kind}:{name}:{{{tag}}}"), steps: Vec::new() };
        Self { shard, register: key("register"), list: key("list"), tried: 0, waits, refused: None }
    }

    /// Writes to the server that the finder names until the run is over.
    pub(super) fn write(&mut self, mut finder: Finder, over: &AtomicBool) {
        self.write_to(|| finder.next(), over);
    }

    /// Writes to one server until it is over.
    pub(super) fn write_only_to(&mut self, addr: SocketAddr, over: &AtomicBool) {
        self.refused = None;
        self.write_to(|| Ok(addr), over);
    }

    fn write_to(&mut self, mut whom: impl FnMut() -> io::Result<SocketAddr>, over: &AtomicBool) {
        let mut client = None;
        while !over.load(Relaxed) {
            let stays = match &mut client {
                Some(client) => self.write_once(client).unwrap_or(false),
                None => false,
            };
            if stays {
                thread::sleep(PACE);
                continue;
            }
            thread::sleep(REST);
            client = whom().and_then(Client::connect).ok();
        }
    }

    /// Whether this server takes writes.
    fn write_once(&mut self, client: &mut Client) -> io::Result<bool> {
        self.tried += 1;
        for (key, command) in [(&mut self.register, "SET"), (&mut self.list, "RPUSH")] {
            key.steps.push(Step::Tried(self.tried));
            let reply = client.ask(&format!("{command} {} {}", key.name, self.tried))?;
            key.steps.push(Step::Answered(self.tried));
            if let Reply::Error(text) = reply {
                if text.starts_with("CLUSTERDOWN") {
                    self.refused.get_or_insert_with(Instant::now);
                }
                return Ok(false);
            }
            let is_kept = !self.waits || matches!(client.ask("WAIT 1 100")?, Reply::Number(1..));
            if is_kept {
                key.steps.push(Step::Kept(self.tried));
            }
        }
        Ok(true)
    }

    /// Looks at what a server has, where all is settled.
    pub(super) fn look(&mut self, addr: SocketAddr) -> Result<()> {
        let mut client = Client::connect(addr)?;
        // Of a cluster's replica; others have no such command.
        client.ask("READONLY")?;
        let register = client.ask(&format!("GET {}", self.register.name))?;
        let list = client.ask(&format!("LRANGE {} 0 -1", self.list.name))?;
        ensure!(
            matches!((&register, &list), (Reply::Text(_) | Reply::Nothing, Reply::Array(_))),
            "{register:?}, {list:?}"
        );
        let number = |text: &str| text.parse().unwrap_or(0);
        self.register.steps.push(Step::Saw(vec![number(register.text())]));
        self.list.steps.push(Step::Saw(list.texts().into_iter().map(number).collect()));
        Ok(())
    }

    /// Writes that were acknowledged.
    pub(super) fn kept(&self) -> usize {
        let steps = self.register.steps.iter().chain(&self.list.steps);
        steps.filter(|step| matches!(step, Step::Kept(_))).count()
    }

    /// Lost writes, and impossible values.
    pub(super) fn violations(&self) -> Vec<String> {
        let said =
            |key: &Key, faults: Vec<String>| faults.into_iter().map(|fault| format!("{}: {fault}", key.name)).collect();
        let faults: [Vec<String>; 2] = [
            said(&self.register, history::register(&self.register.steps)),
            said(&self.list, history::list(&self.list.steps)),
        ];
        faults.concat()
    }
}
