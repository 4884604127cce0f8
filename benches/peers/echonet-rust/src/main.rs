//! The `echonet` crate:
//!
//! ```text
//! echonet-crate device                                   a light until it is killed
//! echonet-crate published ADDRESS ITERATIONS SECONDS     the published benchmark, cut short after some seconds: 12 properties
//!                                                        of the node profile one by one, after a search by multicast
//! ```
//!
//! A controller prints "begin" when it has found the device, and at the end: requests seconds lost. Then it waits for the end of
//! its input, so that its CPU time can be read until then.

use std::io::Read;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use echonet::protocol::{ESV, Message, Property};
use echonet::{Controller, Device, RemoteNode};

const LIGHT: u32 = 0x029001;
const PROFILE: u32 = 0x0ef001;
const PROPERTIES: [u8; 12] = [0x80, 0x82, 0x83, 0x8a, 0x9d, 0x9e, 0x9f, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7];

const PATIENCE: Duration = Duration::from_millis(20);

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["device"] => device(),
        ["published", address, iterations, seconds] => published(
            address,
            iterations.parse().expect("iterations are a number"),
            Duration::from_secs_f64(seconds.parse().expect("seconds are a number")),
        ),
        _ => panic!("unknown command: {words:?}"),
    }
}

fn device() {
    let mut device = Device::new(LIGHT);
    assert!(device.set_property(0x80, &[0x30]));
    assert!(device.start());
    println!("ready");
    loop {
        thread::park();
    }
}

fn published(address: &str, iterations: usize, limit: Duration) {
    let mut controller = Controller::new();
    assert!(controller.start());
    let node = found(&mut controller, address);
    println!("begin");
    let (mut asked, mut lost, start) = (0, 0, Instant::now());
    while asked < 12 * iterations && start.elapsed() < limit {
        if !answers(&controller, &node, PROPERTIES[asked % 12]) {
            lost += 1;
        }
        asked += 1;
    }
    println!("{} {} {lost}", asked - lost, start.elapsed().as_secs_f64());
    io::stdin().read_to_end(&mut Vec::new()).expect("the input can be read");
}

fn found(controller: &mut Controller, address: &str) -> RemoteNode {
    for _ in 0..20 {
        controller.search();
        thread::sleep(Duration::from_millis(100));
        if let Some(node) = controller.nodes().into_iter().find(|node| node.addr().ip().to_string() == address) {
            return node;
        }
    }
    panic!("not found: {address}");
}

/// Whether the right property comes. The library drops an answer that arrives while it still sends, as one from near does: with the
/// second of its own examples it would mostly wait.
fn answers(controller: &Controller, node: &RemoteNode, code: u8) -> bool {
    let mut message = Message::new();
    message.set_esv(ESV::ReadRequest).set_deoj(PROFILE).add_property(Property::from(code, Vec::new()));
    let answer = controller.post_message(node, &mut message).recv_timeout(PATIENCE);
    answer.is_ok_and(|answer| answer.opc() == 1 && answer.property(0).code() == code)
}
