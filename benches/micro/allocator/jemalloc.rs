//! The request loops of [`body`] with jemalloc.
#![allow(missing_docs, reason = "criterion's macros")]

#[path = "mod.rs"]
mod body;
#[path = "../../settings.rs"]
mod settings;

use crate::settings::settings;
use criterion::{Criterion, criterion_group, criterion_main};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn allocator(c: &mut Criterion) {
    body::run(c, "jemalloc");
}

criterion_group! { name = benches; config = settings(); targets = allocator }
criterion_main!(benches);
