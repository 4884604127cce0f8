//! The input of a connection: reading it, and keeping what is not complete.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::conn::{Conn, Progress, TURN_INPUT};
use crate::clients::client::flag;
use crate::config::settings;
use crate::exec::worker::Scratch;

/// Input that is moved to the head of the shared buffer to be completed there; longer input gets a buffer of its own.
const MAX_TAIL: usize = 16 * 1024;
/// Least room that a connection's own buffer is made to have when it is full.
const MIN_ROOM: usize = 16 * 1024;
/// Room below which it is made larger before a read.
const MIN_READ: usize = 1024;
/// Room of less than one part in so many of what has come is made by doubling: or a request of many arguments would be
/// copied for each of them.
const SMALL_PART: usize = 4;
/// Longest rest of an argument for which room is made before anything of it has come.
const ROOM_AT_ONCE: usize = 64 * 1024;
/// Room for more is this many times what has come: then hardly anything is copied when the buffer grows.
const ROOM_GROWTH: usize = 16;

impl Conn {
    /// [`Conn::read_input`], counted.
    pub(super) fn read(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        let waited = self.input.len();
        let read = self.read_input(cx, scratch);
        if let Poll::Ready(Ok(count @ 1..)) = read {
            let fresh = if self.input.is_empty() { count - waited } else { count };
            self.worker.stats.reads.add(1);
            self.worker.stats.input.add(fresh as u64);
        }
        read
    }

    /// Reads into the shared buffer, or behind input that waits in the connection's own. In the shared buffer, what
    /// waited stands before it and is counted.
    fn read_input(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        let held = self.is_held();
        if self.input.is_empty() && !held {
            let mut buf = ReadBuf::new(&mut scratch.input);
            return Pin::new(&mut self.stream).poll_read(cx, &mut buf).map_ok(|()| buf.filled().len());
        }
        if !held && self.input.len() <= MAX_TAIL && self.pipeline.parser.needed() <= scratch.input.len() {
            let tail = self.input.len();
            scratch.input[..tail].copy_from_slice(&self.input);
            let mut buf = ReadBuf::new(&mut scratch.input[tail..]);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut buf).map_ok(|()| buf.filled().len());
            if let Poll::Ready(Ok(1..)) = read {
                // The whole input stands in the shared buffer now.
                self.input = BytesMut::new();
                return read.map_ok(|count| count + tail);
            }
            return read;
        }
        if self.input.len() as u64 > self.worker.instance.config.uint(settings::CLIENT_QUERY_BUFFER_LIMIT) {
            let (id, addr) = (self.client.shared.id, &self.client.shared.addr);
            tracing::warn!(id, addr, "closing client: its input passed client-query-buffer-limit");
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        self.read_behind(cx)
    }

    /// Reads behind what waits in the connection's own buffer.
    fn read_behind(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Of an argument whose end is near, no more is needed than that.
        let missing =
            self.pipeline.parser.pending_bulk().map(|_| self.pipeline.parser.needed().saturating_sub(self.input.len()));
        let least = missing.map_or(MIN_READ, |missing| missing.clamp(1, MIN_READ));
        let len = self.input.len();
        if self.input.capacity() - len < least {
            let room = self.room_for(len);
            if missing.is_some() && room >= len / SMALL_PART {
                // The usual growth would double the buffer, and the argument needs no more than this.
                let small = std::mem::replace(&mut self.input, BytesMut::with_capacity(len + room));
                self.input.extend_from_slice(&small);
            } else {
                self.input.reserve(room);
            }
        }
        pin!(self.stream.read_buf(&mut self.input)).poll(cx)
    }

    /// Room for what is missing of an argument whose length is known, behind `len` bytes, so that it is received where
    /// it will stay: all of it if it is small; of more, a multiple of what has come, because a length is quickly said.
    fn room_for(&self, len: usize) -> usize {
        let missing =
            self.pipeline.parser.pending_bulk().map_or(0, |_| self.pipeline.parser.needed().saturating_sub(len));
        missing.min(len.saturating_mul(ROOM_GROWTH).max(ROOM_AT_ONCE)).max(MIN_ROOM)
    }

    /// Runs what has been received and sends the replies.
    pub(super) fn received(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch, count: usize) -> io::Result<()> {
        if self.is_held() {
            self.note_buffers();
            return Ok(());
        }
        if !self.input.is_empty() {
            return self.resume(cx, scratch);
        }
        self.client.shared.input.store(count as u64, Relaxed);
        let mut input = std::mem::take(&mut scratch.input);
        let (used, progress) = self.process(cx, scratch, &input[..count], None);
        if used < count {
            let rest = &input[used..count];
            if self.pipeline.parser.pending_bulk().is_some() {
                self.input.reserve(rest.len() + self.room_for(rest.len()));
            }
            self.input.extend_from_slice(rest);
        }
        std::mem::swap(&mut scratch.input, &mut input);
        self.finish(cx, scratch, progress)
    }

    /// Runs what waits in the connection's own buffer.
    pub(super) fn resume(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<()> {
        if self.input.len() < self.pipeline.parser.needed() {
            return self.finish(cx, scratch, Progress::Done);
        }
        // What has come may be more than maxmemory-clients bears; the end is in the mail then.
        self.note_buffers();
        if self.client.shared.has_flag(flag::GONE) {
            return Ok(());
        }
        let mut input = std::mem::take(&mut self.input).freeze();
        let (used, progress) = self.process(cx, scratch, &input, Some(&input));
        let left = input.len() - used;
        self.input = if used == 0 || left >= TURN_INPUT {
            // Nothing was complete, or there is more for many turns: it stays in the same buffer.
            input.advance(used);
            input.try_into_mut().unwrap_or_else(|input| BytesMut::from(&*input))
        } else {
            BytesMut::from(&input[used..])
        };
        self.finish(cx, scratch, progress)
    }
}
