//! A connection's requests that are answered later, without the router. Unlike those of HTTP/1.1, none waits for another.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http2::StreamId;
use http2::hpack::Field;

use super::session::Session;
use super::stream;
use crate::compress::{self, Encoding};
use crate::later::Reply;
use crate::tuning::COMPRESS_MIN;

/// Those that wait.
pub(super) struct Laters {
    session: Rc<Session>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    stream: StreamId,
    /// Its number with [`Later`](crate::Later).
    id: u64,
    /// How its answer is to be compressed, if that is worth it.
    encoding: Option<Encoding>,
}

impl Laters {
    pub(super) fn new(session: &Rc<Session>) -> Self {
        Self { session: Rc::clone(session), entries: Vec::new() }
    }

    pub(super) fn push(&mut self, stream: StreamId, id: u64, encoding: Option<Encoding>) {
        self.entries.push(Entry { stream, id, encoding });
    }

    /// The client does not wait for this any more, if it did.
    pub(super) fn forget(&mut self, stream: StreamId) {
        let Some(place) = self.entries.iter().position(|entry| entry.stream == stream) else { return };
        let entry = self.entries.remove(place);
        if let Some(source) = &self.session.worker.settings.options.later {
            source.forget(entry.id);
        }
    }

    /// Sends the answers that are there. The task that polls is woken for the others.
    pub(super) fn answer(&mut self, cx: &Context<'_>, rests: &mut Vec<(StreamId, Bytes)>) {
        let Self { session, entries } = self;
        let worker = &session.worker;
        let Some(source) = &worker.settings.options.later else { return };
        entries.retain(|Entry { stream, id, encoding }| {
            let mut take = |reply: Reply<'_>| match (reply, *encoding) {
                (reply, Some(encoding)) if reply.len() >= COMPRESS_MIN => {
                    let response = reply.into_response();
                    worker.count_instant(response.status());
                    stream::answer(session, *stream, compress::apply(response, encoding, false, None));
                }
                (Reply::Body { status, fields, body }, _) => {
                    worker.count_instant(status);
                    rests.extend(send(session, *stream, status, fields, body));
                }
                (Reply::Response(response), _) => {
                    worker.count_instant(response.status());
                    stream::answer(session, *stream, std::future::ready(response));
                }
            };
            source.answer(*id, cx, &mut take) == Poll::Pending
        });
    }
}

/// Sends a small answer; gives what there is no room for.
fn send(
    session: &Session,
    stream: StreamId,
    status: StatusCode,
    fields: &str,
    body: &[u8],
) -> Option<(StreamId, Bytes)> {
    let Session { worker, shared, .. } = session;
    let (clock, mut length) = (worker.clock.borrow(), itoa::Buffer::new());
    let fields = fields.lines().filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()));
    let date = Field::new(b"date", clock.date());
    let length = Field::once(b"content-length", length.format(body.len()).as_bytes());
    // A client that is gone need not be told.
    shared.sending().send_head(stream, status.as_u16(), fields.chain([date, length]), body.is_empty()).ok()?;
    let sent = if body.is_empty() { 0 } else { shared.sending().send_data(stream, body, true).ok()? };
    (sent < body.len()).then(|| (stream, Bytes::copy_from_slice(&body[sent..])))
}

impl Drop for Laters {
    /// The client has gone: its answers are nobody's.
    fn drop(&mut self) {
        if let Some(source) = &self.session.worker.settings.options.later {
            self.entries.iter().for_each(|entry| source.forget(entry.id));
        }
    }
}
