//! A server that answers a constant as cheaply as can be, for measuring generators instead of servers.
//!
//! ```text
//! cargo run --release --example constant -- http|redis|grpc|udp [PORT [MILLISECONDS [STEPS]]]
//! ```
//!
//! With a time, each answer waits so long, and the rate of a closed loop is known: requests under way by that time. With steps, each answer of HTTP is
//! work: a loop so long, for two servers that differ by a known share. It prints its address and answers until it is ended: HTTP/1.1 requests without bodies, Redis commands as arrays,
//! unary gRPC calls (HTTP/2, cleartext), or ECHONET Lite reads of one property. One thread, no checks beyond its own safety.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// The answer to a GET: what `hello` servers say.
const HTTP: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nHello, World!";

const REDIS: &[u8] = b"+OK\r\n";

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let kind = words.next().context("expected http, redis, grpc or udp")?;
    let address = format!("127.0.0.1:{}", words.next().unwrap_or_else(|| "0".to_owned()));
    let answer: Answer = match kind.as_str() {
        "udp" => return datagrams(&address),
        "http" => http,
        "redis" => redis,
        "grpc" => grpc,
        other => bail!("`{other}`: expected http, redis, grpc or udp"),
    };
    let mut number = |what| words.next().map_or(Ok(0), |word| word.parse()).context(what);
    streams(&address, answer, Duration::from_millis(number("milliseconds")?), number("steps")?)
}

/// Appends the answers to all complete requests at the beginning of the input, and gives how many bytes they have.
type Answer = fn(&mut State, &[u8], &mut Vec<u8>) -> usize;

/// The state of a connection besides bytes.
#[derive(Default)]
struct State {
    /// How long a loop runs for each answer.
    steps: u64,
    /// Whether the HTTP/2 preface is done.
    greeted: bool,
    /// Bytes received since the last WINDOW_UPDATE.
    unacknowledged: u32,
}

struct Connection {
    stream: TcpStream,
    state: State,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    /// How many of the unsent bytes need not wait longer.
    due: usize,
    /// How many were appended in this turn.
    fresh: usize,
}

/// Answers that wait: until when, of which connection, how many bytes.
type Waiting = VecDeque<(Instant, u64, usize)>;

fn streams(address: &str, answer: Answer, delay: Duration, steps: u64) -> Result<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?);
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let mut waiting = Waiting::new();
    let mut events = Vec::with_capacity(512);
    let mut buffer = vec![0; 64 << 10];
    let mut next_key = LISTENER;
    loop {
        match epoll::wait(&poll, spare_capacity(&mut events), patience(&waiting).as_ref()) {
            Err(error) if error != rustix::io::Errno::INTR => return Err(error.into()),
            _ => {}
        }
        for event in events.drain(..) {
            let key = event.data.u64();
            if key == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    next_key += 1;
                    // Edges only: writability after a full buffer needs no second registration.
                    let edges = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                    epoll::add(&poll, &stream, EventData::new_u64(next_key), edges)?;
                    connections.insert(next_key, Connection::new(stream, steps));
                }
            } else if let Some(connection) = connections.get_mut(&key) {
                let open = connection.turn(answer, delay, &mut buffer);
                let fresh = std::mem::take(&mut connection.fresh);
                if !delay.is_zero() && fresh > 0 {
                    waiting.push_back((Instant::now() + delay, key, fresh));
                }
                if !open {
                    connections.remove(&key);
                }
            }
        }
        while waiting.front().is_some_and(|(until, ..)| *until <= Instant::now()) {
            let Some((_, key, bytes)) = waiting.pop_front() else { break };
            if let Some(connection) = connections.get_mut(&key) {
                connection.due += bytes;
                if !connection.send() {
                    connections.remove(&key);
                }
            }
        }
    }
}

/// The key of the listening socket; connections have higher ones.
const LISTENER: u64 = 0;

/// How long until the next answer is due; nothing if none waits.
fn patience(waiting: &Waiting) -> Option<Timespec> {
    let (until, ..) = waiting.front()?;
    let left = until.saturating_duration_since(Instant::now());
    Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
}

impl Connection {
    fn new(stream: TcpStream, steps: u64) -> Self {
        let state = State { steps, ..State::default() };
        Self { stream, state, unread: Vec::new(), unsent: Vec::new(), due: 0, fresh: 0 }
    }

    /// Reads and answers what there is; gives whether the connection goes on. With a delay, answers are left unsent.
    fn turn(&mut self, answer: Answer, delay: Duration, buffer: &mut [u8]) -> bool {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.take(answer, &buffer[..count]);
                    if delay.is_zero() {
                        self.due = self.unsent.len();
                    }
                    if !self.send() {
                        return false;
                    }
                    // A short read has emptied the socket: what comes later is an edge of its own.
                    if count < buffer.len() {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.send(),
                Err(_) => return false,
            }
        }
    }

    fn take(&mut self, answer: Answer, input: &[u8]) {
        let before = self.unsent.len();
        if self.unread.is_empty() {
            let done = answer(&mut self.state, input, &mut self.unsent);
            self.unread.extend_from_slice(&input[done..]);
        } else {
            self.unread.extend_from_slice(input);
            let done = answer(&mut self.state, &self.unread, &mut self.unsent);
            self.unread.drain(..done);
        }
        self.fresh += self.unsent.len() - before;
    }

    /// Sends what is due, as far as the socket takes it; gives whether the connection goes on.
    fn send(&mut self) -> bool {
        while self.due > 0 {
            match self.stream.write(&self.unsent[..self.due]) {
                Ok(count) => {
                    self.due -= count;
                    // The usual case does not move bytes.
                    if count == self.unsent.len() {
                        self.unsent.clear();
                    } else {
                        self.unsent.drain(..count);
                    }
                }
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

/// Requests without bodies: each ends at its first empty line.
fn http(state: &mut State, input: &[u8], out: &mut Vec<u8>) -> usize {
    let mut done = 0;
    while let Some(length) = input[done..].windows(4).position(|four| four == b"\r\n\r\n") {
        done += length + 4;
        for step in 0..state.steps {
            std::hint::black_box(step);
        }
        out.extend_from_slice(HTTP);
    }
    done
}

/// Arrays of bulk strings, the only form that clients send.
fn redis(_: &mut State, input: &[u8], out: &mut Vec<u8>) -> usize {
    let mut done = 0;
    while let Some(length) = redis_command(&input[done..]) {
        done += length;
        out.extend_from_slice(REDIS);
    }
    done
}

fn redis_command(input: &[u8]) -> Option<usize> {
    let (words, mut at) = redis_number(input, 0)?;
    for _ in 0..words {
        let (length, start) = redis_number(input, at)?;
        at = start + length + 2;
    }
    (at <= input.len()).then_some(at)
}

/// The number of a line such as `$12`, and where the next line begins.
fn redis_number(input: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut number = 0;
    at += 1;
    loop {
        match *input.get(at)? {
            b'\r' => return (at + 2 <= input.len()).then_some((number, at + 2)),
            digit => number = (number * 10 + usize::from(digit.wrapping_sub(b'0'))) & 0xff_ffff,
        }
        at += 1;
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// SETTINGS: 2^31 - 1 bytes for each stream; WINDOW_UPDATE: 1 GiB more for the connection.
const GREETING: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff\0\0\x04\x08\0\0\0\0\0\x40\0\0\0";

/// The parts of an answer after their frames' stream numbers: headers (`:status: 200`, `content-type`), a message of
/// `HelloReply`, trailers (`grpc-status: 0`).
const GRPC: [(&[u8; 5], &[u8]); 3] = [
    (b"\0\0\x14\x01\x04", b"\x88\x0f\x10\x10application/grpc"),
    (b"\0\0\x14\0\0", b"\0\0\0\0\x0f\x0a\x0dHello, World!"),
    (b"\0\0\x0f\x01\x05", b"\0\x0bgrpc-status\x010"),
];

/// How much is received between two WINDOW_UPDATEs of the connection.
const ACKNOWLEDGED_AT: u32 = 1 << 20;

/// HTTP/2 frames: every stream that the client ends is answered.
fn grpc(state: &mut State, input: &[u8], out: &mut Vec<u8>) -> usize {
    let mut done = 0;
    if !state.greeted {
        if input.len() < PREFACE.len() {
            return 0;
        }
        (state.greeted, done) = (true, PREFACE.len());
        out.extend_from_slice(GREETING);
    }
    while let Some((&[l2, l1, l0, kind, flags, s3, s2, s1, s0], rest)) = input[done..].split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, l2, l1, l0]);
        let Some(payload) = rest.get(..length as usize) else { break };
        done += 9 + payload.len();
        match kind {
            // DATA, HEADERS
            0 | 1 => {
                state.unacknowledged += if kind == 0 { length } else { 0 };
                if flags & 1 != 0 {
                    for (head, payload) in GRPC {
                        out.extend_from_slice(head);
                        out.extend_from_slice(&[s3, s2, s1, s0]);
                        out.extend_from_slice(payload);
                    }
                }
            }
            // SETTINGS and PING are confirmed.
            4 if flags & 1 == 0 => out.extend_from_slice(b"\0\0\0\x04\x01\0\0\0\0"),
            6 if flags & 1 == 0 => {
                out.extend_from_slice(b"\0\0\x08\x06\x01\0\0\0\0");
                out.extend_from_slice(payload);
            }
            _ => {}
        }
    }
    if state.unacknowledged >= ACKNOWLEDGED_AT {
        out.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0");
        out.extend_from_slice(&std::mem::take(&mut state.unacknowledged).to_be_bytes());
    }
    done
}

/// The property's value is always 0x30.
fn datagrams(address: &str) -> Result<()> {
    let socket = UdpSocket::bind(address)?;
    println!("{}", socket.local_addr()?);
    let mut frame = [0; 1500];
    loop {
        let (length, from) = socket.recv_from(&mut frame)?;
        if length != 14 {
            continue;
        }
        for place in 4..7 {
            frame.swap(place, place + 3);
        }
        frame[10] = 0x72;
        frame[13..15].copy_from_slice(b"\x01\x30");
        // A peer that does not take its answer loses it, as on any network.
        let _ = socket.send_to(&frame[..15], from);
    }
}
