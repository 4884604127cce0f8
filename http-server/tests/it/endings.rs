//! Ends of connections on which a client has sent more than is answered: the last answer comes whole. A socket that is closed with
//! something unread in it sends a reset, and takes back what it has not sent yet.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use http_server::{Engine, Options};

use crate::support::{self, Client, Server, tls_options};

/// The client may come to its turn late, on a loaded machine.
fn patient(mut options: Options) -> Options {
    options.timeouts.linger = Duration::from_secs(60);
    options
}

fn options() -> Options {
    patient(support::options())
}

/// More than sockets hold, or are read ahead.
fn pipelined() -> String {
    "GET /ann HTTP/1.1\r\nHost: h\r\n\r\n".repeat(40_000)
}

/// Sends a request and more behind it in one piece, lets the server work, and reads to the end: the length of all that comes. Bytes that a client
/// sends after the server has closed the connection are answered by a reset, as by other servers.
fn read_late(client: &mut Client, request: &str) -> std::io::Result<usize> {
    let mut writer = client.stream.try_clone().unwrap();
    let sent = request.to_owned() + &pipelined();
    let writing = std::thread::spawn(move || {
        // The server need not take requests behind its last answer.
        let _ = writer.write_all(sent.as_bytes());
    });
    std::thread::sleep(Duration::from_millis(200));
    let mut all = Vec::new();
    let read = client.stream.read_to_end(&mut all);
    writing.join().unwrap();
    read.map(|_| all.len())
}

/// The client said that it is the last one; the answer is made at once, by the router, in pieces, and after a while.
#[test]
fn the_last_answer_is_whole() {
    check_last_answers(options());
}

#[test]
fn the_last_answer_by_hyper_is_whole() {
    check_last_answers(Options { engine: Engine::Hyper, ..options() });
}

fn check_last_answers(options: Options) {
    let server = Server::with(options);
    for (path, at_least) in
        [("/", 15), ("/ann", 10), ("/t/big", 8 << 20), ("/t/stream", 6), ("/t/slow", 4), ("/t/text", 12_000)]
    {
        for close in ["HTTP/1.1\r\nHost: h\r\nConnection: close", "HTTP/1.0"] {
            let mut client = server.client();
            let read = read_late(&mut client, &format!("GET {path} {close}\r\n\r\n"));
            assert!(read.as_ref().is_ok_and(|length| *length > at_least), "{path} {close}: {read:?}");
        }
    }
}

/// A client on a slow line still sends when its last answer has come: the time that clients have is enough.
#[test]
fn the_last_answer_on_a_slow_line_is_whole() {
    let server = Server::start();
    let mut client = server.client();
    let next = "GET /ann HTTP/1.1\r\nHost: h\r\n\r\n";
    client.send(&format!("GET /t/text HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n{next}"));
    for _ in 0..30 {
        client.stream.write_all(next.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut all = Vec::new();
    let read = client.stream.read_to_end(&mut all);
    assert!(read.as_ref().is_ok_and(|length| *length > 12_000), "{read:?}");
}

/// The server has a bound for the requests of a connection.
#[test]
fn the_last_of_so_many_is_whole() {
    let mut options = options();
    options.limits.requests = 3;
    let server = Server::with(options);
    let mut client = server.client();
    let request = "GET /ann HTTP/1.1\r\nHost: h\r\n\r\n".repeat(2);
    let read = read_late(&mut client, &format!("{request}GET /t/big HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert!(read.as_ref().is_ok_and(|length| *length > 8 << 20), "{read:?}");
}

/// Over TLS, with the alert that says that nothing is missing.
#[test]
fn the_last_answer_is_whole_over_tls() {
    let options = patient(tls_options());
    let certificate = options.runtime.tls.as_ref().unwrap().cert.clone();
    let server = Server::with(options);
    let mut stream = server.tls_client(&certificate, &[]);
    let more = "GET /ann HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    let request = "GET /t/big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("{request}{more}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    assert!(read.is_ok() && all.len() > 8 << 20, "{read:?}: {} bytes", all.len());
}

/// A client that has nothing more to say is not waited for.
#[test]
fn a_connection_without_more_ends_at_once() {
    let mut options = options();
    options.timeouts.linger = Duration::from_secs(20);
    let server = Server::with(options);
    for path in ["/", "/t/text"] {
        let mut client = server.client();
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
        assert_eq!(client.answer().unwrap().status, 200);
        assert!(client.is_closed());
        // The client does not close, and the server has.
        crate::support::until(|| server.running.connections() == 0);
    }
}

/// A connection of HTTP/2 that ends in good order, while its client goes on sending.
#[test]
fn the_last_answer_of_http2_is_whole() {
    let server = Server::start();
    let mut stream = server.client().stream;
    let head = [&[0x82, 0x86, 0x41, 1, b'h', 0x04, 7][..], b"/t/slow"].concat();
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    sent.extend([0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1]);
    sent.extend(head);
    stream.write_all(&sent).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    server.running.shutdown_handle().trigger();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        // Unknown frames are read over; a few at a time, so that they are no flood.
        let unknown = [&[0, 0, 100, 0xfe, 0, 0, 0, 0, 0][..], &[0; 100]].concat();
        // The server's farewell is a PING with this payload, whose answer may come before it.
        while writer.write_all(&unknown).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
    let ended = loop {
        match stream.read(&mut bytes) {
            Ok(0) => break Ok(()),
            Ok(count) => all.extend_from_slice(&bytes[..count]),
            Err(error) => break Err(error),
        }
        // PING (RFC 9113 section 6.7) is answered, so that the server knows that its GOAWAY has come.
        if let Some(at) = all.windows(9).position(|head| head[..5] == [0, 0, 8, 6, 0]).filter(|at| all.len() >= at + 17)
        {
            let ping: Vec<u8> = all.drain(at..at + 17).collect();
            let _ = stream.write_all(&[&ping[..4], &[1], &ping[5..]].concat());
        }
    };
    stream.shutdown(std::net::Shutdown::Both).ok();
    writing.join().unwrap();
    assert!(ended.is_ok() && all.windows(4).any(|bytes| bytes == b"slow"), "{ended:?}: {all:?}");
}
