//! Output that could not be sent at once.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use server_runtime::Stream;
use tokio::io::AsyncWrite;

use crate::exec::core::Instance;
use crate::keyspace::Garbage;
use crate::protocol::Reply;

/// Most pieces handed to one system call.
const MAX_SLICES: usize = 64;

/// Most bytes handed to one system call: a socket takes megabytes at once, which the worker would copy meanwhile.
const MAX_PIECE: usize = 256 * 1024;

/// A reply whose memory the system takes long to take back.
struct Large {
    bytes: Vec<u8>,
    instance: Arc<Instance>,
}

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        self.instance.reaper.free(Garbage::Reply(std::mem::take(&mut self.bytes)), false);
    }
}

/// Bytes that wait for the socket.
#[derive(Debug, Default)]
pub(super) struct Output {
    queue: VecDeque<Bytes>,
    len: usize,
    /// Of the first piece, bytes that are sent: they are freed with the rest of it.
    sent: usize,
    /// Whether the stream may still hold what it has taken: TLS keeps records of its own.
    unflushed: bool,
}

impl Output {
    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that are held for what waits: of a piece that is sent in part, all.
    pub(super) fn held(&self) -> usize {
        self.len + self.sent
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.unflushed
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.len += bytes.len();
            self.queue.push_back(bytes);
        }
    }

    /// Sends a batch's replies, in one system call if the socket takes them; keeps what it does not take.
    /// Returns the number of bytes sent.
    pub(super) fn send(&mut self, cx: &mut Context<'_>, stream: &mut Stream, reply: &mut Reply) -> io::Result<usize> {
        let mut sent = 0;
        if self.is_empty() && reply.parts().1.is_empty() && !stream.is_tls() {
            let (bytes, _) = reply.parts();
            // One attempt: a short write means a full socket, and its readiness is cleared by then.
            if let Poll::Ready(count) = Pin::new(&mut *stream).poll_write(cx, bytes) {
                sent = count?;
            }
            if sent == bytes.len() {
                reply.clear();
                return Ok(sent);
            }
        }
        self.keep(reply, sent);
        reply.clear();
        match self.flush(cx, stream, 0) {
            Poll::Ready(flushed) => flushed.map(|count| count + sent),
            Poll::Pending => Ok(sent),
        }
    }

    /// Keeps a batch's replies until they may be sent.
    pub(super) fn hold(&mut self, reply: &mut Reply) {
        self.keep(reply, 0);
        reply.clear();
    }

    /// Keeps what a reply holds behind its first `sent` bytes, which were copied ones.
    fn keep(&mut self, reply: &Reply, sent: usize) {
        let (bytes, blobs) = reply.parts();
        let mut from = sent;
        for (at, blob) in blobs {
            self.push(Bytes::copy_from_slice(&bytes[from..*at]));
            self.push(blob.clone());
            from = *at;
        }
        self.push(Bytes::copy_from_slice(&bytes[from..]));
    }

    /// Appends a large reply without a copy; it is freed on another thread when it is sent.
    pub(super) fn take(&mut self, reply: Reply, instance: &Arc<Instance>) {
        let (bytes, blobs) = reply.into_parts();
        let bytes = Bytes::from_owner(Large { bytes, instance: Arc::clone(instance) });
        let mut from = 0;
        for (at, blob) in blobs {
            self.push(bytes.slice(from..at));
            self.push(blob);
            from = at;
        }
        self.push(bytes.slice(from..));
    }

    /// Sends what waits, in pieces until more than `most` bytes are sent. Ready with their number when it is, or when all
    /// is sent.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>, stream: &mut Stream, most: usize) -> Poll<io::Result<usize>> {
        let mut sent = 0;
        while !self.queue.is_empty() {
            if sent > most {
                return Poll::Ready(Ok(sent));
            }
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let mut room = MAX_PIECE;
            let mut used = 0;
            for (bytes, slice) in self.queue.iter().zip(&mut slices) {
                *slice = IoSlice::new(&bytes[..bytes.len().min(room)]);
                room -= slice.len();
                used += 1;
                if room == 0 {
                    break;
                }
            }
            let count = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..used]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(count);
            self.unflushed = true;
            sent += count;
        }
        ready!(Pin::new(stream).poll_flush(cx))?;
        self.unflushed = false;
        Poll::Ready(Ok(sent))
    }

    fn advance(&mut self, mut count: usize) {
        self.len -= count;
        while count > 0 {
            let first = &mut self.queue[0];
            let step = count.min(first.len());
            first.advance(step);
            count -= step;
            self.sent += step;
            if first.is_empty() {
                self.queue.pop_front();
                self.sent = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_held_until_all_of_it_is_sent() {
        let mut output = Output::default();
        output.push(Bytes::from(vec![0; 100]));
        output.push(Bytes::from(vec![0; 10]));
        let mut advance = |count| {
            output.advance(count);
            (output.len(), output.held())
        };
        assert_eq!([60, 40, 1, 9].map(&mut advance), [(50, 110), (10, 10), (9, 10), (0, 0)]);
    }
}
