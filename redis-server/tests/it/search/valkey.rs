//! Valkey's search module: what it answers otherwise than RediSearch, with `compatibility valkey-9`.

use std::collections::BTreeSet;

use super::{ask, find, ids, run};
use crate::support::process::{Process, ask as command};
use crate::support::resp::{Value, take_bare_errors};
use crate::support::server::{Client, Server};

fn start() -> (Server, Client) {
    let server = Server::with(&[("compatibility", "valkey-9")]);
    let mut client = server.connect();
    run(&mut client, "FT.CONFIG SET DEFAULT_DIALECT 2");
    (server, client)
}

/// The value behind a name in a list of names and values.
fn named(reply: &Value, name: &str) -> Option<String> {
    let Value::Array(items) = reply else { panic!("no list: {reply:?}") };
    items.chunks(2).find(|pair| pair[0].text() == name).map(|pair| pair[1].text())
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
        "FT.SEARCH i @g:{a:*}",
        "FT.AGGREGATE i x CONSISTENT",
    ] {
        assert!(ask(&mut client, line).is_error(), "{line}");
    }
    assert_eq!(named(&run(&mut client, "FT.INFO i"), "state"), None);
}
