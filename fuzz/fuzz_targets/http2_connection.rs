//! A whole connection: any bytes, behind a right beginning or not, and a client and a program that break no rule against the
//! model of the crate's tests.
#![no_main]

#[path = "../../http2/tests/it/any.rs"]
mod any;
#[path = "../../http2/tests/it/model.rs"]
mod model;
#[path = "../../http2/tests/it/support.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    if first % 2 == 0 {
        return any::run(rest, usize::from(*first));
    }
    let mut choices =
        rest.chunks(2).map(|pair| usize::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| usize::from(*low)));
    model::run(rest.len() / 6, &mut |below| choices.next().unwrap_or(0) % below.max(1));
});
