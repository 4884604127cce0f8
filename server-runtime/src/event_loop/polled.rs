//! Sockets of a loop.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use socket2::{SockAddr, Socket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::inner::Inner;
use super::sources::{Direction, Key, Source};
use crate::socket;

/// A socket that its loop tells of; forgotten when it is dropped.
#[derive(Debug)]
struct Registration {
    /// The loop.
    home: usize,
    key: Key,
}

impl Registration {
    /// Has the loop tell of all that happens at a socket, beginning with what has happened already.
    fn new(inner: &Inner, socket: BorrowedFd<'_>) -> io::Result<Self> {
        let key = inner.sources.borrow_mut().insert();
        let registered = Self { home: inner.id(), key };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(inner.epoll(), socket, EventData::new_u64(key.data()), flags)?;
        Ok(registered)
    }

    /// Lets go of a socket that stays open.
    fn leave(self, socket: BorrowedFd<'_>) {
        Inner::here(|inner| {
            if inner.id() == self.home {
                // It is not there if the loop could not take it.
                let _ = epoll::delete(inner.epoll(), socket);
            }
        });
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let forgotten = Inner::here(|inner| {
            let is_home = inner.id() == self.home;
            is_home.then(|| inner.sources.borrow_mut().remove(self.key)).flatten()
        });
        // A waker that is dropped may drop its task.
        drop(forgotten);
    }
}

/// The side of a socket that a call needs.
type Side = fn(&mut Source) -> &mut Direction;

const READ: Side = |source| &mut source.read;
const WRITE: Side = |source| &mut source.write;

/// The outcome of a call.
struct Done<T> {
    value: T,
    /// True if it has taken less than it could: the next one would block, and an event ends that.
    is_short: bool,
}

/// Calls `now`, unless the loop knows that it would block. The loop hears of a socket that it does not know when that first has to
/// wait: a connection for one request is often over by then.
#[inline]
fn attempt<T>(
    cx: &Context<'_>,
    registration: &mut Option<Registration>,
    (socket, side): (BorrowedFd<'_>, Side),
    mut now: impl FnMut() -> io::Result<Done<T>>,
) -> Poll<io::Result<T>> {
    Inner::here(|inner| {
        let mut sources = inner.sources.borrow_mut();
        let mut known = None;
        if let Some(Registration { home, key }) = registration {
            if *home != inner.id() {
                return Poll::Ready(Err(ErrorKind::NotConnected.into()));
            }
            known = sources.get(*key);
        }
        if let Some(source) = &mut known
            && !side(source).is_ready
        {
            side(source).wait(cx);
            return Poll::Pending;
        }
        loop {
            match now() {
                Ok(Done { value, is_short }) => {
                    if let Some(source) = known
                        && is_short
                        && !source.has_ended
                    {
                        side(source).is_ready = false;
                    }
                    return Poll::Ready(Ok(value));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if let Some(source) = known {
            let direction = side(source);
            direction.is_ready = false;
            direction.wait(cx);
        } else {
            drop(sources);
            let Registration { key, .. } = registration.insert(Registration::new(inner, socket)?);
            if let Some(source) = inner.sources.borrow_mut().get(*key) {
                side(source).wait(cx);
            }
        }
        Poll::Pending
    })
    .unwrap_or_else(|| Poll::Ready(Err(ErrorKind::NotConnected.into())))
}

/// One end of a connection, of TCP or a Unix socket. It belongs to the loop of the thread where it first has to wait.
#[derive(Debug)]
pub struct Polled {
    registration: Option<Registration>,
    socket: OwnedFd,
    is_unix: bool,
}

impl Polled {
    /// `socket` is not blocking.
    pub(crate) fn tcp(socket: std::net::TcpStream) -> Self {
        Self { registration: None, socket: socket.into(), is_unix: false }
    }

    /// `socket` is not blocking.
    pub(crate) fn unix(socket: std::os::unix::net::UnixStream) -> Self {
        Self { registration: None, socket: socket.into(), is_unix: true }
    }

    pub(crate) fn is_unix(&self) -> bool {
        self.is_unix
    }

    /// The socket, free of its loop.
    pub(crate) fn into_fd(self) -> OwnedFd {
        let Self { registration, socket, .. } = self;
        if let Some(registration) = registration {
            registration.leave(socket.as_fd());
        }
        socket
    }

    /// Waits for bytes, and leaves them in the socket.
    pub(crate) async fn peek(&mut self, head: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| {
            let Self { registration, socket, .. } = self;
            let now = || {
                let (_, value) = rustix::net::recv(&*socket, &mut *head, RecvFlags::PEEK)?;
                Ok(Done { value, is_short: false })
            };
            attempt(cx, registration, (socket.as_fd(), READ), now)
        })
        .await
    }

    fn poll_send(
        &mut self,
        cx: &Context<'_>,
        len: usize,
        send: impl Fn(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        let Self { registration, socket, .. } = self;
        let now = || {
            let value = send(socket.as_fd())?;
            Ok(Done { value, is_short: value < len })
        };
        attempt(cx, registration, (socket.as_fd(), WRITE), now)
    }
}

impl AsyncRead for Polled {
    #[inline]
    #[allow(unsafe_code, reason = "the room for a large argument is not filled with zeroes before each read")]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { registration, socket, .. } = self.get_mut();
        let now = || {
            // SAFETY: the system only writes there, so what was initialised stays so.
            let unfilled = unsafe { buf.unfilled_mut() };
            let room = unfilled.len();
            let (_, value) = rustix::net::recv(&*socket, unfilled, RecvFlags::empty())?;
            Ok(Done { value, is_short: 0 < value && value < room })
        };
        let count = ready!(attempt(cx, registration, (socket.as_fd(), READ), now))?;
        // SAFETY: the system has written as many bytes there.
        unsafe { buf.assume_init(count) };
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Polled {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let send = |socket: BorrowedFd<'_>| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL);
        self.get_mut().poll_send(cx, bytes.len(), send)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let send = |socket: BorrowedFd<'_>| {
            rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
        };
        let len = slices.iter().map(|slice| slice.len()).sum();
        self.get_mut().poll_send(cx, len, send)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// There is nothing to flush.
    #[inline]
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match rustix::net::shutdown(&self.socket, Shutdown::Write) {
            // The other end has reset the connection.
            Err(Errno::NOTCONN) => Ok(()),
            shut => shut.map_err(Into::into),
        })
    }
}

impl AsFd for Polled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Polled {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// A listening socket, of which other loops may have copies.
pub(crate) struct Accepts {
    registration: Option<Registration>,
    socket: Socket,
}

impl Accepts {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { registration: None, socket }
    }

    /// The next connection.
    pub(crate) async fn accept(&mut self) -> io::Result<(Socket, SockAddr)> {
        poll_fn(|cx| {
            let Self { registration, socket } = self;
            attempt(cx, registration, (socket.as_fd(), READ), || {
                Ok(Done { value: socket::accept(socket)?, is_short: false })
            })
        })
        .await
    }
}

impl Drop for Accepts {
    fn drop(&mut self) {
        // The system would go on telling of it as long as there are copies.
        if let Some(registration) = self.registration.take() {
            registration.leave(self.socket.as_fd());
        }
    }
}
