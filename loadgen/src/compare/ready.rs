//! How it is seen that a server serves.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;

use super::words::Words;
use crate::process::Process;

/// A sign that a server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Ready {
    /// It accepts a TCP connection.
    #[default]
    Tcp,
    /// It has a UDP socket at its port.
    Udp,
    /// It answers PING with PONG.
    Redis,
    /// It answers a GET of this path with a status below 500.
    Http(String),
    /// This command succeeds.
    Command(Words),
}

impl TryFrom<String> for Ready {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.split_once(':')) {
            ("tcp", _) => Ok(Self::Tcp),
            ("udp", _) => Ok(Self::Udp),
            ("redis", _) => Ok(Self::Redis),
            (_, Some(("http", path))) if path.starts_with('/') && !path.contains(char::is_whitespace) => {
                Ok(Self::Http(path.to_owned()))
            }
            (_, Some(("command", command))) => Words::try_from(command.trim().to_owned()).map(Self::Command),
            _ => Err(format!("the ready check is `{text}`, expected tcp, udp, redis, http:/PATH or command:WORDS")),
        }
    }
}

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(2);

impl Ready {
    /// Looks once; `succeeds` runs a command.
    pub(crate) fn holds(&self, address: SocketAddr, succeeds: impl FnOnce(&Words) -> bool) -> bool {
        match self {
            Self::Tcp => connect(address).is_ok(),
            Self::Udp => Process::listening_on(address).is_some(),
            Self::Redis => exchange(address, b"PING\r\n", b"\r\n").is_ok_and(|reply| reply == b"+PONG\r\n"),
            Self::Http(path) => {
                let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
                exchange(address, request.as_bytes(), b"\r\n").is_ok_and(|line| is_fine(&line))
            }
            Self::Command(words) => succeeds(words),
        }
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, ATTEMPT)?;
    stream.set_read_timeout(Some(ATTEMPT))?;
    stream.set_write_timeout(Some(ATTEMPT))?;
    Ok(stream)
}

/// Longest answer that is read.
const MOST: usize = 4096;

/// Sends a request and reads until `end` has come.
fn exchange(address: SocketAddr, request: &[u8], end: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(end) && answer.len() < MOST {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    Ok(answer)
}

/// Whether a status line says less than 500.
fn is_fine(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    status.and_then(|status| status.parse::<u16>().ok()).is_some_and(|status| status < 500)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn checks_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Option<Ready>) {
            assert_eq!(Ready::try_from(text.to_owned()).ok(), expected, "{text}");
        }
        check("tcp", Some(Ready::Tcp));
        check("http:/a?b", Some(Ready::Http("/a?b".to_owned())));
        check("command: redis-cli ping", Some(Ready::Command(Words::try_from("redis-cli ping".to_owned()).unwrap())));
        check("http:a", None);
        check("http:/a b", None);
        check("command:", None);
        check("", None);
    }

    #[test]
    fn servers_are_asked() {
        // A server that answers anything with a fixed text.
        #[track_caller]
        fn check(ready: &Ready, answer: &'static [u8], expected: bool) {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                // A check that only connects sends nothing.
                let _ = stream.read(&mut [0; 512]);
                let _ = stream.write_all(answer);
            });
            assert_eq!(ready.holds(address, |_| false), expected, "{ready:?}");
            server.join().unwrap();
            assert!(!ready.holds(address, |_| false), "{ready:?}: nobody listens there");
        }
        check(&Ready::Tcp, b"", true);
        check(&Ready::Redis, b"+PONG\r\n", true);
        check(&Ready::Redis, b"-LOADING\r\n", false);
        check(&Ready::Redis, b"", false);
        check(&Ready::Http("/".to_owned()), b"HTTP/1.1 404 Not Found\r\n\r\n", true);
        check(&Ready::Http("/".to_owned()), b"HTTP/1.1 503 Later\r\n\r\n", false);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(Ready::Udp.holds(socket.local_addr().unwrap(), |_| false));
        let words = Words::try_from("true".to_owned()).unwrap();
        assert!(Ready::Command(words).holds(socket.local_addr().unwrap(), |_| true));
    }
}
