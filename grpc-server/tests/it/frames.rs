//! A client that sends the frames that a test wants, and the program itself as the server that has to bear it.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::PATIENCE;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// HTTP/2's ENHANCE_YOUR_CALM.
pub(crate) const CALM: u32 = 11;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The header block of a call, with nothing that changes the header table.
pub(crate) fn call_head(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    literal(&mut block, &[0x04], path);
    literal(&mut block, &[0x01], "test");
    // content-type is 31 in the static table: a prefix of four bits, and 16 more.
    literal(&mut block, &[0x0f, 0x10], "application/grpc");
    block
}

fn literal(block: &mut Vec<u8>, name: &[u8], value: &str) {
    block.extend_from_slice(name);
    block.push(u8::try_from(value.len()).unwrap());
    block.extend_from_slice(value.as_bytes());
}

/// A connection on which a test says what is sent.
pub(crate) struct Frames {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A frame that came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The reason of a GOAWAY or RST_STREAM.
    pub(crate) fn reason(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

impl Frames {
    /// Connects and begins, with these settings (pairs of identifier and value).
    pub(crate) fn connect(addr: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut this = Self::silent(addr);
        let settings: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
            .collect();
        this.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        this.stream.write_all(&frame(SETTINGS, 0, 0, &settings)).unwrap();
        this.stream.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap();
        this
    }

    /// Connects and says nothing.
    pub(crate) fn silent(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, read: Vec::new() }
    }

    /// Sends; false if the server has hung up.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends as much as the server takes without our reading anything, for a while.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        self.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut sent = 0;
        while let Ok(count @ 1..) = self.stream.write(&bytes[sent..]) {
            sent += count;
        }
        sent
    }

    /// Reads the server's frames on a thread of its own, while a test sends.
    pub(crate) fn drain(&self) -> std::thread::JoinHandle<Vec<Frame>> {
        let mut reader = Self { stream: self.stream.try_clone().unwrap(), read: Vec::new() };
        std::thread::spawn(move || std::iter::from_fn(move || reader.next()).collect())
    }

    /// The next frame; `None` at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((head, rest)) = self.read.split_first_chunk::<9>() {
                let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
                if rest.len() >= length {
                    let frame = Frame { kind: head[3], payload: rest[..length].to_vec() };
                    self.read.drain(..9 + length);
                    return Some(frame);
                }
            }
            let mut bytes = [0; 65536];
            match test_peers::read(&mut self.stream, &mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    return None;
                }
                Err(error) => panic!("the server says nothing more: {error}"),
            }
        }
    }
}

/// The program, on a free port.
pub(crate) struct Program {
    child: Child,
    pub(crate) addr: SocketAddr,
}

impl Program {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_grpc-server"))
            .args(["--listen", "127.0.0.1:0", "--workers", "2"])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let addr = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let (_, addr) = line.split_once("ready to accept connections on ")?;
            Some(addr.trim().parse().unwrap())
        });
        // Its log must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, addr: addr.unwrap() }
    }

    /// Resident memory, in MiB, at its highest.
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Processor time of all its threads.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let time = threads.map(|thread| {
            let text = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap_or_default();
            text.split_whitespace().next().map_or(0, |nanos| nanos.parse().unwrap())
        });
        Duration::from_nanos(time.sum())
    }

    /// Another client's calls are answered.
    pub(crate) fn serves(&self) {
        let output = Command::new(env!("CARGO_BIN_EXE_grpc-client"))
            .args(["say-hello", "--name", "Ann", "--address", &self.addr.to_string()])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Hello Ann\n", "{output:?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
