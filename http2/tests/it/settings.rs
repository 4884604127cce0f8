//! The settings of both sides.

use http2::frame::{ACK, Kind};
use http2::hpack::{Block, Field};
use http2::{Config, PREFACE, Reason};

use crate::support::{Engine, settings};

#[test]
fn ours() {
    let config = Config { max_streams: 7, stream_window: 1 << 20, connection_window: 1 << 20, ..Config::default() };
    let mut engine = Engine::new(&config);
    let frames = engine.take_output();
    assert_eq!(frames[0].kind, Kind::Settings);
    let pairs: Vec<_> = http2::frame::settings(&frames[0].payload).unwrap().collect();
    assert_eq!(pairs, [(3, 7), (4, 1 << 20), (6, 16 * 1024), (9, 1)]);
    assert_eq!(
        (frames[1].kind, &frames[1].payload[..]),
        (Kind::WindowUpdate, &((1_u32 << 20) - 65_535).to_be_bytes()[..])
    );
}

#[test]
fn theirs() {
    fn check(pairs: &[(u16, u32)], expected: Option<Reason>) {
        for is_first in [true, false] {
            let mut engine = if is_first { Engine::new(&Config::default()) } else { Engine::open(&Config::default()) };
            engine.take_output();
            let bytes = if is_first { [&PREFACE[..], &settings(pairs)].concat() } else { settings(pairs) };
            let result = engine.send(&bytes);
            assert_eq!(result.as_ref().err().map(|error| error.reason), expected, "{pairs:?}");
            let frames = engine.take_output();
            let is_taken = frames.iter().any(|frame| frame.kind == Kind::Settings && frame.flags == ACK);
            assert_eq!(is_taken, expected.is_none(), "{pairs:?}");
        }
    }
    check(&[], None);
    check(&[(1, 0), (2, 0), (3, 0), (4, 0), (5, 16_384), (6, 0), (8, 1), (9, 1), (0x4242, 0xffff_ffff)], None);
    check(&[(2, 1), (4, 0x7fff_ffff), (5, 0xff_ffff)], None);
    check(&[(2, 2)], Some(Reason::PROTOCOL_ERROR));
    check(&[(8, 2)], Some(Reason::PROTOCOL_ERROR));
    check(&[(9, 2)], Some(Reason::PROTOCOL_ERROR));
    check(&[(4, 0x8000_0000)], Some(Reason::FLOW_CONTROL_ERROR));
    check(&[(5, 16_383)], Some(Reason::PROTOCOL_ERROR));
    check(&[(5, 0x100_0000)], Some(Reason::PROTOCOL_ERROR));
    check(&[(4, 1), (4, 0x8000_0000), (4, 1)], Some(Reason::FLOW_CONTROL_ERROR));
}

#[test]
fn windows_that_grow_too_far() {
    let mut engine = Engine::open(&Config::default());
    engine.begin(1, true);
    engine.send(&crate::support::window_update(1, 0x7fff_ffff - 65_535)).unwrap();
    assert_eq!(engine.send(&settings(&[(4, 65_536)])).unwrap_err().reason, Reason::FLOW_CONTROL_ERROR);
}

#[test]
fn a_peer_without_a_header_table() {
    let mut engine = Engine::open(&Config::default());
    engine.send(&settings(&[(1, 0)])).unwrap();
    engine.take_output();
    let head = Block::new([Field::new(b":status", b"200"), Field::new(b"x", b"y")]);
    let mut payloads = Vec::new();
    for number in [1, 3, 5] {
        let stream = engine.begin(number, true);
        engine.connection.send_head_block(stream, &head, true).unwrap();
        payloads.push(engine.take_output().remove(0).payload);
    }
    // The first one says so (RFC 7541 section 4.2); nothing is indexed but what is static.
    assert_eq!(payloads[0][..2], [0x20, 0x88]);
    assert_eq!((payloads[1][0], &payloads[1]), (0x88, &payloads[2]));
}
