//! A socket that the runtime does not know yet.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use tokio::io::ReadBuf;

/// Bytes that are read at once: more than usual requests have.
const FIRST_READ: usize = 4096;

/// A TCP connection that nobody has waited for. One that is used, answered and closed without having to wait for anything needs
/// no place among the sockets that the runtime watches: that saves two system calls and a turn of its loop.
#[derive(Debug)]
pub struct Fresh(Option<TcpStream>);

impl Fresh {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self(Some(socket))
    }

    /// The socket, for the runtime.
    pub(crate) fn take(&mut self) -> io::Result<TcpStream> {
        self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Reads what is there; `None` if that has to be waited for.
    pub(crate) fn read(&self, buf: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        let most = buf.remaining().min(FIRST_READ);
        let room = buf.initialize_unfilled_to(most);
        let count = self.with(|mut socket| socket.read(room))?;
        Some(count.map(|count| buf.advance(count)))
    }

    /// Writes what there is room for; `None` if that has to be waited for.
    pub(crate) fn write(&self, slices: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        self.with(|mut socket| socket.write_vectored(slices))
    }

    /// Says that nothing more is sent.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        match self.with(|socket| socket.shutdown(Shutdown::Write)) {
            // The other end is gone.
            Some(Err(error)) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            Some(result) => result,
            None => Ok(()),
        }
    }

    fn with<T>(&self, mut call: impl FnMut(&TcpStream) -> io::Result<T>) -> Option<io::Result<T>> {
        let Some(socket) = &self.0 else { return Some(Err(io::ErrorKind::NotConnected.into())) };
        loop {
            match call(socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Some(result),
            }
        }
    }
}

impl AsFd for Fresh {
    /// # Panics
    /// When the runtime could not take the socket, and so has closed it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect("who was told that the connection is broken does not use it any more").as_fd()
    }
}
