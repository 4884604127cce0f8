//! **Claim**: Rust's JSON route is no faster than its plain one, and than Go's.
//! **Source**: "Go vs Rust vs Bun vs Node" (HTTP).
//! **Hypothesis**: making `{"message":"Hello from Rust"}` costs under 100 ns, a hundredth of a request.
//! **Compared**: serde_json to a new `Vec`, to a buffer that is used again, by way of a `serde_json::Value`, and `format!`.

use std::hint::black_box;

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};
use serde::Serialize;

const RIGHT: &str = r#"{"message":"Hello from Rust"}"#;

#[derive(Serialize)]
struct Greeting<'a> {
    message: &'a str,
}

fn reused(out: &mut Vec<u8>, message: &str) {
    out.clear();
    serde_json::to_writer(out, &Greeting { message }).expect("a Vec takes everything");
}

fn json(c: &mut Criterion) {
    let message = "Hello from Rust";
    let owned = |message: &str| serde_json::to_vec(&Greeting { message }).expect("it has a form in JSON");
    let value = |message: &str| serde_json::to_vec(&serde_json::json!({ "message": message })).expect("it is JSON");
    let formatted = |message: &str| format!("{{\"message\":\"{message}\"}}");
    let mut out = Vec::new();
    reused(&mut out, message);
    assert_eq!(out, RIGHT.as_bytes());
    assert_eq!(owned(message), RIGHT.as_bytes());
    assert_eq!(value(message), RIGHT.as_bytes());
    assert_eq!(formatted(message), RIGHT);
    let mut group = c.benchmark_group("JSON of one member");
    group.throughput(Throughput::Elements(1));
    group.bench_function("serde_json, new Vec", |b| b.iter(|| owned(black_box(message))));
    group.bench_function("serde_json, same Vec", |b| b.iter(|| reused(&mut out, black_box(message))));
    group.bench_function("serde_json::Value", |b| b.iter(|| value(black_box(message))));
    group.bench_function("format!, nothing escaped", |b| b.iter(|| formatted(black_box(message))));
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = json }
