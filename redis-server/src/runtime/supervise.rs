//! Tasks of the server's own, which go on after a panic.

use std::time::Duration;

/// Time before a task that has panicked is started again: the cause may well be there still.
pub(super) const RESTART_DELAY: Duration = Duration::from_secs(1);

/// Runs a task on this thread until it ends by itself, or the server does. One that panics is started again after `delay`; had
/// it locked keys for writing, the process has ended.
pub(super) fn supervise<T>(name: &'static str, delay: Duration, start: impl Fn() -> T + 'static)
where
    T: Future<Output = ()> + 'static,
{
    server_runtime::spawn_local(async move {
        while server_runtime::caught(start()).await.is_err() {
            tracing::error!(task = name, "a task panicked: it is started again");
            server_runtime::sleep(delay).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn a_task_that_panics_is_started_again_until_it_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (begun, done) = (Rc::new(Cell::new(0)), Arc::new(Notify::new()));
        let (counter, notify) = (Rc::clone(&begun), Arc::clone(&done));
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            supervise("test", Duration::ZERO, move || {
                counter.set(counter.get() + 1);
                let (round, notify) = (counter.get(), Arc::clone(&notify));
                async move {
                    tokio::task::yield_now().await;
                    assert!(round == 3, "as asked");
                    notify.notify_one();
                }
            });
            done.notified().await;
            // A task that has ended is not started again: the supervisor has had its turns by then.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(begun.get(), 3);
    }
}
