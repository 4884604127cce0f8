//! The origin of calls: state that the calls of one connection share.

use std::rc::Rc;

use http::Extensions;
use serve::End;
use server_runtime::{Peer, Shutdown, Stream};
use tonic::transport::server::{Connected, TcpConnectInfo, TlsConnectInfo, UdsConnectInfo};

use super::worker::Worker;

/// State that the calls of one connection share.
pub(super) struct Origin {
    pub(super) worker: Rc<Worker>,
    pub(super) peer: Peer,
    pub(super) end: Remote,
    pub(super) shutdown: Shutdown,
}

/// The other end, as tonic's `Request::remote_addr` and `Request::peer_certs` look for it.
pub(super) enum Remote {
    Tcp(TcpConnectInfo),
    Tls(TlsConnectInfo<TcpConnectInfo>),
    Unix(UdsConnectInfo),
}

impl Remote {
    pub(super) fn of(end: &End<'_>) -> Self {
        match end.here {
            Some((_, Stream::Tls(stream))) => Self::Tls(stream.connect_info()),
            Some((_, Stream::Unix(stream))) => Self::Unix(stream.connect_info()),
            // The polled ones belong to workers without a runtime, and there are none here.
            Some((_, Stream::Tcp(_) | Stream::Polled(_) | Stream::PolledTls(_))) | None => {
                let local_addr = end.here.and_then(|(local, _)| local.socket_addr());
                Self::Tcp(TcpConnectInfo { local_addr, remote_addr: end.peer.socket_addr() })
            }
        }
    }

    /// Puts it among a request's extensions.
    pub(super) fn tell(&self, extensions: &mut Extensions) {
        match self {
            Self::Tcp(end) => extensions.insert(end.clone()).map(drop),
            Self::Tls(end) => extensions.insert(end.clone()).map(drop),
            Self::Unix(end) => extensions.insert(end.clone()).map(drop),
        };
    }
}
