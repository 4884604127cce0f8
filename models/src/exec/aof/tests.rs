use std::task::Poll;

use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use super::waiters::{Released, Waiters};
use crate::clients::client::ClientShared;
use crate::exec::core::workers::{Asked, Workers};
use crate::park::{Park, model};

/// A client that waits for the disk wakes when its data is there, although it checks without a lock. Its worker wakes it; without a worker,
/// the thread that releases it does so at once.
#[test]
fn clients_wake_once_their_data_is_durable() {
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
                        waiters.add(&client, offset, || durable.load(SeqCst) >= offset);
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
        assert_eq!(waiters.release(u64::MAX, &workers), Released::default());
    });
}

/// A call that awaits clients learns of the last one exactly once: from the client or by itself.
#[test]
fn the_last_awaited_client_is_reported_exactly_once() {
    model(|| {
        let waiters = Arc::new(Waiters::default());
        let clients = [(), ()].map(|()| {
            let waiters = Arc::clone(&waiters);
            thread::spawn(move || waiters.add(&Arc::new(ClientShared::default()), 1, || false))
        });
        let is_there = waiters.await_all(2);
        let said = clients.map(|client| client.join().unwrap()).iter().filter(|said| **said == Some(true)).count();
        assert_eq!(said + usize::from(is_there), 1);
        assert!(!waiters.is_awaiting());
    });
}

/// The same steps as `Aof::catch_up`: no thread waits for the pen, and every change gets written by some thread.
fn catch_up(said: &AtomicU64, written: &AtomicU64, pen: &Mutex<()>, waiters: &Waiters, workers: &Workers) {
    loop {
        let Ok(held) = pen.try_lock() else { return };
        let end = said.load(SeqCst);
        written.store(end, SeqCst);
        drop(held);
        let left = waiters.release(written.load(SeqCst), workers).left;
        if left == 0 || said.load(SeqCst) <= end {
            return;
        }
    }
}

/// A thread that does not get the pen is woken by the one that has it.
#[test]
fn the_pen_holder_writes_for_waiting_threads() {
    model(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0), Mutex::new(()), Waiters::default()));
        let clients: Vec<_> = [(), (), ()]
            .map(|()| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (said, written, pen, waiters) = &*shared;
                    let workers = Workers::default();
                    let client = Arc::new(ClientShared::default());
                    let (park, waker) = Park::new();
                    client.wake_by(&waker);
                    let offset = said.fetch_add(1, SeqCst) + 1;
                    let is_safe = || written.load(SeqCst) >= offset;
                    catch_up(said, written, pen, waiters, &workers);
                    while !is_safe() {
                        waiters.add(&client, offset, is_safe);
                        catch_up(said, written, pen, waiters, &workers);
                        if !is_safe() {
                            park.sleep();
                        }
                    }
                })
            })
            .into();
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
}
