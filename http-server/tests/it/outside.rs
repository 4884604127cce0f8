//! The examples of the README and the guide for routers, built by a crate outside of the workspace.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{PATIENCE, folder};

/// A program that ends with its test.
struct Program(Child, String);

impl Program {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(path).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        Self(child, addr)
    }

    /// The answer to a request until the connection is closed.
    fn ask(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(&self.1).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn documents_alone_make_servers() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (readme, guide) = (manifest.join("README.md"), manifest.join("../docs/http/router.md"));
    let folder = folder("outside");
    let built = test_peers::outside(env!("CARGO"), &[&readme, &guide], &folder, &[("127.0.0.1:8000", "127.0.0.1:0")]);
    let check = |program: &str, request: &str, status: &str, last: &str| {
        let answer = Program::start(&built.join(program)).ask(request);
        assert!(answer.starts_with(status) && answer.ends_with(last), "{program}: {answer}");
    };
    let close = "Host: a\r\nConnection: close\r\n";
    check("hello", &format!("GET / HTTP/1.1\r\n{close}\r\n"), "HTTP/1.1 200", "\r\n\r\nHello");
    let token = "Authorization: Bearer secret\r\n";
    check("state", &format!("POST /add/7 HTTP/1.1\r\n{close}{token}Content-Length: 0\r\n\r\n"), "HTTP/1.1 200", "7");
    check("state", &format!("POST /add/7 HTTP/1.1\r\n{close}Content-Length: 0\r\n\r\n"), "HTTP/1.1 401", "");
    check(
        "state",
        &format!("POST /digest HTTP/1.1\r\n{close}{token}Content-Length: 2\r\n\r\nab"),
        "HTTP/1.1 200",
        "195",
    );
    check("state", &format!("GET /readyz HTTP/1.1\r\n{close}\r\n"), "HTTP/1.1 200", "ready\n");
    let body = "x".repeat(100_000);
    let upload = format!("PUT / HTTP/1.1\r\n{close}Content-Length: 100000\r\n\r\n{body}");
    check("upload", &upload, "HTTP/1.1 200", "100000 bytes");
    check(
        "events",
        &format!("GET / HTTP/1.1\r\n{close}Accept: text/event-stream\r\n\r\n"),
        "HTTP/1.1 200",
        "data: 3\n\n\r\n0\r\n\r\n",
    );
    echoes(&Program::start(&built.join("websocket")));
    // The guide shows the example that is measured.
    let (_, shown) = include_str!("../../examples/websocket.rs").split_once("\n\n").unwrap();
    assert!(std::fs::read_to_string(&guide).unwrap().contains(shown), "the guide's WebSocket is not the example's");
    drop(std::fs::remove_dir_all(&folder));
}

/// A WebSocket whose text comes back.
fn echoes(program: &Program) {
    let mut socket = TcpStream::connect(&program.1).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let upgrade = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(upgrade.as_bytes()).unwrap();
    let mut socket = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(socket.read_line(&mut head).unwrap(), 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    // A whole text of two bytes, masked by zeros (RFC 6455 section 5.2).
    socket.get_mut().write_all(b"\x81\x82\0\0\0\0hi").unwrap();
    let mut frame = [0; 4];
    socket.read_exact(&mut frame).unwrap();
    assert_eq!(&frame, b"\x81\x02hi");
}
