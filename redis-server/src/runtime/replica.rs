//! A connection that has become a replica's.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use server_runtime::Stream;
use tokio::io::{AsyncRead as _, ReadBuf};

use super::conn::TURN_OUTPUT;
use super::output::Output;
use crate::clients::client::End;
use crate::clients::output_limit::OutputGuard;
use crate::exec::core::Worker;
use crate::exec::core::clock::now_ms;
use crate::exec::replication::{Link, Next};
use crate::exec::run::session::ConnectedClient;

/// Bytes that are taken for the socket at once.
const WINDOW: usize = 256 * 1024;

/// How long a connection that is to end waits for the end of the snapshot that its replica has got, in milliseconds.
const LAST_WORDS: u64 = 500;

/// Serves a replica to its end; `input` is what it has sent behind its request.
pub(super) async fn serve(worker: Rc<Worker>, stream: Stream, mut client: ConnectedClient, input: &[u8]) {
    let Some(follower) = client.follower.take() else { return };
    let (instance, now) = (&worker.instance, now_ms());
    let mut link = instance.replication.join(instance, &client.shared, *follower, now);
    let is_clean = link.receive(input, now).is_ok();
    let (output, guard) = (Output::default(), OutputGuard::default());
    let mut conn =
        Conn { worker, stream, client, link, output, guard, is_done: !is_clean, ends_by: None, given: 0, received: 0 };
    let ended = poll_fn(|cx| conn.poll(cx)).await;
    let shared = &conn.client.shared;
    tracing::info!(
        id = shared.id,
        addr = shared.addr,
        "Connection with replica lost: {}",
        match ended {
            Ok(()) => "it was closed".to_owned(),
            Err(error) => error.to_string(),
        }
    );
}

struct Conn {
    worker: Rc<Worker>,
    stream: Stream,
    client: ConnectedClient,
    link: Link,
    output: Output,
    guard: OutputGuard,
    /// Whether nothing comes behind what waits in `output`.
    is_done: bool,
    /// When it ends, if it is to end, in milliseconds of Unix time.
    ends_by: Option<u64>,
    /// Bytes that were given to the stream.
    given: u64,
    /// Bytes that the replica had received when it was last seen to receive some.
    received: u64,
}

impl Conn {
    /// Works until there is nothing to be done. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.shared.wake_by(cx.waker());
        let now = now_ms();
        if self.client.shared.has_mail() && self.client.shared.take_mail().end != End::No {
            if !self.link.has_end() {
                return Poll::Ready(Ok(()));
            }
            self.ends_by.get_or_insert(now + LAST_WORDS);
        }
        if let Some(by) = self.ends_by {
            self.send_rest(cx, now);
            let is_over = now >= by || !self.link.receives_snapshot();
            return if is_over { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        if let Poll::Ready(ended) = self.receive(cx, now) {
            return Poll::Ready(ended);
        }
        if self.is_too_slow(now) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let mut sent = 0;
        loop {
            let is_sent = self.output.is_empty();
            // Bytes that do not fit into the socket wait where all replicas have them.
            while is_sent && !self.is_done && self.output.len() < WINDOW {
                match self.link.poll_next(cx, now) {
                    Poll::Ready(Next::Bytes(bytes)) => self.output.push(bytes),
                    Poll::Ready(Next::End) => self.is_done = true,
                    Poll::Pending => break,
                }
            }
            if self.output.is_empty() {
                self.link.moved(now);
                // The stream may wait for a snapshot that is slow.
                return if self.is_done {
                    Poll::Ready(Ok(()))
                } else if self.is_over_limit(now) {
                    Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()))
                } else {
                    Poll::Pending
                };
            }
            let before = self.output.len();
            let flushed = self.output.flush(cx, &mut self.stream, TURN_OUTPUT);
            let count = before - self.output.len();
            self.worker.stats.output.add(count as u64);
            self.worker.instance.replication.figures.sent.fetch_add(count as u64, Relaxed);
            self.client.shared.traffic.sent.add(count as u64);
            self.given += count as u64;
            if count > 0 {
                self.link.moved(now);
            }
            match flushed {
                Poll::Ready(flushed) => sent += flushed?,
                Poll::Pending if self.is_over_limit(now) => {
                    return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
                }
                Poll::Pending => {
                    if count > 0 {
                        self.received = self.stream.progress(self.given).received;
                    }
                    return Poll::Pending;
                }
            }
            if sent > TURN_OUTPUT {
                server_runtime::defer(cx);
                return Poll::Pending;
            }
        }
    }

    /// Whether the replica's time is over; the log says why.
    fn is_too_slow(&mut self, now: u64) -> bool {
        // Over a slow line the socket takes nothing more for long, and the replica receives what it has taken before.
        if self.link.receives_snapshot() && self.link.failure(now).is_some() {
            let received = self.stream.progress(self.given).received;
            if received > self.received {
                self.received = received;
                self.link.moved(now);
            }
        }
        let Some(why) = self.link.failure(now) else { return false };
        tracing::warn!(id = self.client.shared.id, addr = self.client.shared.addr, "{why}");
        true
    }

    /// The connection is to end as this server follows another: of what clients were told is done the replica gets what its socket
    /// takes at once.
    fn send_rest(&mut self, cx: &mut Context<'_>, now: u64) {
        while self.output.len() < WINDOW
            && let Poll::Ready(Next::Bytes(bytes)) = self.link.poll_next(cx, now)
        {
            self.output.push(bytes);
        }
        // It ends, sent or not.
        let _ = self.output.flush(cx, &mut self.stream, usize::MAX);
    }

    /// Takes the replica's input. Ready when the input has ended, or with an error if it is not understood.
    fn receive(&mut self, cx: &mut Context<'_>, now: u64) -> Poll<io::Result<()>> {
        let mut room = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut room);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(read) => read?,
            }
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.client.shared.active_at.store(now, Relaxed);
            if let Err(error) = self.link.receive(buffer.filled(), now) {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
        }
    }

    /// Whether so much waits for it that `client-output-buffer-limit` cuts it off.
    fn is_over_limit(&mut self, now: u64) -> bool {
        let shared = &self.client.shared;
        let waits = self.output.len() as u64 + self.link.behind();
        shared.output.store(waits, Relaxed);
        self.guard.cuts_off(&self.worker.instance.config, shared, waits, now)
    }
}
