//! A client that sends commands and throws their replies away.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};

/// Elements that one command of a filling pipeline adds: little enough to stall no client.
pub(super) const CHUNK: usize = 100;
/// Commands of a filling pipeline.
const DEPTH: usize = 16;

pub(crate) struct Client {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
    /// Connections that say nothing.
    others: Vec<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let replies = BufReader::with_capacity(1 << 20, stream.try_clone()?);
        Ok(Self { stream, replies, others: Vec::new() })
    }

    /// Opens so many more connections to the same server, which stay as long as this client.
    pub(super) fn bring(&mut self, count: usize) -> Result<()> {
        let addr = self.stream.peer_addr()?;
        self.others = (0..count).map(|_| TcpStream::connect(addr)).collect::<std::io::Result<_>>()?;
        Ok(())
    }

    /// Sends a command and reads its reply, which may be an error.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Result<()> {
        self.send(words)?;
        self.discard()
    }

    /// Sends a command whose reply is not read.
    pub(crate) fn send(&mut self, words: &[&str]) -> Result<()> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        Ok(self.stream.write_all(&request(&words))?)
    }

    /// Sends a command and reads its reply, a bulk string.
    pub(crate) fn text(&mut self, words: &[&str]) -> Result<String> {
        self.send(words)?;
        self.bulk()
    }

    /// Reads a bulk string.
    fn bulk(&mut self) -> Result<String> {
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        let len: usize = line.strip_prefix('$').with_context(|| format!("no text: {line}"))?.trim().parse()?;
        let mut text = vec![0; len + 2];
        self.replies.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text[..len]).into_owned())
    }

    /// A number that INFO tells.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> Result<f64> {
        let text = self.text(&["INFO", section])?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(line.with_context(|| format!("INFO {section} has no {field}"))?.trim().parse()?)
    }

    /// Sends a command and reads its reply, an integer.
    pub(crate) fn integer(&mut self, words: &[&str]) -> Result<i64> {
        self.send(words)?;
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        Ok(line.strip_prefix(':').with_context(|| format!("no integer: {line}"))?.trim().parse()?)
    }

    /// Sends an encoded FT.SEARCH with NOCONTENT and reads the keys of its reply.
    pub(crate) fn keys(&mut self, query: &[u8]) -> Result<Vec<String>> {
        let (_, keys) = self.found(query)?;
        (0..keys).map(|_| self.bulk()).collect()
    }

    /// Sends an encoded FT.SEARCH or FT.AGGREGATE and reads its reply: the total, and how many elements followed.
    pub(crate) fn total(&mut self, query: &[u8]) -> Result<(i64, usize)> {
        let (total, elements) = self.found(query)?;
        (0..elements).try_for_each(|_| self.discard())?;
        Ok((total, elements))
    }

    /// Sends a query; the total of its reply, and the number of elements that follow and are not read.
    fn found(&mut self, query: &[u8]) -> Result<(i64, usize)> {
        self.stream.write_all(query)?;
        let (mut array, mut total) = (String::new(), String::new());
        self.replies.read_line(&mut array)?;
        let elements: usize = array.strip_prefix('*').with_context(|| format!("no array: {array}"))?.trim().parse()?;
        self.replies.read_line(&mut total)?;
        let total = total.strip_prefix(':').with_context(|| format!("no total: {total}"))?.trim().parse()?;
        Ok((total, elements - 1))
    }

    /// Sends `name` with the arguments that `arguments` makes of each number below `count`.
    pub(crate) fn each(&mut self, name: &str, count: usize, arguments: impl Fn(usize) -> Vec<Vec<u8>>) -> Result<()> {
        for from in (0..count).step_by(CHUNK) {
            let to = (from + CHUNK).min(count);
            let mut bytes = Vec::new();
            for number in from..to {
                let arguments = arguments(number);
                let words = [name.as_bytes()].into_iter().chain(arguments.iter().map(Vec::as_slice));
                bytes.extend(request(&words.collect::<Vec<_>>()));
            }
            self.pipeline(&bytes, to - from)?;
        }
        Ok(())
    }

    /// Sends encoded commands and reads as many replies.
    pub(crate) fn pipeline(&mut self, bytes: &[u8], commands: usize) -> Result<()> {
        self.stream.write_all(bytes)?;
        (0..commands).try_for_each(|_| self.discard())
    }

    /// Adds `size` elements, made of their numbers by `element`, by commands that begin with `head`.
    pub(crate) fn fill(&mut self, head: &[&str], size: usize, element: impl Fn(usize) -> Vec<Vec<u8>>) -> Result<()> {
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
                b'+' | b'-' | b':' | b'_' => {}
                b'$' => {
                    if let Ok(len) = u64::try_from(number()?) {
                        std::io::copy(&mut self.replies.by_ref().take(len + 2), &mut std::io::sink())?;
                    }
                }
                b'*' => missing += u64::try_from(number()?).unwrap_or(0),
                b'%' => missing += 2 * u64::try_from(number()?).unwrap_or(0),
                other => bail!("no reply begins with {other}"),
            }
        }
        Ok(())
    }
}

/// A command in RESP.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
