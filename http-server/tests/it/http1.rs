//! HTTP/1.1 as RFC 9110 and 9112 want it.

use std::io::{Read as _, Write as _};

use crate::support::{Server, options, tls_options};

/// Statuses of the answers to what is sent on one connection, and whether it is still open then.
#[track_caller]
fn check(server: &Server, sent: &str, statuses: &[u16], open: bool) {
    // In one piece, and byte by byte.
    for step in [sent.len(), 1] {
        let mut client = server.client();
        for piece in sent.as_bytes().chunks(step) {
            if std::io::Write::write_all(&mut client.stream, piece).is_err() {
                break;
            }
        }
        if open {
            client.send("GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        } else {
            // The end of the input ends the wait for the rest of a request.
            let _ = client.stream.shutdown(std::net::Shutdown::Write);
        }
        let mut got = Vec::new();
        while let Some(answer) =
            client.answer_to(if sent.starts_with("HEAD") && got.is_empty() { "HEAD" } else { "GET" })
        {
            got.push(answer.status);
        }
        let last = if open { &[200][..] } else { &[] };
        assert_eq!(got, [statuses, last].concat(), "{sent:?} by {step}");
    }
}

#[test]
fn good_requests() {
    let server = Server::start();
    let keeps = |sent: &str, statuses: &[u16]| check(&server, sent, statuses, true);
    keeps("GET / HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("GET / HTTP/1.1\r\nhost:h\r\n\r\n", &[200]);
    keeps("GET / HTTP/1.1\r\nHost:\r\n\r\n", &[200]);
    keeps("GET / HTTP/1.1\r\nHost: [::1]:80 \t\r\n\r\n", &[200]);
    keeps("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("GET http://other/ann?x HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("HEAD /t/big HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("HEAD /t/stream HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", &[405]);
    keeps("BREW / HTTP/1.1\r\nHost: h\r\n\r\n", &[405]);
    keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &[200]);
    keeps("GET /t/nothing HTTP/1.1\r\nHost: h\r\n\r\n", &[204]);
    keeps("GET /t/stream HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("GET /t/panic HTTP/1.1\r\nHost: h\r\n\r\n", &[500]);
    keeps("POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", &[200]);
    keeps("POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", &[200]);
    keeps("POST /t/echo HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    keeps("POST /t/count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", &[200]);
    keeps(
        "POST /t/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n",
        &[200],
    );
    keeps(
        "POST /t/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b ; c=\"d;\"\r\nhello\r\n0;e\r\n\r\n",
        &[200],
    );
    keeps(
        "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /json HTTP/1.1\r\nHost: h\r\n\r\nGET /ann HTTP/1.1\r\nHost: h\r\n\r\n",
        &[200; 3],
    );
    keeps(
        "POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nxPOST /t/ignore HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nyGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        &[200; 3],
    );
    let ends = |sent: &str, statuses: &[u16]| check(&server, sent, statuses, false);
    ends("GET / HTTP/1.0\r\n\r\n", &[200]);
    ends("GET /t/stream HTTP/1.0\r\n\r\n", &[200]);
    ends("GET / HTTP/1.1\r\nHost: h\r\nConnection: foo, Close\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
    ends("GET /ann HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", &[200]);
}

/// A client that offers HTTP/1.0 by ALPN is served, by the same loop as HTTP/1.1.
#[test]
fn protocols_of_tls() {
    let options = tls_options();
    let certificate = options.runtime.tls.as_ref().unwrap().cert.clone();
    let server = Server::with(options);
    for (offered, agreed) in [
        (&[&b"http/1.0"[..]][..], &b"http/1.0"[..]),
        (&[b"http/1.0", b"http/1.1"], b"http/1.1"),
        (&[b"http/0.9", b"http/1.0"], b"http/1.0"),
    ] {
        for version in ["1.0", "1.1"] {
            let mut stream = server.tls_client(&certificate, offered);
            write!(stream, "GET / HTTP/{version}\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("Hello from Rust"), "{offered:?}: {answer}");
            assert_eq!(stream.conn.alpn_protocol(), Some(agreed), "{offered:?}");
        }
    }
}

#[test]
fn bad_requests() {
    let server = Server::start();
    let ends = |sent: &str, status: u16| check(&server, sent, &[status], false);
    ends("GET / HTTP/1.1\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: user@h\r\n\r\n", 400);
    ends("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505);
    ends("GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505);
    ends("GET /\r\n\r\n", 400);
    ends("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400);
    for version in ["b HTTP/1.1", "HTTP/1", "HTTP/01.1", "HTTP/1.10", "HTTP/1. 1", "http/1.1", "HTTP/x.1"] {
        ends(&format!("GET /a {version}\r\nHost: h\r\n\r\n"), 400);
    }
    ends("GET h HTTP/1.1\r\nHost: h\r\n\r\n", 400);
    ends("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400);
    ends("GET http://user@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400);
    ends("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400);
    ends("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 501);
    ends("G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: h\r\nX Y: z\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: h\r\nX\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: h\r\n: z\r\n\r\n", 400);
    ends("GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", 400);
    ends("POST /t/echo HTTP/1.1\r\nHost: h\r\nExpect: more\r\nContent-Length: 1\r\n\r\n", 417);
}

/// The suite of <https://github.com/dropseed/h1spec>, where `H1SPEC` names its program. It is in no package registry, and
/// the tables above hold what it looks for.
#[test]
fn h1spec() {
    let Some(program) = std::env::var_os("H1SPEC") else {
        return eprintln!("skipped: H1SPEC names no program (pip install git+https://github.com/dropseed/h1spec)");
    };
    let server = Server::start();
    let output = std::process::Command::new(program).arg("--strict").arg(server.addr.to_string()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    eprintln!("h1spec: {}", text.trim_end().lines().last().unwrap_or_default());
    assert!(output.status.success(), "{text}");
}

#[test]
fn limits() {
    let mut options = options();
    options.limits.target = 100;
    options.limits.head = 1000;
    options.limits.headers = 10;
    options.limits.body = 1000;
    options.limits.requests = 3;
    let server = Server::with(options);
    let get = |target: &str, fields: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    check(&server, &get(&format!("/{}", "a".repeat(99)), ""), &[200], true);
    check(&server, &get(&format!("/{}", "a".repeat(100)), ""), &[414], false);
    check(&server, &format!("GET /{}", "a".repeat(2000)), &[414], false);
    check(&server, &get("/", &"X: y\r\n".repeat(9)), &[200], true);
    check(&server, &get("/", &"X: y\r\n".repeat(10)), &[431], false);
    check(&server, &get("/", &format!("X: {}\r\n", "y".repeat(1000))), &[431], false);
    check(&server, &format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(1000)), &[431], false);
    let post = |path: &str, len: usize| {
        let body = "x".repeat(len);
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n{body}")
    };
    check(&server, &post("/t/echo", 1000), &[200], true);
    check(&server, &post("/t/echo", 1001), &[413], false);
    let chunked = |len: usize| {
        let body = "x".repeat(len);
        format!("POST /t/count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{len:x}\r\n{body}\r\n0\r\n\r\n")
    };
    check(&server, &chunked(1000), &[200], true);
    check(&server, &chunked(1001), &[413], false);
    check(&server, &get("/", "").repeat(5), &[200; 3], false);
    check(&server, &get("/ann", "").repeat(5), &[200; 3], false);
}

#[test]
fn a_client_may_wait_before_it_sends_the_body() {
    let server = Server::start();
    let mut client = server.client();
    client.send("POST /t/echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 100);
    client.send("hello");
    assert_eq!(client.answer().unwrap().text(), "hello");
    // A handler that does not want the body answers instead of asking for it.
    client.send("POST /t/ignore HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!((answer.text(), answer.header("connection")), ("ignored", Some("close")));
}

#[test]
fn pipelined_answers_come_in_order_and_together() {
    let server = Server::start();
    let mut client = server.client();
    let many: String = (0..1000)
        .map(|number| {
            format!(
                "GET /{} HTTP/1.1\r\nHost: h\r\n\r\n",
                if number % 3 == 0 { String::new() } else { format!("n{number}") }
            )
        })
        .collect();
    client.send(&many);
    for number in 0..1000 {
        let answer = client.answer().unwrap();
        let expected = if number % 3 == 0 {
            "Hello from Rust".to_owned()
        } else {
            format!("Hello, visitor! You've requested: /n{number}")
        };
        assert_eq!(answer.text(), expected);
    }
}

#[test]
fn bodies_in_both_directions() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(client.get("/t/stream").unwrap().text(), "onetwo");
    let big = client.get("/t/big").unwrap();
    assert_eq!((big.header("content-length"), big.body.len()), (Some("8388608"), 8 * 1024 * 1024));
    for len in [1, 1000, 16 * 1024, 16 * 1024 + 1, 100_000, 1_500_000] {
        let body = "abcdefgh".repeat(len / 8 + 1);
        let body = &body[..len];
        client.send(&format!("POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n{body}"));
        assert!(client.answer().unwrap().text() == body, "{len}");
        client.send("POST /t/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in body.as_bytes().chunks(1000) {
            client.send(&format!("{:x}\r\n{}\r\n", chunk.len(), std::str::from_utf8(chunk).unwrap()));
        }
        client.send("0\r\n\r\n");
        assert!(client.answer().unwrap().text() == body, "{len} in chunks");
    }
    // A response that cannot be completed does not look complete.
    let mut client = server.client();
    client.send("GET /t/broken HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut all = String::new();
    let _ = client.stream.read_to_string(&mut all);
    assert!(!all.ends_with("0\r\n\r\n"), "{all}");
}
