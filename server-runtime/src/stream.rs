//! One accepted connection, whatever carries it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::accepted::{Accepted, Routes, Transport};
use crate::counters::Place;
use crate::event_loop::{self, Polled};
use crate::pace::Progress;
use crate::peer::Peer;
use crate::send_file::{send_file, send_when_ready};
use crate::shutdown::Shutdown;
use crate::tcp::Tcp;
use crate::tls::Session;
use crate::unacknowledged::unacknowledged;

/// A connection on its worker.
///
/// Take it apart as you like, but keep `place` until the connection is over: it is what the connection limit counts,
/// and what a shutdown waits for.
#[derive(Debug)]
pub struct Connection<C = ()> {
    /// The bytes, both ways.
    pub stream: Stream,
    /// The other end.
    pub peer: Peer,
    /// This end.
    pub local: Peer,
    /// Tells when the server wants to end.
    pub shutdown: Shutdown,
    /// The place in the count of open connections, free again when dropped.
    pub place: Place,
    /// The state that the connection brings from its previous worker.
    pub carried: Option<C>,
    /// The way to other workers.
    pub routes: Routes<C>,
}

impl<C> Connection<C> {
    /// Goes on at another worker: there, [`Service::serve`](crate::Service::serve) gets the connection with what is
    /// `carried`. Nothing may be left unsent, and nothing that was read unprocessed unless it is carried.
    ///
    /// # Errors
    /// When the system does not let go of the socket, or it is [not one that can move](Stream::can_move); the connection
    /// is closed by then.
    pub fn move_to(self, worker: usize, carried: C) -> io::Result<()> {
        let Self { stream, peer, local, place, routes, .. } = self;
        let socket = stream.into_transport()?;
        let moved = Accepted { socket, peer, local, place: place.move_to(worker), carried: Some(carried) };
        // A worker that has ended takes nothing more: the server is shutting down.
        routes.0[worker].send(moved).map_err(|_| io::ErrorKind::NotConnected.into())
    }
}

/// The bytes of a connection.
#[derive(Debug)]
pub enum Stream {
    /// Plain TCP.
    Tcp(Tcp),
    /// A Unix domain socket.
    Unix(UnixStream),
    /// TLS after its handshake. Boxed, so that the others stay small.
    Tls(Box<TlsStream<TcpStream>>),
    /// Plain TCP or a Unix domain socket on a worker with a [loop of its own](crate::Service::OWN_LOOP).
    Polled(Polled),
    /// TLS on such a worker.
    PolledTls(Box<TlsStream<Polled>>),
}

impl Stream {
    /// The stream after a TLS handshake on a new connection.
    pub(crate) async fn handshake(socket: std::net::TcpStream, session: Session) -> io::Result<Self> {
        if event_loop::is_here() {
            let stream = session.accept(Polled::tcp(socket)).await?;
            return Ok(Self::PolledTls(Box::new(stream)));
        }
        let stream = session.accept(TcpStream::from_std(socket)?).await?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// Whether the bytes are encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::PolledTls(_))
    }

    /// The certificate that the other end has shown, in DER; it was signed by one of the authorities of
    /// [`TlsOptions::client_ca`](crate::TlsOptions::client_ca).
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        Some(self.tls_session()?.peer_certificates()?.first()?)
    }

    /// Has the runtime of this thread wake for the connection from now on, whichever thread uses it next.
    ///
    /// # Errors
    /// The runtime cannot take it.
    pub fn register(&mut self) -> io::Result<()> {
        if let Self::Tcp(stream) = self { stream.register() } else { Ok(()) }
    }

    /// Whether the connection can go to another worker: TLS ones stay.
    #[inline]
    pub fn can_move(&self) -> bool {
        !self.is_tls()
    }

    /// Whether [`poll_send_file`](Self::poll_send_file) has a socket to send to.
    #[inline]
    pub fn can_send_file(&self) -> bool {
        cfg!(target_os = "linux") && matches!(self, Self::Tcp(_) | Self::Unix(_))
    }

    /// Sends bytes of a file from the system's cache without a copy (sendfile(2)): at most `count` from `offset` on, which moves behind those that the
    /// socket takes. Ready with their number; 0 at the end of the file. Waits for the disk if the bytes are not in the cache.
    ///
    /// # Errors
    /// Those of the socket and the file. [`Unsupported`](io::ErrorKind::Unsupported) where there is no plain socket
    /// ([`can_send_file`](Self::can_send_file)).
    pub fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => stream.poll_send_file(cx, file, offset, count),
            Self::Unix(stream) => send_when_ready(
                || stream.poll_write_ready(cx),
                || stream.try_io(Interest::WRITABLE, || send_file(stream.as_fd(), file, offset, count)),
            ),
            Self::Tls(_) | Self::Polled(_) | Self::PolledTls(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Writes the head of an answer whose body [`poll_send_file`](Self::poll_send_file) sends next: plain TCP puts both into one packet.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn poll_write_head(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_head(cx, bytes),
            other => Pin::new(other).poll_write(cx, bytes),
        }
    }

    /// Bytes that were written and that the client's system has not acknowledged yet. Encryption counts: over TLS they are
    /// more than the bytes that were given to the stream. 0 where the system does not tell (it does on Linux).
    pub fn unacknowledged(&self) -> u64 {
        unacknowledged(self.as_fd())
    }

    /// The client's progress on a stream that was given `sent` bytes. A socket takes megabytes before its client has received a byte, and becomes
    /// writable when a third of them is acknowledged: that tells nothing of slow clients.
    pub fn progress(&self, sent: u64) -> Progress {
        let under_way = self.unacknowledged();
        Progress { received: sent.saturating_sub(under_way), under_way }
    }

    /// The socket, free of the runtime it was on.
    fn into_transport(self) -> io::Result<Transport> {
        match self {
            Self::Tcp(stream) => stream.into_std().map(Transport::Tcp),
            Self::Unix(stream) => stream.into_std().map(Transport::Unix),
            Self::Polled(stream) if stream.is_unix() => Ok(Transport::Unix(stream.into_fd().into())),
            Self::Polled(stream) => Ok(Transport::Tcp(stream.into_fd().into())),
            Self::Tls(_) | Self::PolledTls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The protocol agreed on by ALPN, such as `h2`.
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls_session()?.alpn_protocol()
    }

    fn tls_session(&self) -> Option<&rustls::ServerConnection> {
        match self {
            Self::Tls(stream) => Some(stream.get_ref().1),
            Self::PolledTls(stream) => Some(stream.get_ref().1),
            Self::Tcp(_) | Self::Unix(_) | Self::Polled(_) => None,
        }
    }
}

/// The same call on whichever stream it is.
macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::Tls($stream) => $call,
            Stream::Polled($stream) => $call,
            Stream::PolledTls($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Polled(stream) => stream.is_write_vectored(),
            Self::PolledTls(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    #[inline]
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

impl AsFd for Stream {
    /// # Panics
    /// When the [runtime could not take](Tcp) the socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.get_ref().0.as_fd(),
            Self::Polled(stream) => stream.as_fd(),
            Self::PolledTls(stream) => stream.get_ref().0.as_fd(),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
