//! actix-web as its documentation shows it.

#[path = "../items.rs"]
mod items;

use actix_web::middleware::Compress;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, Responder, get, post, rt, web};
use actix_ws::Message;
use futures_util::StreamExt;
use serde::Serialize;

#[derive(Serialize)]
struct Greeting {
    message: &'static str,
}

#[get("/")]
async fn plain() -> impl Responder {
    "Hello from Rust"
}

#[get("/json")]
async fn json() -> impl Responder {
    web::Json(Greeting { message: "Hello from Rust" })
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

/// Echoes each message.
#[get("/ws")]
async fn echo(request: HttpRequest, body: web::Payload) -> actix_web::Result<HttpResponse> {
    let (response, mut session, mut messages) = actix_ws::handle(&request, body)?;
    rt::spawn(async move {
        while let Some(Ok(message)) = messages.recv().await {
            let sent = match message {
                Message::Text(text) => session.text(text).await,
                Message::Binary(bytes) => session.binary(bytes).await,
                Message::Ping(bytes) => session.pong(&bytes).await,
                _ => break,
            };
            if sent.is_err() {
                break;
            }
        }
    });
    Ok(response)
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port");
    let items = items::items();
    let compressed = move || {
        let items = items.clone();
        let answer =
            move || std::future::ready(HttpResponse::Ok().content_type("application/json").body(items.clone()));
        web::resource("/items").wrap(Compress::default()).route(web::get().to(answer))
    };
    HttpServer::new(move || App::new().service(plain).service(json).service(upload).service(echo).service(compressed()))
        .bind(format!("127.0.0.1:{port}"))?
        .run()
        .await
}
