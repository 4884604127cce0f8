//! HTTP/2: the same answers as HTTP/1.1, and its own feature, streams that end before their time.

use std::future::pending;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use h2::client::SendRequest;
use http::response::Parts;
use http::{HeaderMap, Request};
use http_server::serve;

use crate::support::{Answer, Client, PATIENCE, Server, options, until};

/// Runs what asks, within bounds.
fn run<T>(asks: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, asks).await.expect("it goes on for ever") })
}

async fn connect(addr: SocketAddr) -> SendRequest<Bytes> {
    let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    requests
}

/// The whole answer to a request.
async fn ask(requests: &SendRequest<Bytes>, request: Request<()>, body: Bytes) -> Result<(Parts, Vec<u8>), h2::Error> {
    let mut requests = requests.clone().ready().await?;
    let (answer, mut sending) = requests.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        sending.send_data(body, true)?;
    }
    let (parts, mut incoming) = answer.await?.into_parts();
    let mut all = Vec::new();
    while let Some(data) = incoming.data().await {
        let data = data?;
        incoming.flow_control().release_capacity(data.len())?;
        all.extend_from_slice(&data);
    }
    Ok((parts, all))
}

fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<()> {
    let request = Request::builder().method(method).uri(format!("http://test{path}"));
    fields.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap()
}

fn over_http1(server: &Server, method: &str, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut client = server.client();
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    client.send(&format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}{length}\r\n"));
    client.stream.write_all(body).unwrap();
    client.answer_to(method).unwrap()
}

/// Fields that are the same in each protocol.
const SAME: [&str; 7] = ["content-type", "content-length", "content-encoding", "vary", "etag", "x-request-id", "allow"];

fn check_same(parts: &Parts, body: &[u8], plain: &Answer, what: &str) {
    assert_eq!(parts.status.as_u16(), plain.status, "{what}");
    assert!(parts.headers.contains_key("date"), "{what}");
    for name in ["connection", "transfer-encoding"] {
        assert!(!parts.headers.contains_key(name), "{what}: {name}");
    }
    let field = |headers: &HeaderMap, name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    for name in SAME {
        // A number of our own is another one each time.
        let is_ours = name == "x-request-id" && !what.contains("x-request-id");
        assert!(is_ours || field(&parts.headers, name).as_deref() == plain.header(name), "{what}: {name}");
    }
    assert!(body == plain.body, "{what}: {} and {} bytes", body.len(), plain.body.len());
}

/// A method, a path, fields and a body.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);

#[test]
fn answers_are_those_of_http1() {
    let server = Server::start();
    let long = vec![b'x'; 300_000];
    let cases: &[Case<'_>] = &[
        ("GET", "/", &[], b""),
        ("GET", "/", &[], b""),
        ("GET", "/json", &[], b""),
        ("GET", "/ann", &[], b""),
        ("GET", "/ann", &[("x-request-id", "abc")], b""),
        ("GET", "/ann?x", &[], b""),
        ("HEAD", "/", &[], b""),
        ("HEAD", "/t/text", &[], b""),
        ("POST", "/", &[], b"hi"),
        ("GET", "/a/b", &[], b""),
        ("GET", "/healthz", &[], b""),
        ("GET", "/t/nothing", &[], b""),
        ("GET", "/t/text", &[], b""),
        ("GET", "/t/text", &[("accept-encoding", "gzip")], b""),
        ("GET", "/t/text", &[("accept-encoding", "br;q=0.5, zstd")], b""),
        ("GET", "/t/stream", &[], b""),
        ("GET", "/t/slow", &[], b""),
        ("GET", "/t/big", &[], b""),
        ("GET", "/t/panic", &[], b""),
        ("POST", "/t/echo", &[], b"hi"),
        ("POST", "/t/count", &[], &long),
        ("POST", "/t/mirror", &[], b"hello"),
        ("POST", "/t/ignore", &[], b"hello"),
    ];
    run(async {
        let requests = connect(server.addr).await;
        for &(method, path, fields, body) in cases {
            let what = format!("{method} {path} {fields:?}");
            let sent = Bytes::copy_from_slice(body);
            let (parts, answer) = ask(&requests, request(method, path, fields), sent).await.unwrap();
            check_same(&parts, &answer, &over_http1(&server, method, path, fields, body), &what);
        }
    });
}

#[test]
fn limits_are_those_of_http1() {
    let mut options = options();
    options.limits.body = 1000;
    options.limits.target = 100;
    options.limits.headers = 10;
    let server = Server::with(options);
    let names: Vec<String> = (0..11).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let target = format!("/{}", "n".repeat(100));
    run(async {
        let requests = connect(server.addr).await;
        let status = async |request, body: &[u8]| {
            let body = Bytes::copy_from_slice(body);
            ask(&requests, request, body).await.unwrap().0.status.as_u16()
        };
        assert_eq!(status(request("GET", &target, &[]), b"").await, 414);
        assert_eq!(status(request("GET", "/ann?x", &many), b"").await, 431);
        assert_eq!(status(request("POST", "/t/count", &[("content-length", "1001")]), &[b'x'; 1001]).await, 413);
        assert_eq!(status(request("POST", "/t/count", &[]), &[b'x'; 1000]).await, 200);
        // Without a length it is seen as it comes.
        assert_eq!(status(request("POST", "/t/count", &[]), &[b'x'; 1001]).await, 200);
        let (_, told) =
            ask(&requests, request("POST", "/t/count", &[]), Bytes::from(vec![b'x'; 50_000])).await.unwrap();
        assert_eq!(told, b"the body is larger than allowed");
    });
}

#[test]
fn uploads_are_larger_than_windows() {
    let server = Server::start();
    let sent = Bytes::from(vec![b'x'; 5 * 1024 * 1024]);
    run(async {
        let requests = connect(server.addr).await;
        let mirror = ask(&requests, request("POST", "/t/mirror", &[]), sent.clone());
        let count = ask(&requests, request("POST", "/t/count", &[]), sent.clone());
        let ignore = ask(&requests, request("POST", "/t/ignore", &[]), sent.clone());
        let (mirrored, counted, ignored) = tokio::join!(mirror, count, ignore);
        assert!(mirrored.unwrap().1 == sent);
        assert_eq!(counted.unwrap().1, sent.len().to_string().as_bytes());
        assert_eq!(ignored.unwrap().1, b"ignored");
        let after = ask(&requests, request("POST", "/t/echo", &[]), Bytes::from_static(b"hi")).await;
        assert_eq!(after.unwrap().1, b"hi");
    });
}

#[test]
fn a_body_that_breaks_off_ends_its_stream_alone() {
    let server = Server::start();
    run(async {
        let requests = connect(server.addr).await;
        let slow = ask(&requests, request("GET", "/t/slow", &[]), Bytes::new());
        let broken = ask(&requests, request("GET", "/t/broken", &[]), Bytes::new());
        let (slow, broken) = tokio::join!(slow, broken);
        assert_eq!(broken.unwrap_err().reason(), Some(h2::Reason::INTERNAL_ERROR));
        assert_eq!(slow.unwrap().1, b"slow");
    });
}

/// A router whose handler never answers, and how many of its futures were dropped.
fn never() -> (Router, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let (begun, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counts = (Arc::clone(&begun), Arc::clone(&dropped));
    let handler = move || {
        counts.0.fetch_add(1, Relaxed);
        let counted = Counted(Arc::clone(&counts.1));
        async move {
            let _counted = counted;
            pending::<&str>().await
        }
    };
    (Router::new().route("/t/never", get(handler)), begun, dropped)
}

#[test]
fn cancelled_streams_drop_their_handler() {
    let (router, begun, dropped) = never();
    let running = serve(router, options()).unwrap();
    let addr = running.local_addrs()[0];
    run(async {
        let mut requests = connect(addr).await.ready().await.unwrap();
        let ask = || request("GET", "/t/never", &[]);
        let (first, _) = requests.send_request(ask(), true).unwrap();
        let (_second, mut sending) = requests.send_request(ask(), true).unwrap();
        while begun.load(Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(first);
        sending.send_reset(h2::Reason::CANCEL);
        while dropped.load(Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Those of a connection that is gone end too.
        let (third, _) = requests.send_request(ask(), true).unwrap();
        while begun.load(Relaxed) < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(dropped.load(Relaxed), 2);
        drop((requests, third));
    });
    until(|| dropped.load(Relaxed) == 3);
    running.shutdown_handle().trigger();
    assert!(!running.wait());
}

/// A client that waits for an answer is asked whether it is there; one that does not say so is let go.
#[test]
fn clients_that_are_gone_without_a_word() {
    let (router, begun, dropped) = never();
    let mut options = options();
    options.timeouts.idle = Duration::from_millis(100);
    options.timeouts.write = Duration::from_millis(300);
    let running = serve(router, options).unwrap();
    let addr = running.local_addrs()[0];
    // `:method: GET`, `:scheme: http`, `:path: /t/never`, `:authority: h`.
    let head = [&[0x82, 0x86, 0x04, 8][..], b"/t/never", &[0x41, 1, b'h']].concat();
    let mut silent = Client::connect(addr);
    silent.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    silent.stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1]).unwrap();
    silent.stream.write_all(&head).unwrap();
    until(|| begun.load(Relaxed) == 1);
    let mut said = Vec::new();
    silent.stream.read_to_end(&mut said).unwrap();
    assert!(said.windows(8).any(|bytes| bytes == b"are you?"), "it was not asked");
    until(|| dropped.load(Relaxed) == 1);
    // One that answers may wait for as long as it likes.
    run(async {
        let mut requests = connect(addr).await.ready().await.unwrap();
        let (waiting, _) = requests.send_request(request("GET", "/t/never", &[]), true).unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(1500), waiting).await.is_err(), "it was cut");
    });
    running.shutdown_handle().trigger();
    assert!(!running.wait());
}
