//! `cargo bench -p benches --bench micro [-- FILTER]`: one module for each hypothesis about why a server is slow.
#![allow(missing_docs, unreachable_pub, reason = "criterion's macros")]

use criterion::criterion_main;

mod allocator;
mod echonet_class;
mod echonet_codec;
mod echonet_controller;
mod flush;
mod grpc_encode;
mod hasher;
mod json;
mod lock_or_message;
mod observer;
mod own_path;
mod routing;
#[path = "../settings.rs"]
mod settings;
mod system_allocator;
mod udp_socket;

criterion_main!(
    echonet_class::group,
    echonet_codec::group,
    echonet_controller::group,
    flush::group,
    grpc_encode::group,
    hasher::group,
    json::group,
    lock_or_message::group,
    observer::group,
    own_path::group,
    routing::group,
    system_allocator::group,
    udp_socket::group,
);
