//! GET /get?key=… from Redis: axum, and the multiplexed connection of the redis crate, as their documentation shows them.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::{Router, routing::get};
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use serde::Deserialize;

#[derive(Deserialize)]
struct Wanted {
    key: String,
}

async fn value(State(mut redis): State<MultiplexedConnection>, Query(wanted): Query<Wanted>) -> (StatusCode, String) {
    match redis.get(wanted.key).await {
        Ok(Some(value)) => (StatusCode::OK, value),
        Ok(None) => (StatusCode::NOT_FOUND, "there is no such key".to_owned()),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    }
}

#[tokio::main]
async fn main() {
    let [port, place] = [1, 2].map(|number| std::env::args().nth(number).expect("a port, and the place of Redis"));
    let client = redis::Client::open(format!("redis://{place}")).expect("HOST:PORT");
    let connection = client.get_multiplexed_async_connection().await.expect("a Redis");
    let app = Router::new().route("/", get(|| async { "Hello from Rust" })).route("/get", get(value));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("a free port");
    axum::serve(listener, app.with_state(connection)).await.expect("serves for ever");
}
