//! Clients that send far more than they should, of everything that HTTP/2 has.

use std::time::{Duration, Instant};

use crate::frames::{
    CALM, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, PING, PRIORITY, Program, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, call_head, frame,
};
use crate::support::{MANY_TIMES, SAY_HELLO, hello, many_times};

/// The program's own memory, with room for the effects of the tests of one process.
const BOUND_MIB: u64 = 120;

/// Processor time that a flood may take before its connection ends, which it does within a second: a tenth of a core. Without
/// optimization everything takes several times as long.
const BOUND_CPU: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 100 });

/// Sends a flood until the server ends the connection; others are served meanwhile and afterwards.
fn check(what: &str, program: &Program, round: impl Fn(u32) -> Vec<u8>) {
    let mut frames = Frames::connect(program.addr, &[]);
    let seen = frames.drain();
    let (mut rounds, began, cpu) = (0, Instant::now(), program.cpu());
    // Up to 200,000 rounds, in pieces of some size.
    'sent: for piece in 0..400 {
        let bytes: Vec<u8> = (0..500).flat_map(|at| round(piece * 500 + at)).collect();
        rounds = piece * 500;
        if !frames.send(&bytes) {
            break 'sent;
        }
    }
    let seen = seen.join().unwrap();
    let (took, cpu) = (began.elapsed(), program.cpu() - cpu);
    println!("{what}: {cpu:.1?} of processor time in {took:.1?}");
    assert!(cpu < BOUND_CPU, "{what} took {cpu:?} in {took:?}");
    let reason = seen.iter().rev().find(|frame| frame.kind == GOAWAY).map(|frame| frame.reason());
    // Where our bytes were unread when the server closed, the reset may have taken its reason with it.
    assert!(matches!(reason, Some(CALM) | None), "{what}: {reason:?} after {rounds} rounds");
    assert!(rounds < 199_500, "{what} went on for ever");
    program.serves();
    assert!(program.peak_mib() < BOUND_MIB, "{what} has made {} MiB", program.peak_mib());
}

#[test]
fn floods_end_the_connection() {
    let program = Program::start(&[]);
    let head = call_head(SAY_HELLO);
    let call = |number: u32| frame(HEADERS, END_HEADERS, 1 + 2 * number, &head);
    let cancel = |number: u32| frame(RST_STREAM, 0, 1 + 2 * number, &8_u32.to_be_bytes());
    check("PING", &program, |number| frame(PING, 0, 0, &u64::from(number).to_be_bytes()));
    check("SETTINGS", &program, |_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]));
    check("WINDOW_UPDATE", &program, |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()));
    check("PRIORITY", &program, |number| frame(PRIORITY, 0, 1 + 2 * number, &[0, 0, 0, 0, 1]));
    check("unknown frames", &program, |_| frame(0xfa, 0, 0, b"x"));
    check("rapid reset", &program, |number| [call(number), cancel(number)].concat());
    check("empty DATA", &program, |number| if number == 0 { call(0) } else { frame(DATA, 0, 1, &[]) });
    check("CONTINUATION", &program, |number| match number {
        0 => frame(HEADERS, 0, 1, &head),
        _ => frame(CONTINUATION, 0, 1, &[0x00, 1, b'x', 1, b'y'].repeat(100)),
    });
}

#[test]
fn unread_replies_to_floods_cause_backpressure() {
    for kind in [PING, SETTINGS] {
        let program = Program::start(&["--max-control-frames", "0"]);
        let mut frames = Frames::connect(program.addr, &[]);
        let payload: &[u8] = if kind == PING { &[0; 8] } else { &[] };
        let bytes = frame(kind, 0, 0, payload).repeat(2_000_000);
        let sent = frames.push(&bytes);
        assert!(sent < bytes.len(), "the server goes on reading for {kind} without our reading");
        program.serves();
        assert!(program.peak_mib() < BOUND_MIB, "{} MiB", program.peak_mib());
    }
}

#[test]
fn a_hundred_thousand_calls_at_one_time() {
    let program = Program::start(&[]);
    let mut frames = Frames::connect(program.addr, &[]);
    let seen = frames.drain();
    let (head, message) = (call_head(MANY_TIMES), many_times("x", 1000, 60_000));
    for piece in 0..1000 {
        let bytes: Vec<u8> = (0..100)
            .flat_map(|at| {
                let stream = 1 + 2 * (piece * 100 + at);
                [frame(HEADERS, END_HEADERS, stream, &head), frame(DATA, END_STREAM, stream, &message)].concat()
            })
            .collect();
        if !frames.send(&bytes) {
            break;
        }
    }
    program.serves();
    let peak = program.peak_mib();
    assert!(peak < BOUND_MIB, "{peak} MiB");
    drop(frames);
    drop(program);
    let answered = seen.join().unwrap().iter().filter(|frame| frame.kind == HEADERS).count();
    assert!(answered <= 200, "{answered} calls at one time");
}

/// 1,000 connections that were used once cost no more than 8 KiB each.
#[test]
fn idle_connections_are_small() {
    let program = Program::start(&[]);
    let call =
        [frame(HEADERS, END_HEADERS, 1, &call_head(SAY_HELLO)), frame(DATA, END_STREAM, 1, &hello("Ann"))].concat();
    let open = || {
        let mut frames = Frames::connect(program.addr, &[]);
        assert!(frames.send(&call));
        while frames.next().expect("an answer").kind != DATA {}
        frames
    };
    // Memory that the program needs once.
    let _first: Vec<_> = (0..100).map(|_| open()).collect();
    let before = program.resident();
    let _idle: Vec<_> = (0..1000).map(|_| open()).collect();
    let each = (program.resident() - before) / 1000;
    println!("{each} bytes for an idle connection");
    assert!(each <= 8 * 1024, "{each} bytes");
}

#[test]
fn header_bombs() {
    let program = Program::start(&[]);
    // One field of 4,000 bytes into the header table, and then a byte for each time that it is there again.
    let mut block = call_head(SAY_HELLO);
    block.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0x81, 0x1e]);
    block.extend_from_slice(&[b'y'; 4000]);
    block.extend_from_slice(&[0xbe; 10_000]);
    let mut frames = Frames::connect(program.addr, &[]);
    let seen = frames.drain();
    for number in 0..1000 {
        let stream = 1 + 2 * number;
        let bytes = [frame(HEADERS, END_HEADERS, stream, &block), frame(DATA, END_STREAM, stream, &hello("Ann"))];
        if !frames.send(&bytes.concat()) {
            break;
        }
    }
    program.serves();
    assert!(program.peak_mib() < BOUND_MIB, "{} MiB", program.peak_mib());
    drop(program);
    let seen = seen.join().unwrap();
    let answered = seen.iter().filter(|frame| frame.kind == DATA && frame.payload.len() > 5).count();
    assert_eq!(answered, 0, "a call with 40 MB of headers was taken");
}
