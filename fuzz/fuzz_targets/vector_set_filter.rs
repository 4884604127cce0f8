//! Filters of any bytes are read, or refused at a place of theirs, and decide about attributes of any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use query_engine::vector_set::Filter;

fuzz_target!(|input: &[u8]| {
    let at = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (text, attributes) = input.split_at(at);
    match Filter::parse(text) {
        Ok(filter) => _ = filter.accepts(attributes.strip_prefix(&[0]).unwrap_or_default()),
        Err(error) => assert!(error.offset <= text.len()),
    }
});
