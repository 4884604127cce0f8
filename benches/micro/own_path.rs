//! **Question**: what does each server do for a request, without the kernel?
//! **Source**: none; this is what a regression would show in. `cargo xtask instructions` counts the same exactly.
//! **Compared**: nothing; throughput of redis-server's sessions (16 deep), of http-server's parser and encoder, of axum's
//! router, of tonic's service, and of an ECHONET Lite node.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::net::SocketAddr;

use benches::loops::{self, DEPTH, Turn};
use benches::settings;
use criterion::{Criterion, Throughput, criterion_group};
use echonet_lite::node::{Arrival, Config, Destination, Identity, Instant, Node, Object, Transmit};

/// Where a node puts its answer.
struct Slot([u8; 1472], usize);

impl Transmit for Slot {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn transmit(&mut self, _: Destination, length: usize) {
        self.1 = length;
    }
}

/// A Get of the operation status of the node profile.
fn echonet() -> Turn {
    const GET: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x0e\xf0\x01\x62\x01\x80\x00";
    let objects: Vec<Box<dyn Object + Send>> = Vec::new();
    let mut node = Node::new(Config::new(Identity::new([0, 0, 0x77], 1)), objects);
    let from = SocketAddr::from(([192, 0, 2, 1], 3610));
    let mut slot = Slot([0; 1472], 0);
    let mut turn = move || {
        node.handle(Instant::ZERO, black_box(from), Arrival::Unicast, black_box(GET), &mut slot);
        slot.1
    };
    assert_eq!(turn(), 15, "an answer with one byte of data");
    Box::new(turn)
}

/// A request as wrk sends it, parsed, and the head of its answer.
fn http1() -> Turn {
    use http_server::h1::{Limits, MAX_HEADERS, parse};
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n";
    let limits = Limits { head_bytes: 32 * 1024, target_bytes: 8 * 1024, headers: MAX_HEADERS };
    let turn = move || {
        let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let head = parse(black_box(REQUEST), &mut room, &limits).expect("a request").expect("a whole one");
        black_box(&head).target.len()
    };
    Box::new(turn)
}

fn own_path(c: &mut Criterion) {
    let value = "x".repeat(100);
    let (set, bulk) = (format!("SET {{key}} {value}"), format!("$100\r\n{value}\r\n"));
    let turns: [(&str, u64, Turn); 6] = [
        ("redis-server, GET, 16 deep", DEPTH as u64, loops::redis(&set, "GET {key}", &bulk)),
        ("redis-server, SET, 16 deep", DEPTH as u64, loops::redis(&set, &set, "+OK\r\n")),
        ("http-server, head of a request", 1, http1()),
        ("axum, GET /json", 1, loops::axum_json()),
        ("tonic, SayHello", 1, loops::tonic_say_hello()),
        ("echonet-lite, Get", 1, echonet()),
    ];
    let mut group = c.benchmark_group("own path");
    for (name, requests, mut turn) in turns {
        group.throughput(Throughput::Elements(requests));
        group.bench_function(name, |b| b.iter(&mut turn));
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = own_path }
