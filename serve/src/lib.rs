#![doc = include_str!("../README.md")]

mod compress;
pub mod conditional;
mod engine;
pub mod file_part;
#[doc(hidden)]
pub mod h1;
mod instant;
mod later;
mod options;
mod proxy;
#[doc(hidden)]
pub mod tuning;
pub mod websocket;

pub use axum::body::Body;
pub use engine::{
    App, BodyError, Count, End, Endless, Keepalive, Origin, RequestLine, Rules, Session, Stats, Worker, serve, start,
};
pub use instant::{Answer, Instants, Kind, NameAnswer};
pub use later::{Later, Reply};
pub use options::{Engine, Limits, Options, Ready, Timeouts};
pub use proxy::{Client, ParseTrustedError, Trusted};
pub use server_runtime as runtime;
