//! **Claim**: mini-redis is a teaching implementation: its parser looks at every frame twice and copies each word.
//! **Source**: "Rust vs Go vs C, database and IoT" (Redis).
//! **Hypothesis**: parsing is far from what an unpipelined request costs, and a good part of a pipelined one.
//! **Compared**: 16 pipelined GETs and 16 SETs of 100 bytes, parsed by redis-server's parser, by mini-redis (check, then
//! parse), and by redis-protocol, which is the parser of the client fred (to owned frames, and to frames that share the
//! input).

use std::hint::black_box;
use std::io::Cursor;

use crate::settings::settings;
use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use redis_protocol::resp2::decode;
use redis_server::protocol::{Parser, RequestLimits};

const DEPTH: usize = 16;

fn ours(input: &[u8]) -> usize {
    let limits = RequestLimits { max_bulk_len: 512 << 20, authenticated: true };
    let (mut parser, mut at, mut spans) = (Parser::default(), 0, Vec::new());
    while at < input.len() {
        at = parser.parse(input, at, &mut spans, &limits).expect("a request").expect("a whole one");
    }
    black_box(&spans).len()
}

fn mini_redis(input: &[u8]) -> usize {
    let (mut cursor, mut words) = (Cursor::new(input), 0);
    while cursor.position() < input.len() as u64 {
        let start = cursor.position();
        mini_redis::Frame::check(&mut cursor).expect("a whole frame");
        cursor.set_position(start);
        match mini_redis::Frame::parse(&mut cursor).expect("a frame") {
            mini_redis::Frame::Array(items) => words += black_box(items).len(),
            other => panic!("no request: {other:?}"),
        }
    }
    words
}

fn redis_protocol_owned(input: &[u8]) -> usize {
    let (mut at, mut words) = (0, 0);
    while at < input.len() {
        let (frame, used) = decode::decode(&input[at..]).expect("a frame").expect("a whole one");
        words += match black_box(frame) {
            redis_protocol::resp2::types::OwnedFrame::Array(items) => items.len(),
            other => panic!("no request: {other:?}"),
        };
        at += used;
    }
    words
}

fn redis_protocol_shared(input: &Bytes) -> usize {
    let (mut rest, mut words) = (BytesMut::from(input.clone()), 0);
    while !rest.is_empty() {
        let (frame, ..) = decode::decode_bytes_mut(&mut rest).expect("a frame").expect("a whole one");
        words += match black_box(frame) {
            redis_protocol::resp2::types::BytesFrame::Array(items) => items.len(),
            other => panic!("no request: {other:?}"),
        };
    }
    words
}

fn resp_parse(c: &mut Criterion) {
    let get = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n".repeat(DEPTH);
    let set =
        [&b"*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$100\r\n"[..], &[b'x'; 100], b"\r\n"].concat().repeat(DEPTH);
    let mut group = c.benchmark_group("RESP parse");
    group.throughput(Throughput::Elements(DEPTH as u64));
    for (name, input, words) in [("GET", get, 2 * DEPTH), ("SET of 100 bytes", set, 3 * DEPTH)] {
        let shared = Bytes::from(input.clone());
        assert_eq!(ours(&input), words, "every word is found");
        assert_eq!(mini_redis(&input), words, "every word is found");
        assert_eq!(redis_protocol_owned(&input), words, "every word is found");
        assert_eq!(redis_protocol_shared(&shared), words, "every word is found");
        group.bench_function(BenchmarkId::new("ours", name), |b| b.iter(|| ours(black_box(&input))));
        group.bench_function(BenchmarkId::new("mini-redis", name), |b| b.iter(|| mini_redis(black_box(&input))));
        group.bench_function(BenchmarkId::new("redis-protocol", name), |b| {
            b.iter(|| redis_protocol_owned(black_box(&input)));
        });
        group.bench_function(BenchmarkId::new("redis-protocol, shared", name), |b| {
            b.iter(|| redis_protocol_shared(black_box(&shared)));
        });
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = resp_parse }
