//! A client that gives up on a server which does not answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::isolation::request;

/// How long an answer may take, before the server counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server's answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Text(String),
    Number(i64),
    Error(String),
    Array(Vec<Self>),
    Nothing,
}

impl Reply {
    /// An array's elements as text, nested ones left out; none, where it is something else.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let Self::Array(elements) = self else { return Vec::new() };
        elements.iter().map(|element| if let Self::Text(text) = element { text } else { "" }).collect()
    }

    /// The text, or nothing.
    pub(crate) fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn ask(&mut self, line: &str) -> io::Result<Reply> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.stream.get_mut().write_all(&request(&words))?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("no reply: {line:?}"));
        let text = line.strip_suffix("\r\n").and_then(|line| line.get(1..)).ok_or_else(wrong)?;
        let number = || text.parse::<i64>().map_err(|_| wrong());
        Ok(match line.as_bytes()[0] {
            b'+' => Reply::Text(text.to_owned()),
            b'-' => Reply::Error(text.to_owned()),
            b':' => Reply::Number(number()?),
            b'$' => match usize::try_from(number()?) {
                Ok(length) => {
                    let mut bytes = Vec::new();
                    let wanted = length as u64 + 2;
                    if self.stream.by_ref().take(wanted).read_to_end(&mut bytes)? as u64 != wanted {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    bytes.truncate(length);
                    Reply::Text(String::from_utf8_lossy(&bytes).into_owned())
                }
                Err(_) => Reply::Nothing,
            },
            b'*' => Reply::Array((0..number()?).map(|_| self.reply()).collect::<io::Result<_>>()?),
            _ => return Err(wrong()),
        })
    }
}

/// A question of its own connection.
pub(crate) fn ask(addr: SocketAddr, line: &str) -> io::Result<Reply> {
    Client::connect(addr)?.ask(line)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn replies_are_read_and_what_is_none_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let text = |text: &str| Reply::Text(text.to_owned());
        let cases: [(&str, Option<Reply>); 8] = [
            ("+OK\r\n", Some(text("OK"))),
            ("-ERR no\r\n", Some(Reply::Error("ERR no".to_owned()))),
            (":-7\r\n", Some(Reply::Number(-7))),
            ("$-1\r\n", Some(Reply::Nothing)),
            (
                "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
                Some(Reply::Array(vec![text("a"), Reply::Array(vec![Reply::Number(1)])])),
            ),
            ("$5\r\nab\r\n", None),
            ("?\r\n", None),
            ("", None),
        ];
        for (bytes, expected) in cases {
            thread::scope(|scope| {
                scope.spawn(|| listener.accept().unwrap().0.write_all(bytes.as_bytes()).unwrap());
                assert_eq!(ask(addr, "PING").ok(), expected, "{bytes:?}");
            });
        }
    }
}
