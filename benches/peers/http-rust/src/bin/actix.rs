//! actix-web as its documentation shows it.

use actix_web::{App, HttpServer, Responder, get, web};
use serde::Serialize;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[get("/")]
async fn plain() -> impl Responder {
    "Hello from Rust"
}

#[get("/json")]
async fn json() -> impl Responder {
    web::Json(Message { message: "Hello from Rust" })
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port");
    HttpServer::new(|| App::new().service(plain).service(json)).bind(format!("127.0.0.1:{port}"))?.run().await
}
