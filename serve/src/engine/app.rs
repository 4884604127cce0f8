//! The trait between the engine and what stands on it.

use std::rc::Rc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use http2::StreamId;
use http2::shared::Incoming;
use server_runtime::{Peer, Shutdown, Stream};

use super::http2::{Session, begin};
use super::request_line::RequestLine;
use super::stats::{self, Stats};
use crate::options::Options;
use crate::tuning::{H2_SEND_BUFFER, H2_STREAMS, H2_WINDOW};

/// An application on the engine: a router, or calls of gRPC. Each worker has one, on its thread.
pub trait App: Sized + 'static {
    /// State that the requests of a connection share.
    type State: Clone + 'static;

    /// State that the requests of an HTTP/2 connection's turn share.
    type Batch: Default + 'static;

    /// A connection begins.
    fn open(self: &Rc<Self>, end: &End<'_>) -> Self::State;

    /// The response to a request. Handlers' panics are the application's.
    fn respond(
        self: Rc<Self>,
        request: Request<Body>,
        origin: Origin<Self::State>,
        line: Rc<RequestLine>,
    ) -> impl Future<Output = Response> + 'static;

    /// Begins to answer a request of HTTP/2, and returns whether that goes on as a task. By default it is answered as those of
    /// other protocols, within the limits of [`Options`].
    fn begin(
        self: &Rc<Self>,
        session: &Rc<Session>,
        origin: &Origin<Self::State>,
        stream: StreamId,
        request: Request<Incoming>,
        batch: &mut Self::Batch,
    ) -> bool {
        let _ = batch;
        begin(self, session, origin, stream, request)
    }

    /// The requests of a turn have begun.
    fn has_begun(&self, batch: &mut Self::Batch) {
        let _ = batch;
    }
}

/// The ends of a connection that begins.
#[derive(Debug)]
pub struct End<'a> {
    /// The client's end.
    pub peer: &'a Peer,
    /// The server's end, and the bytes; HTTP/3 has its own.
    pub here: Option<(&'a Peer, &'a Stream)>,
    /// Tells when the server wants to end.
    pub shutdown: &'a Shutdown,
}

/// The properties that all requests of a connection share.
#[derive(Clone, Debug)]
pub struct Origin<S = ()> {
    /// The client's end.
    pub peer: Peer,
    /// The connection is encrypted.
    pub is_secure: bool,
    /// The application's.
    pub state: S,
}

/// How an application is served, beyond its [`Options`].
#[derive(Clone, Debug)]
pub struct Rules {
    /// The limits of HTTP/2.
    pub http2: http2::Config,
    /// Connections of HTTP/2 that last, and so have to show that they live. None by default.
    pub keepalive: Option<Keepalive>,
    /// Clients may speak HTTP/1.1. On by default.
    pub http1: bool,
    /// A request may change the protocol: to HTTP/2 or to a WebSocket. On by default.
    pub upgrades: bool,
    /// The server reads the rest of a request's body if the handler does not, so that the connection goes on. A connection of HTTP/1.1
    /// that ends lingers until its client has closed. Off by default: an unread body ends its connection, and only connections with
    /// unread input linger.
    pub reads_rest: bool,
    /// A client of HTTP/1.1 that has ended its half of the connection still gets its answer. On by default; otherwise it
    /// counts as gone.
    pub half_close: bool,
    /// Writes the figures of all workers.
    pub figures: fn(&[Stats], &mut String),
}

impl Rules {
    /// Those of a router.
    pub fn new(options: &Options) -> Self {
        let http2 = http2::Config {
            max_streams: H2_STREAMS,
            stream_window: H2_WINDOW.0,
            connection_window: H2_WINDOW.1,
            max_headers: u32::try_from(options.limits.head).unwrap_or(u32::MAX),
            max_output: H2_SEND_BUFFER,
            max_control_frames: options.limits.control_frames,
            ..http2::Config::default()
        };
        Self {
            http2,
            keepalive: None,
            http1: true,
            upgrades: true,
            reads_rest: false,
            half_close: true,
            figures: stats::render,
        }
    }
}

/// The times of an HTTP/2 connection that is there for later requests, too.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    /// Time without a byte from the client until the server sends a PING, also if no request is open.
    pub silence: Duration,
    /// Time for the answer to that PING; then the server cuts the connection.
    pub answer: Duration,
    /// Time without a request until the server ends the connection in good order; `None` is no limit.
    pub idle: Option<Duration>,
    /// Age at which the connection is ended in good order, a tenth more or less; `None` is no limit.
    pub age: Option<Duration>,
    /// Time for the open requests of a connection that ends for its age; then the server cuts it. `None` is no limit.
    pub grace: Option<Duration>,
}
