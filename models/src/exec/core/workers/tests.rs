use shuttle::thread;

use super::*;
use crate::park::{Park, model};

/// A sleeping worker wakes for a request, and the asking thread goes on: here no patience ends.
#[test]
fn requests_wake_sleeping_workers() {
    model(|| {
        let workers = Arc::new(Workers::default());
        let joined = Arc::new((Mutex::new(0), Condvar::new()));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (workers, joined) = (Arc::clone(&workers), Arc::clone(&joined));
                thread::spawn(move || {
                    let member = workers.join();
                    *joined.0.lock().unwrap() += 1;
                    joined.1.notify_all();
                    let (park, waker) = Park::new();
                    let mut left = vec![Asked::Turn, Asked::GiveBack { all: true }];
                    while !left.is_empty() {
                        match member.poll(&waker) {
                            Poll::Ready(asked) => {
                                left.retain(|other| *other != asked);
                                if asked == Asked::Turn {
                                    workers.turn_taken(workers.round());
                                }
                            }
                            Poll::Pending => park.sleep(),
                        }
                    }
                })
            })
            .collect();
        let all = joined.0.lock().unwrap();
        drop(joined.1.wait_while(all, |count| *count < 2).unwrap());
        let other = Arc::clone(&workers);
        let purge = thread::spawn(move || other.give_back(true));
        assert!(workers.give_turns(1000));
        purge.join().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
