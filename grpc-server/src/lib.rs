//! A gRPC server: any [tonic] service on one runtime per core.
//!
//! ```
//! use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};
//! use grpc_server::{Options, Routes, serve};
//!
//! let routes = Routes::new().add_service(GreeterServer::new(Greeter));
//! let running = serve(routes, Options::listening("127.0.0.1:0".parse()?))?;
//! println!("listening on {}", running.local_addrs()[0]);
//! // A server would call server_runtime::shutdown_on_signals(&running) here; this one ends at once.
//! running.shutdown_handle().trigger();
//! assert!(!running.wait(), "nothing had to be cut");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod args;
mod engine;
pub mod greeter;
mod health;
mod options;
mod reflection;
mod routes;
pub mod tuning;

pub use args::{Args, Coding, GrpcArgs};
pub use engine::{Inbound, serve};
pub use options::{Limits, Options, Timeouts, Web};
pub use routes::Routes;
