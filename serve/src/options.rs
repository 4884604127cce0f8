//! The options of [`serve`](crate::serve).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use server_runtime::{Listen, Pace};

use crate::h1;
use crate::instant::Instants;
use crate::later::Later;
use crate::proxy::Trusted;
use crate::tuning;

/// Something without which this server is of no use, such as a database.
pub trait Ready: fmt::Debug + Send + Sync {
    /// Whether it can be used now. Asked on a worker's thread, inside its runtime, for each request for `/readyz`.
    fn is_ready(&self) -> Pin<Box<dyn Future<Output = bool> + Send>>;
}

/// How to serve. Take [`Options::listening`] or the [`Default`] and set what differs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The implementation of HTTP/1.1.
    pub engine: Engine,
    /// Places to listen, workers, TLS, shutdown, metrics.
    pub runtime: server_runtime::Options,
    /// Limits of everything that the network can make grow.
    pub limits: Limits,
    /// How long a client may take.
    pub timeouts: Timeouts,
    /// Answers that are made on the spot, before the router is asked.
    pub instants: Instants,
    /// A path whose answers come later, but without the router; none by default.
    pub later: Option<Arc<dyn Later>>,
    /// Whether `/healthz` and `/readyz` are answered, before the router is asked. Off by default.
    pub health: bool,
    /// Another service that has to be ready for `/readyz` to say so; none by default.
    pub ready: Option<Arc<dyn Ready>>,
    /// One request in so many is written to the log; 0, the default, writes none.
    pub access_log: u64,
    /// Proxies whose `Forwarded` and `X-Forwarded-For` are believed; none by default.
    pub trusted_proxies: Vec<Trusted>,
    /// Whether HTTP/3 is served too, at the address of every place with TLS, over UDP; clients that come there by TCP
    /// are told so. Needs the feature `http3`. Off by default.
    pub http3: bool,
    /// Whether responses of the router are compressed for clients that accept it. Off by default.
    pub compress: bool,
}

impl Options {
    /// The defaults, listening at one place.
    pub fn listening(place: Listen) -> Self {
        let runtime = server_runtime::Options { listen: vec![place], ..server_runtime::Options::default() };
        Self { runtime, ..Self::default() }
    }
}

/// The implementation of HTTP/1.1. HTTP/2 and HTTP/3 have one each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The loop of this crate.
    #[default]
    Serve,
    /// hyper, for its trailers, its CONNECT and its reading of malformed requests. Limits, time-outs and figures stay; HTTP/2 needs TLS.
    Hyper,
}

/// How much one client may ask for. Connections are limited by [`server_runtime::Options::max_connections`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's head; beyond, the answer is 431.
    pub head: usize,
    /// Bytes of the request target; beyond, the answer is 414.
    pub target: usize,
    /// Header fields, at most 128; beyond, the answer is 431.
    pub headers: usize,
    /// Bytes of a request's body; beyond, the answer is 413.
    pub body: u64,
    /// Requests on one connection; the last one's answer closes it. 0, the default, is no limit.
    pub requests: u64,
    /// Frames of HTTP/2 and HTTP/3 in a second that carry neither a request nor its data, on one connection; 10,000
    /// by default, and 0 is no limit.
    pub control_frames: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: tuning::MAX_HEAD,
            target: tuning::MAX_TARGET,
            headers: tuning::MAX_HEADERS,
            body: tuning::MAX_BODY,
            requests: 0,
            control_frames: tuning::CONTROL_FRAMES,
        }
    }
}

impl Limits {
    pub(crate) fn of_head(&self) -> h1::Limits {
        h1::Limits { head_bytes: self.head, target_bytes: self.target, headers: self.headers }
    }
}

/// How long a client may take. A connection may live up to a quarter of the shortest of them longer.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Between requests.
    pub idle: Duration,
    /// For a request's head, from its first byte.
    pub head: Duration,
    /// For a part of a request's body, of 500 bytes for each second.
    pub body: Duration,
    /// For taking a part of a response, of 500 bytes for each second.
    pub write: Duration,
    /// For closing after an answer that ends the connection early.
    pub linger: Duration,
    /// From a request's head to the head of its answer, reading its body included; beyond, the answer is 503. `None`, the
    /// default, is no limit: a handler takes as long as it takes.
    pub handler: Option<Duration>,
    /// After the begin of a shutdown, for requests that are already on their way.
    pub lame_duck: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: tuning::IDLE_TIMEOUT,
            head: tuning::HEAD_TIMEOUT,
            body: tuning::BODY_TIMEOUT,
            write: tuning::WRITE_TIMEOUT,
            linger: tuning::LINGER_TIMEOUT,
            handler: None,
            lame_duck: tuning::LAME_DUCK,
        }
    }
}

impl Timeouts {
    /// Those that connections are swept for.
    pub(crate) fn all(&self) -> [Duration; 5] {
        [self.idle, self.head, self.body, self.write, self.linger]
    }

    /// Bytes that have to move within a time-out.
    pub(crate) fn least(time: Duration) -> u64 {
        Pace::least(tuning::BODY_RATE, time)
    }
}
