//! Bodies of any length, taken piece by piece: nothing is kept of them.
//! `cargo run --release -p http-server --example upload -- 127.0.0.1:8000`, then
//! `curl --data-binary @FILE http://127.0.0.1:8000/upload`.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::{Router, routing::post};
use http_server::{Options, serve};
use server_runtime::shutdown_on_signals;
use tokio_stream::StreamExt as _;

/// Answers how long a body was. A piece that the handler does not wait for is not read from the connection: a slow
/// handler slows its client down.
async fn upload(request: Request) -> Result<String, StatusCode> {
    let mut pieces = request.into_body().into_data_stream();
    let mut length = 0;
    while let Some(piece) = pieces.next().await {
        length += piece.map_err(|_| StatusCode::BAD_REQUEST)?.len();
    }
    Ok(length.to_string())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: upload ADDRESS")?;
    let mut options = Options::listening(address.parse()?);
    options.limits.body = 1 << 30;
    let running = serve(Router::new().route("/upload", post(upload)), options)?;
    shutdown_on_signals(&running)?;
    println!("listening on {}", running.local_addrs()[0]);
    running.wait();
    Ok(())
}
