//! A client's frames, and an engine to send them to.

use std::time::Instant;

use http2::frame::{self, END_HEADERS, END_STREAM, HEAD, Head, Kind};
use http2::hpack::{Encoder, Field};
use http2::{Config, Connection, Error, Event, PREFACE, Reason, StreamId};

/// A frame as bytes.
pub(crate) fn put(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind, flags, stream, payload);
    out
}

/// A header block that leaves the header table alone.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let fields = fields.iter().map(|(name, value)| Field::once(name.as_bytes(), value.as_bytes()));
    Encoder::new().encode(fields, &mut out);
    out
}

/// The block of a usual request.
pub(crate) fn request() -> Vec<u8> {
    block(&[(":method", "POST"), (":scheme", "http"), (":path", "/x"), (":authority", "a")])
}

/// HEADERS of a usual request.
pub(crate) fn headers(stream: u32, end: bool) -> Vec<u8> {
    put(Kind::Headers, END_HEADERS | if end { END_STREAM } else { 0 }, stream, &request())
}

pub(crate) fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    put(Kind::Data, if end { END_STREAM } else { 0 }, stream, bytes)
}

pub(crate) fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    put(Kind::WindowUpdate, 0, stream, &bytes.to_be_bytes())
}

pub(crate) fn rst_stream(stream: u32, reason: Reason) -> Vec<u8> {
    put(Kind::RstStream, 0, stream, &reason.0.to_be_bytes())
}

pub(crate) fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload = pairs.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat());
    put(Kind::Settings, 0, 0, &payload.collect::<Vec<u8>>())
}

/// An event that owns what it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Request { stream: StreamId, path: String, fields: usize, end: bool },
    Data { stream: StreamId, data: Vec<u8>, end: bool },
    Trailers { stream: StreamId, fields: Vec<(String, String)> },
    TooLarge { stream: StreamId, path: Option<String>, end: bool },
    Reset { stream: StreamId, reason: Reason, by_peer: bool },
    Pong([u8; 8]),
    GoAway(Reason),
}

impl From<Event<'_>> for Seen {
    fn from(event: Event<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match event {
            Event::Request { stream, head, end } => {
                let path = text(head.path().unwrap_or_default());
                Self::Request { stream, path, fields: head.fields().count(), end }
            }
            Event::Data { stream, data, end } => Self::Data { stream, data: data.to_vec(), end },
            Event::Trailers { stream, fields } => Self::Trailers {
                stream,
                fields: fields.iter().map(|(name, value)| (text(name), text(value))).collect(),
            },
            Event::TooLarge { stream, head, end } => {
                let path = head.map(|head| text(head.path().unwrap_or_default()));
                Self::TooLarge { stream, path, end }
            }
            Event::Reset { stream, reason, by_peer } => Self::Reset { stream, reason, by_peer },
            Event::Pong(payload) => Self::Pong(payload),
            Event::GoAway { reason } => Self::GoAway(reason),
        }
    }
}

/// A frame that the engine sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    /// The reason of RST_STREAM or GOAWAY.
    pub(crate) fn reason(&self) -> Reason {
        let at = if self.kind == Kind::GoAway { 4 } else { 0 };
        Reason(u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap()))
    }
}

/// An engine, with its input and output.
pub(crate) struct Engine {
    pub(crate) connection: Connection,
    pub(crate) now: Instant,
    unread: Vec<u8>,
    /// Bytes that are given to the engine at once.
    pub(crate) piece: usize,
}

impl Engine {
    /// One that has seen the preface and settings, whose own beginning was read.
    pub(crate) fn open(config: &Config) -> Self {
        let mut this = Self::new(config);
        this.send(&[&PREFACE[..], &settings(&[])].concat()).unwrap();
        this.take_output();
        this
    }

    pub(crate) fn new(config: &Config) -> Self {
        let now = Instant::now();
        Self { connection: Connection::new(config, now), now, unread: Vec::new(), piece: usize::MAX }
    }

    /// Sends bytes; returns the events.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<Vec<Seen>, Error> {
        let mut seen = Vec::new();
        for piece in bytes.chunks(self.piece) {
            self.unread.extend_from_slice(piece);
            seen.extend(self.read_on()?);
        }
        Ok(seen)
    }

    /// Reads the bytes that were sent and not read yet; returns the events.
    pub(crate) fn read_on(&mut self) -> Result<Vec<Seen>, Error> {
        let (mut seen, mut input) = (Vec::new(), &self.unread[..]);
        while let Some(event) = self.connection.next(&mut input, self.now)? {
            seen.push(event.into());
        }
        let read = self.unread.len() - input.len();
        self.unread.drain(..read);
        Ok(seen)
    }

    /// The stream of a request that is sent.
    pub(crate) fn begin(&mut self, stream: u32, end: bool) -> StreamId {
        match &self.send(&headers(stream, end)).unwrap()[..] {
            [Seen::Request { stream, .. }] => *stream,
            other => panic!("{other:?}"),
        }
    }

    /// Writes all that is to be written; its frames.
    pub(crate) fn take_output(&mut self) -> Vec<Sent> {
        let frames = parse(self.connection.output());
        let length = self.connection.output().len();
        self.connection.advance(length);
        frames
    }
}

/// All frames of the bytes, which end with one.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Sent> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let Head { length, kind, flags, stream } = Head::parse(head);
        frames.push(Sent { kind, flags, stream, payload: rest[..length].to_vec() });
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty(), "half a frame");
    frames
}
