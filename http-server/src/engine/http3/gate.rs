//! The UDP sockets, and the worker of each connection.

use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use http::HeaderValue;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use server_runtime::{Bound, Error, Handle, Place, Running, Shutdown};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, spawn_local};

use super::{congestion, conn};
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

/// Clients on their way to the workers, each of which takes its own.
pub(in crate::engine) struct Arrivals(Box<[Mutex<Option<UnboundedReceiver<Arrival>>>]>);

impl Arrivals {
    /// Serves those of this worker, on its thread.
    pub(in crate::engine) fn serve(&self, worker: &Rc<Worker>, shutdown: &Shutdown) {
        let mut arrivals = self.0[worker.index].lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut arrivals) = arrivals.take() else { return };
        worker.start(shutdown);
        let (worker, shutdown) = (Rc::clone(worker), shutdown.clone());
        spawn_local(async move {
            while let Some(arrival) = arrivals.recv().await {
                spawn_local(conn::serve(Rc::clone(&worker), arrival, shutdown.clone()));
            }
        });
    }
}

/// The sockets.
pub(in crate::engine) struct Gate {
    sockets: Vec<UdpSocket>,
    port: u16,
    transport: Arc<TransportConfig>,
    workers: Vec<UnboundedSender<Arrival>>,
}

/// Binds a UDP socket beside every place with TLS, if HTTP/3 is wanted.
///
/// # Errors
/// When one cannot be bound, or there is no such place.
pub(in crate::engine) fn open(
    options: &Options,
    bound: &Bound,
    workers: usize,
) -> Result<Option<(Gate, Arrivals)>, Error> {
    if !options.http3 {
        return Ok(None);
    }
    let sockets = bound.udp_beside_tls()?;
    let Some(first) = sockets.first() else {
        let what = "HTTP/3 has no place: it is served beside TLS, at the same port (--tls-listen)";
        return Err(Error::Flags(what.to_owned()));
    };
    let port = first.local_addr().map_err(|source| Error::Listen { place: "udp".to_owned(), source })?.port();
    let (workers, arrivals): (Vec<_>, Vec<_>) = std::iter::repeat_with(unbounded_channel).take(workers).unzip();
    let arrivals = arrivals.into_iter().map(|arrivals| Mutex::new(Some(arrivals))).collect();
    let gate = Gate { sockets, port, transport: Arc::new(transport(options)), workers };
    Ok(Some((gate, Arrivals(arrivals))))
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

    /// Takes datagrams, on a thread of its own that ends with the server.
    ///
    /// # Errors
    /// When the certificate is of no use for QUIC, or the thread cannot be made.
    pub(in crate::engine) fn run(self, running: &mut Running) -> Result<(), Error> {
        let door = Door::new(&running.shutdown_handle(), self.transport, self.workers)?;
        let (name, sockets) = ("http3", self.sockets);
        let failed = |source| Error::Thread { name: name.to_owned(), source };
        let (tell, told) = sync_channel(1);
        let run = move || {
            door.run(sockets, tell);
            false
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        running.attach(thread);
        told.recv().unwrap_or_else(|_| Err(io::Error::other("it ended before it was ready"))).map_err(failed)
    }
}

/// Lets clients in. Each socket has one.
#[derive(Clone)]
struct Door {
    handle: Handle,
    transport: Arc<TransportConfig>,
    workers: Vec<UnboundedSender<Arrival>>,
    /// Handshakes under way.
    handshakes: Arc<AtomicUsize>,
    /// The worker that is first among equals next time.
    next: usize,
    /// The configuration of TLS in use, and the same for QUIC.
    known: (Arc<rustls::ServerConfig>, Arc<ServerConfig>),
}

impl Door {
    fn new(
        handle: &Handle,
        transport: Arc<TransportConfig>,
        workers: Vec<UnboundedSender<Arrival>>,
    ) -> Result<Self, Error> {
        let tls = handle.tls_config().ok_or(Error::TlsWithoutCertificate)?;
        let known = (Arc::clone(&tls), config(&tls, &transport)?);
        Ok(Self { handle: handle.clone(), transport, workers, handshakes: Arc::default(), next: 0, known })
    }

    fn run(self, sockets: Vec<UdpSocket>, ready: SyncSender<io::Result<()>>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this line; if it is gone, the error is dropped.
                let _ = ready.send(Err(error));
                return;
            }
        };
        runtime.block_on(async {
            let config = || Some((*self.known.1).clone());
            let open = |socket| Endpoint::new(EndpointConfig::default(), config(), socket, Arc::new(TokioRuntime));
            let endpoints: io::Result<Vec<_>> = sockets.into_iter().map(open).collect();
            let endpoints = match endpoints {
                Ok(endpoints) => endpoints,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            let _ = ready.send(Ok(()));
            drop(ready);
            let mut accepting: JoinSet<()> =
                endpoints.iter().map(|endpoint| self.clone().accept(endpoint.clone())).collect();
            while accepting.join_next().await.is_some() {}
            // Connections go on until their workers have ended; the sockets are theirs as long.
            for worker in &self.workers {
                worker.closed().await;
            }
        });
    }

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
        let Some(place) = self.handle.take_place(&mut self.next) else { return incoming.refuse() };
        let (worker, handshake) = (place.worker(), Handshake::new(&self.handshakes));
        let arrival = Arrival { incoming, config: self.config(), place, handshake };
        // A worker that has ended takes nothing; then the client is refused as this is dropped.
        let _ = self.workers[worker].send(arrival);
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
        .incoming_buffer_size(H3_HANDSHAKE_BUFFER)
        .incoming_buffer_size_total(H3_HANDSHAKES as u64 * H3_HANDSHAKE_BUFFER);
    Ok(Arc::new(config))
}
