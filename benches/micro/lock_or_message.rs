//! **Claim**: a standard `Mutex` that is held as long as its object lives makes Rust's ECHONET Lite slow.
//! **Source**: "Rust vs Go vs C, database and IoT" (ECHONET Lite).
//! **Hypothesis**: an uncontended lock costs nanoseconds; handing a request to another thread and back costs microseconds.
//! **Compared**: a request to a node of 12 properties, answered by a node that is owned, behind a `Mutex`, behind an
//! `Arc<Mutex>` per property, and in a thread of its own behind channels.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};

const CODES: [u8; 12] = [0x80, 0x82, 0x83, 0x8a, 0x9d, 0x9e, 0x9f, 0xd3, 0xd4, 0xd6, 0xd7, 0x97];

/// Something that has properties of four bytes.
struct Node([[u8; 4]; 128]);

impl Node {
    fn new() -> Self {
        Self(std::array::from_fn(|code| [code as u8; 4]))
    }

    fn read(&self, code: u8) -> [u8; 4] {
        self.0[usize::from(code & 0x7f)]
    }

    fn answer(&self, codes: &[u8; 12]) -> [[u8; 4]; 12] {
        codes.map(|code| self.read(code))
    }
}

/// A node whose properties have a lock each, as a design of objects within objects leads to.
struct Fine(Vec<Arc<Mutex<[u8; 4]>>>);

impl Fine {
    fn new() -> Self {
        Self((0..128).map(|code| Arc::new(Mutex::new([code; 4]))).collect())
    }

    fn answer(&self, codes: &[u8; 12]) -> [[u8; 4]; 12] {
        codes.map(|code| *self.0[usize::from(code & 0x7f)].lock().expect("nobody panics"))
    }
}

/// A node that lives in a thread and is asked by messages.
fn in_a_thread() -> (Sender<[u8; 12]>, Receiver<[[u8; 4]; 12]>) {
    let (requests, asked) = channel();
    let (answer, answers) = channel();
    thread::spawn(move || {
        let node = Node::new();
        while let Ok(codes) = asked.recv() {
            if answer.send(node.answer(&codes)).is_err() {
                break;
            }
        }
    });
    (requests, answers)
}

fn lock_or_message(c: &mut Criterion) {
    let mut group = c.benchmark_group("lock or message");
    group.throughput(Throughput::Elements(1));
    let (node, locked, fine) = (Node::new(), Mutex::new(Node::new()), Fine::new());
    let (requests, answers) = in_a_thread();
    let ask = |codes| {
        requests.send(codes).expect("the thread lives");
        answers.recv().expect("the thread lives")
    };
    let right = CODES.map(|code| [code & 0x7f; 4]);
    assert_eq!(node.answer(&CODES), right);
    assert_eq!(fine.answer(&CODES), right);
    assert_eq!(ask(CODES), right);
    group.bench_function("owned", |b| b.iter(|| node.answer(black_box(&CODES))));
    group.bench_function("Mutex around the node", |b| {
        b.iter(|| locked.lock().expect("nobody panics").answer(black_box(&CODES)));
    });
    group.bench_function("Arc<Mutex> around each property", |b| b.iter(|| fine.answer(black_box(&CODES))));
    group.bench_function("channels to a thread", |b| b.iter(|| ask(black_box(CODES))));
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = lock_or_message }
