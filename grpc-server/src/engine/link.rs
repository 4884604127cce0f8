//! The engine of a connection, as the connection's task and the tasks of its calls share it: all are on one thread.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use http::header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, StatusCode, response};
use http2::hpack::{Block, Field};
use http2::{Connection, Reason, SendError, StreamId};
use tonic::Status;

use super::pipe::{Pipe, Releases};

/// The usual answer's head.
static HEAD: LazyLock<Block> =
    LazyLock::new(|| Block::new([Field::new(b":status", b"200"), Field::new(b"content-type", GRPC)]));

/// The usual answer's end.
static TRAILERS: LazyLock<Block> = LazyLock::new(|| Block::new([Field::new(b"grpc-status", b"0")]));

const GRPC: &[u8] = b"application/grpc";

/// What a connection's task and its calls share.
pub(super) struct Link {
    pub(super) engine: RefCell<Connection>,
    /// By the streams' slots.
    calls: RefCell<Vec<Entry>>,
    pub(super) releases: Arc<Releases>,
    /// The connection's task.
    waker: RefCell<Option<Waker>>,
    /// Whether that task is running: it writes what there is when it is done.
    is_turning: Cell<bool>,
    is_over: Cell<bool>,
}

#[derive(Default)]
struct Entry {
    stream: Option<StreamId>,
    /// The call's task, which waits for room or for its end.
    waker: Option<Waker>,
    pipe: Option<Arc<Pipe>>,
}

impl Link {
    pub(super) fn new(engine: Connection) -> Self {
        Self {
            engine: RefCell::new(engine),
            calls: RefCell::default(),
            releases: Arc::default(),
            waker: RefCell::new(None),
            is_turning: Cell::new(false),
            is_over: Cell::new(false),
        }
    }

    /// The connection's task begins to run.
    pub(super) fn begin_turn(&self, cx: &Context<'_>) {
        self.is_turning.set(true);
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
            self.releases.watch(cx.waker());
        }
    }

    pub(super) fn end_turn(&self) {
        self.is_turning.set(false);
    }

    /// There is something to write.
    fn wake(&self) {
        if !self.is_turning.get()
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// The body of a stream comes through this pipe.
    pub(super) fn attach(&self, stream: StreamId, pipe: Arc<Pipe>) {
        self.with_entry(stream, |entry| entry.pipe = Some(pipe));
    }

    fn with_entry<T>(&self, stream: StreamId, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut calls = self.calls.borrow_mut();
        if calls.len() <= stream.slot() {
            calls.resize_with(stream.slot() + 1, Entry::default);
        }
        let entry = &mut calls[stream.slot()];
        if entry.stream != Some(stream) {
            *entry = Entry { stream: Some(stream), ..Entry::default() };
        }
        change(entry)
    }

    pub(super) fn pipe(&self, stream: StreamId) -> Option<Arc<Pipe>> {
        let calls = self.calls.borrow();
        calls.get(stream.slot()).filter(|entry| entry.stream == Some(stream)).and_then(|entry| entry.pipe.clone())
    }

    /// Something has happened to a stream: its call looks again.
    pub(super) fn notify(&self, stream: StreamId) {
        let mut calls = self.calls.borrow_mut();
        let entry = calls.get_mut(stream.slot()).filter(|entry| entry.stream == Some(stream));
        let waker = entry.and_then(|entry| entry.waker.take());
        drop(calls);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Tells the client what handlers have taken.
    pub(super) fn release(&self) {
        if !self.releases.are_due() {
            return;
        }
        let mut engine = self.engine.borrow_mut();
        for entry in &*self.calls.borrow() {
            if let (Some(stream), Some(pipe)) = (entry.stream, &entry.pipe) {
                let released = pipe.take_released();
                self.releases.took(released);
                engine.release(stream, released);
            }
        }
    }

    /// The connection is gone, and with it all its calls.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        self.engine.borrow_mut().close(Reason::NO_ERROR);
        let calls = std::mem::take(&mut *self.calls.borrow_mut());
        for entry in calls {
            if let Some(pipe) = &entry.pipe {
                pipe.detach();
            }
            entry.waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Ready when nobody waits for a call any more.
    pub(super) fn poll_gone(&self, stream: StreamId, cx: &Context<'_>) -> Poll<()> {
        if self.is_over.get() || !self.engine.borrow().is_alive(stream) {
            return Poll::Ready(());
        }
        self.wait(stream, cx);
        Poll::Pending
    }

    /// Whether more of the request may come.
    pub(super) fn is_receiving(&self, stream: StreamId) -> bool {
        !self.is_over.get() && self.engine.borrow().is_receiving(stream)
    }

    /// The call is woken when there is room for more of its answer, or when it is over.
    pub(super) fn wait(&self, stream: StreamId, cx: &Context<'_>) {
        self.with_entry(stream, |entry| match &mut entry.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => entry.waker = Some(cx.waker().clone()),
        });
    }

    pub(super) fn send_head(&self, stream: StreamId, head: &response::Parts, is_all: bool) -> Result<(), SendError> {
        self.wake();
        let mut engine = self.engine.borrow_mut();
        let is_usual = head.status == StatusCode::OK
            && head.headers.len() == 1
            && head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == GRPC);
        if is_usual {
            return engine.send_head_block(stream, &HEAD, is_all);
        }
        engine.send_head(stream, head.status.as_u16(), fields(&head.headers), is_all)
    }

    /// Sends as much of a piece as there is room for.
    pub(super) fn send_data(&self, stream: StreamId, piece: &[u8], end: bool) -> Result<usize, SendError> {
        self.wake();
        self.engine.borrow_mut().send_data(stream, piece, end)
    }

    pub(super) fn send_trailers(&self, stream: StreamId, trailers: &HeaderMap) -> Result<(), SendError> {
        self.wake();
        let mut engine = self.engine.borrow_mut();
        let is_usual =
            trailers.len() == 1 && trailers.get(Status::GRPC_STATUS).is_some_and(|status| status.as_bytes() == b"0");
        if is_usual {
            return engine.send_trailers_block(stream, &TRAILERS);
        }
        engine.send_trailers(stream, fields(trailers))
    }

    pub(super) fn reset(&self, stream: StreamId, reason: Reason) {
        self.wake();
        self.engine.borrow_mut().reset(stream, reason);
    }

    /// A call has ended. Who has not sent all of a request that is answered need not go on (RFC 9113 section 8.1).
    pub(super) fn leave(&self, stream: StreamId, is_answered: bool) {
        if self.is_over.get() {
            return;
        }
        if self.engine.borrow().is_alive(stream) {
            self.reset(stream, if is_answered { Reason::NO_ERROR } else { Reason::CANCEL });
        }
        let mut calls = self.calls.borrow_mut();
        if let Some(entry) = calls.get_mut(stream.slot()).filter(|entry| entry.stream == Some(stream)) {
            if let Some(pipe) = &entry.pipe {
                self.releases.took(pipe.detach());
            }
            *entry = Entry::default();
        }
    }
}

/// The fields of an answer that HTTP/2 has (RFC 9113 section 8.2.2).
fn fields(headers: &HeaderMap) -> impl Iterator<Item = Field<'_>> {
    let of_a_connection =
        |name: &http::HeaderName| *name == CONNECTION || *name == TRANSFER_ENCODING || *name == UPGRADE;
    headers.iter().filter(move |(name, _)| !of_a_connection(name)).map(|(name, value)| {
        let (name, text) = (name.as_str().as_bytes(), value.as_bytes());
        match name {
            _ if value.is_sensitive() => Field::secret(name, text),
            // What services say with each answer; all else would push it out of the table.
            b"content-type" | b"grpc-status" | b"grpc-encoding" | b"grpc-accept-encoding" => Field::new(name, text),
            _ => Field::once(name, text),
        }
    })
}
