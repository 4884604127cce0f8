//! Whatever `RESTORE` is given, it is refused, or is a value that is dumped and restored again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_server::db::{StrRef, ValueRef};
use redis_server::persist::{self, Limits, Loaded};

fuzz_target!(|input: &[u8]| {
    let mut payload = input.to_vec();
    persist::sign(&mut payload);
    let limits = Limits::default();
    let Ok(loaded) = persist::restore(&payload, &limits) else { return };
    let again = match &loaded {
        Loaded::Str(bytes) => persist::dump(ValueRef::Str(StrRef::Bytes { bytes, raw: true })),
        Loaded::Object(object) => persist::dump(object.as_ref()),
    };
    assert!(persist::restore(&again, &limits).is_ok());
});
