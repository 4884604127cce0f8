//! Connections to the other nodes of the cluster, and those that are kept for the next call.
//!
//! A node logs in as a replica does (`masteruser`, `masterauth`), and uses TLS where replicas do (`tls-replication`). A thread that uses a connection
//! blocks, so every step has a time limit.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::ToSocketAddrs as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock::steady_ms;
use super::peers::connect_from_source;
use super::transport::Transport;
use crate::config::{Config, settings};
use crate::protocol::encode_command;

/// Connections to one node that are kept at most: as many as there are threads that use them.
const MAX_KEPT: usize = 16;
/// How long one is kept without use, in milliseconds.
const MAX_IDLE_MS: u64 = 10_000;
/// How long a connection may take to be made, or to take bytes.
const STEP: Duration = Duration::from_secs(2);
/// How long a thread waits for an answer between two looks at the reasons to wait no longer.
const LOOK: Duration = Duration::from_millis(20);
/// Longest line of an answer.
const MAX_LINE: usize = 64 * 1024;

/// An address and a port.
pub type Address = (String, u16);

/// The answer of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A line with its mark: a simple string, a number or an error.
    Line(Vec<u8>),
    /// A bulk string.
    Bulk(Vec<u8>),
}

impl Answer {
    /// Reads the reply of a call on this node.
    pub fn parse(reply: &[u8]) -> io::Result<Self> {
        match Self::find(reply)? {
            Some((answer, _)) => Ok(answer),
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The first answer, and where it ends; `None` if more must come.
    fn find(input: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let Some(end) = memchr::memchr(b'\n', &input[..input.len().min(MAX_LINE)]) else {
            return if input.len() >= MAX_LINE { Err(ErrorKind::InvalidData.into()) } else { Ok(None) };
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        match line.first() {
            Some(b'$') => {
                let len = std::str::from_utf8(&line[1..]).ok().and_then(|len| len.parse::<usize>().ok());
                let len = len.ok_or(ErrorKind::InvalidData)?;
                let from = end + 1;
                let Some(all) = from.checked_add(len).and_then(|to| to.checked_add(2)) else {
                    return Err(ErrorKind::InvalidData.into());
                };
                let is_complete = input.len() >= all;
                Ok(is_complete.then(|| (Self::Bulk(input[from..from + len].to_vec()), all)))
            }
            Some(b'+' | b'-' | b':') => Ok(Some((Self::Line(line.to_vec()), end + 1))),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

/// A connection to another node.
pub struct Link {
    transport: Transport,
    /// Bytes that have been received and not yet been read.
    input: Vec<u8>,
    used_at: u64,
    /// It was kept, so its node may have closed it meanwhile.
    pub was_kept: bool,
}

impl Link {
    fn connect(config: &Config, (host, port): &Address) -> io::Result<Self> {
        let mut failure = ErrorKind::NotFound.into();
        for address in (host.as_str(), *port).to_socket_addrs()? {
            match connect_from_source(config, address, STEP) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(STEP))?;
                    stream.set_write_timeout(Some(STEP))?;
                    let transport = Transport::of(stream, host, config)?;
                    transport.socket().set_read_timeout(Some(LOOK))?;
                    let mut link = Self { transport, input: Vec::new(), used_at: 0, was_kept: false };
                    link.log_in(config)?;
                    return Ok(link);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn log_in(&mut self, config: &Config) -> io::Result<()> {
        let Some(password) = config.string(settings::MASTERAUTH).filter(|password| !password.is_empty()) else {
            return Ok(());
        };
        let user = config.string(settings::MASTERUSER).filter(|user| !user.is_empty());
        let words: Vec<String> = ["AUTH".to_owned()].into_iter().chain(user).chain([password]).collect();
        self.send(&words.iter().map(String::as_bytes).collect::<Vec<_>>())?;
        let began = steady_ms();
        match self.answer(&|| steady_ms().saturating_sub(began) < STEP.as_millis() as u64)? {
            Answer::Line(line) if line.first() == Some(&b'+') => Ok(()),
            answer => Err(io::Error::other(format!("it refuses masterauth: {answer:?}"))),
        }
    }

    /// Sends a call.
    ///
    /// # Errors
    /// The connection is broken, or takes nothing for long.
    pub fn send(&mut self, words: &[&[u8]]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words.iter().copied());
        self.transport.write_all(&bytes)?;
        self.transport.flush()
    }

    /// Waits for an answer while that `goes_on`.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] if it does not, or the connection is broken.
    pub fn answer(&mut self, goes_on: &dyn Fn() -> bool) -> io::Result<Answer> {
        let mut room = [0; 64 * 1024];
        loop {
            if let Some((answer, end)) = Answer::find(&self.input)? {
                self.input.drain(..end);
                return Ok(answer);
            }
            match self.transport.read(&mut room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if !goes_on() {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Connections that are not in use at present.
#[derive(Default)]
pub struct Links(Mutex<HashMap<Address, Vec<Link>>>);

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("nodes", &self.kept().len()).finish()
    }
}

impl Links {
    fn kept(&self) -> MutexGuard<'_, HashMap<Address, Vec<Link>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out a connection that was kept, or makes one.
    ///
    /// # Errors
    /// None can be made.
    pub fn take(&self, config: &Config, address: &Address) -> io::Result<Link> {
        let kept = self.kept().get_mut(address).and_then(Vec::pop);
        match kept {
            Some(link) => Ok(Link { was_kept: true, ..link }),
            None => Link::connect(config, address),
        }
    }

    /// Makes a connection.
    ///
    /// # Errors
    /// None can be made.
    pub fn fresh(&self, config: &Config, address: &Address) -> io::Result<Link> {
        Link::connect(config, address)
    }

    /// Makes a connection, in place of those that were kept: one of them was closed.
    ///
    /// # Errors
    /// None can be made.
    pub fn renew(&self, config: &Config, address: &Address) -> io::Result<Link> {
        self.kept().remove(address);
        Link::connect(config, address)
    }

    /// Keeps a connection of which all answers have been read.
    pub fn put(&self, address: Address, mut link: Link) {
        link.used_at = steady_ms();
        let mut kept = self.kept();
        let links = kept.entry(address).or_default();
        if links.len() < MAX_KEPT && link.input.is_empty() {
            link.input.shrink_to(MAX_LINE);
            links.push(link);
        }
    }

    /// Closes those that have not been used for ten seconds.
    pub fn close_idle(&self) {
        let now = steady_ms();
        self.kept().retain(|_, links| {
            links.retain(|link| now.saturating_sub(link.used_at) <= MAX_IDLE_MS);
            !links.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_pieces() {
        let line = |text: &str| Answer::Line(text.as_bytes().to_vec());
        for (input, answer, len) in [
            (&b"+OK\r\n:1\r\n"[..], line("+OK"), 5),
            (b"-ERR no\r\n", line("-ERR no"), 9),
            (b"$3\r\na\nb\r\n", Answer::Bulk(b"a\nb".to_vec()), 9),
            (b"$0\r\n\r\n", Answer::Bulk(Vec::new()), 6),
        ] {
            assert_eq!(Answer::find(input).unwrap(), Some((answer, len)));
            for cut in 0..len {
                assert_eq!(Answer::find(&input[..cut]).unwrap(), None, "{cut} bytes of {input:?}");
            }
        }
        for bad in [&b"*1\r\n"[..], b"$-1\r\n", b"$x\r\n", b"$18446744073709551615\r\n", b"\r\n", &[b'+'; MAX_LINE]] {
            assert!(Answer::find(bad).is_err(), "{:?}", bad.get(..8));
        }
    }
}
