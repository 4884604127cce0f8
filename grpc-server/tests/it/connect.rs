//! The Connect protocol, byte for byte, over HTTP/1.1 and beside gRPC over HTTP/2.

use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};
use grpc_server::{Options, Routes};
use http::Request;

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
    check(json, "\r\nContent-Encoding: gzip", b"{}", "501", &[r#""code":"unimplemented""#]);
    let timeout = "\r\nConnect-Timeout-Ms: 50";
    check(json, timeout, br#"{"name":"never"}"#, "504", &[r#""code":"deadline_exceeded""#]);
    check(json, "\r\nConnect-Timeout-Ms: soon", b"{}", "400", &[r#""code":"invalid_argument""#]);
    check("application/proto", "", &hello("Ann")[5..], "200", &["content-type: application/proto", "\n\tHello Ann"]);
    // A stream's form is no unary call's.
    check("application/connect+json", "", &envelope(0, "{}"), "415", &[]);
    let long = vec![b' '; (4 << 20) + 1];
    check(json, "", &long, "429", &[r#""code":"resource_exhausted""#]);
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
    // Half a message, flags that nobody knows, and what is no JSON.
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
    // Nobody speaks it who was not told to.
    let (server, _) = Server::odd(options());
    run(async {
        let request = Request::post(format!("http://test{SAY_HELLO}")).header("content-type", "application/json");
        let reply = server.raw().await.call(request.body(()).unwrap(), b"{}".as_slice().into()).await;
        assert_eq!(reply.status, 415);
    });
}
