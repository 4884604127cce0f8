//! Clients that take an answer slowly and steadily: they get all of it, over every protocol. The system buffers many times the bytes that
//! they take within a time-out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{any, get};
use http_server::websocket::{WebSocket, WebSocketUpgrade};
use http_server::{Engine, Options};
use rustls::StreamOwned;
use test_peers::{read_slowly, slow_reader};

use crate::http3::{Peer, get_of, run};
use crate::support::{PATIENCE, Server, folder, options, router, tls_options};
use crate::trickles::{END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame};

/// Two seconds for everything: 1,000 bytes are to be taken in them. The readers take 8,000 bytes a second, and acknowledge more at a time: not within each
/// time-out.
fn hurried(options: &mut Options) {
    let short = Duration::from_secs(2);
    (options.timeouts.write, options.timeouts.linger, options.timeouts.idle) = (short, short, short);
}

fn server(routes: Router) -> Server {
    let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
    hurried(&mut options);
    Server::try_serving(routes, options).unwrap()
}

fn client(server: &Server) -> TcpStream {
    slow_reader(server.addr, PATIENCE).unwrap()
}

/// Between two things that a client says while it reads.
const PAUSE: Duration = Duration::from_millis(50);

/// Long enough for several time-outs.
const TIME: Duration = Duration::from_secs(14);

#[track_caller]
fn check_outlasts(what: &str, server: &Server, mut from: impl Read) {
    read_slowly(&mut from, TIME);
    assert_eq!(server.running.connections(), 1, "{what}");
}

const GET_BIG: &str = "GET /t/big HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn answers_of_http1() {
    let server = server(router());
    let mut client = client(&server);
    client.write_all(GET_BIG.as_bytes()).unwrap();
    check_outlasts("from memory", &server, client);
}

#[test]
fn answers_of_hyper() {
    let mut options = Options { engine: Engine::Hyper, ..options() };
    hurried(&mut options);
    let server = Server::with(options);
    let mut client = client(&server);
    client.write_all(GET_BIG.as_bytes()).unwrap();
    check_outlasts("by hyper", &server, client);
}

#[test]
fn files_of_http1() {
    let root = folder("slow-readers");
    std::fs::write(root.join("big.bin"), vec![b'x'; 16_000_000]).unwrap();
    let server = server(http_server::routes::files(&root).unwrap());
    let mut client = client(&server);
    client.write_all(b"GET /big.bin HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    check_outlasts("a file", &server, client);
}

#[test]
fn answers_over_tls() {
    let mut options = tls_options();
    hurried(&mut options);
    let certificate = options.runtime.tls.as_ref().unwrap().cert.clone();
    let server = Server::with(options);
    let session = server.tls_client(&certificate, &[b"http/1.1"]).conn;
    let mut client = StreamOwned::new(session, client(&server));
    client.write_all(GET_BIG.as_bytes()).unwrap();
    check_outlasts("over TLS", &server, client);
}

async fn flood(mut socket: WebSocket) {
    let message = Bytes::from(vec![b'x'; 65_536]);
    while socket.send(message.clone().into()).await.is_ok() {}
}

/// Our own WebSockets, and tunnels as axum's own are.
#[test]
fn messages_of_websockets() {
    let own = any(|upgrade: WebSocketUpgrade| async move { upgrade.on_upgrade(flood) });
    for (what, routes) in [("our own", Router::new().route("/t/flood", own)), ("a tunnel", router())] {
        let server = server(routes);
        let mut client = client(&server);
        let head = "GET /t/flood HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        client.write_all(head.as_bytes()).unwrap();
        check_outlasts(what, &server, client);
    }
}

/// The answer to the last request is on its way when the server's part is done, and the client is not silent meanwhile: a socket that is
/// closed then sends a reset, and the rest of the answer is lost.
#[test]
fn the_end_of_the_last_answer_of_http1() {
    for connection in ["close", "keep-alive"] {
        let routes = Router::new().route("/t/some", get(|| async { vec![b'x'; 100_000] }));
        let server = server(routes);
        let client = client(&server);
        let request = format!("GET /t/some HTTP/1.1\r\nHost: h\r\nConnection: {connection}\r\n\r\n");
        (&client).write_all(request.as_bytes()).unwrap();
        let all = std::thread::scope(|scope| {
            if connection == "close" {
                // More than the server has read by the end of its answer.
                scope.spawn(|| {
                    while (&client).write_all(b"x").is_ok() && server.running.connections() > 0 {
                        std::thread::sleep(PAUSE);
                    }
                });
            }
            let mut rest = Vec::new();
            while rest.len() < 100_000 {
                let piece = read_slowly(&client, PAUSE);
                assert!(!piece.is_empty(), "{connection}: cut after {} bytes", rest.len());
                rest.extend(piece);
            }
            rest
        });
        assert!(all.ends_with(b"xxx"), "{connection}");
    }
}

/// Asks for this by each of these streams, with windows that are never full.
fn ask_http2(mut to: impl Write, path: &str, streams: impl Iterator<Item = u32>) {
    let all = (1_u32 << 30).to_be_bytes();
    // SETTINGS_INITIAL_WINDOW_SIZE
    let settings = frame(SETTINGS, 0, 0, &[&[0, 4], &all[..]].concat());
    let window = frame(WINDOW_UPDATE, 0, 0, &all);
    to.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &window].concat()).unwrap();
    let head = [&[0x82, 0x86, 0x41, 1, b'h', 0x04, path.len() as u8][..], path.as_bytes()].concat();
    for stream in streams {
        to.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &head)).unwrap();
    }
}

/// Kind, flags and stream of the frames.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        frames.push((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]])));
        bytes = rest.get(length..).unwrap_or_default();
    }
    frames
}

/// Twenty at once, none of which gets 1,000 bytes within two seconds. The client does not see the server's PING before what is in front of it.
#[test]
fn answers_of_http2() {
    let server = server(router());
    let mut client = client(&server);
    ask_http2(&client, "/t/big", (1..40).step_by(2));
    let all = read_slowly(&mut client, TIME);
    let frames = frames(&all);
    assert!(frames.iter().all(|(kind, ..)| *kind != RST_STREAM), "{frames:?}");
    assert_eq!(server.running.connections(), 1);
}

/// The server is done long before the client has its answer, and the client is not silent meanwhile.
#[test]
fn the_end_of_the_last_answer_of_http2() {
    let routes = Router::new().route("/t/some", get(|| async { vec![b'x'; 100_000] }));
    let server = server(routes);
    let client = client(&server);
    ask_http2(&client, "/t/some", std::iter::once(1));
    let all = std::thread::scope(|scope| {
        scope.spawn(|| {
            let update = frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes());
            while (&client).write_all(&update).is_ok() && server.running.connections() > 0 {
                std::thread::sleep(PAUSE);
            }
        });
        read_slowly(&client, PATIENCE)
    });
    assert!(frames(&all).contains(&(0, END_STREAM, 1)), "cut after {} bytes", all.len());
}

/// The answer of HTTP/3 is QUIC's at once, and the client's window is small.
#[test]
fn the_end_of_an_answer_of_http3() {
    let peer = Peer::with(hurried);
    run(async {
        let mut transport = quinn::TransportConfig::default();
        transport.stream_receive_window(1000_u32.into());
        let raw = peer.raw_with(transport).await;
        let (mut send, mut receive) = raw.request(&get_of("/t/text", &[])).await;
        send.finish().unwrap();
        let mut count = 0;
        while let Some(chunk) = receive.read_chunk(100, true).await.expect("the answer is cut") {
            count += chunk.bytes.len();
            tokio::time::sleep(PAUSE).await;
        }
        assert!(count > 12_000, "{count}");
    });
}
