//! Whatever `RESTORE` is given, it is refused, or is a value that is dumped and restored again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_server::keyspace::rdb::{self, Limits, Loaded};
use redis_server::keyspace::{StrRef, ValueRef};

fuzz_target!(|input: &[u8]| {
    let mut payload = input.to_vec();
    rdb::sign(&mut payload);
    let limits = Limits::default();
    let Ok(loaded) = rdb::restore(&payload, &limits) else { return };
    let again = match &loaded {
        Loaded::Str(bytes) => rdb::dump(ValueRef::Str(StrRef::Bytes { bytes, raw: true })),
        Loaded::Object(object) => rdb::dump(object.as_ref()),
    };
    assert!(rdb::restore(&again, &limits).is_ok());
});
