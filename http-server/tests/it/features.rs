//! The layers that requests and answers go through.

use crate::support::{Client, Server, options};

fn get(client: &mut Client, path: &str, fields: &str) -> crate::support::Answer {
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    client.answer().unwrap()
}

#[test]
fn compression() {
    let server = Server::start();
    let mut client = server.client();
    let plain = "hello world ".repeat(1000);
    let mut check = |accept: &str, coding: Option<&str>| {
        let answer = get(&mut client, "/t/text", &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!(answer.header("content-encoding"), coding, "{accept}");
        assert_eq!(answer.header("vary"), coding.map(|_| "accept-encoding"), "{accept}");
        let mut text = Vec::new();
        match coding {
            Some("br") => brotli::BrotliDecompress(&mut &answer.body[..], &mut text).unwrap(),
            Some("zstd") => text = zstd::bulk::decompress(&answer.body, plain.len()).unwrap(),
            Some(_) => {
                std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&answer.body[..]), &mut text).unwrap();
            }
            None => text.clone_from(&answer.body),
        }
        assert_eq!(String::from_utf8(text).unwrap(), plain, "{accept}");
    };
    check("gzip, deflate, br, zstd", Some("br"));
    check("gzip, zstd", Some("zstd"));
    check("gzip", Some("gzip"));
    check("br;q=0, gzip;q=0.1", Some("gzip"));
    check("deflate", None);
    check("", None);
    // Too small, of unknown length, or nothing at all.
    for path in ["/", "/ann", "/t/stream", "/t/nothing"] {
        assert_eq!(get(&mut client, path, "Accept-Encoding: br\r\n").header("content-encoding"), None, "{path}");
    }
    client.send("HEAD /t/text HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n");
    assert_eq!(client.answer_to("HEAD").unwrap().header("content-encoding"), Some("br"));
}

#[test]
fn forwarded() {
    let mut options = options();
    options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let (believing, doubting) = (Server::with(options), Server::start());
    let fields = "Forwarded: for=192.0.2.9;proto=https\r\n";
    assert_eq!(get(&mut believing.client(), "/t/client", fields).text(), "Some(192.0.2.9) true");
    assert_eq!(get(&mut doubting.client(), "/t/client", fields).text(), "Some(127.0.0.1) false");
}

#[test]
fn request_ids_reach_handler_and_client() {
    let server = Server::start();
    let mut client = server.client();
    let answer = get(&mut client, "/t/headers", "X-Request-Id: mine\r\n");
    assert_eq!(answer.header("x-request-id"), Some("mine"));
    assert!(answer.text().contains("\"x-request-id\": \"mine\""), "{}", answer.text());
    let first = get(&mut client, "/t/headers", "").header("x-request-id").unwrap().to_owned();
    let second = get(&mut client, "/t/headers", "").header("x-request-id").unwrap().to_owned();
    assert_ne!(first, second);
}

#[test]
fn metrics() {
    let mut options = options();
    options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    let server = Server::with(options);
    let mut client = server.client();
    for path in ["/", "/json", "/ann", "/%61nn", "/a/b"] {
        get(&mut client, path, "");
    }
    client.send("nonsense\r\n\r\n");
    client.answer();
    let figures = Client::connect(server.running.metrics_addr().unwrap()).get("/metrics").unwrap();
    for line in [
        "http_responses_total{status=\"2xx\"} 4",
        "http_responses_total{status=\"4xx\"} 2",
        "http_instant_responses_total 3",
        "http_refused_total 1",
        "http_request_duration_seconds_count 2",
    ] {
        assert!(figures.text().lines().any(|figure| figure == line), "{line} is not in\n{}", figures.text());
    }
}

#[test]
fn readiness_ends_with_the_shutdown() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(get(&mut client, "/readyz", "").status, 200);
    server.running.shutdown_handle().trigger();
    // The connection is told as soon as its worker knows.
    let last = std::iter::from_fn(|| client.get("/readyz")).last().unwrap();
    assert_eq!((last.status, last.header("connection")), (503, Some("close")));
}

#[test]
fn websockets() {
    let server = Server::start();
    let mut client = server.client();
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    // A pipelined request in front of it is answered first.
    client.send(&format!("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /t/socket HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    assert_eq!(client.answer().unwrap().text(), "Hello from Rust");
    let answer = client.answer().unwrap();
    // The key and its answer are RFC 6455's example.
    assert_eq!((answer.status, answer.header("sec-websocket-accept")), (101, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
    std::io::Write::write_all(&mut client.stream, b"\x81\x82\0\0\0\0hi").unwrap();
    let mut frame = [0; 4];
    std::io::Read::read_exact(&mut client.stream, &mut frame).unwrap();
    assert_eq!(&frame, b"\x81\x02hi");
    // Where nobody upgrades, the answer is an ordinary one.
    let answer = get(&mut server.client(), "/ann", fields);
    assert_eq!((answer.status, answer.text()), (200, "Hello, visitor! You've requested: /ann"));
}
