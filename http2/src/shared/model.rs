//! A random client and random handlers on a whole [`Link`]. After each step every byte of the windows is accounted for:
//! bytes that the peer may send, bytes in pipes, bytes taken by handlers, and bytes given back but not announced yet
//! add up to the window.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use bytes::Bytes;
use http_body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Answers, Buffers, Incoming, Link, Requests, Shared};
use crate::frame::{self, END_HEADERS, END_STREAM, HEAD, Head, Kind};
use crate::{Config, Connection, Error, Event, PREFACE, Reason, StreamId};

/// Requests at one time: fewer than the client may begin.
const MAX_STREAMS: u32 = 4;

/// A stream's window: some frames of this client.
const WINDOW: u32 = 4000;

/// The least size of the connection's window.
const CONNECTION_WINDOW: u32 = 65_535;

/// Bytes that are read at once: more than the client's largest frame, as drivers have to.
const READ: usize = 6000;

/// Where decisions come from: a number below the one that is given.
pub type Choose<'a> = dyn FnMut(usize) -> usize + 'a;

/// Runs so many random steps.
///
/// # Panics
/// If a byte is lost, or the connection sleeps while it owes something.
pub fn run(steps: usize, choose: &mut Choose<'_>) {
    let mut model = Model::new();
    for _ in 0..steps {
        match choose(8) {
            0 | 1 => model.client.step(choose),
            2 => model.deliver(choose),
            3 => model.deliver_all(),
            _ => model.handle(choose),
        }
        model.turn();
    }
    model.deliver_all();
}

/// Both directions between the client and the server.
#[derive(Default)]
struct Wire {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

struct Socket(Rc<RefCell<Wire>>);

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let bytes = &mut self.0.borrow_mut().to_server;
        if bytes.is_empty() {
            return Poll::Pending;
        }
        let count = bytes.len().min(room.remaining());
        room.put_slice(&bytes[..count]);
        bytes.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().to_client.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The client's view: its windows, and its requests under way.
struct Client {
    next: u32,
    /// Windows of streams on which it may send.
    open: BTreeMap<u32, i64>,
    window: i64,
    /// Bytes that it has sent and the network has not delivered.
    sent: Vec<u8>,
}

impl Client {
    fn step(&mut self, choose: &mut Choose<'_>) {
        let open: Vec<u32> = self.open.keys().copied().collect();
        match choose(8) {
            0 | 1 => self.begin(choose(3) == 0),
            2 if !open.is_empty() => {
                let number = open[choose(open.len())];
                self.open.remove(&number);
                frame::put(&mut self.sent, Kind::RstStream, 0, number, &Reason::CANCEL.0.to_be_bytes());
            }
            _ if !open.is_empty() => self.send(open[choose(open.len())], choose),
            _ => self.begin(false),
        }
    }

    fn begin(&mut self, is_all: bool) {
        // `:method: POST`, `:scheme: http`, `:path: /`.
        let flags = if is_all { END_STREAM } else { 0 };
        frame::put(&mut self.sent, Kind::Headers, END_HEADERS | flags, self.next, &[0x83, 0x86, 0x84]);
        if !is_all {
            self.open.insert(self.next, i64::from(WINDOW));
        }
        self.next += 2;
    }

    fn send(&mut self, number: u32, choose: &mut Choose<'_>) {
        let window = self.open.get_mut(&number).expect("it was chosen of those");
        let most = (*window).min(self.window).max(0) as usize;
        let (size, is_last) = (choose(WINDOW as usize + 1).min(most), choose(6) == 0);
        (*window, self.window) = (*window - size as i64, self.window - size as i64);
        let flags = if is_last { END_STREAM } else { 0 };
        frame::put(&mut self.sent, Kind::Data, flags, number, &vec![b'x'; size]);
        if is_last {
            self.open.remove(&number);
        }
    }

    fn hear(&mut self, mut bytes: &[u8]) {
        while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
            let head = Head::parse(head);
            let (payload, rest) = rest.split_at(head.length);
            match head.kind {
                Kind::RstStream => drop(self.open.remove(&head.stream)),
                Kind::WindowUpdate => {
                    let more = i64::from(u32::from_be_bytes(payload.try_into().expect("four bytes")));
                    match self.open.get_mut(&head.stream) {
                        _ if head.stream == 0 => self.window += more,
                        Some(window) => *window += more,
                        None => {}
                    }
                }
                _ => assert_ne!(head.kind, Kind::GoAway, "{payload:?}"),
            }
            bytes = rest;
        }
    }
}

/// A task that is woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Takes requests; handlers have their bodies until they answer.
struct Handlers {
    shared: Rc<Shared>,
    buffers: Rc<Buffers>,
    requests: Requests,
    under_way: Vec<(StreamId, Option<Incoming>)>,
}

impl Answers for Handlers {
    fn take(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        take_events(&self.shared, &self.buffers, &mut self.requests, input)
    }

    fn forget(&mut self, error: Error) {
        panic!("{error}");
    }

    fn answer(&mut self, _: &mut Context<'_>) {
        loop {
            let next = self.buffers.arrivals().pop(&self.shared);
            let Some((stream, request)) = next else { return };
            self.under_way.push((stream, Some(request.into_body())));
        }
    }
}

/// Hands the events of `input` to the buffers: requests, their data and resets.
///
/// # Errors
/// The error that ends the connection.
pub(super) fn take_events(
    shared: &Shared,
    buffers: &Buffers,
    requests: &mut Requests,
    input: &mut &[u8],
) -> Result<(), Error> {
    let mut engine = shared.engine();
    while let Some(event) = engine.next(input, Instant::now())? {
        let mut arrivals = buffers.arrivals();
        match event {
            Event::Request { stream, head, end } => assert!(arrivals.request(requests, stream, head, end)),
            Event::Data { stream, data, end } => {
                let piece = Bytes::copy_from_slice(data);
                if arrivals.data(shared, stream, piece.clone(), end) {
                    engine.release(stream, piece.len());
                }
            }
            Event::Reset { stream, reason, .. } => arrivals.reset(shared, stream, reason),
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

struct Model {
    client: Client,
    wire: Rc<RefCell<Wire>>,
    link: Link<Socket>,
    handlers: Handlers,
    buffers: Rc<Buffers>,
    woken: Arc<Woken>,
}

impl Model {
    fn new() -> Self {
        let config = Config {
            max_streams: MAX_STREAMS,
            stream_window: WINDOW,
            connection_window: CONNECTION_WINDOW,
            max_control_frames: 0,
            ..Config::default()
        };
        let wire = Rc::new(RefCell::new(Wire::default()));
        let link = Link::new(Connection::new(&config, Instant::now()), Socket(Rc::clone(&wire)), Vec::new());
        let buffers = Rc::new(Buffers::new(READ));
        let handlers = Handlers {
            shared: Rc::clone(link.shared()),
            buffers: Rc::clone(&buffers),
            requests: Requests::default(),
            under_way: Vec::new(),
        };
        let mut sent = PREFACE.to_vec();
        frame::put(&mut sent, Kind::Settings, 0, 0, &[]);
        let client = Client { next: 1, open: BTreeMap::new(), window: CONNECTION_WINDOW.into(), sent };
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let mut model = Self { client, wire, link, handlers, buffers, woken };
        model.deliver_all();
        model
    }

    /// The network brings some of what was sent.
    fn deliver(&mut self, choose: &mut Choose<'_>) {
        let count = choose(self.client.sent.len() + 1);
        self.wire.borrow_mut().to_server.extend(self.client.sent.drain(..count));
        self.woken.0.store(true, Relaxed);
    }

    fn deliver_all(&mut self) {
        self.deliver(&mut |below| below - 1);
        self.turn();
        // Nothing is on its way now: both sides know the same of the connection's window.
        assert_eq!(self.client.window, self.link.shared().engine().receive_window);
    }

    /// A handler does something.
    fn handle(&mut self, choose: &mut Choose<'_>) {
        if self.handlers.under_way.is_empty() {
            return;
        }
        let at = choose(self.handlers.under_way.len());
        let (stream, body) = &mut self.handlers.under_way[at];
        match choose(6) {
            0 => *body = None,
            1 | 2 => {
                let (stream, body) = self.handlers.under_way.swap_remove(at);
                let shared = self.link.shared();
                let sent = shared.sending().send_head(stream, 200, std::iter::empty(), true);
                // The body may outlive the answer, and the other way round.
                let body = if choose(2) == 0 { body } else { None };
                shared.leave(stream, sent.is_ok());
                drop(body);
            }
            _ => {
                let (mut cx, _) = (Context::from_waker(Waker::noop()), *stream);
                for _ in 0..=choose(4) {
                    let Some(body) = body else { break };
                    let _ = Pin::new(body).poll_frame(&mut cx);
                }
            }
        }
    }

    /// Turns of the connection's task, for as long as it is woken; then everything is accounted for.
    fn turn(&mut self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        while self.woken.0.swap(false, Relaxed) {
            let polled = self.link.poll(&mut Context::from_waker(&waker), &self.buffers, &mut self.handlers);
            assert!(polled.is_pending());
        }
        let heard = std::mem::take(&mut self.wire.borrow_mut().to_client);
        self.client.hear(&heard);
        self.link.shared().check();
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    #[test]
    fn no_byte_of_a_window_is_lost() {
        for seed in 0..300 {
            let mut random = SmallRng::seed_from_u64(seed);
            super::run(400, &mut |below| random.random_range(0..below.max(1)));
        }
    }
}
