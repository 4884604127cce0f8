//! The bytes of a connection, with what was read of them before, and metered.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use server_runtime::{Meter, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of a connection.
pub(super) struct Wire {
    stream: Stream,
    /// Read already, and read again.
    before: Bytes,
    meter: Option<Meter>,
    /// Set when the client has sent too much that is no call; from then on nothing is read.
    is_flooded: Rc<Cell<bool>>,
}

impl Wire {
    pub(super) fn new(stream: Stream, before: Bytes, meter: Option<Meter>, is_flooded: Rc<Cell<bool>>) -> Self {
        Self { stream, before, meter, is_flooded }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut Stream> {
        Pin::new(&mut self.get_mut().stream)
    }

    #[inline]
    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(meter), Poll::Ready(Ok(count))) = (&mut self.meter, written) {
            meter.wrote(*count);
        }
    }
}

impl AsyncRead for Wire {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_flooded.get() {
            return Poll::Pending;
        }
        let filled = buf.filled().len();
        if this.before.has_remaining() {
            let count = this.before.len().min(buf.remaining());
            buf.put_slice(&this.before.split_to(count));
        } else {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        }
        if let Some(meter) = &mut this.meter
            && !meter.read(&buf.filled()[filled..])
        {
            this.is_flooded.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.wrote(&written);
        written
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.wrote(&written);
        written
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    #[inline]
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
