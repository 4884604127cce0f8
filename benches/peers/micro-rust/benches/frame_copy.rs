//! **Claim**: Rust's ECHONET Lite copies where C and Go do not, to get around the borrow checker.
//! **Source**: "Rust vs Go vs C, database and IoT" (ECHONET Lite).
//! **Hypothesis**: copying a frame costs some hundred nanoseconds, a fraction of the 2 µs of its system calls.
//! **Compared**: a frame that asks for 12 properties, looked through in place and taken apart into owned properties (both by
//! echonet-lite), and into owned messages (by the crate `echonet`, the published subject's successor).

use std::hint::black_box;

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};
use echonet_lite::wire::Frame;

const GET_OF_12: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x0e\xf0\x01\x62\x0c\
    \x80\0\x82\0\x83\0\x8a\0\x9d\0\x9e\0\x9f\0\xd3\0\xd4\0\xd6\0\xd7\0\x80\0";

/// The sum of the property codes, so that each is looked at.
fn borrowed(bytes: &[u8]) -> u32 {
    let Ok(Frame::Format1(message)) = Frame::parse(bytes) else { panic!("a frame of format 1") };
    message.properties().map(|property| u32::from(property.epc)).sum()
}

/// The same of properties that are owned, each with its value.
fn owned(bytes: &[u8]) -> u32 {
    let Ok(Frame::Format1(message)) = Frame::parse(bytes) else { panic!("a frame of format 1") };
    let properties: Vec<_> = message.properties().map(|property| (property.epc, property.edt.to_vec())).collect();
    black_box(&properties).iter().map(|(epc, _)| u32::from(*epc)).sum()
}

fn copied(bytes: &[u8]) -> u32 {
    let mut message = echonet::protocol::Message::new();
    assert!(message.parse(bytes), "a frame");
    message.properties().iter().map(|property| u32::from(property.code())).sum()
}

fn frame_copy(c: &mut Criterion) {
    let sum: u32 = GET_OF_12[12..].chunks(2).map(|property| u32::from(property[0])).sum();
    assert_eq!(borrowed(GET_OF_12), sum, "every property is found");
    assert_eq!(owned(GET_OF_12), sum, "every property is found");
    assert_eq!(copied(GET_OF_12), sum, "every property is found");
    let mut group = c.benchmark_group("ECHONET frame of 12 properties");
    group.throughput(Throughput::Elements(1));
    group.bench_function("borrowed, echonet-lite", |b| b.iter(|| borrowed(black_box(GET_OF_12))));
    group.bench_function("copied, echonet-lite", |b| b.iter(|| owned(black_box(GET_OF_12))));
    group.bench_function("copied, echonet", |b| b.iter(|| copied(black_box(GET_OF_12))));
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = frame_copy }
