//! Connections to other servers, and those that are kept for the next command.
//!
//! A thread that uses one blocks, so every step has a time limit.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::config::{Config, settings};

/// Connections that are kept at most, as in the genuine server.
const MAX_KEPT: usize = 64;
/// How long one is kept without use, in milliseconds.
const MAX_IDLE_MS: u64 = 10_000;
/// Bytes of one step of sending: each has the whole time limit.
const CHUNK: usize = 64 * 1024;
/// Longest line that is taken for an answer.
const MAX_LINE: usize = 1024;

/// The address of a connection and its user: connections are kept by these words.
pub type Address = Vec<Box<[u8]>>;

/// A connection to another server.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    /// Bytes that have been received and not yet been read.
    input: Vec<u8>,
    /// The database that it works on, if that is known.
    pub db: Option<i64>,
    /// When it was used last, in milliseconds of Unix time.
    used_at: u64,
}

/// Where connections to a primary and to nodes of the cluster come from: `bind-source-addr`, where it is set.
///
/// # Errors
/// It is no address.
pub fn source(config: &Config) -> io::Result<Option<SocketAddr>> {
    let Some(text) = config.string(settings::BIND_SOURCE_ADDR) else { return Ok(None) };
    let no_address = |_| io::Error::new(ErrorKind::InvalidInput, format!("bind-source-addr '{text}' is no IP address"));
    text.parse::<IpAddr>().map(|ip| Some(SocketAddr::new(ip, 0))).map_err(no_address)
}

/// Connects to `address` from [`source`].
///
/// # Errors
/// That is no address, or not this machine's, or the connection is not taken in time.
pub fn connect_from_source(config: &Config, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let Some(source) = source(config)? else { return TcpStream::connect_timeout(&address, timeout) };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&source.into())?;
    socket.connect_timeout(&address.into(), timeout)?;
    Ok(socket.into())
}

/// The rest of a time limit.
struct Limit(Instant);

impl Limit {
    fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        // A time beyond the clock's end is as good as a year.
        const LONG: Duration = Duration::from_secs(365 * 24 * 3600);
        Self(now.checked_add(timeout).unwrap_or(now + LONG))
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A socket with a time limit says "would block" when the time is over.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}

impl Peer {
    /// Connects to a server.
    ///
    /// # Errors
    /// The name is unknown, or no address of it takes the connection in time.
    pub fn connect(host: &str, port: u16, timeout: Duration) -> io::Result<Self> {
        let limit = Limit::new(timeout);
        let mut failure = ErrorKind::NotFound.into();
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, limit.left()?) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self { stream, input: Vec::new(), db: None, used_at: 0 });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], or the connection is broken.
    pub fn send(&mut self, bytes: &[u8], timeout: Duration) -> io::Result<()> {
        for mut chunk in bytes.chunks(CHUNK) {
            let limit = Limit::new(timeout);
            while !chunk.is_empty() {
                self.stream.set_write_timeout(Some(limit.left()?))?;
                match self.stream.write(chunk) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(sent) => chunk = &chunk[sent..],
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(timed_out(error)),
                }
            }
        }
        Ok(())
    }

    /// The next line of what the server answers, without its end.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], the connection is broken, or a line is longer than answers are.
    pub fn line(&mut self, timeout: Duration) -> io::Result<Vec<u8>> {
        let limit = Limit::new(timeout);
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.input) {
                let mut line: Vec<u8> = self.input.drain(..=end).collect();
                line.truncate(end);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(line);
            }
            if self.input.len() > MAX_LINE {
                return Err(ErrorKind::InvalidData.into());
            }
            let mut received = [0; MAX_LINE];
            self.stream.set_read_timeout(Some(limit.left()?))?;
            match self.stream.read(&mut received) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend_from_slice(&received[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(timed_out(error)),
            }
        }
    }
}

/// Connections that are not in use at present.
#[derive(Default)]
pub struct Peers(Mutex<HashMap<Address, Peer>>);

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses hold passwords.
        f.debug_struct("Peers").field("count", &self.count()).finish()
    }
}

impl Peers {
    fn kept(&self) -> MutexGuard<'_, HashMap<Address, Peer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.kept().len()
    }

    /// Takes out the connection to `address`, if there is one.
    pub fn take(&self, address: &Address) -> Option<Peer> {
        self.kept().remove(address)
    }

    /// Keeps a connection for a while, in place of any other one if there are many.
    pub fn put(&self, address: Address, mut peer: Peer, now_ms: u64) {
        peer.used_at = now_ms;
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT
            && let Some(any) = kept.keys().next().cloned()
        {
            kept.remove(&any);
        }
        kept.insert(address, peer);
    }

    /// Closes those that have not been used for ten seconds.
    pub fn close_idle(&self, now_ms: u64) {
        self.kept().retain(|_, peer| now_ms.saturating_sub(peer.used_at) <= MAX_IDLE_MS);
    }
}
