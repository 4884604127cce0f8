//! Bodies on their way from one protocol to the other.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use tonic::Status;

use super::codec::Messages;
use super::error;
use crate::engine::inbound::Inbound;
use crate::engine::web::Bounded;
use crate::tuning::MAX_MESSAGE;

/// The flag of an envelope whose message is compressed.
const PACKED: u8 = 1;

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

/// Envelopes that come in pieces.
#[derive(Default)]
struct Envelopes(BytesMut);

impl Envelopes {
    /// The next whole one.
    fn next(&mut self) -> Result<Option<(u8, Bytes)>, Status> {
        let Some((head, _)) = self.0.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let flags = head[0];
        if length > MAX_MESSAGE {
            return Err(Status::resource_exhausted(format!("a message of {length} bytes; the most is {MAX_MESSAGE}")));
        }
        if self.0.len() < HEAD + length {
            return Ok(None);
        }
        self.0.advance(HEAD);
        Ok(Some((flags, self.0.split_to(length).freeze())))
    }
}

/// The one message of a unary request, for which there is no envelope before all of it is there.
pub(super) struct ToUnary {
    body: Inbound,
    messages: Messages,
    is_packed: bool,
    read: BytesMut,
    is_over: bool,
}

impl ToUnary {
    pub(super) fn new(body: Inbound, messages: Messages, is_packed: bool) -> Self {
        Self { body, messages, is_packed, read: BytesMut::new(), is_over: false }
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
                    if this.read.len() + data.len() > MAX_MESSAGE {
                        this.is_over = true;
                        let what = format!("a message of more than {MAX_MESSAGE} bytes");
                        return Poll::Ready(Some(Err(Status::resource_exhausted(what))));
                    }
                    this.read.extend_from_slice(&data);
                }
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => {
                    this.is_over = true;
                    let message = this.messages.request(this.read.split().freeze());
                    let flags = if this.is_packed { PACKED } else { 0 };
                    return Poll::Ready(Some(message.map(|message| Frame::data(envelope(flags, &message)))));
                }
            }
        }
        Poll::Ready(None)
    }
}

/// The messages of a stream's request. Their envelopes are gRPC's.
pub(super) struct ToStream {
    body: Inbound,
    messages: Messages,
    read: Envelopes,
    is_over: bool,
}

impl ToStream {
    pub(super) fn new(body: Inbound, messages: Messages) -> Self {
        Self { body, messages, read: Envelopes::default(), is_over: false }
    }

    fn end(&mut self, status: Status) -> Polled {
        self.is_over = true;
        Poll::Ready(Some(Err(status)))
    }
}

impl Body for ToStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if this.messages.are_plain() {
            return Pin::new(&mut this.body).poll_frame(cx);
        }
        while !this.is_over {
            match this.read.next() {
                Ok(Some((0, message))) => match this.messages.request(message) {
                    Ok(message) => return Poll::Ready(Some(Ok(Frame::data(envelope(0, &message))))),
                    Err(status) => return this.end(status),
                },
                Ok(Some((flags, _))) => {
                    return this.end(Status::internal(format!("an envelope's flags are {flags}")));
                }
                Ok(None) => {}
                Err(status) => return this.end(status),
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.read.0.extend_from_slice(&data);
                    }
                }
                Some(Err(status)) => return this.end(status),
                None if this.read.0.is_empty() => this.is_over = true,
                None => return this.end(Status::internal("the stream ends within a message")),
            }
        }
        Poll::Ready(None)
    }
}

/// The messages of a stream's answer, and behind them its trailers in an envelope.
pub(super) struct FromStream {
    body: Bounded,
    messages: Messages,
    read: Envelopes,
    /// The end, if it is known.
    ended: Option<Bytes>,
    is_over: bool,
}

impl FromStream {
    pub(super) fn new(body: Bounded, messages: Messages, ended: Option<Bytes>) -> Self {
        Self { body, messages, read: Envelopes::default(), ended, is_over: false }
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
            if !this.messages.are_plain() {
                match this.read.next().and_then(|next| next.map(|(_, bytes)| this.messages.answer(bytes)).transpose()) {
                    Ok(Some(message)) => return Poll::Ready(Some(Ok(Frame::data(envelope(0, &message))))),
                    Ok(None) => {}
                    Err(status) => return this.fail(&status),
                }
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if this.messages.are_plain() => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Ok(data) => this.read.0.extend_from_slice(&data),
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

/// The one message of a unary answer, whether it is compressed, and the trailers.
pub(super) async fn collect(mut body: Bounded) -> (Option<(bool, Bytes)>, HeaderMap) {
    let (mut read, mut trailers) = (Envelopes::default(), HeaderMap::new());
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => read.0.extend_from_slice(&data),
            Ok(Err(frame)) => trailers = frame.into_trailers().unwrap_or_default(),
            Err(status) => {
                let mut trailers = HeaderMap::new();
                // Without room for the status there is none, which is an error too.
                let _ = status.add_header(&mut trailers);
                return (None, trailers);
            }
        }
    }
    // Answers are not bounded here: they are what the service has made.
    let message = read.0.split_first_chunk::<HEAD>().map(|(head, _)| head[0] & PACKED != 0);
    (message.map(|is_packed| (is_packed, read.0.split_off(HEAD).freeze())), trailers)
}
