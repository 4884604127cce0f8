//! A request's body on its way from the connection to the handler that reads it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Frame, SizeHint};

use crate::h1::{Decoder, Framing};

/// Why a body ends early, as the handler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// More bytes than [`Limits::body`](crate::Limits::body).
    TooLarge,
    /// Its chunks are not well formed.
    Malformed,
    /// The client was too slow.
    TooSlow,
    /// The client went away.
    Gone,
}

impl BodyError {
    /// The answer that takes the place of the handler's; none if there is nobody to be told.
    pub(super) fn refusal(self) -> Option<(StatusCode, &'static str)> {
        match self {
            Self::TooLarge => Some((StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than allowed")),
            Self::Malformed => Some((StatusCode::BAD_REQUEST, "the chunked coding of the body is invalid")),
            Self::TooSlow => Some((StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
            Self::Gone => None,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.refusal().map_or("the client went away before the end of the body", |(_, reason)| reason))
    }
}

impl std::error::Error for BodyError {}

/// The limits of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Its largest size.
    pub(super) bytes: u64,
    /// Bytes that set the time-out back.
    pub(super) window: u64,
}

/// The connection's end.
pub(super) struct Upload {
    decoder: Decoder,
    shared: Arc<Mutex<Shared>>,
    received: u64,
    allowance: Allowance,
    /// Bytes since the time-out was last set back.
    window: u64,
    /// Bytes that are not data since somebody asked.
    overhead: usize,
    error: Option<BodyError>,
    /// Whether the client waits for `100 Continue`.
    pub(super) is_awaited: bool,
}

/// The handler's end. A mutex, because a body has to be `Send`; it is never contended.
pub(super) struct Incoming {
    shared: Arc<Mutex<Shared>>,
    left: Option<u64>,
}

#[derive(Default)]
struct Shared {
    piece: Option<Bytes>,
    ended: bool,
    error: Option<BodyError>,
    /// Whether the handler waits for a piece.
    wanted: bool,
    reader: Option<Waker>,
    connection: Option<Waker>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of [`Upload::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// The handler has something to look at.
    Ready,
    /// The handler does not ask for more.
    Unwanted,
    /// More bytes have to be read. `true` if the body comes fast enough for its time-out to start again.
    Hungry(bool),
}

impl Upload {
    pub(super) fn new(framing: Framing, allowance: Allowance, is_awaited: bool) -> (Self, Incoming) {
        let shared = Arc::<Mutex<Shared>>::default();
        let left = match framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        };
        let incoming = Incoming { shared: Arc::clone(&shared), left };
        let decoder = Decoder::new(framing);
        (Self { decoder, shared, received: 0, allowance, window: 0, overhead: 0, error: None, is_awaited }, incoming)
    }

    /// Whether the body was received to its end.
    pub(super) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// Whether somebody may read more of it.
    pub(super) fn is_read(&self) -> bool {
        Arc::strong_count(&self.shared) > 1 && !self.is_done() && self.error.is_none()
    }

    pub(super) fn error(&self) -> Option<BodyError> {
        self.error
    }

    /// Bytes of chunks' sizes and ends since this was asked.
    pub(super) fn take_overhead(&mut self) -> usize {
        std::mem::take(&mut self.overhead)
    }

    /// Passes on what was received, if the handler asks for it.
    pub(super) fn feed(&mut self, input: &mut BytesMut, waker: &Waker) -> Fed {
        {
            let mut shared = lock(&self.shared);
            let known = shared.connection.as_ref().is_some_and(|old| old.will_wake(waker));
            if !known {
                shared.connection = Some(waker.clone());
            }
            if !shared.wanted || self.error.is_some() {
                return Fed::Unwanted;
            }
        }
        match self.next(input) {
            Err(error) => self.fail(error),
            Ok(Some(piece)) => self.give(|shared| shared.piece = Some(piece)),
            Ok(None) if self.is_done() => self.give(|_| {}),
            Ok(None) => {
                let is_fast = self.window >= self.allowance.window;
                if is_fast {
                    self.window = 0;
                }
                return Fed::Hungry(is_fast);
            }
        }
        Fed::Ready
    }

    /// The next piece, wanted or not.
    fn next(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, BodyError> {
        let before = input.len();
        let piece = self.decoder.decode(input).map_err(|_| BodyError::Malformed)?;
        let count = piece.as_ref().map_or(0, Bytes::len);
        self.overhead += before - input.len() - count;
        let count = count as u64;
        self.received += count;
        self.window += count;
        if self.received > self.allowance.bytes { Err(BodyError::TooLarge) } else { Ok(piece) }
    }

    /// Throws away what is left of a body that is already here, so that the next request can be found behind it.
    pub(super) fn discard(&mut self, input: &mut BytesMut) {
        while self.error.is_none() {
            match self.next(input) {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => self.error = Some(error),
            }
        }
    }

    /// Tells the handler that the body ends here.
    pub(super) fn fail(&mut self, error: BodyError) {
        self.error = Some(error);
        self.give(|shared| shared.error = Some(error));
    }

    fn give(&self, change: impl FnOnce(&mut Shared)) {
        let mut shared = lock(&self.shared);
        change(&mut shared);
        shared.ended = self.is_done();
        shared.wanted = false;
        // A handler that the connection itself polls is polled next, or when its turn comes: woken, it would have another at once.
        let reader = shared.reader.take();
        let reader = reader.filter(|reader| !shared.connection.as_ref().is_some_and(|own| own.will_wake(reader)));
        drop(shared);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_done() && self.error.is_none() {
            self.fail(BodyError::Gone);
        }
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut shared = lock(&self.shared);
        if let Some(piece) = shared.piece.take() {
            drop(shared);
            self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(error) = shared.error {
            return Poll::Ready(Some(Err(error)));
        }
        if shared.ended {
            return Poll::Ready(None);
        }
        shared.wanted = true;
        shared.reader = Some(cx.waker().clone());
        // A handler that the connection itself polls needs no wake-up: the connection looks when it returns.
        let connection = shared.connection.as_ref().filter(|waker| !waker.will_wake(cx.waker())).cloned();
        drop(shared);
        if let Some(connection) = connection {
            connection.wake();
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let shared = lock(&self.shared);
        shared.ended && shared.piece.is_none() && shared.error.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    use http_body::Body as _;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn wakeups_happen_only_between_separate_tasks() {
        let (connection, other) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        for (reader, wakes) in [(&connection, [0, 0]), (&other, [2, 2])] {
            let (conn, read) = (Waker::from(Arc::clone(&connection)), Waker::from(Arc::clone(reader)));
            let allowance = Allowance { bytes: 100, window: 100 };
            let (mut upload, mut body) = Upload::new(Framing::Length(2), allowance, false);
            let mut cx = Context::from_waker(&read);
            assert_eq!(upload.feed(&mut BytesMut::new(), &conn), Fed::Unwanted);
            for byte in ["a", "b"] {
                assert!(Pin::new(&mut body).poll_frame(&mut cx).is_pending());
                assert_eq!(upload.feed(&mut byte.into(), &conn), Fed::Ready);
                let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else { panic!("no piece") };
                assert_eq!(frame.into_data().unwrap(), byte);
            }
            // Each side wakes the other: the handler when it asks, the connection when it gives.
            assert_eq!([&connection, &other].map(|woken| woken.0.swap(0, Relaxed)), wakes);
        }
    }
}
