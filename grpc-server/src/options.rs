//! The options of [`serve`](crate::serve).

use std::time::Duration;

use server_runtime::Listen;

use crate::tuning;

/// How to serve. Take [`Options::listening`] or the [`Default`] and set what differs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Places to listen, workers, TLS, shutdown, metrics.
    pub runtime: server_runtime::Options,
    /// Limits of everything that the network can make grow.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Whether `grpc.health.v1.Health` is served: every service serves until the shutdown begins. On by default; routes
    /// that have a health service keep theirs.
    pub health: bool,
    /// Encoded `FileDescriptorSet`s of the services; if there are any, reflection (v1 and v1alpha) tells them.
    pub descriptors: Vec<&'static [u8]>,
    /// Whether gRPC-Web is served too, over HTTP/2 and HTTP/1.1, and to whose pages. Off by default.
    pub web: Option<Web>,
    /// Serves the Connect protocol, too, over HTTP/2 and HTTP/1.1, to the same origins as gRPC-Web. It has unary calls
    /// and streams in protocol buffers. Services of [`Options::descriptors`] also speak JSON, and answer GET for
    /// methods that are declared free of side effects. Off by default.
    pub connect: bool,
    /// One call in so many is written to the log; 0, the default, writes none.
    pub access_log: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runtime: server_runtime::Options::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            health: true,
            descriptors: Vec::new(),
            web: None,
            connect: false,
            access_log: 0,
        }
    }
}

impl Options {
    /// Whether somebody may speak HTTP/1.1.
    pub(crate) fn speaks_http1(&self) -> bool {
        self.web.is_some() || self.connect
    }

    /// The defaults, listening at one place.
    pub fn listening(place: Listen) -> Self {
        let runtime = server_runtime::Options { listen: vec![place], ..server_runtime::Options::default() };
        Self { runtime, ..Self::default() }
    }
}

/// The pages that may call by gRPC-Web.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// Origins whose pages may call, such as `https://example.com`; `*` is every one. A client that is no page, and so
    /// sends no origin, may call in any case.
    pub origins: Vec<String>,
}

/// A time that is as good as none: ten years.
pub(crate) const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How much clients may ask for. Connections are limited by [`server_runtime::Options::max_connections`], messages of gRPC and
/// gRPC-Web by the services: those that tonic generates have `max_decoding_message_size`, 4 MiB by default.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls at one time on one connection; beyond, a call is refused and the client may try it again.
    pub streams: u32,
    /// Bytes of a call's header fields, 32 more for each of them, and of its trailers: 16 MiB. Beyond, the call ends with
    /// RESOURCE_EXHAUSTED, and a request that is no call with status 431. A header block that is twice as long, and 256
    /// KiB at least, ends the connection.
    pub headers: u32,
    /// Calls that wait for something at one time, on all connections, an equal share for each worker; beyond, calls
    /// are answered with RESOURCE_EXHAUSTED at once. 0 is no limit.
    pub calls: u64,
    /// Frames in a second that carry neither a call nor its data; 10,000 by default, and 0 is no limit.
    pub control_frames: u32,
    /// Bytes of a message of the Connect protocol, as it comes and, in JSON, decompressed; beyond, a call ends with
    /// RESOURCE_EXHAUSTED. The service's own limit holds besides.
    pub message: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: tuning::MAX_STREAMS,
            headers: tuning::MAX_HEADERS,
            calls: tuning::MAX_CALLS,
            control_frames: tuning::CONTROL_FRAMES,
            message: tuning::MAX_MESSAGE,
        }
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the beginning of a connection, the client's preface and settings, and for each head. Over HTTP/1.1 also between requests.
    pub handshake: Duration,
    /// For a call, if its client does not want less. None by default.
    pub call: Option<Duration>,
    /// Without a byte from a client, after which it is asked for an answer (PING).
    pub keepalive: Duration,
    /// For that answer; then the connection is cut.
    pub keepalive_answer: Duration,
    /// Without a call, after which a connection is ended in good order. None by default.
    pub idle: Option<Duration>,
    /// A connection's age at which it is ended in good order, so that its client looks for a server again. A tenth more or
    /// less, by chance, so that those that came together do not leave together. None by default.
    pub age: Option<Duration>,
    /// For the calls of a connection that is ended for its age; then it is cut. By default they take as long as they take.
    pub age_grace: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: tuning::HANDSHAKE_TIMEOUT,
            call: None,
            keepalive: tuning::KEEPALIVE,
            keepalive_answer: tuning::KEEPALIVE_ANSWER,
            idle: None,
            age: None,
            age_grace: None,
        }
    }
}

impl Timeouts {
    /// The same, with nothing so long that a time in the future could not be told.
    pub(crate) fn bounded(self) -> Self {
        Self {
            handshake: self.handshake.min(LONGEST),
            call: self.call.map(|call| call.min(LONGEST)),
            keepalive: self.keepalive.min(LONGEST),
            keepalive_answer: self.keepalive_answer.min(LONGEST),
            idle: self.idle.map(|idle| idle.min(LONGEST)),
            age: self.age.map(|age| age.min(LONGEST)),
            age_grace: self.age_grace.map(|grace| grace.min(LONGEST)),
        }
    }
}
