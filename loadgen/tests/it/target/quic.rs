//! A server of HTTP/3 that does with each request as a plan says, in one thread, on quinn-proto.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, Incoming, ServerConfig,
    StreamEvent, StreamId, VarInt,
};

use super::Certificate;

/// A deed of the server, so many milliseconds after a request has come.
pub(crate) type Deed = (u64, Act);

pub(crate) enum Act {
    /// Sends bytes on the request's stream.
    Say(&'static [u8]),
    /// Ends the request's stream.
    Finish,
    /// Resets the request's stream with this error.
    Reset(u32),
    /// GOAWAY: streams from this one on are not processed.
    GoAway(u8),
    /// Closes the connection with this error.
    Close(u32, &'static str),
}

/// A request, by its number on its connection and among all, both from 0.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) here: u64,
    pub(crate) of_all: u64,
}

/// The deeds for a request.
pub(crate) type Plan = fn(Place) -> Vec<Deed>;

/// Status 200 without more, as a HEADERS frame.
pub(crate) const HEAD: &[u8] = &[1, 3, 0, 0, 0xd9];

/// A right answer: status 200 and two bytes.
pub(crate) fn answer() -> Vec<Deed> {
    answer_after(0)
}

/// The same, so late.
pub(crate) fn answer_after(millis: u64) -> Vec<Deed> {
    vec![(millis, Act::Say(HEAD)), (millis, Act::Say(b"\0\x02hi")), (millis, Act::Finish)]
}

/// A server's address, and how many requests have come. It ends with the test's process.
pub(crate) struct QuicServer {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicU64>,
    open: Arc<AtomicU64>,
}

impl QuicServer {
    /// A server whose handshakes begin so late.
    pub(crate) fn start(certificate: &Certificate, late: Duration, plan: Plan) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut tls = certificate.config();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = Arc::new(QuicServerConfig::try_from(tls).unwrap());
        let config = Some(Arc::new(ServerConfig::with_crypto(crypto)));
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), config, true, None);
        let (requests, open) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (connections, deeds, incoming) = (HashMap::new(), Vec::new(), Vec::new());
        let counts = (Arc::clone(&requests), Arc::clone(&open));
        let driver = Driver { socket, endpoint, connections, deeds, incoming, late, plan, counts };
        thread::spawn(move || driver.run());
        Self { address, requests, open }
    }

    /// How many connections are not closed.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

struct Driver {
    socket: UdpSocket,
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Client>,
    /// The deeds to do, and when.
    deeds: Vec<(Instant, ConnectionHandle, StreamId, Act)>,
    /// Handshakes that begin later.
    incoming: Vec<(Instant, Incoming)>,
    late: Duration,
    plan: Plan,
    /// Requests so far, and open connections.
    counts: (Arc<AtomicU64>, Arc<AtomicU64>),
}

struct Client {
    connection: Connection,
    control: Option<StreamId>,
    requests: u64,
}

impl Driver {
    fn run(mut self) {
        let mut buffer = [0; 65_536];
        loop {
            self.accept();
            self.act();
            self.transmit();
            let open = self.connections.values().filter(|client| !client.connection.is_closed()).count();
            self.counts.1.store(open as u64, Ordering::SeqCst);
            let timers = self.connections.values_mut().filter_map(|client| client.connection.poll_timeout());
            let later = self.deeds.iter().map(|deed| deed.0).chain(self.incoming.iter().map(|incoming| incoming.0));
            let now = Instant::now();
            let next = timers.chain(later).min().unwrap_or(now + Duration::from_secs(1));
            let wait = next.saturating_duration_since(now).max(Duration::from_micros(50));
            self.socket.set_read_timeout(Some(wait)).unwrap();
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.datagram(from, &buffer[..length]),
                // A client's socket that is closed is reported too.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
                Err(error) => panic!("{error}"),
            }
            let now = Instant::now();
            let handles: Vec<_> = self.connections.keys().copied().collect();
            for handle in handles {
                let client = self.connections.get_mut(&handle).unwrap();
                if client.connection.poll_timeout().is_some_and(|timer| timer <= now) {
                    client.connection.handle_timeout(now);
                }
                self.events(handle);
            }
        }
    }

    fn datagram(&mut self, from: SocketAddr, datagram: &[u8]) {
        let (now, mut out) = (Instant::now(), Vec::new());
        match self.endpoint.handle(now, from, None, None, BytesMut::from(datagram), &mut out) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(client) = self.connections.get_mut(&handle) {
                    client.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.incoming.push((now + self.late, incoming)),
            Some(DatagramEvent::Response(transmit)) => {
                let _ = self.socket.send_to(&out[..transmit.size], transmit.destination);
            }
            None => {}
        }
    }

    /// Begins the handshakes whose time has come.
    fn accept(&mut self) {
        let (now, mut out) = (Instant::now(), Vec::new());
        while let Some(place) = self.incoming.iter().position(|(due, _)| *due <= now) {
            let (_, incoming) = self.incoming.remove(place);
            if let Ok((handle, connection)) = self.endpoint.accept(incoming, now, &mut out, None) {
                self.connections.insert(handle, Client { connection, control: None, requests: 0 });
                self.events(handle);
            }
        }
    }

    fn events(&mut self, handle: ConnectionHandle) {
        let Some(client) = self.connections.get_mut(&handle) else { return };
        while let Some(event) = client.connection.poll_endpoint_events() {
            if event.is_drained() {
                self.endpoint.handle_event(handle, event);
                self.connections.remove(&handle);
                return;
            }
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                client.connection.handle_event(event);
            }
        }
        while let Some(event) = client.connection.poll() {
            match event {
                Event::Connected => {
                    let control = client.connection.streams().open(Dir::Uni).unwrap();
                    client.connection.send_stream(control).write(&[0, 4, 0]).unwrap();
                    client.control = Some(control);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(id) = client.connection.streams().accept(Dir::Bi) {
                        drain(&mut client.connection, id);
                        let place =
                            Place { here: client.requests, of_all: self.counts.0.fetch_add(1, Ordering::SeqCst) };
                        client.requests += 1;
                        let now = Instant::now();
                        let deeds = (self.plan)(place).into_iter();
                        self.deeds
                            .extend(deeds.map(|(millis, act)| (now + Duration::from_millis(millis), handle, id, act)));
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => drain(&mut client.connection, id),
                _ => {}
            }
        }
    }

    /// Does what is due, in the order in which it was planned.
    fn act(&mut self) {
        let now = Instant::now();
        for (due, handle, id, act) in std::mem::take(&mut self.deeds) {
            let Some(client) = self.connections.get_mut(&handle) else { continue };
            if due > now {
                self.deeds.push((due, handle, id, act));
                continue;
            }
            let connection = &mut client.connection;
            // Errors say that the client has given the stream up.
            let _ = match act {
                Act::Say(bytes) => connection.send_stream(id).write(bytes).map(drop).ok(),
                Act::Finish => connection.send_stream(id).finish().ok(),
                Act::Reset(code) => connection.send_stream(id).reset(VarInt::from_u32(code)).ok(),
                Act::GoAway(first) => client
                    .control
                    .and_then(|control| connection.send_stream(control).write(&[7, 1, first]).map(drop).ok()),
                Act::Close(code, reason) => {
                    connection.close(now, VarInt::from_u32(code), Bytes::from_static(reason.as_bytes()));
                    Some(())
                }
            };
        }
    }

    fn transmit(&mut self) {
        for client in self.connections.values_mut() {
            let mut out = Vec::new();
            while let Some(transmit) = client.connection.poll_transmit(Instant::now(), 1, &mut out) {
                let _ = self.socket.send_to(&out[..transmit.size], transmit.destination);
                out.clear();
            }
        }
    }
}

/// Reads what has come of a request: only a stream that is read to its end makes room for others.
fn drain(connection: &mut Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return };
    while let Ok(Some(_)) = chunks.next(usize::MAX) {}
    let _ = chunks.finalize();
}
