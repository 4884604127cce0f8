//! Header blocks: what can be decoded stays within its limit, and goes through an encoder and back.
#![no_main]

use http2::hpack::{Decoder, Encoder, Field, Fields};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 4096;

fuzz_target!(|blocks: Vec<Vec<u8>>| {
    let (mut decoder, mut back) = (Decoder::new(8192), Decoder::new(4096));
    let mut encoder = Encoder::new();
    let (mut fields, mut again, mut out) = (Fields::new(), Fields::new(), Vec::new());
    for block in blocks {
        let Ok(decoded) = decoder.decode(&block, LIMIT, &mut fields) else { return };
        assert!(fields.size() <= LIMIT);
        if let Some(byte) = block.first() {
            encoder.set_table_size(usize::from(*byte) * 32);
        }
        out.clear();
        encoder.encode(fields.iter().map(|(name, value)| Field::new(name, value)), &mut out);
        back.decode(&out, LIMIT, &mut again).expect("it was encoded just now");
        assert!(again.iter().eq(fields.iter()));
        if decoded.is_repeatable {
            decoder.decode(&block, LIMIT, &mut again).expect("it was decoded just now");
            assert!(again.iter().eq(fields.iter()));
        }
    }
});
