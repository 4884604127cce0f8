//! Requests that have arrived and are not answered yet.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request};

use super::body::Incoming;
use super::connection::Shared;
use super::pipe::Pipe;
use super::requests::{self, Requests};
use crate::hpack::Fields;
use crate::{Reason, RequestHead, StreamId};

/// The requests of what a connection has read at once, and the way of what else comes to those before them. A request whose body
/// has come with it costs no channel. Between turns there are none, so that the connections of a thread share one.
#[derive(Debug, Default)]
pub struct Arrivals(VecDeque<Arrival>);

/// Among a request's extensions: its fields are more than may come, and those that are here are the first of them. It is to be
/// answered with status 431, or its protocol's equivalent.
#[derive(Clone, Copy, Debug)]
pub struct TooLarge;

#[derive(Debug)]
struct Arrival {
    stream: StreamId,
    request: Request<()>,
    expected: Option<u64>,
    /// Whether the client waits to be told to go on.
    waits: bool,
    /// The first piece of its body.
    piece: Option<Bytes>,
    is_complete: bool,
    /// The rest of its body, the first piece included.
    pipe: Option<Arc<Pipe>>,
}

impl Arrivals {
    /// Takes [`Event::Request`](crate::Event::Request); whether it is a request that `http` knows. Another one is to be reset.
    /// `requests` are the connection's.
    #[must_use]
    pub fn request(&mut self, requests: &mut Requests, stream: StreamId, head: &RequestHead, end: bool) -> bool {
        let Some(request) = requests.make(head) else { return false };
        let expected = head.content_length();
        let waits = !end && head.get(b"expect").is_some_and(|what| what.eq_ignore_ascii_case(b"100-continue"));
        self.0.push_back(Arrival { stream, request, expected, waits, piece: None, is_complete: end, pipe: None });
        true
    }

    /// Takes [`Event::Data`](crate::Event::Data), of which `piece` is a copy; whether it is to be released at once. If not,
    /// `Shared::release` does it when it is read.
    #[must_use]
    pub fn data(&mut self, shared: &Shared, stream: StreamId, piece: Bytes, end: bool) -> bool {
        let Some(arrival) = self.0.iter_mut().rev().find(|arrival| arrival.stream == stream) else {
            let Some(pipe) = shared.pipe(stream) else { return true };
            pipe.push(piece);
            if end {
                pipe.finish(None);
                shared.notify(stream);
            }
            return false;
        };
        arrival.is_complete = end;
        if arrival.pipe.is_none() && arrival.piece.is_none() && end {
            arrival.piece = Some(piece).filter(|piece| !piece.is_empty());
            return true;
        }
        let pipe = arrival.pipe(shared);
        pipe.push(piece);
        if end {
            pipe.finish(None);
        }
        false
    }

    /// Takes [`Event::Trailers`](crate::Event::Trailers).
    pub fn trailers(&mut self, shared: &Shared, stream: StreamId, fields: &Fields) {
        let trailers: HeaderMap = requests::headers(fields.iter());
        if let Some(arrival) = self.0.iter_mut().find(|arrival| arrival.stream == stream) {
            arrival.is_complete = true;
            arrival.pipe(shared).finish(Some(trailers));
        } else if let Some(pipe) = shared.pipe(stream) {
            pipe.finish(Some(trailers));
            shared.notify(stream);
        }
    }

    /// Takes [`Event::TooLarge`](crate::Event::TooLarge); whether it is a request that `http` knows. Another one is to be refused
    /// by the engine. A request that begins so has [`TooLarge`] among its extensions, and so has one whose handler has not begun;
    /// the body of another one ends with [`Reason::ENHANCE_YOUR_CALM`].
    #[must_use]
    pub fn too_large(&mut self, shared: &Shared, stream: StreamId, head: Option<&RequestHead>, end: bool) -> bool {
        if let Some(head) = head {
            let Some(mut request) = requests::once(head) else { return false };
            request.extensions_mut().insert(TooLarge);
            let (expected, waits, is_complete) = (None, false, end);
            self.0.push_back(Arrival { stream, request, expected, waits, piece: None, is_complete, pipe: None });
        } else if let Some(arrival) = self.0.iter_mut().find(|arrival| arrival.stream == stream) {
            arrival.request.extensions_mut().insert(TooLarge);
            arrival.is_complete = true;
            if let Some(pipe) = &arrival.pipe {
                pipe.fail(Reason::ENHANCE_YOUR_CALM);
            }
        } else if let Some(pipe) = shared.pipe(stream) {
            pipe.fail(Reason::ENHANCE_YOUR_CALM);
            shared.notify(stream);
        }
        true
    }

    /// Takes [`Event::Reset`](crate::Event::Reset).
    pub fn reset(&mut self, shared: &Shared, stream: StreamId, reason: Reason) {
        self.0.retain(|arrival| arrival.stream != stream);
        if let Some(pipe) = shared.pipe(stream) {
            pipe.reset(reason);
        }
        shared.notify(stream);
    }

    /// The next request that is to be answered.
    pub fn pop(&mut self, shared: &Shared) -> Option<(StreamId, Request<Incoming>)> {
        let mut arrival = self.0.pop_front()?;
        let body = if arrival.is_complete && arrival.pipe.is_none() {
            Incoming::whole(arrival.piece.take())
        } else {
            let pipe = arrival.pipe(shared);
            if arrival.waits {
                pipe.expect();
            }
            shared.attach(arrival.stream, Arc::clone(&pipe));
            Incoming::of(&pipe)
        };
        Some((arrival.stream, arrival.request.map(|()| body)))
    }

    /// Whether all are answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets them: a client that has broken the protocol gets no answer.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Arrival {
    /// The pipe of the body, which has the first piece in it.
    fn pipe(&mut self, shared: &Shared) -> Arc<Pipe> {
        let first = self.piece.take();
        let expected = self.expected;
        let pipe = self.pipe.get_or_insert_with(|| Pipe::new(shared.releases(), expected));
        first.into_iter().for_each(|piece| pipe.push(piece));
        Arc::clone(pipe)
    }
}
