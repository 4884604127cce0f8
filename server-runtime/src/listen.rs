//! Accepting connections, and dealing them to the workers.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown as Half, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use socket2::{SockAddr, Socket};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tracing::{debug, error, warn};

use crate::accepted::{Accepted, Routes, Transport};
use crate::counters::{Counters, Place};
use crate::error::Error;
use crate::event_loop::{self, Accepts};
use crate::options::{Listen, Options};
use crate::peer::Peer;
use crate::socket;
use crate::timers;
use crate::tls::Tls;
use crate::turns;

/// Rest after a failure to accept that will not pass by itself, such as no file descriptors left.
const BACK_OFF: Duration = Duration::from_millis(50);

/// At most one line in the log for this long, however often accepting fails.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// Connections that a worker accepts, or gets from the accepting thread, before others have their turn: each has data to read at once.
pub(crate) const TURN_ACCEPTS: usize = 4;

/// One listening socket, or a worker's share of it.
pub(crate) struct Listener {
    socket: Socket,
    kind: Arc<Kind>,
}

enum Kind {
    Tcp {
        local: SocketAddr,
        tls: Option<Arc<Tls>>,
    },
    Unix {
        path: Arc<Path>,
        /// None for a socket that somebody else has bound.
        _file: Option<SocketFile>,
    },
}

impl Listener {
    pub(crate) fn bind(place: &Listen, options: &Options, tls: Option<&Arc<Tls>>) -> Result<Self, Error> {
        let tcp = |addr: &SocketAddr, tls| {
            let socket = socket::tcp(place, *addr, options)?;
            let local = bound(&socket).map_err(|source| Error::Listen { place: place.to_string(), source })?;
            Ok(Self { socket, kind: Arc::new(Kind::Tcp { local, tls }) })
        };
        match place {
            Listen::Tcp(addr) => tcp(addr, None),
            Listen::Tls(addr) => tcp(addr, Some(Arc::clone(tls.ok_or(Error::TlsWithoutCertificate)?))),
            Listen::Unix { path, mode } => {
                let socket = socket::unix(place, path, *mode, options)?;
                let file = Some(SocketFile::new(path.clone()));
                Ok(Self { socket, kind: Arc::new(Kind::Unix { path: path.as_path().into(), _file: file }) })
            }
            Listen::Inherited { fd, tls: is_tls } => {
                let tls = is_tls.then(|| tls.cloned().ok_or(Error::TlsWithoutCertificate)).transpose()?;
                let failed = |source| Error::Listen { place: place.to_string(), source };
                let socket = socket::inherited(*fd, options).map_err(failed)?;
                let addr = socket.local_addr().map_err(failed)?;
                let kind = match addr.as_socket() {
                    Some(local) => Kind::Tcp { local, tls },
                    None if tls.is_some() => return Err(failed(io::Error::other("TLS is for TCP sockets"))),
                    None => {
                        Kind::Unix { path: addr.as_pathname().unwrap_or_else(|| Path::new("")).into(), _file: None }
                    }
                };
                Ok(Self { socket, kind: Arc::new(kind) })
            }
        }
    }

    /// The same socket once more, for another worker. It listens until the last of them is dropped.
    pub(crate) fn share(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, kind: Arc::clone(&self.kind) })
    }

    /// Whether what comes is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(*self.kind, Kind::Tcp { tls: Some(_), .. })
    }

    /// The address, with the port that was given for port 0.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match *self.kind {
            Kind::Tcp { local, .. } => Some(local),
            Kind::Unix { .. } => None,
        }
    }
}

impl Kind {
    fn ends(&self, socket: &Socket, peer: &SockAddr) -> io::Result<(Peer, Peer)> {
        match self {
            Self::Tcp { local, .. } => {
                let peer = peer.as_socket().ok_or(io::ErrorKind::InvalidData)?;
                // Only a wildcard leaves open which address was called; anything else saves the system call.
                let local = if local.ip().is_unspecified() { bound(socket)? } else { *local };
                Ok((Peer::Tcp(socket::canonical(peer)), Peer::Tcp(socket::canonical(local))))
            }
            Self::Unix { path, .. } => Ok((Peer::Unix(Arc::clone(path)), Peer::Unix(Arc::clone(path)))),
        }
    }

    fn transport(&self, socket: Socket) -> Transport {
        match self {
            Self::Tcp { tls: None, .. } => Transport::Tcp(socket.into()),
            Self::Tcp { tls: Some(tls), .. } => Transport::Tls(socket.into(), tls.session()),
            Self::Unix { .. } => Transport::Unix(socket.into()),
        }
    }
}

fn bound(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The file of a Unix socket, removed at the end unless another server has put its own there since.
struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    fn new(path: PathBuf) -> Self {
        let identity = Self::identity(&path);
        Self { path, identity }
    }

    fn identity(path: &Path) -> Option<(u64, u64)> {
        fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some()
            && self.identity == Self::identity(&self.path)
            && let Err(error) = fs::remove_file(&self.path)
        {
            warn!("cannot remove the socket {}: {error}", self.path.display());
        }
    }
}

/// A connection that was just accepted.
pub(crate) struct Incoming<'l> {
    socket: Socket,
    peer: SockAddr,
    kind: &'l Kind,
}

impl Incoming<'_> {
    /// Whether bytes can be sent before any handshake.
    fn is_plain(&self) -> bool {
        !matches!(self.kind, Kind::Tcp { tls: Some(_), .. })
    }

    /// The same at its place among the open connections.
    ///
    /// # Errors
    /// When it has ended meanwhile.
    fn at<C>(self, place: Place) -> io::Result<Accepted<C>> {
        let (peer, local) = self.kind.ends(&self.socket, &self.peer)?;
        Ok(Accepted { socket: self.kind.transport(self.socket), peer, local, place, carried: None })
    }

    /// Tells it why it is not served, where that can be said before a handshake.
    fn refuse(self, reason: &[u8]) {
        if self.is_plain() {
            refuse(self.socket, reason);
        }
    }
}

/// Distributes new connections among the workers. Each accepting thread has one.
pub(crate) struct Dealer<C> {
    pub(crate) counters: Arc<Counters>,
    /// The worker on this thread, if there is one: first among equals.
    pub(crate) here: Option<usize>,
    pub(crate) routes: Routes<C>,
    /// The bytes that a refused connection receives.
    pub(crate) refusal: Rc<[u8]>,
}

impl<C> Dealer<C> {
    /// Gives a connection to a worker; it comes back if it is for the one on this thread.
    pub(crate) fn deal(&self, incoming: Incoming<'_>) -> Option<Accepted<C>> {
        let Some(place) = self.counters.take(self.here.unwrap_or(0), incoming.is_plain()) else {
            incoming.refuse(&self.refusal);
            return None;
        };
        let worker = place.worker();
        match incoming.at(place) {
            Ok(accepted) if self.here == Some(worker) => return Some(accepted),
            Ok(accepted) => {
                // A worker that is gone takes nothing; the connection is closed by dropping it.
                if self.routes.0[worker].send(accepted).is_err() {
                    error!("worker-{worker} has ended; a connection is lost");
                }
            }
            Err(error) => debug!("a connection ended while it was accepted: {error}"),
        }
        None
    }
}

impl Listener {
    /// Has each connection taken that waits to be accepted.
    pub(crate) fn accept_waiting(&self, take: impl Fn(Incoming<'_>)) {
        while let Ok((socket, peer)) = socket::accept(&self.socket) {
            take(Incoming { socket, peer, kind: &self.kind });
        }
    }

    /// Has each connection that comes taken, for ever.
    pub(crate) async fn accept(self, counters: &Counters, take: impl Fn(Incoming<'_>)) {
        let Self { socket, kind } = self;
        let mut waiting = match Waiting::new(socket) {
            Ok(waiting) => waiting,
            Err(error) => return error!("cannot wait for connections: {error}"),
        };
        let mut failures = Failures::default();
        for accepted in 1_usize.. {
            if accepted.is_multiple_of(TURN_ACCEPTS) {
                turns::others().await;
            }
            match waiting.accept().await {
                Ok((socket, peer)) => take(Incoming { socket, peer, kind: &kind }),
                Err(error) if is_of_one_connection(&error) => {
                    debug!("a connection ended before it was accepted: {error}");
                }
                Err(error) => {
                    counters.accept_errors.fetch_add(1, Relaxed);
                    failures.log(&error);
                    timers::sleep(BACK_OFF).await;
                }
            }
        }
    }
}

/// A listening socket that its thread waits for.
enum Waiting {
    Runtime(AsyncFd<Socket>),
    Loop(Accepts),
}

impl Waiting {
    fn new(socket: Socket) -> io::Result<Self> {
        if event_loop::is_here() {
            return Ok(Self::Loop(Accepts::new(socket)));
        }
        #[expect(
            deprecated,
            reason = "its successor is unsafe for the sake of borrowed descriptors; this one is owned"
        )]
        AsyncFd::with_interest(socket, Interest::READABLE).map(Self::Runtime)
    }

    async fn accept(&mut self) -> io::Result<(Socket, SockAddr)> {
        match self {
            Self::Runtime(socket) => socket.async_io(Interest::READABLE, socket::accept).await,
            Self::Loop(socket) => socket.accept().await,
        }
    }
}

/// Tells a connection why it is not served, as far as its socket takes that without waiting.
fn refuse(mut socket: Socket, reason: &[u8]) {
    if reason.is_empty() {
        return;
    }
    let mut unread = [0; 4096];
    // Received bytes are read first: closing a socket with unread bytes resets the connection, and the peer may lose the reason.
    let told = socket
        .write_all(reason)
        .and_then(|()| socket.shutdown(Half::Write))
        .and_then(|()| socket.read(&mut unread).map(drop));
    if let Err(error) = told {
        debug!("refusing a connection: {error}");
    }
}

/// Errors that concern the connection that was about to be accepted and leave the listener well (see accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        PermissionDenied,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
    ) || error.raw_os_error() == Some(libc::EPROTO)
}

/// Keeps failures that come in floods from flooding the log.
#[derive(Default)]
struct Failures {
    last: Option<Instant>,
    silent: u64,
}

impl Failures {
    fn log(&mut self, failure: &io::Error) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < LOG_PAUSE) {
            self.silent += 1;
            return;
        }
        error!("cannot accept connections: {failure} ({} more since the last line)", self.silent);
        *self = Self { last: Some(now), silent: 0 };
    }
}
