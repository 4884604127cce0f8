//! One connection: what is sent.

use super::frame::{self, Pieces, append_head, append_number, append_settings, error, flag, kind, setting};
use super::head::Heads;
use super::hpack::{self, Block};
use super::streams::{Rest, Stream, Streams};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};

/// Bytes that a server may send on a stream before it needs our leave again. Answers are read at once and never stored, so windows protect
/// nothing here.
pub(super) const STREAM_WINDOW: usize = 1 << 30;

/// The same for the connection: the largest there is.
pub(super) const CONNECTION_WINDOW: usize = (1 << 31) - 1;

/// Both sides' windows before they are changed.
const DEFAULT_WINDOW: i64 = 65_535;

/// One connection from the client's side. `E` is a [`Judge::Exchange`](super::Judge::Exchange).
#[derive(Debug)]
pub struct Connection<E> {
    pub(super) streams: Streams<E>,
    pub(super) heads: Heads,
    /// The protocol's own frames for the next turn.
    pub(super) control: Vec<u8>,
    pub(super) stage: Stage,
    /// Whether the client has sent its preface. The server need not wait for it.
    greeted: bool,
    /// The header block of this stream goes on in CONTINUATION frames.
    pub(super) continued: Option<Box<Continued>>,
    /// How many bytes came since the server's window was last made larger.
    pub(super) received: usize,
    /// Requests that the server has not processed before its GOAWAY, by their intended times.
    pub(super) unprocessed: Vec<Nanos>,
    /// Streams of which the server's windows keep something back, in the order of their beginning.
    blocked: Vec<u32>,
    /// How many bytes the server takes on all streams.
    pub(super) window: i64,
    pub(super) server: Server,
    table: Table,
}

/// A header block that is not complete.
#[derive(Debug)]
pub(super) struct Continued {
    pub(super) stream: u32,
    pub(super) end: bool,
    pub(super) block: Vec<u8>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The server has not sent its SETTINGS.
    Opening,
    /// Requests may be made.
    Open,
    /// The server ends: what it still answers is awaited.
    Leaving,
}

/// The server's settings.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) max_streams: usize,
    pub(super) stream_window: i64,
    pub(super) max_payload: usize,
    /// The smallest size that its header table ever had.
    pub(super) table_size: usize,
    /// Whether the server is still to be told that we know the table's size.
    pub(super) table_changed: bool,
}

/// The content of the server's header table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Empty,
    /// The shared fields.
    Filled,
    /// It is too small for them.
    Unused,
}

/// A request to begin.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The fields that were known before the run.
    pub block: &'a Block,
    /// The `:path`, as a literal field, if it is new with every request.
    pub path: &'a [u8],
    /// Literal fields that are new with every request.
    pub fields: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

impl<E: Default> Default for Connection<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Default> Connection<E> {
    /// A new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            streams: Streams::new(),
            heads: Heads::default(),
            control: Vec::new(),
            stage: Stage::Opening,
            greeted: false,
            continued: None,
            received: 0,
            unprocessed: Vec::new(),
            blocked: Vec::new(),
            window: DEFAULT_WINDOW,
            server: Server {
                max_streams: usize::MAX,
                stream_window: DEFAULT_WINDOW,
                max_payload: frame::MAX_PAYLOAD,
                table_size: hpack::DEFAULT_TABLE_SIZE,
                table_changed: false,
            },
            table: Table::Empty,
        }
    }

    /// Whether the server has sent its SETTINGS.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.stage != Stage::Opening
    }

    /// How many more requests the server takes now.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        if self.stage != Stage::Open || !self.greeted || !self.streams.may_open() {
            return 0;
        }
        self.server.max_streams.saturating_sub(self.streams.len())
    }

    /// How many requests have no complete answer yet.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.streams.len() + self.unprocessed.len()
    }

    /// Appends what the protocol itself has to say, and bodies that the server's windows had kept back.
    #[inline]
    pub fn control(&mut self, out: &mut Vec<u8>) {
        if !self.greeted {
            self.greet(out);
        }
        if !self.control.is_empty() {
            out.append(&mut self.control);
        }
        if !self.blocked.is_empty() {
            self.unblock(out);
        }
    }

    fn greet(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(frame::PREFACE);
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW as u32),
            (setting::MAX_HEADER_LIST_SIZE, hpack::MAX_HEADER_LIST as u32),
        ];
        append_settings(out, &settings);
        append_number(out, kind::WINDOW_UPDATE, 0, CONNECTION_WINDOW as u32 - DEFAULT_WINDOW as u32);
        self.greeted = true;
    }

    /// Appends a request. `prepare` sets what is remembered of it; it finds there what an earlier one left.
    #[inline]
    pub fn begin(&mut self, request: &Request<'_>, intended: Nanos, out: &mut Vec<u8>, prepare: impl FnOnce(&mut E)) {
        let stream = self.streams.open(intended, self.server.stream_window);
        prepare(&mut stream.exchange);
        let (id, end) = (stream.id, request.body.is_empty());
        if self.table == Table::Filled && !self.server.table_changed {
            let pieces = Pieces { before: &[], form: &request.block.again, path: request.path, after: request.fields };
            pieces.append(out, id, end, self.server.max_payload);
        } else {
            self.first_head(request, id, out);
        }
        if !end {
            self.body(id, request.body, out);
        }
    }

    /// The head of a request on a table that does not hold the shared fields.
    #[cold]
    fn first_head(&mut self, request: &Request<'_>, id: u32, out: &mut Vec<u8>) {
        let mut before = Vec::new();
        if std::mem::take(&mut self.server.table_changed) {
            hpack::append_table_size(&mut before, self.server.table_size);
        }
        if request.block.table_size > self.server.table_size {
            self.table = Table::Unused;
        }
        let form = match self.table {
            Table::Empty => &request.block.first,
            Table::Filled => &request.block.again,
            Table::Unused => &request.block.plain,
        };
        if self.table == Table::Empty {
            self.table = Table::Filled;
        }
        let pieces = Pieces { before: &before, form, path: request.path, after: request.fields };
        pieces.append(out, id, request.body.is_empty(), self.server.max_payload);
    }

    /// Appends a body as far as the server's windows allow; the rest waits.
    #[inline]
    fn body(&mut self, id: u32, body: &[u8], out: &mut Vec<u8>) {
        let length = body.len() as i64;
        if length <= self.window && length <= self.server.stream_window && body.len() <= self.server.max_payload {
            append_head(out, body.len(), kind::DATA, flag::END_STREAM, id);
            out.extend_from_slice(body);
            self.window -= length;
            return;
        }
        let stream = self.streams.find(id).expect("it was opened just now");
        let sent = send_piece(stream, body, &mut self.window, self.server.max_payload, out);
        if sent < body.len() {
            stream.rest = Some(Box::new(Rest { bytes: body[sent..].to_vec(), sent: 0 }));
            self.blocked.push(id);
        }
    }

    /// Sends what waits, as far as the windows allow now.
    #[cold]
    fn unblock(&mut self, out: &mut Vec<u8>) {
        let Self { streams, blocked, window, server, .. } = self;
        blocked.retain(|&id| {
            // A stream that has ended took its rest along.
            let Some(stream) = streams.find(id) else {
                return false;
            };
            let Some(mut rest) = stream.rest.take() else {
                return false;
            };
            rest.sent += send_piece(stream, &rest.bytes[rest.sent..], window, server.max_payload, out);
            let waits = rest.sent < rest.bytes.len();
            if waits {
                stream.rest = Some(rest);
            }
            waits
        });
    }

    /// Gives up the requests that were intended before `before`. The server is told.
    pub fn expire(&mut self, before: Nanos, tally: &mut Tally) {
        let control = &mut self.control;
        self.streams.close_where(|stream| {
            let late = stream.intended < before;
            if late {
                append_number(control, kind::RST_STREAM, stream.id, error::CANCEL);
                tally.failed(stream.intended, Failure::TimedOut, || {
                    "no answer in time; the stream was reset".to_owned()
                });
            }
            late
        });
        self.unprocessed.retain(|intended| {
            let late = *intended < before;
            if late {
                tally.failed(*intended, Failure::TimedOut, || "not processed before GOAWAY, and then late".to_owned());
            }
            !late
        });
    }

    /// Moves the intended times of the requests that the server has not processed to `waiting` (RFC 9113, 6.8: they can be
    /// sent again safely).
    pub fn take_back(&mut self, waiting: &mut Vec<Nanos>) {
        waiting.append(&mut self.unprocessed);
    }

    /// Accounts all requests as failed: the connection is lost.
    pub fn abandon(&mut self, failure: Failure, tally: &mut Tally) {
        self.streams.close_where(|stream| {
            tally.failed(stream.intended, failure, || failure.words().to_owned());
            true
        });
        for intended in self.unprocessed.drain(..) {
            tally.failed(intended, failure, || failure.words().to_owned());
        }
    }

    /// Whether nothing more will come of this connection.
    pub(super) fn is_done(&self) -> bool {
        (self.stage == Stage::Leaving || !self.streams.may_open()) && self.streams.len() == 0
    }
}

/// Appends as much of a body as the windows allow, in frames that the server takes, and gives how much that is.
fn send_piece<E>(
    stream: &mut Stream<E>,
    body: &[u8],
    connection_window: &mut i64,
    max_payload: usize,
    out: &mut Vec<u8>,
) -> usize {
    let allowed = stream.window.min(*connection_window).max(0) as usize;
    let piece = &body[..body.len().min(allowed)];
    let last = piece.len() == body.len();
    for (place, payload) in piece.chunks(max_payload).enumerate() {
        let end = last && (place + 1) * max_payload >= piece.len();
        append_head(out, payload.len(), kind::DATA, if end { flag::END_STREAM } else { 0 }, stream.id);
        out.extend_from_slice(payload);
    }
    stream.window -= piece.len() as i64;
    *connection_window -= piece.len() as i64;
    piece.len()
}
