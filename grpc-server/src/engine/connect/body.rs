//! Bodies on their way from one protocol to the other.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use tonic::Status;

use super::codec::Json;
use super::error;
use crate::engine::inbound::Inbound;
use crate::engine::web::Bounded;

/// The flag of an envelope whose message is compressed.
pub(super) const PACKED: u8 = 1;

/// The flag of the envelope that ends a stream.
pub(super) const END: u8 = 2;

/// Bytes in front of a message: flags and its length.
const HEAD: usize = 5;

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A message in its envelope.
pub(super) fn envelope(flags: u8, message: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEAD + message.len());
    bytes.put_u8(flags);
    bytes.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    bytes.put_slice(message);
    bytes.freeze()
}

/// A body of these bytes.
pub(super) fn first(bytes: Bytes) -> Once {
    Once(Some(bytes))
}

/// See [`first`].
pub(super) struct Once(Option<Bytes>);

impl Body for Once {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled {
        Poll::Ready(self.0.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// A service's own messages are not bounded here.
const OURS: Bounds = Bounds { message: usize::MAX, takes_many: true };

/// How many bytes a message may have, and how many messages a call.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) message: usize,
    /// Whether the method takes any number of messages, and not exactly one.
    pub(super) takes_many: bool,
}

impl Bounds {
    /// Whether another message, of this length, may come after so many.
    fn admit(self, length: usize, before: u64) -> Result<(), Status> {
        if length > self.message {
            return Err(Status::resource_exhausted(format!(
                "a message of {length} bytes; the most is {}",
                self.message
            )));
        }
        if before > 0 && !self.takes_many {
            return Err(Status::unimplemented("the method takes one message, and more have come"));
        }
        Ok(())
    }

    /// Whether a call may end after so many.
    fn close(self, count: u64) -> Result<(), Status> {
        if count == 0 && !self.takes_many {
            return Err(Status::unimplemented("the method takes a message, and none has come"));
        }
        Ok(())
    }
}

fn length_of(head: [u8; HEAD]) -> usize {
    u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize
}

/// Envelopes that come in pieces.
#[derive(Default)]
struct Envelopes {
    bytes: BytesMut,
    count: u64,
}

impl Envelopes {
    /// The next whole one.
    fn next(&mut self, bounds: Bounds) -> Result<Option<(u8, Bytes)>, Status> {
        let Some((head, _)) = self.bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let (flags, length) = (head[0], length_of(*head));
        bounds.admit(length, self.count)?;
        if self.bytes.len() < HEAD + length {
            return Ok(None);
        }
        self.bytes.advance(HEAD);
        self.count += 1;
        Ok(Some((flags, self.bytes.split_to(length).freeze())))
    }
}

/// Envelopes that go by: only their heads are looked at.
#[derive(Default)]
struct Passing {
    head: [u8; HEAD],
    /// Bytes of the head that have come.
    known: usize,
    /// Bytes of the message that have not.
    left: usize,
    count: u64,
}

impl Passing {
    /// Looks at a piece.
    ///
    /// # Errors
    /// When an envelope in it may not pass, with the number of bytes that are before it.
    fn look(&mut self, piece: &[u8], bounds: Bounds) -> Result<(), (usize, Status)> {
        let mut at = 0;
        while at < piece.len() {
            let rest = piece.len() - at;
            if self.left > 0 {
                let part = rest.min(self.left);
                (self.left, at) = (self.left - part, at + part);
                continue;
            }
            let part = rest.min(HEAD - self.known);
            self.head[self.known..self.known + part].copy_from_slice(&piece[at..at + part]);
            self.known += part;
            if self.known == HEAD {
                let length = length_of(self.head);
                bounds.admit(length, self.count).map_err(|status| (at, status))?;
                (self.known, self.left, self.count) = (0, length, self.count + 1);
            }
            at += part;
        }
        Ok(())
    }
}

/// The one message of a unary request, for which there is no envelope before all of it is there.
pub(super) struct ToUnary {
    body: Inbound,
    json: Option<Json>,
    is_packed: bool,
    most: usize,
    read: BytesMut,
    is_over: bool,
}

impl ToUnary {
    pub(super) fn new(body: Inbound, json: Option<Json>, is_packed: bool, most: usize) -> Self {
        Self { body, json, is_packed, most, read: BytesMut::new(), is_over: false }
    }

    fn translated(&mut self) -> Result<Bytes, Status> {
        let message = self.read.split().freeze();
        // An empty message comes as nothing, even if its header says that it is compressed.
        let flags = if self.is_packed && !message.is_empty() { PACKED } else { 0 };
        match &self.json {
            None => Ok(envelope(flags, &message)),
            Some(json) => Ok(envelope(0, &json.request(flags, message)?)),
        }
    }
}

impl Body for ToUnary {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        while !this.is_over {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if this.read.len() + data.len() > this.most {
                        this.is_over = true;
                        let what = format!("a message of more than {} bytes", this.most);
                        return Poll::Ready(Some(Err(Status::resource_exhausted(what))));
                    }
                    this.read.extend_from_slice(&data);
                }
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => {
                    this.is_over = true;
                    return Poll::Ready(Some(this.translated().map(Frame::data)));
                }
            }
        }
        Poll::Ready(None)
    }
}

/// The messages of a stream's request. Their envelopes are gRPC's.
pub(super) struct ToStream {
    body: Inbound,
    bounds: Bounds,
    passing: Passing,
    /// The error that comes behind the bytes that were passed on.
    failed: Option<Status>,
    is_over: bool,
}

impl ToStream {
    pub(super) fn new(body: Inbound, bounds: Bounds) -> Self {
        Self { body, bounds, passing: Passing::default(), failed: None, is_over: false }
    }
}

impl Body for ToStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if let Some(status) = this.failed.take() {
            this.is_over = true;
            return Poll::Ready(Some(Err(status)));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                let mut data = match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                };
                match this.passing.look(&data, this.bounds) {
                    Ok(()) => {}
                    Err((0, status)) => {
                        this.is_over = true;
                        return Poll::Ready(Some(Err(status)));
                    }
                    Err((good, status)) => {
                        data.truncate(good);
                        this.failed = Some(status);
                    }
                }
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Err(status)) => Poll::Ready(Some(Err(status))),
            None => {
                this.is_over = true;
                let closed = this.bounds.close(this.passing.count);
                Poll::Ready(closed.err().map(Err))
            }
        }
    }
}

/// The messages of a stream's request in JSON.
pub(super) struct ToJsonStream {
    body: Inbound,
    json: Json,
    bounds: Bounds,
    read: Envelopes,
    is_over: bool,
}

impl ToJsonStream {
    pub(super) fn new(body: Inbound, json: Json, bounds: Bounds) -> Self {
        Self { body, json, bounds, read: Envelopes::default(), is_over: false }
    }

    fn end(&mut self, status: Status) -> Polled {
        self.is_over = true;
        Poll::Ready(Some(Err(status)))
    }
}

impl Body for ToJsonStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        while !this.is_over {
            let next = this.read.next(this.bounds);
            match next.and_then(|next| next.map(|(flags, bytes)| this.json.request(flags, bytes)).transpose()) {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(Frame::data(envelope(0, &message))))),
                Ok(None) => {}
                Err(status) => return this.end(status),
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.read.bytes.extend_from_slice(&data);
                    }
                }
                Some(Err(status)) => return this.end(status),
                None if !this.read.bytes.is_empty() => {
                    return this.end(Status::internal("the stream ends within a message"));
                }
                None => match this.bounds.close(this.read.count) {
                    Ok(()) => this.is_over = true,
                    Err(status) => return this.end(status),
                },
            }
        }
        Poll::Ready(None)
    }
}

/// The messages of a stream's answer, and behind them its trailers in an envelope.
pub(super) struct FromStream {
    body: Bounded,
    json: Option<Json>,
    read: Envelopes,
    /// The end, if it is known.
    ended: Option<Bytes>,
    is_over: bool,
}

impl FromStream {
    pub(super) fn new(body: Bounded, json: Option<Json>, ended: Option<Bytes>) -> Self {
        Self { body, json, read: Envelopes::default(), ended, is_over: false }
    }

    /// The next message that is translated.
    fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(json) = &self.json else { return Ok(None) };
        let Some((flags, bytes)) = self.read.next(OURS)? else { return Ok(None) };
        Ok(Some(envelope(flags, &json.answer(flags, bytes)?)))
    }

    fn end(&mut self, end: &Bytes) -> Polled {
        self.is_over = true;
        Poll::Ready(Some(Ok(Frame::data(envelope(END, end)))))
    }

    fn fail(&mut self, status: &Status) -> Polled {
        self.end(&error::end(Some(status), &HeaderMap::new()))
    }
}

impl Body for FromStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if let Some(ended) = this.ended.take() {
            return this.end(&ended);
        }
        while !this.is_over {
            match this.next() {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(Frame::data(message)))),
                Ok(None) => {}
                Err(status) => return this.fail(&status),
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if this.json.is_none() => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Ok(data) => this.read.bytes.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        let status = Status::from_header_map(&trailers);
                        return this.end(&error::end(status.as_ref(), &trailers));
                    }
                },
                Some(Err(status)) => return this.fail(&status),
                None => return this.fail(&Status::unknown("the call has no status")),
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

/// The one message of a unary answer with its flags, and the trailers.
pub(super) async fn collect(mut body: Bounded) -> (Option<(u8, Bytes)>, HeaderMap) {
    let (mut read, mut trailers) = (BytesMut::new(), HeaderMap::new());
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => read.extend_from_slice(&data),
            Ok(Err(frame)) => trailers = frame.into_trailers().unwrap_or_default(),
            Err(status) => {
                let mut trailers = HeaderMap::new();
                // Without room for the status there is none, which is an error too.
                let _ = status.add_header(&mut trailers);
                return (None, trailers);
            }
        }
    }
    let flags = read.split_first_chunk::<HEAD>().map(|(head, _)| head[0]);
    (flags.map(|flags| (flags, read.split_off(HEAD).freeze())), trailers)
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    /// However a request is cut in pieces, the envelopes before the one that is too much pass.
    #[test]
    fn only_envelopes_within_bounds_pass() {
        let check = |takes_many, lengths: &[usize], expected: Option<(usize, Code)>| {
            let messages: Vec<Bytes> = lengths.iter().map(|length| envelope(0, &vec![7; *length].into())).collect();
            let all = messages.concat();
            for size in 1..=all.len() {
                let (mut passing, mut passed) = (Passing::default(), 0);
                let bounds = Bounds { message: 10, takes_many };
                let failed = all.chunks(size).find_map(|piece| match passing.look(piece, bounds) {
                    Ok(()) => {
                        passed += piece.len();
                        None
                    }
                    Err((good, status)) => {
                        passed += good;
                        Some(status)
                    }
                });
                let found = failed.map(|status| status.code());
                assert_eq!(found, expected.map(|(_, code)| code), "{lengths:?} by {size}");
                if let Some((whole, _)) = expected {
                    // A part of the head that is too much may have passed before it was known.
                    assert!((whole..whole + HEAD).contains(&passed), "{lengths:?} by {size}: {passed}");
                }
                if found.is_none() {
                    assert_eq!(passing.count, lengths.len() as u64, "{lengths:?} by {size}");
                }
            }
        };
        check(true, &[0, 10, 3], None);
        check(true, &[3, 11], Some((8, Code::ResourceExhausted)));
        check(true, &[11], Some((0, Code::ResourceExhausted)));
        check(false, &[3], None);
        check(false, &[3, 0], Some((8, Code::Unimplemented)));
    }
}
