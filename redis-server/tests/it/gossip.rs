//! One node among many that are made up here: what gossip costs it.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis_server::cluster::packet::{Draft, Flags, Gossip, HEADER, Header, Kind, PREFIX, length};
use redis_server::cluster::{NodeId, SLOTS, SlotSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use super::cluster::{Node, ports};
use super::support::{Random, until};

/// Bytes of an entry of gossip.
const ENTRY: usize = 104;

/// The others of a cluster, the first half of which, with the node itself, are primaries. Each has an address of its own on the
/// loopback interface, and one port.
struct Peers {
    nodes: usize,
    port: u16,
    node: SocketAddr,
    timeout: Duration,
    random: RefCell<Random>,
    /// Bytes and packets that the node has sent.
    heard: Cell<(u64, u64)>,
}

fn id(at: usize) -> NodeId {
    let mut random = Random::new(2 * at as u64 + 77);
    NodeId::from_random(|| random.below(usize::MAX) as u64)
}

fn ip(at: usize) -> Ipv4Addr {
    let last = at as u32;
    Ipv4Addr::from(if at == 0 { 0x7f00_0001 } else { 0x7f01_0000 + last / 250 * 256 + last % 250 + 1 })
}

fn slots(at: usize, primaries: usize) -> (u16, u16) {
    ((at * SLOTS / primaries) as u16, ((at + 1) * SLOTS / primaries - 1) as u16)
}

/// The file of a node that knows them all; the node itself comes first.
fn file(nodes: usize, node: &[String; 2], port: u16) -> String {
    let primaries = nodes / 2;
    let mut text = String::new();
    for at in 0..nodes {
        let (client, bus) = if at == 0 { (&*node[0], node[1].clone()) } else { ("6379", port.to_string()) };
        let myself = if at == 0 { "myself," } else { "" };
        write!(text, "{} {}:{client}@{bus} {myself}", id(at), ip(at)).unwrap();
        if at < primaries {
            let (first, last) = slots(at, primaries);
            writeln!(text, "master - 0 0 {} connected {first}-{last}", at + 1).unwrap();
        } else {
            writeln!(text, "slave {} 0 0 0 connected", id(at % primaries)).unwrap();
        }
    }
    text + &format!("vars currentEpoch {primaries} lastVoteEpoch 0\n")
}

impl Peers {
    /// A node's packet by the rules: its own state, and that of a tenth of the other nodes.
    fn packet(&self, at: usize, kind: Kind) -> Vec<u8> {
        let primaries = self.nodes / 2;
        let owner = at % primaries;
        let (first, last) = slots(owner, primaries);
        let mut slots = SlotSet::EMPTY;
        slots.add_range(first, last);
        let address = ip(at).to_string();
        let mut draft = Draft::new(&Header {
            kind,
            sender: id(at),
            current_epoch: primaries as u64,
            config_epoch: owner as u64 + 1,
            offset: 1,
            slots: slots.bitmap(),
            primary: (at >= primaries).then(|| id(owner)),
            ip: Some(&address),
            port: 6379,
            other_port: 0,
            bus_port: self.port,
            flags: if at < primaries { Flags::PRIMARY } else { Flags::REPLICA },
            is_down: false,
            message_flags: 0,
            count: 0,
            extensions: 0,
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
        for _ in 0..(self.nodes / 10).max(3) {
            let other = 1 + self.random.borrow_mut().below(self.nodes - 1);
            let flags = if other < primaries { Flags::PRIMARY } else { Flags::REPLICA };
            let address = ip(other).to_string();
            let (ping_sent, pong_received) = (0, now);
            let (port, bus_port, other_port) = (6379, self.port, 0);
            draft.gossip(&Gossip {
                id: id(other),
                ping_sent,
                pong_received,
                ip: &address,
                port,
                bus_port,
                flags,
                other_port,
            });
        }
        draft.finish()
    }

    /// Reads what comes; a PING is answered.
    async fn listen(&self, at: usize, stream: &mut TcpStream) -> std::io::Result<Kind> {
        let mut prefix = [0; PREFIX];
        stream.read_exact(&mut prefix).await?;
        let mut bytes = vec![0; length(&prefix).expect("a packet")];
        bytes[..PREFIX].copy_from_slice(&prefix);
        stream.read_exact(&mut bytes[PREFIX..]).await?;
        let (sum, count) = self.heard.get();
        self.heard.set((sum + bytes.len() as u64, count + 1));
        let kind = Kind::of(&bytes).expect("a packet");
        if matches!(kind, Kind::Ping | Kind::Meet) {
            stream.write_all(&self.packet(at, Kind::Pong)).await?;
        }
        Ok(kind)
    }

    /// Those to whom the node has connected.
    async fn accept(self: Rc<Self>, listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            let IpAddr::V4(address) = stream.local_addr().unwrap().ip() else { continue };
            let peers = Rc::clone(&self);
            let at = (u32::from(address) - 0x7f01_0000) as usize;
            let at = at / 256 * 250 + at % 256 - 1;
            spawn_local(async move { while peers.listen(at, &mut stream).await.is_ok() {} });
        }
    }

    /// Asks the node twice in a timeout, from a moment on that differs from the others'.
    async fn ask(self: Rc<Self>, at: usize) {
        let turn = self.timeout / 2;
        sleep(turn * at as u32 / self.nodes as u32).await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((ip(at), 0).into()).unwrap();
        let mut stream = socket.connect(self.node).await.unwrap();
        loop {
            stream.write_all(&self.packet(at, Kind::Ping)).await.unwrap();
            let answer = async { while self.listen(at, &mut stream).await.unwrap() != Kind::Pong {} };
            tokio::join!(sleep(turn), answer);
        }
    }
}

/// The CPU time of a node, as a share of a core, and the bytes and packets that it sends per second.
fn measure(nodes: usize, timeout: Duration, time: Duration) -> (f64, f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("0.0.0.0:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (own, bus) = ports();
    let folder = std::env::temp_dir().join(format!("redis-server-gossip-{nodes}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let config = folder.join("nodes.conf");
    fs::write(&config, file(nodes, &[own.clone(), bus.clone()], port)).unwrap();
    let (config, timeout_ms) = (config.display().to_string(), timeout.as_millis().to_string());
    let settings = [("cluster-config-file", config.as_str()), ("cluster-node-timeout", timeout_ms.as_str())];
    let (sender, started) = std::sync::mpsc::channel();
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let address: SocketAddr = format!("127.0.0.1:{bus}").parse().unwrap();
    let others = std::thread::spawn(move || {
        let heard = Cell::new((0, 0));
        let random = RefCell::new(Random::new(5));
        let peers = Rc::new(Peers { nodes, port, node: address, timeout, random, heard });
        LocalSet::new().block_on(&runtime, async {
            spawn_local(Rc::clone(&peers).accept(listener));
            started.recv().unwrap();
            for at in 1..nodes {
                spawn_local(Rc::clone(&peers).ask(at));
            }
            sleep(timeout).await;
            peers.heard.set((0, 0));
            sleep(time).await;
            let heard = peers.heard.get();
            // They answer until the node has been asked how it is.
            while !ends.load(Relaxed) {
                sleep(Duration::from_millis(20)).await;
            }
            heard
        })
    });
    let node = Node::start_at(&format!("gossip-node-{nodes}"), (own, bus), &settings);
    sender.send(()).unwrap();
    std::thread::sleep(timeout);
    let before = node.cpu_seconds();
    std::thread::sleep(time);
    let spent = node.cpu_seconds() - before;
    until("the cluster serves", || node.says("CLUSTER INFO", "cluster_state:ok"));
    let view = node.ask("CLUSTER NODES").text();
    assert_eq!(view.matches(" connected").count(), nodes, "who is known and connected");
    assert!(!view.contains("fail"), "somebody is suspected: {view}");
    is_over.store(true, Relaxed);
    let (bytes, packets) = others.join().unwrap();
    drop(node);
    fs::remove_dir_all(folder).unwrap();
    let seconds = time.as_secs_f64();
    (spent / seconds, bytes as f64 / seconds, packets as f64 / seconds)
}

/// Bytes a second at most, by the rules: one by chance in a second, all others twice in a timeout, and answers to as many.
fn most_talk(nodes: usize, timeout: Duration) -> f64 {
    let asked = 1.0 + (nodes - 1) as f64 / (timeout.as_secs_f64() / 2.0);
    2.0 * asked * (HEADER + ENTRY * (nodes / 10).max(3)) as f64
}

#[test]
fn a_node_among_fifty_says_no_more_than_the_rules() {
    let timeout = Duration::from_secs(2);
    let (_, bytes, packets) = measure(50, timeout, Duration::from_secs(4));
    let most = most_talk(50, timeout);
    // Whole turns of asking fit into the time, or nearly.
    assert!(packets > 20.0 && bytes <= 1.2 * most, "{packets} packets and {bytes} bytes a second, {most} at most");
}

/// `cargo test --release -p redis-server --test it thousand -- --ignored --nocapture`; `NODES=100`, `SECONDS=60`.
#[test]
#[ignore = "takes a minute, and says something only of an optimized build"]
fn gossip_of_a_thousand() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (nodes, seconds) = (number("NODES", 1000), number("SECONDS", 30));
    let timeout = Duration::from_secs(15);
    let (share, bytes, packets) = measure(nodes, timeout, Duration::from_secs(seconds as u64));
    println!(
        "{nodes} nodes, cluster-node-timeout 15 s: {:.2} % of a core, {packets:.0} packets and {bytes:.0} bytes sent a second \
         ({:.0} at most by the rules)",
        100.0 * share,
        most_talk(nodes, timeout)
    );
    assert!(share <= 0.03, "{share}");
}
