//! Streams of one direction: the control stream, and QPACK's two.
//!
//! h3 reads neither of QPACK's streams: a client's bytes there would fill QUIC's windows for as long as the connection
//! lasts. It has no dynamic table in either direction, so there is next to nothing that may be said.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use h3::error::Code;
use quinn::{ConnectionError, ReadError, RecvStream};

use super::bounds::Number;
use super::wire::{Shared, Wait, code};

/// Types of streams (RFC 9114 section 6.2, RFC 9204 section 4.2).
pub(super) const CONTROL: u8 = 0;
const PUSH: u64 = 1;
const ENCODER: u64 = 2;
const DECODER: u64 = 3;

/// Bytes of a number in an instruction, of which none needs more than 62 bits.
const NUMBER_MAX: u8 = 10;

/// The client's streams of one direction, but for the control stream.
#[derive(Default)]
pub(super) struct Asides {
    next: Option<Wait<Result<RecvStream, ConnectionError>>>,
    /// Those whose type has not come yet: no more than may be open.
    begun: Vec<Begun>,
    encoder: Option<Listener>,
    decoder: Option<Listener>,
}

impl Asides {
    /// Looks after the streams; ready with the control stream behind its type, as often as there is one.
    ///
    /// # Errors
    /// When the connection has ended, also because of what was said here.
    pub(super) fn poll_control(
        &mut self,
        shared: &Arc<Shared>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionError>> {
        while let Poll::Ready(stream) = self.poll_accept(shared, cx) {
            self.begun.push(Begun { stream: stream?, kind: Number::default() });
            // A client may open any number of streams that mean nothing.
            shared.spend_aside();
        }
        let mut at = 0;
        while let Some(begun) = self.begun.get_mut(at) {
            let Poll::Ready(kind) = begun.poll_kind(cx) else {
                at += 1;
                continue;
            };
            let stream = self.begun.swap_remove(at).stream;
            match kind? {
                Some(kind) if kind == u64::from(CONTROL) => return Poll::Ready(Ok(stream)),
                Some(kind) => self.take(kind, stream).map_err(|code| ended(shared, code))?,
                // A stream may end before it says what it is (RFC 9114 section 6.2).
                None => {}
            }
        }
        for listener in [&mut self.encoder, &mut self.decoder].into_iter().flatten() {
            if let Poll::Ready(end) = listener.poll_end(shared, cx) {
                return Poll::Ready(Err(end));
            }
        }
        Poll::Pending
    }

    fn poll_accept(&mut self, shared: &Arc<Shared>, cx: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionError>> {
        let next = self.next.get_or_insert_with(|| {
            let conn = shared.conn.clone();
            Box::pin(async move { conn.accept_uni().await })
        });
        let accepted = ready!(next.as_mut().poll(cx));
        self.next = None;
        Poll::Ready(accepted)
    }

    /// Takes a stream of this type; the code with which the connection ends if there must be none.
    fn take(&mut self, kind: u64, mut stream: RecvStream) -> Result<(), Code> {
        let place = match kind {
            ENCODER => &mut self.encoder,
            DECODER => &mut self.decoder,
            // A server pushes, and a client does not.
            PUSH => return Err(Code::H3_STREAM_CREATION_ERROR),
            _ => {
                // One that has ended already need not be stopped.
                let _ = stream.stop(code(Code::H3_STREAM_CREATION_ERROR.value()));
                return Ok(());
            }
        };
        let instructions = Instructions { is_encoder: kind == ENCODER, number: 0 };
        match place.replace(Listener { stream, instructions }) {
            None => Ok(()),
            Some(_) => Err(Code::H3_STREAM_CREATION_ERROR),
        }
    }
}

/// Ends a connection; how that is seen here.
fn ended(shared: &Shared, code: Code) -> ConnectionError {
    shared.close(code, b"");
    ConnectionError::LocallyClosed
}

/// The next chunk of a stream; `None` if it is over, however.
fn poll_chunk(
    stream: &mut RecvStream,
    most: usize,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<quinn::Chunk>, ConnectionError>> {
    // quinn keeps whom to wake, not this future.
    Poll::Ready(match ready!(pin!(stream.read_chunk(most, true)).poll(cx)) {
        Ok(chunk) => Ok(chunk),
        Err(ReadError::ConnectionLost(error)) => Err(error),
        Err(
            ReadError::Reset(_) | ReadError::ClosedStream | ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected,
        ) => Ok(None),
    })
}

/// A stream whose type has not come yet.
struct Begun {
    stream: RecvStream,
    kind: Number,
}

impl Begun {
    /// The type; `None` when the stream has ended before.
    fn poll_kind(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>> {
        loop {
            let Some(chunk) = ready!(poll_chunk(&mut self.stream, 1, cx))? else { return Poll::Ready(Ok(None)) };
            if let Some(kind) = chunk.bytes.iter().find_map(|byte| self.kind.digit(*byte)) {
                return Poll::Ready(Ok(Some(kind)));
            }
        }
    }
}

/// A stream of QPACK.
struct Listener {
    stream: RecvStream,
    instructions: Instructions,
}

impl Listener {
    /// Reads what has come. It ends with the connection only: its own end is the connection's (RFC 9204 section 4.2).
    fn poll_end(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        loop {
            let heard = match ready!(poll_chunk(&mut self.stream, usize::MAX, cx)) {
                Ok(Some(chunk)) => {
                    // Requests are cancelled as often as they are made.
                    let is_encoder = self.instructions.is_encoder;
                    let spend = || if is_encoder { shared.spend_aside() } else { shared.spend(1) };
                    self.instructions.hear(&chunk.bytes, spend)
                }
                Ok(None) => Err(Code::H3_CLOSED_CRITICAL_STREAM),
                Err(error) => return Poll::Ready(error),
            };
            if let Err(code) = heard {
                return Poll::Ready(ended(shared, code));
            }
        }
    }
}

/// Instructions to a QPACK without a dynamic table.
#[derive(Debug)]
struct Instructions {
    is_encoder: bool,
    /// Bytes of a number that goes on.
    number: u8,
}

impl Instructions {
    /// Takes what has come; `spend` says whether another instruction is still allowed.
    fn hear(&mut self, bytes: &[u8], spend: impl Fn() -> bool) -> Result<(), Code> {
        let wrong = if self.is_encoder { Code::QPACK_ENCODER_STREAM_ERROR } else { Code::QPACK_DECODER_STREAM_ERROR };
        for byte in bytes {
            self.number = match (self.number, self.is_encoder, *byte) {
                // Set Dynamic Table Capacity: to 0, as it is (RFC 9204 section 4.3.1).
                (0, true, 0x20) => 0,
                // Stream Cancellation (section 4.4.2), whose number goes on behind six bits that are set (RFC 7541 section 5.1).
                (0, false, 0x7f) => 1,
                (0, false, 0x40..0x7f) => 0,
                (1..NUMBER_MAX, _, 0x80..) => self.number + 1,
                (1..=NUMBER_MAX, _, ..0x80) => 0,
                _ => return Err(wrong),
            };
            if self.number == 0 && !spend() {
                return Err(Code::H3_EXCESSIVE_LOAD);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn instructions() {
        // Feeds the bytes in pieces of every size, where so many instructions are allowed.
        let check = |is_encoder, bytes: &[u8], allowed: u32, expected: Result<(), Code>| {
            for size in 1..=bytes.len() {
                let (mut instructions, spent) = (Instructions { is_encoder, number: 0 }, Cell::new(0));
                let spend = || {
                    spent.set(spent.get() + 1);
                    spent.get() <= allowed
                };
                let found = bytes.chunks(size).try_for_each(|piece| instructions.hear(piece, spend));
                assert_eq!(found, expected, "{bytes:x?} in pieces of {size}");
            }
        };
        check(true, &[0x20, 0x20], 2, Ok(()));
        check(true, &[0x20, 0x20, 0x20], 2, Err(Code::H3_EXCESSIVE_LOAD));
        // A capacity, an insertion, one with a name, a duplicate.
        for wrong in [&[0x21][..], &[0x3f, 0], &[0xc0, 0], &[0x41, b'a', 0], &[0]] {
            check(true, wrong, 9, Err(Code::QPACK_ENCODER_STREAM_ERROR));
        }
        check(false, &[0x40, 0x7e, 0x7f, 0, 0x7f, 0x80, 0xff, 1, 0x44], 5, Ok(()));
        check(false, &[&[0x7f][..], &[0xff; 9], &[1]].concat(), 1, Ok(()));
        check(false, &[&[0x7f][..], &[0xff; 10]].concat(), 1, Err(Code::QPACK_DECODER_STREAM_ERROR));
        check(false, &[0x40, 0x7f, 0x80, 1, 0x40], 2, Err(Code::H3_EXCESSIVE_LOAD));
        // An acknowledgement, an increment, and one by nothing.
        for wrong in [&[0x81][..], &[1], &[0]] {
            check(false, wrong, 9, Err(Code::QPACK_DECODER_STREAM_ERROR));
        }
    }
}
