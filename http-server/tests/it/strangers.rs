//! Attacks by strangers: none stops the server from serving others, or holds memory for long.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use server_runtime::Handle;
use socket2::SockRef;

use crate::support::{Answer, BLOCKED, COUNTED, Client, NAPS, PATIENCE, Server, options, until};

/// A server that does not wait long for clients that do not read.
fn impatient() -> (Server, Handle) {
    let mut options = options();
    options.timeouts.write = Duration::from_millis(200);
    let server = Server::with(options);
    let handle = server.running.shutdown_handle();
    (server, handle)
}

/// Asks for something on a connection of which nothing is read.
fn never_reads(server: &Server, request: &str) -> Client {
    let mut client = server.client();
    SockRef::from(&client.stream).set_recv_buffer_size(4096).unwrap();
    client.send(request);
    client
}

#[test]
fn stalled_readers_are_disconnected_with_or_without_upgrade() {
    let (server, handle) = impatient();
    let ask = |fields: &str, path: &str| {
        let client = never_reads(&server, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        until(|| handle.accepted() > 0 && handle.connections() == 0);
        drop(client);
    };
    ask("", "/t/big");
    ask("Connection: upgrade\r\nUpgrade: h2c\r\n", "/t/big");
    ask("Connection: upgrade\r\nUpgrade: other\r\n", "/t/big");
    ask(WEBSOCKET, "/t/flood");
}

const H2C: &str = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";

const WEBSOCKET: &str = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// An HTTP/2 client that answers everything and takes nothing.
#[test]
fn a_window_that_never_opens() {
    let (server, handle) = impatient();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for window in [0, 1] {
        let asked = async {
            let stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
            let mut builder = h2::client::Builder::new();
            let (mut requests, connection) =
                builder.initial_window_size(window).handshake::<_, Bytes>(stream).await.unwrap();
            let connection = tokio::spawn(connection);
            let ask = |path: &str| Request::get(format!("http://h{path}")).body(()).unwrap();
            let (answer, _) = requests.send_request(ask("/t/big"), true).unwrap();
            let mut body = answer.await.unwrap().into_body();
            let ended = loop {
                match body.data().await {
                    Some(Ok(piece)) => assert!(piece.len() <= 1, "{window}"),
                    Some(Err(error)) => break error,
                    None => panic!("all of it came through a window of {window}"),
                }
            };
            assert!(ended.is_reset(), "{window}: {ended}");
            // The stream has ended, and no other.
            let (answer, _) = requests.send_request(ask("/t/nothing"), true).unwrap();
            assert_eq!(answer.await.unwrap().status(), 204);
            drop((requests, body));
            connection.await.unwrap().unwrap();
        };
        runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await.expect("it goes on for ever") });
    }
    until(|| handle.connections() == 0);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Of a hundred bodies that no client takes, those hold a piece that have their turn, not all.
#[test]
fn bodies_are_asked_in_their_turns() {
    let server = Server::start();
    let mut client = server.client();
    // `:method: GET`, `:scheme: http`, `:path: /t/counted`, `:authority: h`.
    let head = [&[0x82, 0x86, 0x04, 10][..], b"/t/counted", &[0x41, 1, b'h']].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // Windows hold nothing back.
    bytes.extend(frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
    bytes.extend(frame(8, 0, 0, &(1_u32 << 30).to_be_bytes()));
    bytes.extend((0..100).flat_map(|number| frame(1, 5, 1 + 2 * number, &head)));
    client.stream.write_all(&bytes).unwrap();
    let [made, asked] = &COUNTED;
    until(|| made.load(SeqCst) == 100);
    for _ in 0..10 {
        assert_eq!(server.get("/ann").status, 200);
    }
    assert!((1..=10).contains(&asked.load(SeqCst)), "{asked:?}");
}

#[test]
fn floods_of_frames_end_the_connection() {
    let server = Server::start();
    // `:method: GET`, `:scheme: http`, `:path: /`, `:authority: h`.
    let head = [0x82, 0x86, 0x84, 0x41, 1, b'h'];
    let check = |what: &str, round: &dyn Fn(u32) -> Vec<u8>| {
        let mut client = server.client();
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.stream.write_all(&frame(4, 0, 0, &[])).unwrap();
        let mut reader = client.stream.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let mut bytes = vec![0; 65536];
            while test_peers::read(&mut reader, &mut bytes).is_ok_and(|count| count > 0) {}
        });
        let is_cut = (0..400).any(|piece| {
            let bytes: Vec<u8> = (0..500).flat_map(|at| round(piece * 500 + at)).collect();
            client.stream.write_all(&bytes).is_err()
        });
        assert!(is_cut, "{what}: 200,000 of them were taken");
        reading.join().unwrap();
        assert_eq!(server.get("/").status, 200, "{what}");
    };
    check("PING", &|number| frame(6, 0, 0, &u64::from(number).to_be_bytes()));
    check("SETTINGS", &|_| frame(4, 0, 0, &[0, 4, 0, 0, 255, 255]));
    check("PRIORITY", &|number| frame(2, 0, 1 + 2 * number, &[0, 0, 0, 0, 1]));
    check("WINDOW_UPDATE", &|_| frame(8, 0, 0, &1_u32.to_be_bytes()));
    check("unknown", &|_| frame(0xfa, 0, 0, b"x"));
    check("empty DATA", &|number| if number == 0 { frame(1, 4, 1, &head) } else { frame(0, 0, 1, &[]) });
    check("rapid reset", &|number| {
        let stream = 1 + 2 * number;
        [frame(1, 4, stream, &head), frame(3, 0, stream, &8_u32.to_be_bytes())].concat()
    });
}

#[test]
fn declined_upgrades_are_answered_and_the_connection_goes_on() {
    let server = Server::start();
    let mut client = server.client();
    let declined = [
        "Connection: upgrade\r\nUpgrade: other/1\r\n",
        // RFC 7540 section 3.2.1: one field with settings, named by `Connection`.
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\nHTTP2-Settings: \r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAA\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: what?\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c, other/1\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
    ];
    for fields in declined {
        for (path, status) in [("/ann", 200), ("/t/slow", 200), ("/t/text", 200), ("/t/socket", 400), ("/a/b", 404)] {
            client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
            let answer = client.answer().unwrap_or_else(|| panic!("{path}: closed before its answer"));
            assert_eq!((answer.status, answer.header("connection")), (status, None), "{path} {fields}");
        }
        client.send(&format!("POST /t/echo HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: 2\r\n\r\nhi"));
        assert_eq!(client.answer().unwrap().text(), "hi");
    }
    // The body has to be there; this one is waited for in HTTP/1.1.
    client.send(&format!("POST /t/count HTTP/1.1\r\nHost: h\r\n{H2C}Transfer-Encoding: chunked\r\n\r\n"));
    client.send("2\r\nhi\r\n0\r\n\r\n");
    assert_eq!(client.answer().unwrap().text(), "2");
    // And one that is taken.
    client.send(&format!("GET /t/socket HTTP/1.1\r\nHost: h\r\n{WEBSOCKET}\r\n"));
    // The text "hi", masked with zeros, behind the request.
    client.stream.write_all(&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i']).unwrap();
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("sec-websocket-accept")), (101, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
    let mut echo = std::mem::take(&mut client.rest);
    while echo.len() < 4 {
        let mut more = [0; 4];
        let count = test_peers::read(&mut client.stream, &mut more).unwrap();
        assert!(count > 0, "{echo:?}");
        echo.extend_from_slice(&more[..count]);
    }
    assert_eq!(echo, [0x81, 2, b'h', b'i']);
}

#[test]
fn silent_clients_after_an_h2c_upgrade_are_disconnected() {
    let mut options = options();
    options.timeouts.head = Duration::from_millis(200);
    let server = Server::with(options);
    let handle = server.running.shutdown_handle();
    let mut client = server.client();
    client.send(&format!("GET /t/big HTTP/1.1\r\nHost: h\r\n{H2C}\r\n"));
    assert_eq!(client.answer().unwrap().status, 101);
    until(|| handle.connections() == 0);
}

/// A proxy that passes the upgrade on would not see what is asked behind it.
#[test]
fn h2c_upgrades_behind_a_trusted_proxy_are_declined() {
    let mut behind_proxy = options();
    behind_proxy.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let ask = |options| {
        let server = Server::with(options);
        let mut client = server.client();
        client.send(&format!("GET /ann HTTP/1.1\r\nHost: h\r\n{H2C}\r\n"));
        let answer = client.answer().unwrap();
        (answer.status, answer.header("upgrade").map(str::to_owned))
    };
    assert_eq!(ask(options()), (101, Some("h2c".to_owned())));
    assert_eq!(ask(behind_proxy), (200, None));
}

/// A handler that answers with the body of its request as it comes.
#[test]
fn a_request_body_can_be_the_answer() {
    let server = Server::start();
    let check = |fields: &str, pieces: &[&str], expected: &str| {
        let mut client = server.client();
        for _ in 0..2 {
            client.send(&format!("POST /t/mirror HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
            if fields.contains("Expect") {
                assert_eq!(client.answer().unwrap().status, 100);
            }
            for piece in pieces {
                // The server sees them one by one.
                std::thread::sleep(Duration::from_millis(5));
                client.send(piece);
            }
            let answer = client.answer().unwrap_or_else(|| panic!("{fields:?}: closed without an answer"));
            assert_eq!((answer.status, answer.text()), (200, expected), "{fields}");
        }
        assert_eq!(client.get("/ann").unwrap().status, 200, "{fields}: the connection goes on");
    };
    check("Content-Length: 10\r\n", &["hello", "world"], "helloworld");
    check("Content-Length: 10\r\nExpect: 100-continue\r\n", &["hello", "world"], "helloworld");
    check("Transfer-Encoding: chunked\r\n", &["5\r\nhello\r\n", "5\r\nworld\r\n0", "\r\n\r\n"], "helloworld");
    check("Transfer-Encoding: chunked\r\n", &["0\r\n\r\n"], "");
    // A body that ends too early, is malformed, or comes too slowly: half an answer, and the end of the connection.
    for (fields, piece) in [("Content-Length: 10\r\n", "hello"), ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nx")]
    {
        let mut client = server.client();
        client.send(&format!("POST /t/mirror HTTP/1.1\r\nHost: h\r\n{fields}\r\n{piece}"));
        client.half_close();
        let mut all = Vec::new();
        client.stream.read_to_end(&mut all).unwrap();
        let all = String::from_utf8(all).unwrap();
        assert!(all.starts_with("HTTP/1.1 200") && all.contains("hello") && !all.ends_with("0\r\n\r\n"), "{all}");
    }
    // More than the sockets hold, by a client that reads while it writes.
    let mut client = server.client();
    let mut writer = client.stream.try_clone().unwrap();
    client.send("POST /t/mirror HTTP/1.1\r\nHost: h\r\nContent-Length: 33554432\r\n\r\n");
    let writing = std::thread::spawn(move || {
        (0..32).for_each(|number| writer.write_all(&vec![number; 1024 * 1024]).unwrap());
    });
    let answer = client.answer().unwrap();
    writing.join().unwrap();
    assert!(answer.body.chunks(1024 * 1024).zip(0..).all(|(chunk, number)| chunk.iter().all(|byte| *byte == number)));
    assert_eq!(answer.body.len(), 33_554_432);
}

/// Handlers that block their thread hold up nobody, where they are said to.
#[test]
fn blocking_handlers_do_not_block_other_connections() {
    let server = Server::start();
    let mut blocked: Vec<_> = (0..8).map(|_| server.client()).collect();
    let mut others: Vec<_> = (0..20).map(|_| server.client()).collect();
    blocked.iter_mut().for_each(|client| client.send("GET /t/block HTTP/1.1\r\nHost: h\r\n\r\n"));
    let (state, changed) = &BLOCKED;
    until(|| state.lock().unwrap().0 == 8);
    for client in &mut others {
        assert_eq!(client.get("/ann").unwrap().status, 200);
        assert_eq!(client.get("/t/slow").unwrap().text(), "slow");
    }
    state.lock().unwrap().1 = true;
    changed.notify_all();
    for client in &mut blocked {
        assert_eq!(client.answer().unwrap().text(), "blocked");
    }
}

/// The effect on other clients of a handler that blocks its thread for 100 ms in one of twenty calls. Those on its
/// worker are not answered meanwhile, all others are.
#[test]
fn handlers_that_block_now_and_then_hold_up_their_own_worker_alone() {
    fn check(path: &str, others: &str, undisturbed: usize) {
        let server = Server::start();
        let (is_over, first) = (AtomicBool::new(false), NAPS.load(SeqCst));
        let meanwhile = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = server.client();
                for number in 0.. {
                    client.get(if number % 20 == 0 { path } else { "/ann" }).unwrap();
                    if is_over.load(Relaxed) {
                        return;
                    }
                }
            });
            let others: Vec<_> =
                (0..4).map(|_| scope.spawn(|| answered_meanwhile(&server, others, first + 40))).collect();
            let meanwhile: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
            is_over.store(true, Relaxed);
            meanwhile
        });
        let count = meanwhile.iter().filter(|answers| **answers > 0).count();
        assert!(count >= undisturbed, "{path}: {meanwhile:?} answers to {others} while a handler napped");
    }
    // Those that call the router are dealt out evenly, or away from a worker that is held up already: with the one that naps there are
    // two at most. Connections whose requests need no router gather on the other worker, from which half may go if that
    // is busy.
    check("/t/nap", "/t/text", 2);
    check("/t/nap", "/ann", 2);
    check("/t/nap-apart", "/t/text", 4);
    check("/t/nap-apart", "/ann", 4);
}

/// Asks for `path` until handlers have napped so often; how many answers came while one did.
fn answered_meanwhile(server: &Server, path: &str, naps: usize) -> usize {
    let (mut client, mut meanwhile) = (server.client(), 0);
    while NAPS.load(SeqCst) < naps {
        let before = NAPS.load(SeqCst);
        client.get(path).unwrap();
        meanwhile += usize::from(before % 2 == 1 && NAPS.load(SeqCst) == before);
    }
    meanwhile
}

#[test]
fn close_wins_over_keep_alive() {
    let server = Server::start();
    for option in
        ["close, keep-alive", "keep-alive, close", "keep-alive\r\nConnection: close", "close\r\nConnection: keep-alive"]
    {
        for path in ["/ann", "/t/text"] {
            let mut client = server.client();
            client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: {option}\r\n\r\n"));
            let answer: Answer = client.answer().unwrap();
            assert_eq!(answer.header("connection"), Some("close"), "{option:?}");
            client.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            match test_peers::read(&mut client.stream, &mut [0; 1]) {
                Ok(count) => assert_eq!(count, 0),
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{option:?}: it stays open"),
            }
        }
    }
}
