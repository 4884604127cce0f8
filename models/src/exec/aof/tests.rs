use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;

use super::waiters::Waiters;
use crate::clients::client::{ClientShared, flag};
use crate::park::{Park, model};

/// Whoever waits for the disk is woken when it has enough, though its state is looked at without a lock.
#[test]
fn nobody_waits_for_what_is_on_the_disk() {
    model(|| {
        let (waiters, durable) = (Arc::new(Waiters::default()), Arc::new(AtomicU64::new(0)));
        let clients: Vec<_> = [1, 2]
            .map(|offset| {
                let (waiters, durable) = (Arc::clone(&waiters), Arc::clone(&durable));
                thread::spawn(move || {
                    let client = Arc::new(ClientShared::default());
                    let (park, waker) = Park::new();
                    loop {
                        client.wake_by(&waker);
                        if durable.load(SeqCst) >= offset {
                            break;
                        }
                        waiters.add(&client, offset);
                        // It may have come between the look and the place in the list.
                        if durable.load(SeqCst) >= offset {
                            break;
                        }
                        park.sleep();
                        assert!(!client.has_flag(flag::AWAITS_DISK), "who is woken stands there no more");
                    }
                })
            })
            .into();
        for offset in 1..=2 {
            durable.store(offset, SeqCst);
            waiters.release(offset);
        }
        clients.into_iter().for_each(|client| client.join().unwrap());
        waiters.release(u64::MAX);
        assert_eq!(waiters.release(u64::MAX), 0);
    });
}

/// Whoever awaits clients learns of the last, from the client or by itself, exactly once.
#[test]
fn the_last_who_is_awaited_says_so() {
    model(|| {
        let waiters = Arc::new(Waiters::default());
        let clients = [(), ()].map(|()| {
            let waiters = Arc::clone(&waiters);
            thread::spawn(move || waiters.add(&Arc::new(ClientShared::default()), 1))
        });
        let is_there = waiters.await_all(2);
        let said = clients.map(|client| client.join().unwrap()).iter().filter(|said| **said).count();
        assert_eq!(said + usize::from(is_there), 1);
        assert!(!waiters.is_awaiting());
    });
}
