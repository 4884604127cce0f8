//! The input of a connection: reading it, and keeping what is not complete.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::conn::{Conn, Progress, TURN_INPUT};
use crate::clients::client::flag;
use crate::config::settings;
use crate::exec::core::Scratch;

/// Input that is moved to the head of the shared buffer to be completed there; longer input gets a buffer of its own.
const MAX_TAIL: usize = 16 * 1024;
/// Room of a connection's own buffer below which the shared one is read into.
const MIN_READ: usize = 1024;
/// Room of less than one part in so many of what has come is made by doubling: or a request of many arguments would be
/// copied for each of them.
const SMALL_PART: usize = 4;
/// Room for more is this many times what has come, from [`MAX_TAIL`] on: then hardly anything is copied when the buffer grows.
const ROOM_GROWTH: usize = 16;
/// Bytes of an argument that have come from which on there is room for all of it. At most [`ROOM_GROWTH`] times as many are copied
/// then; to copy much more takes longer than other clients should wait.
const ROOM_FOR_ALL: usize = 256 * 1024;
/// Bytes that are read at once: more takes longer than other clients should wait.
const MAX_READ: usize = 1024 * 1024;

impl Conn {
    /// [`Conn::read_input`], counted.
    pub(super) fn read(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        let waited = self.input.len();
        let read = self.read_input(cx, scratch);
        if let Poll::Ready(Ok(count @ 1..)) = read {
            let fresh = if self.input.is_empty() { count - waited } else { count };
            self.worker.stats.reads.add(1);
            self.worker.stats.input.add(fresh as u64);
            self.client.shared.traffic.received.add(fresh as u64);
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
            self.client.shared.set_flag(flag::OVER_INPUT_LIMIT, true);
            tracing::warn!(id, addr, "closing client: its input passed client-query-buffer-limit");
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        self.read_behind(cx, scratch)
    }

    /// Reads behind the bytes that wait in the connection's own buffer. Makes room when bytes have come, so a client that
    /// sends half a request and no more holds no more.
    fn read_behind(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        // Of an argument whose end is near, no more is needed than that.
        let missing = self.missing();
        let least = missing.map_or(MIN_READ, |missing| missing.clamp(1, MIN_READ));
        if self.input.capacity() - self.input.len() >= least {
            return pin!(self.stream.read_buf(&mut (&mut self.input).limit(MAX_READ))).poll(cx);
        }
        let most = missing.map_or(usize::MAX, |missing| missing.max(1)).min(scratch.input.len());
        let mut buf = ReadBuf::new(&mut scratch.input[..most]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
        let fresh = buf.filled();
        if !fresh.is_empty() {
            self.make_room(fresh.len());
            self.input.extend_from_slice(fresh);
        }
        Poll::Ready(Ok(fresh.len()))
    }

    /// Bytes that are missing of an argument whose length is known.
    fn missing(&self) -> Option<usize> {
        let parser = &self.pipeline.parser;
        parser.pending_bulk().map(|_| parser.needed().saturating_sub(self.input.len()))
    }

    /// Reserves room for `fresh` bytes and for the missing part of an argument whose length is known. The argument is
    /// then received in its final place. The reserve is limited to a multiple of the bytes that have arrived, until they
    /// are [many](ROOM_FOR_ALL): a client can announce any length.
    fn make_room(&mut self, fresh: usize) {
        let (len, missing) = (self.input.len(), self.missing());
        let come = len + fresh;
        let most = match come {
            ..MAX_TAIL => fresh,
            MAX_TAIL..ROOM_FOR_ALL => come * ROOM_GROWTH,
            ROOM_FOR_ALL.. => usize::MAX,
        };
        let room = missing.unwrap_or(0).min(most).max(fresh);
        if missing.is_some() && room >= len / SMALL_PART {
            // The usual growth would double the buffer, and the argument needs no more than this.
            let small = std::mem::replace(&mut self.input, BytesMut::with_capacity(len + room));
            self.input.extend_from_slice(&small);
        } else {
            self.input.reserve(room);
        }
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
            self.input = BytesMut::from(&input[used..count]);
        }
        std::mem::swap(&mut scratch.input, &mut input);
        self.finish(cx, scratch, progress)
    }

    /// Runs what waits in the connection's own buffer.
    pub(super) fn resume(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<()> {
        if self.input.len() < self.pipeline.parser.needed() {
            return self.finish(cx, scratch, Progress::Done);
        }
        // The bytes that have come may exceed maxmemory-clients; the end is in the mail then.
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
