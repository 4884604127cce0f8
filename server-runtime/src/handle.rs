//! The handle of a running server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::counters::{Counters, Order, Place};
use crate::error::Error;
use crate::files;
use crate::options::TlsOptions;
use crate::shutdown::{Shutdown, Stop};
use crate::tls::Tls;

/// A handle of a running server, to observe or end it. Clones are cheap.
#[derive(Clone)]
pub struct Handle {
    pub(crate) stop: Arc<Stop>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl Handle {
    /// Begins a shutdown in good order: nothing more is accepted, connections see their
    /// [`Shutdown`], and those that have not ended after [`Options::drain`](crate::Options::drain) are cut.
    pub fn trigger(&self) {
        self.stop.drain();
    }

    /// Ends at once: open connections are cut.
    pub fn abort(&self) {
        self.stop.end();
    }

    /// Whether the server has been told to end.
    pub fn is_triggered(&self) -> bool {
        self.stop.accept.is_triggered()
    }

    /// The signal that the server stops accepting connections.
    pub fn closing(&self) -> Shutdown {
        self.stop.accept.clone()
    }

    /// A place on this worker, for a connection that has come otherwise than through the listeners. `None` at the limit of open
    /// connections.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn take_place_on(&self, worker: usize) -> Option<Place> {
        assert!(worker < self.counters.workers(), "there is no worker {worker}");
        self.counters.take_on(worker)
    }

    /// The configuration of TLS for a connection that begins now, if there is one: with the certificate that is in use.
    pub fn tls_config(&self) -> Option<Arc<rustls::ServerConfig>> {
        Some(self.tls.as_ref()?.session().config)
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.counters.open()
    }

    /// Connections open now, by worker.
    pub fn connections_by_worker(&self) -> Vec<usize> {
        (0..self.counters.workers()).map(|worker| self.counters.open_on(worker)).collect()
    }

    /// Asks a share (0 to 1) of one worker's connections to go to another, each when it next has something to do. For
    /// tests, and for programs that need a worker's processor for something else: the server itself balances again later.
    ///
    /// Nothing happens where connections [do not move](crate::Service::moves), or to TLS ones.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn move_connections(&self, from: usize, to: usize, share: f64) {
        assert!(to < self.counters.workers(), "there is no worker {to}");
        self.counters.order(Order { from, to, share });
    }

    /// Connections that went to another worker since the start.
    pub fn moved(&self) -> u64 {
        self.counters.moved.load(Relaxed)
    }

    /// Connections accepted since the start, refused ones not counted.
    pub fn accepted(&self) -> u64 {
        self.counters.accepted.load(Relaxed)
    }

    /// Connections refused at the limit since the start.
    pub fn refused(&self) -> u64 {
        self.counters.refused.load(Relaxed)
    }

    /// The limit of open connections.
    pub fn max_connections(&self) -> usize {
        self.counters.limit.load(Relaxed)
    }

    /// Changes the limit of open connections; those beyond a lower one stay. Returns the limit that is now in force,
    /// which is lower than the one asked for where the system does not allow as many open files.
    pub fn set_max_connections(&self, limit: usize) -> usize {
        let limit = files::connections_allowed(limit);
        self.counters.limit.store(limit, Relaxed);
        limit
    }

    /// Reads the certificate files again now.
    ///
    /// # Errors
    /// When they do not load; the certificate in use stays.
    pub fn reload_tls(&self) -> Result<(), Error> {
        self.tls.as_ref().ok_or(Error::TlsWithoutCertificate)?.reload()
    }

    /// Uses other files or settings for TLS from now on.
    ///
    /// # Errors
    /// When they do not load, and the old ones stay; or when the server was started without TLS.
    pub fn replace_tls(&self, options: TlsOptions) -> Result<(), Error> {
        self.tls.as_ref().ok_or(Error::TlsWithoutCertificate)?.replace(options)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("connections", &self.connections()).finish_non_exhaustive()
    }
}
