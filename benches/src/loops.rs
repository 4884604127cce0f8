//! What each server does for a request, without its sockets: own-path benchmarks and those of allocators run these.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use grpc_server::greeter::Greeter;
use grpc_server::greeter::pb::greeter_server::GreeterServer;
use http::Request;
use http_body_util::{BodyExt, Full};
use redis_server::config::Config;
use redis_server::embedded::Session;
use redis_server::instance::Instance;
use redis_server::worker::Worker;
use tower_service::Service;

/// Commands that a batch holds.
pub const DEPTH: usize = 16;

/// What a request loop does for one turn; it returns the bytes of the answers.
pub type Turn = Box<dyn FnMut() -> usize>;

/// The value of a future that never waits.
///
/// # Panics
/// When it waits.
pub fn ready<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// redis-server: a batch of [`DEPTH`] commands of different keys, written with `{key}` for the key, as one input.
///
/// # Panics
/// When the answer is not `reply`, [`DEPTH`] times.
pub fn redis(prepare: &str, command: &str, reply: &str) -> Turn {
    let mut session = Session::new(Rc::new(Worker::new(Arc::new(Instance::new(Arc::new(Config::default()))))));
    let batch = |command: &str| -> Vec<u8> {
        let one = |number: usize| {
            let words: Vec<String> =
                command.split(' ').map(|word| word.replace("{key}", &format!("key:{number:012}"))).collect();
            let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
            format!("*{}\r\n{bulks}", words.len())
        };
        (0..DEPTH).map(one).collect::<String>().into_bytes()
    };
    session.receive(&batch(prepare));
    session.transmit();
    let input = batch(command);
    session.receive(&input);
    assert_eq!(session.transmit(), reply.repeat(DEPTH).as_bytes());
    Box::new(move || {
        session.receive(black_box(&input));
        session.transmit().len()
    })
}

/// axum: `GET /json` through a router, as any server above it does.
///
/// # Panics
/// When the answer is wrong.
pub fn axum_json() -> Turn {
    let json = || async { axum::Json(serde_json::json!({ "message": "Hello from Rust" })) };
    let mut router = Router::new().route("/json", get(json));
    let mut turn = move || {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = http::Uri::from_static(black_box("/json"));
        let Ok(response) = ready(router.call(request));
        ready(response.into_body().collect()).expect("it is in memory").to_bytes()
    };
    assert_eq!(turn(), r#"{"message":"Hello from Rust"}"#);
    Box::new(move || turn().len())
}

/// tonic: `SayHello` through the generated service, from the message's bytes to those of the answer.
///
/// # Panics
/// When the answer is wrong.
pub fn tonic_say_hello() -> Turn {
    let mut service = GreeterServer::new(Greeter);
    let message = Bytes::from_static(b"\0\0\0\0\x08\x0a\x06Ferris");
    let mut turn = move || {
        let body = tonic::body::Body::new(Full::new(message.clone()).map_err(|never| match never {}));
        let mut request = Request::new(body);
        *request.uri_mut() = http::Uri::from_static("/helloworld.Greeter/SayHello");
        *request.method_mut() = http::Method::POST;
        request.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
        let Ok(response) = ready(service.call(request));
        ready(response.into_body().collect()).expect("it is in memory").to_bytes()
    };
    assert!(turn().ends_with(b"Ferris") || turn().ends_with(b"Ferris!"), "it greets");
    Box::new(move || turn().len())
}
