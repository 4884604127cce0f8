//! What the allocator says and gives back, in a process that has it.

use crate::support::process::{Process, ask};
use crate::support::resp::Value;
use crate::support::until;

#[test]
fn memory_is_given_back_at_once_when_asked() {
    let process = Process::start("purge", &[]);
    let mut client = process.connect();
    let script = "local x = string.rep('x', 400) for i = 1, 50000 do redis.call('SET', i, x) end";
    assert_eq!(ask(&mut client, &["EVAL", script, "0"]), Value::NullBulk);
    assert_eq!(ask(&mut client, &["FLUSHALL"]), Value::Status(b"OK".into()));
    // The other worker's memory follows when it gets to it.
    until("memory is given back", || {
        assert_eq!(ask(&mut client, &["MEMORY", "PURGE"]), Value::Status(b"OK".into()));
        process.resident() < process.peak() - (10 << 20)
    });
}

#[test]
fn the_allocator_reports() {
    let process = Process::start("malloc-stats", &[]);
    let mut client = process.connect();
    let check = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
        assert!(first.contains(" bytes in use, ") && second.starts_with("mimalloc-"), "{text}");
        assert!(text.contains("arenas") && text.contains("committed"), "{text}");
    };
    let Value::Bulk(text) = ask(&mut client, &["MEMORY", "MALLOC-STATS"]) else { panic!("a bulk string over RESP2") };
    check(&text);
    ask(&mut client, &["HELLO", "3"]);
    let Value::Verbatim(format, text) = ask(&mut client, &["MEMORY", "MALLOC-STATS"]) else {
        panic!("text over RESP3")
    };
    assert_eq!(&format, b"txt");
    check(&text);
}
