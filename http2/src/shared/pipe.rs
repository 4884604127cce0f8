//! A request's body on its way from the connection to the handler, which may be on another thread, and the account of what the
//! handler has taken: so much the client may send again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::reason::Reason;

/// A request's body that comes piece by piece. The stream's window bounds its content.
#[derive(Debug)]
pub(super) struct Pipe {
    state: Mutex<State>,
    releases: Arc<Releases>,
    /// The value of `content-length`.
    expected: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// Small pieces behind those, as one. A client's input is bounded in bytes, and a piece of one byte would take
    /// many.
    gathered: BytesMut,
    trailers: Option<HeaderMap>,
    end: Option<End>,
    waker: Option<Waker>,
    /// Whether the client waits to be told to go on.
    expectation: Expectation,
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

/// Whether the client waits for a word before it sends the body: `Expect: 100-continue` (RFC 9110 section 10.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expectation {
    /// It does not, or was told.
    #[default]
    No,
    /// Until a handler looks at the body.
    Waits,
    /// A handler has looked: the connection is to tell it.
    Asked,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All of it has come.
    Whole,
    /// The client has given up, or has broken the protocol.
    Reset(Reason),
    /// The stream was answered, or the connection is gone.
    Gone,
}

/// The next item that a handler takes of a body.
#[derive(Debug)]
pub(super) enum Taken {
    Piece(Bytes),
    Trailers(HeaderMap),
    End(End),
}

/// Bytes that a connection's handlers have taken of bodies, before the connection knows.
#[derive(Debug)]
pub(super) struct Releases {
    /// The sum of `State::released` over all pipes that are not detached. It changes with them, under their locks.
    bytes: AtomicUsize,
    /// From so many on, the connection is told.
    due: usize,
    /// Whether the connection was told and has not looked since.
    is_told: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Releases {
    pub(super) fn new(due: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), due, is_told: AtomicBool::new(false), waker: Mutex::default() }
    }

    /// Sets the waker that is woken when it is time to look.
    pub(super) fn watch(&self, waker: &Waker) {
        let mut known = unpoisoned(&self.waker);
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    /// Counts what was taken of a pipe whose lock the caller holds.
    fn add(&self, bytes: usize) {
        let sum = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        if sum >= self.due {
            self.tell();
        }
    }

    /// Has the connection look at its pipes.
    fn tell(&self) {
        if !self.is_told.swap(true, Relaxed) {
            let waker = unpoisoned(&self.waker).clone();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether so much was taken that the client should be told, or the client waits to be told to go on. The caller
    /// then looks at every pipe that is not detached, by [`Pipe::take_released`]. A handler that meanwhile takes more
    /// of a pipe already looked at wakes the connection once more: the flag is cleared before the first look.
    pub(super) fn are_due(&self) -> bool {
        self.is_told.load(Relaxed) && self.is_told.swap(false, Relaxed)
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    pub(super) fn new(releases: &Arc<Releases>, expected: Option<u64>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), releases: Arc::clone(releases), expected })
    }

    /// The client waits to be told to go on.
    pub(super) fn expect(&self) {
        unpoisoned(&self.state).expectation = Expectation::Waits;
    }

    /// Whether the client is to be told to go on; once.
    pub(super) fn take_asked(&self) -> bool {
        let expectation = &mut unpoisoned(&self.state).expectation;
        let is_asked = *expectation == Expectation::Asked;
        if is_asked {
            *expectation = Expectation::No;
        }
        is_asked
    }

    /// One piece more; it is released at once if the handler has let go of the body.
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

    /// The stream is over, because the client has given up or has broken the protocol, and with it the account.
    pub(super) fn reset(&self, reason: Reason) {
        self.change(|state| {
            state.is_detached = true;
            state.end = state.end.or(Some(End::Reset(reason)));
            self.settle(state);
        });
    }

    /// The body ends with an error; its stream lives.
    pub(super) fn fail(&self, reason: Reason) {
        self.change(|state| state.end = state.end.or(Some(End::Reset(reason))));
    }

    /// The request is over, and with it the account: the connection has got back what its stream had. A handler that still
    /// reads is told so.
    pub(super) fn detach(&self) {
        self.change(|state| {
            state.is_detached = true;
            state.end = state.end.or(Some(End::Gone));
            self.settle(state);
        });
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
        self.settle(&mut unpoisoned(&self.state))
    }

    fn settle(&self, state: &mut State) -> usize {
        let released = std::mem::take(&mut state.released);
        self.releases.bytes.fetch_sub(released, Relaxed);
        released
    }

    /// Takes what comes next. Pieces come before the end, however it comes.
    pub(super) fn poll_take(&self, cx: &Context<'_>) -> Poll<Taken> {
        let mut state = unpoisoned(&self.state);
        if let Some(piece) = state.pop() {
            // The client may send as much again: the handler limits how much of it it holds.
            self.release(&mut state, piece.len());
            return Poll::Ready(Taken::Piece(piece));
        }
        let Some(end) = state.end else {
            state.waker = Some(cx.waker().clone());
            if state.expectation == Expectation::Waits {
                state.expectation = Expectation::Asked;
                self.releases.tell();
            }
            return Poll::Pending;
        };
        Poll::Ready(match state.trailers.take() {
            Some(trailers) if end == End::Whole => Taken::Trailers(trailers),
            _ => Taken::End(end),
        })
    }

    /// Whether nothing is left of a body that has come whole.
    pub(super) fn is_over(&self) -> bool {
        let state = unpoisoned(&self.state);
        state.is_empty() && state.trailers.is_none() && matches!(state.end, Some(End::Whole))
    }

    /// The handler lets go of the body: its content and later pieces count as taken.
    pub(super) fn abandon(&self) {
        let mut state = unpoisoned(&self.state);
        state.is_abandoned = true;
        let left: usize = std::iter::from_fn(|| state.pop()).map(|piece| piece.len()).sum();
        self.release(&mut state, left);
    }

    /// The value of `content-length`.
    pub(super) fn expected(&self) -> Option<u64> {
        self.expected
    }
}

#[cfg(any(test, feature = "model"))]
impl Pipe {
    /// Bytes that the handler has not taken, and bytes that were taken, of which the connection does not know.
    pub(super) fn held_and_released(&self) -> (usize, usize) {
        let state = unpoisoned(&self.state);
        (state.pieces.iter().map(Bytes::len).sum::<usize>() + state.gathered.len(), state.released)
    }
}

#[cfg(any(test, feature = "model"))]
impl Releases {
    /// Bytes of which the connection was not told; fewer than `due`.
    pub(super) fn check(&self) -> usize {
        let bytes = self.bytes.load(Relaxed);
        assert!(bytes < self.due && !self.is_told.load(Relaxed), "{self:?}");
        bytes
    }
}

/// Bytes of a piece up to which it stands together with others: one that stays keeps all of them.
pub(super) const SMALL: usize = 256;

/// Bytes of small pieces that stand together.
pub(super) const TOGETHER: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_unread_pieces_are_merged() {
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
