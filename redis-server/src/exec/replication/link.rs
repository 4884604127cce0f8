//! A replica's link without a socket: the bytes that it gets, and the commands that it sends.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::state::{Feed, Part, Replica, Stage};
use crate::clients::client::SyncRequest;
use crate::command::{Args, Flags};
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Instance, resolve};
use crate::journal::Reader;
use crate::protocol::error::shown;
use crate::protocol::{Parser, ProtocolError, RequestLimits, Span};

/// Bytes of the stream that are asked for at once.
const READ: usize = 256 * 1024;
/// The commands that a replica may send: none of them is answered once it is one.
const SILENT: [&str; 3] = ["replconf", "psync", "sync"];
/// How long a replica that waits for its snapshot hears nothing, in milliseconds.
const QUIET: u64 = 1000;

/// The start of the stream for a replica that goes on where it was.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) head: String,
    pub(super) reader: Reader,
}

/// The next output.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// These bytes.
    Bytes(Bytes),
    /// The connection's end.
    End,
}

/// A replica's input that makes this server end the connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Unexpected {
    /// No command.
    NoCommand(ProtocolError),
    /// A command, by its name, whose answer would stand in the middle of the stream.
    Command(String),
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommand(error) => write!(f, "the replica has sent what is no command: {error}"),
            Self::Command(name) => write!(f, "the replica has sent the command '{name}'"),
        }
    }
}

impl std::error::Error for Unexpected {}

impl From<ProtocolError> for Unexpected {
    fn from(error: ProtocolError) -> Self {
        Self::NoCommand(error)
    }
}

#[derive(Debug)]
enum Phase {
    /// It waits for a snapshot.
    Waits,
    /// It is sent a snapshot, and the stream behind it.
    Receives(Feed),
    /// It has a snapshot without a length; the stream follows when it has said so.
    Silent(Reader),
    /// It is sent the stream.
    Online(Reader),
    /// It wanted no more than a snapshot.
    Done,
}

/// A replica's connection, as far as it is not a socket.
#[derive(Debug)]
pub struct Link {
    instance: Arc<Instance>,
    replica: Arc<Replica>,
    phase: Phase,
    ready: VecDeque<Bytes>,
    /// The beginning of an incomplete command.
    input: Vec<u8>,
    /// When it was sent something last while it waits for a snapshot, in milliseconds of Unix time.
    told_at: u64,
    /// When it took something last, or had nothing to take, in milliseconds of Unix time.
    moved_at: u64,
}

impl Link {
    pub(super) fn new(instance: Arc<Instance>, replica: Arc<Replica>, resumed: Option<Resumed>) -> Self {
        let now = now_ms();
        let mut ready = VecDeque::new();
        let phase = match resumed {
            Some(Resumed { head, reader }) => {
                ready.push_back(head.into());
                replica.acknowledged.store(reader.offset(), Relaxed);
                Phase::Online(reader)
            }
            None => Phase::Waits,
        };
        Self { instance, replica, phase, ready, input: Vec::new(), moved_at: now, told_at: now }
    }

    /// Its connection's client.
    #[cfg(test)]
    pub(super) fn client(&self) -> &Arc<crate::clients::client::ClientShared> {
        &self.replica.client
    }

    /// The next output; pending, if there is none. The snapshot wakes `cx`; all other events wake its client.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, now: u64) -> Poll<Next> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Next::Bytes(bytes));
            }
            let phase = std::mem::replace(&mut self.phase, Phase::Done);
            let (phase, goes_on) = match phase {
                Phase::Waits => match self.replica.take_feed() {
                    Some(mut feed) => {
                        let head = std::mem::take(&mut feed.head);
                        self.ready.extend((!head.is_empty()).then(|| head.into()));
                        (Phase::Receives(feed), true)
                    }
                    None => (Phase::Waits, self.is_comforted(now)),
                },
                Phase::Receives(mut feed) => match feed.parts.poll_recv(cx) {
                    // Of a file nothing is sent before it is whole.
                    Poll::Pending => {
                        let waits = self.replica.stage() == Stage::Promised;
                        (Phase::Receives(feed), waits && self.is_comforted(now))
                    }
                    Poll::Ready(Some(Part::Bytes(bytes))) => {
                        self.ready.push_back(bytes);
                        (Phase::Receives(feed), true)
                    }
                    Poll::Ready(Some(Part::End { .. })) if self.replica.follower.wants_snapshot_only => {
                        (Phase::Done, true)
                    }
                    Poll::Ready(Some(Part::End { is_measured: false })) => {
                        // Its time to say that it has the snapshot begins.
                        self.replica.acknowledged_at.store(now, Relaxed);
                        (Phase::Silent(feed.stream), true)
                    }
                    Poll::Ready(Some(Part::End { is_measured: true })) => (self.online(feed.stream), true),
                    // The snapshot has failed: the replica asks again.
                    Poll::Ready(None) => (Phase::Done, true),
                },
                Phase::Silent(reader) => (Phase::Silent(reader), false),
                Phase::Online(mut reader) => {
                    let mut pieces = Vec::new();
                    reader.read(READ, &mut pieces);
                    let end = self.replica.end.load(Relaxed);
                    let sent = pieces.into_iter().map(|piece| piece.in_front_of(end)).filter(|bytes| !bytes.is_empty());
                    self.ready.extend(sent);
                    (Phase::Online(reader), !self.ready.is_empty())
                }
                Phase::Done => return Poll::Ready(Next::End),
            };
            self.phase = phase;
            if !goes_on {
                return Poll::Pending;
            }
        }
    }

    /// Sends a sign of life if there has been none for a while; says whether it does.
    fn is_comforted(&mut self, now: u64) -> bool {
        let is_due = now.saturating_sub(self.told_at) >= QUIET;
        if is_due {
            self.told_at = now;
            self.ready.push_back(Bytes::from_static(b"\n"));
        }
        is_due
    }

    fn online(&self, reader: Reader) -> Phase {
        tracing::info!(
            "Synchronization with replica {}:{} succeeded",
            self.replica.address(),
            self.replica.follower.port
        );
        self.replica.set_stage(Stage::Online);
        self.replica.acknowledged_at.store(now_ms(), Relaxed);
        Phase::Online(reader)
    }

    /// Takes what the replica has said.
    ///
    /// # Errors
    /// It is no command, or one whose answer would stand in the middle of the stream.
    pub fn receive(&mut self, bytes: &[u8], now: u64) -> Result<(), Unexpected> {
        self.input.extend_from_slice(bytes);
        let limits = RequestLimits { max_bulk_len: 1 << 20, authenticated: true };
        let mut spans: Vec<Span> = Vec::new();
        let mut used = 0;
        while used < self.input.len() {
            if matches!(self.input[used], b'\r' | b'\n') {
                used += 1;
                continue;
            }
            spans.clear();
            let Some(end) = Parser::default().parse(&self.input, used, &mut spans, &limits)? else { break };
            let args = Args::new(&self.input, &spans);
            if !SILENT.iter().any(|name| args.is(0, name)) {
                return Err(Unexpected::Command(self.refuse(args)));
            }
            let number = |at: usize| args.int(at).ok().and_then(|offset| u64::try_from(offset).ok());
            let is_answer = args.len() > 2 && args.is(0, "replconf") && args.is(1, "ack");
            let offset = if is_answer { number(2) } else { None };
            let durable = if args.len() > 4 && args.is(3, "fack") { number(4) } else { None };
            used = end;
            if let Some(offset) = offset {
                self.acknowledge(offset, durable, now);
            }
        }
        self.input.drain(..used);
        Ok(())
    }

    /// Tells of a command that would be answered; its name.
    fn refuse(&self, args: Args<'_>) -> String {
        let row = resolve::find(&self.instance, args);
        let name = row.map_or_else(|| shown(args.at(0)).to_string(), |row| row.name());
        let (id, addr) = (self.replica.client.id, &self.replica.client.addr);
        tracing::error!("Replica generated a reply to command '{name}', disconnecting it: id={id} addr={addr}");
        if row.is_some_and(|row| row.command.flags.has(Flags::READONLY) || row.command.flags.has(Flags::WRITE)) {
            tracing::error!(
                "== CRITICAL == This master is sending an error to its replica: Replica can't interact with the keyspace"
            );
        }
        name
    }

    fn acknowledge(&mut self, offset: u64, durable: Option<u64>, now: u64) {
        let replica = &self.replica;
        replica.acknowledged_at.store(now, Relaxed);
        let mut grown = offset > replica.acknowledged.fetch_max(offset, Relaxed);
        if let Some(durable) = durable {
            grown |= durable.saturating_add(1) > replica.durable.fetch_max(durable.saturating_add(1), Relaxed);
        }
        if matches!(self.phase, Phase::Silent(_))
            && let Phase::Silent(reader) = std::mem::replace(&mut self.phase, Phase::Done)
        {
            self.phase = self.online(reader);
        }
        if grown {
            self.instance.replication.serve_waits(&self.instance);
        }
    }

    /// The socket has taken something, or there is nothing for it.
    pub fn moved(&mut self, now: u64) {
        self.moved_at = now;
    }

    /// Why the connection is to end, if it is: the replica is silent, or does not take what it is sent. A replica that has said
    /// SYNC is of a time before acknowledgements, and may be silent.
    pub fn failure(&self, now: u64) -> Option<&'static str> {
        let timeout = self.instance.config.uint(settings::REPL_TIMEOUT) * 1000;
        let is_late = |since: u64| now.saturating_sub(since) > timeout;
        match &self.phase {
            Phase::Silent(_) | Phase::Online(_) if self.replica.follower.request == Some(SyncRequest::Full) => None,
            Phase::Silent(_) | Phase::Online(_) if is_late(self.replica.acknowledged_at.load(Relaxed)) => {
                Some("Disconnecting timedout replica (streaming sync)")
            }
            Phase::Receives(_) if is_late(self.moved_at) => Some("Disconnecting timedout replica (full sync)"),
            _ => None,
        }
    }

    /// Whether the stream is to follow up to where this server's own ends.
    pub fn has_end(&self) -> bool {
        self.replica.end.load(Relaxed) != u64::MAX
    }

    /// Whether the end of the snapshot in front of the stream has not been seen yet.
    pub fn receives_snapshot(&self) -> bool {
        matches!(self.phase, Phase::Receives(_))
    }

    /// Bytes of the stream that wait for it.
    pub fn behind(&self) -> u64 {
        match &self.phase {
            Phase::Receives(Feed { stream, .. }) | Phase::Silent(stream) | Phase::Online(stream) => {
                self.instance.journal.offset().saturating_sub(stream.offset())
            }
            Phase::Waits | Phase::Done => 0,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Nothing is kept for a replica that is no longer listed.
        self.phase = Phase::Done;
        self.instance.replication.leave(&self.replica, now_ms());
    }
}
