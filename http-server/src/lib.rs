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
mod compress;
mod engine;
#[doc(hidden)]
pub mod fuzzing;
pub mod h1;
mod instant;
mod later;
mod options;
mod proxy;
pub mod redis;
pub mod routes;
pub mod tuning;

pub use args::{Args, HttpArgs};
pub use engine::{Endless, serve};
pub use instant::{Answer, Instants, Kind, NameAnswer};
pub use later::{Later, Reply};
pub use options::{Http2, Limits, Options, Ready, Timeouts};
pub use proxy::{Client, ParseTrustedError, Trusted};
pub use server_runtime::{Blocking, BlockingLayer};
