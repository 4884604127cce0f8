//! gRPC-Web, as browsers send it, beside gRPC on the same port.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use grpc_server::greeter::pb::HelloReply;
use grpc_server::{Options, Web};
use http::Request;

use crate::support::{PATIENCE, SAY_HELLO, Server, framed, hello, options, post, run};

fn web_options() -> Options {
    let mut options = options();
    options.web = Some(Web { origins: vec!["https://example.com".to_owned()] });
    options
}

/// The server's answer over HTTP/1.1: its head in lower case, and its body.
pub(crate) fn http1(server: &Server, head: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server.addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("{head}\r\nHost: test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let body = answer.split_off(end + 4);
    let body = if head.contains("transfer-encoding: chunked") { unchunked(&body) } else { body };
    (head, body)
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|bytes| bytes == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
}

const POST: &str = "POST /helloworld.Greeter/SayHello HTTP/1.1";

#[test]
fn calls_over_http1() {
    // More of the head, the name, and parts of what is answered: head and body.
    fn check(server: &Server, more: &str, name: &str, head: &[&str], body: &[&str]) {
        let lines = format!("{POST}\r\nContent-Type: application/grpc-web+proto{more}");
        let (answer, bytes) = http1(server, &lines, &hello(name));
        let text = String::from_utf8_lossy(&bytes);
        assert!(head.iter().all(|part| answer.contains(part)), "{more} {name}: {answer}");
        let all = format!("{answer}\r\n{text}");
        assert!(body.iter().all(|part| all.contains(part)), "{more} {name}: {all:?}");
    }
    let (server, _) = Server::odd(web_options());
    let ok = &["http/1.1 200 ok", "content-type: application/grpc-web+proto"][..];
    check(&server, "", "Ann", ok, &["Hello Ann", "grpc-status:0"]);
    check(&server, "", "error", &["http/1.1 200 ok"], &["grpc-status: 15"]);
    check(&server, "", "panic", &["http/1.1 200 ok"], &["grpc-status: 13"]);
    check(&server, "\r\nGrpc-Timeout: 50m", "never", &["http/1.1 200 ok"], &["grpc-status: 4"]);
    let page = "\r\nOrigin: https://example.com";
    check(&server, page, "Ann", &["access-control-allow-origin: https://example.com"], &["Hello Ann"]);
    check(&server, "\r\nOrigin: https://example.org", "Ann", &["http/1.1 403"], &[]);
}

#[test]
fn text_preflight_and_what_is_neither() {
    let (server, _) = Server::odd(web_options());
    let head = format!("{POST}\r\nContent-Type: application/grpc-web-text\r\nAccept: application/grpc-web-text");
    let (_, body) = http1(&server, &head, BASE64_STANDARD.encode(hello("Ann")).as_bytes());
    // The message and the trailers are encoded each for itself.
    let text = String::from_utf8(body).unwrap();
    let message = framed(&HelloReply { message: "Hello Ann".to_owned() });
    let trailers = BASE64_STANDARD.encode(b"\x80\0\0\0\x0fgrpc-status:0\r\n");
    assert_eq!(text, BASE64_STANDARD.encode(message) + &trailers);

    let head = "OPTIONS /helloworld.Greeter/SayHello HTTP/1.1\r\nOrigin: https://example.com\r\n\
                Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type,x-grpc-web";
    let (answer, _) = http1(&server, head, b"");
    for part in ["http/1.1 204", "allow-origin: https://example.com", "allow-headers: content-type,x-grpc-web"] {
        assert!(answer.contains(part), "{answer}");
    }
    let (answer, _) = http1(&server, "GET / HTTP/1.1", b"");
    assert!(answer.starts_with("http/1.1 405"), "{answer}");
    for method in ["GET", "PUT"] {
        let head = format!("{method} {SAY_HELLO} HTTP/1.1\r\nContent-Type: application/grpc-web+proto");
        let (answer, _) = http1(&server, &head, &hello("Ann"));
        assert!(answer.starts_with("http/1.1 405") && answer.contains("\r\nallow: post, options"), "{answer}");
    }
    let (answer, _) = http1(&server, &format!("{POST}\r\nContent-Type: application/grpc"), &hello("Ann"));
    assert!(answer.starts_with("http/1.1 415"), "{answer}");
}

#[test]
fn calls_over_http2() {
    run(async {
        let options = web_options();
        let metrics = options.runtime.metrics.clone();
        let (server, _) = Server::odd(options);
        let mut raw = server.raw().await;
        let request = |timeout: &str| {
            let request = Request::post(format!("http://test{SAY_HELLO}")).header("grpc-timeout", timeout);
            request.header("content-type", "application/grpc-web").body(()).unwrap()
        };
        let reply = raw.call(request("9S"), hello("Ann")).await;
        let text = String::from_utf8_lossy(&reply.body);
        assert!(text.contains("Hello Ann") && text.contains("grpc-status:0"), "{reply:?}");
        let reply = raw.call(request("50m"), hello("never")).await;
        assert_eq!(reply.code(), Some("4"), "{reply:?}");
        // And gRPC itself.
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await;
        assert_eq!(reply.code(), Some("0"));
        let text = metrics.render();
        for part in ["grpc_code=\"OK\"} 2\n", "grpc_code=\"DEADLINE_EXCEEDED\"} 1\n", "grpc_server_web_calls_total 2\n"]
        {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    });
}
