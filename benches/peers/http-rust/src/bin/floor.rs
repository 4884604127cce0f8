//! The floor: epoll and a constant answer, one thread per core. It looks for nothing but the ends of heads.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use rustix::event::epoll;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ndate: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
    content-length: 15\r\n\r\nHello from Rust";

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
            streams.insert(std::os::fd::AsRawFd::as_raw_fd(&stream) as u64, stream);
        }
        for event in &events {
            let key = event.data.u64();
            let Some(stream) = streams.get_mut(&key) else { continue };
            let count = match stream.read(&mut input) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                _ => {
                    streams.remove(&key);
                    continue;
                }
            };
            output.clear();
            for _ in input[..count].windows(4).filter(|bytes| bytes == b"\r\n\r\n") {
                output.extend_from_slice(ANSWER);
            }
            if stream.write_all(&output).is_err() {
                streams.remove(&key);
            }
        }
    }
}
