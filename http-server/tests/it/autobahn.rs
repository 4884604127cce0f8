//! The cases of the Autobahn testsuite for WebSocket servers, by a client of our own: 1 to 7, 9, 10, and 12 and 13 in spirit. The suite
//! itself needs Python 2. Cases of UTF-8 that fail fast there (6.4.3, 6.4.4) have to do so here.

use std::io::Write as _;
use std::net::TcpStream;

use axum::Router;
use axum::routing::any;
use http_server::websocket::{Compression, Message, WebSocket, WebSocketUpgrade};

use crate::support::{PATIENCE, Server, options};

/// Text and binary messages come back.
pub(crate) async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Text(_) | Message::Binary(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}

fn server() -> Server {
    let deflate = |own: Compression| {
        any(move |upgrade: WebSocketUpgrade| async move { upgrade.compression(own).on_upgrade(echo) })
    };
    let both = Compression { server_context: true, client_context: true };
    let router = Router::new()
        .route("/t/ws", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }))
        .route("/t/small", any(|upgrade: WebSocketUpgrade| async { upgrade.max_message_size(1000).on_upgrade(echo) }))
        .route("/t/deflate", deflate(Compression::default()))
        .route("/t/deflate-context", deflate(both));
    Server::try_serving(router, options()).unwrap()
}

/// A client of a WebSocket.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    rest: Vec<u8>,
    /// The head of the handshake's answer.
    pub(crate) head: String,
}

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FIN: u8 = 0x80;

/// A client's frame, masked.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let key = [0x37, 0xfa, 0x21, 0x3d];
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..=125 => frame.push(0x80 | len as u8),
        len @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&key);
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

impl Peer {
    pub(crate) fn open(server: &Server, path: &str, fields: &str) -> Self {
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut peer = Self { stream, rest: Vec::new(), head: String::new() };
        // Frames may have come with it.
        let len = loop {
            if let Some(len) = peer.rest.windows(4).position(|end| end == b"\r\n\r\n") {
                break len + 4;
            }
            assert!(peer.fill(), "{}", peer.rest.escape_ascii());
        };
        peer.head = String::from_utf8(peer.rest.drain(..len).collect()).unwrap();
        assert!(peer.head.starts_with("HTTP/1.1 101 "), "{}", peer.head);
        assert!(peer.head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{}", peer.head);
        peer
    }

    fn fill(&mut self) -> bool {
        let mut bytes = [0; 65536];
        let count = test_peers::read(&mut self.stream, &mut bytes).unwrap_or_default();
        self.rest.extend_from_slice(&bytes[..count]);
        count > 0
    }

    /// The next frame: its first byte and payload. `None` at the end.
    pub(crate) fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some((head, len)) = self.length()
                && self.rest.len() >= head + len
            {
                let frame: Vec<u8> = self.rest.drain(..head + len).collect();
                return Some((frame[0], frame[head..].to_vec()));
            }
            if !self.fill() {
                assert!(self.rest.is_empty(), "half a frame: {:x?}", self.rest);
                return None;
            }
        }
    }

    fn length(&self) -> Option<(usize, usize)> {
        Some(match *self.rest.get(1)? {
            126 => (4, usize::from(u16::from_be_bytes(self.rest.get(2..4)?.try_into().unwrap()))),
            127 => (10, u64::from_be_bytes(self.rest.get(2..10)?.try_into().unwrap()) as usize),
            len => (2, usize::from(len)),
        })
    }

    /// Sends, unless the server has ended.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Expects a close frame with this code, and the end.
    pub(crate) fn ends(&mut self, what: &str, code: Option<u16>) {
        let payload = code.map(u16::to_be_bytes);
        let (first, found) = self.frame().unwrap_or_else(|| panic!("{what}: closed without a close frame"));
        assert_eq!((first, found.get(..2)), (FIN | CLOSE, payload.as_ref().map(|code| &code[..])), "{what}");
        assert_eq!(self.frame(), None, "{what}: something behind the close frame");
    }
}

/// How bytes are cut.
#[derive(Clone, Copy)]
enum Cut {
    No,
    Frames,
    Octets,
    Each(usize),
}

struct Case<'s> {
    server: &'s Server,
    path: &'static str,
}

impl Case<'_> {
    /// Sends frames, and expects these. Then either the server fails the connection with a code, or the client closes it.
    fn check(&self, name: &str, cut: Cut, frames: &[Vec<u8>], expected: &[(u8, &[u8])], failure: Option<u16>) {
        let mut peer = Peer::open(self.server, self.path, "");
        let all = frames.concat();
        let pieces: Vec<&[u8]> = match cut {
            Cut::No => vec![&all],
            Cut::Frames => frames.iter().map(|frame| &frame[..]).collect(),
            Cut::Octets => all.chunks(1).collect(),
            Cut::Each(len) => all.chunks(len).collect(),
        };
        let mut writer = peer.stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            // Beside the reader: a large message does not fit into the sockets.
            scope.spawn(move || pieces.iter().all(|piece| writer.write_all(piece).is_ok()));
            for (opcode, payload) in expected {
                let (first, found) = peer.frame().unwrap_or_else(|| panic!("{name}: ended early"));
                assert_eq!(first, FIN | opcode, "{name}: {}", found.escape_ascii());
                assert!(found == *payload, "{name}: {} bytes for {}", found.len(), payload.len());
            }
            if let Some(code) = failure {
                return peer.ends(name, Some(code));
            }
            peer.send(&frame(FIN | CLOSE, &1000_u16.to_be_bytes()));
            peer.ends(name, Some(1000));
        });
    }
}

fn payload(len: usize) -> Vec<u8> {
    vec![b'*'; len]
}

#[test]
fn case_1_framing() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    for (group, opcode, byte) in [(1, TEXT, b'*'), (2, BINARY, 0xfe)] {
        for (number, len) in (1..).zip([0, 125, 126, 127, 128, 65535, 65536, 65536]) {
            let payload = vec![byte; len];
            let cut = if number == 8 { Cut::Each(997) } else { Cut::No };
            let name = format!("1.{group}.{number}");
            case.check(&name, cut, &[frame(FIN | opcode, &payload)], &[(opcode, &payload)], None);
        }
    }
}

#[test]
fn case_2_pings_and_pongs() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    let ping = |payload: &[u8]| frame(FIN | PING, payload);
    let pong = |payload: &[u8]| frame(FIN | PONG, payload);
    case.check("2.1", Cut::No, &[ping(b"")], &[(PONG, b"")], None);
    case.check("2.2", Cut::No, &[ping(b"Hello, world!")], &[(PONG, b"Hello, world!")], None);
    let binary = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff";
    case.check("2.3", Cut::No, &[ping(binary)], &[(PONG, binary)], None);
    let long = [0xfe; 125];
    case.check("2.4", Cut::No, &[ping(&long)], &[(PONG, &long)], None);
    case.check("2.5", Cut::No, &[ping(&[0xfe; 126])], &[], Some(1002));
    case.check("2.6", Cut::Octets, &[ping(&long)], &[(PONG, &long)], None);
    case.check("2.7", Cut::No, &[pong(b"")], &[], None);
    case.check("2.8", Cut::No, &[pong(b"unsolicited pong payload")], &[], None);
    case.check("2.9", Cut::No, &[pong(b"unsolicited"), ping(b"ping payload")], &[(PONG, b"ping payload")], None);
    for (name, cut) in [("2.10", Cut::No), ("2.11", Cut::Octets)] {
        let payloads: Vec<String> = (0..10).map(|number| format!("payload-{number}")).collect();
        let pings: Vec<_> = payloads.iter().map(|payload| ping(payload.as_bytes())).collect();
        let pongs: Vec<_> = payloads.iter().map(|payload| (PONG, payload.as_bytes())).collect();
        case.check(name, cut, &pings, &pongs, None);
    }
}

#[test]
fn case_3_reserved_bits() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    let text = frame(FIN | TEXT, b"Hello, world!");
    let ping = frame(FIN | PING, b"");
    let echo: &[(u8, &[u8])] = &[(TEXT, b"Hello, world!")];
    let reserved = |bits: u8, opcode| frame(FIN | bits << 4 | opcode, b"Hello, world!");
    case.check("3.1", Cut::No, &[reserved(1, TEXT)], &[], Some(1002));
    case.check("3.2", Cut::No, &[text.clone(), reserved(2, TEXT), ping.clone()], echo, Some(1002));
    case.check("3.3", Cut::Frames, &[text.clone(), reserved(3, TEXT), ping.clone()], echo, Some(1002));
    case.check("3.4", Cut::Octets, &[text, reserved(4, TEXT), ping], echo, Some(1002));
    case.check("3.5", Cut::No, &[reserved(5, BINARY)], &[], Some(1002));
    case.check("3.6", Cut::No, &[reserved(6, PING)], &[], Some(1002));
    case.check("3.7", Cut::No, &[reserved(7, CLOSE)], &[], Some(1002));
}

#[test]
fn case_4_opcodes() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    let text = || frame(FIN | TEXT, b"Hello, world!");
    let ping = || frame(FIN | PING, b"");
    let echo: &[(u8, &[u8])] = &[(TEXT, b"Hello, world!")];
    for (group, first) in [(1, 3), (2, 11)] {
        let name = |number: u8| format!("4.{group}.{number}");
        case.check(&name(1), Cut::No, &[frame(FIN | first, b"")], &[], Some(1002));
        case.check(&name(2), Cut::No, &[frame(FIN | (first + 1), b"reserved opcode payload")], &[], Some(1002));
        case.check(&name(3), Cut::Frames, &[text(), frame(FIN | (first + 2), b""), ping()], echo, Some(1002));
        case.check(&name(4), Cut::Frames, &[text(), frame(FIN | (first + 3), b"reserved"), ping()], echo, Some(1002));
        case.check(&name(5), Cut::Octets, &[text(), frame(FIN | (first + 4), b"reserved"), ping()], echo, Some(1002));
    }
}

#[test]
fn case_5_fragmentation() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    let (one, two) = (|| frame(TEXT, b"fragment1"), || frame(FIN, b"fragment2"));
    let ping = || frame(FIN | PING, b"ping payload");
    let whole: (u8, &[u8]) = (TEXT, b"fragment1fragment2");
    let pong: (u8, &[u8]) = (PONG, b"ping payload");
    case.check("5.1", Cut::No, &[frame(PING, b"fragment1"), two()], &[], Some(1002));
    case.check("5.2", Cut::No, &[frame(PONG, b"fragment1"), two()], &[], Some(1002));
    for (number, cut) in (0..).zip([Cut::No, Cut::Frames, Cut::Octets]) {
        let name = |first: usize| format!("5.{}", first + number);
        case.check(&name(3), cut, &[one(), two()], &[whole], None);
        case.check(&name(6), cut, &[one(), ping(), two()], &[pong, whole], None);
        let text = frame(FIN | TEXT, b"Hello, world!");
        case.check(&name(9), cut, &[frame(FIN, b"non-continuation payload"), text.clone()], &[], Some(1002));
        case.check(&name(12), cut, &[frame(0, b"non-continuation payload"), text], &[], Some(1002));
    }
    let text = frame(FIN | TEXT, b"Hello, world!");
    case.check("5.15", Cut::No, &[one(), two(), frame(0, b"fragment3"), text], &[whole], Some(1002));
    for (name, first) in [("5.16", 0), ("5.17", FIN)] {
        let round = || [frame(first, b"fragment1"), frame(TEXT, b"fragment2"), frame(FIN, b"fragment3")];
        case.check(name, Cut::No, &[round(), round()].concat(), &[], Some(1002));
    }
    case.check("5.18", Cut::No, &[one(), frame(FIN | TEXT, b"fragment2")], &[], Some(1002));
    for (name, cut) in [("5.19", Cut::No), ("5.20", Cut::Frames)] {
        let (pings, pongs) = (["pongme 1!", "pongme 2!"], [(PONG, &b"pongme 1!"[..]), (PONG, b"pongme 2!")]);
        let frames = [
            one(),
            frame(0, b"fragment2"),
            frame(FIN | PING, pings[0].as_bytes()),
            frame(0, b"fragment3"),
            frame(0, b"fragment4"),
            frame(FIN | PING, pings[1].as_bytes()),
            frame(FIN, b"fragment5"),
        ];
        let echo = (TEXT, &b"fragment1fragment2fragment3fragment4fragment5"[..]);
        case.check(name, cut, &frames, &[pongs[0], pongs[1], echo], None);
    }
}

/// One octet in each frame.
fn octets(text: &[u8]) -> Vec<Vec<u8>> {
    let last = text.len() - 1;
    let first = |at| if at == 0 { TEXT } else { 0 } | if at == last { FIN } else { 0 };
    text.iter().enumerate().map(|(at, byte)| frame(first(at), &[*byte])).collect()
}

#[test]
fn case_6_utf8() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    case.check("6.1.1", Cut::No, &[frame(FIN | TEXT, b"")], &[(TEXT, b"")], None);
    case.check("6.1.2", Cut::No, &[frame(TEXT, b""), frame(0, b""), frame(FIN, b"")], &[(TEXT, b"")], None);
    case.check("6.1.3", Cut::No, &[frame(TEXT, b""), frame(0, b"mid"), frame(FIN, b"")], &[(TEXT, b"mid")], None);
    let text = "Hello-µ@ßöäüàá-UTF-8!!".as_bytes();
    case.check("6.2.1", Cut::No, &[frame(FIN | TEXT, text)], &[(TEXT, text)], None);
    case.check("6.2.2", Cut::No, &[frame(TEXT, &text[..12]), frame(FIN, &text[12..])], &[(TEXT, text)], None);
    case.check("6.2.3", Cut::No, &octets(text), &[(TEXT, text)], None);
    let kosme = "κόσμε".as_bytes();
    case.check("6.2.4", Cut::No, &octets(kosme), &[(TEXT, kosme)], None);
    let bad = [kosme, b"\xed\xa0\x80edited"].concat();
    case.check("6.3.1", Cut::No, &[frame(FIN | TEXT, &bad)], &[], Some(1007));
    case.check("6.3.2", Cut::No, &octets(&bad), &[], Some(1007));
    let good = |name: &str, texts: &[&[u8]]| {
        for text in texts {
            case.check(name, Cut::No, &[frame(FIN | TEXT, text)], &[(TEXT, text)], None);
        }
    };
    let bad = |name: &str, texts: &[&[u8]]| {
        for text in texts {
            case.check(name, Cut::No, &[frame(FIN | TEXT, text)], &[], Some(1007));
        }
    };
    good("6.5", &[kosme]);
    for len in 1..=kosme.len() {
        let is_good = std::str::from_utf8(&kosme[..len]).is_ok();
        if is_good { good("6.6", &[&kosme[..len]]) } else { bad("6.6", &[&kosme[..len]]) }
    }
    good("6.7", &[b"\0", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"]);
    bad("6.8", &[b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"]);
    good("6.9", &[b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"]);
    bad("6.10", &[b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"]);
    good("6.11", &[b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf"]);
    bad("6.11.5", &[b"\xf4\x90\x80\x80"]);
    bad("6.12", &[b"\x80", b"\xbf", b"\x80\xbf", b"\x80\xbf\x80", b"\x80\xbf\x80\xbf\x80\xbf"]);
    bad("6.13", &[b"\xc0 \xdf ", b"\xe0 \xef ", b"\xf0 \xf7 ", b"\xf8 \xfb ", b"\xfc \xfd "]);
    bad("6.14", &[b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80", b"\xfc\x80\x80\x80\x80"]);
    bad("6.14", &[b"\xdf", b"\xef\xbf", b"\xf7\xbf\xbf", b"\xfb\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf"]);
    bad("6.15", &[b"\xc0\xe0\x80\xf0\x80\x80\xf8\x80\x80\x80\xfc\x80\x80\x80\x80\xdf\xef\xbf\xf7\xbf\xbf"]);
    bad("6.16", &[b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"]);
    bad("6.17", &[b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x80\x80\x80\xaf"]);
    bad("6.18", &[b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf8\x87\xbf\xbf\xbf"]);
    bad("6.19", &[b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf8\x80\x80\x80\x80"]);
    bad(
        "6.20",
        &[b"\xed\xa0\x80", b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf", b"\xed\xb0\x80", b"\xed\xbf\xbf"],
    );
    bad("6.21", &[b"\xed\xa0\x80\xed\xb0\x80", b"\xed\xad\xbf\xed\xbf\xbf", b"\xed\xaf\xbf\xed\xb0\x80"]);
    good("6.22", &[b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xf0\x9f\xbf\xbe", b"\xf4\x8f\xbf\xbe", b"\xf4\x8f\xbf\xbf"]);
    good("6.23", &["\u{fff9}\u{fffa}\u{fffd}".as_bytes()]);
}

/// The connection fails at the first octet that no further one can mend, although neither message nor frame is complete.
#[test]
fn case_6_4_fails_fast() {
    let server = server();
    let kosme = "κόσμε".as_bytes();
    let fails = |name: &str, pieces: &[Vec<u8>]| {
        let mut peer = Peer::open(&server, "/t/ws", "");
        for piece in pieces {
            peer.send(piece);
            peer.stream.flush().unwrap();
        }
        peer.ends(name, Some(1007));
    };
    fails("6.4.1", &[frame(TEXT, kosme), frame(0, b"\xf4\x90\x80\x80")]);
    fails("6.4.2", &[frame(TEXT, &[kosme, b"\xf4"].concat()), frame(0, b"\x90")]);
    // One frame, of which the rest never comes.
    let whole = frame(FIN | TEXT, &[kosme, b"\xf4\x90\x80\x80edited"].concat());
    let head = whole.len() - kosme.len() - 10;
    fails("6.4.3", &[whole[..head + kosme.len()].to_vec(), whole[head + kosme.len()..][..4].to_vec()]);
    fails("6.4.4", &[whole[..head + kosme.len() + 1].to_vec(), whole[head + kosme.len() + 1..][..1].to_vec()]);
}

#[test]
fn case_7_close() {
    let server = server();
    let ends = |name: &str, frames: &[Vec<u8>], echoes: &[(u8, &[u8])], code: Option<u16>| {
        let mut peer = Peer::open(&server, "/t/ws", "");
        let mut writer = peer.stream.try_clone().unwrap();
        let bytes = frames.concat();
        std::thread::scope(|scope| {
            scope.spawn(move || writer.write_all(&bytes));
            for (opcode, payload) in echoes {
                assert_eq!(peer.frame().unwrap(), (FIN | opcode, payload.to_vec()), "{name}");
            }
            peer.ends(name, code);
        });
    };
    let close = |code: u16, reason: &[u8]| frame(FIN | CLOSE, &[&code.to_be_bytes(), reason].concat());
    let text = || frame(FIN | TEXT, b"Hello World!");
    let echo: (u8, &[u8]) = (TEXT, b"Hello World!");
    ends("7.1.1", &[text(), close(1000, b"")], &[echo], Some(1000));
    ends("7.1.2", &[close(1000, b""), close(1000, b"")], &[], Some(1000));
    ends("7.1.3", &[close(1000, b""), frame(FIN | PING, b"")], &[], Some(1000));
    ends("7.1.4", &[close(1000, b""), text()], &[], Some(1000));
    ends("7.1.5", &[frame(TEXT, b"fragment1"), close(1000, b""), frame(FIN, b"fragment2")], &[], Some(1000));
    let large = payload(256 * 1024);
    let frames = [frame(FIN | TEXT, &large), text(), close(1000, b""), frame(FIN | PING, b"")];
    ends("7.1.6", &frames, &[(TEXT, &large), echo], Some(1000));
    ends("7.3.1", &[frame(FIN | CLOSE, b"")], &[], None);
    ends("7.3.2", &[frame(FIN | CLOSE, b"a")], &[], Some(1002));
    ends("7.3.3", &[close(1000, b"")], &[], Some(1000));
    ends("7.3.4", &[close(1000, b"Hello World!")], &[], Some(1000));
    ends("7.3.5", &[close(1000, &payload(123))], &[], Some(1000));
    ends("7.3.6", &[close(1000, &payload(124))], &[], Some(1002));
    ends("7.5.1", &[close(1000, b"\xce\xba\xed\xa0\x80edited")], &[], Some(1007));
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999] {
        ends(&format!("7.7, {code}"), &[close(code, b"")], &[], Some(code));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        ends(&format!("7.9 and 7.13, {code}"), &[close(code, b"")], &[], Some(1002));
    }
}

#[test]
fn case_9_sizes() {
    let server = server();
    let case = Case { server: &server, path: "/t/ws" };
    for (group, opcode) in [(1, TEXT), (2, BINARY)] {
        for (number, kib) in (1..).zip([64, 256, 1024, 4096, 8192, 16384]) {
            let payload = payload(kib * 1024);
            let frames = [frame(FIN | opcode, &payload)];
            case.check(&format!("9.{group}.{number}"), Cut::No, &frames, &[(opcode, &payload)], None);
        }
        let payload = payload(4096 * 1024);
        for (number, len) in (1..).zip([64, 256, 1024, 4096, 16384, 65536, 262_144, 1_048_576, 4_194_304]) {
            let last = payload.len() / len - 1;
            let first = |at| if at == 0 { opcode } else { 0 } | if at == last { FIN } else { 0 };
            let frames: Vec<_> = payload.chunks(len).enumerate().map(|(at, piece)| frame(first(at), piece)).collect();
            case.check(&format!("9.{}.{number}", group + 2), Cut::No, &frames, &[(opcode, &payload)], None);
        }
        let payload = &payload[..1024 * 1024];
        for (number, len) in (1..).zip([64, 128, 256, 512, 1024, 2048]) {
            let frames = [frame(FIN | opcode, payload)];
            case.check(&format!("9.{}.{number}", group + 4), Cut::Each(len), &frames, &[(opcode, payload)], None);
        }
        for (number, len) in (1..).zip([0, 16, 64, 256, 1024, 4096]) {
            let mut peer = Peer::open(&server, "/t/ws", "");
            let sent = frame(FIN | opcode, &payload[..len]);
            for _ in 0..1000 {
                peer.send(&sent);
                assert_eq!(peer.frame().unwrap(), (FIN | opcode, payload[..len].to_vec()), "9.{}.{number}", group + 6);
            }
        }
    }
}

#[test]
fn case_10_automatic_fragmentation() {
    let server = server();
    let payload = payload(65536);
    let last = payload.len().div_ceil(1300) - 1;
    let first = |at| if at == 0 { TEXT } else { 0 } | if at == last { FIN } else { 0 };
    let frames: Vec<_> = payload.chunks(1300).enumerate().map(|(at, piece)| frame(first(at), piece)).collect();
    Case { server: &server, path: "/t/ws" }.check("10.1.1", Cut::No, &frames, &[(TEXT, &payload)], None);
}

#[test]
fn messages_are_bounded() {
    let server = server();
    let case = Case { server: &server, path: "/t/small" };
    case.check("1000 bytes", Cut::No, &[frame(FIN | TEXT, &payload(1000))], &[(TEXT, &payload(1000))], None);
    case.check("1001 bytes", Cut::No, &[frame(FIN | TEXT, &payload(1001))], &[], Some(1009));
    let fragments = [frame(TEXT, &payload(600)), frame(0, &payload(400)), frame(FIN, b"x")];
    case.check("fragments of 1001 bytes", Cut::No, &fragments, &[], Some(1009));
    case.check("no mask", Cut::No, &[b"\x81\x02hi".to_vec()], &[], Some(1002));
}

/// A client's side of permessage-deflate.
struct Deflate {
    compress: flate2::Compress,
    decompress: flate2::Decompress,
    /// Whether messages refer to earlier ones: the client's, the server's.
    contexts: [bool; 2],
}

impl Deflate {
    fn of(head: &str) -> Self {
        assert!(head.contains("sec-websocket-extensions: permessage-deflate"), "{head}");
        let contexts = ["client_no_context_takeover", "server_no_context_takeover"].map(|name| !head.contains(name));
        let compress = flate2::Compress::new(flate2::Compression::fast(), false);
        Self { compress, decompress: flate2::Decompress::new(false), contexts }
    }

    fn deflate(&mut self, message: &[u8]) -> Vec<u8> {
        if !self.contexts[0] {
            self.compress.reset();
        }
        if message.is_empty() {
            return vec![0];
        }
        let mut out = Vec::with_capacity(message.len() + 1000);
        self.compress.compress_vec(message, &mut out, flate2::FlushCompress::Sync).unwrap();
        assert!(out.ends_with(b"\0\0\xff\xff"));
        out.truncate(out.len() - 4);
        out
    }

    fn inflate(&mut self, deflated: &[u8], len: usize) -> Vec<u8> {
        if !self.contexts[1] {
            self.decompress.reset(false);
        }
        let mut out = Vec::with_capacity(len + 1000);
        let bytes = [deflated, b"\0\0\xff\xff"].concat();
        self.decompress.decompress_vec(&bytes, &mut out, flate2::FlushDecompress::Sync).unwrap();
        out
    }
}

#[test]
fn cases_12_and_13_compression() {
    let server = server();
    let words = "{\"AutobahnPython\": \"0.6.0\", \"numbers\": [1, 2, 3], \"text\": \"κόσμε\"}\n".repeat(2000);
    for path in ["/t/deflate", "/t/deflate-context"] {
        for offer in [
            "permessage-deflate",
            "permessage-deflate; client_no_context_takeover; client_max_window_bits",
            "permessage-deflate; server_no_context_takeover",
            "permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
            "permessage-deflate; server_max_window_bits=99, permessage-deflate; server_max_window_bits=15",
        ] {
            let mut peer = Peer::open(&server, path, &format!("Sec-WebSocket-Extensions: {offer}\r\n"));
            let mut deflate = Deflate::of(&peer.head);
            for len in [16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 0, 131_072, 31, 32].repeat(4) {
                let len = words.floor_char_boundary(len);
                let deflated = deflate.deflate(&words.as_bytes()[..len]);
                // In two fragments, with a ping between them that is not compressed.
                let (one, two) = deflated.split_at(deflated.len() / 2);
                peer.send(&[frame(0x40 | TEXT, one), frame(FIN | PING, b"!"), frame(FIN, two)].concat());
                assert_eq!(peer.frame().unwrap(), (FIN | PONG, b"!".to_vec()));
                let (first, found) = peer.frame().unwrap();
                let is_compressed = len >= http_server::tuning::WS_COMPRESS_MIN;
                assert_eq!(first, FIN | TEXT | u8::from(is_compressed) << 6, "{path} {offer} {len}");
                let found = if is_compressed { deflate.inflate(&found, len) } else { found };
                assert!(found == words.as_bytes()[..len], "{path} {offer} {len}");
            }
        }
    }
    // A client that offers nothing gets nothing.
    let plain = Peer::open(&server, "/t/deflate", "");
    assert!(!plain.head.contains("sec-websocket-extensions"), "{}", plain.head);
    let bomb = |what: &str, first: u8, bytes: &[u8], code: u16| {
        let mut peer = Peer::open(&server, "/t/deflate", "Sec-WebSocket-Extensions: permessage-deflate\r\n");
        peer.send(&frame(first, bytes));
        peer.ends(what, Some(code));
    };
    let mut deflate = Deflate::of("sec-websocket-extensions: permessage-deflate");
    let mut zeros = Vec::new();
    (0..80).for_each(|_| zeros.extend([deflate.deflate(&vec![0; 1024 * 1024]), b"\0\0\xff\xff".to_vec()].concat()));
    bomb("a bomb", FIN | 0x40 | BINARY, &zeros, 1009);
    bomb("no deflate", FIN | 0x40 | TEXT, b"\xff\xff\xff\xff", 1007);
    bomb("a compressed ping", FIN | 0x40 | PING, b"", 1002);
    let mut latin = Deflate::of("sec-websocket-extensions: permessage-deflate");
    bomb("no UTF-8", FIN | 0x40 | TEXT, &latin.deflate(b"abc\xffabc"), 1007);
}
