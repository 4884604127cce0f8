//! axum as its documentation shows it.

use axum::{Json, Router, extract::Path, routing::get};
use serde::Serialize;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let app = Router::new()
        .route("/", get(|| async { "Hello from Rust" }))
        .route("/json", get(|| async { Json(Message { message: "Hello from Rust" }) }))
        .route(
            "/{name}",
            get(|Path(name): Path<String>| async move { format!("Hello, visitor! You've requested: /{name}") }),
        );
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("a free port");
    axum::serve(listener, app).await.expect("serves for ever");
}
