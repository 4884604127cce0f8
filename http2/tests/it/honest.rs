//! Clients that do all that the protocol allows, as fast as they can: no time passes between their frames, and none is cut off.
//!
//! Each row is what one round trip looks like on the wire. `budget.rs` has the same clients for a million rounds, as counts.

use http2::frame::{END_HEADERS, Kind};
use http2::hpack::Field;
use http2::{Config, Reason, StreamId};

use crate::support::{Engine, Seen, data, headers, put, request, rst_stream, settings, window_update};

/// Ten times the frames that may come in a second without any credit.
const ROUNDS: u32 = 100_000;

/// A client and a program that answers it.
struct Client {
    engine: Engine,
    /// Frames of answers that have arrived.
    heads: u32,
    pieces: u32,
    resets: u32,
}

impl Client {
    fn open(config: &Config) -> Self {
        Self { engine: Engine::open(config), heads: 0, pieces: 0, resets: 0 }
    }

    /// Sends frames; the streams of requests that have begun.
    fn send(&mut self, frames: &[Vec<u8>]) -> Vec<StreamId> {
        let seen = self.engine.send(&frames.concat()).expect("an honest client is not cut off");
        let mut begun = Vec::new();
        for seen in seen {
            match seen {
                Seen::Request { stream, .. } => begun.push(stream),
                Seen::Data { stream, data, .. } => self.engine.connection.release(stream, data.len()),
                _ => {}
            }
        }
        begun
    }

    fn head(&mut self, stream: StreamId) {
        let fields = [Field::new(b"content-type", b"application/grpc")];
        self.engine.connection.send_head(stream, 200, fields.into_iter(), false).unwrap();
    }

    fn message(&mut self, stream: StreamId, bytes: &[u8], end: bool) -> usize {
        self.engine.connection.send_data(stream, bytes, end).unwrap()
    }

    fn trailers(&mut self, stream: StreamId) {
        self.engine.connection.send_trailers(stream, [Field::new(b"grpc-status", b"0")].into_iter()).unwrap();
    }

    /// Reads all answers.
    fn read(&mut self) {
        for frame in self.engine.take_output() {
            match frame.kind {
                Kind::Headers => self.heads += 1,
                Kind::Data => self.pieces += 1,
                Kind::RstStream => self.resets += 1,
                _ => assert_ne!(frame.kind, Kind::GoAway),
            }
        }
    }
}

fn ping() -> Vec<u8> {
    put(Kind::Ping, 0, 0, b"bdp ping")
}

/// grpc-go and gRPC's C core measure the round trip with every message, and give the windows back at once.
#[test]
fn a_stream_of_ping_pong() {
    let mut client = Client::open(&Config::default());
    let stream = client.send(&[headers(1, false)])[0];
    client.head(stream);
    for _ in 0..ROUNDS {
        client.send(&[data(1, b"\0\0\0\0\x05hello", false)]);
        client.message(stream, b"\0\0\0\0\x05hello", false);
        client.read();
        client.send(&[window_update(0, 10), window_update(1, 10), ping()]);
    }
    assert_eq!((client.heads, client.pieces), (1, ROUNDS));
}

#[test]
fn short_calls() {
    let mut client = Client::open(&Config::default());
    for number in 0..ROUNDS {
        let call = 1 + 2 * number;
        let stream = client.send(&[headers(call, false), data(call, b"hello", false), data(call, b"", true)])[0];
        client.head(stream);
        client.message(stream, b"hello", false);
        client.trailers(stream);
        client.read();
        client.send(&[window_update(0, 5), window_update(call, 5), ping()]);
    }
    assert_eq!((client.heads, client.pieces), (2 * ROUNDS, ROUNDS));
}

/// One call of two is given up at once, or, in the second run, behind the answer's head.
#[test]
fn every_second_call_is_cancelled() {
    for has_head in [false, true] {
        let mut client = Client::open(&Config::default());
        for number in 0..ROUNDS {
            let (given_up, call) = (1 + 4 * number, 3 + 4 * number);
            let begun = client.send(&[headers(given_up, false), headers(call, true)]);
            if has_head {
                client.head(begun[0]);
            }
            client.send(&[rst_stream(given_up, Reason::CANCEL)]);
            client.head(begun[1]);
            client.message(begun[1], b"hello", true);
            client.read();
            client.send(&[window_update(0, 5)]);
        }
        assert_eq!(client.pieces, ROUNDS);
    }
}

/// Messages that were on their way when the server ended the call.
#[test]
fn messages_that_come_too_late() {
    let mut client = Client::open(&Config::default());
    for number in 0..ROUNDS / 10 {
        let call = 1 + 2 * number;
        let stream = client.send(&[headers(call, false), data(call, b"hello", false)])[0];
        client.head(stream);
        client.trailers(stream);
        client.engine.connection.reset(stream, Reason::NO_ERROR);
        let late: Vec<Vec<u8>> = (0..100).map(|_| data(call, b"hello", false)).collect();
        client.send(&late);
        client.read();
    }
    assert_eq!((client.heads, client.resets), (2 * (ROUNDS / 10), ROUNDS / 10));
}

/// An answer of a megabyte through windows of 256 bytes, each given back when it is used up.
#[test]
fn windows_of_256_bytes() {
    let mut client = Client::open(&Config::default());
    // The connection's window is used up, so that it is as small.
    client.send(&[settings(&[(4, 65_535)])]);
    let first = client.send(&[headers(1, true)])[0];
    client.head(first);
    client.read();
    assert_eq!(client.message(first, &[0; 65_535], true), 65_535);
    client.read();
    client.send(&[settings(&[(4, 0)])]);
    let stream = client.send(&[headers(3, true)])[0];
    client.head(stream);
    let (body, mut sent) = (vec![b'x'; ROUNDS as usize * 256], 0);
    while sent < body.len() {
        client.send(&[window_update(0, 256), window_update(3, 256)]);
        sent += client.message(stream, &body[sent..], true);
        client.read();
    }
    assert!(!client.engine.connection.is_alive(stream));
}

/// A field that fills several frames with each request.
#[test]
fn long_heads() {
    let mut client = Client::open(&Config::default());
    // `x`, without indexing, of 8,000 bytes.
    let field = [&[0, 1, b'x', 0x7f, 0xc1, 0x3d][..], &[b'y'; 8000]].concat();
    let block = [request(), field].concat();
    let (first, rest) = block.split_at(100);
    for number in 0..ROUNDS {
        let call = 1 + 2 * number;
        let mut frames = vec![put(Kind::Headers, 1, call, first)];
        let pieces = rest.chunks(1000).collect::<Vec<_>>();
        for (at, piece) in pieces.iter().enumerate() {
            let flags = if at + 1 == pieces.len() { END_HEADERS } else { 0 };
            frames.push(put(Kind::Continuation, flags, call, piece));
        }
        let stream = client.send(&frames)[0];
        client.head(stream);
        client.message(stream, b"hello", true);
        client.read();
        client.send(&[window_update(0, 5)]);
    }
    assert_eq!((client.heads, client.pieces), (ROUNDS, ROUNDS));
}
