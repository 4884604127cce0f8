//! One connection that attacks, and how it ends.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::frames::{self, GOAWAY, RST_STREAM};

/// Frames in a round of a flood, so that they come in pieces of some size.
pub(super) const AT_ONCE: u32 = 500;

/// How long a connection may go on, silent or not, before it counts as one that does not end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of the server's output that are kept, to be judged.
const KEPT: usize = 256 * 1024;

/// Memory that a row may make the server have beyond what it had before, unless it says otherwise. The servers' own limits add up to
/// this: 20 connections with 1 MiB of output each, and what the allocator keeps.
pub(super) const BOUND_MIB: u64 = 64;

/// A row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Attacks once: the end, if it is one of those that are right, otherwise what is wrong.
    pub(super) attack: Box<dyn Fn(SocketAddr) -> Result<Result<String, String>> + Send + Sync>,
    /// A request repeated meanwhile on a connection of HTTP/1.1.
    pub(super) beside: Option<Vec<u8>>,
    /// Memory that the server may take for it.
    pub(super) bound_mib: u64,
    /// Whether it takes seconds.
    pub(super) is_long: bool,
}

impl From<Attack> for Row {
    fn from(mut attack: Attack) -> Self {
        let (name, bound_mib, is_long) = (attack.name, attack.bound_mib, attack.is_long);
        let beside = attack.beside.take();
        Self { name, attack: Box::new(move |addr| Ok(attack.judge(&attack.run(addr)?))), beside, bound_mib, is_long }
    }
}

/// The bytes of an attacker.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) opening: Vec<u8>,
    /// The repeated part: sent so often, or until the server hangs up, with a pause between.
    pub(super) round: Box<dyn Fn(u32) -> Vec<u8> + Send + Sync>,
    pub(super) rounds: u32,
    pub(super) rest: Duration,
    pub(super) reads: Reads,
    /// A request repeated meanwhile on a connection of HTTP/1.1.
    pub(super) beside: Option<Vec<u8>>,
    /// The ends that are right.
    pub(super) ends: Vec<End>,
    /// Memory that the server may take for it.
    pub(super) bound_mib: u64,
    /// Whether it takes seconds.
    pub(super) is_long: bool,
}

/// How an attacker treats the server's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    All,
    /// Nothing, for so long; then what is there until the end.
    NothingFor(Duration),
    /// It goes away at once, and comes again, so often.
    NothingAndComesAgain(u32),
}

/// How a connection ends, as far as an attacker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A response of HTTP/1.1 with this status, and the end.
    Status(u16),
    /// GOAWAY for this reason.
    GoAway(u32),
    /// The first RST_STREAM has this reason.
    Reset(u32),
    /// The end, and less than all that was asked for.
    LetGo,
    /// The attacker has gone itself.
    Gone,
    /// None: on a busy machine the flood was slower than what a connection may send.
    Within {
        /// Frames in a second that a connection may send.
        limit: u32,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::GoAway(reason) => write!(f, "GOAWAY {reason}"),
            Self::Reset(reason) => write!(f, "RST_STREAM {reason}"),
            Self::LetGo => f.write_str("closed"),
            Self::Gone => f.write_str("gone"),
            Self::Within { limit } => write!(f, "slower than {limit}/s"),
        }
    }
}

/// The observations of an attacker.
pub(super) struct Seen {
    said: Vec<u8>,
    /// Of all that was said, kept or not.
    bytes: usize,
    /// From the beginning to the last bytes.
    took: Duration,
    has_ended: bool,
}

/// A request whose answer is larger than what sockets hold.
pub(super) const BIG: usize = 64 * 1024 * 1024;

impl Attack {
    /// One that sends an opening, and nothing else.
    pub(super) fn of(name: &'static str, opening: Vec<u8>, ends: &[End]) -> Self {
        Self {
            name,
            opening,
            round: Box::new(|_| Vec::new()),
            rounds: 0,
            rest: Duration::ZERO,
            reads: Reads::All,
            beside: None,
            ends: ends.to_vec(),
            bound_mib: BOUND_MIB,
            is_long: false,
        }
    }

    /// The same, and then these rounds.
    pub(super) fn then(mut self, rounds: u32, round: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static) -> Self {
        (self.rounds, self.round) = (rounds, Box::new(round));
        self
    }

    pub(super) fn every(self, rest: Duration) -> Self {
        Self { rest, ..self }
    }

    pub(super) fn reading(self, reads: Reads) -> Self {
        let is_long = matches!(reads, Reads::NothingFor(_));
        Self { reads, is_long, ..self }
    }

    pub(super) fn within_mib(self, bound_mib: u64) -> Self {
        Self { bound_mib, ..self }
    }

    pub(super) fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    pub(super) fn beside(self, request: Vec<u8>) -> Self {
        Self { beside: Some(request), ..self }
    }

    /// Attacks.
    ///
    /// # Errors
    /// When there is no connection to be had.
    pub(super) fn run(&self, addr: SocketAddr) -> Result<Seen> {
        if let Reads::NothingAndComesAgain(times) = self.reads {
            for _ in 0..times {
                let mut stream = TcpStream::connect(addr).context("no more connections")?;
                // Resets, so that the attacker does not run out of ports.
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
                let _ = stream.write_all(&self.opening);
            }
            return Ok(Seen { said: Vec::new(), bytes: 0, took: Duration::ZERO, has_ended: true });
        }
        let mut stream = TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut reader = stream.try_clone()?;
        let reads = self.reads;
        let reading = thread::spawn(move || {
            if let Reads::NothingFor(time) = reads {
                thread::sleep(time);
            }
            listen(&mut reader)
        });
        if stream.write_all(&self.opening).is_ok() {
            for number in 0..self.rounds {
                thread::sleep(self.rest);
                if stream.write_all(&(self.round)(number)).is_err() || reading.is_finished() {
                    break;
                }
            }
        }
        Ok(reading.join().expect("reading does not panic"))
    }

    /// The end, if it is one of those that are right; otherwise what is wrong.
    ///
    /// # Errors
    /// A text for people.
    pub(super) fn judge(&self, seen: &Seen) -> Result<String, String> {
        let head = String::from_utf8_lossy(&seen.said[..seen.said.len().min(200)]).into_owned();
        let frames = frames::parse(&seen.said);
        let reason = |kind| frames.iter().find(|frame| frame.kind == kind).map(frames::Frame::reason);
        let last = frames.iter().rev().find(|frame| frame.kind == GOAWAY).map(frames::Frame::reason);
        let fits = |end: &End| match *end {
            End::Status(status) => seen.has_ended && head.starts_with(&format!("HTTP/1.1 {status} ")),
            End::GoAway(expected) => seen.has_ended && last == Some(expected),
            End::Reset(expected) => reason(RST_STREAM) == Some(expected),
            End::LetGo => seen.has_ended && seen.bytes < BIG,
            End::Gone => matches!(self.reads, Reads::NothingAndComesAgain(_)),
            End::Within { limit } => {
                let answers = frames.iter().filter(|frame| frame.is_answer_to_round()).count();
                let frames = answers as f64 * f64::from(AT_ONCE);
                !seen.has_ended && frames <= f64::from(limit) * (seen.took.as_secs_f64() + 1.0)
            }
        };
        match self.ends.iter().find(|end| fits(end)) {
            Some(end) => Ok(end.to_string()),
            None => Err(format!(
                "{} bytes said, {}: {:?} {:?}",
                seen.bytes,
                if seen.has_ended { "ended" } else { "not ended" },
                head.lines().next().unwrap_or_default(),
                frames.iter().map(|frame| (frame.kind, frame.reason())).collect::<Vec<_>>()
            )),
        }
    }
}

/// Asks for something again and again until it is over.
pub(super) fn repeat(addr: SocketAddr, request: &[u8], is_over: &AtomicBool) {
    let Ok(mut stream) = TcpStream::connect(addr) else { return };
    let mut answer = [0; 4096];
    while !is_over.load(Relaxed)
        && stream.write_all(request).is_ok()
        && test_peers::read(&mut stream, &mut answer).is_ok_and(|count| count > 0)
    {}
}

/// Reads until the end.
fn listen(reader: &mut TcpStream) -> Seen {
    let (mut said, mut total, mut bytes) = (Vec::new(), 0, vec![0; 64 * 1024]);
    let (began, mut took) = (Instant::now(), Duration::ZERO);
    let has_ended = loop {
        match test_peers::read(reader, &mut bytes) {
            Ok(0) => break true,
            Ok(_) if began.elapsed() > PATIENCE => break false,
            Ok(count) => {
                total += count;
                took = began.elapsed();
                let room = KEPT.saturating_sub(said.len()).min(count);
                said.extend_from_slice(&bytes[..room]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break false,
            Err(_) => break true,
        }
    };
    Seen { said, bytes: total, took, has_ended }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_within_the_limit_is_no_flood() {
        let attack = Attack::of("flood", Vec::new(), &[End::Within { limit: 10_000 }]);
        let answered = |rounds: usize, seconds: u64, has_ended: bool| {
            let said = frames::frame(frames::PING, frames::ACK, 0, &frames::ROUND).repeat(rounds);
            attack.judge(&Seen { bytes: said.len(), said, took: Duration::from_secs(seconds), has_ended })
        };
        assert_eq!(answered(400, 20, false), Ok("slower than 10000/s".to_owned()));
        assert!(answered(400, 18, false).is_err());
        assert!(answered(400, 20, true).is_err());
    }
}
