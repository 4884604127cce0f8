//! What TCP servers share: listeners, one worker thread per core, TLS, graceful shutdown, metrics, logs and flags.
//!
//! One thread accepts and hands each connection to a worker. A worker is a thread with a tokio runtime of its own; a
//! connection is served there alone, so that a [`Service`] needs neither `Send` futures nor locks for what belongs to a
//! worker or a connection. Connections are dealt out evenly; those of a service that [lets them move](Service::MOVES)
//! gather on as few workers as can carry them.
//!
//! An echo server:
//!
//! ```
//! use std::{rc::Rc, sync::Arc};
//! use server_runtime::{Connection, Options, Service, start};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! struct Echo;
//!
//! impl Service for Echo {
//!     type Worker = ();
//!     type Carried = ();
//!     fn worker(self: &Arc<Self>, _index: usize) {}
//!     async fn serve(self: Arc<Self>, _worker: Rc<()>, mut connection: Connection) {
//!         let mut bytes = [0; 1024];
//!         while let Ok(count @ 1..) = connection.stream.read(&mut bytes).await {
//!             if connection.stream.write_all(&bytes[..count]).await.is_err() {
//!                 break;
//!             }
//!         }
//!     }
//! }
//!
//! let options = Options { listen: vec!["127.0.0.1:0".parse()?], ..Options::default() };
//! let running = start(options, Arc::new(Echo))?;
//! println!("listening on {}", running.local_addrs()[0]);
//! // A server would call shutdown_on_signals(&running) here; this one ends at once.
//! running.shutdown_handle().trigger();
//! assert!(!running.wait(), "nothing had to be cut");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod args;
mod balance;
mod blocking;
mod counters;
mod error;
mod files;
mod huge_pages;
mod inherited;
mod listen;
mod logging;
mod meter;
pub mod metrics;
mod options;
mod pin;
mod redis_line;
mod running;
mod scrape;
mod shutdown;
mod signals;
mod socket;
mod stream;
mod timers;
mod tls;
mod workers;

pub use args::RuntimeArgs;
pub use blocking::{Blocking, BlockingCall, BlockingLayer};
pub use counters::Place;
pub use error::Error;
pub use huge_pages::allow_huge_pages;
pub use logging::{LogFormat, LogOptions, LogOutput, init_logging, set_log_level};
pub use meter::Meter;
pub use options::{ClientAuth, Listen, Options, ParseListenError, TlsOptions};
pub use running::{Bound, Handle, Running, start};
pub use shutdown::Shutdown;
pub use signals::{Signals, shutdown_on_signals};
pub use stream::{Connection, Peer, Routes, Stream};
pub use timers::sleep;
pub use workers::Service;
