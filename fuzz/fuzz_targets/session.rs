//! Any bytes to a whole server: it neither panics nor answers with anything but RESP.

#![no_main]

use std::rc::Rc;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use redis_server::commands::TABLE;
use redis_server::config::Config;
use redis_server::exec::core::{Instance, Worker};
use redis_server::runtime::embedded::Session;

#[allow(dead_code, reason = "the server's tests use more of it")]
#[path = "../../redis-server/tests/it/support/resp.rs"]
mod resp;

thread_local! {
    static WORKER: Rc<Worker> = Rc::new(Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), &TABLE))));
}

/// Commands that end, stop or reach out of the process.
const LEFT_OUT: &[&[u8]] = &[b"shutdown", b"debug", b"config", b"pause"];

fuzz_target!(|requests: &[u8]| {
    let lower = requests.to_ascii_lowercase();
    if LEFT_OUT.iter().any(|word| lower.windows(word.len()).any(|window| window == *word)) {
        return;
    }
    WORKER.with(|worker| {
        let mut session = Session::new(Rc::clone(worker));
        session.receive(b"FLUSHALL\r\n");
        session.receive(requests);
        let out = session.transmit();
        let mut at = 0;
        while at < out.len() {
            let (_, len) = resp::parse(&out[at..]).expect("well-formed").expect("complete");
            at += len;
        }
    });
});
