//! A loader and a fixed request pattern: keys and values of known size, pipelined over one connection, every reply checked.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// Commands per write while a keyspace is filled.
const BATCH: u64 = 1000;

/// How long a cluster may take until it serves, under valgrind too: a node alone waits for two seconds.
const COMES_UP: Duration = Duration::from_secs(60);

/// Which request [`Connection::pipeline`] sends.
#[derive(Clone, Copy)]
pub(crate) enum Request {
    Get,
    Set,
}

/// One blocking connection to a server on the loopback interface.
pub(crate) struct Connection {
    stream: TcpStream,
    value: String,
}

impl Connection {
    /// Connects; values are `value_size` bytes long.
    pub(crate) fn open(port: u16, value_size: usize) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, value: "x".repeat(value_size) })
    }

    /// Makes the server the only node of its cluster, and waits until it serves all slots.
    pub(crate) fn serve_all_slots(&mut self) -> Result<()> {
        ensure!(self.ask("CLUSTER ADDSLOTSRANGE 0 16383")?.starts_with("+OK"), "the slots cannot be had");
        let deadline = Instant::now() + COMES_UP;
        while !self.ask("CLUSTER INFO")?.contains("cluster_state:ok") {
            ensure!(Instant::now() < deadline, "the cluster does not come up");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A short command's reply, as it comes.
    fn ask(&mut self, line: &str) -> Result<String> {
        self.stream.write_all(format!("{line}\r\n").as_bytes())?;
        let mut reply = [0; 4096];
        let count = test_peers::read(&mut self.stream, &mut reply)?;
        Ok(String::from_utf8_lossy(&reply[..count]).into_owned())
    }

    /// Sets `keys` keys of 16 bytes, `key:000000000000` and up: the names that redis-benchmark `-r` uses.
    pub(crate) fn fill(&mut self, keys: u64) -> Result<()> {
        let mut start = 0;
        while start < keys {
            let end = keys.min(start + BATCH);
            self.exchange(Request::Set, start..end)?;
            start = end;
        }
        Ok(())
    }

    /// Sends `count` requests for keys below `keys`, `depth` at a time, in an order that is the same in every run.
    pub(crate) fn pipeline(&mut self, request: Request, count: u64, depth: u64, keys: u64) -> Result<()> {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..count / depth {
            let batch: Vec<u64> = (0..depth).map(|_| xorshift(&mut random) % keys).collect();
            self.exchange(request, batch.into_iter())?;
        }
        Ok(())
    }

    fn exchange(&mut self, request: Request, keys: impl Iterator<Item = u64>) -> Result<()> {
        let mut output = String::new();
        let mut expected = String::new();
        let value = &self.value;
        for key in keys {
            match request {
                Request::Get => {
                    output.push_str(&format!("*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n"));
                    expected.push_str(&format!("${}\r\n{value}\r\n", value.len()));
                }
                Request::Set => {
                    let length = value.len();
                    output.push_str(&format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n${length}\r\n{value}\r\n"));
                    expected.push_str("+OK\r\n");
                }
            }
        }
        self.stream.write_all(output.as_bytes())?;
        let mut reply = vec![0; expected.len()];
        self.stream.read_exact(&mut reply)?;
        ensure!(
            reply == expected.as_bytes(),
            "wrong reply: {}",
            String::from_utf8_lossy(&reply[..reply.len().min(200)])
        );
        Ok(())
    }
}

/// Marsaglia's xorshift64: small, seeded, good enough to pick keys and to resample.
pub(crate) fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
