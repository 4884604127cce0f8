//! A request's body on its way from the connection to the handler, which may be on another thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use http2::Reason;
use tonic::{Code, Status};

use crate::tuning::RELEASE;

/// A request's body that comes piece by piece. What is in it is bounded by the stream's window.
#[derive(Debug)]
pub(super) struct Pipe {
    state: Mutex<State>,
    releases: Arc<Releases>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    end: Option<End>,
    waker: Option<Waker>,
    /// Bytes that were taken, of which the connection does not know yet.
    released: usize,
    /// Whether the handler has let go of the body.
    is_abandoned: bool,
    /// Whether the call is over: the connection has got back what its stream had.
    is_detached: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Whole,
    Reset(Reason),
    Lost,
}

/// What the handlers of a connection have taken of bodies, before it knows.
#[derive(Debug, Default)]
pub(super) struct Releases {
    bytes: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Releases {
    /// Who is woken when it is time to look.
    pub(super) fn watch(&self, waker: &Waker) {
        let mut known = unpoisoned(&self.waker);
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes, Relaxed);
        if before < RELEASE && before + bytes >= RELEASE {
            let waker = unpoisoned(&self.waker).clone();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether so much was taken that the client should be told.
    pub(super) fn are_due(&self) -> bool {
        self.bytes.load(Relaxed) >= RELEASE
    }

    pub(super) fn took(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    pub(super) fn new(releases: &Arc<Releases>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), releases: Arc::clone(releases) })
    }

    /// The handler's end.
    pub(super) fn reader(self: &Arc<Self>) -> Reader {
        Reader(Arc::clone(self))
    }

    /// One piece more; nobody will take it if the handler has let go of the body.
    pub(super) fn push(&self, piece: Bytes) {
        self.change(|state| {
            if state.is_abandoned {
                self.release(state, piece.len());
            } else {
                state.pieces.push_back(piece);
            }
        });
    }

    /// The request is complete.
    pub(super) fn finish(&self, trailers: Option<HeaderMap>) {
        self.change(|state| (state.trailers, state.end) = (trailers, Some(End::Whole)));
    }

    /// The client has given up.
    pub(super) fn reset(&self, reason: Reason) {
        self.change(|state| state.end = state.end.or(Some(End::Reset(reason))));
    }

    /// The call is over; who still reads is told so. Gives the bytes that were taken.
    pub(super) fn detach(&self) -> usize {
        let mut released = 0;
        self.change(|state| {
            state.is_detached = true;
            state.end = state.end.or(Some(End::Lost));
            released = std::mem::take(&mut state.released);
        });
        released
    }

    fn release(&self, state: &mut State, bytes: usize) {
        if !state.is_detached {
            state.released += bytes;
            self.releases.add(bytes);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = unpoisoned(&self.state);
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Bytes that were taken since this was asked.
    pub(super) fn take_released(&self) -> usize {
        std::mem::take(&mut unpoisoned(&self.state).released)
    }
}

/// The handler's end of a body.
#[derive(Debug)]
pub(super) struct Reader(Arc<Pipe>);

impl Reader {
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut state = unpoisoned(&self.0.state);
        if let Some(piece) = state.pieces.pop_front() {
            // The client may send as much again: what tonic holds of a call is one message, whose size it limits.
            self.0.release(&mut state, piece.len());
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.end {
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(End::Whole) => Poll::Ready(state.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
            // A client that wants no answer any more ends its request this way.
            Some(End::Reset(Reason::NO_ERROR)) => Poll::Ready(None),
            Some(End::Reset(reason)) => Poll::Ready(Some(Err(status_of(reason)))),
            Some(End::Lost) => Poll::Ready(Some(Err(Status::cancelled("the call is over")))),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let state = unpoisoned(&self.0.state);
        state.pieces.is_empty() && state.trailers.is_none() && matches!(state.end, Some(End::Whole))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = unpoisoned(&self.0.state);
        state.is_abandoned = true;
        let left: usize = state.pieces.drain(..).map(|piece| piece.len()).sum();
        self.0.release(&mut state, left);
    }
}

/// How gRPC reads HTTP/2's codes (gRPC over HTTP/2, "Errors").
fn status_of(reason: Reason) -> Status {
    let code = match reason {
        Reason::REFUSED_STREAM => Code::Unavailable,
        Reason::CANCEL => Code::Cancelled,
        Reason::ENHANCE_YOUR_CALM => Code::ResourceExhausted,
        Reason::INADEQUATE_SECURITY => Code::PermissionDenied,
        _ => Code::Internal,
    };
    Status::new(code, format!("the client has ended its request: {reason}"))
}
