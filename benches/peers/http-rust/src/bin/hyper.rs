//! hyper alone, as its documentation shows it: no router, no extractors.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde::Serialize;
use tokio::net::TcpListener;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match request.uri().path() {
        "/json" => {
            let body = serde_json::to_vec(&Message { message: "Hello from Rust" }).expect("it is text");
            let mut response = Response::new(Full::from(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        "/upload" => {
            let (mut body, mut length) = (request.into_body(), 0);
            while let Some(Ok(frame)) = body.frame().await {
                length += frame.data_ref().map_or(0, Bytes::len);
            }
            Response::new(Full::from(length.to_string()))
        }
        _ => Response::new(Full::from("Hello from Rust")),
    })
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("a free port");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let server = Builder::new(TokioExecutor::new());
            _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}
