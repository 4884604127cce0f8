//! actix-web as its documentation shows it.

use actix_web::{App, HttpServer, Responder, get, post, web};
use futures_util::StreamExt;
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

/// How long a body is, piece by piece.
#[post("/upload")]
async fn upload(mut body: web::Payload) -> impl Responder {
    let mut length = 0;
    while let Some(Ok(piece)) = body.next().await {
        length += piece.len();
    }
    length.to_string()
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port");
    HttpServer::new(|| App::new().service(plain).service(json).service(upload)).bind(format!("127.0.0.1:{port}"))?.run().await
}
