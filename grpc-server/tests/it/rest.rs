//! The rest of a request's body, over HTTP/1.1, when its call is over.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use grpc_server::Routes;
use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};

use crate::support::{PATIENCE, SAY_HELLO, Server, options};

fn server() -> Server {
    let mut options = options();
    options.connect = true;
    options.limits.message = 20;
    Server::with(Routes::new().add_service(GreeterServer::new(Greeter)), options)
}

/// A connection on which such a request has begun.
fn begin(server: &Server, path: &str, kind: &str, more: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/{kind}\r\n{more}").unwrap();
    BufReader::new(stream)
}

/// The head of an answer, whose body is read, too.
fn answer(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the connection ends behind {head:?}");
    }
    let length = head.to_ascii_lowercase();
    let length = length.split_once("content-length: ").unwrap().1.split_once("\r\n").unwrap().0.parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    head
}

/// The beginnings of requests that are answered before they are whole, and their answers.
const EARLY: [(&str, &str, &str); 3] = [
    ("/helloworld.Nobody/SayHello", "json", "404"),
    (SAY_HELLO, "connect+json", "415"),
    // A message of more bytes than it may have.
    (SAY_HELLO, "json", "429"),
];

/// Twenty-one bytes of a body that goes on.
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n15\r\n                     \r\n";

#[test]
fn is_read_before_the_next_request() {
    let server = server();
    for (path, kind, status) in EARLY {
        let mut stream = begin(&server, path, kind, CHUNKED);
        let head = answer(&mut stream);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path} {kind}: {head}");
        // More than what sockets hold.
        let chunk = [b"100000\r\n", &[b' '; 1 << 20][..], b"\r\n"].concat();
        for _ in 0..3 {
            stream.get_mut().write_all(&chunk).unwrap();
        }
        let next = format!("POST {SAY_HELLO} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n");
        write!(stream.get_mut(), "0\r\n\r\n{next}Content-Length: 2\r\n\r\n{{}}").unwrap();
        let head = answer(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200"), "{path} {kind}: {head}");
    }
}

/// A client that sends without end keeps no connection; nor does one that sends no more.
#[test]
fn is_bounded() {
    let server = server();
    let mut silent = EARLY.map(|(path, kind, _)| begin(&server, path, kind, CHUNKED));
    for (path, kind, _) in EARLY {
        let mut endless = begin(&server, path, kind, CHUNKED);
        answer(&mut endless);
        let chunk = [b"100000\r\n", &[b' '; 1 << 20][..], b"\r\n"].concat();
        let sent = (0..64).take_while(|_| endless.get_mut().write_all(&chunk).is_ok()).count();
        // The bound, and the sockets' buffers.
        assert!(sent < 32, "{path} {kind}: {sent} MiB");
    }
    for stream in &mut silent {
        answer(stream);
        assert_eq!(test_peers::read(stream, &mut [0]).unwrap(), 0);
    }
}

/// A client that asks before sending is not asked for a body that no handler will read.
#[test]
fn is_not_asked_for() {
    let server = server();
    for (path, kind, status) in &EARLY[..2] {
        let mut stream = begin(&server, path, kind, "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n");
        let head = answer(&mut stream);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path} {kind}: {head}");
        assert_eq!(test_peers::read(&mut stream, &mut [0]).unwrap(), 0, "{path} {kind}");
    }
}

/// A client on a slow line still sends when its last answer has come: the time that clients have is enough.
#[test]
fn on_a_slow_line_cuts_no_answer() {
    let server = server();
    let mut stream = begin(&server, SAY_HELLO, "json", "Connection: close\r\nContent-Length: 2\r\n\r\n{}");
    for _ in 0..30 {
        // The answer is sent before anything comes behind its request.
        std::thread::sleep(std::time::Duration::from_millis(100));
        stream.get_mut().write_all(b"POST / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    }
    let mut all = String::new();
    let read = stream.read_to_string(&mut all);
    assert!(read.is_ok() && all.ends_with('}'), "{read:?}: {all}");
}

/// The last answer is not cut by a reset where its client has sent more behind the request.
#[test]
fn of_what_is_pipelined_cuts_no_answer() {
    let mut options = options();
    options.connect = true;
    let server = Server::with(Routes::new().add_service(GreeterServer::new(Greeter)), options);
    let next = format!(
        "POST {SAY_HELLO} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    // An answer that is more than sockets take at once.
    let body = format!("{{\"name\":\"{}\"}}", "n".repeat(3_000_000));
    let mut stream =
        begin(&server, SAY_HELLO, "json", &format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()));
    let mut writer = stream.get_ref().try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        writer.write_all(body.as_bytes()).unwrap();
        // The server need not take requests behind its last answer.
        let _ = writer.write_all(next.repeat(10_000).as_bytes());
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    writing.join().unwrap();
    assert!(read.is_ok() && all.ends_with(b"nnn\"}"), "{read:?}: {} bytes", all.len());
}
