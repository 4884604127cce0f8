#![doc = include_str!("../README.md")]

pub mod api;
mod args;
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod redis;
pub mod routes;

pub use args::{Args, HttpArgs};
#[doc(hidden)]
pub use serve::tuning;
pub use serve::{
    Answer, Client, Endless, Engine, Instants, Kind, Later, Limits, NameAnswer, Options, ParseTrustedError, Ready,
    Reply, Timeouts, Trusted, runtime, serve, websocket,
};
pub use server_runtime::{Blocking, BlockingLayer};
