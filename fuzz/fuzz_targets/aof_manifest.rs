//! Manifests of append-only files: whatever bytes are one are written as the same one, and whatever the files are called, they are
//! found again.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use redis_server::persistence::aof::{Manifest, Part, SEQ_MAX};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Bytes(&'a [u8]),
    Lines(Vec<(&'a str, u16, &'a str, bool)>),
    Files { base: Option<(&'a str, u64)>, history: Vec<(&'a str, u64)>, incrs: Vec<(&'a str, u16)> },
}

/// Whether a line of bounded length can hold this file name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".." && name.len() < 200
}

fn check(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes) else { return };
    let text = manifest.to_text();
    if !text.is_empty() {
        assert_eq!(Manifest::parse(text.as_bytes()), Ok(manifest));
    }
}

fuzz_target!(|input: Input<'_>| match input {
    Input::Bytes(bytes) => check(bytes),
    Input::Lines(lines) => {
        let line = |(name, seq, kind, is_quoted): (&str, u16, &str, bool)| {
            let quote = if is_quoted { "\"" } else { "" };
            format!("file {quote}{name}{quote} seq {seq} type {kind}\n")
        };
        check(lines.into_iter().map(line).collect::<String>().as_bytes());
    }
    Input::Files { base, history, incrs } => {
        let part = |(name, seq): (&str, u64)| is_name(name).then(|| Part { name: name.to_owned(), seq: seq.clamp(1, SEQ_MAX) });
        let base = base.and_then(part);
        let history: Vec<_> = history.into_iter().filter_map(part).collect();
        let mut seq = 0;
        let incrs: Vec<_> = incrs
            .into_iter()
            .filter_map(|(name, more)| {
                let part = part((name, seq + 1 + u64::from(more)))?;
                seq = part.seq;
                Some(part)
            })
            .collect();
        let manifest = Manifest { base, history, incrs };
        let text = manifest.to_text();
        if !text.is_empty() {
            assert_eq!(Manifest::parse(text.as_bytes()), Ok(manifest));
        }
    }
});
