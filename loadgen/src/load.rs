//! How much load, for how long, against which address; the same for all protocols.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;

use crate::pace::{Pace, Recorded, Stages};

/// The shape of a run.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where the server is.
    pub endpoint: Endpoint,
    /// Where further servers are: connections go to all of them in turns.
    pub also: Vec<Endpoint>,
    /// The address and port that sockets are bound to, where the system is not to choose.
    pub local: Option<SocketAddr>,
    /// Connections over all threads.
    pub connections: usize,
    /// Requests outstanding on a connection.
    pub depth: usize,
    /// After so many answered requests a connection is closed, and another one takes its place.
    pub requests_per_connection: Option<u64>,
    /// When an answered request is followed by the next.
    pub refill: Refill,
    /// Threads, each with its own share of the connections.
    pub threads: usize,
    /// When requests are sent.
    pub pace: Pace,
    /// The times of an open loop that are not those of a rate.
    pub recorded: Option<Arc<Recorded>>,
    /// Users or arrivals that change over the run; a closed loop has at most as many users as connections.
    pub stages: Option<Arc<Stages>>,
    /// When the run ends.
    pub length: Length,
    /// Load before the measurement begins.
    pub warm_up: Duration,
    /// How long an answer, or a connection's opening, may take.
    pub timeout: Duration,
    /// Where all random choices come from: the same seed, the same requests.
    pub seed: u64,
    /// The processes whose CPU time and memory are sampled.
    pub sampled: Sampled,
}

impl Load {
    /// The endpoint of a seat's connection.
    #[must_use]
    pub fn endpoint_of(&self, seat: usize) -> &Endpoint {
        match seat % (self.also.len() + 1) {
            0 => &self.endpoint,
            further => &self.also[further - 1],
        }
    }

    /// All endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        std::iter::once(&self.endpoint).chain(&self.also)
    }
}

/// The processes whose CPU time and memory are sampled while a server is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sampled {
    /// Of no process: the server is not known, or elsewhere.
    #[default]
    Nobody,
    /// Processes with their descendants, each at least one.
    Processes(Vec<u32>),
    /// All that is in a cgroup: its folder, or its name below `/sys/fs/cgroup`.
    Cgroup(PathBuf),
}

/// Where a server listens, and how it is spoken to.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// TCP, to the first address that accepts.
    Tcp(Vec<SocketAddr>, Option<Tls>),
    /// A Unix stream socket.
    Unix(PathBuf, Option<Tls>),
    /// UDP; a connection is a socket with a port of its own.
    Udp(SocketAddr),
    /// QUIC, to the first address that accepts; a connection is a UDP socket with a port of its own.
    Quic(Vec<SocketAddr>, Tls),
}

impl Endpoint {
    /// Its addresses; a Unix socket has none.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Tcp(addresses, _) | Self::Quic(addresses, _) => addresses,
            Self::Udp(address) => std::slice::from_ref(address),
            Self::Unix(..) => &[],
        }
    }

    /// TLS, if it is spoken there.
    #[must_use]
    pub fn tls(&self) -> Option<&Tls> {
        match self {
            Self::Tcp(_, tls) | Self::Unix(_, tls) => tls.as_ref(),
            Self::Quic(_, tls) => Some(tls),
            Self::Udp(_) => None,
        }
    }
}

/// TLS on every connection.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Certificates, protocols (ALPN), versions.
    pub config: Arc<rustls::ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
}

/// When the next request follows on a connection of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refill {
    /// One for each answer: always [`Load::depth`] outstanding.
    Each,
    /// A batch of [`Load::depth`] when all of the last batch are answered, as a client's pipeline does.
    Batch,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// So long after the warm-up.
    Duration(Duration),
    /// After so many requests, not counting the warm-up's.
    Requests(u64),
}
