//! Snapshots: whatever a file holds, it is read to its end or refused, without a look beyond it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_server::persistence::rdb::{Decoder, Item, Limits, Step};

fuzz_target!(|file: &[u8]| {
    let mut decoder = Decoder::new(Limits::default(), false);
    let mut rest = file;
    loop {
        match decoder.next(rest, 0) {
            Ok(Step::Item(Item::End, _)) | Err(_) => return,
            Ok(Step::Item(_, len)) => {
                assert!(len > 0, "every item takes some bytes");
                rest = &rest[len..];
                assert_eq!(decoder.offset(), (file.len() - rest.len()) as u64);
            }
            Ok(Step::More(missing)) => panic!("{missing} bytes more are asked for, and there are none"),
        }
    }
});
