//! Floods against a device in a process of its own: it stays small, and other clients get answers. Times and memory are
//! printed; the tests demand that memory and descriptors have bounds.

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use echonet_lite::net::Endpoint;
use echonet_lite::wire::Eoj;

/// Behind the ports of the web tests: two tests on one port would hear each other's multicast.
const PORT: u16 = 13_710;
const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);
const PATIENCE: Duration = Duration::from_secs(60);
/// Datagrams a second of a flood in which other clients are measured. A flood as fast as one core can send would take
/// that core from the other processes of the machine.
const RATE: u32 = 20_000;
/// Between two requests of the measured client: often for a controller, and far from the rate that the device could
/// answer.
const PERIOD: Duration = Duration::from_millis(1);
/// The most that a device may grow by under a flood.
const GROWTH_KIB: u64 = 16 * 1024;

/// `echonet serve`, which ends with the test.
struct Device {
    child: Child,
    address: SocketAddr,
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Device {
    /// A light on an address and port of its own, when it answers.
    fn start(net: u8) -> Self {
        let (ip, port) = (Ipv4Addr::new(127, 76, net, 1), PORT + u16::from(net));
        let (address, port_text) = (ip.to_string(), port.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
        command.args([
            "--quiet",
            "--port",
            &port_text,
            "--address",
            &address,
            "serve",
            "--delay",
            "0",
            "generalLighting",
        ]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let device = Self { child, address: (ip, port).into() };
        let mut honest = Honest::new(&device);
        let end = Instant::now() + PATIENCE;
        while honest.ask().is_none() {
            assert!(Instant::now() < end, "the device does not answer");
        }
        device
    }

    fn kibibytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

/// A client that asks as a controller does, one request after the other.
struct Honest {
    socket: UdpSocket,
    device: SocketAddr,
    tid: u16,
}

impl Honest {
    fn new(device: &Device) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 76, 200, 1), device.address.port())).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        Self { socket, device: device.address, tid: 0 }
    }

    /// How long an answer takes; none if the kernel dropped the request or the answer, as it may under a flood.
    fn ask(&mut self) -> Option<Duration> {
        self.tid = self.tid.wrapping_add(1);
        let tid = self.tid.to_be_bytes();
        let head = [0x10, 0x81, tid[0], tid[1], 0x05, 0xFF, 0x01, 0x02, 0x90, 0x01];
        let begun = Instant::now();
        self.socket.send_to(&[&head[..], &[0x62, 1, 0x80, 0]].concat(), self.device).ok()?;
        let mut buffer = [0; 64];
        loop {
            let length = self.socket.recv(&mut buffer).ok()?;
            if buffer[2..4] == tid && length == 15 {
                return Some(begun.elapsed());
            }
        }
    }

    /// Asks for a while, each [`PERIOD`].
    fn measure(&mut self, what: &str) -> Figures {
        let end = Instant::now() + Duration::from_secs(2);
        let (mut times, mut lost) = (Vec::new(), 0);
        while Instant::now() < end {
            thread::sleep(PERIOD);
            match self.ask() {
                Some(time) => times.push(time),
                None => lost += 1,
            }
        }
        times.sort();
        let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
        println!("{what}: {} answers, p99 {p99:?}, {lost} lost", times.len());
        Figures { answers: times.len(), p99 }
    }
}

/// The figures of an honest client.
struct Figures {
    answers: usize,
    /// The slowest of a hundred.
    p99: Duration,
}

impl Figures {
    /// An honest client was answered beside an attack. How much slower than alone is printed, as it is the machine's
    /// matter, too.
    fn beside(&self, alone: &Self) {
        assert!(alone.answers > 0 && self.answers > 0, "nobody is answered any more");
        println!("p99 is {:.1} times what it is alone", self.p99.as_secs_f64() / alone.p99.as_secs_f64());
    }
}

/// Does something over and over beside `work`.
fn beside<R>(attack: impl Fn(usize) + Sync, work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| (0..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(&attack));
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_thousand_sources_flood_a_device() {
    let device = Device::start(1);
    let mut honest = Honest::new(&device);
    let alone = honest.measure("alone");
    let frames = [
        "108100010ef0010ef0016201d600",
        "1081000105ff010290006203800081008800",
        "1081000105ff010290016101b00101",
        "108100010ef0010ef00173018001",
        "1081000105ff01029001740180",
        "10810001",
    ]
    .map(|text| text.as_bytes().chunks(2).map(|pair| hex(pair[0]) << 4 | hex(pair[1])).collect::<Vec<u8>>());
    let before = device.kibibytes();
    let sources: Vec<UdpSocket> = (0..1000)
        .map(|at| UdpSocket::bind((Ipv4Addr::new(127, 77, (at / 250) as u8, (at % 250) as u8 + 1), 0)).unwrap())
        .collect();
    // Datagrams that the kernel has no room for are dropped, as on any network.
    let flood = |turn: usize| drop(sources[turn % sources.len()].send_to(&frames[turn % frames.len()], device.address));
    let begun = Instant::now();
    let paced = |turn: usize| {
        let due = begun + Duration::from_secs(1) / RATE * turn as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        flood(turn);
    };
    beside(paced, || honest.measure(&format!("beside {RATE} forged datagrams a second"))).beside(&alone);
    let flooded = beside(flood, || honest.measure("beside as many as can be sent"));
    let after = device.kibibytes();
    println!("{before} KiB before the flood, {after} KiB after it");
    flooded.beside(&alone);
    assert!(after < before + GROWTH_KIB, "{before} KiB, then {after} KiB");
    assert!((0..20).any(|_| honest.ask().is_some()), "it does not answer after the flood");
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap() as u8
}

#[test]
fn connections_flood_a_device() {
    let device = Device::start(2);
    let mut honest = Honest::new(&device);
    let alone = honest.measure("alone");
    let (before, descriptors) = (device.kibibytes(), device.descriptors());
    let held = std::sync::Mutex::new(std::collections::VecDeque::new());
    let flood = |_| {
        let Ok(stream) = TcpStream::connect_timeout(&device.address, Duration::from_millis(200)) else { return };
        let mut held = held.lock().unwrap();
        held.push_back(stream);
        if held.len() > 200 {
            held.pop_front();
        }
    };
    let most = beside(flood, || {
        honest.measure("beside connections").beside(&alone);
        device.descriptors()
    });
    let after = device.kibibytes();
    println!("{descriptors} descriptors before, {most} under the flood; {before} KiB, then {after} KiB");
    assert!(most < descriptors + 200, "{most} descriptors");
    assert!(after < before + GROWTH_KIB, "{before} KiB, then {after} KiB");
}

#[test]
fn five_thousand_nodes_answer_a_search() {
    const NODES: usize = 5000;
    let device = Device::start(3);
    let own = Ipv4Addr::new(127, 76, 3, 9);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let builder = Endpoint::builder().address(own).port(device.address.port());
    let endpoint = runtime.block_on(builder.bind()).unwrap();
    let ask = || {
        let answer = runtime.block_on(endpoint.get(device.address, LIGHT, &[0x80])).unwrap();
        assert_eq!(answer.get(0x80), Some(&[0x30][..]));
    };
    ask();
    // An announcement of each, as a node that starts makes one; none of them ever answers.
    let announcement = b"\x10\x81\x00\x01\x0E\xF0\x01\x0E\xF0\x01\x73\x01\xD5\x04\x01\x02\x90\x01";
    for at in 0..NODES {
        let source = Ipv4Addr::new(127, 80 + (at / 60_000) as u8, (at / 250) as u8, (at % 250) as u8 + 1);
        let socket = UdpSocket::bind((source, 0)).unwrap();
        socket.send_to(announcement, (own, device.address.port())).unwrap();
        // The controller works meanwhile, as it would beside a real search.
        if at % 100 == 0 {
            ask();
        }
    }
    ask();
    let known = endpoint.nodes().len();
    println!("{known} of {NODES} made-up nodes are remembered");
    assert!(known <= 1024, "{known} nodes are remembered");
    assert!(endpoint.node(device.address).is_some(), "the one that answers is forgotten");
}
