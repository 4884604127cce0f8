//! The handshake of a replica and its primary before the stream, without a socket.
//!
//! ```text
//! PING ─▶ AUTH, if there is a password ─▶ REPLCONF listening-port, ip-address, capa ─▶ PSYNC ─┬─▶ +CONTINUE: the stream
//!                                                                                             └─▶ +FULLRESYNC ─▶ $length or $EOF:mark
//! ```

use std::fmt;
use std::mem;

use crate::protocol::encode_command;

/// Longest line that a primary may answer.
const LINE_MAX: usize = 64 * 1024;
/// Length of a replication id, and of the mark that tells the end of a snapshot.
pub(super) const ID: usize = 40;

/// A replica's statements about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Introduction {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Where it serves.
    pub(super) port: u16,
    pub(super) address: Option<String>,
    /// The stream that it has, and its end.
    pub(super) known: Option<(String, u64)>,
    /// Whether it asks its own replica to take its place.
    pub(super) takes_over: bool,
}

/// How the end of a snapshot is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Mark([u8; ID]),
}

/// The primary's agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Agreed {
    /// The stream goes on where it was; it may have another name now.
    Continue { id: Option<String> },
    /// A snapshot comes first, whose end is this offset of this stream.
    Full { id: String, offset: u64, length: Length },
}

/// Why there is no stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The primary cannot serve it now.
    Later(String),
    /// It does not want to, or is none.
    Refused(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(why) => write!(f, "the primary is not ready: {why}"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Ping,
    Auth,
    /// So many REPLCONFs have not been answered.
    Configure(usize),
    Psync,
    /// The snapshot's head is awaited.
    Head {
        id: String,
        offset: u64,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Handshake {
    introduction: Introduction,
    step: Step,
    has_asked: bool,
    input: Vec<u8>,
}

impl Handshake {
    /// Begins; `output` takes what is to be sent.
    pub(super) fn new(introduction: Introduction, output: &mut Vec<u8>) -> Self {
        say(output, &["PING"]);
        Self { introduction, step: Step::Ping, has_asked: false, input: Vec::new() }
    }

    /// Takes what the primary has sent. When both agree, [`Handshake::rest`] has what came behind that.
    pub(super) fn receive(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> Result<Option<Agreed>, Refusal> {
        self.input.extend_from_slice(bytes);
        let mut used = 0;
        let mut agreed = Ok(None);
        while matches!(agreed, Ok(None)) {
            let Some(length) = self.input[used..].iter().position(|&byte| byte == b'\n') else {
                if self.input.len() - used > LINE_MAX {
                    return Err(Refusal::Refused("an answer has no end".to_owned()));
                }
                break;
            };
            let line = String::from_utf8_lossy(&self.input[used..used + length]).trim_end().to_owned();
            used += length + 1;
            // An empty line is a sign of life.
            if !line.is_empty() {
                agreed = self.answer(&line, output);
            }
        }
        self.input.drain(..used);
        agreed
    }

    /// Whether it has asked for the stream.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// The bytes behind the agreement.
    pub(super) fn rest(self) -> Vec<u8> {
        self.input
    }

    fn answer(&mut self, line: &str, output: &mut Vec<u8>) -> Result<Option<Agreed>, Refusal> {
        let refused = |what: &str| Refusal::Refused(format!("{what} was answered with: {line}"));
        let step = mem::replace(&mut self.step, Step::Psync);
        match step {
            Step::Ping => {
                // One that wants a password says so here.
                let is_there = line.starts_with('+') || line.starts_with("-NOAUTH") || line.starts_with("-NOPERM");
                if !is_there && !line.starts_with("-ERR operation not permitted") {
                    return Err(if is_temporary(line) { Refusal::Later(line.to_owned()) } else { refused("PING") });
                }
                self.introduce(output);
            }
            Step::Auth if line.starts_with('-') => {
                return Err(Refusal::Refused(format!("Unable to AUTH to MASTER: {line}")));
            }
            Step::Auth => self.configure(output),
            // Old primaries do not know all of it, which makes no difference.
            Step::Configure(1) => self.ask(output),
            Step::Configure(left) => self.step = Step::Configure(left - 1),
            Step::Psync => return self.decide(line, refused),
            Step::Head { id, offset } => {
                let length = head(line).ok_or_else(|| refused("PSYNC"))?;
                return Ok(Some(Agreed::Full { id, offset, length }));
            }
        }
        Ok(None)
    }

    fn introduce(&mut self, output: &mut Vec<u8>) {
        let Introduction { user, password, .. } = &self.introduction;
        match (user, password) {
            (Some(user), Some(password)) => say(output, &["AUTH", user, password]),
            (None, Some(password)) => say(output, &["AUTH", password]),
            (_, None) => return self.configure(output),
        }
        self.step = Step::Auth;
    }

    fn configure(&mut self, output: &mut Vec<u8>) {
        say(output, &["REPLCONF", "listening-port", &self.introduction.port.to_string()]);
        let mut asked = 2;
        if let Some(address) = &self.introduction.address {
            say(output, &["REPLCONF", "ip-address", address]);
            asked += 1;
        }
        say(output, &["REPLCONF", "capa", "eof", "capa", "psync2"]);
        self.step = Step::Configure(asked);
    }

    fn ask(&mut self, output: &mut Vec<u8>) {
        self.has_asked = true;
        match &self.introduction.known {
            Some((id, offset)) if self.introduction.takes_over => {
                say(output, &["PSYNC", id, &(offset + 1).to_string(), "FAILOVER"]);
            }
            Some((id, offset)) => say(output, &["PSYNC", id, &(offset + 1).to_string()]),
            None => say(output, &["PSYNC", "?", "-1"]),
        }
        self.step = Step::Psync;
    }

    fn decide(&mut self, line: &str, refused: impl Fn(&str) -> Refusal) -> Result<Option<Agreed>, Refusal> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["+CONTINUE"] => Ok(Some(Agreed::Continue { id: None })),
            ["+CONTINUE", id] if id.len() == ID => Ok(Some(Agreed::Continue { id: Some(id.to_owned()) })),
            ["+FULLRESYNC", id, offset] if id.len() == ID => {
                let offset = offset.parse().map_err(|_| refused("PSYNC"))?;
                self.step = Step::Head { id: id.to_owned(), offset };
                Ok(None)
            }
            _ if is_temporary(line) => Err(Refusal::Later(line.to_owned())),
            _ => Err(refused("PSYNC")),
        }
    }
}

fn is_temporary(line: &str) -> bool {
    ["-NOMASTERLINK", "-LOADING", "-BUSY", "-MASTERDOWN"].iter().any(|error| line.starts_with(error))
}

/// Parses the line in front of a snapshot.
fn head(line: &str) -> Option<Length> {
    let text = line.strip_prefix('$')?;
    match text.strip_prefix("EOF:") {
        Some(mark) => mark.as_bytes().try_into().ok().map(Length::Mark),
        None => text.parse().ok().map(Length::Bytes),
    }
}

/// Appends a command.
pub(super) fn say(output: &mut Vec<u8>, words: &[&str]) {
    encode_command(output, words.iter().map(|word| word.as_bytes()));
}

/// Finds the end of a snapshot in what the primary sends.
#[derive(Debug)]
pub(super) struct Body {
    length: Length,
    received: u64,
    /// The last bytes, which may be the mark or its beginning.
    tail: Vec<u8>,
}

impl Body {
    pub(super) fn new(length: Length) -> Self {
        Self { length, received: 0, tail: Vec::new() }
    }

    /// Gives what belongs to the snapshot to `each`. `Some` is what came behind its end.
    pub(super) fn receive<'b, E>(
        &mut self,
        bytes: &'b [u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Option<&'b [u8]>, E> {
        match self.length {
            Length::Bytes(length) => {
                let left = usize::try_from(length - self.received).unwrap_or(usize::MAX).min(bytes.len());
                each(&bytes[..left])?;
                self.received += left as u64;
                Ok((self.received == length).then(|| &bytes[left..]))
            }
            Length::Mark(mark) => {
                // The primary says nothing behind the mark until it is told that it was seen.
                self.tail.extend_from_slice(bytes);
                let sure = self.tail.len().saturating_sub(ID);
                each(&self.tail[..sure])?;
                self.received += sure as u64;
                self.tail.drain(..sure);
                Ok((self.tail == mark).then_some(&[]))
            }
        }
    }

    /// Bytes of the snapshot so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn introduction() -> Introduction {
        Introduction { port: 7000, ..Introduction::default() }
    }

    /// The replica's bytes, its conclusion and the rest where the primary answers so, in pieces of `piece` bytes.
    fn talk(
        introduction: &Introduction,
        answers: &[&str],
        piece: usize,
    ) -> (String, Result<Option<Agreed>, Refusal>, Vec<u8>) {
        let mut output = Vec::new();
        let mut handshake = Handshake::new(introduction.clone(), &mut output);
        let answers = answers.concat();
        let mut pieces = answers.as_bytes().chunks(piece);
        let mut result = Ok(None);
        while matches!(result, Ok(None))
            && let Some(piece) = pieces.next()
        {
            result = handshake.receive(piece, &mut output);
        }
        let mut rest = handshake.rest();
        rest.extend(pieces.flatten());
        let said = String::from_utf8(output).unwrap();
        let words = said.split("\r\n").filter(|line| !line.starts_with(['*', '$']));
        (words.collect::<Vec<_>>().join(" "), result, rest)
    }

    #[test]
    fn agreements() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let known = Introduction { known: Some((id.to_owned(), 99)), address: Some("h".into()), ..introduction() };
        let protected = Introduction { password: Some("p".into()), user: Some("u".into()), ..introduction() };
        let full = format!("+FULLRESYNC {id} 10\r\n");
        let mark = Length::Mark(id.as_bytes().try_into().unwrap());
        for piece in [1, 2, 7, 1000] {
            let ok = ["+PONG\r\n", "+OK\r\n", "+OK\r\n"];
            let (said, agreed, rest) =
                talk(&introduction(), &[&ok[..], &[&full, "\n", "$5\r\n", "REDIS*"]].concat(), piece);
            assert_eq!(said, "PING REPLCONF listening-port 7000 REPLCONF capa eof capa psync2 PSYNC ? -1 ");
            assert_eq!(agreed, Ok(Some(Agreed::Full { id: id.to_owned(), offset: 10, length: Length::Bytes(5) })));
            assert_eq!(rest, b"REDIS*");

            let (said, agreed, _) =
                talk(&known, &[&ok[..], &["-ERR Unrecognized\r\n", "\n\n", "+CONTINUE\r\n"]].concat(), piece);
            let asked = format!(
                "PING REPLCONF listening-port 7000 REPLCONF ip-address h REPLCONF capa eof capa psync2 PSYNC {id} 100 "
            );
            assert_eq!((said, agreed), (asked, Ok(Some(Agreed::Continue { id: None }))));

            let answers = [
                "-NOAUTH Authentication required.\r\n",
                "+OK\r\n",
                "+OK\r\n",
                "+OK\r\n",
                &full,
                &format!("$EOF:{id}\r\n"),
            ];
            let (said, agreed, rest) = talk(&protected, &answers, piece);
            assert!(said.starts_with("PING AUTH u p REPLCONF "), "{said}");
            assert_eq!(agreed, Ok(Some(Agreed::Full { id: id.to_owned(), offset: 10, length: mark })));
            assert_eq!(rest, b"");

            let (_, agreed, rest) =
                talk(&known, &[&ok[..], &["+OK\r\n", &format!("+CONTINUE {id}\r\n"), "*1"]].concat(), piece);
            assert_eq!((agreed, rest.as_slice()), (Ok(Some(Agreed::Continue { id: Some(id.to_owned()) })), &b"*1"[..]));
        }
    }

    #[test]
    fn refusals() {
        let later = |line: &str| Err(Refusal::Later(line.to_owned()));
        let refused = |what: &str, line: &str| Err(Refusal::Refused(format!("{what} was answered with: {line}")));
        assert_eq!(talk(&introduction(), &["-LOADING wait\r\n"], 3).1, later("-LOADING wait"));
        assert_eq!(talk(&introduction(), &["-ERR no\r\n"], 3).1, refused("PING", "-ERR no"));
        let ok = ["+PONG\r\n", "+OK\r\n", "+OK\r\n"];
        let answered = |line: &str| talk(&introduction(), &[&ok[..], &[line, "\r\n"]].concat(), 3).1;
        assert_eq!(answered("-NOMASTERLINK Can't SYNC"), later("-NOMASTERLINK Can't SYNC"));
        for line in ["-ERR unknown command", "+FULLRESYNC short 1", "+CONTINUE short", "$5"] {
            assert_eq!(answered(line), refused("PSYNC", line));
        }
        let protected = Introduction { password: Some("p".into()), ..introduction() };
        assert_eq!(
            talk(&protected, &["+PONG\r\n", "-WRONGPASS\r\n"], 3).1,
            Err(Refusal::Refused("Unable to AUTH to MASTER: -WRONGPASS".to_owned()))
        );
        assert!(matches!(talk(&introduction(), &["x".repeat(100_000).as_str()], 1000).1, Err(Refusal::Refused(_))));
    }

    #[test]
    fn snapshots_end_where_they_say() {
        let mark = [b'm'; ID];
        for piece in 1..100 {
            for (length, sent) in [(Length::Bytes(300), 320), (Length::Mark(mark), 300)] {
                let mut bytes: Vec<u8> = (0..sent).map(|n| n as u8).collect();
                if matches!(length, Length::Mark(_)) {
                    // Bytes that look like the mark's beginning are none.
                    bytes[200..230].fill(b'm');
                    bytes.extend_from_slice(&mark);
                }
                let (mut body, mut got, mut behind) = (Body::new(length), Vec::new(), None);
                for piece in bytes.chunks(piece) {
                    if let Some(rest) = &mut behind {
                        Vec::extend_from_slice(rest, piece);
                    } else {
                        let end = body.receive(piece, |bytes| got.write_all(bytes)).unwrap();
                        behind = end.map(<[u8]>::to_vec);
                    }
                }
                assert_eq!((got.len(), &got[..]), (300, &bytes[..300]));
                assert_eq!(behind.map(|rest| rest.len()), Some(sent - 300));
                assert_eq!(body.received(), 300);
            }
        }
    }
}
