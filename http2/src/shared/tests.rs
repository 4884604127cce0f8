//! Turns of connections that have much to do.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex};

use super::{Answers, Buffers, Ended, Link, Requests, Shared, TURN_TASKS};
use crate::frame::{self, END_HEADERS, END_STREAM, Kind};
use crate::hpack::{Encoder, Field};
use crate::{Config, Connection, Error, Event, PREFACE};

/// Tasks that were woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A socket that counts what is written at once.
struct Socket {
    stream: DuplexStream,
    writes: Rc<Cell<usize>>,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes.update(|count| count + 1);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// All of its requests go on as tasks, which wait.
struct Waiting {
    shared: Rc<Shared>,
    buffers: Rc<Buffers>,
    requests: Requests,
    /// The paths of those that have begun.
    begun: Vec<String>,
    tasks: Arc<Woken>,
    /// How often it has let others go on.
    ended_turns: usize,
}

impl Answers for Waiting {
    fn take(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        let shared = Rc::clone(&self.shared);
        let mut engine = shared.engine();
        while let Some(event) = engine.next(input, Instant::now())? {
            if let Event::Request { stream, head, end } = event {
                assert!(self.buffers.arrivals().request(&mut self.requests, stream, head, end));
            }
        }
        Ok(())
    }

    fn forget(&mut self, error: Error) {
        panic!("{error}");
    }

    fn answer(&mut self, _: &mut Context<'_>) {
        for _ in 0..TURN_TASKS {
            let next = self.buffers.arrivals().pop(&self.shared);
            let Some((stream, request)) = next else { return };
            let waker = Waker::from(Arc::clone(&self.tasks));
            assert!(self.shared.poll_gone(stream, &Context::from_waker(&waker)).is_pending());
            self.begun.push(request.uri().path().to_owned());
        }
    }

    fn end_turn(&mut self, _: &mut Context<'_>) {
        self.ended_turns += 1;
    }
}

/// A connection and its client.
struct Bench {
    client: DuplexStream,
    link: Link<Socket>,
    answers: Waiting,
    sent: u32,
    writes: Rc<Cell<usize>>,
}

impl Bench {
    async fn open() -> Self {
        Self::reading(64 * 1024).await
    }

    /// One of which so many bytes are read at once.
    async fn reading(size: usize) -> Self {
        let (mut client, stream) = duplex(64 * 1024);
        let writes = Rc::default();
        let server = Socket { stream, writes: Rc::clone(&writes) };
        let link = Link::new(Connection::new(&Config::default(), Instant::now()), server, Vec::new());
        let answers = Waiting {
            shared: Rc::clone(link.shared()),
            buffers: Rc::new(Buffers::new(size)),
            requests: Requests::default(),
            begun: Vec::new(),
            tasks: Arc::default(),
            ended_turns: 0,
        };
        let mut opening = PREFACE.to_vec();
        frame::put(&mut opening, Kind::Settings, 0, 0, &[]);
        client.write_all(&opening).await.unwrap();
        Self { client, link, answers, sent: 0, writes }
    }

    /// So many requests, whose paths are their numbers.
    async fn request(&mut self, count: u32) {
        let mut frames = Vec::new();
        for number in self.sent..self.sent + count {
            let (mut block, path) = (Vec::new(), format!("/{number}"));
            let fields = [(":method", "GET"), (":scheme", "http"), (":path", &path), (":authority", "a")];
            let fields = fields.into_iter().map(|(name, value)| Field::once(name.as_bytes(), value.as_bytes()));
            Encoder::new().encode(fields, &mut block);
            frame::put(&mut frames, Kind::Headers, END_HEADERS | END_STREAM, 1 + 2 * number, &block);
        }
        self.sent += count;
        self.client.write_all(&frames).await.unwrap();
    }

    /// A turn; how many requests have begun by then, and how many turns have ended before all was done.
    fn turn(&mut self) -> (usize, usize) {
        let buffers = Rc::clone(&self.answers.buffers);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(self.link.poll(&mut cx, &buffers, &mut self.answers), Poll::Pending);
        assert!(buffers.arrivals().is_empty(), "they are another connection's now");
        (self.answers.begun.len(), self.answers.ended_turns)
    }
}

/// The client has spoken when its connection is first looked at, as a rule.
#[tokio::test]
async fn settings_leave_with_the_first_answers() {
    let mut bench = Bench::open().await;
    bench.turn();
    let mut read = Vec::with_capacity(1000);
    bench.client.read_buf(&mut read).await.unwrap();
    assert!(read.ends_with(&[0, 0, 0, 4, 1, 0, 0, 0, 0]), "the client's were taken: {read:?}");
    assert_eq!(bench.writes.get(), 1);
}

#[tokio::test]
async fn few_tasks_begin_in_a_turn() {
    let mut bench = Bench::open().await;
    bench.request(20).await;
    assert_eq!([bench.turn(), bench.turn(), bench.turn(), bench.turn()], [(8, 1), (16, 2), (20, 3), (20, 3)]);
    bench.request(8).await;
    assert_eq!([bench.turn(), bench.turn()], [(28, 3), (28, 3)]);
    assert!((0..28).map(|number| format!("/{number}")).eq(bench.answers.begun));
}

#[tokio::test]
async fn nothing_is_written_before_all_have_begun() {
    let mut bench = Bench::open().await;
    bench.turn();
    bench.client.read_buf(&mut Vec::with_capacity(1000)).await.unwrap();
    bench.request(20).await;
    let mut read = Vec::with_capacity(1000);
    for begun in [8, 16] {
        assert_eq!(bench.turn().0, begun);
        bench.link.shared().sending().ping(*b"waiting!");
        let reading = std::pin::pin!(bench.client.read_buf(&mut read));
        assert!(reading.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(bench.turn().0, 20);
    assert_eq!(bench.client.read_buf(&mut read).await.unwrap(), 2 * 17);
}

#[tokio::test]
async fn after_a_long_turn_others_have_theirs() {
    let mut bench = Bench::open().await;
    // Frames that mean nothing before a request; how many have begun by then, and how many turns have ended before all was done.
    for (length, expected) in [(4000_u16, (1, 0)), (5000, (2, 1))] {
        let [high, low] = length.to_be_bytes();
        let unknown = [&[0, high, low, 0xfa, 0, 0, 0, 0, 0][..], &vec![0; length.into()]].concat();
        bench.client.write_all(&unknown).await.unwrap();
        bench.request(1).await;
        assert_eq!([bench.turn(), bench.turn()], [expected; 2], "{length}");
    }
}

#[tokio::test]
async fn a_turn_of_long_frames_is_one_read() {
    let mut bench = Bench::reading(8 * 1024).await;
    bench.turn();
    let unknown = [&[0, 0x13, 0x88, 0xfa, 0, 0, 0, 0, 0][..], &[0; 5000]].concat();
    bench.client.write_all(&unknown.repeat(3)).await.unwrap();
    bench.request(1).await;
    assert_eq!([bench.turn(), bench.turn(), bench.turn()], [(0, 1), (0, 2), (1, 3)]);
}

#[tokio::test]
async fn tasks_hear_of_the_end_a_few_at_a_time() {
    for is_dropped in [false, true] {
        let mut bench = Bench::open().await;
        bench.request(40).await;
        assert_eq!((0..5).map(|_| bench.turn().0).last(), Some(40));
        let Bench { client: _client, link, answers, .. } = bench;
        let mut closing = Box::pin(link.close(Ended::Lost, 0, |_| {}));
        let mut step = || closing.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(Result::unwrap);
        let woken = || answers.tasks.0.load(Relaxed);
        assert_eq!((step(), woken()), (Poll::Pending, 16));
        if !is_dropped {
            assert_eq!((step(), woken()), (Poll::Pending, 32));
            assert_eq!((step(), woken()), (Poll::Ready(()), 40));
        }
        drop(closing);
        assert_eq!(woken(), 40);
    }
}
