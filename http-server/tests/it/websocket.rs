//! WebSockets of our own: time-outs, shutdown, sockets in other tasks, and what goes out together.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use http_server::Options;
use http_server::websocket::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use socket2::SockRef;

use crate::autobahn::{Peer, echo, frame};
use crate::support::{Client, Server, options, until};

/// Serves one application at `/ws`.
fn serving<F: Future<Output = ()> + Send + 'static>(
    application: impl Fn(WebSocket) -> F + Clone + Send + Sync + 'static,
) -> Server {
    serving_with(options(), application)
}

/// The same by a server that does not wait long.
fn impatient<F: Future<Output = ()> + Send + 'static>(
    application: impl Fn(WebSocket) -> F + Clone + Send + Sync + 'static,
) -> Server {
    let mut options = options();
    options.timeouts.write = Duration::from_millis(200);
    options.timeouts.linger = Duration::from_millis(200);
    serving_with(options, application)
}

fn serving_with<F: Future<Output = ()> + Send + 'static>(
    options: Options,
    application: impl Fn(WebSocket) -> F + Clone + Send + Sync + 'static,
) -> Server {
    let upgrade = any(move |upgrade: WebSocketUpgrade| async move { upgrade.on_upgrade(application) });
    Server::try_serving(Router::new().route("/t/ws", upgrade), options).unwrap()
}

fn text(payload: &[u8]) -> Vec<u8> {
    frame(0x81, payload)
}

#[test]
fn handshakes_that_are_refused() {
    let server = serving(echo);
    let check = |method: &str, fields: &str, status: u16, version: Option<&str>| {
        let mut client = server.client();
        client.send(&format!(
            "{method} /t/ws HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
        ));
        let answer = client.answer().unwrap();
        assert_eq!((answer.status, answer.header("sec-websocket-version")), (status, version), "{fields}");
        // The connection goes on.
        assert_eq!(client.get("/t/none").unwrap().status, 404, "{fields}");
    };
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    check("GET", &format!("{upgrade}Sec-WebSocket-Version: 8\r\n"), 426, Some("13"));
    check("GET", upgrade, 426, Some("13"));
    check("GET", "", 400, None);
    check("GET", "Connection: Upgrade\r\nUpgrade: other\r\nSec-WebSocket-Version: 13\r\n", 400, None);
    check("POST", &format!("{upgrade}Sec-WebSocket-Version: 13\r\n"), 405, None);
}

#[test]
fn frames_behind_the_handshake_are_answered() {
    let server = serving(echo);
    let mut client = server.client();
    let head = "GET /t/ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let close = frame(0x88, b"\x03\xe8");
    client.stream.write_all(&[head.as_bytes(), &text(b"hi"), &close].concat()).unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut client.stream, &mut all).unwrap();
    assert!(all.ends_with(b"\r\n\r\n\x81\x02hi\x88\x02\x03\xe8"), "{}", all.escape_ascii());
}

/// Sends for as long as it can.
async fn flood(mut socket: WebSocket) {
    let message = "x".repeat(65536);
    while socket.send(message.as_str().into()).await.is_ok() {}
}

#[test]
fn clients_that_do_not_read_are_disconnected() {
    fn check(what: &str, server: &Server, sent: &[u8]) {
        let peer = Peer::open(server, "/t/ws", "");
        SockRef::from(&peer.stream).set_recv_buffer_size(4096).unwrap();
        let handle = server.running.shutdown_handle();
        assert_eq!(handle.connections(), 1, "{what}");
        if !sent.is_empty() {
            // More than the sockets take: the server does not read on either.
            peer.stream.set_nonblocking(true).unwrap();
            until(|| {
                let _ = (&peer.stream).write_all(sent);
                handle.connections() == 0
            });
        }
        until(|| handle.connections() == 0);
    }
    check("a flood", &impatient(flood), b"");
    check("echoes", &impatient(echo), &text(&[b'x'; 60_000]));
    check("pongs", &impatient(echo), &frame(0x89, &[b'x'; 125]).repeat(400));
}

#[test]
fn a_shutdown_closes_with_1001() {
    let server = serving(echo);
    let handle = server.running.shutdown_handle();
    let (mut polite, mut silent) = (Peer::open(&server, "/t/ws", ""), Peer::open(&server, "/t/ws", ""));
    polite.send(&text(b"hi"));
    assert_eq!(polite.frame().unwrap().1, b"hi");
    handle.trigger();
    let (first, payload) = polite.frame().unwrap();
    assert_eq!((first, &payload[..2]), (0x88, &[0x03, 0xe9][..]));
    polite.send(&frame(0x88, b"\x03\xe9"));
    assert_eq!(polite.frame(), None);
    // A client that does not answer is let go, too.
    until(|| handle.connections() == 0);
    assert_eq!(silent.frame().unwrap().0, 0x88);
}

/// Sends and receives in two tasks, by the halves of a split, which live longer than the handler.
#[test]
fn a_socket_may_move_to_other_tasks_and_threads() {
    async fn relay(mut socket: WebSocket) {
        // A thread with a runtime of its own.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                while let Some(Ok(message)) = socket.recv().await {
                    if matches!(message, Message::Text(_)) {
                        socket.send(message).await.unwrap();
                    }
                }
            });
        });
    }
    async fn task(socket: WebSocket) {
        tokio::spawn(echo(socket));
    }
    fn check(server: &Server) {
        let mut peer = Peer::open(server, "/t/ws", "");
        for round in 0..1000_usize {
            let payload = vec![b'x'; round * 37 % 70_000];
            peer.send(&[text(&payload), frame(0x89, b"!"), text(b"second")].concat());
            for expected in [(0x81, payload), (0x8a, b"!".to_vec()), (0x81, b"second".to_vec())] {
                assert!(peer.frame().unwrap() == expected, "round {round}");
            }
        }
        peer.send(&frame(0x88, b"\x03\xe8"));
        peer.ends("a moved socket", Some(1000));
        let handle = server.running.shutdown_handle();
        until(|| handle.connections() == 0);
    }
    check(&serving(relay));
    check(&serving(task));
}

/// Messages of the application go out when it waits for anything, not only when it receives.
#[test]
fn messages_go_out_when_the_application_waits() {
    let server = serving(async |mut socket| {
        socket.send("first".into()).await.unwrap();
        socket.send("second".into()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3600)).await;
    });
    let mut peer = Peer::open(&server, "/t/ws", "");
    assert_eq!(peer.frame().unwrap(), (0x81, b"first".to_vec()));
    assert_eq!(peer.frame().unwrap(), (0x81, b"second".to_vec()));
}

#[test]
fn the_application_closes() {
    let received = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&received);
    let server = serving(move |mut socket: WebSocket| {
        let seen = Arc::clone(&seen);
        async move {
            let too_long = CloseFrame { code: 1000, reason: "x".repeat(124).into() };
            assert!(socket.send(Message::Close(Some(too_long))).await.is_err());
            assert!(socket.send(Message::Ping(vec![0; 126].into())).await.is_err());
            let frame = CloseFrame { code: 4000, reason: "enough".into() };
            socket.send(Message::Close(Some(frame))).await.unwrap();
            assert!(socket.send("behind it".into()).await.is_err());
            while let Some(Ok(_)) = socket.recv().await {
                seen.fetch_add(1, SeqCst);
            }
        }
    });
    let mut peer = Peer::open(&server, "/t/ws", "");
    assert_eq!(peer.frame().unwrap(), (0x88, b"\x0f\xa0enough".to_vec()));
    peer.send(&[text(b"on its way"), frame(0x88, b"\x0f\xa0")].concat());
    assert_eq!(peer.frame(), None);
    until(|| received.load(SeqCst) == 2);
}

#[test]
fn a_handler_that_panics_closes_with_1011() {
    let server = serving(async |mut socket| {
        socket.recv().await;
        panic!("as the test wants it");
    });
    let mut peer = Peer::open(&server, "/t/ws", "");
    peer.send(&text(b"x"));
    peer.ends("a panic", Some(1011));
    assert_eq!(server.get("/t/none").status, 404);
}

#[test]
fn subprotocols_are_chosen() {
    let upgrade = any(|upgrade: WebSocketUpgrade| async {
        upgrade.protocols(["second", "first"]).on_upgrade(async |mut socket| {
            let chosen = socket.protocol().map_or("none", |protocol| protocol.to_str().unwrap()).to_owned();
            let _ = socket.send(chosen.into()).await;
        })
    });
    let server = Server::try_serving(Router::new().route("/t/ws", upgrade), options()).unwrap();
    let check = |fields: &str, expected: &str| {
        let mut peer = Peer::open(&server, "/t/ws", fields);
        let told = format!("sec-websocket-protocol: {expected}\r\n");
        assert_eq!(peer.head.contains(&told), expected != "none", "{}", peer.head);
        assert_eq!(peer.frame().unwrap().1, expected.as_bytes());
    };
    check("", "none");
    check("Sec-WebSocket-Protocol: third\r\n", "none");
    check("Sec-WebSocket-Protocol: first, second\r\nSec-WebSocket-Protocol: third\r\n", "second");
}

/// One client's endless messages do not hold up others of its worker.
#[test]
fn others_are_served_beside_a_flood_of_small_messages() {
    let mut options = options();
    options.runtime.workers = 1;
    let upgrade = any(|upgrade: WebSocketUpgrade| async {
        upgrade.on_upgrade(async |mut socket| while let Some(Ok(_)) = socket.recv().await {})
    });
    let router = Router::new().route("/t/ws", upgrade);
    let server = Server::try_serving(router, options).unwrap();
    let flooding = Peer::open(&server, "/t/ws", "");
    let mut writer = flooding.stream.try_clone().unwrap();
    let bytes = frame(0x81, b"").repeat(100_000);
    std::thread::scope(|scope| {
        scope.spawn(move || while writer.write_all(&bytes).is_ok() {});
        let mut client = Client::connect(server.addr);
        for _ in 0..20 {
            assert_eq!(client.get("/t/none").unwrap().status, 404);
        }
        flooding.stream.shutdown(std::net::Shutdown::Both).unwrap();
    });
}
