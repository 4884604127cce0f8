//! The log of answers that fail behind their head. A process has one log, so the test has a process.

use std::io::Read as _;

use axum::response::Response;
use axum::routing::get;
use http::Request;
use http_server::serve;
use server_runtime::{LogFormat, LogOptions, LogOutput, init_logging};
use test_peers::alone;

use crate::http3::Peer;
use crate::support::{Client, folder, router, stream, tls_options, until};

/// A body of six bytes under a head that announces another length.
fn announcing(length: u64) -> Response {
    Response::builder().header("content-length", length).body(stream()).unwrap()
}

fn routes() -> axum::Router {
    router().route("/t/short", get(|| async { announcing(10) })).route("/t/long", get(|| async { announcing(2) }))
}

/// A body that fails, or has another length than its head says, is a fault of this server: it is logged, with the request, over every
/// protocol. One that fails because its client left is none.
#[test]
fn bodies_that_fail_are_logged() {
    if !alone("logged::bodies_that_fail_are_logged") {
        return;
    }
    let path = folder("logged").join("server.log");
    let output = LogOutput::File(path.clone());
    init_logging(&LogOptions { format: LogFormat::Json, output, ..LogOptions::default() }).unwrap();
    let warnings = |protocol: &str| {
        let log = std::fs::read_to_string(&path).unwrap();
        let lines = log.lines().filter(|line| line.contains("\"WARN\"") && line.contains("a response's body"));
        let lines: Vec<_> = lines.filter(|line| line.contains(protocol)).map(str::to_owned).collect();
        lines
    };
    let check = |protocol: &str| {
        let failures = [("/t/broken", "as the test wants it"), ("/t/short", "announced"), ("/t/long", "announced")];
        until(|| warnings(protocol).len() >= failures.len());
        let lines = warnings(protocol);
        assert_eq!(lines.len(), failures.len(), "{lines:?}");
        for (path, why) in failures {
            let is_it = |line: &&String| line.contains(&format!("\"path\":\"{path}\"")) && line.contains(why);
            let line = lines.iter().find(is_it).unwrap_or_else(|| panic!("{protocol} {path}: {lines:?}"));
            assert!(line.contains("\"method\":\"GET\""), "{line}");
        }
    };
    let paths = ["/t/broken", "/t/short", "/t/long"];

    let running = serve(routes(), crate::support::options()).unwrap();
    let addr = running.local_addrs()[0];
    for path in paths {
        let mut client = Client::connect(addr);
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let _ = client.stream.read_to_end(&mut Vec::new());
    }
    check("HTTP/1.1");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for path in paths {
            let request = Request::get(format!("http://test{path}")).body(()).unwrap();
            let (response, _) = requests.clone().ready().await.unwrap().send_request(request, true).unwrap();
            let Ok(response) = response.await else { continue };
            let mut body = response.into_body();
            while let Some(Ok(_)) = body.data().await {}
        }
    });
    check("HTTP/2");

    let mut options = tls_options();
    options.http3 = true;
    let peer = Peer::serving(routes(), options);
    runtime.block_on(async {
        let mut client = peer.client().await;
        for path in paths {
            let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
            assert!(client.ask(request, b"").await.is_err(), "{path}");
        }
    });
    check("HTTP/3");

    // A body that the client has left undone is no fault of the server.
    let before = warnings("").len();
    let mut client = Client::connect(addr);
    client.send("POST /t/mirror HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhello");
    while !client.rest.ends_with(b"hello") {
        assert!(client.read());
    }
    drop(client);
    until(|| running.connections() == 0);
    assert_eq!(warnings("").len(), before, "{:?}", warnings(""));
}
