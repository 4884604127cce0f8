//! Addresses of a connection's ends.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address; IPv4 as such, also when it came through a dual-stack IPv6 socket.
    Tcp(SocketAddr),
    /// A Unix socket, by the listening socket's path: clients' ends have no name.
    Unix(Arc<Path>),
}

impl Peer {
    /// The address, if it is one.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(addr) => Some(*addr),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Peer {
    /// As Redis writes it: a Unix path has port 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => write!(f, "{addr}"),
            Self::Unix(path) => write!(f, "{}:0", path.display()),
        }
    }
}
