//! A client that sends commands and throws their replies away.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};

/// Elements that one command of a filling pipeline adds: little enough to hold nobody up.
pub(super) const CHUNK: usize = 100;
/// Commands of a filling pipeline.
const DEPTH: usize = 16;

pub(super) struct Client {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Client {
    pub(super) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let replies = BufReader::with_capacity(1 << 20, stream.try_clone()?);
        Ok(Self { stream, replies })
    }

    /// Sends a command and reads its reply, which may be an error.
    pub(super) fn ask(&mut self, words: &[&str]) -> Result<()> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.stream.write_all(&request(&words))?;
        self.discard()
    }

    /// Sends encoded commands and reads as many replies.
    pub(super) fn pipeline(&mut self, bytes: &[u8], commands: usize) -> Result<()> {
        self.stream.write_all(bytes)?;
        (0..commands).try_for_each(|_| self.discard())
    }

    /// Adds `size` elements, made of their numbers by `element`, by commands that begin with `head`.
    pub(super) fn fill(&mut self, head: &[&str], size: usize, element: impl Fn(usize) -> Vec<Vec<u8>>) -> Result<()> {
        let mut next = 0;
        while next < size {
            let (mut bytes, mut commands) = (Vec::new(), 0);
            while commands < DEPTH && next < size {
                let end = (next + CHUNK).min(size);
                let elements: Vec<Vec<u8>> = (next..end).flat_map(&element).collect();
                let head = head.iter().map(|word| word.as_bytes());
                bytes.extend(request(&head.chain(elements.iter().map(Vec::as_slice)).collect::<Vec<_>>()));
                (next, commands) = (end, commands + 1);
            }
            self.pipeline(&bytes, commands)?;
        }
        Ok(())
    }

    fn discard(&mut self) -> Result<()> {
        let mut missing = 1u64;
        while missing > 0 {
            missing -= 1;
            let mut line = Vec::new();
            self.replies.read_until(b'\n', &mut line)?;
            let number = || -> Result<i64> { Ok(std::str::from_utf8(&line[1..])?.trim().parse()?) };
            match line.first().context("the server has closed the connection")? {
                b'+' | b'-' | b':' => {}
                b'$' => {
                    if let Ok(len) = u64::try_from(number()?) {
                        std::io::copy(&mut self.replies.by_ref().take(len + 2), &mut std::io::sink())?;
                    }
                }
                b'*' => missing += u64::try_from(number()?).unwrap_or(0),
                other => bail!("no reply begins with {other}"),
            }
        }
        Ok(())
    }
}

/// A command in RESP.
pub(super) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
