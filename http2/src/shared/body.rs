//! A request's body on its way from the connection to the handler, which may be on another thread.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::reason::Reason;

/// Why a body ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The client has given up, or has broken the protocol.
    Reset(Reason),
    /// The stream was answered, or the connection is gone.
    Gone,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(reason) => write!(f, "the client has ended its request: {reason}"),
            Self::Gone => f.write_str("the request is over"),
        }
    }
}

impl std::error::Error for BodyError {}

/// The body of a request. It may be read on any thread.
#[derive(Debug)]
pub struct Incoming(Source);

#[derive(Debug)]
enum Source {
    /// It has come with its head, in one piece.
    Whole(Option<Bytes>),
    /// It comes piece by piece.
    Pieces(Reader),
}

impl Incoming {
    pub(super) fn whole(piece: Option<Bytes>) -> Self {
        Self(Source::Whole(piece))
    }

    pub(super) fn of(pipe: &Arc<Pipe>) -> Self {
        Self(Source::Pieces(Reader(Arc::clone(pipe))))
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Source::Whole(piece) => Poll::Ready(piece.take().map(|piece| Ok(Frame::data(piece)))),
            Source::Pieces(reader) => reader.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(piece) => piece.is_none(),
            Source::Pieces(reader) => reader.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(piece) => SizeHint::with_exact(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            Source::Pieces(reader) => reader.0.expected.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// A request's body that comes piece by piece. What is in it is bounded by the stream's window.
#[derive(Debug)]
pub(super) struct Pipe {
    state: Mutex<State>,
    releases: Arc<Releases>,
    /// What `content-length` says.
    expected: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// Small pieces behind those, as one. What a client sends has a bound in bytes, and a piece takes many times its byte.
    gathered: BytesMut,
    trailers: Option<HeaderMap>,
    end: Option<End>,
    waker: Option<Waker>,
    /// Bytes that were taken, of which the connection does not know yet.
    released: usize,
    /// Whether the handler has let go of the body.
    is_abandoned: bool,
    /// Whether the request is over: the connection has got back what its stream had.
    is_detached: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.gathered.is_empty()
    }

    fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        let is_gathered = piece.len() <= SMALL && !self.is_empty();
        if !self.gathered.is_empty() && (!is_gathered || self.gathered.len() + piece.len() > TOGETHER) {
            self.pieces.push_back(std::mem::take(&mut self.gathered).freeze());
        }
        if is_gathered {
            self.gathered.extend_from_slice(&piece);
        } else {
            self.pieces.push_back(piece);
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let gathered = &mut self.gathered;
        self.pieces.pop_front().or_else(|| (!gathered.is_empty()).then(|| std::mem::take(gathered).freeze()))
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    Whole,
    Reset(Reason),
    Gone,
}

/// What the handlers of a connection have taken of bodies, before it knows.
#[derive(Debug)]
pub(super) struct Releases {
    bytes: AtomicUsize,
    /// From so many on, the connection is told.
    due: usize,
    waker: Mutex<Option<Waker>>,
}

impl Releases {
    pub(super) fn new(due: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), due, waker: Mutex::default() }
    }

    /// Who is woken when it is time to look.
    pub(super) fn watch(&self, waker: &Waker) {
        let mut known = unpoisoned(&self.waker);
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes, Relaxed);
        if before < self.due && before + bytes >= self.due {
            let waker = unpoisoned(&self.waker).clone();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether so much was taken that the client should be told.
    pub(super) fn are_due(&self) -> bool {
        self.bytes.load(Relaxed) >= self.due
    }

    pub(super) fn took(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    pub(super) fn new(releases: &Arc<Releases>, expected: Option<u64>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), releases: Arc::clone(releases), expected })
    }

    /// One piece more; nobody will take it if the handler has let go of the body.
    pub(super) fn push(&self, piece: Bytes) {
        self.change(|state| {
            if state.is_abandoned {
                self.release(state, piece.len());
            } else {
                state.push(piece);
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

    /// The request is over; who still reads is told so. Gives the bytes that were taken.
    pub(super) fn detach(&self) -> usize {
        let mut released = 0;
        self.change(|state| {
            state.is_detached = true;
            state.end = state.end.or(Some(End::Gone));
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
struct Reader(Arc<Pipe>);

impl Reader {
    fn poll(&self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut state = unpoisoned(&self.0.state);
        if let Some(piece) = state.pop() {
            // The client may send as much again: what a handler holds of it is for the handler to limit.
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
            Some(End::Reset(reason)) => Poll::Ready(Some(Err(BodyError::Reset(reason)))),
            Some(End::Gone) => Poll::Ready(Some(Err(BodyError::Gone))),
        }
    }

    fn is_over(&self) -> bool {
        let state = unpoisoned(&self.0.state);
        state.is_empty() && state.trailers.is_none() && matches!(state.end, Some(End::Whole))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = unpoisoned(&self.0.state);
        state.is_abandoned = true;
        let left: usize = std::iter::from_fn(|| state.pop()).map(|piece| piece.len()).sum();
        self.0.release(&mut state, left);
    }
}

/// Bytes of a piece up to which it stands together with others: one that stays keeps all of them.
const SMALL: usize = 256;

/// Bytes of small pieces that stand together.
const TOGETHER: usize = 8 * 1024;

/// Where small pieces of bodies are kept, one behind the other: an allocation for many of them.
#[derive(Debug, Default)]
pub struct Pieces(BytesMut);

impl Pieces {
    /// A copy of what was read.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > SMALL {
            return Bytes::copy_from_slice(bytes);
        }
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(TOGETHER);
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_that_nobody_has_taken_yet_become_one() {
        let mut state = State::default();
        let mut sent = Vec::new();
        let mut push = |state: &mut State, sizes: &[usize]| {
            for size in sizes {
                let piece: Vec<u8> = (sent.len()..sent.len() + size).map(|at| at as u8).collect();
                sent.extend_from_slice(&piece);
                state.push(piece.into());
            }
        };
        let sizes = |state: &State| {
            let sizes: Vec<usize> = state.pieces.iter().map(Bytes::len).collect();
            (sizes, state.gathered.len())
        };
        push(&mut state, &[1, 0, 1, SMALL]);
        assert_eq!(sizes(&state), (vec![1], 1 + SMALL));
        push(&mut state, &[SMALL + 1, 1]);
        assert_eq!(sizes(&state), (vec![1, 1 + SMALL, SMALL + 1], 1));
        push(&mut state, &[1; 2 * TOGETHER]);
        assert_eq!(sizes(&state), (vec![1, 1 + SMALL, SMALL + 1, TOGETHER, TOGETHER], 1));
        let mut taken = Vec::new();
        while let Some(piece) = state.pop() {
            taken.extend_from_slice(&piece);
        }
        assert!(taken == sent && state.is_empty());
        state.push(Bytes::from_static(b"x"));
        assert_eq!(sizes(&state), (vec![1], 0));
    }
}
