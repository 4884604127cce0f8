use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst as Seq};
use shuttle::sync::{Arc, MutexGuard};
use shuttle::thread;

use super::*;
use crate::park::model;

/// Threads that read.
const READERS: usize = 2;
/// Writes of each thread that writes.
const WRITES: usize = 2;

/// DashMap's lock, as far as it matters here: readers come in while others are in, whoever waits.
#[derive(Default)]
struct Lock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    readers: usize,
    has_writer: bool,
}

impl Lock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn read(&self) {
        self.changed.wait_while(self.state(), |state| state.has_writer).unwrap().readers += 1;
    }

    fn try_write(&self) -> bool {
        let mut state = self.state();
        let is_free = !state.has_writer && state.readers == 0;
        state.has_writer |= is_free;
        is_free
    }

    fn write(&self) {
        let is_taken = |state: &mut State| state.has_writer || state.readers > 0;
        self.changed.wait_while(self.state(), is_taken).unwrap().has_writer = true;
    }

    fn unlock(&self) {
        let mut state = self.state();
        if !std::mem::take(&mut state.has_writer) {
            state.readers -= 1;
        }
        self.changed.notify_all();
    }
}

#[derive(Default)]
struct Shard {
    lock: Lock,
    queue: Queue,
    line: Line,
    reads: AtomicUsize,
    /// Reads that may begin while a writer waits.
    most: usize,
}

impl Shard {
    fn read(&self) {
        if self.line.has_writers() {
            self.queue.let_pass(&self.line);
        }
        self.lock.read();
        self.reads.fetch_add(1, Seq);
        self.lock.unlock();
    }

    fn write(&self) {
        if !self.lock.try_write() {
            self.queue.write(&self.line, || {
                let before = self.reads.load(Seq);
                self.lock.write();
                let passed = self.reads.load(Seq) - before;
                assert!(passed <= self.most, "{passed} reads began while a writer waited");
            });
        }
        self.lock.unlock();
    }
}

/// Readers and writers that come again and again, and all of them come to an end.
fn scene(writers: usize) {
    // Readers that had looked before the writer came, and those that let another write pass.
    let most = READERS * (1 + (writers - 1) * WRITES);
    let shard = Arc::new(Shard { most, ..Shard::default() });
    let spawn = |act: fn(&Shard), times| {
        let shard = Arc::clone(&shard);
        thread::spawn(move || (0..times).for_each(|_| act(&shard)))
    };
    let readers: Vec<_> = (0..READERS).map(|_| spawn(Shard::read, 4)).collect();
    let writers: Vec<_> = (0..writers).map(|_| spawn(Shard::write, WRITES)).collect();
    readers.into_iter().chain(writers).for_each(|thread| thread.join().unwrap());
    assert!(shard.queue.is_empty() && !shard.line.has_writers());
}

#[test]
fn a_writer_is_not_passed_for_ever() {
    model(|| scene(1));
}

#[test]
fn two_writers_and_two_readers_all_finish() {
    model(|| scene(2));
}
