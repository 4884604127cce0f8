//! Clients whose replies wait for the disk.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use smallvec::SmallVec;

use super::lock;
use crate::clients::client::{ClientShared, flag};
use crate::exec::workers::Workers;

/// Clients that are sent nothing before the disk has what their replies show.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    list: Mutex<Vec<Waiter>>,
    /// So many are awaited; 0: none.
    awaited: AtomicUsize,
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
    /// Adds a client of this worker, unless the disk has enough: who need not wait is none of those who have come for the next write. It
    /// stands here once at most, and looks again whenever it is woken. Returns whether those are complete now who are awaited.
    pub(super) fn add(&self, client: &Arc<ClientShared>, offset: u64, durable: &AtomicU64) -> bool {
        let mut list = lock(&self.list);
        // Looked at here, as `release` comes behind what it is told: it finds the client, or the client finds that.
        if durable.load(Acquire) >= offset || client.has_flag(flag::AWAITS_DISK) {
            return false;
        }
        client.set_flag(flag::AWAITS_DISK, true);
        list.push(Waiter { offset, client: Arc::clone(client), thread: thread::current().id() });
        let awaited = self.awaited.load(Relaxed);
        let is_complete = awaited != 0 && list.len() >= awaited;
        if is_complete {
            self.awaited.store(0, Relaxed);
        }
        is_complete
    }

    /// Wakes those for whom it is enough that the disk has the journal up to `durable`. Returns how many there were, the others included.
    pub(super) fn release(&self, durable: u64, workers: &Workers) -> usize {
        let mut list = lock(&self.list);
        let count = list.len();
        let released: SmallVec<[_; 64]> = list.extract_if(.., |waiter| waiter.offset <= durable).collect();
        released.iter().for_each(|waiter| waiter.client.set_flag(flag::AWAITS_DISK, false));
        drop(list);
        workers.wake(released.into_iter().map(|waiter| (waiter.thread, waiter.client)));
        count
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

    /// Awaits nobody any more.
    pub(super) fn give_up(&self) {
        self.awaited.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is on disk at first.
    static NOTHING: AtomicU64 = AtomicU64::new(0);

    fn clients(count: u64) -> Vec<Arc<ClientShared>> {
        let client = |id| Arc::new(ClientShared::new(id, String::new(), String::new(), -1, 0));
        (0..count).map(client).collect()
    }

    fn waiting(clients: &[Arc<ClientShared>]) -> Vec<bool> {
        clients.iter().map(|client| client.has_flag(flag::AWAITS_DISK)).collect()
    }

    #[test]
    fn those_are_woken_for_whom_the_disk_has_enough() {
        let (waiters, clients) = (Waiters::default(), clients(4));
        for (client, offset) in clients.iter().zip([10, 30, 20, 30]) {
            waiters.add(client, offset, &NOTHING);
        }
        for (durable, count, left) in [
            (9, 4, [true; 4]),
            (20, 4, [false, true, false, true]),
            (29, 2, [false, true, false, true]),
            (u64::MAX, 2, [false; 4]),
            (u64::MAX, 0, [false; 4]),
        ] {
            assert_eq!(
                (waiters.release(durable, &Workers::default()), waiting(&clients)),
                (count, left.to_vec()),
                "{durable}"
            );
        }
    }

    #[test]
    fn a_client_stands_there_once_until_it_is_woken() {
        let (waiters, clients) = (Waiters::default(), clients(1));
        waiters.add(&clients[0], 10, &NOTHING);
        waiters.add(&clients[0], 20, &NOTHING);
        assert_eq!(waiters.release(10, &Workers::default()), 1);
        waiters.add(&clients[0], 20, &NOTHING);
        assert_eq!((waiters.release(10, &Workers::default()), waiting(&clients)), (1, vec![true]));
    }

    #[test]
    fn who_has_been_woken_has_not_come_again_before_there_is_something_new() {
        let (waiters, clients, durable) = (Waiters::default(), clients(2), AtomicU64::new(20));
        assert!(!waiters.await_all(1));
        assert_eq!([10, 20].map(|offset| waiters.add(&clients[0], offset, &durable)), [false; 2]);
        assert_eq!((waiters.count(), waiting(&clients)), (0, vec![false; 2]));
        assert!(waiters.add(&clients[0], 21, &durable));
        assert_eq!((waiters.count(), waiting(&clients)), (1, vec![true, false]));
    }

    #[test]
    fn the_last_of_those_who_are_awaited_says_so() {
        let (waiters, clients) = (Waiters::default(), clients(4));
        assert!(!waiters.add(&clients[0], 1, &NOTHING), "nobody is awaited");
        assert!(waiters.await_all(1) && !waiters.is_awaiting());
        assert!(!waiters.await_all(3) && waiters.is_awaiting());
        assert_eq!([1, 1, 2, 3].map(|at| waiters.add(&clients[at], 1, &NOTHING)), [false, false, true, false]);
        assert!(!waiters.is_awaiting());
        assert!(!waiters.await_all(5));
        waiters.give_up();
        assert!(!waiters.is_awaiting());
    }
}
