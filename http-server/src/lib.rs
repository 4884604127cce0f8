//! An HTTP server: any [axum] router on one runtime per core, and a front for Redis.
//!
//! ```
//! use axum::{Router, routing::get};
//! use http_server::{Options, serve};
//!
//! let router = Router::new().route("/", get(|| async { "Hello" }));
//! let options = Options::listening("127.0.0.1:0".parse()?);
//! let running = serve(router, options)?;
//! println!("listening on {}", running.local_addrs()[0]);
//! // A server would call server_runtime::shutdown_on_signals(&running) here; this one ends at once.
//! running.shutdown_handle().trigger();
//! assert!(!running.wait(), "nothing had to be cut");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod api;
mod args;
mod options;
pub mod redis;
pub mod routes;
mod service;
pub mod tuning;

pub use args::Args;
pub use options::Options;
pub use service::serve;
