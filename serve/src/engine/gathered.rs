//! A stream whose writes gather until the writer reads again or waits: libraries for WebSocket write, and flush, each
//! message by itself, and the system call that sends one costs more than all else that is done for it.
//!
//! The gathered bytes are sent before the next read, or else by a task of its own, the flusher, which runs when the
//! writer waits for anything. Only the flusher waits for the stream to take more; the writer waits for the flusher.
//!
//! Where no more than one write comes between two reads, gathering gains nothing and costs the flusher's turn: the first write goes
//! straight to the stream until a second one follows.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes from which on nothing more gathers.
const FULL: usize = 16 * 1024;

/// The stream as its reader and writer has it.
pub(super) struct Gathered<S>(Arc<Mutex<State<S>>>);

/// Sends the gathered bytes, and when the other end is dropped, the rest. To be spawned on the stream's worker.
pub(super) struct Flusher<S>(Arc<Mutex<State<S>>>);

struct State<S> {
    stream: S,
    /// Written, not sent. Has no room while there is nothing: most streams are idle.
    unsent: BytesMut,
    /// Writes since the last read.
    writes: usize,
    /// Whether there were several between two reads when there last were any.
    gathers: bool,
    /// Whether something was gathered since the flusher last looked.
    is_due: bool,
    /// Whether the stream takes no more for now.
    is_blocked: bool,
    /// Why nothing can be written any more.
    failure: Option<io::ErrorKind>,
    /// The writer is dropped.
    is_dropped: bool,
    /// The flusher's, from its first look on.
    flusher: Option<Waker>,
    /// The writer's, while it waits for the flusher.
    writer: Option<Waker>,
}

/// The same stream, and the flusher to run beside it.
pub(super) fn gathered<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> (Gathered<S>, Flusher<S>) {
    let state = Arc::new(Mutex::new(State {
        stream,
        unsent: BytesMut::new(),
        writes: 0,
        gathers: false,
        is_due: false,
        is_blocked: false,
        failure: None,
        is_dropped: false,
        flusher: None,
        writer: None,
    }));
    (Gathered(Arc::clone(&state)), Flusher(state))
}

fn lock<S>(state: &Mutex<State<S>>) -> MutexGuard<'_, State<S>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncRead + AsyncWrite + Unpin> State<S> {
    /// Writes to the stream, in a way that the flusher is woken if that has to wait, and notes what came of it.
    fn try_on_stream<T>(
        &mut self,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        // Before its first look nobody would be woken.
        let Some(flusher) = self.flusher.take() else { return Poll::Pending };
        let written = write(Pin::new(&mut self.stream), &mut Context::from_waker(&flusher));
        self.flusher = Some(flusher);
        self.is_blocked = written.is_pending();
        if let Poll::Ready(Err(error)) = &written {
            self.failure = Some(error.kind());
        }
        written
    }

    /// Sends the gathered bytes, and those that the stream itself keeps.
    fn send(&mut self) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let mut unsent = std::mem::take(&mut self.unsent);
            let written = self.try_on_stream(|stream, cx| match stream.poll_write(cx, &unsent) {
                Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                other => other,
            });
            if let Poll::Ready(Ok(count)) = written {
                unsent.advance(count);
            }
            if !unsent.is_empty() {
                self.unsent = unsent;
            }
            ready!(written)?;
        }
        self.try_on_stream(|stream, cx| stream.poll_flush(cx))
    }

    /// Returns the result of `write`. If it has to wait, the flusher wakes the caller's task.
    fn for_writer<T>(
        &mut self,
        cx: &Context<'_>,
        write: impl FnOnce(&mut Self) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Some(failure) = self.failure {
            return Poll::Ready(Err(failure.into()));
        }
        let written = write(self);
        if written.is_pending() && !self.writer.as_ref().is_some_and(|writer| writer.will_wake(cx.waker())) {
            self.writer = Some(cx.waker().clone());
        }
        written
    }

    /// Has the flusher look once the task that runs now waits.
    fn call_flusher(&mut self) {
        if !std::mem::replace(&mut self.is_due, true)
            && let Some(flusher) = &self.flusher
        {
            flusher.wake_by_ref();
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes += 1;
        if self.writes == 1 && !self.gathers && self.unsent.is_empty() && self.flusher.is_some() {
            return self.try_on_stream(|stream, cx| stream.poll_write(cx, bytes));
        }
        if self.unsent.len() + bytes.len() > FULL {
            ready!(self.send())?;
            if bytes.len() > FULL {
                let written = ready!(self.try_on_stream(|stream, cx| stream.poll_write(cx, bytes)))?;
                self.call_flusher();
                return Poll::Ready(Ok(written));
            }
        }
        self.unsent.extend_from_slice(bytes);
        self.call_flusher();
        Poll::Ready(Ok(bytes.len()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        if state.writes > 0 {
            state.gathers = std::mem::take(&mut state.writes) > 1;
        }
        if !state.unsent.is_empty() && !state.is_blocked && state.failure.is_none() {
            // A failure is kept for the next write. Reading goes on: there may be input yet.
            let _ = state.send();
        }
        Pin::new(&mut state.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).for_writer(cx, |state| state.write(bytes))
    }

    /// Ready unless the stream takes no more: the gathered bytes are sent at the latest when the caller waits.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let send = |state: &mut State<S>| {
            if state.is_due && !state.is_blocked {
                return Poll::Ready(Ok(()));
            }
            state.send()
        };
        lock(&self.0).for_writer(cx, send)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).for_writer(cx, |state| {
            ready!(state.send())?;
            state.try_on_stream(|stream, cx| stream.poll_shutdown(cx))
        })
    }
}

impl<S> Drop for Gathered<S> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.is_dropped = true;
        if let Some(flusher) = &state.flusher {
            flusher.wake_by_ref();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Flusher<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if !state.flusher.as_ref().is_some_and(|flusher| flusher.will_wake(cx.waker())) {
            state.flusher = Some(cx.waker().clone());
        }
        state.is_due = false;
        let sent = if state.failure.is_some() { Poll::Ready(Ok(())) } else { state.send() };
        if sent.is_ready()
            && let Some(writer) = state.writer.take()
        {
            writer.wake();
        }
        if state.is_dropped { sent.map(drop) } else { Poll::Pending }
    }
}

impl<S> Drop for Flusher<S> {
    /// Its worker ends before the stream does.
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.failure.get_or_insert(io::ErrorKind::ConnectionAborted);
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::task::Wake;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::yield_now;

    use super::*;

    /// The receiver of a test's stream: the bytes it got, and how many more it takes.
    #[derive(Default)]
    struct Peer {
        got: Vec<u8>,
        writes: usize,
        is_shut: bool,
        is_closed: bool,
        /// Bytes that it takes until it is asked again.
        room: usize,
        fails: bool,
        /// Of who waits until it takes more.
        writing: Option<Waker>,
    }

    /// A stream that never has input.
    struct Stream(Rc<RefCell<Peer>>);

    impl AsyncRead for Stream {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Stream {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let peer = &mut *self.0.borrow_mut();
            assert!(!peer.is_shut, "written behind the end");
            if peer.fails {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let count = bytes.len().min(peer.room);
            if count == 0 {
                peer.writing = Some(cx.waker().clone());
                return Poll::Pending;
            }
            peer.room -= count;
            peer.writes += 1;
            peer.got.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.borrow_mut().is_shut = true;
            Poll::Ready(Ok(()))
        }
    }

    impl Drop for Stream {
        fn drop(&mut self) {
            self.0.borrow_mut().is_closed = true;
        }
    }

    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }

    /// Polls two tasks whenever they are woken; when none is, `idle` makes something happen, until it says that nothing will.
    fn run(writer: impl Future<Output = ()>, flusher: impl Future<Output = ()>, mut idle: impl FnMut() -> bool) {
        let (mut writer, mut flusher) = (pin!(writer), pin!(flusher));
        let flags = [(); 2].map(|()| Arc::new(Flag(AtomicBool::new(true))));
        let wakers = flags.each_ref().map(|flag| Waker::from(Arc::clone(flag)));
        let mut over = [false; 2];
        let mut polls = 0;
        while over != [true; 2] {
            let mut was_idle = true;
            for task in 0..2 {
                if over[task] || !flags[task].0.swap(false, Relaxed) {
                    continue;
                }
                was_idle = false;
                polls += 1;
                let cx = &mut Context::from_waker(&wakers[task]);
                over[task] = if task == 0 { writer.as_mut().poll(cx) } else { flusher.as_mut().poll(cx) }.is_ready();
            }
            assert!(!was_idle || idle(), "writer, flusher at their end: {over:?}; nothing wakes who is not");
            assert!(polls < 1_000_000, "they wake each other for ever");
        }
    }

    fn stream(room: usize) -> (Stream, Rc<RefCell<Peer>>) {
        let peer = Rc::new(RefCell::new(Peer { room, ..Peer::default() }));
        (Stream(Rc::clone(&peer)), peer)
    }

    #[test]
    fn writes_of_a_turn_are_sent_together() {
        let (stream, peer) = stream(usize::MAX);
        let (mut both, flusher) = gathered(stream);
        let writer = async {
            for round in 1..=3 {
                for _ in 0..16 {
                    both.write_all(b"a message").await.unwrap();
                    both.flush().await.unwrap();
                }
                assert_eq!(peer.borrow().writes, round - 1);
                yield_now().await;
                assert_eq!((peer.borrow().writes, peer.borrow().got.len()), (round, round * 16 * 9));
            }
            drop(both);
        };
        run(writer, flusher, || false);
        assert!(peer.borrow().is_closed);
    }

    /// Asks for what never comes.
    async fn read(stream: &mut Gathered<Stream>) {
        let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut ReadBuf::new(&mut []))));
        assert!(read.await.is_pending());
    }

    #[test]
    fn one_write_between_two_reads_is_not_gathered() {
        let (stream, peer) = stream(usize::MAX);
        let (mut both, flusher) = gathered(stream);
        let writer = async {
            // The flusher has looked once.
            yield_now().await;
            // Writes between two reads, and how often something was sent then: before the read, and by it.
            for (writes, [before, behind]) in
                [(1, [1, 0]), (1, [1, 0]), (3, [1, 1]), (3, [0, 1]), (1, [0, 1]), (1, [1, 0])]
            {
                let sent = peer.borrow().writes;
                for _ in 0..writes {
                    both.write_all(b"a message").await.unwrap();
                    both.flush().await.unwrap();
                }
                let found = peer.borrow().writes - sent;
                assert_eq!((found, lock(&both.0).is_due), (before, writes > before), "{writes}");
                // As somebody does who is woken.
                read(&mut both).await;
                read(&mut both).await;
                assert_eq!(peer.borrow().writes - sent, before + behind, "{writes}");
                yield_now().await;
            }
            drop(both);
        };
        run(writer, flusher, || false);
        assert_eq!(peer.borrow().got.len(), 10 * "a message".len());
    }

    #[test]
    fn gathered_writes_are_sent_before_the_next_read() {
        let (stream, peer) = stream(usize::MAX);
        let (mut both, flusher) = gathered(stream);
        let writer = async {
            // The flusher has looked once.
            yield_now().await;
            both.write_all(b"question").await.unwrap();
            both.write_all(b"s").await.unwrap();
            read(&mut both).await;
            assert_eq!(peer.borrow().got, b"questions");
            drop(both);
        };
        run(writer, flusher, || false);
    }

    #[test]
    fn writers_see_backpressure_and_write_errors() {
        let (stream, peer) = stream(0);
        let (mut both, flusher) = gathered(stream);
        let writer = async {
            yield_now().await;
            both.write_all(&[1; FULL]).await.unwrap();
            // The first flush is before anybody has tried.
            both.flush().await.unwrap();
            yield_now().await;
            assert!(both.write_all(&[2; 10]).await.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
            assert!(both.flush().await.is_err());
            assert!(both.shutdown().await.is_err());
            drop(both);
        };
        let mut looks = 0;
        let idle = || {
            looks += 1;
            let peer = &mut *peer.borrow_mut();
            peer.fails = true;
            peer.writing.take().map(Waker::wake).is_some()
        };
        run(writer, flusher, idle);
        assert_eq!(looks, 1);
    }

    /// Seeded: writes of any size, flushes at any time, and a stream that takes any number of bytes at a time. All
    /// bytes come, in order, and all tasks come to the end.
    #[test]
    fn bytes_arrive_in_order_despite_partial_writes() {
        for seed in 1..=2_000_u64 {
            let state = RefCell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            let draw = |below: u64| {
                let mut bits = state.borrow_mut();
                *bits ^= *bits << 13;
                *bits ^= *bits >> 7;
                *bits ^= *bits << 17;
                (*bits % below) as usize
            };
            let (stream, peer) = stream(draw(100_000));
            let (mut both, flusher) = gathered(stream);
            let mut expected = Vec::new();
            let writer = async {
                for number in 0..draw(40) {
                    let size = [1, 100, 5_000, FULL - 1, FULL, FULL + 1, 50_000][draw(7)];
                    let bytes = vec![number as u8; size];
                    both.write_all(&bytes).await.unwrap();
                    expected.extend(bytes);
                    match draw(4) {
                        0 => both.flush().await.unwrap(),
                        1 => yield_now().await,
                        2 => {
                            let mut read = [0; 8];
                            let mut read = pin!(both.read(&mut read));
                            assert!(poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await.is_pending());
                        }
                        _ => {}
                    }
                }
                if draw(2) == 0 {
                    both.shutdown().await.unwrap();
                    assert_eq!(peer.borrow().got.len(), expected.len(), "seed {seed}: shut down before all was sent");
                }
                drop(both);
            };
            let idle = || {
                let peer = &mut *peer.borrow_mut();
                peer.room = 1 + draw(60_000);
                peer.writing.take().map(Waker::wake).is_some()
            };
            run(writer, flusher, idle);
            let peer = peer.borrow();
            assert!(peer.got == expected && peer.is_closed, "seed {seed}");
        }
    }
}
