#![doc = include_str!("../README.md")]

pub mod api;
mod args;
#[doc(hidden)]
pub mod fuzzing;
pub mod redis;
pub mod routes;

pub use args::{Args, HttpArgs};
pub use serve::{
    Answer, Client, Endless, Instants, Kind, Later, Limits, NameAnswer, Options, ParseTrustedError, Ready, Reply,
    Timeouts, Trusted, runtime, serve, tuning, websocket,
};
pub use server_runtime::{Blocking, BlockingLayer};
