//! What the server's own routes answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use http_server::{Options, routes, serve};

#[test]
fn the_routes_of_published_comparisons() {
    let running = serve(routes::router(), Options::listening("127.0.0.1:0".parse().unwrap())).unwrap();
    let addr = running.local_addrs()[0];
    let check = |path: &str, status: &str, body: &str| {
        let answer = get(addr, path);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{path}: {answer}");
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, body, "{path}");
    };
    check("/", "200 OK", "Hello from Rust");
    check("/json", "200 OK", r#"{"message":"Hello from Rust"}"#);
    check("/ann", "200 OK", "Hello, visitor! You've requested: /ann");
    check("/z%C3%BCrich%20%E2%82%AC", "200 OK", "Hello, visitor! You've requested: /zürich €");
    running.shutdown_handle().trigger();
    assert!(!running.wait());
}

/// The whole answer to a GET on a connection of its own.
fn get(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
