//! Peers that send far more than they should: the connection ends, before it has cost much.

use std::time::Duration;

use http2::frame::{END_HEADERS, END_STREAM, Kind};
use http2::hpack::{Encoder, Field};
use http2::{Config, Reason};

use crate::support::{Engine, Seen, data, headers, put, request, rst_stream, settings, window_update};

/// Sends a flood and reads all answers; how many rounds it takes until the connection ends.
fn rounds(most: u32, mut round: impl FnMut(u32) -> Vec<u8>) -> Option<u32> {
    let mut engine = Engine::open(&Config::default());
    for number in 0..most {
        let result = engine.send(&round(number));
        engine.take_output();
        match result {
            Ok(seen) => {
                for seen in seen {
                    match seen {
                        Seen::Data { stream, data, .. } => engine.connection.release(stream, data.len()),
                        Seen::TooLarge { stream, .. } => engine.connection.refuse_large(stream),
                        _ => {}
                    }
                }
            }
            Err(error) => {
                assert_eq!(error.reason, Reason::ENHANCE_YOUR_CALM);
                return Some(number);
            }
        }
    }
    None
}

#[test]
fn floods_end() {
    fn check(what: &str, round: impl FnMut(u32) -> Vec<u8>) {
        let rounds = rounds(30_000, round);
        assert!(rounds.is_some_and(|rounds| rounds <= 10_100), "{what}: {rounds:?}");
    }
    check("PING", |number| put(Kind::Ping, 0, 0, &u64::from(number).to_be_bytes()));
    check("SETTINGS", |number| settings(&[(4, number)]));
    check("WINDOW_UPDATE", |_| window_update(0, 1));
    check("PRIORITY", |_| put(Kind::Priority, 0, 1, &[0; 5]));
    check("PRIORITY_UPDATE", |number| put(Kind::PriorityUpdate, 0, 0, &(1 + 2 * number).to_be_bytes()));
    check("GOAWAY", |_| put(Kind::GoAway, 0, 0, &[0; 8]));
    check("unknown frames", |_| put(Kind::Unknown, 0, 0, b"x"));
    check("rapid reset", |number| [headers(1 + 2 * number, true), rst_stream(1 + 2 * number, Reason::CANCEL)].concat());
    check("requests that are too many", |number| headers(1 + 2 * number, false));
    check("malformed requests", |number| put(Kind::Headers, END_HEADERS | END_STREAM, 1 + 2 * number, &[0x82]));
    check("heads that are too large", |number| put(Kind::Headers, END_HEADERS, 1 + 2 * number, &[0x82; 600]));
    check("heads that are too large behind their target", |number| {
        frames_of(1 + 2 * number, &large_head(20_000), true)
    });
    check("empty DATA", |number| if number == 0 { headers(1, false) } else { data(1, &[], false) });
    check("padding", |number| if number == 0 { headers(1, false) } else { put(Kind::Data, 8, 1, &[0]) });
    check("empty CONTINUATION", |number| match number {
        0 => put(Kind::Headers, 0, 1, &request()),
        _ => put(Kind::Continuation, 0, 1, &[]),
    });
    check("CONTINUATION", |number| match number {
        0 => put(Kind::Headers, 0, 1, &request()),
        _ => put(Kind::Continuation, 0, 1, &[0, 1, b'x', 1, b'y']),
    });
    check("DATA for a stream that we have ended", |number| match number {
        // Too large a head: it is answered, and the stream reset.
        0 => put(Kind::Headers, END_HEADERS, 1, &[0x82; 600]),
        _ => data(1, b"", false),
    });
    check("DATA for a stream that is over", |number| match number {
        0 => [headers(1, false), rst_stream(1, Reason::CANCEL)].concat(),
        _ => data(1, b"", false),
    });
}

#[test]
fn credit_comes_back_with_time() {
    let mut engine = Engine::open(&Config { max_control_frames: 100, ..Config::default() });
    for _ in 0..20 {
        engine.now += Duration::from_secs(1);
        for _ in 0..95 {
            engine.send(&put(Kind::Ping, 0, 0, &[0; 8])).unwrap();
        }
        engine.take_output();
    }
    let result = (0..200).try_for_each(|_| engine.send(&put(Kind::Ping, 0, 0, &[0; 8])).map(drop));
    assert_eq!(result.unwrap_err().reason, Reason::ENHANCE_YOUR_CALM);
}

#[test]
fn header_bombs_are_refused_and_forgotten() {
    let mut engine = Engine::open(&Config::default());
    // A field of 4,000 bytes for the table, and then a byte for each time that it is there again.
    let mut bomb = request();
    bomb.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend_from_slice(&[b'y'; 4000]);
    bomb.extend_from_slice(&[0xbe; 10_000]);
    let seen = engine.send(&put(Kind::Headers, END_HEADERS, 1, &bomb)).unwrap();
    let [Seen::TooLarge { stream, path: Some(path), end: false }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(path, "/x");
    engine.connection.refuse_large(*stream);
    let frames = engine.take_output();
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream)).collect();
    assert_eq!(kinds, [(Kind::Headers, 1), (Kind::RstStream, 1)]);
    assert_eq!(frames[1].reason(), Reason::NO_ERROR);
    // The table is as the peer thinks it is.
    let mut block = request();
    block.push(0xbe);
    let seen = engine.send(&put(Kind::Headers, END_HEADERS | END_STREAM, 3, &block)).unwrap();
    assert!(matches!(seen[..], [Seen::Request { fields: 1, .. }]), "{seen:?}");
}

#[test]
fn a_block_without_end_is_too_large_at_last() {
    for (max_headers, most) in [(1000, 256 * 1024), (1 << 20, (1 << 21) + 16_384)] {
        let mut engine = Engine::open(&Config { max_headers, ..Config::default() });
        engine.send(&put(Kind::Headers, 0, 1, &request())).unwrap();
        let piece = put(Kind::Continuation, 0, 1, &[0; 16_384]);
        let count = (0..1000).take_while(|_| engine.send(&piece).is_ok()).count();
        assert_eq!(count, (most - request().len()) / 16_384);
    }
}

/// The block of a usual request with one field of so many bytes more, which goes to the header table if it fits, and one behind it.
fn large_head(size: usize) -> Vec<u8> {
    let mut block = request();
    Encoder::new().encode([Field::once(b"x", &vec![b'y'; size])].into_iter(), &mut block);
    // `kept: table`, with indexing.
    block.extend_from_slice(b"\x40\x04kept\x05table");
    block
}

/// HEADERS and as many CONTINUATION as the block takes.
fn frames_of(stream: u32, block: &[u8], end: bool) -> Vec<u8> {
    let pieces: Vec<&[u8]> = block.chunks(16_384).collect();
    let frames = pieces.iter().enumerate().map(|(at, piece)| {
        let kind = if at == 0 { Kind::Headers } else { Kind::Continuation };
        let last = if at + 1 == pieces.len() { END_HEADERS } else { 0 };
        put(kind, last | if at == 0 && end { END_STREAM } else { 0 }, stream, piece)
    });
    frames.collect::<Vec<_>>().concat()
}

/// Heads and trailers beyond the limit end their request and leave everything else as it was, the header table included.
#[test]
fn large_heads_end_their_request_alone() {
    for size in [17_000, 70_000, 200_000] {
        for is_trailers in [false, true] {
            let mut engine = Engine::open(&Config::default());
            let neighbour = engine.begin(1, false);
            let seen = if is_trailers {
                engine.begin(3, false);
                let block = large_head(size).split_off(request().len());
                engine.send(&frames_of(3, &block, true)).unwrap()
            } else {
                engine.send(&frames_of(3, &large_head(size), true)).unwrap()
            };
            let [Seen::TooLarge { stream, path, end: true }] = &seen[..] else { panic!("{seen:?}") };
            assert_eq!(path.is_none(), is_trailers);
            engine.connection.refuse_large(*stream);
            let kinds: Vec<_> = engine.take_output().iter().map(|frame| (frame.kind, frame.stream)).collect();
            assert_eq!(kinds, [(Kind::Headers, 3)]);
            // The neighbour goes on, and the table has what stood behind the limit: its newest entry is 62.
            assert!(engine.connection.is_alive(neighbour));
            let block = [request(), vec![0xbe]].concat();
            let seen = engine.send(&put(Kind::Headers, END_HEADERS | END_STREAM, 5, &block)).unwrap();
            assert!(matches!(seen[..], [Seen::Request { fields: 1, .. }]), "{seen:?}");
        }
    }
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let mut engine = Engine::open(&Config { max_streams: 3, ..Config::default() });
    for number in [1, 3, 5] {
        engine.begin(number, false);
    }
    assert_eq!(engine.send(&headers(7, true)).unwrap(), []);
    assert_eq!(engine.take_output()[0].reason(), Reason::REFUSED_STREAM);
    engine.send(&rst_stream(3, Reason::CANCEL)).unwrap();
    engine.begin(9, true);
}

/// A client that takes an answer byte by byte makes a frame of each byte (CVE-2019-9511).
#[test]
fn windows_of_a_byte() {
    let mut engine = Engine::open(&Config::default());
    engine.send(&settings(&[(4, 0)])).unwrap();
    let stream = engine.begin(1, true);
    engine.connection.send_head(stream, 200, std::iter::empty(), false).unwrap();
    let (body, mut sent) = ([b'x'; 20_000], 0);
    let error = loop {
        if let Err(error) = engine.send(&window_update(1, 1)) {
            break error;
        }
        sent += engine.connection.send_data(stream, &body[sent..], true).unwrap();
        engine.take_output();
    };
    assert_eq!(error.reason, Reason::ENHANCE_YOUR_CALM);
    assert!((10_000..10_100).contains(&sent), "{sent}");
}
