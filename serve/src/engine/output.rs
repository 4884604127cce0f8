//! Output on its way to a client.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use server_runtime::Stream;
use tokio::io::AsyncWrite;

use crate::tuning::LARGE_PIECE;

/// Slices given to one system call.
const MAX_SLICES: usize = 16;

/// Output that the socket has not taken yet. It goes before the fresh output, which gathers in the worker's buffer.
#[derive(Default)]
pub(super) struct Output {
    queue: VecDeque<Bytes>,
    len: usize,
}

impl Output {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a piece behind what is in the worker's buffer: small ones are copied there, large ones are shared.
    pub(super) fn add(&mut self, piece: Bytes, fresh: &mut Vec<u8>) {
        if piece.len() < LARGE_PIECE {
            return fresh.extend_from_slice(&piece);
        }
        self.stash(fresh);
        self.push(piece);
    }

    /// Takes over what is in the worker's buffer.
    pub(super) fn stash(&mut self, fresh: &mut Vec<u8>) {
        if !fresh.is_empty() {
            self.push(Bytes::copy_from_slice(fresh));
            fresh.clear();
        }
    }

    fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        self.queue.push_back(piece);
    }

    /// Sends everything; pending if the socket does not take it all, and then `fresh` is empty too. Tells how many bytes
    /// were taken this time.
    #[inline]
    pub(super) fn flush(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        fresh: &mut Vec<u8>,
        sent: &mut u64,
    ) -> Poll<io::Result<()>> {
        if self.queue.is_empty() && !fresh.is_empty() {
            if let Poll::Ready(count) = Pin::new(&mut *stream).poll_write(cx, fresh)? {
                *sent += count as u64;
                if count == fresh.len() {
                    fresh.clear();
                    return Self::flush_stream(cx, stream);
                }
                self.push(Bytes::copy_from_slice(&fresh[count..]));
            } else {
                self.push(Bytes::copy_from_slice(fresh));
            }
            fresh.clear();
        }
        self.stash(fresh);
        self.flush_queue(cx, stream, sent)
    }

    fn flush_queue(&mut self, cx: &mut Context<'_>, stream: &mut Stream, sent: &mut u64) -> Poll<io::Result<()>> {
        while !self.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let count = self.queue.len().min(MAX_SLICES);
            for (slice, piece) in slices.iter_mut().zip(&self.queue) {
                *slice = IoSlice::new(piece);
            }
            let written = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *sent += written as u64;
            self.consume(written);
        }
        Self::flush_stream(cx, stream)
    }

    fn consume(&mut self, mut written: usize) {
        self.len -= written;
        while let Some(first) = self.queue.front_mut() {
            if first.len() > written {
                return first.advance(written);
            }
            written -= first.len();
            self.queue.pop_front();
        }
    }

    /// TLS keeps records that the socket did not take.
    fn flush_stream(cx: &mut Context<'_>, stream: &mut Stream) -> Poll<io::Result<()>> {
        if stream.is_tls() { Pin::new(stream).poll_flush(cx) } else { Poll::Ready(Ok(())) }
    }
}
