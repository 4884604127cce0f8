//! A router over HTTP/3, and over HTTP/2 and HTTP/1.1 at the same port.
//! `cargo run --release -p http-server --features http3 --example http3 -- 127.0.0.1:8443 cert.pem key.pem`, then
//! `curl --http3 --insecure https://127.0.0.1:8443/`.

use axum::{Router, routing::get};
use http_server::{Options, serve};
use server_runtime::{Listen, TlsOptions, shutdown_on_signals};

/// The body of /64k.
static BODY: [u8; 64 << 10] = [0; 64 << 10];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, cert, key] = &arguments[..] else { return Err("usage: http3 ADDRESS CERTIFICATE KEY".into()) };
    let mut options = Options::default();
    options.runtime.listen = vec![Listen::Tls(address.parse()?)];
    options.runtime.tls = Some(TlsOptions::new(cert, key));
    options.http3 = true;
    let router = Router::new().route("/", get(async || "Hello from Rust")).route("/64k", get(async || &BODY[..]));
    let running = serve(router, options)?;
    shutdown_on_signals(&running)?;
    println!("listening on {}", running.local_addrs()[0]);
    running.wait();
    Ok(())
}
