//! Redis over HTTP: `/get`, `/v1`, and the page at `/_/`.
//!
//! ```text
//! request ─▶ access (whose rules) ─▶ request (commands) ─▶ access (each command) ─▶ redis ─▶ format ─▶ answer
//! ```
//!
//! Nothing is sent to Redis before every command of a request has passed.

mod access;
mod answer;
mod args;
mod commands;
mod cors;
mod format;
mod get;
mod hosts;
mod page;
mod request;
mod run;
mod subscribe;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use server_runtime::metrics::{Counter, Registry};

use crate::redis::{Failure, Redis};
use access::Access;
use answer::Refusal;
use hosts::Hosts;

pub use args::{RedisArgs, routes};
pub(crate) use format::Format;

/// State that all requests share.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    redis: Option<Redis>,
    access: Access,
    origins: Vec<HeaderValue>,
    hosts: Hosts,
    max_request: usize,
    counts: Counts,
}

/// Counters for Prometheus.
#[derive(Debug)]
struct Counts {
    denied: Counter,
    away: Counter,
    slow: Counter,
}

impl Api {
    fn new(
        redis: Option<Redis>,
        access: Access,
        origins: Vec<HeaderValue>,
        hosts: Hosts,
        max_request: usize,
        metrics: &Registry,
    ) -> Self {
        let failed = |reason| {
            let help = "Requests to Redis that failed, by reason.";
            metrics.counter("http_redis_failures_total", help, &[("reason", reason)])
        };
        let counts = Counts { denied: failed("denied"), away: failed("away"), slow: failed("slow") };
        Self { shared: Arc::new(Shared { redis, access, origins, hosts, max_request, counts }) }
    }

    /// Refuses what is sent to a name that is not ours.
    fn check_host(&self, head: &Parts) -> Result<(), Refusal> {
        if self.shared.hosts.have(hosts::of(head)) {
            return Ok(());
        }
        let what = "this server is not called so; --host NAME allows a name";
        Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, what))
    }

    /// Refuses what would write into this process' directory: the embedded server has none of its own, and keeps nothing.
    fn check_files<A: AsRef<[u8]>>(&self, command: &[A]) -> Result<(), Refusal> {
        let is_embedded = self.shared.redis.as_ref().is_some_and(Redis::is_embedded);
        if is_embedded && commands::writes_files(command) {
            return Err(Refusal::denied(
                "the embedded server keeps nothing and writes no files; use a server of its own process",
            ));
        }
        Ok(())
    }

    fn redis(&self) -> Result<&Redis, Failure> {
        self.shared.redis.as_ref().ok_or(Failure::NotConfigured)
    }
}

/// The routes.
fn router(api: Api) -> Router {
    Router::new()
        .route(get::PATH, get(get::get).options(cors::preflight))
        .route("/v1", any(run::body))
        .route("/v1/", any(run::body))
        .route("/v1/{*command}", any(run::path))
        .merge(page::router())
        .with_state(api)
}

#[cfg(test)]
mod oracle;
