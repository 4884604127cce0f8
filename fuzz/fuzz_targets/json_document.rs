//! JSON: whatever a text and a path are, both are refused or mean the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_server::types::json::{Path, merge};
use redis_server::types::json::Json;

fuzz_target!(|input: &[u8]| {
    let (path, text) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (&b"$..*"[..], input),
    };
    let Ok(mut json) = Json::parse(text) else {
        let _ = Path::parse(path);
        return;
    };
    let printed = json.root().to_text();
    let again = Json::parse(printed.as_bytes()).expect("what is printed can be read");
    assert!(again == json, "and is the same");
    let Ok(path) = Path::parse(path) else { return };
    let Ok(found) = json.find(&path) else { return };
    let found: Vec<Json> = found.take(100).map(Json::copy_of).collect();
    if let Some(patch) = found.first() {
        let _ = merge(json.root(), patch.root());
    }
    let mut edits = json.edit(&path).expect("it was found");
    for index in edits.outermost() {
        match index % 3 {
            0 => edits.remove(index),
            1 => _ = edits.replace(index, again.root()),
            _ => {}
        }
    }
    if edits.apply().is_ok() {
        let printed = json.root().to_text();
        assert!(Json::parse(printed.as_bytes()).expect("what was changed can be read") == json);
    }
});
