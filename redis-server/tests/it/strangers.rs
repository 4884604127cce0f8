//! Strangers at a node's bus: whatever they say, whole or damaged, changes nothing of what the node knows.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;

use redis_server::cluster::packet::{Draft, Extension, Flags, Gossip, Header, Kind};
use redis_server::cluster::{NodeId, SlotSet};
use rustix::process::Signal;

use super::cluster::Node;
use super::support::{PATIENCE, Random, until};

/// Connections that send at the same time, and packets that go out between two looks at what comes back.
const WRITERS: usize = 4;
const BATCH: usize = 64;

fn id(random: &mut Random) -> NodeId {
    NodeId::from_random(|| random.below(usize::MAX) as u64)
}

fn some_slots(random: &mut Random) -> SlotSet {
    (0..40).filter(|_| random.below(2) == 0).collect()
}

/// A packet of a node that no other node knows.
fn packet(random: &mut Random) -> Vec<u8> {
    let kind = Kind::ALL[random.below(Kind::ALL.len())];
    let slots = some_slots(random);
    let mut draft = Draft::new(&Header {
        kind,
        sender: id(random),
        current_epoch: random.below(100) as u64,
        config_epoch: random.below(100) as u64,
        offset: random.below(1000) as u64,
        slots: slots.bitmap(),
        primary: (random.below(4) == 0).then(|| id(random)),
        ip: Some("127.0.0.1"),
        port: 1,
        other_port: 0,
        bus_port: 1,
        flags: Flags(random.below(1 << 16) as u16),
        is_down: random.below(2) == 0,
        message_flags: 0,
        count: 0,
        extensions: 0,
    });
    match kind {
        Kind::Ping | Kind::Pong | Kind::Meet => {
            for _ in 0..random.below(3) {
                let (id, flags) = (id(random), Flags(random.below(1 << 16) as u16));
                let (ip, pong_received) = ("127.0.0.1", random.below(1 << 32) as u32);
                let (port, bus_port, other_port, ping_sent) = (1, 1, 0, 0);
                draft.gossip(&Gossip { id, ping_sent, pong_received, ip, port, bus_port, flags, other_port });
            }
            for _ in 0..random.below(3) {
                let id = id(random);
                draft.extension(&match random.below(4) {
                    0 => Extension::Hostname("host"),
                    1 => Extension::Nodename("node"),
                    2 => Extension::Forgotten { id, ttl: random.below(100) as u64 },
                    _ => Extension::Shard(id),
                });
            }
        }
        Kind::Fail => draft.fail(id(random)),
        Kind::Publish | Kind::PublishShard => draft.publish(b"channel", b"message"),
        Kind::Update => draft.update(random.below(100) as u64, id(random), &some_slots(random)),
        Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover | Kind::Module => {}
    }
    draft.finish()
}

/// One that chance has damaged, mostly. None by which a node is let in: MEET is for strangers, and has the node ask at the address
/// that stands there.
fn damaged(random: &mut Random) -> Vec<u8> {
    loop {
        let mut bytes = packet(random);
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        if random.below(500) == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        if Kind::of(&bytes) != Some(Kind::Meet) {
            return bytes;
        }
    }
}

/// Takes what has come; whether the connection is still there.
fn drain(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 16 * 1024];
    stream.set_nonblocking(true).unwrap();
    let is_there = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).unwrap();
    is_there
}

/// Sends so many, on one connection after the other.
fn bombard(bus: &str, count: usize, seed: u64) {
    let mut random = Random::new(seed);
    let connect = || {
        let stream = TcpStream::connect(format!("127.0.0.1:{bus}")).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut stream = connect();
    let (mut sent, mut batch) = (0, Vec::new());
    while sent < count {
        batch.clear();
        (0..BATCH).for_each(|_| batch.extend(damaged(&mut random)));
        match stream.write_all(&batch) {
            Ok(()) => sent += BATCH,
            Err(error) => assert!(error.kind() != ErrorKind::WouldBlock, "the node does not read: {error}"),
        }
        if !drain(&mut stream) {
            stream = connect();
        }
    }
}

/// A node's view: names, roles, epochs and slots, but not the times of packets.
fn view(node: &Node) -> String {
    let nodes = node.ask("CLUSTER NODES").text();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        [&words[..4], &words[6..7], &words[8..]].concat().join(" ")
    };
    let mut lines: Vec<String> = nodes.lines().map(line).collect();
    lines.sort_unstable();
    let info = node.ask("CLUSTER INFO").text();
    lines.extend(info.lines().filter(|line| line.contains("epoch") || line.contains("slots")).map(str::to_owned));
    lines.join("\n")
}

/// `PACKETS=10000000 cargo test --release -p redis-server --test it strangers`
#[test]
fn bus_packets_of_unknown_nodes_change_nothing() {
    let count: usize = std::env::var("PACKETS").map_or(20_000, |count| count.parse().expect("a number"));
    let mut nodes = ["strangers-a", "strangers-b"].map(|name| Node::start(name, &[]));
    nodes[0].ask("CLUSTER ADDSLOTSRANGE 0 9999");
    nodes[1].ask("CLUSTER ADDSLOTSRANGE 10000 16383");
    nodes[1].ask("CLUSTER SET-CONFIG-EPOCH 7");
    nodes[0].meets(&nodes[1]);
    let serve = |nodes: &[Node]| {
        until("both serve", || {
            let whole =
                |node: &Node| node.says("CLUSTER INFO", "cluster_state:ok") && node.says("CLUSTER INFO", "epoch:7");
            nodes.iter().all(whole)
        });
    };
    serve(&nodes);
    let before = view(&nodes[0]);
    let bus = nodes[0].bus.as_str();
    thread::scope(|scope| {
        for seed in 1..=WRITERS {
            scope.spawn(move || bombard(bus, count / WRITERS, seed as u64));
        }
    });
    serve(&nodes);
    assert_eq!(view(&nodes[0]), before);
    let log = nodes[0].process.log();
    assert!(!log.contains("panic"), "{log}");
    // Nor is anything of it in its file, and others are still let in.
    nodes[0].process.signal(Signal::TERM);
    nodes[0].process.ended();
    nodes[0].process.restart();
    serve(&nodes);
    assert_eq!(view(&nodes[0]), before);
    let third = Node::start("strangers-c", &[]);
    nodes[0].meets(&third);
    until("all know the third", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_known_nodes:3")));
}
