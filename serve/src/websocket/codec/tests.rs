//! Any splitting of a client's bytes gives the same events.

use super::deflate::{Agreed, Compression};
use super::*;

const LIMITS: Limits = Limits { message: 2000, frame: 1500, accepts_unmasked: false };

/// Numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn agreed() -> Agreed {
    Agreed::on(["permessage-deflate"], Compression { server_context: true, client_context: true }).unwrap()
}

/// The events of these bytes as text, and the failure that ends them. `next_len` gives the length of the next piece.
fn events(bytes: &[u8], mut next_len: impl FnMut() -> usize) -> (Vec<String>, Option<Failure>) {
    let (mut decoder, mut buffer, mut events) =
        (Decoder::new(LIMITS, Some(agreed().inflater())), Vec::new(), Vec::new());
    let mut bytes = bytes;
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(next_len().clamp(1, bytes.len()));
        buffer.extend_from_slice(piece);
        bytes = rest;
        loop {
            let (used, event) = match decoder.next(&mut buffer) {
                Ok((used, event)) => (used, event.map(|event| shown(&event))),
                Err(failure) => return (events, Some(failure)),
            };
            buffer.drain(..used);
            match event {
                Some(event) => events.push(event),
                None => break,
            }
        }
    }
    (events, None)
}

/// Whether a payload is borrowed makes no difference.
fn shown(event: &Event<'_>) -> String {
    match event {
        Event::Text(text) => format!("text {text}"),
        Event::Binary(bytes) => format!("binary {}", bytes.escape_ascii()),
        other => format!("{other:?}"),
    }
}

/// A client's frame.
fn put_masked(first: u8, payload: &[u8], random: &mut Random, out: &mut Vec<u8>) {
    let key = [(); 4].map(|()| random.below(256) as u8);
    let start = out.len();
    put_head(Opcode::Text, false, payload.len(), out);
    out[start] = first;
    out[start + 1] |= 0x80;
    out.extend_from_slice(&key);
    out.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
}

/// A conversation, with damage now and then.
fn conversation(random: &mut Random) -> Vec<u8> {
    let mut deflater = agreed().deflater();
    let mut out = Vec::new();
    for _ in 0..random.below(8) {
        let text: String = (0..random.below(300)).map(|_| ['a', 'κ', '€', '😀', ' '][random.below(5)]).collect();
        let kind = 1 + random.below(2) as u8;
        match random.below(4) {
            0 => put_masked(0x80 | [9, 10][random.below(2)], &text.as_bytes()[..text.len().min(9)], random, &mut out),
            1 => match deflater.deflate(text.as_bytes()) {
                Some(deflated) => put_masked(0xc0 | kind, &deflated, random, &mut out),
                None => put_masked(0x80 | kind, text.as_bytes(), random, &mut out),
            },
            2 => put_masked(0x80 | kind, text.as_bytes(), random, &mut out),
            _ => {
                let (cut, again) = (random.below(text.len() + 1), random.below(3));
                put_masked(kind, &text.as_bytes()[..cut], random, &mut out);
                (0..again).for_each(|_| put_masked(0x89, b"?", random, &mut out));
                put_masked(0x80, &text.as_bytes()[cut..], random, &mut out);
            }
        }
    }
    if random.below(3) == 0 {
        put_masked(0x88, [&b""[..], b"\x03\xe8bye", b"\x03", b"\x03\xee"][random.below(4)], random, &mut out);
    }
    if random.below(2) == 0 && !out.is_empty() {
        let at = random.below(out.len());
        out[at] = random.below(256) as u8;
    }
    out
}

#[test]
fn any_splitting_gives_the_same_events() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut failures = Vec::new();
    for round in 0..4000 {
        let bytes = conversation(&mut random);
        let whole = events(&bytes, || bytes.len());
        let mut most = 1 + random.below(40);
        for _ in 0..3 {
            let pieces = events(&bytes, || 1 + random.below(most));
            assert_eq!(pieces, whole, "round {round}, pieces of up to {most} bytes of {bytes:x?}");
            most = 1 + random.below(1 + bytes.len());
        }
        failures.extend(whole.1.map(|failure| failure.reason));
    }
    failures.sort_unstable();
    failures.dedup();
    assert!(failures.len() > 8, "the damage is too little: {failures:?}");
}

#[test]
fn failures() {
    fn check(bytes: &[u8], code: u16) {
        let (_, failure) = events(bytes, || usize::MAX);
        assert_eq!(failure.map(|failure| failure.code), Some(code), "{bytes:x?}");
    }
    check(b"\x81\x01a", 1002);
    check(b"\x81\xfe\0\x7d", 1002);
    check(b"\x81\xff\0\0\0\0\0\0\xff\xff", 1002);
    check(b"\x81\xff\x80\0\0\0\0\0\0\0", 1002);
    check(b"\x82\xfe\x05\xdd\0\0\0\0", 1009);
    check(b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 1009);
    check(b"\xc9\x80\0\0\0\0", 1002);
    check(b"\xc1\x83\0\0\0\0\xff\xff\xff", 1007);
    // A part of a text that cannot become one, before its frame is whole.
    check(b"\x81\x85\0\0\0\0a\xff", 1007);
    check(b"\x01\x81\0\0\0\0\xf4\x80\x84\0\0\0\0\x90", 1007);
}

#[test]
fn messages_that_came_whole_are_borrowed() {
    let mut bytes = *b"\x81\x82\0\0\0\0hi\x82\x81\x01\x01\x01\x01\x00";
    let mut decoder = Decoder::new(LIMITS, None);
    let (used, event) = decoder.next(&mut bytes).unwrap();
    assert!(matches!(event, Some(Event::Text(std::borrow::Cow::Borrowed("hi")))), "{event:?}");
    let (_, event) = decoder.next(&mut bytes[used..]).unwrap();
    assert!(matches!(event, Some(Event::Binary(std::borrow::Cow::Borrowed(b"\x01")))), "{event:?}");
}
