//! A target for more connections than there could be threads: it answers everything with `+PONG`.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// Starts it. It answers each read once, so a connection may have one request under way.
pub(crate) fn many() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // The standard library's queue of 128 would make so many connections wait for retransmissions.
    rustix::net::listen(&listener, 4096).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        listener.set_nonblocking(true).unwrap();
        let poll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        epoll::add(&poll, &listener, EventData::new_u64(0), EventFlags::IN).unwrap();
        let mut streams: Vec<Option<TcpStream>> = vec![None];
        let (mut events, mut buffer) = (Vec::with_capacity(512), [0; 4096]);
        loop {
            rustix::io::retry_on_intr(|| epoll::wait(&poll, spare_capacity(&mut events), None)).unwrap();
            for event in events.drain(..) {
                let place = event.data.u64();
                if place == 0 {
                    while let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true).unwrap();
                        epoll::add(&poll, &stream, EventData::new_u64(streams.len() as u64), EventFlags::IN).unwrap();
                        streams.push(Some(stream));
                    }
                    continue;
                }
                let Some(stream) = &mut streams[place as usize] else { continue };
                let goes_on =
                    matches!(test_peers::read(stream, &mut buffer), Ok(1..)) && stream.write_all(b"+PONG\r\n").is_ok();
                if !goes_on {
                    streams[place as usize] = None;
                }
            }
        }
    });
    address
}
