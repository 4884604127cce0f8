//! Any bytes: nothing panics, limits hold, and all that is sent are frames.

use http2::hpack::Field;
use http2::{Config, PREFACE, Reason};

use crate::support::{Engine, Seen};

/// Feeds bytes in pieces, answers what is asked, and looks whether all that is sent are frames.
pub(crate) fn run(bytes: &[u8], piece: usize) {
    let mut engine = Engine::new(&Config { max_streams: 4, max_output: 3000, ..Config::default() });
    engine.piece = piece.max(1);
    if !bytes.starts_with(b"P") {
        let _ = engine.send(&[&PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat());
    }
    let mut result = engine.send(bytes);
    while let Ok(seen) = result {
        for seen in &seen {
            match seen {
                Seen::Request { stream, .. } => {
                    let _ = engine.connection.send_head(*stream, 200, [Field::new(b"x", b"y")].into_iter(), false);
                    let _ = engine.connection.send_data(*stream, &[0; 5000], stream.slot() == 1);
                }
                Seen::Data { stream, data, end } => {
                    engine.connection.release(*stream, data.len());
                    if *end {
                        engine.connection.reset(*stream, Reason::NO_ERROR);
                    }
                }
                Seen::Trailers { stream, .. } => {
                    let _ = engine.connection.send_trailers(*stream, std::iter::empty());
                }
                Seen::TooLarge { stream, .. } => engine.connection.refuse_large(*stream),
                Seen::Reset { stream, .. } => assert!(!engine.connection.is_alive(*stream)),
                Seen::Pong(_) => engine.connection.shutdown(),
                Seen::GoAway(_) => {}
            }
        }
        assert!(engine.connection.open_streams() <= 4);
        let was_full = engine.connection.output().len() >= 3000;
        engine.take_output();
        while let Some(stream) = engine.connection.next_writable() {
            let _ = engine.connection.send_data(stream, &[1; 100], true);
        }
        if !was_full {
            break;
        }
        result = engine.read_on();
    }
    engine.take_output();
}

#[test]
fn requests_with_wrong_bytes() {
    use rand::{Rng as _, SeedableRng as _};

    use crate::support::{block, data, headers, put, request, rst_stream, settings, window_update};
    use http2::frame::{END_HEADERS, END_STREAM, Kind};

    let frames = [
        settings(&[(1, 100), (4, 70_000), (5, 20_000)]),
        headers(1, false),
        data(1, b"hello", false),
        data(1, b"world", true),
        put(Kind::Headers, 0, 3, &request()[..4]),
        put(Kind::Continuation, END_HEADERS, 3, &request()[4..]),
        put(Kind::Headers, END_HEADERS | END_STREAM, 3, &block(&[("x", "y")])),
        put(Kind::Headers, END_HEADERS | 0x28, 5, &[&[2, 0, 0, 0, 3, 9][..], &request(), &[0, 0]].concat()),
        put(Kind::Ping, 0, 0, &[1; 8]),
        put(Kind::Ping, 1, 0, &[1; 8]),
        window_update(0, 1000),
        window_update(5, 1000),
        put(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x05u=1, i"),
        rst_stream(5, Reason::CANCEL),
        headers(7, true),
    ];
    for seed in 0..20_000 {
        let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
        let mut bytes: Vec<u8> = Vec::new();
        for frame in &frames {
            // Left out, or sent twice, now and then.
            for _ in 0..random.random_range(0..20_u32).div_ceil(18) {
                bytes.extend_from_slice(frame);
            }
        }
        for _ in 0..random.random_range(0..4) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = random.random(),
                1 => bytes[at] ^= 1 << random.random_range(0..8),
                _ => drop(bytes.remove(at)),
            }
        }
        run(&bytes, random.random_range(1..200));
    }
}
