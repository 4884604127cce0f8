//! Rules that hold on every path: one table each, of the rule by protocol.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bytes::Bytes;
use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};
use grpc_server::{Options, Routes, Web};
use http::{HeaderMap, HeaderValue, Request};

use crate::support::{PATIENCE, Reply, SAY_HELLO, Server, hello, options, post, run};
use crate::web::http1;

/// All protocols, and 16 KiB of metadata.
fn all_protocols() -> Options {
    let mut options = options();
    options.connect = true;
    options.web = Some(Web { origins: Vec::new() });
    options.limits.headers = 16 * 1024;
    options
}

fn greeter(options: Options) -> Server {
    Server::with(Routes::new().add_service(GreeterServer::new(Greeter)), options)
}

/// How a protocol says that there is too much metadata: the kind of a request, a body of one message, status, and a part of the
/// answer in lower case.
fn refusals() -> [(&'static str, Bytes, u16, &'static str); 5] {
    let json = Bytes::from_static(b"{\"name\":\"Ann\"}");
    [
        ("application/grpc", hello("Ann"), 200, "grpc-status: 8"),
        ("application/grpc-web+proto", hello("Ann"), 200, "grpc-status: 8"),
        ("application/json", json.clone(), 429, "\"code\":\"resource_exhausted\""),
        ("application/connect+json", [&b"\0\0\0\0\x0e"[..], &json].concat().into(), 415, ""),
        ("text/plain", json, 431, ""),
    ]
}

/// An answer as text: its fields, its body, its trailers.
fn text(reply: &Reply) -> String {
    let mut text = String::new();
    for (name, value) in reply.headers.iter().chain(reply.trailers.iter().flatten()) {
        text += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    text + &String::from_utf8_lossy(&reply.body).replace("grpc-status:8", "grpc-status: 8")
}

#[test]
fn too_much_metadata_ends_its_call_alone_over_http2() {
    let server = greeter(all_protocols());
    run(async {
        let mut raw = server.raw().await;
        let (neighbour, mut rest) = raw.0.send_request(post(SAY_HELLO).body(()).unwrap(), false).unwrap();
        for (kind, body, status, part) in refusals() {
            for size in [17_000, 70_000, 200_000] {
                let builder = Request::post(format!("http://test{SAY_HELLO}")).header("content-type", kind);
                let request = builder.header("x-long", "y".repeat(size)).body(()).unwrap();
                let reply = raw.call(request, body.clone()).await;
                let found = text(&reply);
                assert_eq!(reply.status, status, "{kind}, {size} bytes: {found}");
                assert!(found.contains(part), "{kind}, {size} bytes: {found}");
            }
        }
        // The call that was under way goes on, and so does the next one.
        rest.send_data(hello("Ann"), true).unwrap();
        assert_eq!(Reply::of(neighbour).await.unwrap().code(), Some("0"));
        assert_eq!(raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await.code(), Some("0"));
    });
}

#[test]
fn too_long_trailers_end_their_call_alone() {
    let server = greeter(all_protocols());
    run(async {
        let mut raw = server.raw().await;
        let (response, mut stream) = raw.0.send_request(post(SAY_HELLO).body(()).unwrap(), false).unwrap();
        stream.send_data(hello("Ann"), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-long", HeaderValue::from_str(&"y".repeat(70_000)).unwrap());
        stream.send_trailers(trailers).unwrap();
        let reply = Reply::of(response).await.unwrap();
        assert_eq!(reply.code(), Some("8"), "{}", reply.message());
        assert_eq!(raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await.code(), Some("0"));
    });
}

#[test]
fn too_much_metadata_over_http1() {
    let server = greeter(all_protocols());
    for (kind, body, status, part) in refusals() {
        if kind == "application/grpc" {
            continue;
        }
        for size in [17_000, 70_000, 200_000] {
            let long = "y".repeat(size);
            let head = format!("POST {SAY_HELLO} HTTP/1.1\r\nContent-Type: {kind}\r\nX-Long: {long}");
            let (head, said) = http1(&server, &head, &body);
            let found =
                format!("{head}\r\n{}", String::from_utf8_lossy(&said).replace("grpc-status:8", "grpc-status: 8"));
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{kind}, {size} bytes: {found}");
            assert!(found.contains(part), "{kind}, {size} bytes: {found}");
        }
    }
}

/// grpc-go's servers take 16 MiB, and so does this one.
#[test]
fn a_megabyte_of_metadata_is_taken() {
    let server = greeter(options());
    run(async {
        let mut raw = server.raw().await;
        for size in [70_000, 1_000_000] {
            let request = post(SAY_HELLO).header("x-long", "y".repeat(size)).body(()).unwrap();
            assert_eq!(raw.call(request, hello("Ann")).await.code(), Some("0"));
        }
    });
}

/// A request that can be read in two ways is answered with status 400, as by http-server, and the connection ends.
#[test]
fn http1_is_taken_strictly() {
    let server = greeter(all_protocols());
    let head = format!("POST {SAY_HELLO} HTTP/1.1\r\nContent-Type: application/json\r\n");
    let answer = |rest: &str| {
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{head}{rest}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let (chunked, body) = ("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n");
    let right = answer(&format!("Host: a\r\nConnection: close\r\n{chunked}\r\n{body}"));
    assert!(right.starts_with("HTTP/1.1 200 "), "{right}");
    for rest in [
        format!("{chunked}\r\n{body}"),
        format!("Host: a\r\nHost: a\r\n{chunked}\r\n{body}"),
        format!("Host: user@a\r\n{chunked}\r\n{body}"),
        "Host: a\nContent-Length: 2\r\n\r\n{}".to_owned(),
        format!("Host: a\r\nContent-Length: 2\r\n{chunked}\r\n{body}"),
        format!("Host: a\r\n{chunked}Content-Length: 2\r\n\r\n{body}"),
        format!("Host: a\r\n{chunked}\r\nx\r\n{{}}\r\n0\r\n\r\n"),
        format!("Host: a\r\n{chunked}\r\n2\n{{}}\r\n0\r\n\r\n"),
        format!("Host: a\r\n{chunked}\r\n2\r\n{{}}x0\r\n\r\n"),
    ] {
        let found = answer(&rest);
        assert!(found.starts_with("HTTP/1.1 400 "), "{rest:?}: {found}");
    }
}

/// The error that a client gets for a field that is wrong: by the kinds of a request and of its translations.
fn said_of(server: &Server, kind: &str, field: (&str, &str)) -> String {
    let json = Bytes::from_static(b"{\"name\":\"Ann\"}");
    let body = if kind == "application/json" { json } else { hello("Ann") };
    run(async {
        let mut raw = server.raw().await;
        let builder = Request::post(format!("http://test{SAY_HELLO}")).header("content-type", kind);
        let reply = raw.call(builder.header(field.0, field.1).body(()).unwrap(), body).await;
        percent_encoding::percent_decode_str(&text(&reply)).decode_utf8_lossy().into_owned()
    })
}

const KINDS: [&str; 3] = ["application/grpc", "application/grpc-web+proto", "application/json"];

/// Metadata whose name ends in `-bin` is base64, with padding or without, several values in a line or several lines (gRPC over HTTP/2,
/// "Custom-Metadata"); the call ends with INTERNAL, as grpc-go's do.
#[test]
fn binary_metadata_is_base64() {
    let server = greeter(all_protocols());
    for kind in KINDS {
        for right in ["", "AAEC", "AAE=", "AAE", "AA", "/+A=", "AAEC,AAE, AA"] {
            let said = said_of(&server, kind, ("x-trace-bin", right));
            assert!(said.contains("Hello Ann"), "{kind} {right}: {said}");
        }
        for wrong in ["!", "A", "AAEC,?", "AA=A", "_-A=", "a b"] {
            let said = said_of(&server, kind, ("x-trace-bin", wrong));
            let is_internal = said.contains("grpc-status: 13") || said.contains("\"code\":\"internal\"");
            let names = said.contains("x-trace-bin") && said.contains(wrong) && said.contains("base64");
            assert!(is_internal && names, "{kind} {wrong}: {said}");
        }
        let said = said_of(&server, kind, ("x-bin-trace", "!"));
        assert!(said.contains("Hello Ann"), "{kind}: {said}");
    }
}

/// The error for a deadline that is none names its value and the expected form.
#[test]
fn deadlines_that_are_none() {
    let server = greeter(all_protocols());
    for (kind, name, wrong) in [
        ("application/grpc", "grpc-timeout", "5x"),
        ("application/grpc", "grpc-timeout", ""),
        ("application/grpc", "grpc-timeout", "123456789S"),
        ("application/grpc-web+proto", "grpc-timeout", "1.5S"),
        ("application/json", "connect-timeout-ms", "soon"),
    ] {
        let said = said_of(&server, kind, (name, wrong));
        let parts =
            [name, &format!("\"{wrong}\"").replace('"', if kind == KINDS[2] { "\\\"" } else { "\"" }), "expected"];
        assert!(parts.iter().all(|part| said.contains(part)), "{kind} {wrong}: {said}");
    }
}

/// A head of HTTP/2 that never becomes whole ends its connection by the time-out of one that does not begin.
#[test]
fn heads_that_never_become_whole() {
    let mut options = options();
    options.timeouts.handshake = std::time::Duration::from_millis(300);
    let server = greeter(options);
    let begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    // HEADERS and CONTINUATION of a byte each, and a HEADERS frame that comes byte by byte.
    for (head, piece) in [
        (&b"\0\0\x01\x01\0\0\0\0\x01\x82"[..], &b"\0\0\x01\x09\0\0\0\0\x01\x82"[..]),
        (b"\0\x10\0\x01\x04\0\0\0\x01", b"\x82"),
    ] {
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.write_all(&[begin, head].concat()).unwrap();
        let began = std::time::Instant::now();
        while stream.write_all(piece).is_ok() {
            assert!(began.elapsed() < PATIENCE, "it goes on for ever");
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
    }
}
