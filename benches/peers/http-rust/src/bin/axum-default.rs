//! axum as its documentation shows it.

#[path = "../items.rs"]
mod items;

use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use serde::Serialize;
use tower_http::compression::CompressionLayer;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

/// How long a body is, piece by piece.
async fn length(request: Request) -> String {
    let mut pieces = request.into_body().into_data_stream();
    let mut length = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        length += piece.len();
    }
    length.to_string()
}

/// Echoes each message.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let items = items::items();
    let items = get(|| async { ([(CONTENT_TYPE, "application/json")], items) });
    let app = Router::new()
        .route("/items", items.layer(CompressionLayer::new()))
        .route("/", get(|| async { "Hello from Rust" }))
        .route("/upload", post(length))
        .route("/ws", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }))
        .route("/json", get(|| async { Json(Message { message: "Hello from Rust" }) }))
        .route(
            "/{name}",
            get(|Path(name): Path<String>| async move { format!("Hello, visitor! You've requested: /{name}") }),
        );
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("a free port");
    axum::serve(listener, app).await.expect("serves for ever");
}
