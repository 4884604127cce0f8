//! Eviction: the evicted and the remaining keys, under load, against the genuine server, and in the view of other clients.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::support::genuine::Genuine;
use crate::support::process::{Process, ask};
use crate::support::resp::{Value, parse, request};
use crate::support::{Random, until};

/// A figure of INFO: `figure(&mut client, "used_memory:")`.
fn figure(stream: &mut (impl Read + Write), name: &str) -> u64 {
    let info = ask(stream, &["INFO"]).text();
    info.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).expect(name)
}

/// Has `maxmemory` allow so many bytes more than are in use.
fn allow(stream: &mut (impl Read + Write), more: u64) -> u64 {
    let limit = figure(stream, "used_memory:") + more;
    assert_eq!(ask(stream, &["CONFIG", "SET", "maxmemory", &limit.to_string()]), Value::Status(b"OK".into()));
    limit
}

/// Sends all commands at once and returns their replies.
fn pipeline(stream: &mut (impl Read + Write), commands: &[Vec<String>]) -> Vec<Value> {
    let bytes: Vec<u8> = commands.iter().flat_map(|words| request(words)).collect();
    stream.write_all(&bytes).unwrap();
    let (mut input, mut replies, mut at) = (Vec::new(), Vec::new(), 0);
    while replies.len() < commands.len() {
        match parse(&input[at..]).unwrap() {
            Some((reply, len)) => {
                replies.push(reply);
                at += len;
            }
            None => {
                let mut chunk = [0; 64 * 1024];
                let count = test_peers::read(stream, &mut chunk).expect("a reply in time");
                assert!(count > 0, "the server closed the connection");
                input.extend_from_slice(&chunk[..count]);
            }
        }
    }
    replies
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_limit_is_kept_while_two_workers_write() {
    const CLIENTS: usize = 8;
    const SLACK: u64 = 256 << 10;
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-random", "volatile-ttl"] {
        let process = Process::start(&format!("kept-{policy}"), &[("maxmemory-policy", policy)]);
        let mut control = process.connect();
        let limit = allow(&mut control, 2 << 20);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let mut stream = process.connect();
                    scope.spawn(move || {
                        let value = "x".repeat(200);
                        for round in 0..20 {
                            let set = |n| words(&["SET", &format!("{client}:{round}:{n}"), &value, "EX", "1000"]);
                            let replies = pipeline(&mut stream, &(0..100).map(set).collect::<Vec<_>>());
                            assert!(replies.iter().all(|reply| *reply == Value::Status(b"OK".into())), "{replies:?}");
                        }
                    })
                })
                .collect();
            while writers.iter().any(|writer| !writer.is_finished()) {
                let used = figure(&mut control, "used_memory:");
                // The clients' buffers need memory besides.
                assert!(used < limit + (CLIENTS as u64 * SLACK), "{policy}: {used} of {limit}");
            }
        });
        until("the limit is kept", || figure(&mut control, "used_memory:") <= limit + SLACK);
        assert!(figure(&mut control, "evicted_keys:") > 0);
    }
}

#[test]
fn nothing_without_a_deadline_goes_under_volatile_policies() {
    let process = Process::start("volatile", &[("maxmemory-policy", "volatile-lru")]);
    let mut client = process.connect();
    allow(&mut client, 1 << 20);
    let value = "x".repeat(1000);
    let set = |n: usize| words(&["SET", &format!("key:{n}"), &value]);
    let replies = pipeline(&mut client, &(0..3000).map(set).collect::<Vec<_>>());
    // Clients' buffers count, too: what they give back meanwhile lets some more in.
    let stored = replies.iter().filter(|reply| **reply == Value::Status(b"OK".into())).count();
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    assert!(replies.iter().any(|reply| *reply == Value::Error(refused.into())), "it is refused at last");
    assert_eq!(ask(&mut client, &["DBSIZE"]), Value::Int(stored as i64));
    assert_eq!(figure(&mut client, "evicted_keys:"), 0);
    // Commands that read or remove still run.
    assert_eq!(ask(&mut client, &["STRLEN", "key:0"]), Value::Int(1000));
    assert_eq!(ask(&mut client, &["DEL", "key:0"]), Value::Int(1));
}

#[test]
fn a_lowered_limit_is_kept_without_writes() {
    let process = Process::start("lowered", &[("maxmemory-policy", "allkeys-lru"), ("notify-keyspace-events", "Ee")]);
    let mut client = process.connect();
    // A database takes memory of its own when it is first used.
    ask(&mut client, &["GET", "key"]);
    let empty = figure(&mut client, "used_memory:");
    let value = "x".repeat(100);
    for start in (0..50_000).step_by(1000) {
        let set = |n: usize| words(&["SET", &format!("key:{n}"), &value]);
        pipeline(&mut client, &(start..start + 1000).map(set).collect::<Vec<_>>());
    }
    let full = figure(&mut client, "used_memory:");
    let limit = empty + (full - empty) / 10;
    assert_eq!(ask(&mut client, &["CONFIG", "SET", "maxmemory", &limit.to_string()]), Value::Status(b"OK".into()));
    until("the limit is kept", || figure(&mut client, "used_memory:") <= limit + (64 << 10));
    until("it is over", || figure(&mut client, "current_eviction_exceeded_time:") == 0);
    let mut left = 0;
    // A reply that takes memory may cost some more keys between the two looks.
    until("every key that is gone was evicted", || {
        let Value::Int(size) = ask(&mut client, &["DBSIZE"]) else { panic!("DBSIZE is a number") };
        left = size as u64;
        figure(&mut client, "evicted_keys:") == 50_000 - left
    });
    assert!((1000..10_000).contains(&left), "{left} keys are left");
}

#[test]
fn eviction_notifies_subscribers_and_fails_watching_transactions() {
    let process = Process::start("told", &[("maxmemory-policy", "allkeys-lru"), ("notify-keyspace-events", "Ee")]);
    let (mut client, mut watcher, mut listener) = (process.connect(), process.connect(), process.connect());
    ask(&mut client, &["SET", "key", "value"]);
    ask(&mut listener, &["SUBSCRIBE", "__keyevent@0__:evicted"]);
    ask(&mut watcher, &["WATCH", "key"]);
    ask(&mut client, &["CONFIG", "SET", "maxmemory", "1"]);
    until("the key is gone", || ask(&mut client, &["DBSIZE"]) == Value::Int(0));
    let mut said = String::new();
    while !said.ends_with("key\r\n") {
        let mut byte = [0];
        listener.read_exact(&mut byte).unwrap();
        said.push(byte[0].into());
    }
    assert!(said.contains("__keyevent@0__:evicted"), "{said}");
    ask(&mut client, &["CONFIG", "SET", "maxmemory", "0"]);
    ask(&mut watcher, &["MULTI"]);
    ask(&mut watcher, &["PING"]);
    assert_eq!(ask(&mut watcher, &["EXEC"]), Value::NullArray);
}

/// The share of hits on a trace of skewed accesses, where what is missed is stored, of a cache that holds about a third.
fn hit_share(stream: &mut (impl Read + Write), policy: &str) -> f64 {
    const KEYS: usize = 20_000;
    const VALUE: usize = 500;
    const ROUNDS: usize = 2000;
    ask(stream, &["CONFIG", "SET", "maxmemory-policy", policy]);
    // Counters must not decay within the trace, and must tell few uses from many.
    ask(stream, &["CONFIG", "SET", "lfu-decay-time", "0", "lfu-log-factor", "1"]);
    allow(stream, (KEYS * VALUE / 3) as u64);
    let value = "x".repeat(VALUE);
    let mut random = Random::new(11);
    let (mut hits, mut gets) = (0, 0);
    for round in 0..ROUNDS {
        // The square makes small numbers likely.
        let mut draw = || (random.below(KEYS) as u64 * random.below(KEYS) as u64 / KEYS as u64).to_string();
        let keys: Vec<String> = (0..50).map(|_| draw()).collect();
        let asked: Vec<_> = keys.iter().map(|key| words(&["GET", key])).collect();
        let replies = pipeline(stream, &asked);
        let missed = keys.iter().zip(&replies).filter(|(_, reply)| **reply == Value::NullBulk);
        let sets: Vec<_> = missed.map(|(key, _)| words(&["SET", key, &value])).collect();
        if round >= ROUNDS / 4 {
            hits += keys.len() - sets.len();
            gets += keys.len();
        }
        pipeline(stream, &sets);
    }
    hits as f64 / gets as f64
}

/// Half of the keys, which were used last one after the other, or each a bit more often than the one before, have to go:
/// the share of the later half among those that stay.
fn better_share(stream: &mut (impl Read + Write), policy: &str, option: &str) -> f64 {
    const KEYS: usize = 4000;
    ask(stream, &["CONFIG", "SET", "maxmemory-policy", policy]);
    ask(stream, &["SET", "value", &"x".repeat(300)]);
    let Value::Bulk(payload) = ask(stream, &["DUMP", "value"]) else { panic!("a payload") };
    ask(stream, &["DEL", "value"]);
    let empty = figure(stream, "used_memory:");
    for number in 0..KEYS {
        let (key, idle) = (format!("key:{number}"), (KEYS - number) * 10);
        let used = if option == "FREQ" { number / 16 } else { idle }.to_string();
        let words: [&[u8]; 6] = [b"RESTORE", key.as_bytes(), b"0", &payload, option.as_bytes(), used.as_bytes()];
        stream.write_all(&request(&words)).unwrap();
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+OK\r\n");
    }
    let full = figure(stream, "used_memory:");
    let limit = empty + (full - empty) / 2;
    ask(stream, &["CONFIG", "SET", "maxmemory", &limit.to_string()]);
    until("half of them are gone", || figure(stream, "used_memory:") <= limit + (16 << 10));
    let asked: Vec<_> = (0..KEYS).map(|number| words(&["EXISTS", &format!("key:{number}")])).collect();
    let stay: Vec<_> = pipeline(stream, &asked).iter().map(|reply| *reply == Value::Int(1)).collect();
    let count = |stay: &[bool]| stay.iter().filter(|stays| **stays).count() as f64;
    count(&stay[KEYS / 2..]) / count(&stay)
}

#[test]
fn as_good_a_choice_as_the_genuine_server_makes() {
    for (policy, option) in [("allkeys-lru", "IDLETIME"), ("allkeys-lfu", "FREQ")] {
        let Some(genuine) = Genuine::start(&[]) else { return };
        let theirs = better_share(&mut genuine.connect(), policy, option);
        let process = Process::start(&format!("choice-{policy}"), &[]);
        let ours = better_share(&mut process.connect(), policy, option);
        println!("{policy}: {ours:.3} of what stays is of the better half, {theirs:.3} with the genuine server");
        assert!(ours > theirs - 0.04, "{policy}: {ours:.3} is of the better half, {theirs:.3} with the genuine server");
    }
}

#[test]
fn as_many_hits_as_with_the_genuine_server() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let Some(genuine) = Genuine::start(&[]) else { return };
        let theirs = hit_share(&mut genuine.connect(), policy);
        let process = Process::start(&format!("hits-{policy}"), &[]);
        let ours = hit_share(&mut process.connect(), policy);
        println!("{policy}: {ours:.3} of the accesses hit, {theirs:.3} with the genuine server");
        // Ours holds more entries in the same memory; chance is some thousandths.
        assert!(ours > theirs - 0.03, "{policy}: {ours:.3} of the accesses hit, {theirs:.3} with the genuine server");
    }
}

/// A key's counter by name; each use adds one to it with factor 0.
fn uses(stream: &mut UnixStream) -> BTreeMap<String, i64> {
    let Value::Array(keys) = ask(stream, &["KEYS", "*"]) else { return BTreeMap::new() };
    let count = |key: String| ask(stream, &["OBJECT", "FREQ", &key]).text().parse().ok().map(|uses| (key, uses));
    keys.iter().map(Value::text).filter_map(count).collect()
}

/// A command counts as one use of a key at most, however often it looks at it, and as none where the genuine server counts none. A stored
/// result is a new value here, whose old uses do not count.
#[test]
fn a_command_counts_as_one_use_of_a_key() {
    let settings = [("maxmemory-policy", "allkeys-lfu"), ("lfu-log-factor", "0"), ("lfu-decay-time", "0")];
    let owned = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Some(genuine) = Genuine::start(&owned) else { return };
    let process = Process::start("uses", &settings);
    let (mut ours, mut theirs) = (process.connect(), genuine.connect());
    let mut differences = Vec::new();
    for lines in crate::journal::plain_cases() {
        for line in lines.split(" / ") {
            let words: Vec<&str> = line.split(' ').collect();
            let before = [uses(&mut ours), uses(&mut theirs)];
            let replies = [ask(&mut ours, &words), ask(&mut theirs, &words)];
            if replies.iter().any(Value::is_error) || ["PFDEBUG", "SELECT"].contains(&words[0]) {
                break;
            }
            let after = [uses(&mut ours), uses(&mut theirs)];
            for (key, count) in &after[0] {
                let grown = |at: usize| Some(after[at].get(key)? - before[at].get(key)?);
                let is_right = match (grown(0), grown(1)) {
                    (Some(own), Some(genuine)) => own <= genuine.clamp(0, 1),
                    _ => after[1].get(key).is_some_and(|genuine| count <= genuine),
                };
                if !is_right {
                    let moves = |at: usize| format!("{:?} to {:?}", before[at].get(key), after[at].get(key));
                    differences.push(format!("{line} ({lines}): {key} {}, genuine {}", moves(0), moves(1)));
                }
            }
        }
        for stream in [&mut ours, &mut theirs] {
            ask(stream, &["SELECT", "0"]);
            ask(stream, &["FLUSHALL"]);
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn no_key_goes_in_place_of_a_client() {
    const CLIENTS: usize = 20;
    let settings = [("maxmemory-policy", "allkeys-lru"), ("maxmemory-clients", "1mb")];
    let process = Process::start("clients-first", &settings);
    let mut control = process.connect();
    ask(&mut control, &["CLIENT", "NO-EVICT", "ON"]);
    // A string that was changed in place is copied for each reply.
    ask(&mut control, &["SETRANGE", "key", "100000", "x"]);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| process.connect()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(ask(client, &["PING"]), Value::Status(b"PONG".into())));
    allow(&mut control, 4 << 20);
    // All are served at once, so that many are cut off before the first of them is served again. No client reads its replies.
    ask(&mut control, &["CLIENT", "PAUSE", "200", "ALL"]);
    let mget = request(&["MGET", "key"]).repeat(9);
    clients.iter_mut().for_each(|client| client.write_all(&mget).unwrap());
    until("most clients are cut off", || figure(&mut control, "evicted_clients:") > CLIENTS as u64 / 2);
    assert_eq!(figure(&mut control, "evicted_keys:"), 0);
    until("what they held is freed", || figure(&mut control, "mem_not_counted_for_evict:") == 0);
    assert_eq!(ask(&mut control, &["DBSIZE"]), Value::Int(1));
}

#[test]
fn import_mode_refuses_writes_instead_of_evicting() {
    let process = Process::start("imported", &[("maxmemory-policy", "allkeys-lru"), ("import-mode", "yes")]);
    let mut stream = process.connect();
    assert_eq!(ask(&mut stream, &["SET", "a", "1"]), Value::Status(b"OK".into()));
    assert_eq!(ask(&mut stream, &["CONFIG", "SET", "maxmemory", "1"]), Value::Status(b"OK".into()));
    let refused = ask(&mut stream, &["SET", "b", "1"]);
    assert_eq!(refused, Value::Error(b"OOM command not allowed when used memory > 'maxmemory'.".into()));
    assert_eq!(ask(&mut stream, &["DBSIZE"]), Value::Int(1));
    assert_eq!(ask(&mut stream, &["CONFIG", "SET", "import-mode", "no"]), Value::Status(b"OK".into()));
    until("the key is evicted", || ask(&mut stream, &["DBSIZE"]) == Value::Int(0));
}

/// Whether a reply, or one inside it, refuses a command for want of memory.
fn is_refused(reply: &Value) -> bool {
    match reply {
        Value::Error(text) => text.windows(3).any(|word| word == b"OOM"),
        Value::Array(replies) => replies.iter().any(is_refused),
        _ => false,
    }
}

const LIBRARY: &str = "#!lua name=lib\nredis.register_function('store', function(keys, args) return redis.call('SET', keys[1], args[1]) end)";
const STORE: &str = "return redis.call('SET', KEYS[1], ARGV[1])";
const FLAGGED: &str = "#!lua\nreturn redis.call('SET', KEYS[1], ARGV[1])";

/// Large calls to an evicting cache that is full, by every path on which arguments are copied: how many are refused of each.
fn refused_when_full(stream: &mut (impl Read + Write)) -> Vec<(&'static str, usize)> {
    const CALLS: usize = 100;
    let value = "x".repeat(64 * 1024);
    ask(stream, &["FUNCTION", "LOAD", LIBRARY]);
    let Value::Bulk(digest) = ask(stream, &["SCRIPT", "LOAD", STORE]) else { panic!("a digest") };
    let digest = String::from_utf8(digest).unwrap();
    ask(stream, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    allow(stream, 8 << 20);
    let small = "x".repeat(1000);
    for start in (0..20_000).step_by(1000) {
        let set = |n: usize| words(&["SET", &format!("small:{n}"), &small]);
        pipeline(stream, &(start..start + 1000).map(set).collect::<Vec<_>>());
    }
    let many: Vec<String> = (0..3000).flat_map(|n| [format!("many:{n}"), "x".repeat(20)]).collect();
    let eval = |n: usize| words(&["EVAL", STORE, "1", &format!("key:{n}"), &value]);
    let call = |path: &str, n: usize| {
        let key = format!("key:{n}");
        match path {
            "EVAL" | "EVAL, pipelined" => vec![eval(n)],
            "EVAL with flags" => vec![words(&["EVAL", FLAGGED, "1", &key, &value])],
            "EVALSHA" => vec![words(&["EVALSHA", &digest, "1", &key, &value])],
            "FCALL" => vec![words(&["FCALL", "store", "1", &key, &value])],
            "SET" => vec![words(&["SET", &key, &value])],
            "MSET of 3,000 keys" => vec![[words(&["MSET"]), many.clone()].concat()],
            "EXEC with SET" => vec![words(&["MULTI"]), words(&["SET", &key, &value]), words(&["EXEC"])],
            "EXEC with EVAL" => vec![words(&["MULTI"]), eval(n), words(&["EXEC"])],
            _ => unreachable!("{path}"),
        }
    };
    let paths = [
        "EVAL",
        "EVAL, pipelined",
        "EVAL with flags",
        "EVALSHA",
        "FCALL",
        "SET",
        "MSET of 3,000 keys",
        "EXEC with SET",
        "EXEC with EVAL",
    ];
    let count = |path: &'static str| {
        let at_once = if path.ends_with("pipelined") { 10 } else { 1 };
        let refused = (0..CALLS).step_by(at_once).map(|first| {
            let commands: Vec<_> = (first..first + at_once).flat_map(|n| call(path, n)).collect();
            pipeline(stream, &commands).iter().filter(|reply| is_refused(reply)).count()
        });
        (path, refused.sum())
    };
    paths.map(count).to_vec()
}

#[test]
fn nothing_is_refused_for_the_copies_of_its_arguments() {
    let process = Process::start("copies", &[]);
    let ours = refused_when_full(&mut process.connect());
    let theirs = Genuine::start(&[]).map(|genuine| refused_when_full(&mut genuine.connect()));
    println!("refused of 100 calls: {ours:?}; with the genuine server {theirs:?}");
    for (path, refused) in &ours {
        assert_eq!(*refused, 0, "{path}: of 100 calls are refused");
    }
    if let Some(theirs) = theirs {
        assert_eq!(ours, theirs);
    }
}

/// A script runs while keys are still to be evicted, like any other command.
#[test]
fn scripts_run_while_eviction_goes_on() {
    let scripts = |stream: &mut (_, _)| -> Vec<Value> {
        let (control, client): &mut (std::os::unix::net::UnixStream, std::os::unix::net::UnixStream) = stream;
        ask(control, &["CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory-eviction-tenacity", "0"]);
        ask(control, &["DEBUG", "POPULATE", "200000", "key", "100"]);
        ask(control, &["CONFIG", "SET", "maxmemory", "6mb"]);
        let eval = words(&["EVAL", STORE, "1", "script", "value"]);
        let flagged = words(&["EVAL", FLAGGED, "1", "script", "value"]);
        pipeline(client, &[eval, flagged])
    };
    let process = Process::start("coming", &[("enable-debug-command", "yes")]);
    let done = vec![Value::Status(b"OK".into()); 2];
    assert_eq!(scripts(&mut (process.connect(), process.connect())), done);
    let Some(genuine) = Genuine::start(&[]) else { return };
    assert_eq!(scripts(&mut (genuine.connect(), genuine.connect())), done);
}

/// Where nothing may be evicted: what is refused, and in which words, is what the genuine server refuses.
#[test]
fn without_eviction_as_the_genuine_server_refuses() {
    let cases: &[&[&[&str]]] = &[
        &[&["EVAL", STORE, "1", "key", "value"]],
        &[&["EVAL", FLAGGED, "1", "key", "value"]],
        &[&["EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], ARGV[1])", "1", "key", "value"]],
        &[&["EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])", "1", "key"]],
        &[&["EVAL", "return redis.call('GET', KEYS[1])", "1", "key"]],
        &[&["EVAL", "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 'v')", "1", "key"]],
        &[&["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "key"]],
        &[&["FCALL", "store", "1", "key", "value"]],
        &[&["RESTORE", "other", "0", "x"]],
        &[&["GET", "key"], &["DEL", "key"], &["SET", "key", "value"]],
        &[&["MULTI"], &["GET", "key"], &["EXEC"]],
        &[&["MULTI"], &["PING"], &["DISCARD"]],
        &[&["EXEC"]],
    ];
    let answers = |stream: &mut std::os::unix::net::UnixStream| -> Vec<Vec<Value>> {
        ask(stream, &["FUNCTION", "LOAD", LIBRARY]);
        ask(stream, &["CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1"]);
        let commands = cases.iter().map(|case| case.iter().map(|command| words(command)).collect::<Vec<_>>());
        commands.map(|commands| pipeline(stream, &commands)).collect()
    };
    let process = Process::start("no-eviction", &[]);
    let ours = answers(&mut process.connect());
    let Some(genuine) = Genuine::start(&[]) else { return };
    let theirs = answers(&mut genuine.connect());
    for ((case, ours), theirs) in cases.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs, "{case:?}");
    }
}

/// Commands that come together are judged one by one: each by what those in front of it have left.
#[test]
fn a_pipeline_stops_where_memory_ends() {
    // As many as fit into one read, and run under common locks.
    const VALUES: usize = 30;
    let stored = |stream: &mut std::os::unix::net::UnixStream| {
        ask(stream, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        let value = "x".repeat(2000);
        let sets: Vec<_> = (0..VALUES).map(|n| words(&["SET", &format!("key:{n}"), &value])).collect();
        // The buffers that the same requests need are there.
        let gone: Vec<_> = (0..VALUES).map(|n| words(&["DEL", &format!("key:{n}")])).collect();
        pipeline(stream, &sets);
        pipeline(stream, &gone);
        allow(stream, 20_000);
        let replies = pipeline(stream, &sets);
        let stored = replies.iter().filter(|reply| **reply == Value::Status(b"OK".into())).count();
        assert_eq!(replies.iter().filter(|reply| is_refused(reply)).count(), VALUES - stored, "{replies:?}");
        stored
    };
    let process = Process::start("stops", &[]);
    let ours = stored(&mut process.connect());
    let theirs = Genuine::start(&[]).map(|genuine| stored(&mut genuine.connect()));
    println!(
        "{ours} of {VALUES} values of 2 kB are stored where there is room for ten; {theirs:?} by the genuine server"
    );
    assert!(ours < 16, "{ours} values of 2 kB in 20 kB");
}
