//! The floor: epoll and a constant answer, one thread per core. It looks for nothing but the ends of heads, in HTTP/2 for frames, and in
//! Redis' protocol for the beginnings of requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use rustix::event::epoll;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ndate: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
    content-length: 15\r\n\r\nHello from Rust";

/// The same in HTTP/2: `:status: 200` and two fields in their shortest form, such as the header table gives; then the body.
const FIELDS: &[u8] = b"\x88\xbf\xbe\x0f\x0d\x02\x31\x35";
const BODY: &[u8] = b"Hello from Rust";

/// The header block of the first response: content-type and date, which later blocks refer to.
const FIRST: &[u8] = b"\x88\x5f\x19text/plain; charset=utf-8\x61\x1dSat, 21 Nov 2026 12:00:00 GMT\x0f\x0d\x02\x31\x35";

/// A value of 100 bytes, for `GET`; the other command of redis-benchmark is `SET`.
const VALUE: &[u8] =
    b"$100\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n";
const OK: &[u8] = b"+OK\r\n";

fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|port| port.parse().ok()).expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let workers = std::thread::available_parallelism()?.get();
    let mut inboxes = Vec::new();
    for _ in 0..workers {
        let epoll = std::sync::Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let (sender, inbox) = channel::<TcpStream>();
        inboxes.push((std::sync::Arc::clone(&epoll), sender));
        std::thread::spawn(move || work(&epoll, &inbox));
    }
    for (number, stream) in listener.incoming().enumerate() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (epoll, sender) = &inboxes[number % workers];
        // Registered last: the worker finds the stream in its inbox when the first event comes.
        let copy = stream.try_clone()?;
        let key = std::os::fd::AsRawFd::as_raw_fd(&stream) as u64;
        sender.send(stream).expect("workers live for ever");
        epoll::add(&**epoll, &copy, epoll::EventData::new_u64(key), epoll::EventFlags::IN)?;
        // The copy would keep the connection open.
        drop(copy);
    }
    Ok(())
}

/// The protocol of a connection.
enum Protocol {
    Http1,
    /// With what is left of a frame.
    Http2(Vec<u8>),
    Redis,
}

fn work(epoll: &std::os::fd::OwnedFd, inbox: &std::sync::mpsc::Receiver<TcpStream>) {
    let mut streams = std::collections::HashMap::new();
    let mut events = Vec::with_capacity(256);
    let (mut input, mut output) = (vec![0; 65536], Vec::new());
    loop {
        events.clear();
        if epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None).is_err() {
            continue;
        }
        for stream in inbox.try_iter() {
            streams.insert(std::os::fd::AsRawFd::as_raw_fd(&stream) as u64, (stream, Protocol::Http1));
        }
        for event in &events {
            let key = event.data.u64();
            let Some((stream, protocol)) = streams.get_mut(&key) else { continue };
            let count = match stream.read(&mut input) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                _ => {
                    streams.remove(&key);
                    continue;
                }
            };
            output.clear();
            let input = &input[..count];
            if input[0] == b'*' {
                *protocol = Protocol::Redis;
            }
            match protocol {
                Protocol::Redis => requests(input, &mut output),
                Protocol::Http2(unread) => {
                    unread.extend_from_slice(input);
                    let used = frames(unread, &mut output);
                    unread.drain(..used);
                }
                Protocol::Http1 => {
                    if let Some(behind) = input.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
                        output.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
                        let used = frames(behind, &mut output);
                        *protocol = Protocol::Http2(behind[used..].to_vec());
                    } else {
                        for _ in input.windows(4).filter(|bytes| bytes == b"\r\n\r\n") {
                            output.extend_from_slice(ANSWER);
                        }
                    }
                }
            }
            if stream.write_all(&output).is_err() {
                streams.remove(&key);
            }
        }
    }
}

/// Answers all requests of Redis' protocol that begin here.
fn requests(input: &[u8], output: &mut Vec<u8>) {
    let begins = |at: &usize| input[*at] == b'*' && (*at == 0 || input[at - 1] == b'\n');
    for at in (0..input.len()).filter(begins) {
        // Behind the number of words and the length of the first one.
        let is_get = input[at..].get(8..11) == Some(b"GET");
        output.extend_from_slice(if is_get { VALUE } else { OK });
    }
}

/// Answers all whole frames; how many bytes they have.
fn frames(input: &[u8], output: &mut Vec<u8>) -> usize {
    let mut used = 0;
    while let [a, b, c, kind, flags, s, t, u, v, ..] = input[used..] {
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if input.len() - used < 9 + length {
            break;
        }
        used += 9 + length;
        match (kind, flags & 1) {
            // A request.
            (1, _) => {
                let fields = if [s, t, u, v] == [0, 0, 0, 1] { FIRST } else { FIELDS };
                output.extend_from_slice(&[0, 0, fields.len() as u8, 1, 4, s, t, u, v]);
                output.extend_from_slice(fields);
                output.extend_from_slice(&[0, 0, BODY.len() as u8, 0, 1, s, t, u, v]);
                output.extend_from_slice(BODY);
            }
            // Settings.
            (4, 0) => output.extend_from_slice(&[0, 0, 0, 4, 1, 0, 0, 0, 0]),
            _ => {}
        }
    }
    used
}
