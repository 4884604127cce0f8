//! The bytes of a connection, with what was read of them before.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use server_runtime::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::strict::Strict;

/// The bytes of a connection.
pub(super) struct Wire {
    stream: Stream,
    /// Read already, and read again.
    before: Bytes,
    strict: Strict,
}

impl Wire {
    pub(super) fn new(stream: Stream, before: Bytes) -> Self {
        Self { stream, before, strict: Strict::default() }
    }

    /// Forgets the bytes read ahead: the rest of the input is no request.
    pub(super) fn let_go(&mut self) {
        self.before.clear();
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut Stream> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let filled = buf.filled().len();
        if this.before.has_remaining() {
            let count = this.before.len().min(buf.remaining());
            buf.put_slice(&this.before.split_to(count));
        } else {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        }
        this.strict.look(&mut buf.filled_mut()[filled..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
