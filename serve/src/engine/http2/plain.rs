//! Requests that are answered without the router, and heads of answers that are made on the spot.

use bytes::Bytes;
use http::StatusCode;
use http2::hpack::{Block, Field};
use http2::{Connection, RequestHead, StreamId};

use crate::compress::Encoding;
use crate::engine::worker::Worker;
use crate::instant::Kind;

/// How a request is answered without the router.
#[derive(Clone, Copy)]
pub(super) enum Short {
    /// On the spot: its body is in the worker's buffer.
    Instant(Kind),
    /// Later, by this number, in this coding.
    Later(u64, Option<Encoding>),
}

/// How a request is answered without the router, if it is one that is, and neither its fields nor the log need the
/// router.
pub(super) fn find(worker: &Worker, head: &RequestHead, end: bool) -> Option<Short> {
    if !end || head.method() != b"GET" {
        return None;
    }
    let target = std::str::from_utf8(head.path()?).ok()?;
    let limits = &worker.settings.options.limits;
    if target.len() > limits.target || head.fields().len() > limits.headers {
        // `guard` refuses a request beyond the limits.
        return None;
    }
    if let Some(found) = worker.instant(target, || head.get(b"x-request-id").is_some()) {
        let mut body = worker.h2.body.borrow_mut();
        body.clear();
        found.put_body(&mut body);
        return Some(Short::Instant(found.kind));
    }
    let host = head.authority().map(|authority| (&b"host"[..], authority));
    let (id, encoding) = worker.later(target, || host.into_iter().chain(head.fields()))?;
    Some(Short::Later(id, encoding))
}

/// Answers with what is in the worker's buffer; gives what there is no room for.
pub(super) fn answer(
    worker: &Worker,
    engine: &mut Connection,
    stream: StreamId,
    kind: Kind,
) -> Option<(StreamId, Bytes)> {
    let (mut heads, body) = (worker.h2.heads.borrow_mut(), worker.h2.body.borrow());
    worker.count_instant(StatusCode::OK);
    let head = heads.of(kind, body.len(), worker.clock.borrow().date());
    // A stream may have been reset since; then there is nobody to tell.
    engine.send_head_block(stream, head, body.is_empty()).ok()?;
    let sent = if body.is_empty() { 0 } else { engine.send_data(stream, &body, true).ok()? };
    (sent < body.len()).then(|| (stream, Bytes::copy_from_slice(&body[sent..])))
}

/// Heads that are kept at a time; more lengths than usual services have.
const KEPT: usize = 32;

/// Heads of the answers of this second.
#[derive(Debug, Default)]
pub(in crate::engine) struct Heads {
    date: Vec<u8>,
    known: Vec<(Kind, usize, Block)>,
}

impl Heads {
    fn of(&mut self, kind: Kind, length: usize, date: &[u8; 29]) -> &Block {
        if self.date != date || self.known.len() > KEPT {
            self.known.clear();
            self.date = date.to_vec();
        }
        let found = self.known.iter().position(|(of, bytes, _)| (*of, *bytes) == (kind, length));
        let place = found.unwrap_or_else(|| {
            self.known.push((kind, length, head(kind, length, date)));
            self.known.len() - 1
        });
        &self.known[place].2
    }
}

fn head(kind: Kind, length: usize, date: &[u8; 29]) -> Block {
    Block::new([
        Field::new(b":status", b"200"),
        Field::new(b"content-type", kind.media_type().as_bytes()),
        Field::new(b"date", date),
        Field::once(b"content-length", itoa::Buffer::new().format(length).as_bytes()),
    ])
}
