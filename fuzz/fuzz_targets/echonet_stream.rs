//! Any bytes of a connection, in pieces and at once: the same frames come out, each of which parses.

#![no_main]

use echonet_lite::wire::{Frame, MessageLength, message_length};
use libfuzzer_sys::fuzz_target;

/// The frames of a stream that arrives in these pieces, until it is bad; and whether it is.
fn frames(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let (mut pending, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        pending.extend_from_slice(piece);
        loop {
            match message_length(&pending) {
                MessageLength::Complete(length) => {
                    let frame: Vec<u8> = pending.drain(..length).collect();
                    assert!(Frame::parse(&frame).is_ok());
                    found.push(frame);
                }
                MessageLength::NeedMore => break,
                MessageLength::Bad(_) => return (found, true),
            }
        }
    }
    (found, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (split, bytes) = input;
    // A format-2 frame ends where a piece does.
    if bytes.windows(2).any(|pair| pair == [0x10, 0x82]) {
        let _ = frames(&[bytes]);
        return;
    }
    let (first, second) = bytes.split_at(usize::from(split).min(bytes.len()));
    assert_eq!(frames(&[bytes]), frames(&[first, second]));
});
