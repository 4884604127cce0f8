//! The effect of a handler that blocks its thread, on the worker and away from it:
//! `cargo run --release -p http-server --example http-blocking -- 127.0.0.1:8000`.

use std::thread::sleep;
use std::time::Duration;

use axum::{Router, routing::get};
use http_server::{BlockingLayer, Options, serve};
use server_runtime::shutdown_on_signals;

/// Blocks its thread, by a sleep that should have been awaited.
async fn nap() -> &'static str {
    sleep(Duration::from_millis(100));
    "awake"
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: http-blocking ADDRESS")?;
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/nap", get(nap))
        .route("/nap-apart", get(nap).layer(BlockingLayer));
    let running = serve(router, Options::listening(address.parse()?))?;
    shutdown_on_signals(&running)?;
    println!("listening on {}", running.local_addrs()[0]);
    running.wait();
    Ok(())
}
