//! The `echonet` crate: `peer controller ADDRESS` asks the air conditioner at that address and prints what it learned,
//! `peer device` is an air conditioner until its input ends.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, io, thread};

use echonet::protocol::{ESV, Message, Property};
use echonet::transport::Observer;
use echonet::{Controller, Device, Node, Object, RemoteNode, RequestHandler};

const CONDITIONER: u32 = 0x013001;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    match arguments[1].as_str() {
        "device" => device(),
        _ => control(&arguments[2]),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn listed(codes: impl Iterator<Item = u8>) -> String {
    let sorted: BTreeSet<u8> = codes.collect();
    sorted.iter().map(|code| format!("{code:02x}")).collect::<Vec<_>>().join(" ")
}

/// Remembers whether the notification was heard.
struct Listener(bool);

impl Observer for Listener {
    fn message_received(&mut self, message: &Message) {
        let new = |property: &Property| property.code() == 0xb0 && property.data() == &[0x43];
        self.0 |= message.esv() == ESV::Notification
            && message.seoj() == CONDITIONER
            && message.properties().iter().any(new);
    }
}

fn control(address: &str) {
    let node = Node::new();
    let listener = Arc::new(Mutex::new(Listener(false)));
    node.lock().unwrap().add_observer(listener.clone());
    let mut controller = Controller::new_with_node(node);
    assert!(controller.start());
    let mut found = None;
    for _ in 0..20 {
        controller.search();
        thread::sleep(Duration::from_millis(100));
        found = controller.nodes().into_iter().find(|node| node.addr().ip().to_string() == address);
        if found.is_some() {
            break;
        }
    }
    let node = found.expect("the node is found");
    let instances = node.objects().iter().map(Object::code).filter(|code| code >> 16 != 0x0e);
    println!("found {}", instances.map(|code| format!("{code:06x}")).collect::<Vec<_>>().join(" "));
    let ask = |esv, code, data: &[u8]| answer(&controller, &node, esv, code, data);
    for code in [0x9d, 0x9e, 0x9f] {
        // The library hands out a map as it came.
        let map = ask(ESV::ReadRequest, code, &[]).property(0).data().clone();
        println!("map {code:02x}: {}", listed(decoded(&map)));
    }
    let line = |name, esv, code, data: &[u8]| {
        let answer = ask(esv, code, data);
        let value = if answer.opc() == 0 { String::new() } else { hex(answer.property(0).data()) };
        println!("{name} {code:02x}: {:02x} [{value}]", answer.esv() as u32);
    };
    line("get", ESV::ReadRequest, 0xb0, &[]);
    line("set", ESV::WriteRequestResponseRequired, 0xb0, &[0x43]);
    line("get", ESV::ReadRequest, 0xb0, &[]);
    line("get", ESV::ReadRequest, 0xc0, &[]);
    line("get", ESV::ReadRequest, 0xef, &[]);
    line("set", ESV::WriteRequestResponseRequired, 0xbb, &[0x20]);
    println!("notified: {}", listener.lock().unwrap().0);
}

/// Asks until there is an answer: the library drops what arrives while it is busy.
fn answer(controller: &Controller, node: &RemoteNode, esv: ESV, code: u8, data: &[u8]) -> Message {
    for _ in 0..20 {
        let mut message = Message::new();
        message.set_esv(esv).set_deoj(CONDITIONER).add_property(Property::from(code, data.to_vec()));
        if let Ok(answer) = controller.post_message(node, &mut message).recv_timeout(Duration::from_millis(500)) {
            return answer;
        }
    }
    panic!("no answer for {code:02x}");
}

fn decoded(map: &[u8]) -> impl Iterator<Item = u8> {
    let short = map[0] < 16;
    (0x80..=0xff).filter(move |code| match short {
        true => map[1..].contains(code),
        false => map[1 + usize::from(code & 0x0f)] & 1 << ((code >> 4) - 8) != 0,
    })
}

/// Takes what is written, and has another thread tell of it: the node is locked meanwhile.
struct Handler(Sender<(u8, Vec<u8>)>);

impl RequestHandler for Handler {
    fn property_request_received(&mut self, object: &mut Object, esv: ESV, property: &Property) -> bool {
        if object.code() == CONDITIONER && matches!(esv, ESV::WriteRequest | ESV::WriteRequestResponseRequired) {
            let _ = self.0.send((property.code(), property.data().clone()));
        }
        true
    }
}

fn device() {
    let (changed, changes) = channel();
    let mut device = Device::new(CONDITIONER);
    for (code, value) in [(0x80, 0x30), (0x81, 0x08), (0xb0, 0x42), (0xb3, 0x14), (0xc0, 0x41)] {
        assert!(device.set_property(code, &[value]));
    }
    device.set_request_handler(Arc::new(Mutex::new(Handler(changed))));
    let node = device.node();
    let announcing = node.clone();
    thread::spawn(move || {
        for (code, data) in changes {
            let mut message = Message::new();
            message.set_esv(ESV::Notification).set_seoj(CONDITIONER).set_deoj(0x0ef001);
            message.add_property(Property::from(code, data));
            announcing.lock().unwrap().notify(&mut message);
        }
    });
    assert!(device.start());
    {
        let node = node.lock().unwrap();
        let object = node.find_object(CONDITIONER).expect("the device is an object of its node");
        let readable = object.properties().filter(|property| property.is_readable()).map(|property| property.code());
        println!("ready: {}", listed(readable));
    }
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    device.stop();
}
