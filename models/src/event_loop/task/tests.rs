use shuttle::sync::atomic::AtomicUsize;
use shuttle::thread::spawn;

use super::*;
use crate::park::model;

/// Threads that wake, and wake-ups by each.
const THREADS: usize = 2;
const WAKES: usize = 2;

/// Runs a loop with two tasks until each has seen all that threads have left for it.
fn run_until(all: usize, interrupt: &OwnedFd, remote: &Remote, tasks: &[(Arc<Header>, Arc<AtomicUsize>)]) {
    let mut seen = vec![0; tasks.len()];
    while seen.iter().any(|seen| *seen < all) {
        let mut ready = Vec::new();
        remote.take(|index| ready.push(index));
        if ready.is_empty() {
            interrupt.wait();
            continue;
        }
        for index in ready {
            tasks[index].0.leaves_queue();
            seen[index] = tasks[index].1.load(Relaxed);
        }
    }
}

/// A task sees whatever was left for it before it was woken, however wake-ups of several threads and the loop's looks meet: none is lost, and
/// the loop does not sleep beside one.
#[test]
fn no_wake_up_from_elsewhere_is_lost() {
    model(|| {
        let interrupt = OwnedFd::default();
        let remote = Arc::new(Remote::new(interrupt.clone()));
        let tasks: Vec<_> = (0..2)
            .map(|index| (Arc::new(Header::new(index, Arc::clone(&remote))), Arc::new(AtomicUsize::new(0))))
            .collect();
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let tasks = tasks.clone();
                spawn(move || {
                    for _ in 0..WAKES {
                        for (header, left) in &tasks {
                            left.fetch_add(1, Relaxed);
                            header.wake_elsewhere();
                        }
                    }
                })
            })
            .collect();
        run_until(THREADS * WAKES, &interrupt, &remote, &tasks);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
