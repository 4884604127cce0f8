//! The workers, as far as one asks something of the others.
//!
//! Before keys go because memory is short, the others get a turn, in which they notice which clients have hung up, and free
//! what those held. The genuine server's one thread has seen whatever happened before a command; here a connection that
//! is over may still wait for its worker, and no key is to go in its place.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use atomic_waker::AtomicWaker;

use crate::clients::client::ClientShared;

/// For how long one worker waits for the others: longer than the system lets a thread that is ready wait for a processor.
const PATIENCE: Duration = Duration::from_millis(20);
/// Milliseconds without an eviction before the others are waited for again: where keys go all the time, commands are not
/// held up.
const QUIET: u64 = 2;
/// Milliseconds before they are waited for again when one of them had no time.
const PAUSE: u64 = 1000;

/// All workers that serve connections.
#[derive(Debug)]
pub struct Workers {
    patience: Duration,
    members: Mutex<Vec<Arc<Member>>>,
    /// From when on others are waited for again, in milliseconds of Unix time.
    not_before: AtomicU64,
    round: Mutex<Round>,
    taken: Condvar,
}

/// One worker.
#[derive(Debug)]
pub struct Member {
    thread: ThreadId,
    /// Whether it is to give memory back: memory that has been free for a while, and all that is free.
    give_back: AtomicBool,
    give_back_all: AtomicBool,
    /// Whether somebody waits for its turn.
    turn: AtomicBool,
    /// Clients that it is to wake.
    woken: Mutex<Vec<Arc<ClientShared>>>,
    waker: AtomicWaker,
}

/// The request to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To wake [these](Member::take_woken).
    Wake,
    /// To give memory back.
    GiveBack {
        /// All that is free, not only what has been so for a while.
        all: bool,
    },
    /// To serve whatever is ready, and then to say so.
    Turn,
}

/// A turn of each of the others.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    /// Workers that have not had their turn yet.
    missing: usize,
}

impl Default for Workers {
    fn default() -> Self {
        Self::with(PATIENCE)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    fn with(patience: Duration) -> Self {
        Self {
            patience,
            members: Mutex::default(),
            not_before: AtomicU64::new(0),
            round: Mutex::default(),
            taken: Condvar::new(),
        }
    }

    /// This thread is one more worker, which looks at its [`Member`] from now on.
    pub fn join(&self) -> Arc<Member> {
        let member = Arc::new(Member {
            thread: thread::current().id(),
            give_back: AtomicBool::new(false),
            give_back_all: AtomicBool::new(false),
            turn: AtomicBool::new(false),
            woken: Mutex::default(),
            waker: AtomicWaker::new(),
        });
        lock(&self.members).push(Arc::clone(&member));
        member
    }

    /// Has all workers give back memory that they do not use: all of it (`MEMORY PURGE`), or what has been free for a while.
    pub fn give_back(&self, all: bool) {
        for member in lock(&self.members).iter() {
            member.ask(if all { &member.give_back_all } else { &member.give_back });
        }
    }

    /// Wakes clients, each by the worker's thread that has it. Another thread spends one system call on each worker, not on each
    /// client, and no woken thread takes its processor before all are told.
    pub fn wake(&self, clients: impl IntoIterator<Item = (ThreadId, Arc<ClientShared>)>) {
        let members = lock(&self.members);
        for (thread, client) in clients {
            match members.iter().find(|member| member.thread == thread) {
                Some(member) => lock(&member.woken).push(client),
                None => client.wake(),
            }
        }
        members.iter().filter(|member| !lock(&member.woken).is_empty()).for_each(|member| member.waker.wake());
    }

    /// Gives the other workers a turn and waits for its end, if it was quiet before `now`, in milliseconds of Unix time; false
    /// if another thread does so already. The caller must hold no lock that others may want.
    #[cold]
    pub fn give_turns(&self, now: u64) -> bool {
        // Times further ahead are those of a clock that has stepped back.
        if (1..=PAUSE).contains(&self.not_before.load(Relaxed).saturating_sub(now)) {
            return true;
        }
        let mut round = lock(&self.round);
        if round.missing > 0 {
            return false;
        }
        round.number += 1;
        let me = thread::current().id();
        for member in lock(&self.members).iter().filter(|member| member.thread != me) {
            round.missing += 1;
            member.ask(&member.turn);
        }
        let waited = self.taken.wait_timeout_while(round, self.patience, |round| round.missing > 0);
        let (mut round, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let all_had_time = std::mem::take(&mut round.missing) == 0;
        self.not_before.store(now + if all_had_time { QUIET } else { PAUSE }, Relaxed);
        true
    }

    /// The number of the round under way, for [`Workers::turn_taken`].
    pub fn round(&self) -> u64 {
        lock(&self.round).number
    }

    /// A worker has had its turn in this round, which may be over by now.
    pub fn turn_taken(&self, number: u64) {
        let mut round = lock(&self.round);
        if round.number == number {
            round.missing = round.missing.saturating_sub(1);
            self.taken.notify_all();
        }
    }

    /// Keys have gone at `now`.
    pub fn note_eviction(&self, now: u64) {
        self.not_before.fetch_max(now + QUIET, Relaxed);
    }
}

impl Member {
    fn ask(&self, what: &AtomicBool) {
        what.store(true, Release);
        self.waker.wake();
    }

    /// Ready when this worker is asked for something; otherwise `waker` is woken when it is.
    pub fn poll(&self, waker: &Waker) -> Poll<Asked> {
        self.waker.register(waker);
        if !lock(&self.woken).is_empty() {
            Poll::Ready(Asked::Wake)
        } else if self.turn.swap(false, AcqRel) {
            Poll::Ready(Asked::Turn)
        } else if self.give_back_all.swap(false, AcqRel) {
            self.give_back.store(false, Release);
            Poll::Ready(Asked::GiveBack { all: true })
        } else if self.give_back.swap(false, AcqRel) {
            Poll::Ready(Asked::GiveBack { all: false })
        } else {
            Poll::Pending
        }
    }

    /// The clients that are to be woken.
    pub fn take_woken(&self) -> Vec<Arc<ClientShared>> {
        std::mem::take(&mut lock(&self.woken))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn all_are_asked_once_to_give_memory_back() {
        let workers = Workers::default();
        let members = [workers.join(), workers.join()];
        let poll = |at: usize| members[at].poll(Waker::noop());
        assert_eq!([poll(0), poll(1)], [Poll::Pending; 2]);
        workers.give_back(true);
        workers.give_back(false);
        assert_eq!([poll(0), poll(1)], [Poll::Ready(Asked::GiveBack { all: true }); 2]);
        assert_eq!([poll(0), poll(1)], [Poll::Pending; 2]);
        workers.give_back(false);
        assert_eq!([poll(0), poll(1)], [Poll::Ready(Asked::GiveBack { all: false }); 2]);
        assert_eq!([poll(0), poll(1)], [Poll::Pending; 2]);
    }

    #[test]
    fn clients_are_woken_by_the_worker_that_has_them() {
        let workers = Workers::default();
        let member = workers.join();
        let clients = [1, 2, 3].map(|id| Arc::new(ClientShared::new(id, String::new(), String::new(), -1, 0)));
        let (here, elsewhere) = (thread::current().id(), thread::spawn(|| thread::current().id()).join().unwrap());
        let wakes: [_; 3] = std::array::from_fn(|_| Arc::new(Wakes::default()));
        clients.iter().zip(&wakes).for_each(|(client, wakes)| client.wake_by(&Arc::clone(wakes).into()));
        assert_eq!(member.poll(Waker::noop()), Poll::Pending);
        workers.wake([here, here, elsewhere].into_iter().zip(clients));
        let counts = || wakes.each_ref().map(|wakes| wakes.0.load(Relaxed));
        assert_eq!(counts(), [0, 0, 1], "a thread that is no worker's is not waited for");
        assert_eq!(member.poll(Waker::noop()), Poll::Ready(Asked::Wake));
        member.take_woken().iter().for_each(|client| client.wake());
        assert_eq!((counts(), member.poll(Waker::noop())), ([1, 1, 1], Poll::Pending));
    }

    #[derive(Default)]
    struct Wakes(AtomicU64);

    impl std::task::Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn others_have_their_turn_unless_keys_go_all_the_time() {
        let workers = Workers::with(Duration::from_secs(60));
        let (joined, is_joined) = mpsc::channel();
        let (stop, is_over) = mpsc::channel::<()>();
        let asked = &workers;
        let taken = thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let workers = asked;
                let member = workers.join();
                joined.send(()).unwrap();
                let mut taken = 0;
                while is_over.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
                    if member.poll(Waker::noop()) == Poll::Ready(Asked::Turn) {
                        taken += 1;
                        workers.turn_taken(workers.round());
                    }
                    thread::yield_now();
                }
                taken
            });
            is_joined.recv().unwrap();
            for (now, evicts) in [(1000, false), (1001, false), (1002, true), (1003, true), (1004, true), (1006, false)]
            {
                assert!(workers.give_turns(now));
                if evicts {
                    workers.note_eviction(now);
                }
            }
            drop(stop);
            worker.join().unwrap()
        });
        assert_eq!(taken, 3, "at 1000, 1002 and 1006");
    }

    #[test]
    fn turns_skip_the_calling_worker_and_time_out() {
        let workers = Workers::with(Duration::ZERO);
        let _me = workers.join();
        assert!(workers.give_turns(1));
        assert_eq!(workers.not_before.load(Relaxed), 1 + QUIET);
        let _other = thread::scope(|scope| scope.spawn(|| workers.join()).join()).unwrap();
        assert!(workers.give_turns(10_000));
        assert_eq!(workers.not_before.load(Relaxed), 10_000 + PAUSE);
        assert!(workers.give_turns(3));
        assert_eq!(workers.not_before.load(Relaxed), 3 + PAUSE, "the clock has stepped back by more than the pause");
        workers.turn_taken(1);
        lock(&workers.round).missing = 1;
        assert!(!workers.give_turns(20_000 + PAUSE), "another thread waits already");
    }
}
