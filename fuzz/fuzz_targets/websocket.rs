//! WebSocket: no bytes make the decoder or permessage-deflate panic, a message keeps to its limit, and how the bytes are cut does not
//! change the events.

#![no_main]

use serve::websocket::codec::deflate::{Agreed, Compression};
use serve::websocket::codec::{Decoder, Event, Failure, Limits};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { message: 4096, frame: 3000, accepts_unmasked: true };

fuzz_target!(|input: (&[u8], u8, bool, bool)| {
    let (bytes, step, is_compressed, has_context) = input;
    let compression = Compression { server_context: has_context, client_context: has_context };
    let agreed = Agreed::on(["permessage-deflate"], compression).filter(|_| is_compressed);
    let whole = events(bytes, bytes.len().max(1), agreed);
    assert_eq!(events(bytes, usize::from(step).max(1), agreed), whole);
});

fn events(bytes: &[u8], step: usize, agreed: Option<Agreed>) -> (Vec<(u8, Vec<u8>)>, Option<Failure>) {
    let mut decoder = Decoder::new(LIMITS, agreed.map(|agreed| agreed.inflater()));
    let (mut buffer, mut events) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            let (used, event) = match decoder.next(&mut buffer) {
                Ok((used, event)) => (used, event.map(taken)),
                Err(failure) => return (events, Some(failure)),
            };
            buffer.drain(..used);
            let Some(event) = event else { break };
            assert!(event.1.len() <= LIMITS.message);
            events.push(event);
        }
    }
    (events, None)
}

fn taken(event: Event<'_>) -> (u8, Vec<u8>) {
    match event {
        Event::Text(text) => (1, text.into_owned().into_bytes()),
        Event::Binary(bytes) => (2, bytes.into_owned()),
        Event::Ping(payload) => (9, payload.to_vec()),
        Event::Pong(payload) => (10, payload.to_vec()),
        Event::Close(reason) => (8, format!("{reason:?}").into_bytes()),
    }
}
