#![doc = include_str!("../README.md")]

pub mod api;
mod args;
mod compress;
mod conditional;
mod engine;
mod file_part;
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
pub mod websocket;

pub use args::{Args, HttpArgs};
pub use engine::{Endless, serve};
pub use instant::{Answer, Instants, Kind, NameAnswer};
pub use later::{Later, Reply};
pub use options::{Limits, Options, Ready, Timeouts};
pub use proxy::{Client, ParseTrustedError, Trusted};
pub use server_runtime as runtime;
pub use server_runtime::{Blocking, BlockingLayer};
