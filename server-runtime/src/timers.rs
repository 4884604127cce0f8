//! Time for threads that keep none.
//!
//! A thread that keeps timers reads the clock around each of its sleeps, and goes through its wheels as often: some 490 of the 4,470
//! instructions that redis-server once needed for a GET which came alone, by callgrind. Where timers are few, one thread keeps them for
//! all workers, and wakes their tasks.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{Sleep, Timeout};

thread_local! {
    /// The thread that keeps time for this one; `None` if its own runtime does.
    static TIMERS: RefCell<Option<Timers>> = const { RefCell::new(None) };
}

/// The thread that keeps time for others, until the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Timers {
    runtime: Handle,
    _in_use: Sender<()>,
}

impl Timers {
    /// Keeps time for others on this thread, once they have been told where.
    pub(crate) fn keep(ready: &SyncSender<io::Result<Self>>) {
        let runtime = match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this line; if it is gone, nobody is left to be told.
                let _ = ready.send(Err(error));
                return;
            }
        };
        let (in_use, mut unused) = channel(1);
        let _ = ready.send(Ok(Self { runtime: runtime.handle().clone(), _in_use: in_use }));
        runtime.block_on(unused.recv());
    }

    /// Has this thread's time kept there.
    pub(crate) fn enter(self) {
        TIMERS.set(Some(self));
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timers")
    }
}

/// Ready after this time, as [`tokio::time::sleep`] is, also on workers with a [loop of their own](crate::Service::OWN_LOOP).
///
/// # Panics
/// On a thread without timers that is no worker.
pub fn sleep(duration: Duration) -> Sleep {
    with_timers(|| tokio::time::sleep(duration))
}

/// [`sleep`] for [`tokio::time::timeout`].
pub(crate) fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    with_timers(|| tokio::time::timeout(duration, future))
}

/// Makes a timer where this thread's are kept.
fn with_timers<T>(make: impl FnOnce() -> T) -> T {
    TIMERS.with_borrow(|timers| {
        let _entered = timers.as_ref().map(|timers| timers.runtime.enter());
        make()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_runtime_without_timers_sleeps_by_those_of_another_thread() {
        let (tell, told) = sync_channel(1);
        let keeper = thread::spawn(move || Timers::keep(&tell));
        let timers = told.recv().unwrap().unwrap();
        let worker = thread::spawn(move || {
            timers.enter();
            let runtime = Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (began, short) = (Instant::now(), Duration::from_millis(20));
                sleep(short).await;
                assert!(began.elapsed() >= short);
                assert!(timeout(short, std::future::pending::<()>()).await.is_err());
                assert_eq!(timeout(Duration::from_secs(60), async { 7 }).await, Ok(7));
                // One that is given up is forgotten.
                drop(sleep(Duration::from_secs(60)));
            });
        });
        worker.join().unwrap();
        keeper.join().expect("it ends when nobody has timers there any more");
    }
}
