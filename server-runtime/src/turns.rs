//! Turns of tasks that have more to do than one turn is long: one of them for each look at the sockets.
//!
//! A worker polls ready tasks, first come, first served. It looks at sockets when no task is ready, or after some tasks
//! (`TASKS_PER_LOOK`). A few connections that always have more to do would so have everybody else wait for a turn of each of them, and more.
//! Here, tasks with more to do wait in a queue of the worker, which wakes one of them behind each look at the sockets. A new task then waits
//! for one turn, however many have more to do.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, Waker};

use crate::event_loop::{spawn_local, yield_now};

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Waker>,
    /// Whether somebody wakes them.
    is_served: bool,
}

thread_local! {
    /// Of the worker on this thread.
    static QUEUE: RefCell<Queue> = RefCell::default();
}

/// Ends the turn of the task that is polled, which has more to do: it is woken when others, and those for whom there is something at a
/// socket, have had theirs. For tasks of a worker alone.
pub fn end_turn(cx: &Context<'_>) {
    let is_served = QUEUE.with_borrow_mut(|queue| {
        queue.tasks.push_back(cx.waker().clone());
        mem::replace(&mut queue.is_served, true)
    });
    if !is_served {
        spawn_local(serve());
    }
}

/// Waits until others have had their turn. For tasks of a worker alone.
pub async fn others() {
    let mut have_had_theirs = false;
    poll_fn(|cx| {
        if mem::replace(&mut have_had_theirs, true) {
            return Poll::Ready(());
        }
        end_turn(cx);
        Poll::Pending
    })
    .await;
}

/// Wakes one for each look at the sockets, until there is none.
async fn serve() {
    loop {
        // A task that yields is woken behind the events of sockets.
        yield_now().await;
        let next = QUEUE.with_borrow_mut(|queue| {
            let next = queue.tasks.pop_front();
            queue.is_served = next.is_some();
            next
        });
        match next {
            Some(next) => next.wake(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;

    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    use super::*;
    use crate::event_loop::{EventLoop, Polled};
    use crate::workers::runtime;

    /// A task whose end can be awaited on both kinds of workers.
    fn told<T: 'static>(task: impl Future<Output = T> + 'static) -> oneshot::Receiver<T> {
        let (tell, told) = oneshot::channel();
        spawn_local(async move {
            let _ = tell.send(task.await);
        });
        told
    }

    #[test]
    fn input_waits_for_few_turns_of_busy_tasks() {
        runtime().unwrap().block_on(async {
            let (client, server) = tokio::net::UnixStream::pair().unwrap();
            questions(client, server).await;
        });
        EventLoop::new().unwrap().run(async {
            let (client, server) = UnixStream::pair().unwrap();
            let ends = [client, server].map(|end| {
                end.set_nonblocking(true).unwrap();
                Polled::unix(end)
            });
            let [client, server] = ends;
            questions(client, server).await;
        });
    }

    async fn questions<S: AsyncRead + AsyncWrite + Unpin + 'static>(mut client: S, mut server: S) {
        const BUSY: usize = 20;
        const QUESTIONS: usize = 50;
        let (turns, is_over) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let busy = (0..BUSY).map(|_| {
            let (turns, is_over) = (Rc::clone(&turns), Rc::clone(&is_over));
            told(async move {
                let mut own = 0;
                while !is_over.get() {
                    turns.set(turns.get() + 1);
                    own += 1;
                    others().await;
                }
                own
            })
        });
        let busy: Vec<_> = busy.collect();
        let answering = told(async move {
            let mut byte = [0];
            while server.read_exact(&mut byte).await.is_ok() {
                server.write_all(&byte).await.unwrap();
            }
        });
        for _ in 0..QUESTIONS {
            for _ in 0..BUSY {
                others().await;
            }
            let before = turns.get();
            client.write_all(b"?").await.unwrap();
            client.read_exact(&mut [0]).await.unwrap();
            // One for each of two ways.
            assert!(turns.get() - before <= 4, "{} turns of others", turns.get() - before);
        }
        is_over.set(true);
        drop(client);
        answering.await.unwrap();
        let mut each = Vec::new();
        for task in busy {
            each.push(task.await.unwrap());
        }
        let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
        assert!(*least >= QUESTIONS / 2 && most - least <= 1, "{each:?}");
        yield_now().await;
        assert!(!QUEUE.with_borrow(|queue| queue.is_served), "nobody is left, and nobody is waited for");
    }
}
