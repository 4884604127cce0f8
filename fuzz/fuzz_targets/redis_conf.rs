//! Any file is a configuration or an error that says where and why; values that are taken are given back.

#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use redis_server::config::{Config, Launch};

fuzz_target!(|text: &[u8]| {
    // Other files are not this target's subject, and must not be read by accident.
    if text.to_ascii_lowercase().windows(7).any(|word| word == b"include") {
        return;
    }
    let path = std::env::temp_dir().join(format!("redis-conf-fuzz-{}", std::process::id()));
    let mut file = std::fs::File::create(&path).expect("a writable temporary folder");
    file.write_all(text).expect("room for a small file");
    drop(file);
    match Config::load(&Launch::from_file(&path), std::iter::empty()) {
        Ok((config, _)) => {
            for (name, value) in config.get(&["*"]) {
                assert!(!name.is_empty());
                let _ = value;
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
