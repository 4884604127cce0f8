//! Accepting connections and handing each to a worker.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown as Half, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use socket2::{SockAddr, Socket};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{debug, error, warn};

use crate::counters::{Counters, Place};
use crate::error::Error;
use crate::options::{Listen, Options};
use crate::shutdown::Shutdown;
use crate::socket;
use crate::stream::Peer;
use crate::tls::{self, Tls};

/// Rest after a failure to accept that will not pass by itself, such as no file descriptors left.
const BACK_OFF: Duration = Duration::from_millis(50);

/// At most one line in the log for this long, however often accepting fails.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// An accepted connection on its way to its worker, for the first time or from another one.
pub(crate) struct Accepted<C> {
    pub(crate) socket: Transport,
    pub(crate) peer: Peer,
    pub(crate) local: Peer,
    pub(crate) place: Place,
    /// What it brings along from another worker; nothing if it is new.
    pub(crate) carried: Option<C>,
}

/// The ways to the workers, by index.
pub(crate) type Senders<C> = Vec<UnboundedSender<Accepted<C>>>;

/// A socket that no runtime has seen yet.
pub(crate) enum Transport {
    Tcp(std::net::TcpStream),
    Tls(std::net::TcpStream, tls::Session),
    Unix(std::os::unix::net::UnixStream),
}

/// One listening socket.
pub(crate) struct Listener {
    socket: Socket,
    kind: Kind,
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
            Ok(Self { socket, kind: Kind::Tcp { local, tls } })
        };
        match place {
            Listen::Tcp(addr) => tcp(addr, None),
            Listen::Tls(addr) => tcp(addr, Some(Arc::clone(tls.ok_or(Error::TlsWithoutCertificate)?))),
            Listen::Unix { path, mode } => {
                let socket = socket::unix(place, path, *mode, options)?;
                let file = Some(SocketFile::new(path.clone()));
                Ok(Self { socket, kind: Kind::Unix { path: path.as_path().into(), _file: file } })
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
                Ok(Self { socket, kind })
            }
        }
    }

    /// Whether what comes is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.kind, Kind::Tcp { tls: Some(_), .. })
    }

    /// The address, with the port that was given for port 0.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self.kind {
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

    /// Whether bytes can be sent before any handshake.
    fn is_plain(&self) -> bool {
        !matches!(self, Self::Tcp { tls: Some(_), .. })
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

/// Where accepted connections go; one value shared by the listeners, all on the accepting thread.
pub(crate) struct Hub<C> {
    pub(crate) counters: Arc<Counters>,
    pub(crate) workers: Senders<C>,
    /// What a connection beyond the limit is told.
    pub(crate) refusal: Vec<u8>,
    /// The worker that is first among equals next time.
    pub(crate) next: std::cell::Cell<usize>,
}

/// Accepts on one listener until the shutdown.
pub(crate) async fn accept_all<C>(listener: Listener, hub: std::rc::Rc<Hub<C>>, shutdown: Shutdown) {
    tokio::select! {
        () = accept_forever(listener, &hub) => {}
        () = shutdown.triggered() => {}
    }
}

async fn accept_forever<C>(Listener { socket, kind }: Listener, hub: &Hub<C>) {
    #[expect(deprecated, reason = "its successor is unsafe for the sake of borrowed descriptors; this one is owned")]
    let socket = match AsyncFd::with_interest(socket, Interest::READABLE) {
        Ok(socket) => socket,
        Err(error) => return error!("cannot wait for connections: {error}"),
    };
    let mut failures = Failures::default();
    loop {
        match socket.async_io(Interest::READABLE, socket::accept).await {
            Ok((accepted, peer)) => hub.hand_over(&kind, accepted, &peer),
            Err(error) if is_of_one_connection(&error) => debug!("a connection ended before it was accepted: {error}"),
            Err(error) => {
                hub.counters.accept_errors.fetch_add(1, Relaxed);
                failures.log(&error);
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

impl<C> Hub<C> {
    fn hand_over(&self, kind: &Kind, socket: Socket, peer: &SockAddr) {
        let mut next = self.next.get();
        let place = self.counters.take(&mut next, kind.is_plain());
        self.next.set(next);
        let Some(place) = place else {
            if kind.is_plain() {
                refuse(socket, &self.refusal);
            }
            return;
        };
        match kind.ends(&socket, peer) {
            Ok((peer, local)) => {
                let worker = place.worker();
                let accepted = Accepted { socket: kind.transport(socket), peer, local, place, carried: None };
                // A worker that is gone takes nothing; the connection is closed by dropping it.
                if self.workers[worker].send(accepted).is_err() {
                    error!("worker-{worker} has ended; a connection is lost");
                }
            }
            Err(error) => debug!("a connection ended while it was accepted: {error}"),
        }
    }
}

/// Tells a connection why it is not served, as far as its socket takes that without waiting.
fn refuse(mut socket: Socket, reason: &[u8]) {
    if reason.is_empty() {
        return;
    }
    let mut unread = [0; 4096];
    // What was sent is read first, because closing over unread bytes resets the connection and may discard the reason.
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
