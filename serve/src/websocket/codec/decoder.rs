//! From a client's bytes to events.

use std::borrow::Cow;
use std::mem;

use super::deflate::Inflater;
use super::frame::{Failure, Header, Opcode, close_code_is_valid, mask};
use super::utf8::Utf8;

/// Bytes that a long message gets room for before they come: its announced length is only a claim.
const ROOM: usize = 64 * 1024;

/// Bounds of what a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a message, also after decompression; beyond, the close code is 1009.
    pub message: usize,
    /// Bytes of a frame; beyond, the close code is 1009.
    pub frame: usize,
    /// Frames without a mask are accepted, which RFC 6455 forbids.
    pub accepts_unmasked: bool,
}

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Binary(Cow<'a, [u8]>),
    /// A ping, to be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The client's close frame, with code and reason if it has them. Nothing follows.
    Close(Option<(u16, &'a str)>),
}

/// The frames of one client.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// With permessage-deflate.
    inflater: Option<Box<Inflater>>,
    /// The frame whose payload has not come whole.
    frame: Option<Frame>,
    /// The message whose last frame has not come whole.
    message: Option<Message>,
    is_closed: bool,
}

#[derive(Debug)]
struct Frame {
    is_final: bool,
    mask: Option<[u8; 4]>,
    left: u64,
}

#[derive(Debug)]
struct Message {
    is_text: bool,
    is_compressed: bool,
    payload: Vec<u8>,
    utf8: Utf8,
}

/// The result of one step.
enum Found {
    /// More bytes have to come.
    Nothing,
    /// A part of a message.
    Part,
    /// A whole frame of this many bytes, at the end of what the step used: a control frame, or a message that was not compressed.
    Frame(Opcode, usize),
    /// A message, which was gathered.
    Message(Message),
}

impl Decoder {
    /// For a new connection. `inflater` if permessage-deflate was agreed on.
    pub fn new(limits: Limits, inflater: Option<Inflater>) -> Self {
        Self { limits, inflater: inflater.map(Box::new), frame: None, message: None, is_closed: false }
    }

    /// Reads up to the next event. Returns how many bytes of `input` were used, and the event, if there is one. Bytes that were not used
    /// are to be there again at the next call, with what has come behind them.
    ///
    /// # Errors
    /// When the client breaks the protocol or a limit. The decoder must not be asked again.
    #[inline]
    pub fn next<'a>(&'a mut self, input: &'a mut [u8]) -> Result<(usize, Option<Event<'a>>), Failure> {
        let mut used = 0;
        loop {
            let (step, found) = self.step(&mut input[used..])?;
            used += step;
            match found {
                Found::Nothing => return Ok((used, None)),
                Found::Part => {}
                Found::Frame(opcode, len) => {
                    let event = event(opcode, &input[used - len..used])?;
                    self.is_closed = matches!(event, Event::Close(_));
                    return Ok((used, Some(event)));
                }
                Found::Message(message) => return Ok((used, Some(self.complete(message)?))),
            }
        }
    }

    #[inline]
    fn step(&mut self, input: &mut [u8]) -> Result<(usize, Found), Failure> {
        if self.is_closed {
            return Ok((input.len(), Found::Nothing));
        }
        if self.frame.is_some() {
            return self.gather(input);
        }
        let Some(header) = Header::parse(input)? else { return Ok((0, Found::Nothing)) };
        self.check(&header)?;
        let Header { is_final, is_compressed, opcode, mask: key, head, len } = header;
        let whole = usize::try_from(len).ok().and_then(|len| input[head..].get_mut(..len));
        let is_alone = is_final && !is_compressed && opcode != Opcode::Continuation;
        match whole {
            Some(payload) if is_alone => {
                if let Some(key) = key {
                    mask(payload, key);
                }
                Ok((head + payload.len(), Found::Frame(opcode, payload.len())))
            }
            // A control frame is short: it waits for the rest.
            _ if opcode.is_control() => Ok((0, Found::Nothing)),
            _ => {
                if opcode != Opcode::Continuation {
                    let (is_text, utf8) = (opcode == Opcode::Text, Utf8::default());
                    self.message = Some(Message { is_text, is_compressed, payload: Vec::new(), utf8 });
                }
                self.frame = Some(Frame { is_final, mask: key, left: len });
                let (used, found) = self.gather(&mut input[head..])?;
                Ok((head + used, found))
            }
        }
    }

    /// This frame may come now.
    #[inline]
    fn check(&self, header: &Header) -> Result<(), Failure> {
        if header.mask.is_none() && !self.limits.accepts_unmasked {
            return Err(Failure::protocol("a frame is not masked"));
        }
        let may_be_compressed = self.inflater.is_some() && matches!(header.opcode, Opcode::Text | Opcode::Binary);
        if header.is_compressed && !may_be_compressed {
            return Err(Failure::protocol("a reserved bit is set"));
        }
        if header.opcode.is_control() {
            return Ok(());
        }
        match (&self.message, header.opcode) {
            (None, Opcode::Continuation) => return Err(Failure::protocol("there is no message to continue")),
            (Some(_), Opcode::Text | Opcode::Binary) => {
                return Err(Failure::protocol("a message begins within another"));
            }
            _ => {}
        }
        let before = self.message.as_ref().map_or(0, |message| message.payload.len());
        let room = self.limits.message.saturating_sub(before).min(self.limits.frame);
        if header.len > room as u64 {
            return Err(Failure::size("the message is larger than allowed"));
        }
        Ok(())
    }

    /// Takes what has come of a frame.
    fn gather(&mut self, input: &mut [u8]) -> Result<(usize, Found), Failure> {
        let (Some(frame), Some(message)) = (&mut self.frame, &mut self.message) else {
            return Ok((0, Found::Nothing));
        };
        let count = frame.left.min(input.len() as u64) as usize;
        let piece = &mut input[..count];
        if let Some(key) = &mut frame.mask {
            mask(piece, *key);
            key.rotate_left(count % 4);
        }
        if message.is_text && !message.is_compressed && !message.utf8.push(piece) {
            return Err(NO_UTF8);
        }
        if message.payload.capacity() == 0 {
            message.payload.reserve(frame.left.min(ROOM as u64) as usize);
        }
        message.payload.extend_from_slice(piece);
        frame.left -= count as u64;
        if frame.left > 0 {
            return Ok((count, Found::Nothing));
        }
        let is_final = frame.is_final;
        self.frame = None;
        let found = if is_final { self.message.take().map_or(Found::Nothing, Found::Message) } else { Found::Part };
        Ok((count, found))
    }

    /// The event of a message that was gathered.
    fn complete(&mut self, message: Message) -> Result<Event<'static>, Failure> {
        let Message { is_text, is_compressed, mut payload, .. } = message;
        if let (true, Some(inflater)) = (is_compressed, &mut self.inflater) {
            payload = inflater.inflate(&mem::take(&mut payload), self.limits.message)?;
        }
        if !is_text {
            return Ok(Event::Binary(Cow::Owned(payload)));
        }
        String::from_utf8(payload).map(|text| Event::Text(Cow::Owned(text))).map_err(|_| NO_UTF8)
    }
}

const NO_UTF8: Failure = Failure::data("the text is not UTF-8");

/// The event of a frame that came whole, and that is a message by itself or none.
#[inline]
fn event(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, Failure> {
    Ok(match opcode {
        Opcode::Text => Event::Text(Cow::Borrowed(std::str::from_utf8(payload).map_err(|_| NO_UTF8)?)),
        Opcode::Binary | Opcode::Continuation => Event::Binary(Cow::Borrowed(payload)),
        Opcode::Ping => Event::Ping(payload),
        Opcode::Pong => Event::Pong(payload),
        Opcode::Close => Event::Close(close(payload)?),
    })
}

fn close(payload: &[u8]) -> Result<Option<(u16, &str)>, Failure> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(None) } else { Err(Failure::protocol("a close code has two bytes")) };
    };
    let code = u16::from_be_bytes(*code);
    if !close_code_is_valid(code) {
        return Err(Failure::protocol("the close code is reserved"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Failure::data("the close reason is not UTF-8"))?;
    Ok(Some((code, reason)))
}
