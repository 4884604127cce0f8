//! Answers that are compressed for clients who take that.
//! `cargo run --release -p http-server --example compress -- 127.0.0.1:8000`, then `curl --compressed http://127.0.0.1:8000/items`.

use axum::http::header::CONTENT_TYPE;
use axum::{Router, routing::get};
use http_server::{Options, serve};
use server_runtime::shutdown_on_signals;

/// Nine kilobytes of JSON.
fn items() -> String {
    let item = |n: usize| {
        let (price, quantity) = (n * 37 % 1000, n * 11 % 50);
        format!(
            r#"{{"id":{n},"name":"item {n}","price":{price},"quantity":{quantity},"active":true,"tags":["fast","new"]}}"#
        )
    };
    format!(r#"{{"items":[{}]}}"#, (0..100).map(item).collect::<Vec<_>>().join(","))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: compress ADDRESS")?;
    let items = items();
    let mut options = Options::listening(address.parse()?);
    options.compress = true;
    let router = Router::new().route("/items", get(|| async { ([(CONTENT_TYPE, "application/json")], items) }));
    let running = serve(router, options)?;
    shutdown_on_signals(&running)?;
    println!("listening on {}", running.local_addrs()[0]);
    running.wait();
    Ok(())
}
