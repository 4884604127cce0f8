//! **Question**: what does a message cost in echonet-lite, without sockets: to parse, to write, and to be answered?
//! **Source**: none; these are the crate's own figures.

use core::{hint::black_box, net::SocketAddr};

use crate::settings::settings;
use criterion::{Criterion, criterion_group};
use echonet_lite::node::{
    Arrival, CommonProperties, Config, Destination, Identity, Instant, Node, Object, PropertyAccess, Refused, Transmit,
};
use echonet_lite::wire::{Eoj, Esv, Frame, FrameWriter, Header};

const GET: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00";
const GET_OF_12: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x0e\xf0\x01\x62\x0c\
    \x80\0\x82\0\x83\0\x8a\0\x9d\0\x9e\0\x9f\0\xd3\0\xd4\0\xd6\0\xd7\0\x80\0";
const SET: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x02\x90\x01\x61\x01\x80\x01\x30";
const NOTIFICATION: Header = Header { tid: 1, seoj: Eoj::new(0x02, 0x90, 1), deoj: Eoj::NODE_PROFILE, esv: Esv::Inf };

struct Light(Eoj, CommonProperties);

impl Object for Light {
    fn eoj(&self) -> Eoj {
        self.0
    }

    fn access(&self) -> &PropertyAccess {
        &CommonProperties::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        self.1.get(epc, edt)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.1.set(epc, edt)
    }
}

/// Keeps the last datagram.
struct Slot {
    buffer: [u8; 1472],
    length: usize,
}

impl Transmit for Slot {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn transmit(&mut self, _: Destination, length: usize) {
        self.length = length;
    }
}

fn codec(c: &mut Criterion) {
    let mut group = c.benchmark_group("ECHONET codec");
    group.bench_function("parse one Get", |b| b.iter(|| Frame::parse(black_box(GET))));
    group.bench_function("encode an INF of one property", |b| {
        let mut buffer = [0; 1472];
        b.iter(|| {
            let mut writer = FrameWriter::new(black_box(&mut buffer), black_box(NOTIFICATION))?;
            writer.property(black_box(0x80), black_box(b"\x30"))?;
            writer.finish().map(<[u8]>::len)
        });
    });
    group.finish();
}

fn device(c: &mut Criterion) {
    let maker = [0, 0, 0x77];
    let lights = [1, 2, 3].map(|instance| Light(Eoj::new(2, 0x90, instance), CommonProperties::new(maker)));
    let boxed = lights.map(|light| Box::new(light) as Box<dyn Object + Send>);
    let mut node = Node::new(Config::new(Identity::new(maker, 1)), Vec::from(boxed));
    let from = SocketAddr::from(([192, 0, 2, 1], 3610));
    let mut slot = Slot { buffer: [0; 1472], length: 0 };
    let mut group = c.benchmark_group("ECHONET node");
    for (name, request, length) in [
        ("parse and answer one Get", GET, 15),
        ("parse and answer one SetC of an announced property", SET, 14),
        ("parse and answer a Get of 12 properties of the node profile", GET_OF_12, 96),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| node.handle(Instant::ZERO, black_box(from), Arrival::Unicast, black_box(request), &mut slot));
        });
        assert_eq!(slot.length, length, "{name}");
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = codec, device }
