//! The request loops of [`allocator`] with the system's allocator, which is this program's.

use crate::settings::settings;
use criterion::{Criterion, criterion_group};

use crate::allocator;

fn system(c: &mut Criterion) {
    allocator::run(c, "system");
}

criterion_group! { name = group; config = settings(); targets = system }
