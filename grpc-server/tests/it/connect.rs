//! The Connect protocol, byte for byte, over HTTP/1.1 and beside gRPC over HTTP/2.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};
use grpc_server::{Options, Routes};
use http::Request;
use tonic::codec::CompressionEncoding;

use crate::support::{SAY_HELLO, Server, hello, options, post, run};
use crate::web::http1;

fn connect_options() -> Options {
    let mut options = options();
    options.connect = true;
    options
}

fn envelope(flags: u8, message: &str) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flags][..], &length, message.as_bytes()].concat()
}

#[test]
fn unary_calls() {
    let (server, _) = Server::odd(connect_options());
    let check = |kind: &str, more: &str, body: &[u8], status: &str, answer: &[&str]| {
        let head = format!("POST {SAY_HELLO} HTTP/1.1\r\nContent-Type: {kind}{more}");
        let (head, said) = http1(&server, &head, body);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{kind}{more} {body:?}: {head} {said}");
        let all = format!("{head}\r\n{said}");
        assert!(answer.iter().all(|part| all.contains(part)), "{kind}{more}: {all}");
        assert!(!all.contains("grpc-"), "{all}");
    };
    let json = "application/json";
    let is_json = "content-type: application/json";
    check(json, "", br#"{"name":"Ann"}"#, "200", &[is_json, r#"{"message":"Hello Ann"}"#]);
    check("application/json; charset=utf-8", "", b"{}", "200", &[r#"{"message":"Hello "}"#]);
    check(json, "", br#"{"name":"Ann","newer":1}"#, "200", &["Hello Ann"]);
    check(
        json,
        "",
        br#"{"name":"error"}"#,
        "500",
        &[is_json, r#""code":"data_loss""#, r#""message":"a message with % and ü""#],
    );
    check(json, "", br#"{"name":"panic"}"#, "500", &[r#""code":"internal""#]);
    check(json, "", br#"{"name":1}"#, "400", &[r#""code":"invalid_argument""#]);
    check(json, "", b"{", "400", &[r#""code":"invalid_argument""#]);
    check(json, "\r\nContent-Encoding: br", b"{}", "501", &[r#""code":"unimplemented""#]);
    let gzip = "\r\nContent-Encoding: gzip";
    check(json, gzip, &gzipped(br#"{"name":"Ann"}"#), "200", &["Hello Ann"]);
    // Members of gzip stand one behind the other (RFC 1952 section 2.2); other bytes may not.
    let two = [gzipped(br#"{"name":"#), gzipped(br#""Ann"}"#)].concat();
    check(json, gzip, &two, "200", &["Hello Ann"]);
    let rubbish = [&gzipped(br#"{"name":"Ann"}"#)[..], b"rubbish"].concat();
    check(json, gzip, &rubbish, "400", &[r#""code":"invalid_argument""#]);
    check(json, gzip, b"{}", "400", &[r#""code":"invalid_argument""#]);
    // Nothing is the empty message in protocol buffers alone.
    check(json, gzip, b"", "400", &[r#""code":"invalid_argument""#]);
    let zstd = "\r\nContent-Encoding: zstd";
    check(json, zstd, &zstd::bulk::compress(br#"{"name":"Ann"}"#, 3).unwrap(), "200", &["Hello Ann"]);
    check(json, "\r\nConnect-Protocol-Version: 2", b"{}", "400", &[r#""code":"invalid_argument""#]);
    check(json, "\r\nConnect-Protocol-Version: 1", b"{}", "200", &["Hello"]);
    let timeout = "\r\nConnect-Timeout-Ms: 50";
    check(json, timeout, br#"{"name":"never"}"#, "504", &[r#""code":"deadline_exceeded""#]);
    check(json, "\r\nConnect-Timeout-Ms: soon", b"{}", "400", &[r#""code":"invalid_argument""#]);
    check("application/proto", "", &hello("Ann")[5..], "200", &["content-type: application/proto", "\n\tHello Ann"]);
    // A stream's form is no unary call's.
    check("application/connect+json", "", &envelope(0, "{}"), "415", &[]);
    let long = vec![b' '; (4 << 20) + 1];
    check(json, "", &long, "429", &[r#""code":"resource_exhausted""#]);
    check(json, gzip, &gzipped(&long), "429", &[r#""code":"resource_exhausted""#]);
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A service that compresses does so for JSON too, if the client accepts it.
#[test]
fn compressed_answers() {
    let greeter = GreeterServer::new(Greeter).send_compressed(CompressionEncoding::Gzip);
    let server = Server::with(Routes::new().add_service(greeter), connect_options());
    let unpacked = |bytes: &[u8]| {
        let mut text = String::new();
        GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    };
    let head = |more: &str| format!("POST {SAY_HELLO} HTTP/1.1\r\nContent-Type: application/json{more}");
    let (said, body) = http1(&server, &head("\r\nAccept-Encoding: gzip"), br#"{"name":"Ann"}"#);
    assert!(said.contains("content-encoding: gzip"), "{said}");
    assert_eq!(unpacked(&body), r#"{"message":"Hello Ann"}"#);
    let (said, body) = http1(&server, &head(""), br#"{"name":"Ann"}"#);
    assert!(!said.contains("content-encoding"), "{said}");
    assert_eq!(body, br#"{"message":"Hello Ann"}"#);
    let stream = "POST /helloworld.Greeter/SayHelloToEach HTTP/1.1\r\nContent-Type: application/connect+json\r\n\
        Connect-Accept-Encoding: gzip\r\nConnect-Content-Encoding: gzip";
    let packed = gzipped(br#"{"name":"Bob"}"#);
    let packed = [&[1][..], &u32::try_from(packed.len()).unwrap().to_be_bytes(), &packed].concat();
    let (said, body) = http1(&server, stream, &[envelope(0, r#"{"name":"Ann"}"#), packed].concat());
    assert!(said.contains("connect-content-encoding: gzip"), "{said}");
    let mut rest = &body[..];
    for name in ["Ann", "Bob"] {
        let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        assert_eq!(rest[0], 1, "{rest:?}");
        assert_eq!(unpacked(&rest[5..5 + length]), format!(r#"{{"message":"Hello {name}"}}"#));
        rest = &rest[5 + length..];
    }
    assert_eq!(rest, envelope(2, "{}"));
}

#[test]
fn calls_by_get() {
    let server = Server::with(Routes::new().add_service(GreeterServer::new(Greeter)), connect_options());
    let check = |line: &str, status: &str, answer: &[&str]| {
        let (head, said) = http1(&server, &format!("{line} HTTP/1.1"), b"");
        let all = format!("{head}\r\n{}", String::from_utf8_lossy(&said));
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{line}: {all}");
        assert!(answer.iter().all(|part| all.contains(part)), "{line}: {all}");
    };
    let ann = "%7B%22name%22:%22Ann%22%7D";
    let is_kept = "vary: accept-encoding";
    let greeting = r#"{"message":"Hello Ann"}"#;
    check(&format!("GET {SAY_HELLO}?encoding=json&message={ann}"), "200", &[is_kept, "application/json", greeting]);
    check(&format!("GET {SAY_HELLO}?connect=v1&encoding=json&message={ann}&later=1"), "200", &[greeting]);
    let proto = BASE64_URL_SAFE_NO_PAD.encode(&hello("Ann")[5..]);
    check(
        &format!("GET {SAY_HELLO}?encoding=proto&base64=1&message={proto}"),
        "200",
        &["application/proto", "Hello Ann"],
    );
    let packed = BASE64_URL_SAFE_NO_PAD.encode(gzipped(br#"{"name":"Ann"}"#));
    let query = format!("encoding=json&base64=1&compression=gzip&message={packed}");
    check(&format!("GET {SAY_HELLO}?{query}"), "200", &[greeting]);
    let is_invalid = r#""code":"invalid_argument""#;
    check(&format!("GET {SAY_HELLO}?encoding=json"), "400", &[is_invalid, "no message"]);
    check(&format!("GET {SAY_HELLO}?encoding=json&connect=v2&message={ann}"), "400", &[is_invalid, "expected 1"]);
    check(&format!("GET {SAY_HELLO}?encoding=json&base64=1&message=%"), "400", &[is_invalid, "base64"]);
    check(&format!("GET {SAY_HELLO}?encoding=xml&message={ann}"), "415", &[]);
    check(&format!("GET {SAY_HELLO}"), "415", &[]);
    // Only what has no side effects, as the definition says.
    check(&format!("GET /helloworld.Greeter/SayHelloToAll?encoding=json&message={ann}"), "405", &["allow: post"]);
    let delete = format!("DELETE {SAY_HELLO} HTTP/1.1\r\nContent-Type: application/json");
    let (head, _) = http1(&server, &delete, b"{}");
    assert!(head.starts_with("http/1.1 405") && head.contains("allow: get, post"), "{head}");
}

/// A message is bounded before its service has it; an unknown service is not found.
#[test]
fn limits_and_names() {
    let mut options = connect_options();
    options.limits.message = 20;
    let server = Server::with(Routes::new().add_service(GreeterServer::new(Greeter)), options);
    let call = |path: &str, kind: &str, body: &[u8]| {
        let (head, said) = http1(&server, &format!("POST {path} HTTP/1.1\r\nContent-Type: application/{kind}"), body);
        format!("{head}\r\n{}", String::from_utf8_lossy(&said))
    };
    let long = hello("a name of more bytes");
    let exhausted = r#""code":"resource_exhausted""#;
    for (kind, body) in [("proto", &long[5..]), ("json", br#"{"name":"a name of more bytes"}"#)] {
        let said = call(SAY_HELLO, kind, body);
        assert!(said.starts_with("http/1.1 429") && said.contains(exhausted), "{kind}: {said}");
    }
    let streams = [
        ("SayHelloToEach", long.to_vec(), exhausted),
        ("SayHelloToEach", [&hello("Ann")[..], &long].concat(), exhausted),
        ("SayHelloManyTimes", Vec::new(), r#""code":"unimplemented""#),
        ("SayHelloManyTimes", [&hello("Ann")[..], &hello("Bob")].concat(), r#""code":"unimplemented""#),
    ];
    for (method, body, code) in streams {
        let said = call(&format!("/helloworld.Greeter/{method}"), "connect+proto", &body);
        assert!(said.starts_with("http/1.1 200") && said.contains(code), "{method}: {said}");
    }
    let none = call("/helloworld.Nobody/SayHello", "json", b"{}");
    assert!(none.starts_with("http/1.1 404") && none.contains(r#""code":"unimplemented""#), "{none}");
}

#[test]
fn streams() {
    let server = Server::with(Routes::new().add_service(GreeterServer::new(Greeter)), connect_options());
    let call = |method: &str, kind: &str, body: &[u8]| {
        let head = format!("POST /helloworld.Greeter/{method} HTTP/1.1\r\nContent-Type: application/{kind}");
        http1(&server, &head, body)
    };
    let (head, body) = call("SayHelloToAll", "json", b"{}");
    assert!(head.starts_with("http/1.1 415"), "{head} {body:?}");
    // Half a message, flags that are not defined, and a message that is no JSON.
    for (body, code) in [
        (envelope(0, "{}")[..6].to_vec(), "internal"),
        (envelope(4, "{}"), "internal"),
        (envelope(0, "x"), "invalid_argument"),
        (vec![0, 0xff, 0xff, 0xff, 0xff], "resource_exhausted"),
    ] {
        let (head, said) = call("SayHelloToEach", "connect+json", &body);
        assert!(head.starts_with("http/1.1 200") && head.contains("application/connect+json"), "{head}");
        let end = String::from_utf8_lossy(&said[5..]).into_owned();
        assert!(said[0] == 2 && end.contains(&format!(r#""code":"{code}""#)), "{code}: {said:?}");
    }
    let (head, said) = call("SayNothing", "connect+json", &envelope(0, "{}"));
    assert!(head.starts_with("http/1.1 200") && said[0] == 2, "{head} {said:?}");
    assert!(String::from_utf8_lossy(&said).contains(r#""code":"unimplemented""#));
}

#[test]
fn beside_grpc() {
    run(async {
        let options = connect_options();
        let metrics = options.runtime.metrics.clone();
        let (server, _) = Server::odd(options);
        let mut raw = server.raw().await;
        let request = Request::post(format!("http://test{SAY_HELLO}")).header("content-type", "application/json");
        let reply = raw.call(request.body(()).unwrap(), br#"{"name":"Ann"}"#.as_slice().into()).await;
        assert_eq!((reply.status, &reply.body[..]), (200, br#"{"message":"Hello Ann"}"#.as_slice()), "{reply:?}");
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await;
        assert_eq!(reply.code(), Some("0"));
        let text = metrics.render();
        for part in ["grpc_code=\"OK\"} 2\n", "grpc_server_connect_calls_total 1\n"] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    });
    // A server speaks it only if told to.
    let (server, _) = Server::odd(options());
    run(async {
        let request = Request::post(format!("http://test{SAY_HELLO}")).header("content-type", "application/json");
        let reply = server.raw().await.call(request.body(()).unwrap(), b"{}".as_slice().into()).await;
        assert_eq!(reply.status, 415);
    });
}
