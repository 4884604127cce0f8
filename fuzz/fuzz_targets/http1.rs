//! HTTP/1.1: no bytes make the parser or the decoder of bodies panic, a head ends where an empty line is, and how the bytes are
//! cut does not change what they say.

#![no_main]

use bytes::BytesMut;
use serve::h1::{Decoder, Framing, Limits, Room, parse};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { head_bytes: 4096, target_bytes: 1024, headers: 100 };

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, step) = (input.0, usize::from(input.1).max(1));
    let mut room = Room::new();
    let (rest, framing) = match parse(bytes, &mut room, &LIMITS) {
        Ok(Some(head)) => {
            assert!(bytes[..head.len].ends_with(b"\r\n\r\n"));
            (&bytes[head.len..], head.framing)
        }
        // Bodies are looked at also where no head was.
        _ => (bytes, Framing::Chunked),
    };
    assert_eq!(decode(framing, rest, step), decode(framing, rest, rest.len().max(1)));
});

/// The body, and whether it is complete; nothing if it is malformed.
fn decode(framing: Framing, bytes: &[u8], step: usize) -> Option<(Vec<u8>, bool)> {
    let (mut decoder, mut buffer, mut body) = (Decoder::new(framing), BytesMut::new(), Vec::new());
    for piece in bytes.chunks(step) {
        buffer.extend_from_slice(piece);
        while let Some(data) = decoder.decode(&mut buffer).ok()? {
            body.extend_from_slice(&data);
        }
    }
    Some((body, decoder.is_done()))
}
