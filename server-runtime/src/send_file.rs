//! Sending bytes of a file without a copy (sendfile(2)).

use std::io;
use std::os::fd::BorrowedFd;
use std::task::{Poll, ready};

/// Sends once the socket is ready, and waits again if it would block nevertheless.
pub(crate) fn send_when_ready(
    mut ready: impl FnMut() -> Poll<io::Result<()>>,
    mut send: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(ready())?;
        match send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn send_file(to: BorrowedFd<'_>, file: BorrowedFd<'_>, offset: &mut u64, count: usize) -> io::Result<usize> {
    Ok(rustix::fs::sendfile(to, file, Some(offset), count)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn send_file(
    _to: BorrowedFd<'_>,
    _file: BorrowedFd<'_>,
    _offset: &mut u64,
    _count: usize,
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
