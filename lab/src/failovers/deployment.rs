//! The deployments that fail over: a primary and its replica, alone or watched by three Sentinels, or a cluster of three such shards, or
//! of five.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::client::{Reply, ask};
use super::node::Node;

/// Milliseconds after which a Sentinel takes a server for down.
const DOWN_AFTER: u32 = 1000;
/// Milliseconds after which a cluster's node takes another for failing.
const NODE_TIMEOUT: u32 = 2000;
const SENTINELS: usize = 3;
/// How long anything may take that must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at least, and which part of the time waited so far: when something came is known as well as that.
const PAUSE: Duration = Duration::from_millis(2);
const PART: u32 = 200;
const SLOTS: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Setup {
    Pair,
    Sentinel,
    Cluster,
    /// Each shard has a genuine server, too: its replica, or its primary, in turns.
    Mixed,
}

impl Setup {
    /// A word of the slots of each shard.
    fn tags(self) -> &'static [&'static str] {
        match self {
            Self::Pair | Self::Sentinel => &["b"],
            Self::Cluster => &["b", "c", "a"],
            Self::Mixed => &["f", "b", "c", "d", "a"],
        }
    }

    fn is_cluster(self) -> bool {
        matches!(self, Self::Cluster | Self::Mixed)
    }

    /// Whether a node is the genuine server whatever is measured.
    fn is_genuine(self, node: usize) -> bool {
        self == Self::Mixed && (node / 2 + node) % 2 == 1
    }
}

pub(super) struct Deployment {
    setup: Setup,
    /// Two of each shard.
    pub(super) nodes: Vec<Node>,
    sentinels: Vec<Node>,
}

impl Deployment {
    /// Starts it in a folder made anew. `port` is the first of some at the bridge that are free.
    pub(super) fn start(setup: Setup, program: &Path, genuine: &Path, root: &Path, port: u16) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        let mut deployment = Self { setup, nodes: Vec::new(), sentinels: Vec::new() };
        for number in 0..2 * setup.tags().len() {
            let primary = deployment.nodes.first().map(|node| node.addr);
            let settings = |own: SocketAddr| {
                let mut text = format!("port 6379\nbind {}\nprotected-mode no\nsave \"\"\n", own.ip());
                text += "repl-diskless-sync-delay 0\nrepl-timeout 10\n";
                match (setup.is_cluster(), primary) {
                    (true, _) => {
                        text += &format!("cluster-enabled yes\ncluster-node-timeout {NODE_TIMEOUT}\n");
                    }
                    (false, Some(primary)) => text += &format!("replicaof {} 6379\n", primary.ip()),
                    (false, None) => {}
                }
                text
            };
            let program = if setup.is_genuine(number) { genuine } else { program };
            let node = Node::start(program, root, &format!("node{number}"), None, settings, &[])?;
            until("a server answers", || Ok((ask(node.addr, "PING")?.text() == "PONG").then_some(())))?;
            deployment.nodes.push(node);
        }
        match setup {
            Setup::Pair => {}
            Setup::Sentinel => deployment.watch(genuine, root, port)?,
            Setup::Cluster | Setup::Mixed => deployment.join()?,
        }
        deployment.settle()?;
        Ok(deployment)
    }

    /// Starts the Sentinels, when the primary has a replica that they can find.
    fn watch(&mut self, genuine: &Path, root: &Path, port: u16) -> Result<()> {
        until("the replica follows", || Ok(self.is_shard_settled(0)?.then_some(())))?;
        let primary = self.nodes[0].addr.ip();
        for number in 0..SENTINELS {
            let port = port + u16::try_from(number)?;
            let settings = |own: SocketAddr| {
                format!(
                    "port {port}\nbind {}\nprotected-mode no\nsentinel monitor first {primary} 6379 2\n\
                     sentinel down-after-milliseconds first {DOWN_AFTER}\nsentinel failover-timeout first 6000\n",
                    own.ip()
                )
            };
            let name = format!("sentinel{number}");
            self.sentinels.push(Node::start(genuine, root, &name, Some(port), settings, &["--sentinel"])?);
        }
        Ok(())
    }

    /// Makes a cluster of the nodes.
    fn join(&self) -> Result<()> {
        let expect_ok = |addr, line: &str| until(line, || Ok((ask(addr, line)?.text() == "OK").then_some(())));
        for (number, node) in self.nodes.iter().enumerate() {
            expect_ok(node.addr, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1))?;
        }
        for node in &self.nodes[1..] {
            expect_ok(self.nodes[0].addr, &format!("CLUSTER MEET {} 6379", node.addr.ip()))?;
        }
        let first_of = |shard: usize| shard * SLOTS / self.shards();
        for (shard, pair) in self.nodes.chunks(2).enumerate() {
            let (first, last) = (first_of(shard), first_of(shard + 1) - 1);
            expect_ok(pair[0].addr, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
            let id = ask(pair[0].addr, "CLUSTER MYID")?.text().to_owned();
            expect_ok(pair[1].addr, &format!("CLUSTER REPLICATE {id}"))?;
        }
        Ok(())
    }

    pub(super) fn shards(&self) -> usize {
        self.nodes.len() / 2
    }

    /// The hash tag in the keys of a shard.
    pub(super) fn tag(&self, shard: usize) -> &'static str {
        self.setup.tags()[shard]
    }

    /// Which node a shard's primary is, while all is settled.
    pub(super) fn primary(&self, shard: usize) -> Result<usize> {
        for number in [2 * shard, 2 * shard + 1] {
            if role(self.nodes[number].addr)?.0 == "master" {
                return Ok(number);
            }
        }
        bail!("shard {shard} has no primary")
    }

    /// How clients find a shard's primary.
    pub(super) fn finder(&self, shard: usize) -> Finder {
        let addrs = |nodes: &[Node]| nodes.iter().map(|node| node.addr).collect();
        Finder { nodes: addrs(&self.nodes[2 * shard..][..2]), sentinels: addrs(&self.sentinels), turn: 0 }
    }

    /// The command that makes a shard's servers change places, and its target.
    pub(super) fn plan(&self, primary: usize) -> (SocketAddr, &'static str) {
        match self.setup {
            Setup::Cluster | Setup::Mixed => (self.nodes[primary ^ 1].addr, "CLUSTER FAILOVER"),
            Setup::Pair | Setup::Sentinel => (self.nodes[primary].addr, "FAILOVER"),
        }
    }

    /// Waits until every server is what all others take it for, and has the data.
    pub(super) fn settle(&self) -> Result<()> {
        until("all is settled", || {
            for shard in 0..self.shards() {
                if !self.is_shard_settled(shard)? {
                    return Ok(None);
                }
            }
            let rest = match self.setup {
                Setup::Pair => true,
                Setup::Sentinel => self.do_sentinels_agree()?,
                Setup::Cluster | Setup::Mixed => self.do_nodes_agree()?,
            };
            Ok(rest.then_some(()))
        })
    }

    fn is_shard_settled(&self, shard: usize) -> io::Result<bool> {
        let [first, second] = [2 * shard, 2 * shard + 1].map(|number| self.nodes[number].addr);
        let (primary, replica) = if role(first)?.0 == "master" { (first, second) } else { (second, first) };
        let follows = role(replica)? == ("slave".to_owned(), primary.ip().to_string(), "connected".to_owned());
        Ok(role(primary)?.0 == "master" && follows)
    }

    fn do_sentinels_agree(&self) -> io::Result<bool> {
        let Ok(primary) = self.primary(0) else { return Ok(false) };
        for sentinel in &self.sentinels {
            let seen = ask(sentinel.addr, "SENTINEL MASTER first")?;
            let ip = self.nodes[primary].addr.ip().to_string();
            let expected = [("flags", "master"), ("ip", &ip), ("num-slaves", "1"), ("num-other-sentinels", "2")];
            if expected.iter().any(|(name, value)| field(&seen, name) != *value) {
                return Ok(false);
            }
            let Reply::Array(replicas) = ask(sentinel.addr, "SENTINEL REPLICAS first")? else { return Ok(false) };
            let is_well = |replica| field(replica, "flags") == "slave" && field(replica, "master-link-status") == "ok";
            if !replicas.iter().all(is_well) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn do_nodes_agree(&self) -> io::Result<bool> {
        let mut views = Vec::new();
        for node in &self.nodes {
            let info = ask(node.addr, "CLUSTER INFO")?;
            if !info.text().contains("cluster_state:ok") || !info.text().contains("cluster_slots_ok:16384") {
                return Ok(false);
            }
            views.push(view(ask(node.addr, "CLUSTER NODES")?.text()));
        }
        Ok(views[0].len() == self.nodes.len() && views.iter().all(|view| view == &views[0]))
    }
}

/// A node's view of all nodes: id and flags of each, whichever node lists it.
fn view(nodes: &str) -> Vec<(String, String)> {
    let node = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.nth(1)?.replace("myself,", "")))
    };
    let mut view: Vec<_> = nodes.lines().filter_map(node).collect();
    view.sort_unstable();
    // No node is failing, nor still unknown.
    view.retain(|(_, flags)| flags == "master" || flags == "slave");
    view
}

/// A server's role; a replica's primary, and the state of its link.
fn role(addr: SocketAddr) -> io::Result<(String, String, String)> {
    let reply = ask(addr, "ROLE")?;
    let texts = reply.texts();
    let text = |at: usize| texts.get(at).copied().unwrap_or_default().to_owned();
    Ok((text(0), text(1), text(3)))
}

/// The value behind a name, among pairs.
fn field<'r>(pairs: &'r Reply, name: &str) -> &'r str {
    pairs.texts().chunks_exact(2).find(|pair| pair[0] == name).map_or("", |pair| pair[1])
}

/// Waits for something that must come. A failed request counts as not there yet.
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> io::Result<Option<T>>) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Ok(Some(found)) = look() {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            bail!("waited in vain: {what}");
        }
        thread::sleep((began.elapsed() / PART).max(PAUSE));
    }
}

/// Where a client goes that looks for a primary.
pub(super) struct Finder {
    nodes: Vec<SocketAddr>,
    sentinels: Vec<SocketAddr>,
    turn: usize,
}

impl Finder {
    /// The server that the next Sentinel names, or simply the next server.
    pub(super) fn next(&mut self) -> io::Result<SocketAddr> {
        self.turn += 1;
        if self.sentinels.is_empty() {
            return Ok(self.nodes[self.turn % self.nodes.len()]);
        }
        let named = ask(self.sentinels[self.turn % self.sentinels.len()], "SENTINEL GET-MASTER-ADDR-BY-NAME first")?;
        let ip = named.texts().first().copied().unwrap_or_default().to_owned();
        let node = self.nodes.iter().find(|node| node.ip().to_string() == ip);
        node.copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_match_across_nodes_and_omit_failing_nodes() {
        let first = "b 10.77.1.2:6379@16379 slave a 0 1 2 connected\n\
            a 10.77.1.1:6379@16379 myself,master - 0 1 2 connected 0-5460\n";
        let second = "a 10.77.1.1:6379@16379 master - 0 1 2 connected 0-5460\n\
            b 10.77.1.2:6379@16379 myself,slave a 0 1 2 connected\n";
        assert_eq!(view(first), view(second));
        assert_eq!(view(first).len(), 2);
        for flags in ["master,fail?", "master,fail", "handshake", "slave,fail"] {
            assert_eq!(view(&second.replace("master", flags)).len(), 1, "{flags}");
        }
    }
}
