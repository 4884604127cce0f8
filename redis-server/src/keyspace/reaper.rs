//! Freeing on a thread of its own what would hold a worker up, and with it all who wait for the locks that it holds.
//!
//! Any value that takes long to free goes this way. Values freed by `UNLINK`, `FLUSHALL ASYNC` and the `lazyfree-*` settings count in INFO,
//! as in Redis; others do not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{self, SendError, Sender, SyncSender};
use std::sync::{Arc, OnceLock};

use super::entry::Entry;
use super::table::Table;
use crate::keyspace::table;
use crate::threads::{self, OnPanic};

/// Removed data that takes long to free.
pub enum Garbage {
    /// One large value.
    Entry(Entry),
    /// The entries of a shard.
    Entries(Removed),
    /// A large value that was evicted, and its bytes.
    Evicted(Entry, usize),
    /// A large reply that was sent.
    Reply(Vec<u8>),
}

impl Garbage {
    fn objects(&self) -> usize {
        match self {
            Self::Entry(_) | Self::Evicted(..) => 1,
            Self::Entries(removed) => removed.len(),
            Self::Reply(_) => 0,
        }
    }

    /// Whether it is one block of memory that is worth being given back at once.
    fn is_huge(&self) -> bool {
        const HUGE: usize = 16 << 20;
        match self {
            Self::Entry(entry) | Self::Evicted(entry, _) => entry.memory() >= HUGE,
            Self::Reply(bytes) => bytes.capacity() >= HUGE,
            Self::Entries(_) => false,
        }
    }

    /// Bytes that eviction counts on.
    fn bytes(&self) -> usize {
        match self {
            Self::Entry(_) | Self::Entries(_) | Self::Reply(_) => 0,
            Self::Evicted(_, bytes) => *bytes,
        }
    }
}

/// Garbage, and whether it is counted.
type Load = (Garbage, bool);

/// A message to the thread.
enum Message {
    Free(Load),
    /// A waiting caller; the thread answers when all earlier messages are done.
    Settle(SyncSender<()>),
}

/// The thread that frees, started when there is first something to do.
pub struct Reaper {
    thread: OnceLock<Option<Sender<Message>>>,
    counts: Arc<Counts>,
}

struct Counts {
    /// Gives free memory back to the system.
    give_back: fn(),
    pending: AtomicUsize,
    evicted_bytes: AtomicUsize,
    freed: AtomicUsize,
    /// Messages in the queue that INFO does not count.
    silent: AtomicUsize,
}

impl Default for Reaper {
    /// One that leaves what it has freed to the allocator.
    fn default() -> Self {
        Self::new(|| ())
    }
}

impl Reaper {
    /// One that has `give_back` give free memory back to the system when it has freed a large block.
    pub fn new(give_back: fn()) -> Self {
        let (pending, evicted_bytes, freed, silent) = Default::default();
        let counts = Arc::new(Counts { give_back, pending, evicted_bytes, freed, silent });
        Self { thread: OnceLock::new(), counts }
    }

    /// Frees `garbage` some time soon, and counts it if it `is_counted`.
    pub fn free(&self, garbage: Garbage, is_counted: bool) {
        if is_counted {
            self.counts.pending.fetch_add(garbage.objects(), Relaxed);
        } else {
            self.counts.silent.fetch_add(1, Relaxed);
        }
        self.counts.evicted_bytes.fetch_add(garbage.bytes(), Relaxed);
        let load = (garbage, is_counted);
        match self.thread.get_or_init(|| start(Arc::clone(&self.counts))) {
            Some(thread) => {
                if let Err(SendError(Message::Free(load))) = thread.send(Message::Free(load)) {
                    self.counts.reap(load);
                }
            }
            None => self.counts.reap(load),
        }
    }

    /// Frees an entry: in silence and on the other thread if that takes long.
    #[inline]
    pub fn discard(&self, entry: Entry) {
        if entry.is_heavy() {
            self.free(Garbage::Entry(entry), false);
        }
    }

    /// How often it was given what is freed in silence, for [`Reaper::settle`].
    pub fn silent(&self) -> usize {
        self.counts.silent.load(Relaxed)
    }

    /// Waits until the garbage that was sent since `silent` was read is freed: a caller that has emptied a database in the foreground
    /// relies on the memory. The caller must hold no lock, as the call may take long.
    pub fn settle(&self, silent: usize) {
        if self.silent() == silent {
            return;
        }
        let (done, wait) = mpsc::sync_channel(1);
        if let Some(Some(thread)) = self.thread.get()
            && thread.send(Message::Settle(done)).is_ok()
        {
            // An error would mean that the thread has ended: nothing waits then.
            let _ = wait.recv();
        }
    }

    /// Keys and values that wait to be freed. Those that do not any more are among [`Reaper::freed`] when that is read later.
    pub fn pending(&self) -> usize {
        self.counts.pending.load(Acquire)
    }

    /// Bytes of evicted values that wait to be freed.
    pub fn evicted_bytes(&self) -> u64 {
        self.counts.evicted_bytes.load(Relaxed) as u64
    }

    /// Keys and values freed since the start, or the last reset.
    pub fn freed(&self) -> usize {
        self.counts.freed.load(Relaxed)
    }

    /// Counts the freed ones from zero again (`CONFIG RESETSTAT`).
    pub fn reset(&self) {
        self.counts.freed.store(0, Relaxed);
    }
}

/// Starts the thread, which ends with the [`Reaper`]; `None` where the system refuses one.
fn start(counts: Arc<Counts>) -> Option<Sender<Message>> {
    let (sender, messages) = mpsc::channel();
    // A panic while a value is freed must not end the thread: workers would have to free the next values.
    let handle = move |message| match message {
        Message::Free(load) => _ = catch_unwind(AssertUnwindSafe(|| counts.reap(load))),
        // The waiting caller may have given up.
        Message::Settle(done) => _ = done.send(()),
    };
    let run = move || messages.into_iter().for_each(handle);
    threads::spawn("reaper", OnPanic::EndProcess, run).ok().map(|_| sender)
}

impl Counts {
    fn reap(&self, (garbage, is_counted): Load) {
        // Also if a destructor panics: nobody waits for the rest of it.
        let _done = Done { counts: self, objects: garbage.objects(), bytes: garbage.bytes(), is_counted };
        let is_huge = garbage.is_huge();
        threads::panic_point();
        drop(garbage);
        if is_huge {
            // The next one that is as large shall not take as much again.
            (self.give_back)();
        }
    }
}

/// Counts garbage as freed when it is dropped.
struct Done<'a> {
    counts: &'a Counts,
    objects: usize,
    bytes: usize,
    is_counted: bool,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.counts.evicted_bytes.fetch_sub(self.bytes, Relaxed);
        if self.is_counted {
            self.counts.freed.fetch_add(self.objects, Relaxed);
            self.counts.pending.fetch_sub(self.objects, Release);
        }
    }
}

impl std::fmt::Debug for Reaper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reaper").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// Entries taken out of a shard; dropping it may take long for many.
pub struct Removed {
    pub(super) table: Table,
    pub(super) epoch: u32,
}

impl Removed {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Those that a snapshot in the making has not saved.
    pub fn unsaved(&self) -> impl Iterator<Item = &Entry> {
        table::entries(&self.table).filter(|entry| entry.is_unsaved(self.epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Value;

    #[test]
    fn garbage_is_freed_and_counted() {
        let reaper = Reaper::default();
        for i in 0..100 {
            reaper.free(Garbage::Entry(Entry::new(b"key", Value::Int(i), None)), true);
        }
        while reaper.pending() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(reaper.freed(), 100);
        reaper.reset();
        assert_eq!(reaper.freed(), 0);
    }

    #[test]
    fn settle_waits_for_all_earlier_garbage() {
        let reaper = Reaper::default();
        let reply = Arc::new(());
        reaper.settle(reaper.silent());
        for _ in 0..100 {
            let before = reaper.silent();
            let value = bytes::Bytes::from_owner(Owner(vec![0; 1 << 20], Arc::clone(&reply)));
            reaper.discard(Entry::new(b"key", Value::Shared(value), None));
            reaper.settle(before);
            assert_eq!(Arc::strong_count(&reply), 1, "it is freed");
        }
        reaper.settle(reaper.silent());
    }

    struct Owner(Vec<u8>, #[allow(dead_code, reason = "it is counted")] Arc<()>);

    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
}
