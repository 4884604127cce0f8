//! Valkey's search module: what it answers otherwise than RediSearch, with `compatibility valkey-9`.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use rustix::process::Signal;

use super::{ask, find, ids, run};
use crate::support::process::{Process, ask as command};
use crate::support::resp::{Value, take_bare_errors};
use crate::support::server::{Client, Server};
use crate::support::until;

fn start() -> (Server, Client) {
    let server = Server::with(&[("compatibility", "valkey-9")]);
    let mut client = server.connect();
    run(&mut client, "FT.CONFIG SET DEFAULT_DIALECT 2");
    (server, client)
}

/// The value behind a name in a list of names and values.
fn named(reply: &Value, name: &str) -> Option<String> {
    let Value::Array(items) = reply else { panic!("no list: {reply:?}") };
    items.chunks(2).find(|pair| pair[0].text() == name).map(|pair| flat(&pair[1]))
}

/// A text, or those of a list with spaces between them.
fn flat(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(" "),
        value => value.text(),
    }
}

#[test]
fn modules_have_valkeys_names() {
    for (level, expected) in [("valkey-9", "json"), ("8.0", "ReJSON")] {
        let server = Server::with(&[("compatibility", level)]);
        let mut client = server.connect();
        let Value::Array(modules) = run(&mut client, "MODULE LIST") else { panic!("a list") };
        let names: Vec<_> = modules.iter().filter_map(|module| named(module, "name")).collect();
        assert!(names.iter().any(|name| name == expected), "{level}: {names:?}");
        let info = run(&mut client, "INFO modules").text();
        assert!(info.contains(&format!("name={expected},")), "{level}: {info}");
    }
}

#[test]
fn totals_of_aggregations_are_rows() {
    let (_server, mut client) = start();
    run(&mut client, "FT.CREATE i SCHEMA t TEXT n NUMERIC");
    for number in 0..5 {
        run(&mut client, &format!("HSET {number} t word n {number}"));
    }
    for (steps, expected) in [("", 5), ("LIMIT 1 3", 3), ("GROUPBY 1 @t", 1), ("SORTBY 1 @n MAX 2", 2)] {
        let Value::Array(rows) = run(&mut client, &format!("FT.AGGREGATE i word LOAD 2 t n {steps}")) else {
            panic!("a list")
        };
        assert_eq!((rows[0].text(), rows.len() - 1), (expected.to_string(), expected), "{steps}");
    }
    let empty = ask(&mut client, "FT.AGGREGATE i word FILTER ''").text();
    assert!(empty.contains("Invalid or missing expression"), "{empty}");
}

#[test]
fn tags_need_no_escapes_and_filters_no_parentheses() {
    let (_server, mut client) = start();
    run(&mut client, "FT.CREATE i SCHEMA g TAG n NUMERIC v VECTOR FLAT 6 TYPE INT8 DIM 2 DISTANCE_METRIC L2");
    run(&mut client, "HSET 1 g Tag:1-a n 1 v aa");
    run(&mut client, "HSET 2 g 'x}y z' n 2 v ab");
    let mut check = |query: &str, expected: &[&str]| {
        let found: Vec<String> = find(&mut client, "i", query).into_iter().collect();
        assert_eq!(found, expected, "{query}");
    };
    check("@g:{Tag:*}", &["1"]);
    check("@g:{ tag:1-a | none }", &["1"]);
    check("@g:{Tag\\:1\\-a}", &["1"]);
    check("@g:{x\\}y z}", &["2"]);
    check("-@g:{Tag:*}", &["2"]);
    let query = "FT.SEARCH i '@g:{Tag:*} @n:[0 5]=>[KNN 2 @v $q]' PARAMS 2 q aa NOCONTENT";
    assert_eq!(ids(&run(&mut client, query)), BTreeSet::from(["1".to_owned()]));
}

#[test]
fn indexes_have_valkeys_options_and_progress() {
    let (_server, mut client) = start();
    run(&mut client, "FT.CREATE plain WITHOFFSETS NOSTEM SCHEMA t TEXT");
    run(&mut client, "FT.CREATE long MINSTEMSIZE 7 SCHEMA t TEXT");
    run(&mut client, "HSET 1 t running");
    run(&mut client, "HSET 2 t runs");
    let mut check = |index: &str, query: &str, expected: &[&str]| {
        let found: Vec<String> = find(&mut client, index, query).into_iter().collect();
        assert_eq!(found, expected, "{index}: {query}");
    };
    check("plain", "run", &[]);
    check("plain", "running", &["1"]);
    check("long", "run", &["1"]);
    check("long", "runs", &["1", "2"]);
    for scope in ["", "LOCAL", "PRIMARY", "CLUSTER ALLSHARDS CONSISTENT"] {
        let info = run(&mut client, &format!("FT.INFO plain {scope}"));
        let told = |name: &str| named(&info, name).unwrap_or_default();
        assert_eq!(told("backfill_in_progress"), "0", "{scope}");
        assert_eq!(told("backfill_complete_percent"), "1", "{scope}");
        assert_eq!((told("state"), told("mutation_queue_size")), ("ready".to_owned(), "0".to_owned()), "{scope}");
        let mode = scope.split(' ').next().unwrap_or_default().to_lowercase();
        assert_eq!(told("mode"), mode, "{scope}");
    }
    assert!(ask(&mut client, "FT.INFO plain SOMEWHERE").is_error());
    assert_eq!(find(&mut client, "plain", "running LOCALONLY").len(), 0, "a word of the query");
    let local = run(&mut client, "FT.SEARCH plain running LOCALONLY SOMESHARDS INCONSISTENT NOCONTENT");
    assert_eq!(ids(&local), BTreeSet::from(["1".to_owned()]));
}

/// Three documents, with the punctuation `.,!` and with the default.
const PUNCTUATED: &[&str] = &[
    "HSET 1 t 'hello.world test@email'",
    "HSET 2 t 'test\\,value back\\slash'",
    "HSET 3 t 'me@home. C#/C++ it-is'",
    "FT.CREATE own PUNCTUATION .,! NOSTOPWORDS SCHEMA t TEXT",
    "FT.CREATE plain SCHEMA t TEXT",
    "FT.ALTER own SCHEMA ADD u TEXT",
    "HSET 4 u 'a@b.c'",
    "FT.SYNUPDATE own group me@home self",
];

/// Their answers: index, query, documents.
const ANSWERS: &[(&str, &str, &[&str])] = &[
    ("own", "hello", &["1"]),
    ("own", "test", &[]),
    ("own", "@t:\"test@email\"", &["1"]),
    ("own", "test\\@email", &["1"]),
    ("own", "test\\@em*", &["1"]),
    ("own", "w'test?email'", &["1"]),
    ("own", "%tests\\@email%", &["1"]),
    ("own", "test\\,value", &["2"]),
    ("own", "test,value", &[]),
    ("own", "back", &[]),
    ("own", "back\\slash", &["2"]),
    ("own", "c#/c++", &["3"]),
    ("own", "it\\-is", &["3"]),
    ("own", "me\\@home", &["3"]),
    ("own", "a\\@b", &["4"]),
    ("own", "self", &["3"]),
    ("plain", "test", &["1"]),
    ("plain", "@t:\"test@email\"", &["1"]),
    ("plain", "c#/c++", &["3"]),
    ("plain", "home", &["3"]),
];

#[test]
fn words_end_at_the_punctuation_of_their_index() {
    let (_server, mut client) = start();
    PUNCTUATED.iter().for_each(|line| _ = run(&mut client, line));
    for (index, query, expected) in ANSWERS {
        let found: Vec<String> = find(&mut client, index, query).into_iter().collect();
        assert_eq!(found, *expected, "{index}: {query}");
    }
    let shown = |client: &mut Client, options: &str| {
        flat(&run(client, &format!("FT.SEARCH own '@t:\"test@email\"' {options}")))
    };
    assert!(shown(&mut client, "HIGHLIGHT TAGS [ ]").contains("hello.world [test@email]"));
    let cut = shown(&mut client, "SUMMARIZE FRAGS 1 LEN 4");
    assert!(cut.contains("world test@email"), "{cut}");
    let explained = run(&mut client, "FT.EXPLAIN own c#/c++").text();
    assert!(explained.contains("c#/c++"), "{explained}");
}

#[test]
fn info_tells_how_texts_are_read() {
    let (_server, mut client) = start();
    let mut info = |options: &str, fields: &str| {
        run(&mut client, &format!("FT.CREATE i {options} SCHEMA {fields}"));
        let info = run(&mut client, "FT.INFO i");
        run(&mut client, "FT.DROPINDEX i");
        info
    };
    let own = info("PUNCTUATION .,! STOPWORDS 2 the and MINSTEMSIZE 5", "t TEXT NOSTEM WITHSUFFIXTRIE SORTABLE g TAG");
    for (name, expected) in [
        ("punctuation", ".,!"),
        ("stop_words", "and the"),
        ("with_offsets", "1"),
        ("language", "english"),
        ("min_stem_size", "5"),
    ] {
        assert_eq!(named(&own, name).as_deref(), Some(expected), "{name}");
    }
    let Value::Array(items) = &own else { panic!("a list") };
    let attributes = items.chunks(2).find(|pair| pair[0].text() == "attributes").map(|pair| &pair[1]);
    let Some(Value::Array(attributes)) = attributes else { panic!("attributes") };
    for (at, name, expected) in [
        (0, "NO_STEM", Some("1")),
        (0, "WITH_SUFFIX_TRIE", Some("1")),
        (0, "SORTABLE", Some("1")),
        (1, "SEPARATOR", Some(",")),
        (1, "CASESENSITIVE", Some("0")),
        (1, "SORTABLE", None),
    ] {
        assert_eq!(named(&attributes[at], name).as_deref(), expected, "{name}");
    }
    for name in ["gc_stats", "cursor_stats", "dialect_stats", "Index Errors"] {
        assert_eq!(named(&own, name), None, "{name}");
    }
    assert!(named(&own, "field statistics").is_some());
    let plain = info("NOOFFSETS", "t TEXT");
    assert_eq!(named(&plain, "punctuation").as_deref(), Some("!\"#$%&'()*+,-./:;<=>?@[]^`{|}~"));
    assert_eq!(named(&plain, "with_offsets").as_deref(), Some("0"));
}

fn check_answers(stream: &mut (impl Read + Write), place: &str) {
    for (index, query, expected) in ANSWERS {
        let found = ids(&command(stream, &["FT.SEARCH", index, query, "NOCONTENT", "DIALECT", "2"]));
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), *expected, "{place} {index}: {query}");
    }
}

/// A definition with an option of this level goes to servers of other levels.
#[test]
fn punctuation_outlives_the_server_and_goes_to_replicas() {
    let aof = [("appendonly", "yes"), ("appendfsync", "always")];
    let plain = [aof[0], aof[1], ("aof-use-rdb-preamble", "no")];
    for (name, settings, save) in [
        ("search-punctuation-rdb", &[][..], "SAVE"),
        ("search-punctuation-aof", &aof, "PING"),
        ("search-punctuation-base", &plain, "BGREWRITEAOF"),
    ] {
        let settings = [settings, &[("compatibility", "valkey-9")]].concat();
        let mut process = Process::start(name, &settings);
        let stream = &mut process.connect();
        for line in PUNCTUATED {
            let words = super::words(line);
            let reply = command(stream, &words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(!reply.is_error(), "{line}: {reply:?}");
        }
        command(stream, &[save]);
        until("the file is written", || {
            let info = command(stream, &["INFO", "persistence"]).text();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
        process.signal(Signal::KILL);
        process.ended();
        process.restart();
        check_answers(&mut process.connect(), name);
        process.add_flags(&["--compatibility", "8.0"]);
        process.signal(Signal::KILL);
        process.ended();
        process.restart();
        check_answers(&mut process.connect(), "at another level");
    }
    let (primary, mut client) = start();
    PUNCTUATED.iter().for_each(|line| _ = run(&mut client, line));
    let replica = Server::with(&[("compatibility", "8.0")]);
    let mut theirs = replica.connect();
    run(&mut theirs, &format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    until("the replica has caught up", || {
        ask(&mut theirs, "FT.SEARCH own a\\@b NOCONTENT") == ask(&mut client, "FT.SEARCH own a\\@b NOCONTENT")
    });
    check_answers(&mut theirs.stream, "replica");
    run(&mut client, "FT.CREATE later PUNCTUATION . SCHEMA t TEXT");
    until("the replica has it", || {
        ask(&mut theirs, "FT.SEARCH later home NOCONTENT") == Value::Array(vec![Value::Int(0)])
    });
}

#[test]
fn errors_are_valkeys() {
    let (_server, mut client) = start();
    run(&mut client, "FT.CREATE i SCHEMA t TEXT");
    let mut check = |line: &str, expected: &str| {
        let reply = ask(&mut client, line);
        assert!(reply.is_error() && reply.text().contains(expected), "{line}: {reply:?}");
    };
    check("FT.CREATE i SCHEMA t TEXT", "Index i in database 0 already exists.");
    for line in ["FT.DROPINDEX none", "FT.INFO none", "FT.SEARCH none x"] {
        check(line, "Index with name 'none' not found in database 0");
    }
    check("FT.CREATE k PUNCTUATION '' SCHEMA t TEXT", "PUNCTUATION string cannot be empty");
    check("FT.CREATE k PUNCTUATION 。 SCHEMA t TEXT", "PUNCTUATION has a character beyond ASCII");
    check("FT.CREATE k PUNCTUATION SCHEMA t TEXT", "Unknown argument `t`");
    // One command without subcommands: rights are checked before its words.
    check("FT._DEBUG SHOW_INFO", "Unknown subcommand");
    run(&mut client, "ACL SETUSER u on nopass ~* -@all +@read +ping");
    run(&mut client, "AUTH u any");
    assert!(ask(&mut client, "FT._DEBUG SHOW_INFO").text().contains("no permissions"));
}

#[test]
fn queries_need_memory() {
    let process = Process::start("search-valkey-memory", &[("compatibility", "valkey-9")]);
    let mut stream = process.connect();
    take_bare_errors();
    assert!(!command(&mut stream, &["FT.CREATE", "i", "SCHEMA", "t", "TEXT"]).is_error());
    assert!(!command(&mut stream, &["CONFIG", "SET", "maxmemory", "1"]).is_error());
    for name in ["FT.SEARCH", "FT.AGGREGATE"] {
        let reply = command(&mut stream, &[name, "i", "x"]).text();
        assert!(reply.starts_with("OOM "), "{name}: {reply}");
    }
}

#[test]
fn suffixes_and_orders_need_what_the_index_keeps() {
    let (_server, mut client) = start();
    run(&mut client, "FT.CREATE some SCHEMA a TEXT NOSTEM WITHSUFFIXTRIE b TEXT NOSTEM");
    run(&mut client, "HSET 1 a running b sitting");
    run(&mut client, "FT.CREATE plain NOOFFSETS SCHEMA a TEXT");
    for (query, expected) in [("*ning", 1), ("*tting", 0), ("@a:*ning", 1), ("@a|b:*tting", 0)] {
        assert_eq!(find(&mut client, "some", query).len(), expected, "{query}");
    }
    let mut check = |line: &str, expected: &str| {
        let reply = ask(&mut client, line).text();
        assert!(reply.contains(expected), "{line}: {reply}");
    };
    check("FT.SEARCH some @b:*ting", "Field does not support suffix search");
    check("FT.SEARCH plain '@a:\"one two\"'", "Index does not support offsets");
    check("FT.SEARCH plain 'one two' SLOP 2", "Index does not support offsets");
    check("FT.SEARCH plain 'one two' INORDER", "Index does not support offsets");
    check("FT.SEARCH plain 'one two'", "[Int(0)]");
}

/// The words of Valkey's module are no options of RediSearch.
#[test]
fn other_levels_are_as_they_were() {
    let server = Server::with(&[("compatibility", "8.0")]);
    let mut client = server.connect();
    run(&mut client, "FT.CONFIG SET DEFAULT_DIALECT 2");
    run(&mut client, "FT.CREATE i SCHEMA t TEXT g TAG");
    for line in [
        "FT.INFO i LOCAL",
        "FT.SEARCH i x LOCALONLY",
        "FT.CREATE j NOSTEM SCHEMA t TEXT",
        "FT.CREATE j PUNCTUATION . SCHEMA t TEXT",
        "FT.CREATE j NOSTOPWORDS SCHEMA t TEXT",
        "FT.SEARCH i @g:{a:*}",
        "FT.AGGREGATE i x CONSISTENT",
    ] {
        assert!(ask(&mut client, line).is_error(), "{line}");
    }
    let info = run(&mut client, "FT.INFO i");
    for name in ["state", "punctuation", "stop_words"] {
        assert_eq!(named(&info, name), None, "{name}");
    }
    for name in ["gc_stats", "cursor_stats", "dialect_stats", "Index Errors"] {
        assert!(named(&info, name).is_some(), "{name}");
    }
}
