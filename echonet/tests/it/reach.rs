//! Nodes that no multicast reaches, as behind a router or outside of a container.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use echonet_lite::class;
use echonet_lite::emulate::Emulated;
use echonet_lite::node::{Arrival, Config, Identity, Node, Outbox};
use serde_json::Value;

use crate::MAKER;

pub const PORT: u16 = 13_705;

/// A node that hears what is sent to its address and nothing that is sent to the group.
pub struct Deaf {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Deaf {
    pub fn new(address: [u8; 4], port: u16, class: &str) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::from(address), port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let object = Emulated::new(class::by_name(class).unwrap(), 1, false, MAKER, u64::from(address[3]));
        let mut node = Node::new(Config::new(Identity::new(MAKER, address[3].into())), vec![object]);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let began = Instant::now();
            let (mut datagram, mut buffer) = ([0; 2048], [0; 1472]);
            while !over.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut datagram) else { continue };
                let now = echonet_lite::node::Instant(began.elapsed().as_micros() as u64);
                let to = SocketAddr::new(from.ip(), port);
                let mut out = Outbox::new(&mut buffer, |_, bytes: &[u8]| {
                    socket.send_to(bytes, to).unwrap();
                });
                node.handle(now, from, Arrival::Unicast, &datagram[..length], &mut out);
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn echonet(own: &str, rest: &[&str]) -> Output {
    let head = ["--json", "--port", &PORT.to_string(), "--address", own].map(str::to_owned);
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(head).args(rest).stdin(Stdio::null()).output().unwrap()
}

/// The addresses that were found.
fn found(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout);
    let address = |line: &str| serde_json::from_str::<Value>(line).unwrap()["address"].as_str().unwrap().to_owned();
    lines.lines().map(address).collect()
}

#[test]
fn nodes_that_hear_no_multicast_are_found_by_address_and_by_subnet() {
    let _nodes =
        [4, 9].map(|host| Deaf::new([127, 0, 105, host], PORT, if host == 4 { "generalLighting" } else { "0130" }));
    let own = "127.0.105.1";
    let silent = echonet(own, &["--timeout", "0.5", "discover"]);
    assert_eq!(silent.status.code(), Some(3), "{}", String::from_utf8_lossy(&silent.stdout));
    for (nodes, expected) in [
        (&["127.0.105.4"][..], &["127.0.105.4"][..]),
        (&["127.0.105.4", "127.0.105.9", "127.0.105.77"], &["127.0.105.4", "127.0.105.9"]),
        (&["127.0.105.0/28"], &["127.0.105.4", "127.0.105.9"]),
    ] {
        let flags: Vec<_> = nodes.iter().flat_map(|node| ["--node", node]).collect();
        let output = echonet(own, &[&["--timeout", "0.5", "discover"][..], &flags].concat());
        assert_eq!(found(&output), expected, "{nodes:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("generalLighting"), "{nodes:?}");
    }
    let wrong = echonet(own, &["discover", "--node", "10.0.0.0/8"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("largest subnet is a /22"));
}
