//! JSON documents and Bloom filters as values among others: files and payloads that RedisJSON and RedisBloom read and write, what
//! outlives the server, and what documents and paths may cost.

use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::genuine::Genuine;
use crate::support::process::{Process, ask};
use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::{PATIENCE, until};

const DEBUG: (&str, &str) = ("enable-debug-command", "yes");

/// Makes documents and filters of several forms.
fn fill(stream: &mut (impl Read + Write)) {
    let large =
        format!("[{}]", (0..20_000).map(|n| format!("{{\"n\":{n},\"d\":{n}.5}}")).collect::<Vec<_>>().join(","));
    let elements: Vec<String> = (0..300).map(|n| format!("e{n}")).collect();
    let items: Vec<&str> = elements.iter().map(String::as_str).collect();
    let calls: &[&[&str]] = &[
        &["JSON.SET", "document", "$", r#"{"a":[1,-2.5,"é\n",true,null,18446744073709551615],"o":{"e":{}}}"#],
        &["JSON.SET", "number", "$", "7"],
        &["JSON.SET", "large", "$", &large],
        &["JSON.SET", "expires", "$", "[]"],
        &["PEXPIREAT", "expires", "9999999999999"],
        &["BF.RESERVE", "fixed", "0.01", "500", "NONSCALING"],
        &[&["BF.MADD", "fixed"][..], &items].concat(),
        &["BF.RESERVE", "grows", "0.001", "50", "EXPANSION", "3"],
        &[&["BF.MADD", "grows"][..], &items].concat(),
    ];
    for call in calls {
        let reply = ask(stream, call);
        assert!(!reply.is_error(), "{:?}: {reply:?}", &call[..2]);
    }
}

/// The visible state of the documents.
fn seen(stream: &mut (impl Read + Write)) -> Vec<Value> {
    let calls: &[&[&str]] = &[
        &["JSON.GET", "document"],
        &["JSON.GET", "number"],
        &["JSON.GET", "large"],
        &["PEXPIRETIME", "expires"],
        &["BF.DEBUG", "fixed"],
        &["BF.DEBUG", "grows"],
        &["BF.SCANDUMP", "grows", "0"],
        &["BF.SCANDUMP", "grows", "1"],
        &["BF.SCANDUMP", "fixed", "1"],
        &["BF.MEXISTS", "grows", "e0", "e299", "none", "x", "y", "z"],
        &["BF.INFO", "fixed"],
    ];
    calls.iter().map(|call| ask(stream, call)).collect()
}

#[test]
fn files_and_payloads_are_those_of_the_modules() {
    let Some(genuine) = Genuine::with_modules(&[]) else { return };
    let mut theirs = genuine.connect();
    fill(&mut theirs);
    let expected = seen(&mut theirs);
    assert_eq!(ask(&mut theirs, &["SAVE"]).text(), "OK");

    let mut ours = Process::start("documents", &[DEBUG]);
    let mut stream = ours.connect();
    fill(&mut stream);
    assert_eq!(seen(&mut stream), expected, "what is made here is the same");
    for key in ["document", "number", "large", "expires", "fixed", "grows"] {
        for (from, to) in [(true, false), (false, true)] {
            let dump = |stream: &mut dyn ReadWrite| dump(stream, key);
            let payload = if from { dump(&mut theirs) } else { dump(&mut stream) };
            let restored = if to { restore(&mut theirs, &payload) } else { restore(&mut stream, &payload) };
            assert_eq!(restored, Value::Status(b"OK".into()), "{key}, from the genuine server: {from}");
        }
    }
    ours.signal(Signal::KILL);
    ours.ended();
    fs::copy(genuine.folder.join("dump.rdb"), ours.folder.join("dump.rdb")).unwrap();
    ours.restart();
    let mut stream = ours.connect();
    assert_eq!(seen(&mut stream), expected, "its file is loaded");
    assert_eq!(ask(&mut stream, &["DEBUG", "RELOAD"]).text(), "OK");
    assert_eq!(seen(&mut stream), expected, "and ours again");
    let again = Genuine::with_modules_and_file(&ours.folder.join("dump.rdb")).unwrap();
    assert_eq!(seen(&mut again.connect()), expected, "our file is loaded there");
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

fn dump(mut stream: &mut dyn ReadWrite, key: &str) -> Vec<u8> {
    let Value::Bulk(payload) = ask(&mut stream, &["DUMP", key]) else { panic!("{key} is there") };
    payload
}

fn restore(stream: &mut dyn ReadWrite, payload: &[u8]) -> Value {
    stream
        .write_all(&crate::support::resp::request(&[&b"RESTORE"[..], b"restored", b"0", payload, b"REPLACE"]))
        .unwrap();
    reply(stream)
}

fn reply(stream: &mut dyn ReadWrite) -> Value {
    let mut input = Vec::new();
    loop {
        if let Some((value, _)) = crate::support::resp::parse(&input).unwrap() {
            return value;
        }
        let mut chunk = [0; 1024];
        let count = test_peers::read(stream, &mut chunk).unwrap();
        assert!(count > 0, "the server is there");
        input.extend_from_slice(&chunk[..count]);
    }
}

#[test]
fn documents_and_filters_outlive_the_server() {
    for preamble in ["yes", "no"] {
        let settings = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble), DEBUG];
        let mut server = Process::start(&format!("documents-{preamble}"), &settings);
        let mut client = server.connect();
        fill(&mut client);
        for call in [
            &["JSON.NUMINCRBY", "document", "$.a[*]", "2.25"][..],
            &["JSON.ARRINSERT", "document", "$.a", "1", "[]", "{}"],
            &["JSON.DEL", "document", "$.o.e"],
            &["JSON.MSET", "number", "$", "8", "other", "$", "{}"],
            &["JSON.MERGE", "other", "$", "{\"a\":{\"b\":null}}"],
            &["JSON.DEL", "other", "$.nothing"],
            &["BF.ADD", "grows", "one more"],
            &["COPY", "large", "copy"],
        ] {
            assert!(!ask(&mut client, call).is_error(), "{call:?}");
        }
        let digest = |server: &Process| ask(&mut server.connect(), &["DEBUG", "DIGEST"]).text();
        let (before, looks) = (digest(&server), seen(&mut client));
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        server.restart();
        assert_eq!(digest(&server), before, "from what was said");
        ask(&mut server.connect(), &["BGREWRITEAOF"]);
        until("it is rewritten", || {
            ask(&mut server.connect(), &["INFO", "persistence"]).text().contains("aof_rewrite_in_progress:0")
        });
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        server.restart();
        assert_eq!(digest(&server), before, "from the new base");
        assert_eq!(seen(&mut server.connect()), looks);
    }
}

#[test]
fn a_replica_has_what_its_primary_has() {
    let primary = Server::with(&[("repl-diskless-sync-delay", "0")]);
    let mut client = primary.connect();
    fill(&mut client.stream);
    let replica = Server::with(&[]);
    let mut follower = replica.connect();
    follower.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    let digest = |client: &mut Client| client.ask("DEBUG DIGEST").text();
    until("the snapshot is there", || digest(&mut follower) == digest(&mut client));
    client.ask("JSON.ARRAPPEND document $.a 1 2 3");
    client.ask("JSON.TOGGLE document $.a[3]");
    client.ask("JSON.ARRPOP document $.a 0");
    client.ask("BF.INSERT new ITEMS a b c");
    let expected = digest(&mut client);
    until("what was said is there", || digest(&mut follower) == expected);
}

/// The memory that a key with a document adds, by the figures of both servers.
#[test]
fn documents_take_less_than_in_the_module() {
    const KEYS: usize = 10_000;
    let Some(genuine) = Genuine::with_modules(&[]) else { return };
    let ours = Process::start("documents-memory", &[]);
    let (mut one, mut other) = (ours.connect(), genuine.connect());
    let mut check = |text: &str, most: f64| {
        let [own, theirs] = [grown(&mut one, text, KEYS), grown(&mut other, text, KEYS)];
        println!("{} bytes of text: {own:.0} bytes, {theirs:.0} in the module", text.len());
        assert!(own < most * theirs, "{text}: {own} bytes, {theirs} in the module");
    };
    let list = |elements: Vec<String>| format!("[{}]", elements.join(","));
    check(
        r#"{"id":12345,"name":"Ann Other","address":"1 Some Street","active":true,"amount":19.95,"tags":["a","bc"]}"#,
        0.5,
    );
    check(&list((0..143).map(|number| (number * 7).to_string()).collect()), 0.25);
    check(&list((0..100).map(|number| format!("{number}.25")).collect()), 0.25);
    check(r#"{"a":1}"#, 0.5);
}

/// Bytes for each of so many keys with a document.
fn grown(stream: &mut (impl Read + Write), text: &str, keys: usize) -> f64 {
    let used = |stream: &mut _| {
        let info = ask(stream, &["INFO", "memory"]).text();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        line.trim().parse::<f64>().unwrap()
    };
    ask(stream, &["FLUSHALL"]);
    let before = used(stream);
    for number in 0..keys {
        assert_eq!(ask(stream, &["JSON.SET", &format!("document:{number:06}"), "$", text]).text(), "OK");
    }
    (used(stream) - before) / keys as f64
}

/// A transaction that watches a document, or a filter, fails when it changes.
#[test]
fn watchers_are_told() {
    let server = Server::start();
    let [mut one, mut other] = [server.connect(), server.connect()];
    for (make, change) in [
        ("JSON.SET k $ [1]", "JSON.ARRAPPEND k $ 2"),
        ("JSON.SET k $ [1]", "JSON.DEL k $[0]"),
        ("BF.ADD f a", "BF.ADD f b"),
    ] {
        one.ask(make);
        let key = make.split(' ').nth(1).unwrap();
        one.ask(&format!("WATCH {key}"));
        other.ask(change);
        one.ask("MULTI");
        one.ask("PING");
        assert_eq!(one.ask("EXEC"), Value::NullArray, "{change}");
    }
    // A command without an effect does not touch the key.
    one.ask("WATCH k f");
    other.ask("JSON.DEL k $.nothing");
    other.ask("BF.ADD f a");
    one.ask("MULTI");
    one.ask("PING");
    assert_eq!(one.ask("EXEC"), Value::Array(vec![Value::Status(b"PONG".into())]));
}

#[test]
fn users_are_given_documents_and_filters_by_category() {
    let server = Server::start();
    let mut client = server.connect();
    client.ask("ACL SETUSER ann on nopass ~* +@json");
    client.ask("ACL SETUSER bob on nopass ~* +@all -@bloom");
    let check = |user: &str, call: &str, is_allowed: bool| {
        let mut client = server.connect();
        client.ask(&format!("AUTH {user} x"));
        let Value::Error(text) = client.ask(call) else { return assert!(is_allowed, "{user} {call}") };
        assert!(!is_allowed && text.starts_with(b"NOPERM"), "{user} {call}: {}", text.escape_ascii());
    };
    check("ann", "JSON.SET d $ {}", true);
    check("ann", "JSON.DEBUG MEMORY d", true);
    check("ann", "BF.ADD f a", false);
    check("bob", "JSON.GET d", true);
    check("bob", "BF.ADD f a", false);
}

#[test]
fn nothing_in_a_text_or_a_path_makes_a_client_wait_for_long() {
    let port = test_peers::free_port();
    let process = Process::start("documents-hostile", &[("port", &port.to_string())]);
    let mut client = Client::connect((Ipv4Addr::LOCALHOST, port).into());
    client.stream.set_read_timeout(Some(4 * PATIENCE)).unwrap();
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let chain = "{\"a\":".repeat(127) + "[]" + &"}".repeat(127);
    let wide = format!("[{}]", vec!["[1,2,3]"; 20_000].join(","));
    let is_error = |value: Value, start: &str| {
        let Value::Error(text) = value else { panic!("{start} is expected") };
        assert!(text.starts_with(start.as_bytes()), "{}", text.escape_ascii());
    };
    let mut say = |words: &[&str]| {
        client.send(words);
        client.reply()
    };
    is_error(say(&["JSON.SET", "d", "$", &deep]), "ERR the document would be deeper than 128 containers");
    is_error(
        say(&["JSON.SET", "d", "$", &"[".repeat(1 << 20)]),
        "ERR the document would be deeper than 128 containers",
    );
    assert_eq!(say(&["JSON.SET", "chain", "$", &chain]), Value::Status(b"OK".into()));
    assert_eq!(say(&["JSON.SET", "wide", "$", &wide]), Value::Status(b"OK".into()));
    let innermost = ["$", &".a".repeat(127)].concat();
    is_error(say(&["JSON.SET", "chain", &innermost, "[[]]"]), "ERR the document would be deeper than 128 containers");
    is_error(
        say(&["JSON.ARRAPPEND", "chain", &innermost, "[]"]),
        "ERR the document would be deeper than 128 containers",
    );
    let work = "ERR the path makes one look at values more than";
    for (key, path) in [
        ("chain", ["$", &"..a".repeat(100)].concat()),
        ("chain", ["$", &"..*".repeat(1000)].concat()),
        ("chain", "$..[?(@..[?(@..[?(@..[?(@==9)])])])]".to_owned()),
        ("wide", "$[?($..[?(@==9)])]".to_owned()),
    ] {
        is_error(say(&["JSON.GET", key, &path]), work);
        is_error(say(&["JSON.DEL", key, &path]), work);
        is_error(say(&["JSON.NUMINCRBY", key, &path, "1"]), work);
    }
    is_error(say(&["JSON.GET", "wide", &["$", &".a".repeat(10_000)].concat()]), "ERR path '");
    is_error(say(&["JSON.GET", "wide", &["$[?", &"(".repeat(10_000)].concat()]), "ERR path '");
    is_error(say(&["JSON.GET", "wide", "$[?(@=~'((((a{1,99}){1,99}){1,99}){1,99})')]"]), "ERR path '");
    assert_eq!(say(&["JSON.GET", "chain", &innermost]), Value::Bulk(b"[[]]".into()), "nothing has changed");
    // Each of these alone is allowed, and so many in one call are not.
    let often = "$..a..a..a.b";
    assert_eq!(say(&["JSON.GET", "chain", often]), Value::Bulk(b"[]".into()));
    is_error(say(&[&["JSON.MGET"][..], &["chain"; 10], &[often]].concat()), work);
    let all: Vec<String> = (0..100).map(|n| format!("$..[?(@=={n})]")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(say(&["JSON.GET", "wide", all[9]]), Value::Bulk(b"[]".into()));
    is_error(say(&[&["JSON.GET", "wide"][..], &all].concat()), work);
    assert_eq!(say(&["JSON.MSET", "wide", all[1], "1"]), Value::Status(b"OK".into()));
    is_error(say(&[&["JSON.MSET"][..], &["wide", all[1], "1"].repeat(100)].concat()), work);
    // Each of the filters goes down from the root, and the next one is met there.
    assert_eq!(say(&["JSON.SET", "chain", &innermost, "[1]"]), Value::Status(b"OK".into()));
    let nested = (0..4).fold(innermost.clone(), |inner, _| format!("{innermost}[?({inner})]"));
    assert_eq!(say(&["JSON.GET", "chain", &nested]), Value::Bulk(b"[1]".into()));
    // The server's own time, whatever else the machine does.
    let took = process.cpu_seconds();
    assert!(took < 60.0, "40 calls took {took} s");
}

/// Heads that say what cannot be, and chunks for places that are not there.
#[test]
fn forged_bloom_filters_are_refused() {
    let server = Process::start("forged-filters", &[]);
    let mut client = server.connect();
    let mut load = |key: &str, iterator: &str, data: &[u8]| {
        client
            .write_all(&crate::support::resp::request(&[
                &b"BF.LOADCHUNK"[..],
                key.as_bytes(),
                iterator.as_bytes(),
                data,
            ]))
            .unwrap();
        reply(&mut client)
    };
    let bad = Value::Error(b"ERR received bad data".into());
    let link = |bytes: u64, width: u64, hashes: u32| {
        let numbers = [bytes, width, 0, 0.01_f64.to_bits(), 10_f64.to_bits()].map(u64::to_le_bytes).concat();
        [&numbers[..], &hashes.to_le_bytes(), &100_u64.to_le_bytes(), &[0]].concat()
    };
    let head = |count: u32, links: &[Vec<u8>]| {
        [&0_u64.to_le_bytes()[..], &count.to_le_bytes(), &5_u32.to_le_bytes(), &2_u32.to_le_bytes(), &links.concat()]
            .concat()
    };
    for (what, data) in [
        ("no filter", head(0, &[])),
        ("more filters than it has", head(u32::MAX, &[link(64, 512, 7)])),
        ("too many filters", head(1025, &vec![link(64, 512, 7); 1025])),
        ("more bytes than there are", head(1, &[link(u64::MAX, 512, 7)])),
        ("more bytes than a filter may have", head(2, &[link(1 << 29, 512, 7), link((1 << 29) + 1, 512, 7)])),
        ("more bits than bytes", head(1, &[link(64, 513, 7)])),
        ("no bits", head(1, &[link(64, 0, 7)])),
        ("more bits for an element than any rate asks for", head(1, &[link(64, 512, 1101)])),
    ] {
        assert_eq!(load("f", "1", &data), bad, "{what}");
    }
    assert_eq!(load("f", "1", &head(2, &[link(64, 512, 7), link(64, 512, 7)])), Value::Status(b"OK".into()));
    for (iterator, len) in [(-1, 1), (0, 1), (1 << 40, 1), (i64::MAX, 64), (i64::MIN, 64), (130, 1), (97, 64), (33, 64)]
    {
        assert_eq!(load("f", &iterator.to_string(), &vec![0xff; len]), bad, "{len} bytes in front of {iterator}");
    }
    assert_eq!(load("f", "65", &[0xff; 64]), Value::Status(b"OK".into()));
    assert_eq!(load("f", "129", &[0xff; 64]), Value::Status(b"OK".into()));
    assert_eq!(ask(&mut client, &["BF.EXISTS", "f", "any"]), Value::Int(1));
    // A filter is created within the limits, or not at all.
    let too_large = Value::Error(b"ERR the filter would have more than 1073741824 bytes or 1024 sub-filters".into());
    for capacity in ["1000000000", "9223372036854775807"] {
        assert_eq!(ask(&mut client, &["BF.RESERVE", "r", "0.001", capacity]), too_large);
        assert_eq!(ask(&mut client, &["BF.INSERT", "r", "CAPACITY", capacity, "ITEMS", "a"]), too_large);
    }
    let steep = &["BF.INSERT", "steep", "CAPACITY", "1", "EXPANSION", "4294967295", "ITEMS", "a", "b", "c"];
    assert_eq!(ask(&mut client, steep), Value::Array(vec![Value::Int(1), too_large]));
    assert!(server.peak() < 100 << 20, "the peak of memory is {}", server.peak());
}

/// Bytes of a large document's text; a tenth where nothing is optimized.
const LARGE: usize = if cfg!(debug_assertions) { 10_000_000 } else { 100_000_000 };

/// Clients beside it are served. `--nocapture` prints what it takes.
#[test]
fn a_large_document_has_bounded_memory_and_latency() {
    let server = Process::start("large-document", &[("save", ""), DEBUG]);
    let mut client = server.connect();
    let element = r#"{"id":123456,"name":"a name of some length","tags":["a","b","c"],"price":19.95,"ok":true}"#;
    let count = LARGE / (element.len() + 1);
    let text = format!("[{}]", vec![element; count].join(","));
    let mut timed = |words: &[&str]| {
        let start = Instant::now();
        let reply = ask(&mut client, words);
        println!("{:?}: {:?}", &words[..words.len().min(3)], start.elapsed());
        reply
    };
    assert_eq!(timed(&["JSON.SET", "d", "$", &text]), Value::Status(b"OK".into()));
    let Value::Int(memory) = timed(&["MEMORY", "USAGE", "d"]) else { panic!("a number") };
    println!("{} bytes of text, {memory} bytes stored, {} values", text.len(), count * 9);
    assert!(memory < text.len() as i64, "{memory}");
    let mut neighbour = server.connect();
    let start = Instant::now();
    assert_eq!(ask(&mut neighbour, &["PING"]), Value::Status(b"PONG".into()));
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(timed(&["JSON.ARRLEN", "d"]), Value::Int(count as i64));
    assert_eq!(timed(&["JSON.GET", "d", "$[-1].price"]), Value::Bulk(b"[19.95]".into()));
    assert_eq!(timed(&["JSON.SET", "d", "$[0].name", "\"longer than it was before\""]), Value::Status(b"OK".into()));
    assert_eq!(timed(&["JSON.STRLEN", "d", "$[0].name"]), Value::Array(vec![Value::Int(25)]));
    let changed = timed(&["JSON.CLEAR", "d", "$[*].price"]);
    assert_eq!(changed, Value::Int(count as i64));
    let Value::Bulk(text) = timed(&["JSON.GET", "d", "$..price"]) else { panic!("a text") };
    assert_eq!(text.len(), 2 * count + 1);
    assert_eq!(timed(&["DEL", "d"]), Value::Int(1));
    let peak = server.peak();
    println!("{peak} bytes at the peak");
    assert!(peak < 1 << 30, "the peak of memory is {peak}");
}
