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
mod page;
mod request;
mod run;
mod subscribe;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get};
use http::HeaderValue;
use server_runtime::metrics::{Counter, Registry};

use crate::redis::{Failure, Redis};
use access::Access;

pub use args::{RedisArgs, routes};
pub(crate) use format::Format;

/// What all requests share.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    redis: Option<Redis>,
    access: Access,
    origins: Vec<HeaderValue>,
    max_request: usize,
    counts: Counts,
}

/// What Prometheus is told.
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
        max_request: usize,
        metrics: &Registry,
    ) -> Self {
        let failed = |reason| {
            let help = "Requests to Redis that failed, by reason.";
            metrics.counter("http_redis_failures_total", help, &[("reason", reason)])
        };
        let counts = Counts { denied: failed("denied"), away: failed("away"), slow: failed("slow") };
        Self { shared: Arc::new(Shared { redis, access, origins, max_request, counts }) }
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
