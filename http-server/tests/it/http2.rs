//! HTTP/2 by the suite that is made for it.

use std::future::poll_fn;
use std::pin::Pin;
use std::process::Command;
use std::task::Poll;

use axum::body::Bytes;
use h2::client::SendRequest;
use http::Request;
use http_server::Options;
use test_peers::{run_within, skip};

use crate::clients::H2SPEC;
use crate::support::{Server, options, tls_options};

/// Runs the suite, of which nothing fails but what is named.
#[track_caller]
fn check(options: Options, flags: &[&str], failures: &[&str]) {
    let Some(folder) = H2SPEC.installed() else { return };
    let server = Server::with(options);
    let port = server.addr.port().to_string();
    let mut command = Command::new(folder.join("h2spec"));
    command.args(["--host", "127.0.0.1", "--port", &port, "--strict", "--timeout", "5", "--path", "/t/h2spec"]);
    let output = run_within(300, command.args(flags)).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
        return skip(&format!("h2spec did not finish: {text}"));
    };
    eprintln!("h2spec {}: {summary}", flags.join(" "));
    assert!(summary.contains(&format!(" 0 skipped, {} failed", failures.len())), "{text}");
    let failed = text.split_once("\nFailures:").map_or("", |(_, failed)| failed);
    assert!(failures.iter().all(|failure| failed.contains(failure)), "{text}");
}

#[test]
fn h2spec() {
    check(tls_options(), &["--tls", "--insecure"], &[]);
}

/// A wrong preface is a bad request of HTTP/1.1 here, and answered as such before the connection ends.
#[test]
fn h2spec_where_http1_is_spoken_too() {
    check(options(), &[], &["× 2: Sends invalid connection preface"]);
}

/// A connection of its own.
async fn connect(server: &Server) -> SendRequest<Bytes> {
    let stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let (requests, conn) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(conn);
    requests.ready().await.unwrap()
}

/// A client that waits to be told to go on is told when the handler asks for the body, and not before.
#[tokio::test]
async fn reading_the_body_sends_100_continue() {
    let server = Server::start();
    // The interim answer, the final status, and the body.
    for (path, told, status, said) in
        [("/t/echo", Some(100), 200, "hello"), ("/t/ignore", None, 200, "ignored"), ("/t/none", None, 404, "")]
    {
        let mut requests = connect(&server).await;
        let request = Request::post(format!("http://test{path}")).header("expect", "100-continue").body(()).unwrap();
        let (mut response, mut body) = requests.send_request(request, false).unwrap();
        let mut found = None;
        let answer = poll_fn(|cx| {
            if let Poll::Ready(Some(interim)) = response.poll_informational(cx) {
                found = Some(interim.unwrap().status().as_u16());
                body.send_data("hello".into(), true).unwrap();
            }
            Pin::new(&mut response).poll(cx)
        });
        let (head, mut stream) = answer.await.unwrap().into_parts();
        assert_eq!((found, head.status.as_u16()), (told, status), "{path}");
        let mut text = Vec::new();
        while let Some(Ok(piece)) = stream.data().await {
            text.extend_from_slice(&piece);
        }
        assert!(text.starts_with(said.as_bytes()), "{path}");
    }
}

/// Cookies that come one by one are one field for those who handle requests (RFC 9113 section 8.2.3), once and again.
#[tokio::test]
async fn cookies_are_joined() {
    let server = Server::start();
    let mut requests = connect(&server).await;
    for _ in 0..3 {
        let request = Request::get("http://test/t/headers").header("cookie", "a=1").header("cookie", "b=2");
        let (response, _) = requests.send_request(request.header("cookie", "c=3").body(()).unwrap(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let text = body.data().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&text).contains("\"cookie\": \"a=1; b=2; c=3\""), "{text:?}");
    }
}

/// A head beyond the limit is answered with status 431, and neither its connection nor a request that is under way ends.
#[tokio::test]
async fn large_heads_end_their_request_alone() {
    let server = Server::start();
    let mut requests = connect(&server).await;
    let (neighbour, mut body) =
        requests.send_request(Request::post("http://test/t/echo").body(()).unwrap(), false).unwrap();
    for size in [40_000, 70_000, 200_000] {
        let request = Request::get("http://test/").header("x-long", "y".repeat(size)).body(()).unwrap();
        let (response, _) = requests.send_request(request, true).unwrap();
        assert_eq!(response.await.unwrap().status().as_u16(), 431, "{size}");
    }
    body.send_data("hello".into(), true).unwrap();
    assert_eq!(neighbour.await.unwrap().status().as_u16(), 200);
}
