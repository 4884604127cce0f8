//! QUIC's connections and streams as h3 wants them, with a look at what goes by.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming, RecvStream as _, SendStream as _, StreamErrorIncoming, StreamId, WriteBuf,
};
use quinn::{ConnectionError, ReadError, StoppedError, VarInt, WriteError};

use super::aside::{Asides, CONTROL};
use super::bounds::{Budget, Fault, Resets, Sieve};
use super::congestion;
use crate::tuning::{H3_ASIDES, H3_RESETS};

pub(super) type Wait<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Pair = (quinn::SendStream, quinn::RecvStream);

/// Ready when a client does not want the answer on its stream any more, or is gone.
pub(super) type Gone = Wait<Result<Option<VarInt>, StoppedError>>;

/// Which requests are taken.
#[derive(Default)]
pub(super) struct Intake {
    /// Of the request that was taken last: for the task that answers it.
    gone: RefCell<Option<Gone>>,
    /// The id of the stream behind the last one that was taken.
    next: Cell<u64>,
    /// The id from which on none is taken any more.
    end: Cell<Option<u64>>,
}

impl Intake {
    pub(super) fn take_gone(&self) -> Option<Gone> {
        self.gone.take()
    }

    /// Accepts at most `more` further requests, and none if there was none yet. h3 names the first refused id in GOAWAY, but would accept
    /// the request of this id itself. The client sends that request again elsewhere (RFC 9114 section 5.2).
    pub(super) fn end_after(&self, more: u64) {
        let next = self.next.get();
        // Requests are every fourth stream (RFC 9000 section 2.1).
        self.end.set(Some(if next == 0 { 0 } else { next + 4 * more }));
    }

    fn takes(&self, id: u64) -> bool {
        let is_taken = self.end.get().is_none_or(|end| id < end);
        if is_taken {
            self.next.set(id + 4);
        }
        is_taken
    }
}

/// Bounds for all streams of a connection.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) conn: quinn::Connection,
    /// For requests, and for what is beside them.
    budget: Budget,
    asides: Budget,
    resets: Resets,
    /// Whether the client has sent more than one of them allows.
    is_flooded: AtomicBool,
    /// Bytes of a request's head as it is sent.
    head: u64,
    began: Instant,
}

impl Shared {
    pub(super) fn new(conn: quinn::Connection, head: u64, frames: u32) -> Arc<Self> {
        let resets = if frames == 0 { u64::MAX } else { frames.min(H3_RESETS).into() };
        Arc::new(Self {
            conn,
            budget: Budget::new(frames),
            asides: Budget::new(frames.min(H3_ASIDES)),
            resets: Resets::new(resets),
            is_flooded: AtomicBool::new(false),
            head,
            began: Instant::now(),
        })
    }

    /// A request begins. It justifies an empty DATA frame and one that means nothing, which clients send to keep servers
    /// tolerant (RFC 9114 section 7.2.8), and beside it a change of its priority (RFC 9218 section 7.2).
    pub(super) fn begin(&self) {
        self.resets.begin();
        self.budget.earn(2);
        self.asides.earn(1);
    }

    /// A request of this age is given up; if the client does that to most of them, the connection ends.
    pub(super) fn give_up(&self, age: Duration) {
        if !self.resets.give_up(age) {
            self.flood();
        }
    }

    /// Whether that much of what carries nothing is still allowed; if not, the connection ends.
    pub(super) fn spend(&self, cost: u32) -> bool {
        self.spend_of(&self.budget, cost)
    }

    /// The same of what is beside requests: a stream, or a frame or an instruction on one.
    pub(super) fn spend_aside(&self) -> bool {
        self.spend_of(&self.asides, 1)
    }

    fn spend_of(&self, budget: &Budget, cost: u32) -> bool {
        let is_fine = budget.spend(cost, self.began.elapsed().as_secs());
        if !is_fine {
            self.flood();
        }
        is_fine
    }

    fn flood(&self) {
        self.is_flooded.store(true, Relaxed);
        self.close(Code::H3_EXCESSIVE_LOAD, b"");
    }

    /// Ends the connection, and tells the client why, however full the way there is.
    pub(super) fn close(&self, error: Code, reason: &[u8]) {
        congestion::lift(&self.conn);
        self.conn.close(code(error.value()), reason);
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.is_flooded.load(Relaxed)
    }
}

pub(super) fn code(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

/// The streams of a connection, both ways.
pub(super) struct Wire {
    open: Opener,
    requests: Option<Wait<Result<Pair, ConnectionError>>>,
    asides: Asides,
    intake: Rc<Intake>,
}

impl Wire {
    pub(super) fn new(shared: Arc<Shared>, intake: Rc<Intake>) -> Self {
        Self { open: Opener { shared, pending: None }, requests: None, asides: Asides::default(), intake }
    }
}

impl quic::Connection<Bytes> for Wire {
    type RecvStream = Receiving;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Receiving, ConnectionErrorIncoming>> {
        let shared = &self.open.shared;
        let stream = ready!(self.asides.poll_control(shared, cx)).map_err(of_connection)?;
        let mut control = Receiving::new(stream, shared, Sieve::control());
        // h3 wants to see what it is.
        control.begun = Some(Bytes::from_static(&[CONTROL]));
        control.is_control = true;
        Poll::Ready(Ok(control))
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, ConnectionErrorIncoming>> {
        loop {
            let shared = &self.open.shared;
            let pending = self.requests.get_or_insert_with(|| {
                let conn = shared.conn.clone();
                Box::pin(async move { conn.accept_bi().await })
            });
            let accepted = ready!(pending.as_mut().poll(cx));
            self.requests = None;
            let (send, receive) = accepted.map_err(of_connection)?;
            let mut both = Both {
                send: Sending::new(send),
                receive: Receiving::new(receive, shared, Sieve::request(shared.head)),
            };
            if self.intake.takes(both.send.stream.id().into()) {
                self.intake.gone.replace(Some(Box::pin(both.send.stream.stopped())));
                return Poll::Ready(Ok(both));
            }
            shared.spend(1);
            both.send.reset(Code::H3_REQUEST_REJECTED.value());
            both.receive.stop_sending(Code::H3_REQUEST_REJECTED.value());
        }
    }

    fn opener(&self) -> Opener {
        Opener { shared: Arc::clone(&self.open.shared), pending: None }
    }
}

impl quic::OpenStreams<Bytes> for Wire {
    type BidiStream = Both;
    type SendStream = Sending;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        self.open.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Sending, StreamErrorIncoming>> {
        self.open.poll_open_send(cx)
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.open.close(error, reason);
    }
}

/// Opens streams towards the client: those of a server go one way.
pub(super) struct Opener {
    shared: Arc<Shared>,
    pending: Option<Wait<Result<quinn::SendStream, ConnectionError>>>,
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Both;
    type SendStream = Sending;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        Poll::Ready(Err(StreamErrorIncoming::Unknown("a server opens no requests".into())))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Sending, StreamErrorIncoming>> {
        let shared = &self.shared;
        let pending = self.pending.get_or_insert_with(|| {
            let conn = shared.conn.clone();
            Box::pin(async move { conn.open_uni().await })
        });
        let opened = ready!(pending.as_mut().poll(cx));
        self.pending = None;
        Poll::Ready(opened.map(Sending::new).map_err(lost))
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.shared.close(error, reason);
    }
}

/// A stream in both directions: a request and its answer.
pub(super) struct Both {
    send: Sending,
    receive: Receiving,
}

impl quic::BidiStream<Bytes> for Both {
    type SendStream = Sending;
    type RecvStream = Receiving;

    fn split(self) -> (Sending, Receiving) {
        (self.send, self.receive)
    }
}

impl quic::RecvStream for Both {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error: u64) {
        self.receive.stop_sending(error);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::SendStream<Bytes> for Both {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, error: u64) {
        self.send.reset(error);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// The client's half of a stream.
pub(super) struct Receiving {
    /// Bytes of it that were read already.
    begun: Option<Bytes>,
    is_control: bool,
    stream: quinn::RecvStream,
    shared: Arc<Shared>,
    /// Bytes that have come and are not looked at yet.
    piece: Bytes,
    sieve: Sieve,
    /// The client's breach, if there was one.
    fault: Option<Fault>,
    is_over: bool,
}

impl Receiving {
    fn new(stream: quinn::RecvStream, shared: &Arc<Shared>, sieve: Sieve) -> Self {
        Self {
            begun: None,
            is_control: false,
            stream,
            shared: Arc::clone(shared),
            piece: Bytes::new(),
            sieve,
            fault: None,
            is_over: false,
        }
    }

    /// The next bytes, if they have come; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Unread>> {
        loop {
            let spend = || if self.is_control { self.shared.spend_aside() } else { self.shared.spend(1) };
            if let Some(part) = self.sieve.next(&mut self.piece, spend)? {
                return Poll::Ready(Ok(Some(part)));
            }
            // quinn keeps whom to wake, not this future.
            let Some(chunk) = ready!(pin!(self.stream.read_chunk(usize::MAX, true)).poll(cx))? else {
                self.is_over = true;
                self.sieve.finish()?;
                return Poll::Ready(Ok(None));
            };
            self.piece = chunk.bytes;
        }
    }
}

/// Why nothing more is read of a stream.
enum Unread {
    Fault(Fault),
    Quic(ReadError),
}

impl From<Fault> for Unread {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ReadError> for Unread {
    fn from(error: ReadError) -> Self {
        Self::Quic(error)
    }
}

impl quic::RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if let Some(fault) = self.fault {
            return Poll::Ready(Err(StreamErrorIncoming::Unknown(fault.into())));
        }
        if let Some(begun) = self.begun.take() {
            return Poll::Ready(Ok(Some(begun)));
        }
        Poll::Ready(match ready!(self.poll_next(cx)) {
            Ok(part) => Ok(part),
            Err(Unread::Quic(error)) => Err(unread(error)),
            Err(Unread::Fault(fault)) => {
                self.fault = Some(fault);
                self.stop_sending(fault.code().value());
                if fault.ends_connection() {
                    self.shared.close(fault.code(), b"");
                }
                Err(StreamErrorIncoming::Unknown(fault.into()))
            }
        })
    }

    fn stop_sending(&mut self, error: u64) {
        self.is_over = true;
        // One that has ended already need not be stopped.
        let _ = self.stream.stop(code(error));
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if !self.is_over {
            // The answer needs no more of the request (RFC 9114 section 4.1).
            self.stop_sending(Code::H3_NO_ERROR.value());
        }
    }
}

/// The server's half of a stream.
pub(super) struct Sending {
    stream: quinn::SendStream,
    writing: Option<WriteBuf<Bytes>>,
    /// Whether something was sent, or it was said that nothing will be.
    has_begun: bool,
}

impl Sending {
    fn new(stream: quinn::SendStream) -> Self {
        Self { stream, writing: None, has_begun: false }
    }
}

impl quic::SendStream<Bytes> for Sending {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.writing.as_mut().filter(|data| data.has_remaining()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk())).map_err(unwritten)?;
            data.advance(written);
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::Unknown("what was sent before is not written yet".into()));
        }
        self.has_begun = true;
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(error.into())))
    }

    fn reset(&mut self, error: u64) {
        self.has_begun = true;
        // One that has ended already need not be.
        let _ = self.stream.reset(code(error));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.has_begun {
            // quinn would end it in good order: an answer without a head.
            self.reset(Code::H3_REQUEST_CANCELLED.value());
        }
    }
}

fn id(id: quinn::StreamId) -> StreamId {
    u64::from(id).try_into().expect("an id of QUIC is one")
}

fn of_connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error @ (ConnectionError::VersionMismatch
        | ConnectionError::Reset
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)) => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: of_connection(error) }
}

fn unread(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error) => StreamErrorIncoming::StreamTerminated { error_code: error.into_inner() },
        ReadError::ConnectionLost(error) => lost(error),
        error @ (ReadError::ClosedStream | ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected) => {
            StreamErrorIncoming::Unknown(error.into())
        }
    }
}

fn unwritten(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error) => StreamErrorIncoming::StreamTerminated { error_code: error.into_inner() },
        WriteError::ConnectionLost(error) => lost(error),
        error @ (WriteError::ClosedStream | WriteError::ZeroRttRejected) => StreamErrorIncoming::Unknown(error.into()),
    }
}
