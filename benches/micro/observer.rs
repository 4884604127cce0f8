//! **Claim**: observers as trait objects are slow, and hard to write.
//! **Source**: "Rust vs Go vs C, database and IoT" (ECHONET Lite).
//! **Hypothesis**: a dynamic call costs a nanosecond or two, which is invisible beside a datagram.
//! **Compared**: four observers told of a value, as trait objects, as an enum, as generic types, as boxed closures, and as
//! trait objects each behind `Arc<Mutex>`, as the published subject has them.

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};

trait Observer {
    fn told(&mut self, value: u64);
    fn total(&self) -> u64;
}

#[derive(Default)]
struct Sum(u64);
#[derive(Default)]
struct Largest(u64);

impl Observer for Sum {
    fn told(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }
    fn total(&self) -> u64 {
        self.0
    }
}

impl Observer for Largest {
    fn told(&mut self, value: u64) {
        self.0 = self.0.max(value);
    }
    fn total(&self) -> u64 {
        self.0
    }
}

enum Either {
    Sum(Sum),
    Largest(Largest),
}

impl Observer for Either {
    fn told(&mut self, value: u64) {
        match self {
            Self::Sum(it) => it.told(value),
            Self::Largest(it) => it.told(value),
        }
    }
    fn total(&self) -> u64 {
        match self {
            Self::Sum(it) => it.total(),
            Self::Largest(it) => it.total(),
        }
    }
}

impl<T: Observer + ?Sized> Observer for Arc<Mutex<T>> {
    fn told(&mut self, value: u64) {
        self.lock().expect("nobody panics").told(value);
    }
    fn total(&self) -> u64 {
        self.lock().expect("nobody panics").total()
    }
}

fn tell_all<O: Observer + ?Sized>(observers: &mut [Box<O>], value: u64) {
    observers.iter_mut().for_each(|observer| observer.told(black_box(value)));
}

fn observer(c: &mut Criterion) {
    let mut dynamic: Vec<Box<dyn Observer>> =
        vec![Box::<Sum>::default(), Box::<Largest>::default(), Box::<Sum>::default(), Box::<Largest>::default()];
    tell_all(&mut dynamic, 3);
    tell_all(&mut dynamic, 2);
    assert_eq!(dynamic.iter().map(|observer| observer.total()).collect::<Vec<_>>(), [5, 3, 5, 3], "each was told");

    let either = |sum: bool| if sum { Either::Sum(Sum(0)) } else { Either::Largest(Largest(0)) };
    let mut enums: Vec<Either> = [true, false, true, false].map(either).into();
    let mut generic = (Sum(0), Largest(0), Sum(0), Largest(0));
    let (mut sum, mut largest) = ([0_u64; 2], [0_u64; 2]);
    let [sum0, sum1] = &mut sum;
    let [largest0, largest1] = &mut largest;
    let mut closures: Vec<Box<dyn FnMut(u64) + '_>> = vec![
        Box::new(|value| *sum0 = sum0.wrapping_add(value)),
        Box::new(|value| *largest0 = (*largest0).max(value)),
        Box::new(|value| *sum1 = sum1.wrapping_add(value)),
        Box::new(|value| *largest1 = (*largest1).max(value)),
    ];
    let mut locked: Vec<Box<Arc<Mutex<dyn Observer>>>> = vec![
        Box::new(Arc::new(Mutex::new(Sum(0)))),
        Box::new(Arc::new(Mutex::new(Largest(0)))),
        Box::new(Arc::new(Mutex::new(Sum(0)))),
        Box::new(Arc::new(Mutex::new(Largest(0)))),
    ];

    let mut group = c.benchmark_group("observer");
    group.throughput(Throughput::Elements(4));
    group.bench_function("trait objects", |b| b.iter(|| tell_all(&mut dynamic, black_box(7))));
    group.bench_function("enum", |b| b.iter(|| enums.iter_mut().for_each(|observer| observer.told(black_box(7)))));
    group.bench_function("generic", |b| {
        b.iter(|| {
            generic.0.told(black_box(7));
            generic.1.told(black_box(7));
            generic.2.told(black_box(7));
            generic.3.told(black_box(7));
        });
    });
    group.bench_function("boxed closures", |b| b.iter(|| closures.iter_mut().for_each(|tell| tell(black_box(7)))));
    group.bench_function("trait objects behind Arc<Mutex>", |b| b.iter(|| tell_all(&mut locked, black_box(7))));
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = observer }
