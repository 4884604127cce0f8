//! Tests of the whole server over sockets: calls, features, faults, shutdown, genuine clients.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod calls;
mod client;
mod connect;
mod faults;
mod features;
mod floods;
mod frames;
mod limits;
mod odd;
mod outside;
mod peers;
mod rest;
mod shutdown;
mod slow_readers;
mod support;
mod tls;
mod web;
