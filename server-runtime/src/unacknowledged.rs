//! Bytes that a socket has taken and its peer has not.

use std::os::fd::BorrowedFd;

/// Bytes of a socket that wait for the peer's acknowledgement (SIOCOUTQ of tcp(7) and unix(7)). 0 if the system does not tell.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "std, socket2 and rustix have no such call")]
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> u64 {
    use std::os::fd::AsRawFd as _;

    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one integer, to a place that lives longer than the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn unacknowledged(_socket: BorrowedFd<'_>) -> u64 {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use super::*;

    /// Writes until the socket is full, then reads all.
    fn check(mut from: impl Write + AsFd, mut to: impl Read) {
        let (mut written, piece) = (0, [0; 16 * 1024]);
        while let Ok(count) = from.write(&piece) {
            written += count;
        }
        assert!(unacknowledged(from.as_fd()) > 0);
        to.read_exact(&mut vec![0; written]).expect("all was written");
        // The last acknowledgement may be delayed.
        let began = Instant::now();
        while unacknowledged(from.as_fd()) > 0 {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
    }

    #[test]
    fn full_sockets_have_unacknowledged_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        from.set_nonblocking(true).unwrap();
        check(from, listener.accept().unwrap().0);
        let (from, to) = UnixStream::pair().unwrap();
        from.set_nonblocking(true).unwrap();
        check(from, to);
    }
}
