//! Accepted connections on their way to a worker.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::counters::Place;
use crate::peer::Peer;
use crate::tls;

/// An accepted connection on its way to its worker, for the first time or from another one.
pub(crate) struct Accepted<C> {
    pub(crate) socket: Transport,
    pub(crate) peer: Peer,
    pub(crate) local: Peer,
    pub(crate) place: Place,
    /// The state that it brings from another worker; `None` if it is new.
    pub(crate) carried: Option<C>,
}

/// Where a worker's connections come from.
pub(crate) type Arriving<C> = UnboundedReceiver<Accepted<C>>;

/// A socket that no runtime has seen yet.
pub(crate) enum Transport {
    Tcp(std::net::TcpStream),
    Tls(std::net::TcpStream, tls::Session),
    Unix(std::os::unix::net::UnixStream),
}

/// The ways from any worker to any other. Clones are cheap.
pub struct Routes<C>(pub(crate) Arc<[UnboundedSender<Accepted<C>>]>);

impl<C> Clone for Routes<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for Routes<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").field("workers", &self.0.len()).finish()
    }
}
