//! Nodes of a cluster: what clients are told, slots that move, a file that outlives its server.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::support::process::{Process, ask, next_reply};
use super::support::resp::{Value, request};
use super::support::{PATIENCE, until};

/// Two ports that are free just now.
pub(crate) fn ports() -> (String, String) {
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, bus] = sockets.map(|socket| socket.local_addr().unwrap().port().to_string());
    (port, bus)
}

pub(crate) struct Node {
    pub(crate) process: Process,
    pub(crate) port: String,
    pub(crate) bus: String,
}

impl Node {
    pub(crate) fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_at(name, ports(), settings)
    }

    /// A genuine one; its program is there.
    pub(crate) fn genuine(name: &str) -> Self {
        Self::of(Process::genuine, name, ports(), &[])
    }

    /// With its port and its bus's.
    pub(crate) fn start_at(name: &str, ports: (String, String), settings: &[(&str, &str)]) -> Self {
        Self::of(Process::start, name, ports, settings)
    }

    fn of(
        start: fn(&str, &[(&str, &str)]) -> Process,
        name: &str,
        (port, bus): (String, String),
        settings: &[(&str, &str)],
    ) -> Self {
        let own = [
            ("cluster-enabled", "yes"),
            ("bind", "127.0.0.1"),
            ("port", port.as_str()),
            ("cluster-port", bus.as_str()),
            ("cluster-node-timeout", "2000"),
            ("save", ""),
            ("repl-diskless-sync-delay", "0"),
        ];
        let process = start(name, &[&own, settings].concat());
        Self { process, port, bus }
    }

    pub(crate) fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn ask(&self, line: &str) -> Value {
        ask(&mut self.connect(), &line.split(' ').collect::<Vec<_>>())
    }

    /// Whether a command on a new connection is answered in this time.
    fn answers_within(&self, time: Duration) -> bool {
        let mut stream = self.connect();
        stream.set_read_timeout(Some(time)).unwrap();
        stream.write_all(&request(&["DBSIZE"])).unwrap();
        stream.peek(&mut [0]).is_ok()
    }

    pub(crate) fn says(&self, line: &str, what: &str) -> bool {
        self.ask(line).text().contains(what)
    }

    /// User and system CPU time of all its threads so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.process.cpu_seconds()
    }

    pub(crate) fn id(&self) -> String {
        self.ask("CLUSTER MYID").text()
    }

    pub(crate) fn meets(&self, other: &Self) {
        self.ask(&format!("CLUSTER MEET 127.0.0.1 {} {}", other.port, other.bus));
    }

    /// Takes all slots, and has the other follow it.
    fn leads(&self, replica: &Self) {
        self.ask("CLUSTER ADDSLOTSRANGE 0 16383");
        self.meets(replica);
        until("they know each other", || replica.says("CLUSTER INFO", "cluster_known_nodes:2"));
        until("it serves", || self.says("CLUSTER INFO", "cluster_state:ok"));
        replica.ask(&format!("CLUSTER REPLICATE {}", self.id()));
        until("the replica follows", || replica.says("INFO replication", "master_link_status:up"));
    }
}

/// A reply as text, an array's elements one after the other.
pub(crate) fn said(reply: &Value) -> String {
    match reply {
        Value::Array(elements) => elements.iter().map(said).collect::<Vec<_>>().join(" "),
        other => other.text(),
    }
}

/// Checks the node's reply to each line, on one connection.
#[track_caller]
pub(crate) fn conversation(node: &Node, lines: &[(&str, &str)]) {
    let mut stream = node.connect();
    for (line, expected) in lines {
        let reply = ask(&mut stream, &line.split(' ').collect::<Vec<_>>());
        let said = said(&reply);
        assert!(said.contains(expected), "{line}: {said}, not {expected}");
    }
}

#[test]
fn a_node_serves_all_slots_alone_and_is_the_same_after_a_restart() {
    let mut node = Node::start("cluster-one", &[]);
    conversation(
        &node,
        &[("GET k", "CLUSTERDOWN Hash slot not served"), ("PING", "PONG"), ("SELECT 1", "ERR SELECT is not")],
    );
    node.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    until("the cluster serves", || node.says("CLUSTER INFO", "cluster_state:ok"));
    conversation(
        &node,
        &[
            ("SET {a}1 x", "OK"),
            ("MSET {a}2 x {a}3 x", "OK"),
            ("MSET a x b y", "CROSSSLOT Keys in request don't hash to the same slot"),
            ("CLUSTER KEYSLOT {a}1", "15495"),
            ("CLUSTER COUNTKEYSINSLOT 15495", "3"),
            ("CLUSTER COUNTKEYSINSLOT 16384", "ERR Invalid slot"),
            ("CLUSTER SLOT-STATS SLOTSRANGE 15494 15495", "15494 key-count 0 15495 key-count 3"),
            ("CLUSTER SLOT-STATS ORDERBY key-count LIMIT 2", "15495 key-count 3 0 key-count 0"),
            ("CLUSTER SLOT-STATS ORDERBY key-count ASC LIMIT 1", "0 key-count 0"),
            ("CLUSTER SLOT-STATS SLOTSRANGE 2 1", "ERR Start slot number 2 is greater than end slot number 1"),
            ("CLUSTER SLOT-STATS SLOTSRANGE 0 16384", "ERR Invalid or out of range slot"),
            ("CLUSTER SLOT-STATS SLOTSRANGE 0", "ERR unknown subcommand or wrong number of arguments for 'SLOT-STATS'"),
            ("CLUSTER SLOT-STATS ORDERBY cpu-usec", "ERR Unrecognized sort metric for ORDERBY."),
            ("CLUSTER SLOT-STATS ORDERBY key-count LIMIT 0", "ERR Limit has to lie in between 1 and 16384"),
            ("CLUSTER SLOT-STATS ORDERBY key-count ASC DESC", "ERR Multiple filters of the same type are disallowed."),
            ("CLUSTER SLOT-STATS ORDERBY key-count LIMIT", "ERR syntax error"),
            ("CLUSTER ADDSLOTS 7", "ERR Slot 7 is already busy"),
            ("MULTI", "OK"),
            ("SET {a}1 y", "QUEUED"),
            ("MGET a b", "CROSSSLOT"),
            ("EXEC", "EXECABORT"),
            ("GET {a}1", "x"),
            ("EVAL return{redis.call('get',KEYS[1])} 2 {a}1 b", "CROSSSLOT"),
            ("REPLICAOF 127.0.0.1 1", "ERR REPLICAOF not allowed in cluster mode."),
        ],
    );
    let id = node.id();
    node.process.signal(rustix::process::Signal::KILL);
    node.process.ended();
    node.process.restart();
    assert_eq!(node.id(), id);
    until("it serves again", || node.says("CLUSTER INFO", "cluster_state:ok"));
    assert!(node.says("CLUSTER NODES", "myself,master - 0 0"), "{}", node.ask("CLUSTER NODES").text());
    assert!(node.says("CLUSTER NODES", "0-16383"));
}

#[test]
fn slots_of_others_have_no_statistics() {
    let node = Node::start("cluster-stats", &[]);
    node.ask("CLUSTER ADDSLOTS 1 3");
    conversation(&node, &[("CLUSTER SLOT-STATS ORDERBY key-count ASC", "1 key-count 0 3 key-count 0")]);
    assert_eq!(node.ask("CLUSTER SLOT-STATS SLOTSRANGE 4 16383"), Value::Array(Vec::new()));
}

/// CLUSTER FLUSHSLOT: for who reads, watches or listens, for a replica, and for who starts from the file.
#[test]
fn a_slot_s_keys_are_deleted_as_a_whole() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always"), ("notify-keyspace-events", "Kg")];
    let (mut node, replica) = (Node::start("cluster-flush", &settings), Node::start("cluster-flush-replica", &[]));
    node.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    node.meets(&replica);
    until("they know each other", || replica.says("CLUSTER NODES", &node.id()));
    until("both serve", || [&node, &replica].iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    replica.ask(&format!("CLUSTER REPLICATE {}", node.id()));
    until("the replica follows", || replica.says("INFO replication", "master_link_status:up"));
    conversation(
        &node,
        &[
            ("CLUSTER FLUSHSLOT 16384", "ERR Invalid or out of range slot"),
            ("CLUSTER FLUSHSLOT x NOW", "ERR Invalid or out of range slot"),
            ("CLUSTER FLUSHSLOT 1 NOW", "ERR syntax error"),
            ("CLUSTER FLUSHSLOT 1 SYNC SYNC", "ERR unknown subcommand or wrong number of arguments for 'FLUSHSLOT'"),
            ("CLUSTER FLUSHSLOT", "ERR wrong number of arguments for 'cluster|flushslot' command"),
            ("MSET {a}1 x {a}2 x {a}3 x", "OK"),
            ("SET b x", "OK"),
            ("PEXPIRE {a}1 100000", "1"),
            ("CONFIG RESETSTAT", "OK"),
            ("CLUSTER FLUSHSLOT 15495", "OK"),
            ("CLUSTER COUNTKEYSINSLOT 15495", "0"),
            ("DBSIZE", "1"),
            ("SET {a}1 y", "OK"),
            ("TTL {a}1", "-1"),
            // There is nothing left to expire, and nothing is said of a slot that has no keys.
            ("CLUSTER FLUSHSLOT 15495 ASYNC", "OK"),
            ("CLUSTER FLUSHSLOT 15495", "OK"),
            ("SET {a}2 z", "OK"),
            ("MULTI", "OK"),
            ("CLUSTER FLUSHSLOT 15495 SYNC", "QUEUED"),
            ("SET {a}3 z", "QUEUED"),
            ("EXEC", "OK OK"),
            ("WAIT 1 5000", "1"),
        ],
    );
    let mut watcher = node.connect();
    for words in [&["WATCH", "{a}3"][..], &["MULTI"], &["GET", "b"]] {
        ask(&mut watcher, words);
    }
    let mut subscriber = node.connect();
    ask(&mut subscriber, &["SUBSCRIBE", "__keyspace@0__:{a}3"]);
    conversation(&node, &[("CLUSTER FLUSHSLOT 15495", "OK"), ("WAIT 1 5000", "1")]);
    assert_eq!(ask(&mut watcher, &["EXEC"]), Value::NullArray);
    assert_eq!(said(&ask(&mut subscriber, &["PING"])), "message __keyspace@0__:{a}3 del");
    conversation(
        &replica,
        &[
            ("CLUSTER COUNTKEYSINSLOT 15495", "0"),
            ("DBSIZE", "1"),
            ("CLUSTER FLUSHSLOT 15495", "READONLY You can't write against a read only replica."),
        ],
    );
    let file = std::fs::read_dir(node.process.folder.join("appendonlydir")).unwrap();
    let text = file.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect::<Vec<_>>().concat();
    let text = String::from_utf8_lossy(&text);
    let matches = ["", " ASYNC", " SYNC"].map(|how| {
        let words: Vec<_> = format!("CLUSTER FLUSHSLOT 15495{how}").split(' ').map(str::to_owned).collect();
        let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        text.matches(&format!("*{}\r\n{}", words.len(), parts.collect::<String>())).count()
    });
    assert_eq!(matches, [2, 1, 1], "each that has deleted keys, in its own words");
    node.process.signal(rustix::process::Signal::KILL);
    node.process.ended();
    node.process.restart();
    conversation(&node, &[("DBSIZE", "1"), ("CLUSTER COUNTKEYSINSLOT 15495", "0")]);
}

#[test]
fn a_slot_moves_key_by_key_between_two_nodes() {
    let (one, two) = (Node::start("cluster-from", &[]), Node::start("cluster-to", &[]));
    one.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    one.meets(&two);
    until("both know each other", || {
        [&one, &two].iter().all(|node| {
            node.says("CLUSTER INFO", "cluster_state:ok") && node.says("CLUSTER INFO", "cluster_known_nodes:2")
        })
    });
    conversation(&one, &[("MSET {a}1 x {a}2 y", "OK")]);
    let (here, there) = (format!("MOVED 15495 127.0.0.1:{}", one.port), format!("MOVED 15495 127.0.0.1:{}", two.port));
    conversation(&two, &[("GET {a}1", &here)]);

    one.ask(&format!("CLUSTER SETSLOT 15495 MIGRATING {}", two.id()));
    two.ask(&format!("CLUSTER SETSLOT 15495 IMPORTING {}", one.id()));
    conversation(
        &one,
        &[
            (&format!("MIGRATE 127.0.0.1 {} {{a}}1 0 5000", two.port), "OK"),
            ("GET {a}1", &format!("ASK 15495 127.0.0.1:{}", two.port)),
            ("MGET {a}1 {a}2", "TRYAGAIN"),
            ("GET {a}2", "y"),
            (&format!("CLUSTER SETSLOT 15495 NODE {}", two.id()), "ERR Can't assign hashslot 15495"),
        ],
    );
    conversation(
        &two,
        &[("ASKING", "OK"), ("GET {a}1", "x"), ("GET {a}1", &here), ("ASKING", "OK"), ("MGET {a}1 {a}2", "TRYAGAIN")],
    );
    conversation(&one, &[(&format!("MIGRATE 127.0.0.1 {} {{a}}2 0 5000", two.port), "OK")]);
    for node in [&two, &one] {
        node.ask(&format!("CLUSTER SETSLOT 15495 NODE {}", two.id()));
    }
    conversation(&two, &[("MGET {a}1 {a}2", "x")]);
    conversation(&one, &[("GET {a}1", &there), ("CLUSTER COUNTKEYSINSLOT 15495", "0")]);
}

#[test]
fn a_replica_takes_over_when_its_primary_is_killed() {
    let mut nodes: Vec<Node> = (0..4).map(|at| Node::start(&format!("cluster-failover-{at}"), &[])).collect();
    for (node, range) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        node.ask(&format!("CLUSTER ADDSLOTSRANGE {range}"));
        nodes[0].meets(node);
    }
    nodes[0].meets(&nodes[3]);
    let all_know = || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_known_nodes:4"));
    until("all know each other", all_know);
    until("all serve", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    let primary = nodes[0].id();
    nodes[3].ask(&format!("CLUSTER REPLICATE {primary}"));
    until("the replica follows", || nodes[3].says("INFO replication", "master_link_status:up"));
    // Slot 0 is that of the empty key's tag, 12182 that of foo; 3300 is that of b.
    conversation(&nodes[0], &[("SET b x", "OK"), ("WAIT 1 5000", "1")]);
    conversation(&nodes[3], &[("GET b", "MOVED 3300"), ("READONLY", "OK"), ("GET b", "x"), ("SET b y", "MOVED 3300")]);
    until("the others know of it", || nodes[1].says("CLUSTER NODES", &format!("slave {primary}")));
    nodes[0].process.signal(rustix::process::Signal::KILL);
    nodes[0].process.ended();
    until("the replica has taken over", || nodes[3].says("SET b y", "OK"));
    conversation(&nodes[3], &[("GET b", "y")]);
    until("the others have been told", || nodes[1].says("GET b", &format!("MOVED 3300 127.0.0.1:{}", nodes[3].port)));
}

/// A command keeps all others out for longer than `cluster-node-timeout`, and a failover waits for its end: the bus goes on.
#[test]
fn a_primary_answers_its_bus_while_a_failover_waits_for_a_command() {
    let settings = [("enable-debug-command", "yes")];
    let [primary, replica] = ["primary", "replica"].map(|name| Node::start(&format!("cluster-busy-{name}"), &settings));
    primary.leads(&replica);
    let mut busy = primary.connect();
    busy.write_all(&request(&["DEBUG", "SLEEP", "5"])).unwrap();
    until("the primary has stopped", || !primary.answers_within(Duration::from_millis(100)));
    let began = Instant::now();
    conversation(&replica, &[("CLUSTER FAILOVER", "OK")]);
    while began.elapsed() < Duration::from_millis(4500) {
        let nodes = replica.ask("CLUSTER NODES").text();
        assert!(!nodes.contains("fail"), "after {:?}: {nodes}", began.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(next_reply(&mut busy).unwrap().text(), "OK");
}

#[test]
fn announced_ports_show_in_cluster_nodes_at_once() {
    let node = Node::start("cluster-announces", &[]);
    // Again and again: a change that waited for the bus would be there in time now and then.
    for port in 7001..7020 {
        let (set, seen) = (format!("CONFIG SET cluster-announce-port {port}"), format!(":{port}@"));
        conversation(&node, &[(&set, "OK"), ("CLUSTER NODES", &seen)]);
    }
}

#[test]
fn packets_of_a_type_can_be_dropped() {
    let nodes = [0, 1].map(|at| Node::start(&format!("cluster-drops-{at}"), &[("enable-debug-command", "yes")]));
    nodes[0].meets(&nodes[1]);
    until("they know each other", || {
        nodes.iter().all(|node| nodes.iter().all(|other| node.says("CLUSTER NODES", &other.id())))
    });
    let mut subscriber = nodes[0].connect();
    ask(&mut subscriber, &["SUBSCRIBE", "news"]);
    for (filter, message, received) in [("4", "dropped", 1), ("-1", "read", 2)] {
        conversation(&nodes[0], &[(&format!("DEBUG DROP-CLUSTER-PACKET-FILTER {filter}"), "OK")]);
        nodes[1].ask(&format!("PUBLISH news {message}"));
        let count = format!("cluster_stats_messages_publish_received:{received}");
        until("it has come", || nodes[0].says("CLUSTER INFO", &count));
    }
    let first = next_reply(&mut subscriber).unwrap();
    assert_eq!(first, Value::Array(["message", "news", "read"].map(|word| Value::Bulk(word.into())).to_vec()));
}

#[test]
fn a_replica_is_one_from_its_start_on() {
    let primary = Node::start("cluster-restart-primary", &[("enable-debug-command", "yes")]);
    let mut replica = Node::start("cluster-restart-replica", &[]);
    primary.leads(&replica);
    conversation(
        &primary,
        &[("DEBUG SET-ACTIVE-EXPIRE 0", "OK"), ("SET k v PX 100", "OK"), ("WAIT 1 5000", "1"), ("DBSIZE", "1")],
    );
    conversation(&replica, &[("SAVE", "OK"), ("DBSIZE", "1")]);
    let saved = std::time::Instant::now();
    until("the key's time is over", || saved.elapsed().as_millis() > 100);
    replica.process.signal(rustix::process::Signal::KILL);
    replica.process.ended();
    replica.process.restart();
    // It waits for the primary to say so.
    conversation(&replica, &[("INFO replication", "role:slave"), ("DBSIZE", "1")]);
    until("the replica follows again", || replica.says("INFO replication", "master_link_status:up"));
    assert!(primary.says("INFO stats", "sync_partial_ok:1"), "what it has is worth going on with");
}

#[test]
fn a_link_ends_on_which_too_much_waits() {
    const MESSAGE: usize = 1 << 20;
    let nodes = [0, 1].map(|at| Node::start(&format!("cluster-overflow-{at}"), &[("cluster-node-timeout", "60000")]));
    nodes[0].meets(&nodes[1]);
    until("they know each other", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_known_nodes:2")));
    let other = nodes[1].id();
    until("they are connected", || said(&nodes[0].ask("CLUSTER LINKS")).matches(&other).count() == 2);
    conversation(&nodes[0], &[("CONFIG SET cluster-link-sendbuf-limit 65536", "OK")]);
    nodes[1].process.signal(rustix::process::Signal::STOP);
    // The kernel's own buffers are full at some time.
    let (mut client, message) = (nodes[0].connect(), "m".repeat(MESSAGE));
    until("too much waits", || {
        ask(&mut client, &["PUBLISH", "channel", &message]);
        nodes[0].says("CLUSTER INFO", "total_cluster_links_buffer_limit_exceeded:1")
    });
    nodes[1].process.signal(rustix::process::Signal::CONT);
}

/// CLUSTER SLOTS and CLUSTER SHARDS name each kind of preferred endpoint as the genuine server does. A node that has no host name, but
/// should be called by it, is `?`. An unknown endpoint is null in CLUSTER SLOTS, and empty in CLUSTER SHARDS.
#[test]
fn endpoints_are_told_as_the_genuine_server_tells_them() {
    fn told(node: &Node) -> Vec<(String, Value)> {
        let kinds = ["ip", "hostname", "unknown-endpoint"];
        let told = kinds.iter().flat_map(|kind| {
            ["", "host.example"].map(|name| {
                for (setting, value) in
                    [("cluster-preferred-endpoint-type", *kind), ("cluster-announce-hostname", name)]
                {
                    ask(&mut node.connect(), &["CONFIG", "SET", setting, value]);
                }
                let Value::Array(slots) = node.ask("CLUSTER SLOTS") else { panic!("slots") };
                let Value::Array(range) = &slots[0] else { panic!("a range") };
                let Value::Array(owner) = &range[2] else { panic!("an owner") };
                let Value::Array(shards) = node.ask("CLUSTER SHARDS") else { panic!("shards") };
                let Value::Array(shard) = &shards[0] else { panic!("a shard") };
                let Value::Array(nodes) = &shard[3] else { panic!("nodes") };
                let Value::Array(fields) = &nodes[0] else { panic!("fields") };
                let endpoint = fields.chunks(2).find(|pair| pair[0].text() == "endpoint").unwrap();
                (format!("{kind}, \"{name}\""), Value::Array(vec![owner[0].clone(), endpoint[1].clone()]))
            })
        });
        told.collect()
    }
    let settings = [("cluster-announce-ip", "127.0.0.1")];
    let ours = Node::start("endpoints", &settings);
    ours.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    let unknown = Value::Array(vec![Value::NullBulk, Value::Bulk(Vec::new())]);
    let ours = told(&ours);
    assert_eq!(ours[4].1, unknown, "{ours:?}");
    if test_peers::is_there("redis-server") {
        let genuine = Node::genuine("endpoints-genuine");
        ask(&mut genuine.connect(), &["CONFIG", "SET", "cluster-announce-ip", "127.0.0.1"]);
        genuine.ask("CLUSTER ADDSLOTSRANGE 0 16383");
        assert_eq!(ours, told(&genuine));
    }
}
