//! The request loops of [`body`] with mimalloc.
#![allow(missing_docs, reason = "criterion's macros")]

#[path = "mod.rs"]
mod body;
#[path = "../../settings.rs"]
mod settings;

use crate::settings::settings;
use criterion::{Criterion, criterion_group, criterion_main};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn allocator(c: &mut Criterion) {
    body::run(c, "mimalloc");
}

criterion_group! { name = benches; config = settings(); targets = allocator }
criterion_main!(benches);
