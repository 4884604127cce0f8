//! HTTP/1.1 by hyper: what it has beside our loop, and limits, time-outs, figures and an end that are those of the loop.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, post};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use http_server::websocket::WebSocketUpgrade;
use http_server::{Engine, Options};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::autobahn::{echo, frame};
use crate::support::{self, Server, impatient, router, tls_options, until};

fn options() -> Options {
    Options { engine: Engine::Hyper, ..support::options() }
}

#[test]
fn answers_are_those_of_the_loop() {
    let [by_hyper, by_loop] = [options(), support::options()].map(Server::with);
    let requests = [
        "GET / HTTP/1.1\r\n",
        "HEAD / HTTP/1.1\r\n",
        "GET /ann HTTP/1.1\r\n",
        "GET /json HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\n",
        "GET /readyz HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n",
        "GET /t/none/at/all HTTP/1.1\r\n",
        "GET /t/nothing HTTP/1.1\r\n",
        "GET /t/stream HTTP/1.1\r\n",
        "GET /t/slow HTTP/1.1\r\n",
        "GET /t/text HTTP/1.1\r\nAccept-Encoding: gzip\r\n",
        "GET /t/panic HTTP/1.1\r\n",
        "GET /ann HTTP/1.0\r\n",
    ];
    for request in requests {
        let [ours, theirs] = [&by_loop, &by_hyper].map(|server| {
            let mut client = server.client();
            client.send(&format!("{request}Host: h\r\n\r\n"));
            let answer = client.answer_to(request.split(' ').next().unwrap()).unwrap();
            let fields = ["content-type", "content-length", "transfer-encoding", "content-encoding", "allow", "vary"];
            let fields = fields.map(|name| answer.header(name).map(str::to_owned));
            assert!(answer.header("date").is_some(), "{request}");
            (answer.status, fields, answer.body)
        });
        assert_eq!(ours, theirs, "{request}");
    }
    let mut client = by_hyper.client();
    for body in ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"]
    {
        client.send(&format!("POST /t/echo HTTP/1.1\r\nHost: h\r\n{body}"));
        assert_eq!(client.answer().unwrap().text(), "hello");
    }
    let pipelined = "GET /ann HTTP/1.1\r\nHost: h\r\n\r\n".repeat(50);
    client.send(&pipelined);
    (0..50).for_each(|_| assert_eq!(client.answer().unwrap().status, 200));
}

/// Answers with the body, and with its trailers behind it.
async fn with_trailers(request: Request) -> Response {
    let collected = request.into_body().collect().await.unwrap();
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let frames = [Frame::data(collected.to_bytes()), Frame::trailers(trailers)].map(Ok::<_, std::io::Error>);
    ([("trailer", "x-sum")], Body::new(StreamBody::new(tokio_stream::iter(frames)))).into_response()
}

#[test]
fn trailers_come_and_go() {
    let routes = Router::new().route("/t/trailers", post(with_trailers));
    let server = Server::try_serving(routes, options()).unwrap();
    let mut client = server.client();
    let body = "2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n";
    client.send(&format!(
        "POST /t/trailers HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
    ));
    let mut all = String::new();
    client.stream.read_to_string(&mut all).unwrap();
    assert!(all.ends_with("\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n"), "{all}");
}

/// A tunnel to an echo, or 405.
async fn tunnel(mut request: Request) -> StatusCode {
    let target = request.uri().to_string();
    let Some(promise) = request.extensions_mut().remove::<OnUpgrade>() else { return StatusCode::BAD_REQUEST };
    if request.method() != Method::CONNECT || target != "example.com:443" {
        return StatusCode::METHOD_NOT_ALLOWED;
    }
    tokio::spawn(async move {
        let mut stream = TokioIo::new(promise.await.unwrap());
        let mut bytes = [0; 100];
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            stream.write_all(&bytes[..count]).await.unwrap();
        }
    });
    StatusCode::OK
}

#[test]
fn connect_makes_a_tunnel() {
    let server = Server::try_serving(Router::new().fallback(tunnel), options()).unwrap();
    let mut client = server.client();
    client.send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n");
    let answer = client.answer_to("HEAD").unwrap();
    assert_eq!((answer.status, answer.header("content-length")), (200, None));
    for said in ["one", "two"] {
        client.send(said);
        let mut heard = [0; 3];
        client.stream.read_exact(&mut heard).unwrap();
        assert_eq!(heard, said.as_bytes());
    }
    client.half_close();
    assert!(client.is_closed());
    until(|| server.running.connections() == 0);
}

/// WebSockets of our own, with frames behind the handshake, and axum's.
#[test]
fn websockets() {
    let own = any(|upgrade: WebSocketUpgrade| async move { upgrade.on_upgrade(echo) });
    let server = Server::try_serving(router().route("/t/ws", own), options()).unwrap();
    for path in ["/t/ws", "/t/socket"] {
        let mut client = server.client();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        client.stream.write_all(&[head.as_bytes(), &frame(0x81, b"hi"), &frame(0x88, b"\x03\xe8")].concat()).unwrap();
        let mut all = Vec::new();
        client.stream.read_to_end(&mut all).unwrap();
        assert!(all.starts_with(b"HTTP/1.1 101 "), "{path}: {}", all.escape_ascii());
        assert!(all.ends_with(b"\r\n\r\n\x81\x02hi\x88\x02\x03\xe8"), "{path}: {}", all.escape_ascii());
    }
    until(|| server.running.connections() == 0);
}

#[test]
fn limits_are_kept() {
    let mut options = options();
    let limits = &mut options.limits;
    (limits.head, limits.headers, limits.target, limits.body, limits.requests) = (4096, 10, 100, 1000, 3);
    let server = Server::with(options);
    let long = "x".repeat(5000);
    let check = |request: &str, status: u16| {
        let mut client = server.client();
        client.send(request);
        assert_eq!(client.answer().unwrap().status, status, "{}", &request[..request.len().min(60)]);
    };
    check(&format!("GET / HTTP/1.1\r\nHost: h\r\nX: {long}\r\n\r\n"), 431);
    check(&format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: y\r\n".repeat(20)), 431);
    check(&format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", &long[..200]), 414);
    check(&format!("POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n{long}"), 413);
    check(
        &format!("POST /t/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n{long}\r\n0\r\n\r\n"),
        400,
    );
    let mut client = server.client();
    let ends = [(); 3].map(|()| client.get("/ann").unwrap().header("connection").map(str::to_owned));
    assert_eq!(ends, [None, None, Some("close".to_owned())]);
    assert!(client.is_closed());
}

#[test]
fn slow_clients_are_cut() {
    let server = Server::with(impatient(options()));
    let mut client = server.client();
    assert_eq!(client.get("/ann").unwrap().status, 200);
    // Each new field would keep a server waiting that counts from the last byte.
    client.send("GET / HTTP/1.1\r\nHost: h\r\n");
    let mut writer = client.stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while writer.write_all(b"X: y\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(client.is_closed());
    drop(client);
    dripping.join().unwrap();

    let mut client = server.client();
    client.send("POST /t/count HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nhello");
    assert_eq!(client.answer().unwrap().text(), "the body came too slowly");
    drop(client);

    let mut client = server.client();
    client.send("GET /t/endless HTTP/1.1\r\nHost: h\r\n\r\n");
    until(|| server.running.connections() == 0);
    drop(client);
}

#[test]
fn idle_connections_have_a_time_of_their_own() {
    let mut options = impatient(options());
    options.timeouts.idle = Duration::from_millis(300);
    options.timeouts.head = Duration::from_secs(20);
    let server = Server::with(options);
    let [mut silent, mut served] = [(); 2].map(|()| server.client());
    assert_eq!(served.get("/t/slow").unwrap().status, 200);
    assert!(silent.is_closed());
    assert!(served.is_closed());
}

/// A handler that fails ends its request and nothing else; a body that fails is to be seen as such.
#[test]
fn handlers_that_fail() {
    let server = Server::with(options());
    let mut client = server.client();
    assert_eq!(client.get("/t/panic").unwrap().status, 500);
    assert_eq!(client.get("/ann").unwrap().status, 200);
    client.send("GET /t/broken HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut all = Vec::new();
    // The end may be a reset.
    let _ = client.stream.read_to_end(&mut all);
    assert!(!all.ends_with(b"0\r\n\r\n"), "{}", all.escape_ascii());
}

/// HTTP/2 is chosen by TLS; a client that does not choose it has hyper.
#[test]
fn tls_offers_both() {
    let options = Options { engine: Engine::Hyper, ..tls_options() };
    let certificate = options.runtime.tls.as_ref().unwrap().cert.clone();
    let server = Server::with(options);
    for (alpn, begin) in [(&b"h2"[..], &[0u8, 0][..]), (b"http/1.1", b"HTTP/1.1 200 ")] {
        let mut client = server.tls_client(&certificate, &[alpn]);
        let request: &[u8] = match alpn {
            b"h2" => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
            _ => b"GET /ann HTTP/1.1\r\nHost: localhost\r\n\r\n",
        };
        client.write_all(request).unwrap();
        let mut answer = vec![0; begin.len()];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, begin);
    }
}

/// The figures count responses, bytes and time-outs.
#[test]
fn figures_count() {
    let mut options = impatient(options());
    options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    let server = Server::with(options);
    let mut client = server.client();
    assert_eq!(client.get("/ann").unwrap().status, 200);
    client.send("GET /");
    assert!(client.is_closed());
    let metrics = server.running.metrics_addr().unwrap();
    let text = support::Client::connect(metrics).get("/metrics").unwrap();
    let figure = |name: &str| {
        let line = text.text().lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        line.unwrap_or_else(|| panic!("{name} in\n{}", text.text()))
    };
    assert_eq!(figure("http_responses_total{status=\"2xx\"}"), 1.0);
    assert_eq!(figure("http_timeouts_total"), 1.0);
    assert_eq!(figure("http_received_bytes_total"), "GET /ann HTTP/1.1\r\nHost: test\r\n\r\nGET /".len() as f64);
    assert!(figure("http_sent_bytes_total") > 100.0);
}

/// Headers of a handler that ends its connection are heeded.
#[test]
fn a_handler_ends_its_connection() {
    let routes = Router::new().route("/t/last", any(|| async { ([("connection", "close")], "last") }));
    let server = Server::try_serving(routes, options()).unwrap();
    let mut client = server.client();
    assert_eq!(client.get("/t/last").unwrap().text(), "last");
    assert!(client.is_closed());
}
