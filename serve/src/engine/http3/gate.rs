//! The UDP sockets of the workers, and who is let in.

use std::future::pending;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, IdleTimeout, Runtime as _, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use server_runtime::{Bound, Error, Handle, Place, QUIC_SHARES_MAX, Shutdown};
use tokio::task::spawn_local;

use super::shares::{OwnIds, Share, Strays};
use super::{congestion, conn};
use crate::engine::app::App;
use crate::engine::worker::Worker;
use crate::options::Options;
use crate::tuning::{
    H3_ASIDE_STREAMS, H3_HANDSHAKE_BUFFER, H3_HANDSHAKES, H3_SEND_WINDOW, H3_STREAMS, H3_UNPROVEN, H3_WINDOW,
};

/// The protocol's name (RFC 9114 section 3.1).
const ALPN: &[u8] = b"h3";

/// How long a client may remember where HTTP/3 is, in seconds: a day, which is what RFC 7838 takes if nothing is said.
const MAX_AGE: u32 = 86_400;

/// A client that is connecting.
pub(super) struct Arrival {
    pub(super) incoming: quinn::Incoming,
    pub(super) config: Arc<ServerConfig>,
    pub(super) place: Place,
    pub(super) handshake: Handshake,
}

/// One of the handshakes under way, as long as this lives.
pub(super) struct Handshake(Arc<AtomicUsize>);

impl Handshake {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The UDP sockets, of which each worker takes its own.
pub(in crate::engine) struct Gate {
    places: Box<[Sockets]>,
    port: u16,
    transport: Arc<TransportConfig>,
    /// The configuration of TLS at the start, and the same for QUIC.
    config: (Arc<rustls::ServerConfig>, Arc<ServerConfig>),
    /// Handshakes under way.
    handshakes: Arc<AtomicUsize>,
    /// Of the server, as soon as it starts.
    handle: OnceLock<Handle>,
}

/// The sockets at one address, by worker.
struct Sockets {
    sockets: Box<[Mutex<Option<UdpSocket>>]>,
    strays: Arc<Strays>,
}

impl Sockets {
    fn new(sockets: Vec<UdpSocket>) -> Self {
        let strays = Strays::new(sockets.len());
        Self { sockets: sockets.into_iter().map(|socket| Mutex::new(Some(socket))).collect(), strays }
    }

    /// The endpoint of this worker, on its thread; `None` if the worker has no socket.
    fn endpoint(&self, worker: usize, mut config: ServerConfig) -> io::Result<Option<Endpoint>> {
        let Some(socket) = self.sockets.get(worker) else { return Ok(None) };
        let Some(socket) = socket.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(None) };
        let runtime = Arc::new(TokioRuntime);
        // Each endpoint has a key of its own for resets: a datagram that has lost its way ends no connection of another worker.
        let mut endpoint = EndpointConfig::default();
        let mut socket = runtime.wrap_udp_socket(socket)?;
        let shares = self.sockets.len();
        // Bytes of clients that wait for a blocked worker: the endpoints of an address have one bound together.
        config.incoming_buffer_size_total(H3_HANDSHAKES as u64 * H3_HANDSHAKE_BUFFER / shares as u64);
        if shares > 1 {
            endpoint.cid_generator(move || Box::new(OwnIds::new(worker, shares)));
            socket = Arc::new(Share { socket, share: worker, strays: Arc::clone(&self.strays) });
        }
        Endpoint::new_with_abstract_socket(endpoint, Some(config), socket, runtime).map(Some)
    }
}

/// Binds UDP sockets beside every place with TLS, if HTTP/3 is wanted.
///
/// # Errors
/// When one cannot be bound, there is no such place, or the certificate is of no use for QUIC.
pub(in crate::engine) fn open(options: &Options, bound: &Bound, workers: usize) -> Result<Option<Gate>, Error> {
    if !options.http3 {
        return Ok(None);
    }
    let sockets = bound.udp_beside_tls(workers.min(QUIC_SHARES_MAX))?;
    let Some(first) = sockets.iter().flatten().next() else {
        let what = "HTTP/3 has no place: it is served beside TLS, at the same port (--tls-listen)";
        return Err(Error::Flags(what.to_owned()));
    };
    let port = first.local_addr().map_err(|source| Error::Listen { place: "udp".to_owned(), source })?.port();
    let tls = bound.tls_config().ok_or(Error::TlsWithoutCertificate)?;
    let transport = Arc::new(transport(options));
    let quic = config(&tls, &transport)?;
    let places = sockets.into_iter().map(Sockets::new).collect();
    Ok(Some(Gate { places, port, transport, config: (tls, quic), handshakes: Arc::default(), handle: OnceLock::new() }))
}

/// The limits of a connection.
fn transport(options: &Options) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(H3_STREAMS.into())
        .max_concurrent_uni_streams(H3_ASIDE_STREAMS.into())
        .stream_receive_window(H3_WINDOW.0.into())
        .receive_window(H3_WINDOW.1.into())
        .send_window(H3_SEND_WINDOW)
        .congestion_controller_factory(Arc::new(congestion::Factory::default()))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(Some(idle(options.timeouts.idle)));
    transport
}

/// As QUIC writes it; the longest that it can write is millions of years.
fn idle(time: Duration) -> IdleTimeout {
    IdleTimeout::try_from(time).unwrap_or_else(|_| VarInt::MAX.into())
}

impl Gate {
    /// The value that tells clients of HTTP/1.1 and HTTP/2 where HTTP/3 is (RFC 7838).
    pub(in crate::engine) fn alt_svc(&self) -> HeaderValue {
        HeaderValue::try_from(format!("h3=\":{}\"; ma={MAX_AGE}", self.port)).expect("digits and signs")
    }

    /// The server starts. Before that, nobody is let in.
    pub(in crate::engine) fn starting(&self, handle: &Handle) {
        // A server starts once.
        let _ = self.handle.set(handle.clone());
    }

    /// Serves this worker's clients, on its thread.
    ///
    /// # Errors
    /// When a socket is of no use for QUIC.
    pub(in crate::engine) fn serve<A: App>(
        &self,
        app: &Rc<A>,
        worker: &Rc<Worker>,
        shutdown: &Shutdown,
    ) -> io::Result<()> {
        let Some(handle) = self.handle.get() else { return Ok(()) };
        for place in &self.places {
            let Some(endpoint) = place.endpoint(worker.index, (*self.config.1).clone())? else { continue };
            worker.start(shutdown);
            let door = Door {
                app: Rc::clone(app),
                handle: handle.clone(),
                transport: Arc::clone(&self.transport),
                handshakes: Arc::clone(&self.handshakes),
                known: self.config.clone(),
                worker: Rc::clone(worker),
                shutdown: shutdown.clone(),
            };
            spawn_local(door.accept(endpoint));
        }
        Ok(())
    }
}

/// Lets clients of one socket in.
struct Door<A> {
    app: Rc<A>,
    handle: Handle,
    transport: Arc<TransportConfig>,
    handshakes: Arc<AtomicUsize>,
    /// The configuration of TLS in use, and the same for QUIC.
    known: (Arc<rustls::ServerConfig>, Arc<ServerConfig>),
    worker: Rc<Worker>,
    shutdown: Shutdown,
}

impl<A: App> Door<A> {
    /// Accepts clients until the server closes. Then the endpoint stays: its connections go on until their worker ends.
    async fn accept(mut self, endpoint: Endpoint) {
        let closing = self.handle.closing();
        loop {
            tokio::select! {
                biased;
                () = closing.triggered() => break,
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => self.admit(incoming),
                    None => break,
                },
            }
        }
        endpoint.set_server_config(None);
        pending().await
    }

    /// Lets a client in, or not.
    fn admit(&mut self, incoming: quinn::Incoming) {
        let handshakes = self.handshakes.load(Relaxed);
        if !incoming.remote_address_validated() {
            // A client that invents addresses gets less than it sends, and costs no memory.
            if handshakes >= H3_HANDSHAKES {
                return incoming.ignore();
            }
            if handshakes >= H3_UNPROVEN {
                // It can be: that is what was asked.
                let _ = incoming.retry();
                return;
            }
        }
        if handshakes >= H3_HANDSHAKES {
            return incoming.refuse();
        }
        let Some(place) = self.handle.take_place_on(self.worker.index) else { return incoming.refuse() };
        let handshake = Handshake::new(&self.handshakes);
        let arrival = Arrival { incoming, config: self.config(), place, handshake };
        spawn_local(conn::serve(Rc::clone(&self.app), Rc::clone(&self.worker), arrival, self.shutdown.clone()));
    }

    /// The configuration for a client that comes now.
    fn config(&mut self) -> Arc<ServerConfig> {
        if let Some(tls) = self.handle.tls_config().filter(|tls| !Arc::ptr_eq(tls, &self.known.0)) {
            match config(&tls, &self.transport) {
                Ok(config) => self.known = (tls, config),
                Err(error) => tracing::error!("HTTP/3 keeps the certificate that it has: {error}"),
            }
        }
        Arc::clone(&self.known.1)
    }
}

/// The server's TLS as QUIC has it: with a protocol of its own, and without data before the handshake is over (0-RTT), which
/// somebody else could send again.
fn config(tls: &rustls::ServerConfig, transport: &Arc<TransportConfig>) -> Result<Arc<ServerConfig>, Error> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| Error::Tls(format!("HTTP/3: {error}")))?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config
        .transport_config(Arc::clone(transport))
        .migration(true)
        .max_incoming(H3_HANDSHAKES)
        .incoming_buffer_size(H3_HANDSHAKE_BUFFER);
    Ok(Arc::new(config))
}
