//! Any datagrams to a node: it neither panics nor gives a wrong answer, nor fails to give one.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the crate's tests use more of it")]
#[path = "../../echonet-lite/tests/it/judge.rs"]
mod judge;
#[allow(dead_code, reason = "the crate's tests use more of it")]
#[path = "../../echonet-lite/tests/it/support.rs"]
mod support;

fuzz_target!(|datagrams: Vec<&[u8]>| {
    let mut judge = judge::Judge::new();
    for datagram in datagrams {
        judge.check(datagram);
        // The bytes as the property list of a valid request, which libFuzzer rarely finds by itself.
        if let Some((&service, list)) = datagram.split_first() {
            let mut request = support::hex("1081 0001 05FF01 029000");
            request.push(0x60 | service & 0x0F);
            request.extend_from_slice(list);
            judge.check(&request);
        }
    }
    judge.check(&support::hex("1081 0001 05FF01 029001 62 01 80 00"));
    assert!(judge.answers > 0);
});
