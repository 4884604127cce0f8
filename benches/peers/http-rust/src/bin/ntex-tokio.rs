//! ntex on tokio as its documentation shows it.

use ntex::web::{self, App, HttpServer};
use serde::Serialize;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[web::get("/")]
async fn plain() -> &'static str {
    "Hello from Rust"
}

#[web::get("/json")]
async fn json() -> impl web::Responder {
    web::HttpResponse::Ok().json(&Message { message: "Hello from Rust" })
}

#[ntex::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port");
    HttpServer::new(async || App::new().service((plain, json))).bind(format!("127.0.0.1:{port}"))?.run().await
}
