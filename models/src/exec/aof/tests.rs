use std::task::Poll;

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;

use super::waiters::Waiters;
use crate::clients::client::ClientShared;
use crate::exec::workers::{Asked, Workers};
use crate::park::{Park, model};

/// Whoever waits for the disk is woken when it has enough, though its state is looked at without a lock: by the worker that has it,
/// or, where no worker has it, at once.
#[test]
fn nobody_waits_for_what_is_on_the_disk() {
    model(|| {
        let (waiters, durable) = (Arc::new(Waiters::default()), Arc::new(AtomicU64::new(0)));
        let workers = Arc::new(Workers::default());
        let clients: Vec<_> = [(1, true), (2, false), (2, true)]
            .map(|(offset, has_worker)| {
                let (waiters, durable, workers) = (Arc::clone(&waiters), Arc::clone(&durable), Arc::clone(&workers));
                thread::spawn(move || {
                    let member = has_worker.then(|| workers.join());
                    let client = Arc::new(ClientShared::default());
                    let (park, waker) = Park::new();
                    client.wake_by(&waker);
                    loop {
                        waiters.add(&client, offset, &durable);
                        // It may have come before the place in the list.
                        if durable.load(SeqCst) >= offset {
                            break;
                        }
                        while let Some(member) = &member
                            && member.poll(&waker) == Poll::Ready(Asked::Wake)
                        {
                            member.take_woken().iter().for_each(|client| client.wake());
                        }
                        park.sleep();
                    }
                })
            })
            .into();
        for offset in 1..=2 {
            durable.store(offset, SeqCst);
            waiters.release(offset, &workers);
        }
        clients.into_iter().for_each(|client| client.join().unwrap());
        waiters.release(u64::MAX, &workers);
        assert_eq!(waiters.release(u64::MAX, &workers), 0);
    });
}

/// Whoever awaits clients learns of the last, from the client or by itself, exactly once.
#[test]
fn the_last_who_is_awaited_says_so() {
    model(|| {
        let waiters = Arc::new(Waiters::default());
        let clients = [(), ()].map(|()| {
            let waiters = Arc::clone(&waiters);
            thread::spawn(move || waiters.add(&Arc::new(ClientShared::default()), 1, &AtomicU64::new(0)))
        });
        let is_there = waiters.await_all(2);
        let said = clients.map(|client| client.join().unwrap()).iter().filter(|said| **said).count();
        assert_eq!(said + usize::from(is_there), 1);
        assert!(!waiters.is_awaiting());
    });
}
