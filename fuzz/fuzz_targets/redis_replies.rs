//! For any bytes that a Redis server sends to http-server, nothing panics, and every caller gets its own whole reply, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| http_server::fuzzing::replies_of_redis(bytes));
