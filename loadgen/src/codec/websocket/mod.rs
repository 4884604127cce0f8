//! WebSocket (RFC 6455): messages that the server echoes.

mod frame;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::Rng as _;

use self::frame::{Header, OPCODE_BINARY, OPCODE_CLOSE, OPCODE_CONTINUATION, OPCODE_PING, OPCODE_PONG, OPCODE_TEXT};
use super::fifo::{Asked, InFlight};
use super::http1::head;
use super::{Broken, Protocol, Received, shown};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::{Source, Subjects, Template};

/// The text that a server hashes behind the client's key (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The longest answer to the handshake.
const LONGEST_HEAD: usize = 64 << 10;

/// The longest message that is read.
const LONGEST_MESSAGE: u64 = 64 << 20;

/// The longest control frame (section 5.5).
const LONGEST_CONTROL: u64 = 125;

/// The requests to a WebSocket server.
#[derive(Debug)]
pub struct WebSocket {
    /// The handshake up to the key.
    handshake: String,
    message: Template,
    opcode: u8,
    subjects: Subjects,
    verify: bool,
}

/// One connection's state.
#[derive(Debug)]
pub struct WebSocketConnection {
    in_flight: InFlight,
    state: State,
    /// The handshake's key, by which the server shows that it understands.
    key: String,
    /// Answers to the server's pings, and to its farewell.
    unsent: Vec<u8>,
    /// The message so far, where it is looked at, and its length.
    message: Vec<u8>,
    length: u64,
    /// How much of a frame's payload is missing, and whether it is the last of its message.
    left: u64,
    is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been said.
    New,
    /// The handshake's answer is awaited.
    Greeting,
    /// Between two frames.
    Frames,
    /// Within the payload of a message's frame.
    Payload,
    /// The server has said farewell.
    Closing,
}

impl WebSocket {
    /// Messages to a path of a host, with further headers of the handshake.
    ///
    /// # Errors
    /// When what must be echoed does not follow from the request's key, or a header is none.
    pub fn new(
        host: &str,
        path: &str,
        headers: &[(String, String)],
        message: Template,
        binary: bool,
        subjects: Subjects,
        verify: bool,
    ) -> Result<Self, String> {
        if verify && !message.is_determined_by_key() {
            return Err("with --verify a message can hold {key} and {value}, but nothing random".to_owned());
        }
        let mut handshake =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
        for (name, value) in headers {
            let is_line = |text: &str| text.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control());
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') || !is_line(value) {
                return Err(format!("the header is `{name}: {value}`, expected a name and a line of text"));
            }
            handshake.push_str(&format!("{name}: {value}\r\n"));
        }
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(format!("the path is `{path}`, expected one without blanks"));
        }
        handshake.push_str("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
        let opcode = if binary { OPCODE_BINARY } else { OPCODE_TEXT };
        Ok(Self { handshake, message, opcode, subjects, verify })
    }

    /// Reads the handshake's answer, if it is complete, and gives its length.
    fn greet(&self, connection: &mut WebSocketConnection, input: &[u8]) -> Result<usize, Broken> {
        let Some(length) = head::length(input) else {
            if input.len() > LONGEST_HEAD || !b"HTTP/1.".starts_with(&input[..input.len().min(7)]) {
                return Err(unexpected("an answer to the handshake", input));
            }
            return Ok(0);
        };
        let head = head::unfolded(&input[..length]);
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.lines();
        let status = lines.next().unwrap_or_default();
        if status.split(' ').nth(1) != Some("101") {
            return Err(Broken {
                failure: Failure::Rejected,
                example: format!("handshake: {}", shown(status.as_bytes())),
            });
        }
        let accept = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("sec-websocket-accept").then(|| value.trim().to_owned())
        });
        if accept.as_deref() != Some(&*accepted(&connection.key)) {
            return Err(unexpected("a Sec-WebSocket-Accept that fits the key", accept.unwrap_or_default().as_bytes()));
        }
        connection.state = State::Frames;
        Ok(length)
    }

    /// Reads one frame's head, and with it a whole control frame. Gives how much was read; nothing if more must come.
    fn head(&self, connection: &mut WebSocketConnection, input: &[u8]) -> Result<usize, Broken> {
        let Some(header) = Header::parse(input).map_err(|expected| unexpected(expected, input))? else {
            return Ok(0);
        };
        let Header { opcode, is_last, length, head, .. } = header;
        if opcode < OPCODE_CLOSE {
            let continues = !connection.is_last;
            if (opcode == OPCODE_CONTINUATION) != continues {
                return Err(unexpected(
                    if continues { "the rest of a message" } else { "a message's beginning" },
                    &[opcode],
                ));
            }
            if connection.length + length > LONGEST_MESSAGE {
                let example = format!("a message longer than {LONGEST_MESSAGE} bytes");
                return Err(Broken { failure: Failure::Protocol, example });
            }
            (connection.left, connection.is_last, connection.state) = (length, is_last, State::Payload);
            return Ok(head);
        }
        if length > LONGEST_CONTROL || !is_last {
            return Err(unexpected("a control frame of 125 bytes at most", &[opcode]));
        }
        let end = head + length as usize;
        let Some(payload) = input.get(head..end) else {
            return Ok(0);
        };
        match opcode {
            OPCODE_PING => frame::append(OPCODE_PONG, payload, [0; 4], &mut connection.unsent),
            OPCODE_CLOSE => {
                frame::append(OPCODE_CLOSE, &payload[..payload.len().min(2)], [0; 4], &mut connection.unsent);
                connection.state = State::Closing;
            }
            _ => {}
        }
        Ok(end)
    }

    /// Reads some of a frame's payload, and accounts the message if it is complete.
    fn payload(&self, connection: &mut WebSocketConnection, input: &[u8], tally: &mut Tally) -> Result<usize, Broken> {
        let length = connection.left.min(input.len() as u64) as usize;
        if self.verify {
            connection.message.extend_from_slice(&input[..length]);
        }
        connection.left -= length as u64;
        connection.length += length as u64;
        if connection.left == 0 {
            connection.state = State::Frames;
            if connection.is_last {
                self.account(connection, tally)?;
                connection.length = 0;
                connection.message.clear();
            }
        }
        Ok(length)
    }

    /// Judges a message that is complete.
    fn account(&self, connection: &mut WebSocketConnection, tally: &mut Tally) -> Result<(), Broken> {
        let Some(asked) = connection.in_flight.pop() else {
            return Err(unexpected("no message that nobody asked for", &connection.message));
        };
        if self.verify {
            let expected = self.text(asked.key);
            if connection.message != expected {
                let message = &connection.message;
                tally.failed(asked.intended, Failure::Wrong, || {
                    format!("expected `{}`, read `{}`", shown(&expected), shown(message))
                });
                return Ok(());
            }
        } else if self.message.is_determined_by_key() {
            let expected = self.message.size(asked.key, &self.subjects) as u64;
            if connection.length != expected {
                let found = connection.length;
                tally.failed(asked.intended, Failure::Wrong, || {
                    format!("a message of {found} bytes, expected {expected}")
                });
                return Ok(());
            }
        }
        tally.finished(0, asked.intended);
        Ok(())
    }

    /// The message for a key.
    fn text(&self, key: u64) -> Vec<u8> {
        let mut text = Vec::new();
        // It follows from the key: there is nothing random to draw.
        self.message.append(key, &self.subjects, &mut Source::new(0, 0, 1), &mut text);
        text
    }
}

impl Protocol for WebSocket {
    type Connection = WebSocketConnection;

    fn operations(&self) -> Vec<String> {
        vec!["echo".to_owned()]
    }

    fn connect(&self, seat: usize) -> WebSocketConnection {
        // Another one for each connection, the same in every run.
        let key = [0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seat as u64 + 1), seat as u64].map(u64::to_be_bytes).concat();
        WebSocketConnection {
            in_flight: InFlight::default(),
            state: State::New,
            key: STANDARD.encode(key),
            unsent: Vec::new(),
            message: Vec::new(),
            length: 0,
            left: 0,
            is_last: true,
        }
    }

    fn control(&self, connection: &mut WebSocketConnection, out: &mut Vec<u8>) {
        if connection.state == State::New {
            connection.state = State::Greeting;
            out.extend_from_slice(self.handshake.as_bytes());
            out.extend_from_slice(connection.key.as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
        }
        out.append(&mut connection.unsent);
    }

    fn room(&self, connection: &WebSocketConnection) -> usize {
        match connection.state {
            State::Frames | State::Payload => usize::MAX,
            State::New | State::Greeting | State::Closing => 0,
        }
    }

    fn is_prepared(&self, connection: &WebSocketConnection) -> bool {
        matches!(connection.state, State::Frames | State::Payload)
    }

    fn in_flight(&self, connection: &WebSocketConnection) -> usize {
        connection.in_flight.len()
    }

    fn begin(&self, connection: &mut WebSocketConnection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let key = if self.message.has_key() { self.subjects.keys.next(source) } else { 0 };
        let mask: [u8; 4] = source.rng.random();
        frame::begin(self.opcode, self.message.size(key, &self.subjects), mask, out);
        let start = out.len();
        self.message.append(key, &self.subjects, source, out);
        frame::mask(&mut out[start..], mask);
        connection.in_flight.push(Asked { intended, key, operation: 0 });
    }

    fn receive(
        &self,
        connection: &mut WebSocketConnection,
        input: &[u8],
        tally: &mut Tally,
    ) -> Result<Received, Broken> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let read = match connection.state {
                State::New | State::Greeting if !rest.is_empty() => self.greet(connection, rest)?,
                State::Frames if !rest.is_empty() => self.head(connection, rest)?,
                // A frame may be empty.
                State::Payload if !rest.is_empty() || connection.left == 0 => {
                    let read = self.payload(connection, rest, tally)?;
                    if read == 0 {
                        continue;
                    }
                    read
                }
                State::New | State::Greeting | State::Frames | State::Payload | State::Closing => 0,
            };
            if read == 0 {
                return Ok(Received { consumed, close: false });
            }
            consumed += read;
        }
    }

    fn expire(&self, connection: &mut WebSocketConnection, before: Nanos, tally: &mut Tally) -> bool {
        connection.in_flight.expire(before, tally)
    }

    fn abandon(&self, connection: &mut WebSocketConnection, failure: Failure, tally: &mut Tally) {
        connection.in_flight.abandon(failure, tally);
    }
}

/// A server's answer to a key (section 4.2.2).
fn accepted(key: &str) -> String {
    let text = [key, GUID].concat();
    STANDARD.encode(ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

fn unexpected(expected: &str, read: &[u8]) -> Broken {
    Broken { failure: Failure::Protocol, example: format!("expected {expected}, read `{}`", shown(read)) }
}

#[cfg(test)]
mod tests;
