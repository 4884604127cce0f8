//! The turns of a shard's readers and writers. DashMap's lock lets a reader in while others are in, also past a writer that waits: where
//! readers overlap without end, that writer would wait without end. Here a reader that comes while a writer waits lets one writer go first,
//! and no more than one, so that neither side starves.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, PoisonError};

/// One turn in a [`Queue`]'s state; the bits below count writers.
const TURN: u32 = 1 << 16;

/// Writers that wait for one shard, and the turns that such writers have had. There are fewer than 65,536 threads.
#[derive(Default)]
pub(super) struct Queue(AtomicU32);

/// All queues of a database: how many writers wait in them, and the place where readers wait for a turn.
#[derive(Default)]
pub(super) struct Line {
    writers: AtomicU32,
    lock: Mutex<()>,
    turn_taken: Condvar,
}

impl Line {
    /// True while a writer waits for any shard: each reader looks at this.
    #[inline]
    pub(super) fn has_writers(&self) -> bool {
        self.writers.load(Relaxed) != 0
    }
}

impl Queue {
    /// True if no writer waits for the shard.
    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Relaxed).is_multiple_of(TURN)
    }

    /// A reader comes: it waits until a writer that waits has the lock, if there is one.
    pub(super) fn let_pass(&self, line: &Line) {
        if self.is_empty() {
            return;
        }
        let turn = self.0.load(Relaxed) / TURN;
        let lock = line.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |(): &mut ()| !self.is_empty() && self.0.load(Relaxed) / TURN == turn;
        drop(line.turn_taken.wait_while(lock, waits));
    }

    /// A writer comes that has found the shard locked: `lock` waits for it.
    pub(super) fn write<R>(&self, line: &Line, lock: impl FnOnce() -> R) -> R {
        self.0.fetch_add(1, Relaxed);
        line.writers.fetch_add(1, Relaxed);
        let locked = lock();
        // One writer less, and one turn more.
        self.0.fetch_add(TURN - 1, Relaxed);
        line.writers.fetch_sub(1, Relaxed);
        // A reader is either before its look at the state, or waits to be told.
        drop(line.lock.lock());
        line.turn_taken.notify_all();
        locked
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, RwLock};
    use std::thread;

    use super::*;

    /// Readers that come while a writer waits are behind it, and all of them come in then.
    #[test]
    fn readers_let_one_writer_pass() {
        let (queue, line, lock) = (Queue::default(), Line::default(), RwLock::new(0));
        let came = AtomicUsize::new(0);
        thread::scope(|scope| {
            let first = lock.read().unwrap();
            let writer = scope.spawn(|| *queue.write(&line, || lock.write().unwrap()) = 1);
            while queue.is_empty() {
                thread::yield_now();
            }
            let read = || {
                queue.let_pass(&line);
                assert_eq!(*lock.read().unwrap(), 1, "the writer was first");
                came.fetch_add(1, Relaxed);
            };
            let late: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
            drop(first);
            writer.join().unwrap();
            late.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert_eq!((came.into_inner(), queue.is_empty()), (4, true));
    }

    /// Turns are counted beyond what the state holds.
    #[test]
    fn turns_begin_again() {
        let (queue, line) = (Queue(AtomicU32::new(u32::MAX - TURN + 1)), Line::default());
        queue.write(&line, || assert!(!queue.is_empty()));
        assert!(queue.is_empty());
        let queue = Arc::new(queue);
        queue.let_pass(&line);
    }
}
