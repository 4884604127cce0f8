//! One QUIC connection: quinn-proto's state machines, driven by datagrams and times.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, TransportConfig,
    TransportErrorCode, VarInt,
};

use super::frame::{self, error};
use crate::clock::{Clock, Nanos};
use crate::codec::Broken;
use crate::load::Tls;
use crate::record::Failure;

/// Bytes that a server may send on a stream before it needs our leave again. Answers are read at once and never stored, so
/// windows protect nothing here.
const STREAM_WINDOW: u32 = 1 << 30;

/// The peer's address as quinn-proto sees it. The session's sockets are connected: nothing else comes from them.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 443);

/// The means to open connections, one for each endpoint of the load.
pub(in crate::codec) struct Dialler {
    endpoint: Arc<EndpointConfig>,
    servers: Vec<(ClientConfig, String)>,
    /// Instants for quinn-proto, which compares them and never asks for the time. The clock's beginning does not matter.
    clock: Clock,
}

impl fmt::Debug for Dialler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.servers.iter().map(|(_, name)| name);
        formatter.debug_list().entries(names).finish()
    }
}

impl Dialler {
    /// A dialler for the endpoints of a load.
    ///
    /// # Errors
    /// When TLS has no cipher suite that QUIC needs.
    pub(in crate::codec) fn new(endpoints: &[Tls], clock: Clock) -> Result<Self, String> {
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
            .max_idle_timeout(None)
            .datagram_receive_buffer_size(None);
        let transport = Arc::new(transport);
        let server = |tls: &Tls| {
            let crypto = QuicClientConfig::try_from(Arc::clone(&tls.config)).map_err(|error| error.to_string())?;
            let mut config = ClientConfig::new(Arc::new(crypto));
            config.transport_config(Arc::clone(&transport));
            Ok((config, tls.name.to_str().into_owned()))
        };
        let servers = endpoints.iter().map(server).collect::<Result<_, String>>()?;
        Ok(Self { endpoint: Arc::new(EndpointConfig::default()), servers, clock })
    }

    pub(in crate::codec) fn instant(&self, now: Nanos) -> Instant {
        self.clock.instant(now)
    }

    pub(in crate::codec) fn nanos(&self, instant: Instant) -> Nanos {
        self.clock.time_of(instant)
    }
}

/// A connection that is opening, open or closed.
pub(super) struct Quic {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub(super) connection: quinn_proto::Connection,
    /// Room for answers to datagrams of no connection, which are not sent.
    unsent: Vec<u8>,
    /// When [`timeout`](Self::timeout) is to be called.
    pub(super) timer: Option<Instant>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Quic").field("timer", &self.timer).finish_non_exhaustive()
    }
}

impl Quic {
    /// Begins the handshake of a seat's connection.
    pub(super) fn dial(dialler: &Dialler, seat: usize, now: Instant) -> Result<Self, Broken> {
        let (config, name) = &dialler.servers[seat % dialler.servers.len()];
        let mut endpoint = Endpoint::new(Arc::clone(&dialler.endpoint), None, true, None);
        let (handle, connection) = endpoint
            .connect(now, config.clone(), PEER, name)
            .map_err(|error| Broken { failure: Failure::Tls, example: format!("QUIC: {error}") })?;
        Ok(Self { endpoint, handle, connection, unsent: Vec::new(), timer: None })
    }

    /// A datagram has come.
    #[inline]
    pub(super) fn datagram(&mut self, now: Instant, datagram: &[u8]) {
        let event = self.endpoint.handle(now, PEER, None, None, BytesMut::from(datagram), &mut self.unsent);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.connection.handle_event(event);
            self.exchange();
        }
        self.unsent.clear();
    }

    /// The time of the timer has come.
    pub(super) fn timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        self.exchange();
    }

    /// Appends the next datagram to send. Gives whether there is one.
    #[inline]
    pub(super) fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let is_there = self.connection.poll_transmit(now, 1, out).is_some();
        self.exchange();
        if !is_there {
            self.timer = self.connection.poll_timeout();
        }
        is_there
    }

    /// Ends the connection. The next datagram tells the server.
    pub(super) fn close(&mut self, now: Instant, code: u32) {
        self.connection.close(now, VarInt::from_u32(code), Bytes::new());
    }

    /// Carries events between the connection and its endpoint.
    #[inline]
    fn exchange(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
    }
}

/// The failure of a connection that is lost; none where the server has closed it without an error.
pub(super) fn failure(reason: &ConnectionError) -> Option<Broken> {
    let failure = match reason {
        ConnectionError::TransportError(error) if is_tls(error.code) => Failure::Tls,
        ConnectionError::ConnectionClosed(close) if is_tls(close.error_code) => Failure::Tls,
        ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
            Failure::Refused
        }
        ConnectionError::ApplicationClosed(close) => {
            let code = close.error_code.into_inner();
            if code == u64::from(error::NO_ERROR) {
                return None;
            }
            let reason = String::from_utf8_lossy(&close.reason);
            let example = format!("the server closed the connection: {} {reason}", frame::error_name(code));
            return Some(Broken { failure: Failure::Closed, example: example.trim_end().to_owned() });
        }
        ConnectionError::ConnectionClosed(_) | ConnectionError::LocallyClosed => Failure::Closed,
        ConnectionError::Reset => Failure::Reset,
        ConnectionError::TimedOut => Failure::TimedOut,
        ConnectionError::CidsExhausted => Failure::Resources,
        ConnectionError::VersionMismatch | ConnectionError::TransportError(_) => Failure::Protocol,
    };
    Some(Broken { failure, example: format!("QUIC: {reason}") })
}

/// True for the alerts of TLS (RFC 9001, 4.8).
fn is_tls(code: TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}
