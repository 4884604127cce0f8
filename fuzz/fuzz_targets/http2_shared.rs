//! The tokio driver of HTTP/2 connections: a random client that breaks no rule and random handlers. Every byte of the windows is
//! accounted for after each step.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut choices =
        bytes.chunks(2).map(|pair| usize::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| usize::from(*low)));
    http2::shared::model::run(bytes.len() / 6, &mut |below| choices.next().unwrap_or(0) % below.max(1));
});
