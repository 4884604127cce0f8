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

use bytes::Bytes;
use http_body::Body as _;

use super::model::take_events;
use super::{Answers, Buffers, Ended, Incoming, Link, Requests, Shared, TURN_TASKS};
use crate::frame::{self, END_HEADERS, END_STREAM, HEAD, Head, Kind};
use crate::hpack::{Encoder, Field};
use crate::{Config, Connection, Error, PREFACE, Reason};

/// Tasks that were woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A socket that counts what is written at once, and the bytes that are read.
struct Socket {
    stream: DuplexStream,
    writes: Rc<Cell<usize>>,
    bytes: Rc<Cell<usize>>,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let filled = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.bytes.update(|count| count + buf.filled().len() - filled);
        polled
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
    /// The paths of those that have begun, and their bodies, which nobody reads.
    begun: Vec<String>,
    bodies: Vec<Incoming>,
    tasks: Arc<Woken>,
    /// How often it has let others go on.
    ended_turns: usize,
}

impl Answers for Waiting {
    fn take(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        take_events(&self.shared, &self.buffers, &mut self.requests, input)
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
            self.bodies.push(request.into_body());
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
    bytes: Rc<Cell<usize>>,
    /// The connection's task.
    woken: Arc<Woken>,
}

impl Bench {
    async fn open() -> Self {
        Self::reading(64 * 1024).await
    }

    /// One of which so many bytes are read at once.
    async fn reading(size: usize) -> Self {
        let (mut client, stream) = duplex(64 * 1024);
        let (writes, bytes) = (Rc::default(), Rc::default());
        let server = Socket { stream, writes: Rc::clone(&writes), bytes: Rc::clone(&bytes) };
        let link = Link::new(Connection::new(&Config::default(), Instant::now()), server, Vec::new());
        let answers = Waiting {
            shared: Rc::clone(link.shared()),
            buffers: Rc::new(Buffers::new(size)),
            requests: Requests::default(),
            begun: Vec::new(),
            bodies: Vec::new(),
            tasks: Arc::default(),
            ended_turns: 0,
        };
        let mut opening = PREFACE.to_vec();
        frame::put(&mut opening, Kind::Settings, 0, 0, &[]);
        client.write_all(&opening).await.unwrap();
        Self { client, link, answers, sent: 0, writes, bytes, woken: Arc::default() }
    }

    /// So many requests, whose paths are their numbers.
    async fn request(&mut self, count: u32) {
        let frames: Vec<u8> = (self.sent..self.sent + count).flat_map(|number| head(number, END_STREAM)).collect();
        self.sent += count;
        self.client.write_all(&frames).await.unwrap();
    }

    /// Sends what is more than is read at once, in as many turns as it takes.
    async fn send(&mut self, frames: &[u8]) {
        for piece in frames.chunks(4096) {
            self.client.write_all(piece).await.unwrap();
            self.turn();
        }
    }

    /// Reads all that a body holds now; returns the number of its bytes.
    fn read(&mut self, body: usize) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        let mut count = 0;
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut self.answers.bodies[body]).poll_frame(&mut cx) {
            count += frame.data_ref().map_or(0, Bytes::len);
        }
        count
    }

    /// Bytes that the client may send more on a stream, by the window updates that have arrived.
    async fn windows(&mut self, stream: u32) -> u32 {
        let mut read = Vec::with_capacity(64 * 1024);
        self.client.read_buf(&mut read).await.unwrap();
        let (mut rest, mut sum) = (&read[..], 0);
        while let Some((head, behind)) = rest.split_first_chunk::<HEAD>() {
            let head = Head::parse(head);
            if head.kind == Kind::WindowUpdate && head.stream == stream {
                sum += u32::from_be_bytes(behind[..4].try_into().unwrap());
            }
            rest = &behind[head.length..];
        }
        sum
    }

    /// A turn; how many requests have begun by then, and how many turns have ended before all was done.
    fn turn(&mut self) -> (usize, usize) {
        let buffers = Rc::clone(&self.answers.buffers);
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut cx = Context::from_waker(&waker);
        assert_eq!(self.link.poll(&mut cx, &buffers, &mut self.answers), Poll::Pending);
        assert!(buffers.arrivals().is_empty(), "they are another connection's now");
        (self.answers.begun.len(), self.answers.ended_turns)
    }
}

/// HEADERS of a request whose path is this number.
fn head(number: u32, flags: u8) -> Vec<u8> {
    let (mut block, mut out, path) = (Vec::new(), Vec::new(), format!("/{number}"));
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", &path), (":authority", "a")];
    let fields = fields.into_iter().map(|(name, value)| Field::once(name.as_bytes(), value.as_bytes()));
    Encoder::new().encode(fields, &mut block);
    frame::put(&mut out, Kind::Headers, END_HEADERS | flags, 1 + 2 * number, &block);
    out
}

/// DATA of so many bytes on the stream of this number.
fn data(number: u32, mut bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while bytes > 0 {
        let piece = bytes.min(16_384);
        frame::put(&mut out, Kind::Data, 0, 1 + 2 * number, &vec![b'x'; piece]);
        bytes -= piece;
    }
    out
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
        let Bench { client: _client, mut link, answers, .. } = bench;
        let mut closing = Box::pin(link.close(Ended::Lost, 0, |_| {}));
        let mut step = || closing.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(Result::unwrap);
        let woken = || answers.tasks.0.load(Relaxed);
        assert_eq!((step(), woken()), (Poll::Pending, 16));
        if !is_dropped {
            assert_eq!((step(), woken()), (Poll::Pending, 32));
            assert_eq!((step(), woken()), (Poll::Ready(()), 40));
        }
        drop(closing);
        drop(link);
        assert_eq!(woken(), 40);
    }
}

/// An upload is given up, and the next request has its slot before the handler has let go of the body.
#[tokio::test]
async fn an_upload_that_is_given_up_holds_up_no_other() {
    const WINDOW: usize = 65_535;
    for is_dropped in [false, true] {
        let mut bench = Bench::open().await;
        bench.turn();
        let upload = [head(0, 0), data(0, 32 * 1024)].concat();
        bench.send(&upload).await;
        let mut reset = Vec::new();
        frame::put(&mut reset, Kind::RstStream, 0, 1, &Reason::CANCEL.0.to_be_bytes());
        bench.send(&[reset, head(1, 0)].concat()).await;
        assert_eq!(bench.answers.begun, ["/0", "/1"]);
        if is_dropped {
            let next = bench.answers.bodies.pop().unwrap();
            bench.answers.bodies[0] = next;
        } else {
            assert_eq!(bench.read(0), 32 * 1024);
            bench.answers.bodies.swap_remove(0);
        }
        bench.windows(3).await;
        for round in 0..4 {
            bench.send(&data(1, WINDOW)).await;
            let woken = bench.woken.0.load(Relaxed);
            assert_eq!(bench.read(0), WINDOW);
            assert!(bench.woken.0.load(Relaxed) > woken, "nobody tells the client, round {round}");
            bench.turn();
            assert_eq!(bench.windows(3).await as usize, WINDOW, "round {round}");
        }
    }
}

/// A socket that is closed with something unread sends a reset, and takes back what it has not sent: so later input is
/// read to its end, or to a bound, unless the client floods.
#[tokio::test]
async fn closing_drains_input_up_to_a_bound() {
    for (ended, sent, is_read) in [
        (Ended::Whole, 5000, true),
        (Ended::Broken, 5000, true),
        (Ended::Whole, 20_000, false),
        (Ended::Flooded, 5000, false),
        (Ended::Lost, 5000, false),
    ] {
        let Bench { mut client, mut link, bytes, .. } = Bench::open().await;
        client.write_all(&vec![0; sent]).await.unwrap();
        client.shutdown().await.unwrap();
        link.close(ended, 10_000, |_| {}).await.unwrap();
        let (all, read) = (PREFACE.len() + HEAD + sent, bytes.get());
        assert_eq!(read == all, is_read, "{ended:?} {sent}: {read}");
        assert!(
            read <= 10_000 + 4096 && (read > 0 || !matches!(ended, Ended::Whole | Ended::Broken)),
            "{ended:?}: {read}"
        );
    }
}

/// A head that has begun and is not whole is told between turns: between its frames, and within one.
#[tokio::test]
async fn a_head_that_is_not_whole_is_told() {
    let mut bench = Bench::open().await;
    bench.turn();
    let check = async |bench: &mut Bench, bytes: &[u8], is_within| {
        bench.client.write_all(bytes).await.unwrap();
        bench.turn();
        assert_eq!(bench.link.is_within_head(), is_within, "{bytes:?}");
    };
    let whole = head(0, END_STREAM);
    check(&mut bench, &whole, false).await;
    let next = head(1, 0);
    check(&mut bench, &next[..3], false).await;
    check(&mut bench, &next[3..HEAD], true).await;
    check(&mut bench, &next[HEAD..next.len() - 1], true).await;
    check(&mut bench, &next[next.len() - 1..], false).await;
    // Data that is not whole is none of it.
    check(&mut bench, &data(1, 100)[..50], false).await;
    check(&mut bench, &data(1, 100)[50..], false).await;
    // The same head in two frames, and frames between them.
    let block = head(2, 0)[HEAD..].to_vec();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    frame::put(&mut first, Kind::Headers, END_STREAM, 5, &block[..2]);
    frame::put(&mut second, Kind::Continuation, END_HEADERS, 5, &block[2..]);
    check(&mut bench, &first, true).await;
    check(&mut bench, &second[..4], true).await;
    check(&mut bench, &second[4..], false).await;
    assert_eq!(bench.answers.begun, ["/0", "/1", "/2"]);
}
