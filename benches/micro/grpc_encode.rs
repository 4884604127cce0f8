//! **Claim**: tonic is slower than grpc-go.
//! **Source**: "gRPC performance comparison".
//! **Hypothesis**: encoding messages and headers costs some hundred nanoseconds of a call's five to ten microseconds.
//! **Compared**: `HelloRequest` decoded and `HelloReply` encoded by prost, and by hand; the three header fields of an answer as a
//! new `HeaderMap`, as a clone of a prepared one, and as the bytes of a block that was encoded before.

use std::hint::black_box;

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};
use grpc_server::greeter::pb::{HelloReply, HelloRequest};
use http::{HeaderMap, HeaderValue};
use prost::Message;

const REQUEST: &[u8] = b"\x0a\x06Ferris";

fn by_prost(request: &[u8], out: &mut Vec<u8>) {
    let request = HelloRequest::decode(request).expect("a message");
    out.clear();
    HelloReply { message: format!("Hello {}!", request.name) }.encode(out).expect("a Vec takes everything");
}

/// Knows that there is one field, shorter than 128 bytes.
fn by_hand(request: &[u8], out: &mut Vec<u8>) {
    assert_eq!(request[0], 0x0a, "the name");
    let name = std::str::from_utf8(&request[2..2 + usize::from(request[1])]).expect("UTF-8");
    out.clear();
    out.extend_from_slice(&[0x0a, name.len() as u8 + 7]);
    out.extend_from_slice(b"Hello ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'!');
}

fn header_map() -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("content-type", HeaderValue::from_static("application/grpc"));
    map.insert("grpc-status", HeaderValue::from_static("0"));
    map.insert("date", HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
    map
}

fn grpc_encode(c: &mut Criterion) {
    let (mut by_library, mut own) = (Vec::new(), Vec::new());
    by_prost(REQUEST, &mut by_library);
    by_hand(REQUEST, &mut own);
    assert_eq!(by_library, own, "both write the same bytes");
    let mut group = c.benchmark_group("gRPC message");
    group.throughput(Throughput::Elements(1));
    group.bench_function("prost", |b| b.iter(|| by_prost(black_box(REQUEST), &mut by_library)));
    group.bench_function("by hand", |b| b.iter(|| by_hand(black_box(REQUEST), &mut own)));
    group.finish();

    let prepared = header_map();
    assert_eq!(prepared.len(), 3);
    // :status 200 from the static table, and three indexed fields, as HPACK has them once both sides know them.
    let (block, mut out) = ([0x88, 0xbe, 0xbf, 0xc0], Vec::with_capacity(64));
    let mut group = c.benchmark_group("gRPC header");
    group.throughput(Throughput::Elements(1));
    group.bench_function("new HeaderMap", |b| b.iter(header_map));
    group.bench_function("clone of a HeaderMap", |b| b.iter(|| black_box(&prepared).clone()));
    group.bench_function("bytes encoded before", |b| {
        b.iter(|| {
            out.clear();
            out.extend_from_slice(black_box(&block));
            out.len()
        });
    });
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = grpc_encode }
