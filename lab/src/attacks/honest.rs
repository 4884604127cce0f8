//! Clients that do what they should, all the time.

use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::frames::{DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, WINDOW_UPDATE, frame, head, parse, preface};
use super::http3;

/// The protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Http1,
    Http2,
    Http3,
    Grpc,
}

impl fmt::Display for Speech {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Grpc => "gRPC",
        })
    }
}

impl Speech {
    /// The request that honest clients make, on this stream.
    pub(super) fn request(self, stream: u32) -> Vec<u8> {
        match self {
            Self::Http1 => b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            Self::Http3 => http3::get("/healthz"),
            Self::Http2 => frame(HEADERS, END_HEADERS | END_STREAM, stream, &head("GET", "/healthz", None)),
            Self::Grpc => [
                frame(
                    HEADERS,
                    END_HEADERS,
                    stream,
                    &head("POST", "/helloworld.Greeter/SayHello", Some("application/grpc")),
                ),
                frame(DATA, END_STREAM, stream, b"\0\0\0\0\x05\x0a\x03Ann"),
            ]
            .concat(),
        }
    }
}

/// Clients at one time.
const CLIENTS: usize = 2;

/// Between two requests of a client.
const PAUSE: Duration = Duration::from_millis(2);

/// Longer than an answer takes where nothing is wrong, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Clients that are asking.
pub(super) struct Honest {
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Result<Vec<Duration>>>>,
}

impl Honest {
    pub(super) fn start(addr: SocketAddr, speech: Speech, folder: &Path) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let client = || {
            let (is_over, folder) = (Arc::clone(&is_over), folder.to_owned());
            thread::spawn(move || match speech {
                Speech::Http3 => {
                    let client = http3::Honest::connect(addr, &folder)?;
                    ask(&is_over, || client.ask())
                }
                Speech::Http1 | Speech::Http2 | Speech::Grpc => {
                    let mut client = Client::connect(addr, speech)?;
                    ask(&is_over, || client.ask())
                }
            })
        };
        let clients = std::iter::repeat_with(client).take(CLIENTS).collect();
        Self { is_over, clients }
    }

    /// The 99th percentile of the times of their requests.
    ///
    /// # Errors
    /// When one was not answered.
    pub(super) fn end(self) -> Result<Duration> {
        self.is_over.store(true, Relaxed);
        let mut times = Vec::new();
        for client in self.clients {
            times.extend(client.join().expect("clients do not panic")?);
        }
        times.sort();
        times.get(times.len().saturating_sub(1) * 99 / 100).copied().context("nobody has asked")
    }
}

/// Asks until it is over; how long each answer took.
fn ask(is_over: &AtomicBool, mut once: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let began = Instant::now();
        once().context("an honest client was not answered")?;
        times.push(began.elapsed());
        // A client that needs long for its connection has asked, too.
        if is_over.load(Relaxed) {
            return Ok(times);
        }
        thread::sleep(PAUSE);
    }
}

struct Client {
    addr: SocketAddr,
    stream: TcpStream,
    speech: Speech,
    /// Of HTTP/2, the next one.
    number: u32,
    read: Vec<u8>,
    /// True once the server has ended the connection in peace.
    is_ended: bool,
}

impl Client {
    fn connect(addr: SocketAddr, speech: Speech) -> Result<Self> {
        let mut stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if speech != Speech::Http1 {
            stream.write_all(&preface(&[]))?;
            // Its answers never have to wait for a window.
            stream.write_all(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()))?;
        }
        Ok(Self { addr, stream, speech, number: 1, read: Vec::new(), is_ended: false })
    }

    /// A connection may end in peace, as when its client had no turn for long: every client asks again on another one.
    fn ask(&mut self) -> Result<()> {
        if !self.is_ended && self.is_served()? {
            return Ok(());
        }
        *self = Self::connect(self.addr, self.speech)?;
        ensure!(self.is_served()?, "GOAWAY 0 to the first request of a connection");
        Ok(())
    }

    /// Asks; false if the server ends the connection before the answer.
    fn is_served(&mut self) -> Result<bool> {
        let number = self.number;
        self.stream.write_all(&self.speech.request(number))?;
        self.number += 2;
        while !self.is_answered(number)? {
            if self.is_ended {
                return Ok(false);
            }
            let mut bytes = [0; 4096];
            let count = test_peers::read(&mut self.stream, &mut bytes)?;
            if count == 0 {
                bail!("the server has hung up");
            }
            self.read.extend_from_slice(&bytes[..count]);
        }
        Ok(true)
    }

    /// Whether what was read is the whole answer; then it is thrown away.
    fn is_answered(&mut self, number: u32) -> Result<bool> {
        if self.speech == Speech::Http1 {
            let text = String::from_utf8_lossy(&self.read);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(false) };
            if !head.starts_with("HTTP/1.1 200 ") {
                bail!("{head}");
            }
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() < length.unwrap_or(0_usize) {
                return Ok(false);
            }
            self.read.clear();
            return Ok(true);
        }
        let (mut is_answered, mut used, mut pongs) = (false, 0, Vec::new());
        for frame in parse(&self.read) {
            used += frame.len();
            pongs.extend(frame.pong());
            if frame.kind == GOAWAY {
                ensure!(frame.reason() == 0, "GOAWAY {}", frame.reason());
                self.is_ended = true;
            }
            is_answered |= frame.stream == number && frame.kind <= HEADERS && frame.flags & END_STREAM != 0;
        }
        self.read.drain(..used);
        if !pongs.is_empty() {
            self.stream.write_all(&pongs.concat())?;
        }
        Ok(is_answered)
    }
}
