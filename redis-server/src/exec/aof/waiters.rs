//! Clients whose replies wait for the files, or for the disk.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use smallvec::SmallVec;

use super::lock::lock;
use crate::clients::client::{ClientShared, flag};
use crate::exec::core::workers::Workers;

/// Clients that are sent nothing before the disk has what their replies show.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    list: Mutex<Vec<Waiter>>,
    /// How many there are.
    len: AtomicUsize,
    /// So many are awaited; 0: none.
    awaited: AtomicUsize,
}

/// The clients at a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Released {
    /// How many there were.
    pub(super) waited: usize,
    /// How many of them wait still.
    pub(super) left: usize,
}

/// A client that is sent nothing before the journal is on disk up to `offset`.
#[derive(Debug)]
struct Waiter {
    offset: u64,
    client: Arc<ClientShared>,
    /// The worker that has it.
    thread: ThreadId,
}

impl Waiters {
    /// Adds a client of this worker, unless its offset `is_safe`: then it does not count among the clients of the next write. A client is
    /// in the list once at most, and looks again whenever it is woken. Returns whether all awaited clients are complete now; `None`, if it
    /// was not added.
    pub(super) fn add(&self, client: &Arc<ClientShared>, offset: u64, is_safe: impl FnOnce() -> bool) -> Option<bool> {
        let mut list = lock(&self.list);
        // Looked at here, as `release` comes behind what it is told: it finds the client, or the client finds that.
        if is_safe() || client.has_flag(flag::AWAITS_DISK) {
            return None;
        }
        client.set_flag(flag::AWAITS_DISK, true);
        list.push(Waiter { offset, client: Arc::clone(client), thread: thread::current().id() });
        self.len.store(list.len(), Relaxed);
        let awaited = self.awaited.load(Relaxed);
        let is_complete = awaited != 0 && list.len() >= awaited;
        if is_complete {
            self.awaited.store(0, Relaxed);
        }
        Some(is_complete)
    }

    /// Wakes the clients that wait for an offset up to `safe`.
    pub(super) fn release(&self, safe: u64, workers: &Workers) -> Released {
        if self.len.load(Relaxed) == 0 {
            return Released::default();
        }
        let mut list = lock(&self.list);
        let waited = list.len();
        let released: SmallVec<[_; 64]> = list.extract_if(.., |waiter| waiter.offset <= safe).collect();
        released.iter().for_each(|waiter| waiter.client.set_flag(flag::AWAITS_DISK, false));
        let left = list.len();
        self.len.store(left, Relaxed);
        drop(list);
        workers.wake(released.into_iter().map(|waiter| (waiter.thread, waiter.client)));
        Released { waited, left }
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        lock(&self.list).len()
    }

    /// Awaits `count` clients. Returns whether so many are there.
    pub(super) fn await_all(&self, count: usize) -> bool {
        let list = lock(&self.list);
        let is_complete = list.len() >= count;
        if !is_complete {
            self.awaited.store(count, Relaxed);
        }
        is_complete
    }

    /// Whether some are still awaited.
    pub(super) fn is_awaiting(&self) -> bool {
        self.awaited.load(Relaxed) != 0
    }

    /// Stops waiting for clients.
    pub(super) fn give_up(&self) {
        self.awaited.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset that is safe at first.
    fn nothing() -> bool {
        false
    }

    fn clients(count: u64) -> Vec<Arc<ClientShared>> {
        let client = |id| Arc::new(ClientShared::new(id, String::new(), String::new(), -1, 0));
        (0..count).map(client).collect()
    }

    fn waiting(clients: &[Arc<ClientShared>]) -> Vec<bool> {
        clients.iter().map(|client| client.has_flag(flag::AWAITS_DISK)).collect()
    }

    #[test]
    fn clients_wake_when_their_offset_is_durable() {
        let (waiters, clients) = (Waiters::default(), clients(4));
        for (client, offset) in clients.iter().zip([10, 30, 20, 30]) {
            assert_eq!(waiters.add(client, offset, nothing), Some(false));
        }
        for (durable, count, left) in [
            (9, 4, [true; 4]),
            (20, 4, [false, true, false, true]),
            (29, 2, [false, true, false, true]),
            (u64::MAX, 2, [false; 4]),
            (u64::MAX, 0, [false; 4]),
        ] {
            assert_eq!(
                (waiters.release(durable, &Workers::default()).waited, waiting(&clients)),
                (count, left.to_vec()),
                "{durable}"
            );
        }
    }

    #[test]
    fn a_client_stands_there_once_until_it_is_woken() {
        let (waiters, clients) = (Waiters::default(), clients(1));
        let add = |offset| waiters.add(&clients[0], offset, nothing);
        assert_eq!([10, 20].map(add), [Some(false), None]);
        assert_eq!(waiters.release(10, &Workers::default()), Released { waited: 1, left: 0 });
        assert_eq!(add(20), Some(false));
        let released = waiters.release(10, &Workers::default());
        assert_eq!((released, waiting(&clients)), (Released { waited: 1, left: 1 }, vec![true]));
    }

    #[test]
    fn clients_with_safe_offsets_are_not_added() {
        let (waiters, clients) = (Waiters::default(), clients(2));
        let add = |offset| waiters.add(&clients[0], offset, || offset <= 20);
        assert!(!waiters.await_all(1));
        assert_eq!([10, 20].map(add), [None; 2]);
        assert_eq!((waiters.count(), waiting(&clients)), (0, vec![false; 2]));
        assert_eq!(add(21), Some(true));
        assert_eq!((waiters.count(), waiting(&clients)), (1, vec![true, false]));
    }

    #[test]
    fn the_last_awaited_client_completes_the_wait() {
        let (waiters, clients) = (Waiters::default(), clients(4));
        let add = |at: usize| waiters.add(&clients[at], 1, nothing);
        assert_eq!(add(0), Some(false), "nobody is awaited");
        assert!(waiters.await_all(1) && !waiters.is_awaiting());
        assert!(!waiters.await_all(3) && waiters.is_awaiting());
        assert_eq!([1, 1, 2, 3].map(add), [Some(false), None, Some(true), Some(false)]);
        assert!(!waiters.is_awaiting());
        assert!(!waiters.await_all(5));
        waiters.give_up();
        assert!(!waiters.is_awaiting());
    }
}
