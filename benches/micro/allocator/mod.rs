//! **Claim**: none published; servers in Rust are often measured with the system's allocator.
//! **Hypothesis**: a request loop that allocates gains some per cent from another allocator, one that does not gains nothing.
//! **Compared**: each server's request loop with the system's allocator, with mimalloc and with jemalloc. An allocator is a
//! whole program's: here it is the system's, the neighbours are programs of their own.

use benches::loops::{self, DEPTH};
use criterion::{Criterion, Throughput};

/// Measures each server's request loop with the allocator of this program.
pub(crate) fn run(c: &mut Criterion, allocator: &str) {
    let set = format!("SET {{key}} {}", "x".repeat(100));
    let large = format!("SET {{key}} {}", "x".repeat(10_000));
    let hset = "HSET {key} f v";
    for (name, requests, mut turn) in [
        ("redis-server, SET of 100 bytes, 16 deep", DEPTH as u64, loops::redis(&set, &set, "+OK\r\n")),
        ("redis-server, SET of 10 kB, 16 deep", DEPTH as u64, loops::redis(&large, &large, "+OK\r\n")),
        ("redis-server, HSET of a field, 16 deep", DEPTH as u64, loops::redis(hset, hset, ":0\r\n")),
        ("axum, GET /json", 1, loops::axum_json()),
        ("tonic, SayHello", 1, loops::tonic_say_hello()),
    ] {
        let mut group = c.benchmark_group(format!("allocator/{name}"));
        group.throughput(Throughput::Elements(requests));
        group.bench_function(allocator, |b| b.iter(&mut turn));
        group.finish();
    }
}
