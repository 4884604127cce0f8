//! `loadgen redis --cluster` on clusters of three nodes, genuine ones and ours: slots that move and primaries that die under load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::record::{Ending, Outcome};
use loadgen::watch::{Phase, Progress, Watch};
use test_peers::{is_there, skip};

/// Far longer than a cluster takes to agree, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node; it ends with the test.
struct Node {
    child: Child,
    port: u16,
    bus: u16,
}

/// Nodes that form a cluster, and where they keep their files.
struct Nodes {
    nodes: Vec<Node>,
    folder: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.nodes.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Nodes {
    /// Three primaries, each with a third of the slots, and so many replicas of the last one.
    fn start(program: &Path, name: &str, replicas: usize) -> Self {
        let folder = std::env::temp_dir().join(format!("loadgen-cluster-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let nodes = (0..3 + replicas).map(|_| Node::start(program, &folder)).collect();
        let nodes = Self { nodes, folder };
        for (node, range) in nodes.nodes.iter().zip([["0", "5460"], ["5461", "10922"], ["10923", "16383"]]) {
            assert_eq!(node.cli(&["cluster", "addslotsrange", range[0], range[1]]), "OK");
        }
        let (first, others) = nodes.nodes.split_first().unwrap();
        for other in others {
            let (port, bus) = (other.port.to_string(), other.bus.to_string());
            assert_eq!(first.cli(&["cluster", "meet", "127.0.0.1", &port, &bus]), "OK");
        }
        let knows_all = |node: &Node| node.info("cluster_known_nodes") == nodes.nodes.len().to_string();
        eventually("the nodes meet", || nodes.nodes.iter().all(knows_all));
        let last = nodes.nodes[2].id();
        for replica in &nodes.nodes[3..] {
            eventually("a replica knows its primary", || replica.cli(&["cluster", "replicate", &last]) == "OK");
        }
        eventually("the cluster is whole", || nodes.nodes.iter().all(|node| node.info("cluster_state") == "ok"));
        for replica in &nodes.nodes[3..] {
            eventually("a replica follows", || replica.cli(&["info", "replication"]).contains("master_link_status:up"));
        }
        nodes
    }
}

impl Node {
    fn start(program: &Path, folder: &Path) -> Self {
        let [port, bus] = [(); 2].map(|()| test_peers::free_port());
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--cluster-enabled", "yes"]);
        command.args(["--cluster-node-timeout", "1000", "--cluster-config-file", &format!("nodes-{port}.conf")]);
        command.args(["--port", &port.to_string(), "--cluster-port", &bus.to_string(), "--dir"]).arg(folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let node = Self { child, port, bus };
        eventually("a node answers", || node.cli(&["ping"]) == "PONG");
        node
    }

    /// The output of redis-cli; an error as its text.
    fn cli(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn id(&self) -> String {
        self.cli(&["cluster", "myid"])
    }

    /// A line of CLUSTER INFO.
    fn info(&self, name: &str) -> String {
        let text = self.cli(&["cluster", "info"]);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
        line.unwrap_or_default().trim().to_owned()
    }
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The genuine server, and ours where it has been built beside the command.
fn programs() -> Vec<(&'static str, PathBuf)> {
    let mut found = Vec::new();
    if is_there("redis-cli") && is_there("redis-server") {
        found.push(("genuine", PathBuf::from("redis-server")));
        let ours = Path::new(env!("CARGO_BIN_EXE_loadgen")).with_file_name("redis-server");
        if ours.exists() {
            found.push(("ours", ours))
        } else {
            skip("redis-server is not built: cargo build -p redis-server")
        }
    }
    found
}

/// Runs a command line on a cluster's first node, with `{}` for its address; a `_` is a space within a word.
fn run(nodes: &Nodes, line: &str, watch: &mut dyn FnMut(&Nodes, &Progress<'_>) -> Watch) -> Outcome {
    let line = line.replace("{}", &format!("127.0.0.1:{}", nodes.nodes[0].port));
    let words: Vec<String> = line.split_whitespace().map(|word| word.replace('_', " ")).collect();
    let deadline = Instant::now() + PATIENCE;
    let scenario = loadgen::cli::scenario(&words).unwrap();
    scenario.run(&mut |progress| if Instant::now() > deadline { Watch::Stop } else { watch(nodes, progress) })
}

/// A slot on its way from its primary to another one.
struct Move {
    slot: String,
    from: usize,
    to: usize,
}

impl Move {
    fn begin(nodes: &Nodes, key: &str) -> Self {
        let slot = nodes.nodes[0].cli(&["cluster", "keyslot", key]);
        let from = [5460, 10_922, 16_383].iter().position(|last| slot.parse::<usize>().unwrap() <= *last).unwrap();
        let moving = Self { slot, from, to: (from + 1) % 3 };
        let (from, to) = (&nodes.nodes[moving.from], &nodes.nodes[moving.to]);
        assert_eq!(to.cli(&["cluster", "setslot", &moving.slot, "importing", &from.id()]), "OK");
        assert_eq!(from.cli(&["cluster", "setslot", &moving.slot, "migrating", &to.id()]), "OK");
        moving
    }

    /// Moves so many of its keys. False when it has none left.
    fn keys(&self, nodes: &Nodes, count: usize) -> bool {
        let (from, to) = (&nodes.nodes[self.from], &nodes.nodes[self.to]);
        let keys = from.cli(&["cluster", "getkeysinslot", &self.slot, &count.to_string()]);
        if keys.is_empty() {
            return false;
        }
        let port = to.port.to_string();
        let words = ["migrate", "127.0.0.1", &port, "", "0", "5000", "keys"].into_iter().chain(keys.lines());
        let said = from.cli(&words.collect::<Vec<_>>());
        assert!(["OK", "NOKEY"].contains(&&said[..]), "{said}");
        true
    }

    fn end(&self, nodes: &Nodes) {
        while self.keys(nodes, 100) {}
        let to = nodes.nodes[self.to].id();
        for node in [self.to, self.from] {
            assert_eq!(nodes.nodes[node].cli(&["cluster", "setslot", &self.slot, "node", &to]), "OK");
        }
    }
}

#[test]
fn a_slot_that_moves_under_load_is_followed() {
    for (name, program) in programs() {
        let nodes = Nodes::start(&program, &format!("move-{name}"), 0);
        let (mut moving, mut is_moved) = (None, false);
        // Half of the requests are about keys of one slot, that of `tag`.
        let line = "redis {} --cluster -c 4 -t 2 --depth 4 -d 10m --warm-up 0s -r 500 --verify \
                    --mix 1:GET_key:{key} --mix 1:SET_{tag}:{key}_{value} --mix 1:GET_{tag}:{key} --mix 1:PING";
        let outcome = run(&nodes, line, &mut |nodes, progress| {
            let redirects = progress.redirects.unwrap();
            match &moving {
                _ if progress.phase != Phase::Measuring || progress.latencies.count() < 2000 => {}
                None => {
                    let begun = Move::begin(nodes, "tag");
                    assert!(begun.keys(nodes, 50), "the slot has keys");
                    moving = Some(begun);
                }
                Some(move_) if !is_moved && redirects.asked > 0 => {
                    move_.end(nodes);
                    is_moved = true;
                }
                Some(_) if is_moved && redirects.moved > 0 => return Watch::Stop,
                Some(_) => {}
            }
            Watch::GoOn
        });
        assert!(is_moved && outcome.ending == Ending::Interrupted, "{name}: {outcome:?}");
        assert_eq!((outcome.failed(), outcome.operations.len()), (0, 4), "{name}: {:?}", outcome.failures);
        let redirects = outcome.redirects.unwrap();
        assert!(redirects.asked > 0 && redirects.moved > 0 && redirects.slots == 1, "{name}: {redirects:?}");
        // A map that has been learnt sends nobody on.
        for command in ["GET {tag}:{key}", "-r 500 --preload GET key:{key}"] {
            let line = format!("redis {{}} --cluster -c 3 -n 2000 --verify {command}");
            let outcome = run(&nodes, &line, &mut |_, _| Watch::GoOn);
            assert_eq!((outcome.answers(), outcome.redirects.unwrap().moved), (2000, 0), "{name}: {outcome:?}");
        }
    }
}

#[test]
fn requests_are_spread_over_all_primaries() {
    for (name, program) in programs() {
        let nodes = Nodes::start(&program, &format!("spread-{name}"), 0);
        for options in ["-n 3000", "-n 3000 --depth 16 --batch", "-n 3000 --rate 5000", "-n 3000 -3"] {
            let line = format!("redis {{}} --cluster -c 5 -t 1 --verify {options} SET {{key}} {{value}}");
            let outcome = run(&nodes, &line, &mut |_, _| Watch::GoOn);
            let found = (&outcome.ending, outcome.answers(), outcome.failed());
            assert_eq!(found, (&Ending::Complete, 3000, 0), "{name}: {options}: {:?}", outcome.failures);
            // By client, of which none is left out.
            assert!(outcome.fairness.least > 0, "{name}: {options}: {:?}", outcome.fairness);
        }
        for node in &nodes.nodes {
            let keys: u64 = node.cli(&["dbsize"]).parse().unwrap();
            assert!(keys > 800, "{name}: {keys} of about 3000 random keys");
        }
    }
}

#[test]
fn a_primary_that_dies_is_replaced() {
    for (name, program) in programs() {
        let mut nodes = Nodes::start(&program, &format!("failover-{name}"), 1);
        // Taken out, so that the run can end it.
        let mut primary = nodes.nodes.remove(2);
        let (mut is_killed, mut seen, mut quiet) = (false, (0, 0), 0);
        let line = "redis {} --cluster -c 4 -t 2 -d 10m --warm-up 0s --timeout 5s SET key:{key} {value}";
        let outcome = run(&nodes, line, &mut |nodes, progress| {
            // While requests are in flight, the run asks again.
            if quiet >= 10 {
                return Watch::Stop;
            }
            if !is_killed && progress.latencies.count() > 1000 {
                primary.child.kill().unwrap();
                primary.child.wait().unwrap();
                is_killed = true;
            }
            // The replica has taken over, and for ten looks in a row everything is answered.
            let (answers, failures) = (progress.latencies.count(), progress.failures.total());
            let is_fine = is_killed && answers > seen.0 && failures == seen.1;
            quiet = if is_fine && nodes.nodes[2].cli(&["role"]).starts_with("master") { quiet + 1 } else { 0 };
            seen = (answers, failures);
            if quiet >= 10 { Watch::Stop } else { Watch::GoOn }
        });
        assert!(quiet >= 10, "{name}: {outcome:?}");
        // All slots of the primary that died; what was on its connections is lost.
        assert_eq!(outcome.redirects.unwrap().slots, 5461, "{name}: {:?}", outcome.redirects);
        assert!(outcome.failed() > 0, "{name}");
    }
}

#[test]
fn cluster_mode_without_a_cluster_is_refused() {
    if !is_there("redis-server") || !is_there("redis-cli") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("loadgen-cluster-none-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new("redis-server");
    let port = test_peers::free_port();
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]).arg(&folder);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let nodes = Nodes { nodes: vec![Node { child, port, bus: 0 }], folder };
    eventually("the server answers", || nodes.nodes[0].cli(&["ping"]) == "PONG");
    #[track_caller]
    fn check(port: u16, words: &[&str], expected: &str) {
        let target = format!("127.0.0.1:{port}");
        let words = [&["redis", &target, "--cluster"], words].concat();
        let error = loadgen::cli::scenario(&words).map(|scenario| scenario.description).unwrap_err();
        assert!(error.contains(expected), "{words:?}: {error}");
    }
    check(port, &[], "ERR This instance has cluster support disabled");
    check(port, &["--database", "3"], "--database is `3`, expected 0 with --cluster");
    check(port, &["--inline"], "'--cluster' cannot be used with '--inline'");
    check(1, &["--timeout", "1s"], "--cluster: 127.0.0.1:1: ");
    // The loaded program itself says so, and how it is used.
    let mut loadgen = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    let output = loadgen.args(["redis", &format!("127.0.0.1:{port}"), "--cluster"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
