//! The allocator's statistics and its release of memory, in a process with this allocator.

use std::io::{Read, Write};

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

/// An error that is looked at when Lua's memory is used up to the last bytes leaves nothing behind.
#[test]
fn errors_at_the_limit_of_lua_leak_nothing() {
    let process = Process::start("lua-errors", &[("script-memory-limit", "8mb")]);
    let mut client = process.connect();
    // The rest that no text fits into is smaller than the name of a field.
    let script = "local failed = {err = string.rep('x', 1000000)} local kept = {} for i = 1, 5000 do kept[i] = false end \
        local chars = {} for i = 0, 49 do chars[i] = string.char(65 + i) end local pcall, rep, floor = pcall, string.rep, math.floor \
        local at = 0 local size = 500000 while size >= 1 do at = at + 1 \
        local fits, text = pcall(rep, chars[at % 50], size + at % 3) \
        if fits then kept[at] = text else size = floor(size / 2) end if at >= 5000 then break end end return failed";
    for _ in 0..40 {
        let Value::Error(text) = ask(&mut client, &["EVAL", script, "0"]) else { panic!("an error") };
        assert!(text.ends_with(b"not enough memory"), "{}", text.escape_ascii());
    }
    let used = figure(&mut client, "used_memory");
    assert!(used < 20 << 20, "40 texts of a megabyte are in use: {used}");
}

/// Output that waits for a slow replica takes little more than its bytes, and counts once.
#[test]
fn unread_replica_output_is_counted_once() {
    let process = Process::start("unread", &[("repl-timeout", "1000"), ("repl-diskless-sync-delay", "0")]);
    let (mut client, mut replica) = (process.connect(), process.connect());
    replica.write_all(b"SYNC\r\n").unwrap();
    until("the replica is there", || ask(&mut client, &["INFO", "replication"]).text().contains("state=online"));
    let before = figure(&mut client, "used_memory");
    let value = "v".repeat(100);
    for _ in 0..100_000 {
        ask(&mut client, &["SET", "key", &value]);
    }
    let [used, unread, backlog, apart, clients] = [
        "used_memory",
        "mem_clients_slaves",
        "mem_replication_backlog",
        "mem_not_counted_for_evict",
        "mem_clients_normal",
    ]
    .map(|name| figure(&mut client, name));
    assert!(unread > 6 << 20, "{unread}");
    assert_eq!(unread, apart);
    assert!(clients < 1 << 20, "{clients}");
    let (taken, kept) = (used - before, unread + backlog);
    assert!(taken < kept + kept / 50, "{taken} for {kept}");
}

/// A figure of INFO memory.
fn figure(client: &mut (impl Read + Write), name: &str) -> u64 {
    let info = ask(client, &["INFO", "memory"]).text();
    let figure = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    figure.unwrap_or_else(|| panic!("no {name} in {info}")).parse().unwrap()
}
