//! Messages are sent back as they come. `cargo run --release -p http-server --example websocket -- 127.0.0.1:8000`, then
//! `loadgen websocket ws://127.0.0.1:8000/ws --verify -c 100`.

use axum::{Router, routing::any};
use http_server::websocket::{WebSocket, WebSocketUpgrade};
use http_server::{Options, serve};

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let router = Router::new().route("/ws", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }));
    let running = serve(router, Options::listening(address.parse()?))?;
    println!("listening on {}", running.local_addrs()[0]);
    running.wait();
    Ok(())
}
