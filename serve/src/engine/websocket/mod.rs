//! WebSockets, in the task of their connection: the driver runs the application, and sends after it what it has written, by one write.
//!
//! ```text
//! handshake (upgrade) ──101──► driver ──polls──► the application's future ──► socket ──► line (frames, bytes)
//!                                └── after each poll: flush, time-outs, shutdown, end ─────────┘
//! ```

mod handshake;
mod line;
mod socket;
mod upgrade;

use std::cell::Cell;
use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::BytesMut;
use server_runtime::{Pace, Place, Stream};
use tokio::io::AsyncWrite as _;

pub use handshake::Rejection;
pub use socket::WebSocket;
pub use upgrade::WebSocketUpgrade;
pub(super) use upgrade::{Accepted, Offered, Taken};

use self::line::{Line, Shared, lock};
use super::watch::{Phase, Slot};
use super::worker::{Drain, Worker};
use crate::tuning::{LINGER_BYTES, READ_BUFFER};
use crate::websocket::codec::Decoder;

/// Runs the application that has accepted a WebSocket, to the end of both.
pub(super) async fn serve(
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    mut stream: Stream,
    _place: Place,
    input: BytesMut,
    accepted: Accepted,
) {
    let Accepted { callback, limits, agreed, protocol, on_failure } = accepted;
    // The application may take its socket to a thread whose runtime ends before the connection does.
    if let Err(error) = stream.register() {
        tracing::warn!("a WebSocket cannot begin: {error}");
        return;
    }
    on_failure.disarm();
    let decoder = Decoder::new(limits, agreed.map(|agreed| agreed.inflater()));
    let line = Line::new(stream, input, decoder, agreed.map(|agreed| agreed.deflater()));
    let line: Shared = Arc::new(Mutex::new(line));
    let application = callback(WebSocket::new(Arc::clone(&line), protocol));
    slot.renew(Phase::Busy);
    let mut driver = Driver {
        worker,
        slot,
        line,
        application: Some(application),
        lingers: Cell::new(LINGER_BYTES),
        is_shut: Cell::default(),
        sent: Cell::default(),
        pace: Cell::default(),
    };
    poll_fn(|cx| driver.poll(cx)).await;
}

struct Driver {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    line: Shared,
    /// `None` once it has returned. Its socket may live on in another task.
    application: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Bytes that are read and thrown away at the end.
    lingers: Cell<usize>,
    /// The server's half of the connection has ended.
    is_shut: Cell<bool>,
    /// Bytes that were given to the stream.
    sent: Cell<u64>,
    pace: Cell<Pace>,
}

impl Driver {
    /// Ready when connection and application have ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.slot.wake_by(cx.waker());
        self.begin(cx);
        self.run(cx);
        let is_over = self.finish(cx);
        if is_over && self.application.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Lends the worker's buffers, and looks at time-outs and the shutdown.
    fn begin(&self, cx: &Context<'_>) {
        let mut line = lock(&self.line);
        if !line.driver.will_wake(cx.waker()) {
            line.driver = cx.waker().clone();
        }
        line.is_driven = true;
        let mut scratch = self.worker.scratch.borrow_mut();
        if line.input.capacity() == 0 {
            line.input = mem::take(&mut scratch.input);
        }
        if line.out.capacity() == 0 {
            line.out = mem::take(&mut scratch.out);
            // A connection that ended may have left its output.
            line.out.clear();
        }
        drop(scratch);
        if self.slot.is_expired() && line.stream.is_some() {
            let phase = self.slot.phase();
            if self.is_taking(&line, phase) {
                self.slot.renew(phase);
            } else if line.is_blocked || phase == Phase::Lingering {
                self.worker.stats().timeouts.add(1);
                line.end();
            } else {
                // Another task has written meanwhile, and the client has taken it.
                self.slot.renew(Phase::Busy);
            }
        }
        if self.worker.drain.get() == Drain::Closing && line.stream.is_some() {
            line.close(GOING_AWAY, "the server shuts down");
        }
    }

    /// Polls the application.
    fn run(&mut self, cx: &mut Context<'_>) {
        let Some(application) = &mut self.application else { return };
        match catch_unwind(AssertUnwindSafe(|| application.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(())) => {}
            Err(_) => {
                self.worker.stats().panics.add(1);
                tracing::error!("the handler of a WebSocket panicked");
                lock(&self.line).close(INTERNAL_ERROR, "the handler failed");
            }
        }
        // Its socket is dropped with it, which takes the lock.
        self.application = None;
    }

    /// Sends what was written, takes the worker's buffers back, and ends the connection if its socket was dropped. True if it is over.
    fn finish(&self, cx: &mut Context<'_>) -> bool {
        let mut line = lock(&self.line);
        let line = &mut *line;
        line.is_driven = false;
        // A failure is the line's end.
        let _ = line.flush();
        let (received, sent) = (mem::take(&mut line.received), mem::take(&mut line.sent));
        let is_over = line.is_dropped && self.linger(line, cx);
        if is_over || line.stream.is_none() {
            line.stream = None;
            self.slot.stay(Phase::Busy);
        } else {
            self.time(line, sent);
        }
        self.worker.stats().received.add(received);
        self.worker.stats().sent.add(sent);
        self.give_back(line);
        line.is_dropped && line.stream.is_none()
    }

    /// The time that the client has.
    fn time(&self, line: &Line, sent: u64) {
        self.sent.set(self.sent.get() + sent);
        if !line.is_blocked {
            // A close frame is answered by one, or by the end of the connection.
            self.slot.stay(if line.has_sent_close || line.is_dropped { Phase::Lingering } else { Phase::Busy });
        } else if self.slot.phase() != Phase::Writing {
            if let Some(stream) = &line.stream {
                let mut pace = self.pace.get();
                pace.begin(stream.progress(self.sent.get()), self.worker.watch.least(Phase::Writing));
                self.pace.set(pace);
            }
            self.slot.enter(Phase::Writing);
        }
    }

    /// Whether the client has taken enough since its time began; then the next time begins. A byte now and then is not enough.
    fn is_taking(&self, line: &Line, phase: Phase) -> bool {
        let Some(stream) = &line.stream else { return false };
        let now = stream.progress(self.sent.get());
        let may_be = match phase {
            Phase::Writing => line.is_blocked,
            // The close frame may be behind other bytes.
            Phase::Lingering => now.under_way > 0,
            Phase::Idle | Phase::Head | Phase::Body | Phase::Busy => false,
            // Those of HTTP/2.
            Phase::Free | Phase::Silent | Phase::Asked | Phase::Young | Phase::Old => false,
        };
        let mut pace = self.pace.get();
        let is_taking = may_be && pace.has_moved(now.received, self.worker.watch.least(phase));
        self.pace.set(pace);
        is_taking
    }

    /// Ends our half, and reads until the client ends its own: a socket that is closed with unread bytes drops what was not sent. True if
    /// the connection is over.
    fn linger(&self, line: &mut Line, cx: &mut Context<'_>) -> bool {
        if line.stream.is_some() && (line.unsent() > 0 || line.is_blocked) {
            return false;
        }
        let Some(stream) = &mut line.stream else { return true };
        let is_agreed = line.has_sent_close && line.has_received_close;
        if is_agreed && !stream.is_tls() {
            return true;
        }
        if !self.is_shut.get() {
            match Pin::new(stream).poll_shutdown(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(())) => self.is_shut.set(true),
                Poll::Ready(Err(_)) => return true,
            }
        }
        if is_agreed {
            return true;
        }
        loop {
            line.input.clear();
            match line.read(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(count @ 1..)) if count < self.lingers.get() => {
                    self.lingers.set(self.lingers.get() - count);
                }
                Poll::Ready(_) => return true,
            }
        }
    }

    /// A connection that waits holds no more than what it waits with.
    fn give_back(&self, line: &mut Line) {
        let mut scratch = self.worker.scratch.borrow_mut();
        if scratch.out.capacity() == 0 && line.out.is_empty() {
            scratch.out = mem::take(&mut line.out);
        }
        if scratch.input.capacity() > 0 || line.input.len() > READ_BUFFER / 4 {
            return;
        }
        let rest = if line.input.is_empty() { BytesMut::new() } else { BytesMut::from(&line.input[..]) };
        scratch.input = mem::replace(&mut line.input, rest);
        scratch.input.clear();
    }
}

/// The close code of a server that shuts down.
const GOING_AWAY: u16 = 1001;

/// The close code of a server whose handler has failed.
const INTERNAL_ERROR: u16 = 1011;
