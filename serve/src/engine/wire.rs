//! The bytes of a connection that another protocol has taken over: those that were read before, and the time for which
//! the client takes nothing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use server_runtime::{Pace, Place, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::options::Timeouts;

/// The bytes that were read, then the rest. Keeps the connection's place for as long as the stream lives.
pub(super) struct Wire {
    read: Bytes,
    stream: Stream,
    /// How long the client may take (nearly) nothing of what is written.
    patience: Duration,
    /// Bytes that were given to the stream.
    sent: u64,
    pace: Pace,
    /// Made when it takes nothing: most connections never have one.
    stalled: Option<Pin<Box<Sleep>>>,
    place: Place,
}

impl Wire {
    /// [`Stream::register`].
    pub(super) fn register(&mut self) -> io::Result<()> {
        self.stream.register()
    }

    pub(super) fn new(read: Bytes, stream: Stream, place: Place, patience: Duration) -> Self {
        Self { read, stream, patience, sent: 0, pace: Pace::default(), stalled: None, place }
    }

    /// The stream and its place. Everything that was read before has to be taken from it.
    pub(super) fn into_parts(self) -> (Stream, Place) {
        (self.stream, self.place)
    }

    /// Looks at what came of a write.
    fn wrote(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.stall(cx).map(Err);
        }
        self.stalled = None;
        if let Poll::Ready(Ok(count)) = written {
            self.sent += count as u64;
        }
        written
    }

    /// The client takes nothing; ready when it has not for too long. A client that took nothing before and takes
    /// nothing now has not read in between either, even if nothing was written meanwhile.
    fn stall(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Self { stream, patience, sent, pace, stalled, .. } = self;
        let least = Timeouts::least(*patience);
        let now = || stream.progress(*sent);
        let stalled = stalled.get_or_insert_with(|| {
            pace.begin(now(), least);
            Box::pin(sleep(*patience))
        });
        loop {
            ready!(stalled.as_mut().poll(cx));
            if !pace.has_moved(now().received, least) {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            stalled.as_mut().reset(Instant::now() + *patience);
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let count = self.read.len().min(buf.remaining());
        buf.put_slice(&self.read[..count]);
        self.read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Only TLS keeps something, which it writes here.
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Pending => self.stall(cx).map(Err),
            Poll::Ready(result) => {
                if self.stream.is_tls() {
                    self.stalled = None;
                }
                Poll::Ready(result)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => self.stall(cx).map(Err),
            Poll::Ready(result) => Poll::Ready(result),
        }
    }
}
