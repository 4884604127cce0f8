//! Clients that send or take a byte now and then: the same time-outs end them, over any protocol.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use quinn::{ReadError, TransportConfig};

use crate::http3::{Peer, run};
use crate::support::{PATIENCE, Server, folder, options, until};

/// Time-outs short enough for a test, but for the one of idle connections.
fn impatient(options: &mut http_server::Options) {
    let short = Duration::from_millis(300);
    options.timeouts.idle = PATIENCE * 4;
    (options.timeouts.head, options.timeouts.body, options.timeouts.write) = (short, short, short);
}

fn server() -> Server {
    let mut options = options();
    impatient(&mut options);
    Server::with(options)
}

/// Between two bytes.
const PAUSE: Duration = Duration::from_millis(50);

/// A frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) const SETTINGS: u8 = 4;
pub(crate) const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// `:method: GET`, `:scheme: http`, `:authority: h`, and this path.
fn get(path: &str) -> Vec<u8> {
    [&[0x82, 0x86, 0x41, 1, b'h', 0x04, path.len() as u8][..], path.as_bytes()].concat()
}

/// A connection of HTTP/2 that has begun with these settings.
fn http2(server: &Server, settings: &[u8]) -> TcpStream {
    let mut stream = server.client().stream;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
    stream
}

/// Sends this, and then bytes for ever, until the server has closed the connection: soon, and not by any time-out but the short ones.
#[track_caller]
fn check_cut(server: &Server, mut stream: TcpStream, begin: &[u8], rest: impl Iterator<Item = Vec<u8>>) {
    let began = Instant::now();
    stream.write_all(begin).unwrap();
    until(|| server.running.connections() == 1);
    for bytes in rest {
        if stream.write_all(&bytes).is_err() || server.running.connections() == 0 {
            break;
        }
        std::thread::sleep(PAUSE);
        assert!(began.elapsed() < PATIENCE, "it goes on for ever");
    }
    until(|| server.running.connections() == 0);
}

/// A head of HTTP/2 that is never whole, in frames and within one, on a connection that is new, idle, or has a request under way.
#[test]
fn heads_of_http2() {
    let server = server();
    let request = frame(HEADERS, END_STREAM | END_HEADERS, 1, &get("/"));
    let upload = frame(HEADERS, END_HEADERS, 1, &[&[0x83, 0x86, 0x41, 1, b'h', 0x04, 7][..], b"/t/echo"].concat());
    for before in [Vec::new(), request, upload] {
        // CONTINUATION frames of a byte each: a literal field whose value is a kilobyte.
        let head = frame(HEADERS, 0, 3, &[&get("/")[..], &[0x00, 1, b'x', 0x7f, 0xe9, 0x06]].concat());
        let pieces = std::iter::repeat_with(|| frame(CONTINUATION, 0, 3, b"y"));
        check_cut(&server, http2(&server, &[]), &[&before[..], &head].concat(), pieces);
        // A frame of a kilobyte that comes byte by byte.
        let head = frame(HEADERS, END_STREAM | END_HEADERS, 3, &[b'y'; 1024]);
        let bytes = head[9..].iter().copied().map(|byte| vec![byte]);
        check_cut(&server, http2(&server, &[]), &[&before[..], &head[..9]].concat(), bytes);
    }
}

/// A client that sends heads as fast as it can is not cut, however often a head is incomplete when the server looks.
#[test]
fn heads_of_http2_that_come_in_halves() {
    let server = server();
    let mut stream = http2(&server, &[]);
    let (mut number, began) = (1, Instant::now());
    while began.elapsed() < Duration::from_secs(2) {
        let request = frame(HEADERS, END_STREAM | END_HEADERS, number, &get("/"));
        let (first, second) = request.split_at(12);
        stream.write_all(first).unwrap();
        std::thread::sleep(PAUSE);
        // The rest of it, and half of the next one.
        let next = frame(HEADERS, END_STREAM | END_HEADERS, number + 2, &get("/"));
        stream.write_all(&[second, &next[..12]].concat()).unwrap();
        std::thread::sleep(PAUSE);
        stream.write_all(&next[12..]).unwrap();
        number += 4;
    }
    assert_eq!(server.running.connections(), 1);
}

/// Whether the stream of a client whose window grows by so many bytes at a time is reset within this time.
fn is_reset(increment: u32, within: Duration) -> bool {
    let server = server();
    // SETTINGS_INITIAL_WINDOW_SIZE of a byte.
    let mut stream = http2(&server, &[0, 4, 0, 0, 0, 1]);
    stream.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &get("/t/big"))).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        let update = frame(WINDOW_UPDATE, 0, 1, &increment.to_be_bytes());
        let began = Instant::now();
        while began.elapsed() < PATIENCE && writer.write_all(&update).is_ok() {
            std::thread::sleep(PAUSE);
        }
    });
    let began = Instant::now();
    let is_reset = loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == RST_STREAM || began.elapsed() > within {
            break head[3] == RST_STREAM;
        }
    };
    stream.shutdown(Shutdown::Both).unwrap();
    until(|| server.running.connections() == 0);
    dripping.join().unwrap();
    is_reset
}

/// A client that takes a byte at a time is given up, and one that takes 20 kB/s is not, 133 times what it must take within the time-out.
#[test]
fn windows_of_http2() {
    assert!(is_reset(1, PATIENCE / 2), "it goes on for ever");
    assert!(!is_reset(1000, Duration::from_secs(2)), "it takes enough");
}

/// One that takes a byte now and then of what has come over HTTP/1.1.
#[test]
fn answers_of_http1() {
    let server = server();
    let mut client = server.client();
    socket2::SockRef::from(&client.stream).set_recv_buffer_size(4096).unwrap();
    client.send("GET /t/big HTTP/1.1\r\nHost: h\r\n\r\n");
    until(|| server.running.connections() == 1);
    let began = Instant::now();
    while server.running.connections() > 0 {
        client.stream.read_exact(&mut [0]).unwrap();
        std::thread::sleep(PAUSE);
        assert!(began.elapsed() < PATIENCE, "it goes on for ever");
    }
}

/// True if a connection outlasts this time that takes `len` bytes each [`PAUSE`] of a file, which the system sends from its cache. The file is larger
/// than the buffers of both sockets.
fn file_outlasts(len: usize, time: Duration) -> bool {
    let root = folder("trickles");
    std::fs::write(root.join("big.bin"), vec![b'x'; 64_000_000]).unwrap();
    let mut options = http_server::Options::listening("127.0.0.1:0".parse().unwrap());
    options.timeouts.write = Duration::from_secs(2);
    let server = Server::try_serving(http_server::routes::files(&root).unwrap(), options).unwrap();
    let mut client = server.client();
    client.send("GET /big.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    until(|| server.running.connections() == 1);
    let (began, mut piece) = (Instant::now(), vec![0; len]);
    while server.running.connections() > 0 && began.elapsed() < time {
        client.stream.read_exact(&mut piece).unwrap();
        std::thread::sleep(PAUSE);
    }
    server.running.connections() > 0
}

#[test]
fn files_of_http1() {
    assert!(!file_outlasts(1, PATIENCE), "it goes on for ever");
    assert!(file_outlasts(5000, Duration::from_secs(5)), "it takes enough");
}

/// The same of HTTP/3: a head that is never whole, and an answer that is taken byte by byte.
#[test]
fn heads_and_answers_of_http3() {
    let peer = Peer::with(impatient);
    run(async {
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(1000_u32.into());
        let raw = peer.raw_with(transport).await;
        let (mut send, mut receive) = raw.request(&[1, 0x43, 0xff]).await;
        let dripping = async {
            while send.write_all(&[0]).await.is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let (ended, ()) = tokio::join!(receive.read_to_end(1000), dripping);
        assert!(matches!(ended, Err(quinn::ReadToEndError::Read(ReadError::Reset(_)))), "{ended:?}");
        let (_send, mut receive) = raw.request(&crate::http3::get_of("/t/big", &[])).await;
        let ended = loop {
            match receive.read_chunk(1, true).await {
                Ok(Some(_)) => tokio::time::sleep(PAUSE).await,
                other => break other,
            }
        };
        assert!(matches!(ended, Err(ReadError::Reset(_))), "{ended:?}");
        // One that takes 160 kB/s is not cut: pieces of 16 KiB, each within 0.3 s, ask for 55 kB/s.
        let (_send, mut receive) = raw.request(&crate::http3::get_of("/t/big", &[])).await;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            for _ in 0..8 {
                assert!(matches!(receive.read_chunk(1000, true).await, Ok(Some(_))), "after {:?}", began.elapsed());
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}
