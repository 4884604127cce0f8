//! Servers that are played: each connection is a conversation that a test's row writes down.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::target::{Certificate, serve_tls};

/// The server's side of one connection in a row; an error ends the connection.
pub(super) type Play = fn(&mut Conversation) -> io::Result<()>;

/// A connection.
pub(super) struct Conversation {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    unread: Vec<u8>,
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A server that plays, and its address. It ends with the test's process.
pub(super) fn serve(play: Play) -> SocketAddr {
    start(play, None)
}

/// The same behind TLS, of which each handshake begins so late.
pub(super) fn serve_late_tls(play: Play, late: Duration, certificate: Certificate) -> SocketAddr {
    start(play, Some((late, certificate)))
}

fn start(play: Play, tls: Option<(Duration, Certificate)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Arc::new(tls);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let tls = Arc::clone(&tls);
            thread::spawn(move || {
                socket.set_nodelay(true).unwrap();
                let stream: Box<dyn Stream> = match &*tls {
                    Some((late, certificate)) => {
                        thread::sleep(*late);
                        Box::new(serve_tls(certificate, socket.try_clone().unwrap()))
                    }
                    None => Box::new(socket.try_clone().unwrap()),
                };
                // The peer may end at any time; that is its right.
                let _ = play(&mut Conversation { stream, socket, unread: Vec::new() });
            });
        }
    });
    address
}

impl Conversation {
    /// Reads up to `end`; an error when the peer has closed.
    pub(super) fn read_to(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|bytes| bytes == end) {
                return Ok(self.unread.drain(..at + end.len()).collect());
            }
            self.receive()?;
        }
    }

    /// Reads the head of an HTTP request without a body.
    pub(super) fn request(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.read_to(b"\r\n\r\n")?).into_owned())
    }

    /// Reads so many bytes.
    pub(super) fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < count {
            self.receive()?;
        }
        Ok(self.unread.drain(..count).collect())
    }

    /// Reads one command of Redis.
    pub(super) fn command(&mut self) -> io::Result<()> {
        let head = self.read_to(b"\r\n")?;
        let words: usize = String::from_utf8_lossy(&head).trim_start_matches('*').trim().parse().unwrap_or(0);
        for _ in 0..words {
            let head = self.read_to(b"\r\n")?;
            let length: usize = String::from_utf8_lossy(&head).trim_start_matches('$').trim().parse().unwrap();
            self.take(length + 2)?;
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let count = test_peers::read(&mut self.stream, &mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(())
    }

    pub(super) fn say(&mut self, text: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(text.as_ref())?;
        self.stream.flush()
    }

    /// Lets time pass, as the misbehaviour asks for.
    pub(super) fn wait(&self, millis: u64) {
        thread::sleep(Duration::from_millis(millis));
    }

    /// Ends the connection by RST.
    pub(super) fn reset(&self) -> io::Result<()> {
        SockRef::from(&self.socket).set_linger(Some(Duration::ZERO))?;
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

/// Frame types of HTTP/2 (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// HTTP/2, as far as a server needs it that only counts requests without bodies.
impl Conversation {
    /// Reads the client's preface, and sends our settings.
    pub(super) fn begin_h2(&mut self) -> io::Result<()> {
        self.take(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len())?;
        self.frame(SETTINGS, 0, 0, &[])
    }

    /// The stream of the next request; none when the peer has closed.
    pub(super) fn h2_request(&mut self) -> io::Result<Option<u32>> {
        loop {
            let head = match self.take(9) {
                Ok(head) => head,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            };
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            self.take(length as usize)?;
            let is_acknowledgement = head[4] & 1 == 1;
            match head[3] {
                HEADERS => return Ok(Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]))),
                SETTINGS if !is_acknowledgement => self.frame(SETTINGS, 1, 0, &[])?,
                _ => {}
            }
        }
    }

    /// Answers a stream with status 200 and two bytes.
    pub(super) fn h2_answer(&mut self, stream: u32) -> io::Result<()> {
        // 0x88 is `:status: 200` of HPACK's static table; the flags end the headers, and the stream.
        self.frame(HEADERS, 4, stream, &[0x88])?;
        self.frame(DATA, 1, stream, b"hi")
    }

    /// GOAWAY with NO_ERROR: streams above `last` are not processed.
    pub(super) fn go_away(&mut self, last: u32) -> io::Result<()> {
        self.frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let length = (payload.len() as u32).to_be_bytes();
        self.say([&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat())
    }
}
