//! The connection below a WebSocket: its bytes, and messages in both directions. It is shared by the socket, which the application has,
//! and the driver, which runs the application.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};

use axum::Error;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes};
use bytes::{Buf, Bytes, BytesMut};
use server_runtime::{Stream, end_turn};

use crate::engine::output::Output;
use crate::tuning::{GATHER_MAX, READ_BUFFER, TURN_BYTES, WS_MESSAGE_COST};
use crate::websocket::codec::deflate::Deflater;
use crate::websocket::codec::{
    Decoder, Event, Failure, MAX_CONTROL, MAX_REASON, Opcode, close_code_is_valid, put, put_close, put_head,
};

pub(in crate::engine) struct Line {
    /// `None` once the connection is over.
    pub(super) stream: Option<Stream>,
    /// Bytes read and not used up; without room of their own while the connection is idle.
    pub(super) input: BytesMut,
    /// Frames that the socket has not taken.
    output: Output,
    /// Frames of this turn.
    pub(super) out: Vec<u8>,
    decoder: Decoder,
    deflater: Option<Deflater>,
    /// Bytes that may be read before others have their turn.
    turn: usize,
    thread: ThreadId,
    /// The driver runs the application now, and sends its output afterwards.
    pub(super) is_driven: bool,
    /// The client takes no more for now.
    pub(super) is_blocked: bool,
    pub(super) has_sent_close: bool,
    pub(super) has_received_close: bool,
    /// The application receives nothing more.
    has_ended: bool,
    /// The application has dropped its socket.
    pub(super) is_dropped: bool,
    /// The driver's waker, which writes wake.
    pub(super) driver: Waker,
    /// Tasks of the application that wait for the client to take something.
    waiting: Vec<Waker>,
    pub(super) received: u64,
    pub(super) sent: u64,
}

/// The same for both ends. The lock is contended only if the application has taken its socket to another thread.
pub(super) type Shared = Arc<Mutex<Line>>;

pub(super) fn lock(line: &Shared) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    pub(super) fn new(stream: Stream, input: BytesMut, decoder: Decoder, deflater: Option<Deflater>) -> Self {
        Self {
            stream: Some(stream),
            input,
            output: Output::default(),
            out: Vec::new(),
            decoder,
            deflater,
            turn: TURN_BYTES,
            thread: thread::current().id(),
            is_driven: false,
            is_blocked: false,
            has_sent_close: false,
            has_received_close: false,
            has_ended: false,
            is_dropped: false,
            driver: Waker::noop().clone(),
            waiting: Vec::new(),
            received: 0,
            sent: 0,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Bytes that the client has not taken.
    pub(super) fn unsent(&self) -> usize {
        self.out.len() + self.output.len()
    }

    /// The next message. Bytes are read when there is none in the buffer, and the answers to those before are sent first.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        loop {
            if self.has_ended {
                return Poll::Ready(None);
            }
            if self.turn == 0 {
                self.end_turn(cx);
                return Poll::Pending;
            }
            // A client that does not take its answers is not read.
            if self.unsent() > GATHER_MAX && self.flush().is_pending() {
                self.wait(cx);
                return Poll::Pending;
            }
            match self.take() {
                Ok(Some(message)) => {
                    self.turn = self.turn.saturating_sub(WS_MESSAGE_COST);
                    return Poll::Ready(Some(Ok(message)));
                }
                Ok(None) => {}
                Err(failure) => return self.fail(failure),
            }
            if !self.is_blocked {
                // An error is seen by the next write. There may be input yet.
                let _ = self.flush();
            }
            match self.read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => return self.lost(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(Err(error)) => return self.lost(error),
                Poll::Pending => {
                    self.turn = TURN_BYTES;
                    // The driver ends the connection, and is itself woken by what it ends.
                    if !self.driver.will_wake(cx.waker()) {
                        self.wait(cx);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Others have their turn.
    fn end_turn(&mut self, cx: &Context<'_>) {
        self.turn = TURN_BYTES;
        if thread::current().id() == self.thread {
            end_turn(cx);
        } else {
            cx.waker().wake_by_ref();
        }
    }

    /// Reads from the client.
    pub(super) fn read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        if self.input.capacity() - self.input.len() < READ_BUFFER / 8 {
            self.input.reserve(READ_BUFFER);
        }
        let read = tokio_util::io::poll_read_buf(Pin::new(stream), cx, &mut self.input);
        if let Poll::Ready(Ok(count)) = read {
            self.turn = self.turn.saturating_sub(count);
            self.received += count as u64;
        }
        read
    }

    /// The next message in the buffer. A ping and a close frame are answered.
    fn take(&mut self) -> Result<Option<Message>, Failure> {
        if self.input.is_empty() {
            return Ok(None);
        }
        let (used, event) = self.decoder.next(&mut self.input)?;
        let message = event.map(|event| match event {
            Event::Text(Cow::Borrowed(text)) => Message::Text(Utf8Bytes::from(text)),
            Event::Text(Cow::Owned(text)) => Message::Text(Utf8Bytes::from(text)),
            Event::Binary(Cow::Borrowed(bytes)) => Message::Binary(Bytes::copy_from_slice(bytes)),
            Event::Binary(Cow::Owned(bytes)) => Message::Binary(bytes.into()),
            Event::Pong(payload) => Message::Pong(Bytes::copy_from_slice(payload)),
            Event::Ping(payload) => {
                if !self.has_sent_close {
                    put(Opcode::Pong, payload, &mut self.out);
                }
                Message::Ping(Bytes::copy_from_slice(payload))
            }
            Event::Close(reason) => {
                if !mem::replace(&mut self.has_sent_close, true) {
                    put_close(reason.map(|(code, _)| (code, "")), &mut self.out);
                }
                (self.has_received_close, self.has_ended) = (true, true);
                Message::Close(reason.map(|(code, reason)| CloseFrame { code, reason: reason.into() }))
            }
        });
        self.input.advance(used);
        if matches!(message, Some(Message::Ping(_) | Message::Close(_))) && !self.is_driven {
            self.driver.wake_by_ref();
        }
        Ok(message)
    }

    /// The client has broken the protocol: it is told why.
    fn fail(&mut self, failure: Failure) -> Poll<Option<Result<Message, Error>>> {
        self.close(failure.code, failure.reason);
        self.has_ended = true;
        self.input.clear();
        Poll::Ready(Some(Err(Error::new(failure))))
    }

    /// The connection is over.
    pub(super) fn lost(&mut self, error: io::Error) -> Poll<Option<Result<Message, Error>>> {
        self.end();
        Poll::Ready(Some(Err(Error::new(error))))
    }

    /// Gives up the connection. The application sees it at its next call.
    pub(super) fn end(&mut self) {
        (self.stream, self.has_ended, self.is_blocked) = (None, true, false);
        (self.output, self.input) = (Output::default(), BytesMut::new());
        self.out.clear();
        self.wake();
        if !self.is_driven {
            self.driver.wake_by_ref();
        }
    }

    /// Appends a close frame, if there was none.
    pub(super) fn close(&mut self, code: u16, reason: &str) {
        if !mem::replace(&mut self.has_sent_close, true) {
            put_close(Some((code, reason)), &mut self.out);
            if !self.is_driven {
                self.driver.wake_by_ref();
            }
        }
    }

    /// Ready if a message may be sent.
    pub(super) fn poll_ready(&mut self, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        if self.unsent() > GATHER_MAX && self.flush().is_pending() {
            self.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(self.check_open())
    }

    /// Ready unless the client takes no more: what was written is sent when the application receives again or waits.
    pub(super) fn poll_flush(&mut self, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        if self.is_blocked && self.flush().is_pending() {
            self.wait(cx);
            return Poll::Pending;
        }
        match self.stream {
            Some(_) => Poll::Ready(Ok(())),
            None => Poll::Ready(self.check_open()),
        }
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.stream.is_none() {
            return Err(Error::new(io::Error::from(io::ErrorKind::BrokenPipe)));
        }
        if self.has_sent_close {
            return Err(Error::new("a close frame was sent: no message may follow"));
        }
        Ok(())
    }

    /// Appends a message.
    pub(super) fn send(&mut self, message: Message) -> Result<(), Error> {
        self.check_open()?;
        match message {
            Message::Text(text) => self.send_data(Opcode::Text, text.into()),
            Message::Binary(bytes) => self.send_data(Opcode::Binary, bytes),
            Message::Ping(payload) => self.send_control(Opcode::Ping, &payload)?,
            Message::Pong(payload) => self.send_control(Opcode::Pong, &payload)?,
            Message::Close(None) => {
                put_close(None, &mut self.out);
                self.has_sent_close = true;
            }
            Message::Close(Some(CloseFrame { code, reason })) => {
                if !close_code_is_valid(code) || reason.len() > MAX_REASON {
                    let text = format!(
                        "the close frame has code {code} and a reason of {} bytes, expected 1000-1003, 1007-1014 or \
                         3000-4999 and at most {MAX_REASON} bytes",
                        reason.len()
                    );
                    return Err(Error::new(text));
                }
                self.close(code, &reason);
            }
        }
        if !self.is_driven {
            self.driver.wake_by_ref();
        }
        Ok(())
    }

    #[inline]
    fn send_data(&mut self, opcode: Opcode, payload: Bytes) {
        let deflated = self.deflater.as_mut().and_then(|deflater| deflater.deflate(&payload));
        let (payload, is_compressed) = deflated.map_or((payload, false), |deflated| (Bytes::from(deflated), true));
        put_head(opcode, is_compressed, payload.len(), &mut self.out);
        self.output.add(payload, &mut self.out);
    }

    fn send_control(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), Error> {
        if payload.len() > MAX_CONTROL {
            let len = payload.len();
            return Err(Error::new(format!("{opcode:?} has a payload of {len} bytes, expected at most {MAX_CONTROL}")));
        }
        put(opcode, payload, &mut self.out);
        Ok(())
    }

    /// Sends what there is, by one write. Pending if the client does not take all of it: the driver is woken when it takes more.
    pub(super) fn flush(&mut self) -> Poll<()> {
        if self.unsent() == 0 && !self.is_blocked {
            return Poll::Ready(());
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(()) };
        let (mut sent, mut cx) = (0, Context::from_waker(&self.driver));
        let flushed = self.output.flush(&mut cx, stream, &mut self.out, &mut sent);
        self.sent += sent;
        let was_blocked = mem::replace(&mut self.is_blocked, flushed.is_pending());
        if was_blocked && flushed.is_ready() && !self.is_driven {
            // The driver keeps the client's time.
            self.driver.wake_by_ref();
        }
        match flushed {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => self.wake(),
            Poll::Ready(Err(_)) => self.end(),
        }
        Poll::Ready(())
    }

    /// The task is woken when the client has taken what there is.
    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }

    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}
