//! Wrong calls get errors that name what is wrong, in bounded time.

use std::net::Ipv4Addr;

use super::{ask, run};
use crate::support::PATIENCE;
use crate::support::process::Process;
use crate::support::server::{Client, Server};

/// Calls and their errors. Those without a mark in front are RediSearch's.
const ERRORS: &[(&str, &str)] = &[
    ("FT.CREATE i SCHEMA t TEXT", "Index already exists"),
    ("FT.CREATE x SCHEMA t FOO", "Invalid field type for field `t`"),
    ("FT.CREATE x SCHEMA t", "Invalid field type for field `t`"),
    ("FT.CREATE x ON HASH PREFIX 1", "Bad arguments for PREFIX: Expected an argument, but none provided"),
    ("FT.CREATE x ON FOO SCHEMA t TEXT", "Invalid rule type: FOO"),
    ("FT.CREATE x SCHEMA t TEXT t TEXT", "Duplicate field in schema - t"),
    (
        "FT.CREATE x SCHEMA v VECTOR FLAT 4 TYPE FLOAT32 DIM 2",
        "Missing mandatory parameter: cannot create FLAT index without specifying DISTANCE_METRIC argument",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR IVF 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2",
        "Bad arguments for vector similarity algorithm: expected FLAT, HNSW or SVS-VAMANA, found `IVF`",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR SVS-VAMANA 6 TYPE INT8 DIM 2 DISTANCE_METRIC L2",
        "Invalid value INT8 for TYPE of SVS-VAMANA: expected FLOAT32 or FLOAT16",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR SVS-VAMANA 8 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 COMPRESSION LVQ3",
        "Bad arguments for vector similarity COMPRESSION: Unknown value `LVQ3`",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR SVS-VAMANA 8 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 TRAINING_THRESHOLD 5000",
        "Bad arguments for vector similarity TRAINING_THRESHOLD: Only an index with COMPRESSION is trained",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR SVS-VAMANA 10 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 COMPRESSION LVQ8 REDUCE 1",
        "Bad arguments for vector similarity REDUCE: Only COMPRESSION LeanVec4x8 and LeanVec8x8 reduce vectors",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR SVS-VAMANA 10 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 COMPRESSION LeanVec4x8 REDUCE 2",
        "Bad arguments for vector similarity REDUCE: Invalid value 2: expected 1 to less than DIM, which is 2",
    ),
    (
        "FT.CREATE x SCHEMA v VECTOR FLAT 2 COMPRESSION LVQ8",
        "Bad arguments for algorithm FLAT: Unknown attribute `COMPRESSION`",
    ),
    ("FT.CREATE x SCHEMA v VECTOR FLAT 2 TYPE FOO", "Bad arguments for vector similarity TYPE: Unknown value `FOO`"),
    ("FT.CREATE x SCHEMA v VECTOR FLAT 2 M 4", "Bad arguments for algorithm FLAT: Unknown attribute `M`"),
    ("FT.CREATE x SCHEMA t TEXT PHONETIC", "PHONETIC requires an argument"),
    ("FT.SEARCH i abc=>{$phonetic:true}", "field does not support phonetics"),
    ("FT.SEARCH i abc=>{$phonetic:2}", "Invalid value (2) for `phonetic`"),
    (
        "FT.CREATE x TEMPORARY 1.5 SCHEMA t TEXT",
        "Bad arguments for TEMPORARY: Could not convert argument to expected type",
    ),
    ("FT.DEBUG TTL none", "Unknown index name"),
    ("FT.DEBUG TTL i", "Index is not temporary"),
    ("FT.CREATE x SCORE 2 SCHEMA t TEXT", "Invalid score"),
    ("FT.CREATE x FILTER '@a >' SCHEMA t TEXT", "Syntax error at offset 4"),
    ("FT.SEARCH none *", "none: no such index"),
    ("FT.SEARCH i (a", "Syntax error at offset 1 near a"),
    ("FT.SEARCH i * LIMIT a b", "LIMIT needs two numeric arguments"),
    ("FT.SEARCH i * LIMIT 0 1000001", "LIMIT exceeds maximum of 1000000"),
    ("FT.SEARCH i * FOO", "Unknown argument `FOO` at position 1 for <main>"),
    ("FT.SEARCH i * SORTBY zz", "Property `zz` not loaded nor in schema"),
    ("FT.SEARCH i * SCORER FOO", "No such scorer FOO"),
    ("FT.SEARCH i * DIALECT 9", "DIALECT requires a non negative integer >=1 and <= 4"),
    ("FT.SEARCH i * LANGUAGE foo", "No such language"),
    ("FT.SEARCH i $q DIALECT 2", "No such parameter `q`"),
    ("FT.SEARCH i * PARAMS 1 q DIALECT 2", "Parameters must be specified in PARAM VALUE pairs"),
    ("FT.SEARCH i * FILTER n a 2", "Bad lower range: a"),
    ("FT.INFO none", "Unknown index name"),
    ("FT.DROPINDEX none", "Unknown Index name"),
    ("FT.TAGVALS i t", "Not a tag field"),
    ("FT.TAGVALS i zz", "No such field"),
    ("FT.ALTER i SCHEMA ADD t TEXT", "Duplicate field in schema - t"),
    ("FT.ALIASADD a none", "Unknown index name (or name is an alias itself)"),
    ("FT.ALIASDEL a", "Alias does not exist"),
    ("FT.AGGREGATE i * GROUPBY 1 t", "Bad arguments for GROUPBY: Unknown property `t`. Did you mean `@t`?"),
    ("FT.AGGREGATE i * GROUPBY 1 @t REDUCE FOO 0", "No such reducer: FOO"),
    ("FT.AGGREGATE i * GROUPBY 1 @zz", "No such property `zz`"),
    ("FT.CURSOR READ i 99", "Cursor not found"),
    ("FT.CURSOR DEL i 99", "Cursor does not exist"),
    ("FT.DICTDUMP none", "could not open dict key"),
    ("FT.CONFIG SET FOO 1", "Invalid option"),
    ("FT.CONFIG SET DEFAULT_DIALECT 9", "Default dialect version cannot be higher than 4"),
];

#[test]
fn errors_name_what_is_wrong() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i SCHEMA t TEXT n NUMERIC g TAG");
    for (line, expected) in ERRORS {
        let reply = ask(client, line);
        assert!(reply.is_error(), "{line}: {reply:?}");
        assert_eq!(reply.text(), *expected, "{line}");
    }
    run(client, "SELECT 1");
    assert_eq!(ask(client, "FT.CREATE y SCHEMA t TEXT").text(), "Cannot create index on db != 0");
    run(client, "SELECT 0");
    run(client, "ACL SETUSER part on nopass +@all ~d:*");
    run(client, "AUTH part x");
    assert!(ask(client, "FT.SEARCH i *").text().starts_with("NOPERM"));
}

/// Deep, wide and expensive queries end, by their time at the latest, and others are served meanwhile.
#[test]
fn expensive_queries_end() {
    let port = test_peers::free_port();
    let process = Process::start("search-hostile", &[("port", &port.to_string())]);
    let [client, other] = &mut [(); 2].map(|()| Client::connect((Ipv4Addr::LOCALHOST, port).into()));
    client.stream.set_read_timeout(Some(4 * PATIENCE)).unwrap();
    run(client, "FT.CREATE i SCHEMA t TEXT n NUMERIC v VECTOR HNSW 6 TYPE INT8 DIM 2 DISTANCE_METRIC L2");
    for n in 0..20_000 {
        let (text, vector) = (format!("word{n} common w{}", n % 7), char::from((n % 128) as u8).to_string().repeat(2));
        client.send(&["HSET", &format!("k{n}"), "t", &text, "n", &n.to_string(), "v", &vector]);
    }
    (0..20_000).for_each(|_| drop(client.reply()));
    let deep = "(".repeat(100_000);
    let wide = (0..100_000).map(|n| format!("w{n}")).collect::<Vec<_>>().join("|");
    let million = "w ".repeat(1_000_000);
    let stars = format!("w'{}'", "*a".repeat(500));
    let (knn, count) = ("*=>[KNN 2147483648 @v $q]", "2147483648");
    let with = ["PARAMS", "2", "q", "ab"];
    let near = [&["FT.SEARCH", "i", knn, "DIALECT", "2"][..], &with].concat();
    let hybrid = |more: &[&'static str]| [&["FT.HYBRID", "i", "SEARCH"], more, &with].concat();
    let most = ["common", "VSIM", "@v", "$q", "KNN", "2", "K", count, "COMBINE", "RRF", "2", "WINDOW", count];
    let all = ["common", "VSIM", "@v", "$q", "RANGE", "2", "RADIUS", "1e30", "NOSORT", "TIMEOUT", "50"];
    let calls: &[&[&str]] = &[
        &["FT.SEARCH", "i", &deep],
        &["FT.SEARCH", "i", &wide],
        &["FT.SEARCH", "i", &million],
        &["FT.SEARCH", "i", &stars, "DIALECT", "2"],
        &["FT.SEARCH", "i", "*", "LIMIT", "0", "1000000", "SORTBY", "t", "TIMEOUT", "50"],
        &["FT.AGGREGATE", "i", "*", "LOAD", "*", "SORTBY", "2", "@t", "DESC", "TIMEOUT", "50"],
        &near,
        &hybrid(&most),
        &hybrid(&all),
        &[&["FT.HYBRID", "i", "SEARCH", &*deep, "VSIM", "@v", "$q"][..], &with].concat(),
        &[&["FT.HYBRID", "i", "SEARCH", "*", "VSIM", "@v", "$q", "FILTER", &*wide][..], &with].concat(),
    ];
    for call in calls {
        // The server's own time, whatever else the machine does.
        let before = process.cpu_seconds();
        client.send(call);
        run(other, "PING");
        drop(client.reply());
        assert!(process.cpu_seconds() - before < 20.0, "{:?}", &call[..2]);
    }
}
