//! warp as its documentation shows it.

use serde::Serialize;
use warp::Filter as _;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[tokio::main]
async fn main() {
    let port: u16 = std::env::args().nth(1).and_then(|port| port.parse().ok()).expect("a port");
    let plain = warp::path::end().map(|| "Hello from Rust");
    let json = warp::path!("json").map(|| warp::reply::json(&Message { message: "Hello from Rust" }));
    let named = warp::path!(String).map(|name| format!("Hello, visitor! You've requested: /{name}"));
    warp::serve(warp::get().and(plain.or(json).or(named))).run(([127, 0, 0, 1], port)).await;
}
