//! **Claim**: replies are made by formatting, value by value.
//! **Source**: "Rust vs Go vs C, database and IoT" (Redis); mini-redis writes each part of a frame by `write!`.
//! **Hypothesis**: encoding is small beside a system call, and visible in a pipeline.
//! **Compared**: 16 replies (bulk strings of 3 and 100 bytes, integers) by redis-server's writer, by `write!` into a `Vec`,
//! and by redis-protocol.

use std::hint::black_box;
use std::io::Write;

use crate::settings::settings;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use redis_protocol::resp2::{encode, types::BorrowedFrame};
use redis_server::protocol::Reply;

const DEPTH: usize = 16;

/// A reply.
#[derive(Clone, Copy)]
enum Answer {
    Bulk(&'static [u8]),
    Integer(i64),
}

fn ours(reply: &mut Reply, answer: Answer) {
    reply.clear();
    for _ in 0..DEPTH {
        match black_box(answer) {
            Answer::Bulk(bytes) => reply.bulk(bytes),
            Answer::Integer(number) => reply.int(number),
        }
    }
}

fn formatted(out: &mut Vec<u8>, answer: Answer) {
    out.clear();
    for _ in 0..DEPTH {
        match black_box(answer) {
            Answer::Bulk(bytes) => {
                write!(out, "${}\r\n", bytes.len()).expect("a Vec takes everything");
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Answer::Integer(number) => write!(out, ":{number}\r\n").expect("a Vec takes everything"),
        }
    }
}

fn redis_protocol(out: &mut [u8], answer: Answer) -> usize {
    let mut at = 0;
    for _ in 0..DEPTH {
        let frame = match black_box(answer) {
            Answer::Bulk(bytes) => BorrowedFrame::BulkString(bytes),
            Answer::Integer(number) => BorrowedFrame::Integer(number),
        };
        at += encode::encode_borrowed(&mut out[at..], &frame, false).expect("there is room");
    }
    at
}

fn reply_encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("reply encode");
    group.throughput(Throughput::Elements(DEPTH as u64));
    for (name, answer) in [
        ("bulk of 3 bytes", Answer::Bulk(b"abc")),
        ("bulk of 100 bytes", Answer::Bulk(&[b'x'; 100])),
        ("integer", Answer::Integer(1_234_567)),
    ] {
        let (mut reply, mut out, mut room) = (Reply::default(), Vec::new(), vec![0; 4096]);
        ours(&mut reply, answer);
        formatted(&mut out, answer);
        let length = redis_protocol(&mut room, answer);
        assert_eq!(reply.to_vec(), out, "all write the same bytes");
        assert_eq!(room[..length], out, "all write the same bytes");
        group.bench_function(BenchmarkId::new("ours", name), |b| b.iter(|| ours(&mut reply, answer)));
        group.bench_function(BenchmarkId::new("write!", name), |b| b.iter(|| formatted(&mut out, answer)));
        group
            .bench_function(BenchmarkId::new("redis-protocol", name), |b| b.iter(|| redis_protocol(&mut room, answer)));
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = reply_encode }
