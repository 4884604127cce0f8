//! Any payload for `RESTORE` is refused, or restores a value that survives DUMP and RESTORE, and that every command can use.

#![no_main]

use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use redis_server::commands::TABLE;
use redis_server::config::Config;
use redis_server::exec::core::{Instance, Worker};
use redis_server::keyspace::{StrRef, ValueRef};
use redis_server::persistence::rdb::{self, Limits, Loaded};
use redis_server::persistence::rdb::Fork;
use redis_server::runtime::embedded::Session;

/// Commands that look at and change a value of any type, one a line.
const USES: &[u8] = include_bytes!("../../redis-server/src/persistence/rdb/uses.txt");

thread_local! {
    static WORKER: Rc<Worker> = Rc::new(Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), &TABLE))));
}

fuzz_target!(|input: &[u8]| {
    let mut payload = input.to_vec();
    rdb::sign(&mut payload);
    let limits = Limits::default();
    let Ok(loaded) = rdb::restore(&payload, &limits, true, false) else { return };
    let again = match &loaded {
        Loaded::Str(bytes) => rdb::dump(ValueRef::Str(StrRef::Bytes { bytes, raw: true }), Fork::Redis),
        Loaded::Object(object) => rdb::dump(object.as_ref(), Fork::Redis),
    };
    assert!(rdb::restore(&again, &limits, true, false).is_ok());
    use_all(&payload);
});

/// Has every command use the value.
fn use_all(payload: &[u8]) {
    let mut request = Vec::new();
    write!(request, "*5\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n${}\r\n", payload.len()).expect("a Vec takes all");
    request.extend([payload, b"\r\n$7\r\nREPLACE\r\n"].concat());
    WORKER.with(|worker| {
        let mut session = Session::new(Rc::clone(worker));
        session.receive(b"FLUSHALL\r\n");
        session.receive(&request);
        assert_eq!(session.transmit(), b"+OK\r\n+OK\r\n");
        session.receive(USES);
        session.transmit();
    });
}
