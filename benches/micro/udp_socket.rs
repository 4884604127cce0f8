//! **Claim**: Rust's standard `UdpSocket` lacks what ECHONET Lite needs, so that another crate was necessary.
//! **Source**: "Rust vs Go vs C, database and IoT" (ECHONET Lite).
//! **Hypothesis**: sockets made by socket2 are the same sockets; asking the kernel for many datagrams at once saves time.
//! **Compared**: 32 datagrams of 14 bytes sent and received on loopback, one system call each, by `std`, by `std` on a socket
//! made with socket2 (SO_REUSEADDR, SO_REUSEPORT), and 32 at a time by sendmmsg and recvmmsg.
#![allow(unsafe_code, reason = "sendmmsg and recvmmsg have no safe form in std, socket2 or rustix")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};
use socket2::{Domain, Socket, Type};

const WINDOW: usize = 32;
const DATAGRAM: [u8; 14] = *b"\x10\x81\x00\x01\x05\xff\x01\x0e\xf0\x01\x62\x01\x80\x00";

fn by_std() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port")
}

fn by_socket2() -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("a socket option");
    socket.set_reuse_port(true).expect("a socket option");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    socket.into()
}

/// Two sockets that are connected with each other.
fn pair(make: fn() -> UdpSocket) -> (UdpSocket, UdpSocket) {
    let (one, other) = (make(), make());
    one.connect(other.local_addr().expect("it is bound")).expect("loopback");
    other.connect(one.local_addr().expect("it is bound")).expect("loopback");
    (one, other)
}

fn single(from: &UdpSocket, to: &UdpSocket) -> usize {
    let mut buffer = [0; 1472];
    for _ in 0..WINDOW {
        from.send(&DATAGRAM).expect("connected");
    }
    (0..WINDOW).map(|_| to.recv(&mut buffer).expect("one is there")).sum()
}

/// The buffers and headers of a window.
struct Batch {
    buffers: Box<[[u8; 1472]; WINDOW]>,
}

impl Batch {
    fn new() -> Self {
        let mut buffers = Box::new([[0; 1472]; WINDOW]);
        buffers.iter_mut().for_each(|buffer| buffer[..DATAGRAM.len()].copy_from_slice(&DATAGRAM));
        Self { buffers }
    }

    /// Runs `call` with one message header for each buffer, of which the first `length` bytes count.
    fn with<R>(&mut self, length: usize, call: impl FnOnce(&mut [libc::mmsghdr; WINDOW]) -> R) -> R {
        let mut places =
            self.buffers.each_mut().map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length });
        let mut headers = places.each_mut().map(|place| {
            // SAFETY: all fields of mmsghdr are integers and raw pointers, for which zeros are a value.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = place;
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        call(&mut headers)
    }

    fn round(&mut self, from: &UdpSocket, to: &UdpSocket) -> usize {
        let sent = self.with(DATAGRAM.len(), |headers| {
            // SAFETY: the headers and what they point to live until the call returns, and there are WINDOW of them.
            unsafe { libc::sendmmsg(from.as_raw_fd(), headers.as_mut_ptr(), WINDOW as u32, 0) }
        });
        assert_eq!(sent, WINDOW as i32, "the kernel takes a window");
        self.with(1472, |headers| {
            // SAFETY: as above; each buffer has 1472 bytes, and is borrowed mutably by this call.
            let received =
                unsafe { libc::recvmmsg(to.as_raw_fd(), headers.as_mut_ptr(), WINDOW as u32, 0, std::ptr::null_mut()) };
            assert_eq!(received, WINDOW as i32, "what was sent is there");
            headers.iter().map(|header| header.msg_len as usize).sum()
        })
    }
}

fn udp_socket(c: &mut Criterion) {
    let mut group = c.benchmark_group("UDP socket, 32 datagrams");
    group.throughput(Throughput::Elements(WINDOW as u64));
    for (name, make) in [("std", by_std as fn() -> UdpSocket), ("socket2", by_socket2)] {
        let (from, to) = pair(make);
        assert_eq!(single(&from, &to), WINDOW * DATAGRAM.len(), "all bytes have come");
        group.bench_function(format!("{name}, one at a time"), |b| b.iter(|| single(&from, &to)));
    }
    let ((from, to), mut batch) = (pair(by_socket2), Batch::new());
    assert_eq!(batch.round(&from, &to), WINDOW * DATAGRAM.len(), "all bytes have come");
    group.bench_function("sendmmsg and recvmmsg", |b| b.iter(|| batch.round(&from, &to)));
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = udp_socket }
