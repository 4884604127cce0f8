#![doc = include_str!("../README.md")]

mod args;
mod engine;
pub mod greeter;
mod health;
mod options;
mod reflection;
mod routes;
#[doc(hidden)]
pub mod tuning;

pub use args::{Args, Coding, GrpcArgs};
pub use engine::{ConnectGet, Inbound, serve};
pub use options::{Limits, Options, Timeouts, Web};
pub use routes::{AnyService, Routes};
pub use server_runtime as runtime;
