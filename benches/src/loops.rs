//! The request loops of each server without its sockets, for the benchmarks of their own code and of allocators.

use std::hint::black_box;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use echonet_lite::node::{Arrival, Config as NodeConfig, Destination, Identity, Instant, Node, Object, Transmit};
use grpc_server::greeter::Greeter;
use grpc_server::greeter::pb::greeter_server::GreeterServer;
use http::Request;
use http_body_util::{BodyExt, Full};
use redis_server::commands::TABLE;
use redis_server::config::Config;
use redis_server::exec::core::{Instance, Worker};
use redis_server::runtime::embedded::Session;
use serve::h1::{self, Limits, MAX_HEADERS, Room};
use tower_service::Service;

/// Commands that a batch holds.
pub const DEPTH: usize = 16;

/// One turn of a request loop; it returns the number of response bytes.
pub type Turn = Box<dyn FnMut() -> usize>;

/// A path: its name, the requests of one turn, and what makes it.
pub type Path = (&'static str, u64, fn() -> Turn);

/// Every path.
pub const ALL: &[Path] = &[
    ("redis-server-get-16", DEPTH as u64, redis_get),
    ("redis-server-set-16", DEPTH as u64, redis_set),
    ("http-server-head", 1, http_head),
    ("axum-json", 1, axum_json),
    ("tonic-say-hello", 1, tonic_say_hello),
    ("echonet-lite-get", 1, echonet_get),
];

/// redis-server: [`DEPTH`] GETs of values of 100 bytes.
pub fn redis_get() -> Turn {
    let value = "x".repeat(100);
    redis(&format!("SET {{key}} {value}"), "GET {key}", &format!("$100\r\n{value}\r\n"))
}

/// redis-server: [`DEPTH`] SETs of values of 100 bytes.
pub fn redis_set() -> Turn {
    let set = format!("SET {{key}} {}", "x".repeat(100));
    redis(&set, &set, "+OK\r\n")
}

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
    let mut session = Session::new(Rc::new(Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), &TABLE)))));
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
    assert!(turn().ends_with(b"Hello Ferris"), "it greets");
    Box::new(move || turn().len())
}

/// Where a node puts its answer.
struct Slot([u8; 1472], usize);

impl Transmit for Slot {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn transmit(&mut self, _: Destination, length: usize) {
        self.1 = length;
    }
}

/// echonet-lite: a Get of the operation status of the node profile.
///
/// # Panics
/// When the answer is wrong.
pub fn echonet_get() -> Turn {
    const GET: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x0e\xf0\x01\x62\x01\x80\x00";
    let objects: Vec<Box<dyn Object + Send>> = Vec::new();
    let mut node = Node::new(NodeConfig::new(Identity::new([0, 0, 0x77], 1)), objects);
    let from = SocketAddr::from(([192, 0, 2, 1], 3610));
    let mut slot = Slot([0; 1472], 0);
    let mut turn = move || {
        node.handle(Instant::ZERO, black_box(from), Arrival::Unicast, black_box(GET), &mut slot);
        slot.1
    };
    assert_eq!(turn(), 15, "an answer with one byte of data");
    Box::new(turn)
}

/// http-server: the head of a request as wrk sends it, checked and parsed.
///
/// # Panics
/// When it is refused.
pub fn http_head() -> Turn {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n";
    let limits = Limits { head_bytes: 32 * 1024, target_bytes: 8 * 1024, headers: MAX_HEADERS };
    let turn = move || {
        let mut room = Room::new();
        let head = h1::parse(black_box(REQUEST), &mut room, &limits).expect("a request").expect("a whole one");
        black_box(&head).target.len()
    };
    Box::new(turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_answers_rightly_and_again() {
        for (name, _, make) in ALL {
            // Making it checks its first answer.
            let mut turn = make();
            let first = turn();
            assert!(first > 0, "{name}");
            assert_eq!(turn(), first, "{name}");
        }
    }
}
