//! The floor: epoll and a constant answer, one thread per core. It looks for nothing but the ends of heads, and in HTTP/2 for
//! frames.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use rustix::event::epoll;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ndate: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
    content-length: 15\r\n\r\nHello from Rust";

/// The same in HTTP/2: `:status: 200` and two fields in their shortest form, such as the header table gives; then the body.
const FIELDS: &[u8] = b"\x88\xbf\xbe\x0f\x0d\x02\x31\x35";
const BODY: &[u8] = b"Hello from Rust";

/// What an answer's head refers to, with the first answer: content-type and date.
const FIRST: &[u8] = b"\x88\x5f\x19text/plain; charset=utf-8\x61\x1dSat, 21 Nov 2026 12:00:00 GMT\x0f\x0d\x02\x31\x35";

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
            // With what is left of a frame, once HTTP/2 is spoken.
            streams.insert(std::os::fd::AsRawFd::as_raw_fd(&stream) as u64, (stream, None::<Vec<u8>>));
        }
        for event in &events {
            let key = event.data.u64();
            let Some((stream, http2)) = streams.get_mut(&key) else { continue };
            let count = match stream.read(&mut input) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                _ => {
                    streams.remove(&key);
                    continue;
                }
            };
            output.clear();
            if let Some(unread) = http2 {
                unread.extend_from_slice(&input[..count]);
                let used = frames(unread, &mut output);
                unread.drain(..used);
            } else if let Some(behind) = input[..count].strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
                output.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
                let used = frames(behind, &mut output);
                *http2 = Some(behind[used..].to_vec());
            } else {
                for _ in input[..count].windows(4).filter(|bytes| bytes == b"\r\n\r\n") {
                    output.extend_from_slice(ANSWER);
                }
            }
            if stream.write_all(&output).is_err() {
                streams.remove(&key);
            }
        }
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
