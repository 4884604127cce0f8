//! **Question**: what does each server do for a request, without the kernel?
//! **Source**: none; this is what a regression would show in. `cargo xtask paths` counts the same exactly.
//! **Compared**: nothing; throughput of redis-server's sessions (16 deep), of http-server's parser and encoder, of axum's
//! router, of tonic's service, and of an ECHONET Lite node.

use crate::settings::settings;
use benches::loops;
use criterion::{Criterion, Throughput, criterion_group};

fn own_path(c: &mut Criterion) {
    let mut group = c.benchmark_group("own path");
    for (name, requests, make) in loops::ALL {
        let mut turn = make();
        group.throughput(Throughput::Elements(*requests));
        group.bench_function(*name, |b| b.iter(&mut turn));
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = own_path }
