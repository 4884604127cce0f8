//! The attacks on http-server and grpc-server over HTTP/2.

use std::time::Duration;

use super::attacker::{AT_ONCE, Attack, End, Reads};
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, ROUND, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    frame, head, preface,
};
use super::honest::Speech;

/// ENHANCE_YOUR_CALM. Where bytes of ours were unread when the server closed, the reset may have taken the reason with it.
const CALM: &[End] = &[End::GoAway(11), End::LetGo];

/// The limit of a flood's frames in a second: the servers' default of `--max-control-frames`.
const LIMIT: u32 = 10_000;

/// Longer than the servers wait for a client that takes nothing.
const NEVER: Duration = Duration::from_millis(3500);

/// Memory of 2,000 streams, each of which may hold a piece of a file (64 KiB) twice, and has a task (10 KiB).
const PIECES_MIB: u64 = 280;

/// Rounds of a flood: 200,000 frames, unless the server ends it.
const ROUNDS: u32 = 400;

pub(super) fn rows(speech: Speech) -> Vec<Attack> {
    let mut rows = floods(speech);
    rows.extend(bombs(speech));
    rows.extend(waits(speech));
    rows
}

/// The header block of a request that has a body.
fn call(speech: Speech) -> Vec<u8> {
    match speech {
        Speech::Grpc => head("POST", "/helloworld.Greeter/SayHello", Some("application/grpc")),
        Speech::Http1 | Speech::Http2 | Speech::Http3 => head("PUT", "/v1/SET/key", None),
    }
}

/// A request whose answer is larger than what sockets hold.
fn large(speech: Speech, stream: u32) -> Vec<u8> {
    if speech != Speech::Grpc {
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, &head("GET", "/big", None));
    }
    // SayHelloManyTimes: a name of 1,000 bytes, a thousand million times.
    let name = [&b"\x0a\xe8\x07"[..], &[b'x'; 1000], b"\x10\x80\x94\xeb\xdc\x03"].concat();
    let length = u32::try_from(name.len()).expect("it is short").to_be_bytes();
    let message = [&[0][..], &length, &name].concat();
    let head = head("POST", "/helloworld.Greeter/SayHelloManyTimes", Some("application/grpc"));
    [frame(HEADERS, END_HEADERS, stream, &head), frame(DATA, END_STREAM, stream, &message)].concat()
}

/// The bytes for a number.
type Each = Box<dyn Fn(u32) -> Vec<u8> + Send + Sync>;

/// Each round ends with a PING, whose answer shows that the server has had the round.
fn flood(name: &'static str, each: Each) -> Attack {
    let ends = [CALM, &[End::Within { limit: LIMIT }]].concat();
    Attack::of(name, preface(&[]), &ends).then(ROUNDS, move |round| {
        let frames = (0..AT_ONCE).flat_map(|at| each(round * AT_ONCE + at));
        frames.chain(frame(PING, 0, 0, &ROUND)).collect()
    })
}

fn floods(speech: Speech) -> Vec<Attack> {
    let (block, other) = (call(speech), call(speech));
    let open = move |number: u32| frame(HEADERS, END_HEADERS, 1 + 2 * number, &block);
    vec![
        flood("PING", Box::new(|number: u32| frame(PING, 0, 0, &u64::from(number).to_be_bytes()))),
        flood("SETTINGS", Box::new(|_: u32| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]))),
        flood("PRIORITY", Box::new(|number: u32| frame(PRIORITY, 0, 1 + 2 * number, &[0, 0, 0, 0, 1]))),
        flood("WINDOW_UPDATE", Box::new(|_: u32| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()))),
        flood("unknown frames", Box::new(|_: u32| frame(0xfa, 0, 0, b"x"))),
        flood("rapid reset", {
            let open = open.clone();
            Box::new(move |number: u32| {
                [open(number), frame(RST_STREAM, 0, 1 + 2 * number, &8_u32.to_be_bytes())].concat()
            })
        }),
        flood("requests that never end", {
            let open = open.clone();
            Box::new(move |number: u32| open(number))
        }),
        flood("empty DATA", Box::new(move |number: u32| if number == 0 { open(0) } else { frame(DATA, 0, 1, &[]) })),
        // Nothing else may stand in a header block.
        Attack::of("empty CONTINUATION", [preface(&[]), frame(HEADERS, 0, 1, &other)].concat(), CALM)
            .then(ROUNDS, |_| frame(CONTINUATION, 0, 1, &[]).repeat(AT_ONCE as usize)),
    ]
}

fn bombs(speech: Speech) -> Vec<Attack> {
    let block = call(speech);
    // A field of 4,000 bytes for the header table, and then a byte for each time that it is there again: 40 MB.
    let mut bomb = block.clone();
    bomb.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend_from_slice(&[b'y'; 4000]);
    bomb.extend_from_slice(&[0xbe; 10_000]);
    let field = [0x00, 1, b'x', 1, b'y'].repeat(2000);
    let (first, silent) = (block.clone(), block);
    vec![
        // A block beyond the limit cannot be read on: COMPRESSION_ERROR is not what it is, so CALM.
        Attack::of("100,000 headers in CONTINUATION", preface(&[]), CALM).then(50, move |number| match number {
            0 => frame(HEADERS, 0, 1, &first),
            _ => frame(CONTINUATION, 0, 1, &field),
        }),
        // The answer is 431, and with it the rest of the request is not wanted.
        Attack::of("header bombs", preface(&[]), &[End::Reset(0), End::GoAway(11)])
            .then(100, move |number| frame(HEADERS, END_HEADERS, 1 + 2 * number, &bomb)),
        Attack::of("half a header block", [preface(&[]), frame(HEADERS, 0, 1, &silent)].concat(), &[End::LetGo]),
    ]
}

fn waits(speech: Speech) -> Vec<Attack> {
    let never_reads =
        |name, opening: Vec<u8>| Attack::of(name, opening, &[End::LetGo]).reading(Reads::NothingFor(NEVER));
    let windows = preface(&[(4, (1 << 31) - 1)]);
    let open = frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    let hundred: Vec<u8> = (0..100).flat_map(|number| large(speech, 1 + 2 * number)).collect();
    let mut rows = vec![
        never_reads("answers that nobody reads", [&windows[..], &open, &large(speech, 1)].concat()),
        never_reads("100 of them", [&windows[..], &open, &hundred].concat()).within_mib(PIECES_MIB),
        Attack::of("connection preface, and silence", preface(&[]), &[End::LetGo]),
        Attack::of("10,000 connections, opened and reset", [preface(&[]), speech.request(1)].concat(), &[End::Gone])
            .reading(Reads::NothingAndComesAgain(500)),
    ];
    if speech == Speech::Http2 {
        // A gRPC stream waits for its client as long as its deadline says.
        let closed = preface(&[(4, 0)]);
        rows.push(Attack::of("a window of 0", [&closed[..], &large(speech, 1)].concat(), &[End::Reset(8)]));
        rows.push(
            Attack::of("a window of 0, and signs of life", [&closed[..], &large(speech, 1)].concat(), &[End::Reset(8)])
                .then(1000, |number| frame(PING, 0, 0, &u64::from(number).to_be_bytes()))
                .every(Duration::from_millis(50)),
        );
        let begun = [preface(&[]), frame(HEADERS, END_HEADERS, 1, &call(speech))].concat();
        rows.push(
            Attack::of("DATA of a byte", begun.clone(), &[End::Reset(0)])
                .then(500, |_| frame(DATA, 0, 1, b"x").repeat(10_000))
                .long(),
        );
        rows.push(
            Attack::of("a slow body", begun, &[End::Reset(0), End::Reset(8)])
                .then(100, |_| frame(DATA, 0, 1, b"x"))
                .every(Duration::from_millis(50)),
        );
    }
    rows
}
