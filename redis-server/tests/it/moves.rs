//! Slots that move as a whole (CLUSTER MIGRATESLOTS): between two of ours, and with either side played by the test.

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cluster::{Node, conversation, ports, said};
use super::support::genuine::Genuine;
use super::support::process::ask;
use super::support::resp::{Value, parse, request};
use super::support::{PATIENCE, until};

const NAME: &str = "0123456789abcdef0123456789abcdef01234567";

/// The slot of the tag `{a}`.
const SLOT: u16 = 15_495;

/// Nodes that know each other; the first one has all slots.
pub(crate) fn cluster(name: &str, settings: &[&[(&str, &str)]]) -> Vec<Node> {
    let nodes: Vec<Node> =
        settings.iter().enumerate().map(|(at, settings)| Node::start(&format!("{name}-{at}"), settings)).collect();
    nodes[0].ask("CLUSTER ADDSLOTSRANGE 0 16383");
    for node in &nodes[1..] {
        nodes[0].meets(node);
    }
    let known = format!("cluster_known_nodes:{}", nodes.len());
    until("all know each other", || {
        nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok") && node.says("CLUSTER INFO", &known))
    });
    nodes
}

/// How the newest move of a node stands, in one text.
pub(crate) fn state(node: &Node) -> String {
    match node.ask("CLUSTER GETSLOTMIGRATIONS") {
        Value::Array(moves) => moves.first().map(said).unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn wait_for(node: &Node, wanted: &str) {
    let mut seen = String::new();
    let start = Instant::now();
    while !seen.contains(wanted) {
        assert!(start.elapsed() < PATIENCE, "not {wanted} but {seen}");
        thread::sleep(Duration::from_millis(2));
        seen = state(node);
    }
}

/// A connection on which both sides say commands.
struct Wire {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Wire {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, input: Vec::new() }
    }

    fn say(&mut self, line: &str) {
        self.stream.write_all(&request(&line.split(' ').collect::<Vec<_>>())).unwrap();
    }

    /// The next reply, or command; none at the end.
    fn hear(&mut self) -> Option<String> {
        loop {
            if let Some((value, used)) = parse(&self.input).unwrap() {
                self.input.drain(..used);
                return Some(said(&value));
            }
            let mut chunk = [0; 4096];
            match test_peers::read(&mut self.stream, &mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The next message that is no sign of life.
    fn hears(&mut self) -> String {
        loop {
            match self.hear() {
                Some(word) if word == "CLUSTER SYNCSLOTS ACK" => {}
                Some(word) => return word.strip_prefix("CLUSTER SYNCSLOTS ").unwrap_or(&word).to_owned(),
                None => return "nothing".to_owned(),
            }
        }
    }
}

/// All kinds of values under the tag `{a}`, some of them large.
fn fill(node: &Node) -> Vec<String> {
    let mut stream = node.connect();
    let mut run = |words: &[&str]| {
        let reply = ask(&mut stream, words);
        assert!(!reply.is_error(), "{words:?}: {}", reply.text());
    };
    let large = "x".repeat(300_000);
    run(&["SET", "{a}text", "value"]);
    run(&["SET", "{a}number", "7", "PX", "100000000"]);
    run(&["SET", "{a}large", &large]);
    run(&["HSET", "{a}hash", "f", "1", "g", "2"]);
    run(&["HEXPIRE", "{a}hash", "10000", "FIELDS", "1", "g"]);
    run(&["ZADD", "{a}zset", "1.5", "a", "-inf", "b"]);
    run(&["XADD", "{a}stream", "1-1", "f", "v"]);
    run(&["XADD", "{a}stream", "2-1", "f", "v"]);
    run(&["XGROUP", "CREATE", "{a}stream", "g", "0"]);
    run(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "{a}stream", ">"]);
    run(&["PFADD", "{a}log", "1", "2", "3"]);
    for first in (0..20_000).step_by(500) {
        let members: Vec<String> = (first..first + 500).map(|member| member.to_string()).collect();
        for (name, key) in [("RPUSH", "{a}list"), ("SADD", "{a}set")] {
            run(&[&[name, key], members.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat());
        }
    }
    let keys = ["text", "number", "large", "hash", "zset", "stream", "log", "list", "set"];
    keys.iter().map(|key| format!("{{a}}{key}")).collect()
}

fn digests(node: &Node, keys: &[String]) -> Vec<String> {
    let mut stream = node.connect();
    let mut texts = Vec::new();
    for key in keys {
        texts.push(said(&ask(&mut stream, &["DEBUG", "DIGEST-VALUE", key])));
    }
    let told = said(&ask(&mut stream, &["XINFO", "STREAM", "{a}stream", "FULL"]));
    // When a consumer was seen last cannot be said by commands.
    texts.push(told.split(" consumers ").next().unwrap().to_owned());
    texts.push(said(&ask(&mut stream, &["PEXPIRETIME", "{a}number"])));
    texts.push(said(&ask(&mut stream, &["HPEXPIRETIME", "{a}hash", "FIELDS", "2", "f", "g"])));
    texts
}

/// A client that follows redirections: it counts in some keys, and checks each counter.
fn count_up(addresses: &[String], keys: &[String], stop: &AtomicBool) -> Vec<u64> {
    let mut at = 0;
    let mut connections: Vec<TcpStream> = addresses.iter().map(|addr| TcpStream::connect(addr).unwrap()).collect();
    let mut counts = vec![0; keys.len()];
    for round in 0.. {
        if stop.load(Relaxed) {
            break;
        }
        let key = round % keys.len();
        loop {
            let reply = ask(&mut connections[at], &["INCR", &keys[key]]);
            match &reply {
                Value::Int(count) => {
                    counts[key] += 1;
                    assert_eq!(*count, counts[key] as i64, "{}", keys[key]);
                    break;
                }
                Value::Error(error) if error.starts_with(b"MOVED") => {
                    let text = reply.text();
                    let target = text.rsplit(' ').next().unwrap().to_owned();
                    at = addresses.iter().position(|addr| *addr == target).unwrap();
                }
                Value::Error(error) if error.starts_with(b"TRYAGAIN") => thread::sleep(Duration::from_millis(1)),
                other => panic!("{other:?}"),
            }
        }
    }
    counts
}

#[test]
fn slots_move_as_a_whole_while_clients_write() {
    let debug: &[(&str, &str)] = &[("enable-debug-command", "yes"), ("compatibility", "valkey-9")];
    let nodes = cluster("moves-whole", &[debug, debug, debug]);
    let [one, two, three] = &nodes[..] else { unreachable!() };
    let keys = fill(one);
    let before = digests(one, &keys);
    let (addresses, stop) = (vec![one.addr(), two.addr()], Arc::new(AtomicBool::new(false)));
    let counters: Vec<Vec<String>> =
        (0..3).map(|writer| (0..7).map(|at| format!("counter-{writer}-{at}")).collect()).collect();
    let writers: Vec<_> = counters
        .iter()
        .map(|keys| {
            let (addresses, keys, stop) = (addresses.clone(), keys.clone(), Arc::clone(&stop));
            thread::spawn(move || count_up(&addresses, &keys, &stop))
        })
        .collect();
    // There and back again: what has come must be able to go. A primary without slots follows the one that has taken the last slot, so some
    // stay.
    let (more, most) = ("0 8000 8002 16383", "0 8000 8002 16000");
    for (from, to, slots) in [(one, two, more), (two, one, most), (one, two, most)] {
        let reply = from.ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slots} NODE {}", to.id()));
        assert_eq!(reply.text(), "OK");
        wait_for(from, "state success");
        wait_for(to, "state success");
        until("all know the new owner", || {
            let moved = format!("MOVED {SLOT} {}", to.addr());
            from.says("GET {a}text", &moved) && three.says("GET {a}text", &moved)
        });
        until("nothing is left of it", || from.says(&format!("CLUSTER COUNTKEYSINSLOT {SLOT}"), "0"));
    }
    stop.store(true, Relaxed);
    for (keys, writer) in counters.iter().zip(writers) {
        let counts = writer.join().unwrap();
        assert!(counts.iter().sum::<u64>() > 100, "{counts:?}");
        for (key, count) in keys.iter().zip(counts) {
            assert_eq!(two.ask(&format!("GET {key}")).text(), count.to_string(), "{key}");
        }
    }
    assert_eq!(digests(two, &keys), before);
    let shown = state(two);
    for part in ["operation IMPORT", "slot_ranges 0-8000 8002-16000", "cow_size 0", &one.id(), &two.id()] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(state(one).contains("operation EXPORT"));
    // A primary that releases its last slots follows their new owner.
    let reply = two.ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 8000 8002 16383 NODE {}", one.id()));
    assert_eq!(reply.text(), "OK");
    wait_for(two, "state success");
    until("it is a replica", || two.says("INFO replication", "role:slave"));
    assert_eq!(digests(one, &keys), before);
}

/// While a list of 100 MB moves, no part of the keyspace is locked for long on either node, as the nodes themselves count.
#[test]
fn no_lock_is_held_while_a_large_list_moves() {
    const ELEMENTS: usize = 100_000;
    let debug: &[(&str, &str)] = &[("enable-debug-command", "yes")];
    let nodes = cluster("moves-large", &[debug, debug]);
    let element = "x".repeat(1000);
    let mut words = vec!["RPUSH", "{a}list"];
    words.resize(2 + 1000, &element);
    let fill = request(&words).repeat(ELEMENTS / 1000);
    let mut link = nodes[0].connect();
    link.write_all(&fill).unwrap();
    until("the list is there", || nodes[0].says("LLEN {a}list", &ELEMENTS.to_string()));
    let before = digests(&nodes[0], &["{a}list".to_owned()]);
    nodes.iter().for_each(|node| assert_eq!(node.ask("DEBUG LOCKS RESET").text(), "OK"));
    let began = Instant::now();
    let reply = nodes[0].ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {SLOT} {SLOT} NODE {}", nodes[1].id()));
    assert_eq!(reply.text(), "OK");
    wait_for(&nodes[0], "state success");
    wait_for(&nodes[1], "state success");
    let took = began.elapsed();
    let held: Vec<u128> = nodes.iter().map(|node| node.ask("DEBUG LOCKS").text().parse().unwrap()).collect();
    println!(
        "a list of 100 MB moved in {} ms; the longest locks of source and target, in µs: {held:?}",
        took.as_millis()
    );
    // A lock that is held for the whole value is held for most of that time.
    assert!(held.iter().all(|held| (1..took.as_micros() / 4).contains(held)), "{held:?} µs of {took:?}");
    assert_eq!(digests(&nodes[1], &["{a}list".to_owned()]), before);
}

/// Slots come back while the source still removes their old keys; the new keys stay.
#[test]
fn slots_move_there_and_back_at_once() {
    const KEYS: usize = 20_000;
    let nodes = cluster("back", &[&[], &[]]);
    let ids: Vec<String> = nodes.iter().map(Node::id).collect();
    let script = format!("for i = 1, {KEYS} do redis.call('SET', '{{a}}' .. i, i) end return 1");
    assert_eq!(ask(&mut nodes[0].connect(), &["EVAL", &script, "1", "{a}"]), Value::Int(1));
    // A primary without slots becomes a replica.
    for (from, to, slot) in [(0, 1, 0), (0, 1, SLOT), (1, 0, SLOT), (0, 1, SLOT), (1, 0, SLOT)] {
        let order = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}", ids[to]);
        until("the slots can be moved", || nodes[from].ask(&order) == Value::Status(b"OK".into()));
        wait_for(&nodes[to], "state success");
    }
    let count = format!("CLUSTER COUNTKEYSINSLOT {SLOT}");
    until("the other one has removed its keys", || nodes[1].ask(&count) == Value::Int(0));
    assert_eq!(nodes[0].ask(&count), Value::Int(KEYS as i64));
}

#[test]
fn invalid_slot_migration_requests_return_errors() {
    let nodes = cluster("moves-errors", &[&[], &[]]);
    let (one, two) = (&nodes[0], &nodes[1]);
    let (id, other) = (one.id(), two.id());
    let stranger = "f".repeat(40);
    let to = |slots: &str, id: &str| format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slots} NODE {id}");
    conversation(
        one,
        &[
            ("CLUSTER GETSLOTMIGRATIONS", ""),
            ("CLUSTER CANCELSLOTMIGRATIONS", "ERR No migrations ongoing"),
            (&to("0", &other), "ERR wrong number of arguments"),
            (&to("1 0", &other), "ERR Start slot number 1 is greater than end slot number 0."),
            (&to("0 16384", &other), "ERR Invalid or out of range slot"),
            (&to("0 5 5 6", &other), "ERR Slot range 5-6 overlaps with a previous range at slot 5."),
            (&to("0 5 6", &other), "ERR Invalid or out of range slot"),
            (&to("0 5", "nobody"), "ERR Invalid node name: nobody"),
            (&to("0 5", &stranger), &format!("ERR Unknown node name: {stranger}")),
            (&to("0 5", &id), "ERR Target node can not be this node."),
            (&format!("CLUSTER MIGRATESLOTS NODE {other} SLOTSRANGE 0 5"), "ERR syntax error"),
            (&format!("{} SLOTSRANGE 5 9 NODE {other}", to("0 5", &other)), "ERR Slot ranges in migrations overlap"),
            ("CLUSTER SYNCSLOTS PAUSED", "ERR CLUSTER SYNCSLOTS PAUSED should only be used by slot migration clients"),
            ("CLUSTER SYNCSLOTS NEWS", "ERR syntax error"),
            (&format!("CLUSTER SYNCSLOTS FINISH STATE success NAME {NAME}"), "ERR No such slot migration job"),
        ],
    );
    let establish = |source: &str, slots: &str| {
        format!("CLUSTER SYNCSLOTS ESTABLISH SOURCE {source} NAME {NAME} SLOTSRANGE {slots}")
    };
    conversation(
        two,
        &[
            (&to("0 5", &id), "ERR Slots are not served by this node."),
            (&establish(&stranger, "0 5"), "ERR Target node does not know the source node"),
            (&establish(&other, "0 5"), "ERR Source node is target node itself"),
            (&establish(&id, "5"), "ERR No end slot for final slot range"),
            (&format!("CLUSTER SYNCSLOTS ESTABLISH NAME {NAME} SLOTSRANGE 0 5"), "ERR syntax error"),
            ("MULTI", "OK"),
            (&establish(&id, "0 5"), "QUEUED"),
            ("EXEC", "ERR CLUSTER SYNCSLOTS ESTABLISH needs a connection of its own"),
        ],
    );
    one.ask("CLUSTER DELSLOTS 7");
    conversation(
        one,
        &[
            (&to("7 7", &other), "ERR Slot 7 has no node served."),
            (&format!("CLUSTER SETSLOT 9 MIGRATING {other}"), "OK"),
            (&to("0 5", &other), "ERR Slots are being manually migrated"),
        ],
    );
}

/// Arriving keys are invisible, on replicas too, until the import succeeds or fails.
#[test]
fn arriving_keys_stay_invisible_until_the_import_ends() {
    let nodes = cluster("moves-hidden", &[&[], &[], &[]]);
    let [one, two, replica] = &nodes[..] else { unreachable!() };
    replica.ask(&format!("CLUSTER REPLICATE {}", two.id()));
    until("the replica follows", || replica.says("INFO replication", "master_link_status:up"));
    conversation(one, &[("SET {a}1 old", "OK")]);
    let there = format!("MOVED {SLOT} {}", one.addr());
    let begin = |name: &str| {
        let mut wire = Wire::new(two.connect());
        wire.say(&format!("CLUSTER SYNCSLOTS ESTABLISH SOURCE {} NAME {name} SLOTSRANGE {SLOT} {SLOT}", one.id()));
        assert_eq!(wire.hears(), "OK");
        for line in ["CLUSTER SYNCSLOTS ACK", "SELECT 0", "SET {a}1 x", "RPUSH {a}2 a b", "PEXPIREAT {a}1 1"] {
            wire.say(line);
        }
        wire
    };
    let is_hidden = |node: &Node, keys: usize| {
        until("what is sent is there", || node.says(&format!("CLUSTER COUNTKEYSINSLOT {SLOT}"), &keys.to_string()));
        let empty = [("DBSIZE", "0"), ("KEYS *", ""), ("SCAN 0 COUNT 100000", "0 "), ("RANDOMKEY", "NullBulk")];
        for (line, expected) in empty {
            let reply = node.ask(line);
            assert_eq!(said(&reply).trim(), expected.trim(), "{line}");
        }
        assert!(!node.says("INFO keyspace", "keys="));
        conversation(node, &[("GET {a}1", &there), ("READONLY", "OK"), ("GET {a}1", &there)]);
    };
    // It comes to nothing: the connection ends.
    let wire = begin(NAME);
    is_hidden(two, 2);
    is_hidden(replica, 2);
    assert!(state(two).contains("state receiving-snapshot"), "{}", state(two));
    assert!(state(replica).contains("state occurring-on-primary"), "{}", state(replica));
    let mut other = Wire::new(two.connect());
    other.say(&format!("CLUSTER SYNCSLOTS ESTABLISH SOURCE {} NAME {} SLOTSRANGE 0 {SLOT}", one.id(), "e".repeat(40)));
    assert!(other.hears().contains("already being imported"));
    drop(wire);
    for node in [two, replica] {
        wait_for(node, "state failed");
        until("nothing is left", || node.says(&format!("CLUSTER COUNTKEYSINSLOT {SLOT}"), "0"));
    }
    conversation(one, &[("GET {a}1", "old")]);
    // Another one comes to its end, with the test's word for what the source does.
    let mut wire = begin(&"d".repeat(40));
    wire.say("DEL {a}1");
    wire.say("CLUSTER SYNCSLOTS SNAPSHOT-EOF");
    assert_eq!(wire.hears(), "REQUEST-PAUSE");
    is_hidden(two, 1);
    wire.say("SET {a}1 new");
    wire.say("CLUSTER SYNCSLOTS PAUSED");
    let request = wire.hears();
    let epoch: u64 = request.strip_prefix("REQUEST-FAILOVER EPOCH ").unwrap().parse().unwrap();
    wire.say(&format!("CLUSTER SYNCSLOTS FAILOVER-GRANTED EPOCH {}", epoch + 7));
    assert_eq!(wire.hears(), "nothing");
    conversation(two, &[("GET {a}1", "new"), ("DBSIZE", "2"), ("LRANGE {a}2 0 -1", "a b")]);
    assert!(two.says("CLUSTER INFO", &format!("cluster_my_epoch:{}", epoch + 7)));
    wait_for(replica, "state success");
    // The bus tells it to which node the slot belongs.
    let moved = format!("MOVED {SLOT} {}", two.addr());
    until("the replica knows the new owner", || replica.says("GET {a}1", &moved));
    conversation(replica, &[("READONLY", "OK"), ("DBSIZE", "2"), ("GET {a}1", "new")]);
    // The node that had it is told by the bus, and what it has goes.
    until("the former owner knows", || one.says("GET {a}1", &moved));
    until("its keys are gone", || one.says("DBSIZE", "0"));
}

#[test]
fn an_invalid_source_command_fails_the_migration() {
    let nodes = cluster("moves-wrong", &[&[], &[]]);
    let (one, two) = (&nodes[0], &nodes[1]);
    let cases = [
        ("SET b x", "it is not about the slots of the migration"),
        ("FLUSHALL", "it is not about the slots of the migration"),
        ("NOSUCH {a}", "unknown command"),
        ("LPUSH {a}text x", "WRONGTYPE"),
        ("CLUSTER SYNCSLOTS NEWS", "it is unknown"),
        ("CLUSTER SYNCSLOTS PAUSED", "Unexpected state machine transition"),
        ("CLUSTER SYNCSLOTS FAILOVER-GRANTED", "Unexpected state machine transition"),
    ];
    for (at, (line, why)) in cases.iter().enumerate() {
        let mut wire = Wire::new(two.connect());
        let name = format!("{at:040x}");
        wire.say(&format!("CLUSTER SYNCSLOTS ESTABLISH SOURCE {} NAME {name} SLOTSRANGE {SLOT} {SLOT}", one.id()));
        assert_eq!(wire.hears(), "OK", "{line}");
        for line in ["CLUSTER SYNCSLOTS ACK", "SET {a}text x", line] {
            wire.say(line);
        }
        assert_eq!(wire.hears(), "nothing", "{line}");
        wait_for(two, &name);
        wait_for(two, "state failed");
        assert!(state(two).contains(why), "{line}: {}", state(two));
        assert!(two.says(&format!("CLUSTER COUNTKEYSINSLOT {SLOT}"), "0"));
    }
    conversation(one, &[("SET {a}text x", "OK")]);
}

/// A source whose target is played by the test, which has let it come as far as the permission; the listener is where it has come.
fn let_go(name: &str, settings: &[(&str, &str)]) -> (Vec<Node>, Wire, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let announced = [("cluster-announce-port", port.as_str()), ("cluster-require-full-coverage", "no")];
    let nodes = cluster(name, &[settings, &announced]);
    let one = &nodes[0];
    conversation(one, &[("SET {a}1 x", "OK"), ("SET b y", "OK")]);
    let reply = one.ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {SLOT} {SLOT} NODE {}", nodes[1].id()));
    assert_eq!(reply.text(), "OK");
    let mut wire = Wire::new(listener.accept().unwrap().0);
    let greeting = wire.hears();
    assert!(greeting.starts_with(&format!("ESTABLISH SOURCE {} NAME ", one.id())), "{greeting}");
    assert!(greeting.ends_with(&format!(" SLOTSRANGE {SLOT} {SLOT}")), "{greeting}");
    wire.stream.write_all(b"+OK\r\n").unwrap();
    assert_eq!(wire.hears(), "SET {a}1 x");
    assert_eq!(wire.hears(), "SNAPSHOT-EOF");
    // Of what is written only what concerns the slot comes, without what stands around it.
    conversation(one, &[("MULTI", "OK"), ("INCR {a}2", "QUEUED"), ("APPEND {a}1 y", "QUEUED"), ("EXEC", "1")]);
    conversation(one, &[("SET b z", "OK"), ("DEL {a}2", "1")]);
    for word in ["INCR {a}2", "APPEND {a}1 y", "DEL {a}2"] {
        assert_eq!(wire.hears(), word);
    }
    wire.say("CLUSTER SYNCSLOTS REQUEST-PAUSE");
    assert_eq!(wire.hears(), "PAUSED");
    wire.say("CLUSTER SYNCSLOTS REQUEST-FAILOVER EPOCH 20");
    let granted = wire.hears();
    let epoch = granted.strip_prefix("FAILOVER-GRANTED EPOCH ").unwrap_or_else(|| panic!("{granted}"));
    (nodes, wire, epoch.parse().unwrap())
}

#[test]
fn a_source_takes_back_what_its_target_has_not_taken() {
    let (nodes, wire, epoch) = let_go("moves-back", &[]);
    let one = &nodes[0];
    assert!(epoch > 20, "above all that either has seen: {epoch}");
    assert!(state(one).contains("state failover-granted"), "{}", state(one));
    // Writes to the slot wait, and all else goes on. The end of the connection does not decide on the slot's owner.
    drop(wire);
    let began = Instant::now();
    conversation(one, &[("GET {a}1", "xy"), ("SET b w", "OK"), ("MGET {a}1 {a}2", "xy")]);
    let mut held = one.connect();
    held.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    held.write_all(&request(&["SET", "{a}1", "held"])).unwrap();
    assert!(test_peers::read(&mut held, &mut [0; 8]).is_err(), "it is not answered yet");
    let mut stuck = one.connect();
    until("it is told to try again, or that it is written", || {
        let reply = ask(&mut stuck, &["SET", "{a}1", "again"]);
        reply.text() == "OK" || reply.text().starts_with("TRYAGAIN")
    });
    // The target is asked when the permission has lapsed, and has not got the slot.
    wait_for(one, "state failed");
    assert!(began.elapsed() > Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(state(one).contains("The target has not taken the slots"), "{}", state(one));
    conversation(one, &[("SET {a}1 free", "OK"), ("GET {a}1", "free")]);
}

#[test]
fn released_slots_stay_released_after_a_restart() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always"), ("cluster-require-full-coverage", "no")];
    let (mut nodes, wire, _) = let_go("moves-restart", &settings);
    nodes[1].process.signal(Signal::STOP);
    nodes[0].process.signal(Signal::KILL);
    nodes[0].process.ended();
    drop(wire);
    nodes[0].process.restart();
    let one = &nodes[0];
    assert!(state(one).contains("state failover-granted"), "{}", state(one));
    until("it serves again", || one.says("CLUSTER INFO", "cluster_state:ok") || one.says("SET b v", "OK"));
    let mut refused = false;
    until("who has waited is told to try again", || {
        let mut stream = one.connect();
        let reply = ask(&mut stream, &["SET", "{a}1", "lost"]).text();
        assert_ne!(reply, "OK", "the target may have it");
        refused |= reply.starts_with("TRYAGAIN");
        refused
    });
    nodes[1].process.signal(Signal::CONT);
    until("the target has said that it has it not", || nodes[0].says("SET {a}1 kept", "OK"));
    assert!(state(&nodes[0]).contains("state failed"));
}

#[test]
fn moves_that_are_cut_off_leave_everything_where_it_was() {
    let aof = [("appendonly", "yes"), ("cluster-require-full-coverage", "no")];
    let mut nodes = cluster("moves-cut", &[&aof, &aof, &[("cluster-require-full-coverage", "no")]]);
    let counts = |node: &Node| node.ask("DBSIZE").text();
    // Enough that it is still under way when something happens.
    let mut stream = nodes[0].connect();
    let value = "v".repeat(50_000);
    for key in 0..2000 {
        ask(&mut stream, &["SET", &format!("key-{key}"), &value]);
    }
    drop(stream);
    let begin = |nodes: &[Node]| {
        let reply = nodes[0].ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 16000 NODE {}", nodes[1].id()));
        assert_eq!(reply.text(), "OK");
        until("keys come", || nodes[1].says("CLUSTER GETSLOTMIGRATIONS", "") && state(&nodes[1]).contains("receiving"));
    };
    let is_as_before = |nodes: &[Node]| {
        until("nothing is left of it", || counts(&nodes[1]) == "0" && nodes[1].says("INFO keyspace", "# Keyspace"));
        assert_eq!(counts(&nodes[0]), "2000");
        conversation(&nodes[0], &[("SET key-1 x", "OK")]);
    };
    // An operator.
    begin(&nodes);
    conversation(&nodes[0], &[("CLUSTER CANCELSLOTMIGRATIONS", "OK")]);
    wait_for(&nodes[0], "state cancelled");
    wait_for(&nodes[1], "state failed");
    is_as_before(&nodes);
    // The target's process, which has some of it in its file.
    begin(&nodes);
    nodes[1].process.signal(Signal::KILL);
    nodes[1].process.ended();
    wait_for(&nodes[0], "Connection lost to target");
    nodes[1].process.restart();
    wait_for(&nodes[1], "state failed");
    is_as_before(&nodes);
    until("all is well again", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    assert!(nodes[1].says("CLUSTER NODES", "myself") && !nodes[1].says("CLUSTER NODES", "-<-"), "no slot is open");
    // The source's.
    begin(&nodes);
    nodes[0].process.signal(Signal::KILL);
    nodes[0].process.ended();
    wait_for(&nodes[1], "state failed");
    nodes[0].process.restart();
    until("it serves again", || nodes[0].says("SET key-1 x", "OK"));
    is_as_before(&nodes);
    // A slot's data, be there some or not; that of another slot is not the move's.
    until("all is well again", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    begin(&nodes);
    let free = |slots: std::ops::Range<u16>| {
        let is_empty = |slot: &u16| nodes[0].ask(&format!("CLUSTER COUNTKEYSINSLOT {slot}")) == Value::Int(0);
        slots.into_iter().find(is_empty).unwrap()
    };
    let (within, beyond) = (free(0..16_000), free(16_001..16_384));
    conversation(&nodes[0], &[(&format!("CLUSTER FLUSHSLOT {beyond}"), "OK")]);
    assert!(!state(&nodes[0]).contains("state failed"), "{}", state(&nodes[0]));
    conversation(&nodes[0], &[(&format!("CLUSTER FLUSHSLOT {within}"), "OK")]);
    wait_for(&nodes[0], "Data was flushed");
    wait_for(&nodes[1], "state failed");
    is_as_before(&nodes);
    // Its data.
    until("all is well again", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    begin(&nodes);
    conversation(&nodes[0], &[("FLUSHALL", "OK")]);
    wait_for(&nodes[0], "Data was flushed");
    wait_for(&nodes[1], "state failed");
    until("nothing is left", || counts(&nodes[0]) == "0" && counts(&nodes[1]) == "0");
}

/// To a genuine Valkey and back again: what its nodes say is what ours say.
#[test]
fn slots_move_to_valkey_and_back() {
    let settings = |(port, bus): &(String, String)| {
        let all = [
            ("cluster-enabled", "yes"),
            ("bind", "127.0.0.1"),
            ("port", port),
            ("cluster-port", bus),
            ("cluster-node-timeout", "2000"),
            ("repl-diskless-sync-delay", "0"),
        ];
        all.map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let places = ports();
    let Some(mut valkey) = Genuine::valkey(&settings(&places)) else { return };
    if valkey.version < [9, 0] {
        println!("skipped: slots move as a whole since Valkey 9, and this is {:?}", valkey.version);
        return;
    }
    let one = Node::start("moves-valkey", &[("enable-debug-command", "yes"), ("compatibility", "valkey-9")]);
    one.ask("CLUSTER ADDSLOTSRANGE 0 16000");
    valkey.ask(&["CLUSTER", "ADDSLOTSRANGE", "16001", "16383"]);
    one.ask(&format!("CLUSTER MEET 127.0.0.1 {} {}", places.0, places.1));
    until("both are well", || {
        one.says("CLUSTER INFO", "cluster_state:ok")
            && one.says("CLUSTER INFO", "cluster_known_nodes:2")
            && valkey.ask(&["CLUSTER", "INFO"]).text().contains("cluster_state:ok")
    });
    let keys = fill(&one);
    let before = digests(&one, &keys);
    let other = valkey.ask(&["CLUSTER", "MYID"]).text();
    assert_eq!(one.ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE 8000 16000 NODE {other}")).text(), "OK");
    wait_for(&one, "state success");
    let told = said(&valkey.ask(&["CLUSTER", "GETSLOTMIGRATIONS"]));
    assert!(told.contains("state success") && told.contains("slot_ranges 8000-16000"), "{told}");
    assert_eq!(valkey.ask(&["GET", "{a}text"]).text(), "value");
    assert_eq!(valkey.ask(&["DBSIZE"]), Value::Int(keys.len() as i64));
    until("nothing is left here", || one.says("DBSIZE", "0"));
    let id = one.id();
    let reply = valkey.ask(&["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "8000", "16000", "NODE", &id]);
    assert_eq!(reply.text(), "OK", "{}", said(&valkey.ask(&["CLUSTER", "GETSLOTMIGRATIONS"])));
    wait_for(&one, "operation IMPORT");
    wait_for(&one, "state success");
    until("it knows", || said(&valkey.ask(&["CLUSTER", "GETSLOTMIGRATIONS"])).matches("state success").count() == 2);
    assert_eq!(digests(&one, &keys), before);
}
