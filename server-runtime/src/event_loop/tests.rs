//! Tasks and sockets of a loop.

use std::cell::RefCell;
use std::future::pending;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::task::Waker;
use std::time::Duration;

use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::sync::{Notify, mpsc};

use super::*;

/// Runs `main` on a loop of this thread.
fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    EventLoop::new().unwrap().run(main)
}

/// A connection that was just accepted, and the client's end of it.
fn accepted() -> (Polled, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (Polled::tcp(socket), client)
}

#[test]
fn tasks_have_their_turns_first_come_first_served() {
    let order = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&order);
    run(async move {
        for task in 0..3 {
            let order = Rc::clone(&order);
            spawn_local(async move {
                for turn in 0..2 {
                    order.borrow_mut().push((turn, task));
                    yield_now().await;
                }
            });
        }
        while Rc::strong_count(&order) > 2 {
            yield_now().await;
        }
    });
    assert_eq!(*noted.borrow(), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
}

#[test]
fn a_task_that_panics_is_over_and_nothing_else() {
    run(async {
        spawn_local(async { panic!("as asked") });
        struct PanicsWhenDropped;
        impl Drop for PanicsWhenDropped {
            fn drop(&mut self) {
                panic!("as asked");
            }
        }
        spawn_local(async {
            let _kept = PanicsWhenDropped;
            yield_now().await;
        });
        // The panic comes behind the last poll.
        impl Future for PanicsWhenDropped {
            type Output = ();

            fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
                Poll::Ready(())
            }
        }
        spawn_local(PanicsWhenDropped);
        let done = Rc::new(Notify::new());
        let notify = Rc::clone(&done);
        spawn_local(async move {
            for _ in 0..10 {
                yield_now().await;
            }
            notify.notify_one();
        });
        done.notified().await;
    });
}

#[test]
#[should_panic = "as asked"]
fn a_panic_of_the_first_task_is_the_threads() {
    run(async {
        spawn_local(pending());
        yield_now().await;
        panic!("as asked");
    });
}

#[test]
fn unfinished_tasks_are_dropped_on_their_thread() {
    let (kept, held) = (Rc::new(()), Rc::new(()));
    let (own, of_another) = (Rc::clone(&kept), Rc::clone(&held));
    run(async move {
        struct SpawnsWhenDropped(Rc<()>);
        impl Drop for SpawnsWhenDropped {
            fn drop(&mut self) {
                let held = Rc::clone(&self.0);
                spawn_local(async move { drop(held) });
            }
        }
        let left = SpawnsWhenDropped(of_another);
        spawn_local(async move {
            let _left = (own, left);
            pending::<()>().await;
        });
        yield_now().await;
    });
    assert_eq!((Rc::strong_count(&kept), Rc::strong_count(&held)), (1, 1));
    assert!(!is_here(), "the loop is over");
}

#[test]
fn others_wake_tasks_also_while_these_sleep() {
    const THREADS: usize = 4;
    const MESSAGES: usize = 2000;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let sender = sender.clone();
            thread::spawn(move || {
                for message in 0..MESSAGES {
                    sender.send(thread).unwrap();
                    if message % 100 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let counts = run(async move {
        let mut counts = [0; THREADS];
        while let Some(thread) = receiver.recv().await {
            counts[thread] += 1;
        }
        counts
    });
    assert_eq!(counts, [MESSAGES; THREADS]);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_waker_does_nothing_after_its_loop_ends() {
    let waker = run(async {
        let task = Rc::new(RefCell::new(None));
        let told = Rc::clone(&task);
        spawn_local(poll_fn(move |cx| {
            told.replace(Some(cx.waker().clone()));
            Poll::Ready(())
        }));
        yield_now().await;
        let ended: Waker = task.take().unwrap();
        // Its place may have been given to another, which is then polled once more.
        ended.wake_by_ref();
        yield_now().await;
        ended
    });
    waker.wake_by_ref();
    thread::spawn(move || waker.wake()).join().unwrap();
}

#[test]
fn blocked_socket_reads_and_writes_wake_when_ready() {
    let (mut polled, mut client) = accepted();
    client.write_all(b"early").unwrap();
    let (go_on, gone_on) = sync_channel(1);
    let late = thread::spawn(move || {
        gone_on.recv().unwrap();
        client.write_all(b"late").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer.len()
    });
    const ANSWER: usize = 20_000_000;
    run(async move {
        let mut read = [0; 16];
        assert_eq!(polled.read(&mut read).await.unwrap(), 5);
        go_on.send(()).unwrap();
        assert_eq!(polled.peek(&mut read[..1]).await.unwrap(), 1);
        assert_eq!(polled.read(&mut read).await.unwrap(), 4);
        assert_eq!(&read[..4], b"late");
        // The answer is larger than what the sockets hold.
        polled.write_all(&vec![1; ANSWER / 2]).await.unwrap();
        let half = vec![1; ANSWER / 2];
        let mut left = &half[..];
        while !left.is_empty() {
            let pieces = left.split_at(left.len() / 3);
            let count = polled.write_vectored(&[io::IoSlice::new(pieces.0), io::IoSlice::new(pieces.1)]).await.unwrap();
            left = &left[count..];
        }
        polled.shutdown().await.unwrap();
        assert_eq!(polled.read(&mut read).await.unwrap(), 0, "the client has left, too");
    });
    assert_eq!(late.join().unwrap(), ANSWER);
}

#[test]
fn many_connections_are_served_and_go_from_one_loop_to_another() {
    const CLIENTS: usize = 50;
    const QUESTIONS: usize = 40;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let (moves, mut moved) = mpsc::unbounded_channel::<TcpStream>();
    let echo = |mut polled: Polled, questions: usize| async move {
        let mut byte = [0];
        for _ in 0..questions {
            polled.read_exact(&mut byte).await.unwrap();
            polled.write_all(&byte).await.unwrap();
        }
        polled
    };
    let first = thread::spawn(move || {
        run(async move {
            let mut accepts = Accepts::new(listener.into());
            for _ in 0..CLIENTS {
                let (socket, _) = accepts.accept().await.unwrap();
                let moves = moves.clone();
                spawn_local(async move {
                    let polled = echo(Polled::tcp(socket.into()), QUESTIONS / 2).await;
                    moves.send(polled.into_fd().into()).unwrap();
                });
            }
            // Until the last has gone.
            moves.closed().await;
        });
    });
    let second = thread::spawn(move || {
        run(async move {
            let all = Rc::new(Notify::new());
            for _ in 0..CLIENTS {
                let socket = moved.recv().await.unwrap();
                let all = Rc::clone(&all);
                spawn_local(async move {
                    echo(Polled::tcp(socket), QUESTIONS / 2).await;
                    all.notify_one();
                });
            }
            while Rc::strong_count(&all) > 1 {
                all.notified().await;
            }
        });
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            thread::spawn(move || {
                let mut client = TcpStream::connect(addr).unwrap();
                for question in 0..QUESTIONS as u8 {
                    client.write_all(&[question]).unwrap();
                    let mut answer = [0];
                    client.read_exact(&mut answer).unwrap();
                    assert_eq!(answer, [question]);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn a_connection_closed_by_the_other_end_is_read_to_its_end() {
    let (mut polled, mut client) = accepted();
    let (go_on, gone_on) = sync_channel(1);
    let client = thread::spawn(move || {
        gone_on.recv().unwrap();
        client.write_all(&[7; 100]).unwrap();
    });
    run(async move {
        let mut read = [0; 1];
        let first = poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut read);
            Poll::Ready(Pin::new(&mut polled).poll_read(cx, &mut buf).is_pending())
        });
        assert!(first.await, "nothing has come yet");
        go_on.send(()).unwrap();
        client.join().unwrap();
        let mut all = Vec::new();
        polled.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, [7; 100]);
    });
}

#[test]
fn a_task_with_more_to_do_lets_sockets_go_first() {
    let (mut polled, mut client) = accepted();
    run(async move {
        let answered = Rc::new(Cell::new(false));
        let answers = Rc::clone(&answered);
        spawn_local(async move {
            polled.read_exact(&mut [0]).await.unwrap();
            answers.set(true);
        });
        // The other waits by now.
        yield_now().await;
        client.write_all(b"?").unwrap();
        // Loopback delivers at once: the next look finds it, and it stands before this task.
        yield_now().await;
        assert!(answered.get());
    });
}
