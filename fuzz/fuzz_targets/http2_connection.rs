//! A whole connection: any bytes, behind a right beginning or not, and a client and a program that break no rule against the
//! model of the crate's tests.
#![no_main]

#[path = "../../http2/tests/it/model.rs"]
mod model;
#[path = "../../http2/tests/it/support.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod support;

use http2::hpack::Field;
use http2::{Config, PREFACE, Reason};
use libfuzzer_sys::fuzz_target;

use support::{Engine, Seen};

/// Feeds bytes in pieces, answers what is asked, and looks whether all that is sent are frames.
fn any(bytes: &[u8], piece: usize) {
    let mut engine = Engine::new(&Config { max_streams: 4, max_output: 3000, ..Config::default() });
    engine.piece = piece.max(1);
    if !bytes.starts_with(b"P") {
        let _ = engine.send(&[&PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat());
    }
    let mut result = engine.send(bytes);
    loop {
        let Ok(seen) = result else { break };
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

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    if first % 2 == 0 {
        return any(rest, usize::from(*first));
    }
    let mut choices =
        rest.chunks(2).map(|pair| usize::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| usize::from(*low)));
    model::run(rest.len() / 6, &mut |below| choices.next().unwrap_or(0) % below.max(1));
});
