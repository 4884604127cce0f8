//! A client for gRPC over HTTP/2 that asks the same of a server in every run: so many calls at a time on one connection,
//! every answer checked. It knows of HTTP/2 what a well-behaved server needs of it.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

// Frame types and flags (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Bytes of a frame's head.
const HEAD: usize = 9;

/// Longer than an answer takes under valgrind.
const PATIENCE: Duration = Duration::from_secs(60);

/// A method, what it is sent and what it answers, messages in gRPC's frames.
pub(super) struct Method {
    pub(super) path: &'static str,
    pub(super) request: Vec<u8>,
    pub(super) answer: Vec<u8>,
}

/// One connection, for one method.
pub(super) struct Client {
    stream: TcpStream,
    method: Method,
    /// Of the next call; odd.
    id: u32,
    input: Vec<u8>,
}

impl Client {
    /// Connects and makes one call, after which header fields are known by their numbers.
    pub(super) fn open(port: u16, method: Method) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut output = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut output, SETTINGS, 0, 0, &[]);
        // All that the protocol allows, once: what is counted needs no more.
        frame(&mut output, WINDOW_UPDATE, 0, 0, &(i32::MAX.unsigned_abs() - 65_535).to_be_bytes());
        stream.write_all(&output)?;
        let mut client = Self { stream, method, id: 1, input: Vec::new() };
        // Literals that the server is to remember (RFC 7541, section 6.2.1), with names from the static table.
        let mut block = vec![0x83, 0x86];
        literal(&mut block, &[0x44], client.method.path);
        literal(&mut block, &[0x41], "127.0.0.1");
        literal(&mut block, &[0x5f], "application/grpc");
        literal(&mut block, b"\x40\x02te", "trailers");
        client.exchange(&block, 1)?;
        Ok(client)
    }

    /// Makes `count` calls, `depth` at a time.
    pub(super) fn calls(&mut self, count: u64, depth: u64) -> Result<()> {
        for _ in 0..count / depth {
            // Method and scheme from the static table; path, authority, content-type and te as they were remembered.
            self.exchange(&[0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe], depth)?;
        }
        Ok(())
    }

    /// Sends so many calls by one write, and waits for their answers.
    fn exchange(&mut self, block: &[u8], depth: u64) -> Result<()> {
        let mut output = Vec::new();
        for _ in 0..depth {
            frame(&mut output, HEADERS, END_HEADERS, self.id, block);
            frame(&mut output, DATA, END_STREAM, self.id, &self.method.request);
            self.id += 2;
        }
        self.stream.write_all(&output)?;
        let (mut ended, mut answered) = (0, 0);
        while ended < depth {
            let (kind, flags, payload) = self.receive()?;
            match (kind, flags & ACK) {
                (SETTINGS, 0) => self.send(SETTINGS, ACK, &[])?,
                (PING, 0) => self.send(PING, ACK, &payload)?,
                (DATA, _) => {
                    // Calls of one depth may answer in pieces between each other; what they say is the same throughout.
                    let known = payload.iter().all(|byte| self.method.answer.contains(byte));
                    ensure!(known, "wrong answer: {}", String::from_utf8_lossy(&payload));
                    answered += payload.len();
                }
                // The trailers; an error has them alone, and then there is no answer.
                (HEADERS, END_STREAM) => ended += 1,
                (RST_STREAM | GOAWAY, _) => bail!("the server ends a call, or the connection: {payload:?}"),
                _ => {}
            }
        }
        let expected = self.method.answer.len() * depth as usize;
        ensure!(answered == expected, "{answered} bytes of answers, expected {expected}");
        Ok(())
    }

    fn send(&mut self, kind: u8, flags: u8, payload: &[u8]) -> Result<()> {
        let mut output = Vec::new();
        frame(&mut output, kind, flags, 0, payload);
        Ok(self.stream.write_all(&output)?)
    }

    /// The next frame: type, flags, payload.
    fn receive(&mut self) -> Result<(u8, u8, Vec<u8>)> {
        loop {
            if let [a, b, c, kind, flags, ..] = self.input[..]
                && self.input.len() >= HEAD + u32::from_be_bytes([0, a, b, c]) as usize
            {
                let length = u32::from_be_bytes([0, a, b, c]) as usize;
                let payload = self.input.drain(..HEAD + length).skip(HEAD).collect();
                return Ok((kind, flags, payload));
            }
            let mut bytes = [0; 64 * 1024];
            let count = test_peers::read(&mut self.stream, &mut bytes)?;
            ensure!(count > 0, "the server closed the connection");
            self.input.extend_from_slice(&bytes[..count]);
        }
    }
}

fn frame(output: &mut Vec<u8>, kind: u8, flags: u8, id: u32, payload: &[u8]) {
    output.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    output.extend([kind, flags]);
    output.extend_from_slice(&id.to_be_bytes());
    output.extend_from_slice(payload);
}

/// A header field in HPACK: what stands before the value, and the value, shorter than 127 bytes.
fn literal(block: &mut Vec<u8>, name: &[u8], value: &str) {
    block.extend_from_slice(name);
    block.push(value.len() as u8);
    block.extend_from_slice(value.as_bytes());
}
