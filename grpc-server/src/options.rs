//! What [`serve`](crate::serve) is told.

use std::time::Duration;

use server_runtime::Listen;

use crate::tuning;

/// How to serve. Take [`Options::listening`] or the [`Default`] and set what differs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Places to listen, workers, TLS, shutdown, metrics.
    pub runtime: server_runtime::Options,
    /// What the network may make grow.
    pub limits: Limits,
    /// How long a client may take.
    pub timeouts: Timeouts,
}

impl Options {
    /// The defaults, listening at one place.
    pub fn listening(place: Listen) -> Self {
        let runtime = server_runtime::Options { listen: vec![place], ..server_runtime::Options::default() };
        Self { runtime, ..Self::default() }
    }
}

/// How much one client may ask for. Connections are limited by [`server_runtime::Options::max_connections`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls at one time on one connection; beyond, a call is refused and the client may try it again.
    pub streams: u32,
    /// Bytes of a call's header fields; beyond, it is answered with status 431.
    pub headers: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { streams: tuning::MAX_STREAMS, headers: tuning::MAX_HEADERS }
    }
}

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the beginning of a connection: the client's preface and settings.
    pub handshake: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { handshake: tuning::HANDSHAKE_TIMEOUT }
    }
}
