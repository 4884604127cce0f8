//! A router of one's own on the tuned engine: `cargo run --release -p http-server --example library`.

use axum::extract::Path;
use axum::{Json, Router, routing::get, routing::post};
use http_server::{Instants, Kind, Options, serve};
use server_runtime::{LogOptions, init_logging, shutdown_on_signals};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    init_logging(&LogOptions::default())?;
    let router = Router::new()
        .route("/square/{number}", get(|Path(number): Path<i64>| async move { Json(number.saturating_mul(number)) }))
        .route("/echo", post(|body: String| async move { body }));
    let mut options = Options::listening("127.0.0.1:8080".parse()?);
    options.health = true;
    options.compress = true;
    options.limits.body = 1024 * 1024;
    // For paths that are asked for very often: answered before anything is allocated.
    options.instants = Instants::default().with("/version", Kind::Text, |body| body.extend_from_slice(b"1.0"));
    let running = serve(router, options)?;
    shutdown_on_signals(&running)?;
    println!("curl http://{}/square/12", running.local_addrs()[0]);
    running.wait();
    Ok(())
}
