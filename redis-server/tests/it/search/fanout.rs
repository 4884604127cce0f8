//! Search in a cluster: answers of three primaries with replicas are those of one server that has all documents.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::differ::{self, Kind};
use super::words;
use crate::cluster::{Node, ports, said};
use crate::cluster_tls::{speaks_tls, tls_node};
use crate::support::process::{Process, ask, next_reply};
use crate::support::resp::{Value, request, take_bare_errors};
use crate::support::{Random, Stopped, until};

/// Random queries of each seed.
const QUERIES: usize = 250;
const DOCUMENTS: usize = 60;

/// Primaries with a third of the slots each, their replicas, and one server that has all documents.
struct Fleet {
    nodes: Vec<Node>,
    links: Vec<TcpStream>,
    single: Process,
    all: UnixStream,
}

const RANGES: [&str; 3] = ["0 5460", "5461 10922", "10923 16383"];

impl Fleet {
    /// With so many replicas, the first ones' primaries are the first.
    fn start(name: &str, replicas: usize, settings: &[(&str, &str)]) -> Self {
        take_bare_errors();
        let count = RANGES.len() + replicas;
        let nodes: Vec<Node> = (0..count).map(|at| Node::start(&format!("{name}-{at}"), settings)).collect();
        for (node, range) in nodes.iter().zip(RANGES) {
            node.ask(&format!("CLUSTER ADDSLOTSRANGE {range}"));
        }
        nodes[1..].iter().for_each(|node| nodes[0].meets(node));
        let known = format!("cluster_known_nodes:{count}");
        until("all know each other", || nodes.iter().all(|node| node.says("CLUSTER INFO", &known)));
        until("all serve", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
        for (replica, primary) in nodes[RANGES.len()..].iter().zip(&nodes) {
            until("the primary is known", || replica.says("CLUSTER NODES", &primary.id()));
            replica.ask(&format!("CLUSTER REPLICATE {}", primary.id()));
            until("the replica follows", || replica.says("INFO replication", "master_link_status:up"));
            let is_known = || nodes.iter().all(|node| node.says("CLUSTER NODES", &format!("slave {}", primary.id())));
            until("all know the replica", is_known);
        }
        let links = nodes.iter().map(Node::connect).collect();
        let single = Process::start(&format!("{name}-single"), &[]);
        let all = single.connect();
        let mut fleet = Self { nodes, links, single, all };
        if settings.iter().all(|(name, _)| *name != "masterauth") {
            fleet.every("FT.CONFIG SET TIMEOUT 0");
        }
        fleet
    }

    /// Asks a node of the cluster.
    fn at<W: AsRef<str>>(&mut self, node: usize, words: &[W]) -> Value {
        ask(&mut self.links[node], &words.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    /// Has the owner of the slot change a key.
    fn write<W: AsRef<str>>(&mut self, words: &[W]) -> Value {
        let mut node = 0;
        loop {
            let reply = self.at(node, words);
            let text = reply.text();
            let Some(port) = text.strip_prefix("MOVED ").and_then(|text| text.rsplit(':').next()) else { return reply };
            node = self.nodes.iter().position(|node| node.port == port).unwrap();
        }
    }

    /// A definition, at the first node and at the single server.
    #[track_caller]
    fn every(&mut self, line: &str) {
        let words = words(line);
        let here = self.at(0, &words);
        let there = ask(&mut self.all, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(here, there, "{line}");
        assert!(!here.is_error(), "{line}: {here:?}");
    }

    /// A document, in the cluster and at the single server.
    #[track_caller]
    fn document(&mut self, words: &[String]) {
        let here = self.write(words);
        let there = ask(&mut self.all, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(here, there, "{words:?}");
    }

    /// Waits until the replicas have all that their primaries have.
    fn wait_for_replicas(&mut self) {
        for node in 0..self.nodes.len() - RANGES.len() {
            self.at(node, &["SET", ["{d}", "{c}", "{b}"][0], "x"]);
            self.at(node, &["WAIT", "1", "5000"]);
        }
    }
}

/// The single server fails at a row, or leaves out the rows behind it: that depends on the order of the rows.
fn ends_early(single: &Process, command: &[String]) -> bool {
    let mut stream = single.connect();
    ask(&mut stream, &["HELLO", "3"]);
    match ask(&mut stream, &command.iter().map(String::as_str).collect::<Vec<_>>()) {
        Value::Map(pairs) => {
            let warning = pairs.iter().find(|(name, _)| name.text() == "warning");
            !matches!(warning, Some((_, Value::Array(texts))) if texts.is_empty())
        }
        reply => reply.is_error(),
    }
}

#[test]
fn random_answers_are_those_of_one_server() {
    let mut fleet = Fleet::start("search-fan-random", 1, &[]);
    let (mut queries, mut errors, mut apart, mut late) = (0, 0, Vec::new(), 0);
    for (seed, json) in [(1, false), (2, true)] {
        let mut random = Random::new(0xfa2_0000 + seed);
        let schema = differ::schema(&mut random, json);
        fleet.every(&schema.join(" "));
        for step in 0..QUERIES {
            let keys = match step {
                0 => (0..DOCUMENTS).collect(),
                _ if step % 8 == 0 => vec![random.below(DOCUMENTS); 3],
                _ => Vec::new(),
            };
            for key in keys {
                fleet.document(&differ::change(&mut random, key, json, step > 0));
            }
            let (command, kind) = differ::command(&mut random, json, false);
            let node = random.below(3);
            let reply = fleet.at(node, &command);
            let there = ask(&mut fleet.all, &command.iter().map(String::as_str).collect::<Vec<_>>());
            queries += 1;
            errors += usize::from(there.is_error());
            let [one, all] = [&reply, &there].map(|reply| differ::normal(reply, &command, kind));
            if one == all {
                continue;
            }
            if kind == Kind::Rows && ends_early(&fleet.single, &command) {
                late += 1;
            } else {
                apart.push(format!(
                    "seed {seed} step {step} [{}]\n  {command:?}\n{}",
                    schema.join(" "),
                    differ::apart(&all, &one)
                ));
            }
        }
        fleet.every("FT.DROPINDEX i DD");
    }
    println!("{queries} queries, {errors} of them with errors, {late} end at a row, {} differences", apart.len());
    assert!(apart.is_empty(), "\n{}", apart.join("\n"));
    assert!(late * 10 < queries && errors * 3 < queries);
}

/// A corpus in which no two documents have the same number.
fn fill(fleet: &mut Fleet) {
    fleet.every(
        "FT.CREATE i PREFIX 1 h: SCORE_FIELD s PAYLOAD_FIELD p SCHEMA t TEXT n NUMERIC SORTABLE m NUMERIC g TAG \
         v VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2",
    );
    fleet.every("FT.CREATE j ON JSON PREFIX 1 j: SCHEMA $.t AS t TEXT $.n AS n NUMERIC SORTABLE $.g[*] AS g TAG");
    for line in ["FT.SUGADD names jane 2", "FT.SUGADD names jack 1", "FT.SUGADD names jay 3", "FT.SUGDEL names jay"] {
        fleet.every(line);
    }
    let texts = ["red apple", "green apple tree", "blue house", "quick brown fox runs", "old house by the tree"];
    for n in 0..60usize {
        let vector: Vec<u8> = [(n * 37 % 61) as f32, 1.0].iter().flat_map(|part| part.to_le_bytes()).collect();
        let words =
            [b"HSET".to_vec(), format!("h:{n}").into_bytes(), b"t".to_vec(), texts[n % 5].into(), b"n".to_vec()];
        let mut words: Vec<Vec<u8>> = words.to_vec();
        words.extend([n.to_string().into(), b"m".to_vec(), (n % 7).to_string().into(), b"g".to_vec()]);
        words.extend([format!("g{},x", n % 4).into(), b"s".to_vec(), format!("{}", (n + 1) as f64 / 64.0).into()]);
        words.extend([b"p".to_vec(), format!("p{n}").into(), b"v".to_vec(), vector]);
        fleet.bytes(&words);
        let json = format!("{{\"t\":\"{}\",\"n\":{n},\"g\":[\"g{}\",\"y\"]}}", texts[n % 5], n % 3);
        fleet.document(&["JSON.SET", &format!("j:{n}"), "$", &json].map(str::to_owned));
    }
}

impl Fleet {
    /// A document whose fields may be any bytes.
    fn bytes(&mut self, words: &[Vec<u8>]) {
        send(&mut self.all, words);
        let is_taken = |link: &mut TcpStream| !send(link, words).is_error();
        assert!(self.links[..RANGES.len()].iter_mut().any(is_taken), "no node takes the document");
    }
}

fn send(stream: &mut (impl Read + Write), words: &[Vec<u8>]) -> Value {
    stream.write_all(&request(words)).unwrap();
    next_reply(stream).unwrap()
}

/// Queries with one right order.
const ORDERED: &[&str] = &[
    "FT.SEARCH i * SORTBY n LIMIT 0 7",
    "FT.SEARCH i * SORTBY n DESC LIMIT 5 7 WITHSORTKEYS",
    "FT.SEARCH i * SORTBY n LIMIT 55 20 NOCONTENT",
    "FT.SEARCH i * SORTBY n LIMIT 100 10",
    "FT.SEARCH i * LIMIT 0 0",
    "FT.SEARCH i apple SCORER DOCSCORE WITHSCORES LIMIT 3 9 RETURN 2 t n",
    "FT.SEARCH i * SCORER DOCSCORE WITHSCORES WITHPAYLOADS NOCONTENT LIMIT 0 60",
    "FT.SEARCH i apple SORTBY n HIGHLIGHT FIELDS 1 t SUMMARIZE FIELDS 1 t LEN 2 RETURN 1 t",
    "FT.SEARCH i @g:{g1} SORTBY n RETURN 3 n AS number",
    "FT.SEARCH i * SORTBY n INKEYS 3 h:1 h:2 h:70",
    "FT.SEARCH j * SORTBY n LIMIT 2 3",
    "FT.SEARCH j @g:{g1} SORTBY n DESC RETURN 1 g DIALECT 3",
    "FT.SEARCH i nothing",
    "FT.SEARCH i @unknown:[",
    "FT.SEARCH none *",
    "FT.SEARCH i * SORTBY unknown",
    "FT.AGGREGATE i * SORTBY 2 @n DESC LIMIT 3 4 LOAD 1 @t",
    "FT.AGGREGATE i * GROUPBY 1 @m REDUCE COUNT 0 AS c REDUCE SUM 1 @n AS s REDUCE AVG 1 @n AS a SORTBY 2 @m ASC",
    "FT.AGGREGATE i * GROUPBY 1 @m REDUCE STDDEV 1 @n AS s REDUCE QUANTILE 2 @n 0.5 AS q REDUCE MIN 1 @n REDUCE MAX 1 @n SORTBY 2 @m ASC",
    "FT.AGGREGATE i * GROUPBY 1 @g REDUCE COUNT_DISTINCT 1 @m AS d REDUCE COUNT_DISTINCTISH 1 @n AS e SORTBY 2 @g ASC",
    "FT.AGGREGATE i * GROUPBY 1 @m REDUCE FIRST_VALUE 4 @t BY @n DESC AS f SORTBY 2 @m ASC",
    "FT.AGGREGATE i '@n:[0 9]' SORTBY 1 @n GROUPBY 0 REDUCE TOLIST 1 @n AS l",
    "FT.AGGREGATE i '@n:[5 5]' GROUPBY 0 REDUCE RANDOM_SAMPLE 2 @n 3 AS l",
    "FT.AGGREGATE i * LOAD 1 @n APPLY @n*2 AS twice FILTER @twice>100 SORTBY 2 @twice ASC LIMIT 0 20",
    "FT.AGGREGATE i * LOAD * SORTBY 2 @n ASC LIMIT 0 3",
    "FT.AGGREGATE i * LOAD 1 @nothing",
    "FT.AGGREGATE i * GROUPBY 1 @zz",
    "FT.TAGVALS i g",
    "FT.TAGVALS j g",
    "FT.TAGVALS i t",
    "FT.SPELLCHECK i appel DISTANCE 2",
    "FT.SPELLCHECK i 'hous appl' FULLSCOREINFO",
    "FT.SPELLCHECK i apple",
    "FT.EXPLAIN i 'apple @n:[1 2]'",
    "FT._LIST",
    "FT.CREATE i SCHEMA t TEXT",
    "FT.DROPINDEX none",
    "FT.SYNDUMP i",
    "FT.GET i h:3",
    "FT.MGET j j:1 j:2 none j:4",
    "FT.SUGGET names ja WITHSCORES",
];

#[test]
fn answers_in_both_protocols_are_those_of_one_server() {
    let mut fleet = Fleet::start("search-fan-forms", 1, &[]);
    fill(&mut fleet);
    fleet.wait_for_replicas();
    until("the replica has the index", || said(&fleet.nodes[3].ask("FT._LIST")).contains('j'));
    for protocol in ["2", "3"] {
        for node in 0..fleet.nodes.len() {
            let is_replica = node == 3;
            fleet.at(node, &["HELLO", protocol]);
            ask(&mut fleet.all, &["HELLO", protocol]);
            for line in ORDERED {
                // A replica takes no definitions.
                if is_replica && (line.starts_with("FT.CREATE") || line.starts_with("FT.DROP")) {
                    continue;
                }
                let words = words(line);
                let here = fleet.at(node, &words);
                let there = ask(&mut fleet.all, &words.iter().map(String::as_str).collect::<Vec<_>>());
                assert_eq!(same(&here, line), same(&there, line), "RESP{protocol}, node {node}: {line}");
            }
        }
    }
}

/// A reply whose fields may stand in any order.
fn same(reply: &Value, line: &str) -> String {
    let text = format!("{reply:?}");
    if !line.contains("LOAD *") {
        return text;
    }
    let mut parts: Vec<&str> = text.split([',', '[', ']', '(', ')']).collect();
    parts.sort_unstable();
    parts.join(",")
}

#[test]
fn nearest_documents_of_all_nodes() {
    let mut fleet = Fleet::start("search-fan-near", 0, &[]);
    fill(&mut fleet);
    for line in [
        "FT.SEARCH i '*=>[KNN 7 @v $b AS d]' SORTBY d RETURN 2 d n PARAMS 2 b # DIALECT 2",
        "FT.SEARCH i '*=>[KNN 20 @v $b AS d]' SORTBY d DESC LIMIT 3 5 RETURN 1 d WITHSORTKEYS PARAMS 2 b # DIALECT 2",
        "FT.SEARCH i '*=>[KNN 9 @v $b AS d]' LIMIT 0 0 PARAMS 2 b # DIALECT 2",
        "FT.SEARCH i '@g:{g1}=>[KNN 4 @v $b AS d]' SORTBY n RETURN 2 d n PARAMS 2 b # DIALECT 2",
        "FT.SEARCH i '@v:[VECTOR_RANGE 60 $b]=>{$yield_distance_as:d}' SORTBY d RETURN 1 d PARAMS 2 b # DIALECT 2",
        "FT.AGGREGATE i '*=>[KNN 8 @v $b AS d]' LOAD 1 @n SORTBY 2 @n ASC PARAMS 2 b # DIALECT 2",
        "FT.AGGREGATE i '*=>[KNN 8 @v $b AS d]' GROUPBY 0 REDUCE COUNT 0 AS c REDUCE MAX 1 @d AS far PARAMS 2 b # DIALECT 2",
        "FT.HYBRID i SEARCH '@n:[10 20]' VSIM @v $b KNN 2 K 6 YIELD_SCORE_AS near LOAD 3 @n @t @near SORTBY 2 @n ASC LIMIT 0 20 PARAMS 2 b #",
        "FT.HYBRID i SEARCH @g:{g1} VSIM @v $b RANGE 2 RADIUS 50 LOAD 1 @m GROUPBY 1 @m REDUCE COUNT 0 AS c SORTBY 2 @m ASC PARAMS 2 b #",
    ] {
        let bytes: Vec<u8> = [20.25f32, 1.0].iter().flat_map(|part| part.to_le_bytes()).collect();
        let request: Vec<Vec<u8>> =
            words(line).into_iter().map(|word| if word == "#" { bytes.clone() } else { word.into_bytes() }).collect();
        let [here, there] = [send(&mut fleet.links[1], &request), send(&mut fleet.all, &request)].map(without_time);
        assert_eq!(format!("{here:?}"), format!("{there:?}"), "{line}");
        assert!(!here.is_error(), "{line}: {here:?}");
    }
}

/// FT.HYBRID ends with its time.
fn without_time(reply: Value) -> Value {
    match reply {
        Value::Array(mut items) if items.len() == 8 && items[6].text() == "execution_time" => {
            items.truncate(6);
            Value::Array(items)
        }
        other => other,
    }
}

/// The value behind a name.
fn figure(reply: &Value, name: &str) -> String {
    let Value::Array(items) = reply else { panic!("{reply:?}") };
    let at = items.iter().position(|item| item.text() == name).unwrap_or_else(|| panic!("no {name}"));
    items[at + 1].text()
}

#[test]
fn sums_cursors_and_profiles() {
    let mut fleet = Fleet::start("search-fan-sums", 0, &[]);
    fill(&mut fleet);
    let (here, there) = (fleet.at(2, &["FT.INFO", "i"]), ask(&mut fleet.all, &["FT.INFO", "i"]));
    for name in ["num_docs", "num_records", "indexing", "percent_indexed", "hash_indexing_failures", "index_name"] {
        assert_eq!(figure(&here, name), figure(&there, name), "{name}");
    }
    // A cursor is the node's that was asked.
    let line = words("FT.AGGREGATE i * LOAD 1 @n SORTBY 2 @n ASC MAX 60 WITHCURSOR COUNT 25");
    let mut reply = fleet.at(1, &line);
    let mut rows = 0;
    loop {
        let Value::Array(parts) = &reply else { panic!("{reply:?}") };
        let (Value::Array(piece), Value::Int(cursor)) = (&parts[0], &parts[1]) else { panic!("{reply:?}") };
        assert_eq!(piece.get(1).map_or_else(|| rows.to_string(), |row| figure(row, "n")), rows.to_string());
        rows += piece.len() - 1;
        if *cursor == 0 {
            break;
        }
        reply = fleet.at(1, &["FT.CURSOR", "READ", "i", &cursor.to_string()]);
    }
    assert_eq!(rows, 60);
    for kind in ["SEARCH", "AGGREGATE"] {
        let line =
            words(&format!("FT.PROFILE i {kind} QUERY apple SORTBY {}", if kind == "SEARCH" { "n" } else { "1 @n" }));
        let (here, there) =
            (fleet.at(0, &line), ask(&mut fleet.all, &line.iter().map(String::as_str).collect::<Vec<_>>()));
        let (Value::Array(here), Value::Array(there)) = (here, there) else { panic!("no profile") };
        assert_eq!(here[0], there[0]);
        let Value::Array(profile) = &here[1] else { panic!("{:?}", here[1]) };
        assert_eq!(profile[0].text(), "Shards");
        assert!(matches!(&profile[1], Value::Array(shards) if shards.len() == 3), "{profile:?}");
    }
}

#[test]
fn one_node_alone_in_valkeys_words() {
    let mut fleet = Fleet::start("search-fan-scope", 0, &[("compatibility", "valkey-9")]);
    assert!(!fleet.at(0, &["FT.CREATE", "i", "SCHEMA", "t", "TEXT"]).is_error());
    for number in 0..60 {
        fleet.write(&["HSET", &format!("key:{number}"), "t", "word"]);
    }
    let total = |reply: &Value| match reply {
        Value::Array(items) => items[0].text(),
        other => panic!("no list: {other:?}"),
    };
    let (mut documents, mut found) = (0, 0);
    for node in 0..RANGES.len() {
        for scope in ["PRIMARY", "CLUSTER"] {
            assert_eq!(figure(&fleet.at(node, &["FT.INFO", "i", scope]), "num_docs"), "60", "{node} {scope}");
        }
        let own = figure(&fleet.at(node, &["FT.INFO", "i"]), "num_docs");
        assert_eq!(figure(&fleet.at(node, &["FT.INFO", "i", "LOCAL"]), "num_docs"), own);
        let local = total(&fleet.at(node, &["FT.SEARCH", "i", "word", "LOCALONLY", "NOCONTENT"]));
        assert_eq!(local, own);
        let rows = fleet.at(node, &["FT.AGGREGATE", "i", "word", "LOCALONLY", "LIMIT", "0", "100"]);
        assert_eq!(total(&rows), own);
        assert_eq!(total(&fleet.at(node, &["FT.SEARCH", "i", "word", "NOCONTENT"])), "60");
        documents += own.parse::<u32>().unwrap();
        found += local.parse::<u32>().unwrap();
        // A transaction asks no other node, so it need not wait.
        for words in [&["MULTI"][..], &["FT.SEARCH", "i", "word", "LOCALONLY", "NOCONTENT"]] {
            fleet.at(node, words);
        }
        let Value::Array(replies) = fleet.at(node, &["EXEC"]) else { panic!("replies of the transaction") };
        assert_eq!(total(&replies[0]), own);
    }
    assert_eq!((documents, found), (60, 60));
    // All nodes have the punctuation of a definition.
    assert!(!fleet.at(1, &["FT.CREATE", "own", "PUNCTUATION", ".", "SCHEMA", "t", "TEXT"]).is_error());
    for number in 0..6 {
        fleet.write(&["HSET", &format!("key:{number}"), "t", "me@home.org"]);
    }
    for node in 0..RANGES.len() {
        for (query, expected) in [("org", "6"), ("home", "0"), ("me\\@home", "6")] {
            let reply = fleet.at(node, &["FT.SEARCH", "own", query, "NOCONTENT", "DIALECT", "2"]);
            assert_eq!(total(&reply), expected, "{node}: {query}");
        }
        assert_eq!(figure(&fleet.at(node, &["FT.INFO", "own"]), "punctuation"), ".");
    }
}

#[test]
fn definitions_are_those_of_all_nodes() {
    let mut fleet = Fleet::start("search-fan-definitions", 1, &[("appendonly", "yes")]);
    // Any primary takes a definition, and it is there when the reply comes.
    for (node, line) in [
        (2, "FT.CREATE a PREFIX 1 a: SCHEMA t TEXT"),
        (1, "FT.ALTER a SCHEMA ADD n NUMERIC"),
        (0, "FT.SYNUPDATE a group boy child"),
        (1, "FT.ALIASADD alias a"),
        (2, "FT.CREATE b PREFIX 1 b: SCHEMA g TAG"),
        (0, "FT.ALIASUPDATE alias b"),
        (2, "FT.DICTADD words one two three"),
        (1, "FT.DICTDEL words two"),
        (0, "FT.CREATE c PREFIX 1 c: SCHEMA t TEXT"),
        (1, "FT.DROPINDEX c"),
        (2, "FT.CONFIG SET MINPREFIX 3"),
        (1, "FT.SUGADD names jane 1 INCR"),
    ] {
        let reply = fleet.at(node, &words(line));
        assert!(!reply.is_error(), "{line}: {reply:?}");
        assert_eq!(definitions(&mut fleet, 0), definitions(&mut fleet, 1), "{line}");
        assert_eq!(definitions(&mut fleet, 0), definitions(&mut fleet, 2), "{line}");
    }
    let all = definitions(&mut fleet, 0);
    assert!(said(&fleet.at(0, &["FT.CONFIG", "GET", "MINPREFIX"])).contains('3'));
    until("the replica has them", || definitions(&mut fleet, 3) == all);
    // One of two that come at the same time wins, everywhere.
    thread::scope(|scope| {
        for (node, field) in [(0, "x"), (1, "y"), (2, "z")] {
            let mut link = fleet.nodes[node].connect();
            scope.spawn(move || {
                take_bare_errors();
                ask(&mut link, &["FT.CREATE", "race", "SCHEMA", field, "TEXT"]);
            });
        }
    });
    let [one, two, three] = [0, 1, 2].map(|node| definitions(&mut fleet, node));
    assert!(one == two && two == three && one != all, "{one}\n{two}\n{three}");
    // FLUSHALL is about a node's documents.
    fleet.at(0, &["FLUSHALL"]);
    assert_eq!(definitions(&mut fleet, 0), one);
    late_joiners(&mut fleet, &one);
}

/// A node that comes later, one that was down, and a replica that takes over have the definitions.
fn late_joiners(fleet: &mut Fleet, all: &str) {
    let late = Node::start("search-fan-late", &[]);
    fleet.nodes[0].meets(&late);
    let mut link = late.connect();
    until("a node that comes later learns the definitions", || defined(&mut link) == all);
    for key in ["a:1", "a:2", "a:3", "a:4", "a:5"] {
        fleet.write(&["HSET", key, "t", "child"]);
    }
    // A primary is down while a definition changes.
    stop(&fleet.nodes[2]);
    let created = fleet.at(1, &["FT.CREATE", "meanwhile", "PREFIX", "1", "m:", "SCHEMA", "t", "TEXT"]);
    fleet.nodes[2].process.signal(Signal::CONT);
    assert_eq!(created.text(), "OK");
    let newer = definitions(fleet, 1);
    assert_ne!(newer, all);
    until("a node that was away learns what it has missed", || definitions(fleet, 2) == newer);
    // From its file.
    fleet.nodes[2].process.signal(Signal::KILL);
    fleet.nodes[2].process.ended();
    fleet.nodes[2].process.restart();
    fleet.links[2] = fleet.nodes[2].connect();
    assert_eq!(definitions(fleet, 2), newer);
    until("all serve again", || fleet.nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    // The replica takes over from the leader.
    until("the replica has them", || definitions(fleet, 3) == newer);
    fleet.nodes[0].process.signal(Signal::KILL);
    fleet.nodes[0].process.ended();
    until("the replica has taken over", || {
        let routed = fleet.nodes[3].says("ROLE", "master") || fleet.nodes[3].says("INFO replication", "role:master");
        routed && fleet.nodes[1..].iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok"))
    });
    for node in 1..4 {
        let find = words("FT.SEARCH a boy LIMIT 0 0 TIMEOUT 0");
        until("all documents are found", || fleet.at(node, &find) == Value::Array(vec![Value::Int(5)]));
    }
    assert_eq!(fleet.at(1, &["FT.CREATE", "after", "SCHEMA", "t", "TEXT"]).text(), "OK");
    assert_eq!(definitions(fleet, 1), definitions(fleet, 3));
    assert_eq!(definitions(fleet, 1), definitions(fleet, 2));
}

/// All definitions of a node, as text.
fn definitions(fleet: &mut Fleet, node: usize) -> String {
    defined(&mut fleet.links[node])
}

fn defined(link: &mut TcpStream) -> String {
    take_bare_errors();
    let list = ask(link, &["FT._LIST"]);
    let Value::Array(names) = &list else { panic!("{list:?}") };
    let mut text = String::new();
    for name in names.iter().map(Value::text).chain(["alias".to_owned()]) {
        let synonyms = ask(link, &["FT.SYNDUMP", &name]);
        let query = if name == "alias" { "@g:{x}" } else { "word" };
        text += &format!("{name} {synonyms:?} {:?}\n", ask(link, &["FT.EXPLAIN", &name, query]));
        text += &format!("{:?}\n", ask(link, &["FT.EXPLAIN", &name, "@n:[1 2]"]));
    }
    text += &format!("{:?}", ask(link, &["FT.SUGGET", "names", "ja", "WITHSCORES"]));
    text + &format!("{:?}", ask(link, &["FT.DICTDUMP", "words"]))
}

#[test]
fn no_document_is_lost_or_doubled_while_slots_move() {
    let mut fleet = Fleet::start("search-fan-moves", 0, &[]);
    fill(&mut fleet);
    let stopped = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let queries: Vec<_> = (0..3)
            .map(|node| {
                let (mut link, stopped) = (fleet.nodes[node].connect(), &stopped);
                scope.spawn(move || {
                    take_bare_errors();
                    let mut asked = 0;
                    while !stopped.load(Relaxed) {
                        let all = ask(&mut link, &words_of("FT.SEARCH i * LIMIT 0 0"));
                        assert_eq!(all, Value::Array(vec![Value::Int(60)]), "query {asked} at node {node}");
                        let rows = ask(
                            &mut link,
                            &words_of("FT.AGGREGATE j * GROUPBY 0 REDUCE COUNT 0 AS c REDUCE SUM 1 @n AS s"),
                        );
                        let text = format!("{rows:?}");
                        let sum = format!("{:?}", Value::Bulk(b"1770".to_vec()));
                        let count = format!("{:?}", Value::Bulk(b"60".to_vec()));
                        assert!(text.contains(&sum) && text.contains(&count), "query {asked} at node {node}: {rows:?}");
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        let guard = Stopped(&stopped);
        for round in 0..6 {
            let (from, to) = ([0, 1, 2][round % 3], [1, 2, 0][round % 3]);
            let range = ["0 900", "6000 7000", "11000 12000"][round % 3];
            let (from, to) = if round < 3 { (from, to) } else { (to, from) };
            let target = fleet.nodes[to].id();
            let reply = fleet.nodes[from].ask(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {range} NODE {target}"));
            assert_eq!(reply.text(), "OK", "{range}");
            crate::moves::wait_for(&fleet.nodes[from], "success");
            thread::sleep(Duration::from_millis(200));
        }
        drop(guard);
        queries.into_iter().map(|query| query.join().unwrap()).sum::<usize>()
    });
    println!("{asked} queries while six ranges of slots moved");
    assert!(asked > 6);
}

fn words_of(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn a_node_that_is_late_and_one_that_is_down() {
    let settings = [("cluster-require-full-coverage", "no"), ("cluster-node-timeout", "60000")];
    let mut fleet = Fleet::start("search-fan-down", 0, &settings);
    fill(&mut fleet);
    stop(&fleet.nodes[2]);
    // A node that is late leaves a part, or fails the query.
    let part = fleet.at(0, &words("FT.SEARCH i * NOCONTENT LIMIT 0 100 TIMEOUT 50"));
    assert!(matches!(&part, Value::Array(items) if items.len() > 1 && items.len() < 61), "{part:?}");
    let count = fleet.at(0, &words("FT.SEARCH i * LIMIT 0 0 TIMEOUT 50"));
    assert_eq!(count.text(), "Timeout limit was reached");
    // More queries wait than there are threads for them, and nothing else does.
    let mut waiting: Vec<TcpStream> = (0..20).map(|_| fleet.nodes[0].connect()).collect();
    waiting.iter_mut().for_each(|link| link.write_all(&request(&words("FT.SEARCH i * LIMIT 0 0"))).unwrap());
    for line in
        ["PING", "SET {b}1 x", "GET {b}1", "EVAL return{1} 0", "BGSAVE", "FT._LIST", "FT.EXPLAIN i a", "KEYS none"]
    {
        let reply = fleet.at(0, &words(line));
        assert!(!reply.is_error() || reply.text().starts_with("MOVED"), "{line}: {reply:?}");
    }
    let part = fleet.at(1, &words("FT._SHARD 2 FT.TAGVALS i g"));
    assert!(matches!(part, Value::Bulk(_)), "the node serves the parts of others: {part:?}");
    fleet.nodes[2].process.signal(Signal::CONT);
    for link in &mut waiting {
        assert_eq!(next_reply(link).unwrap(), Value::Array(vec![Value::Int(60)]));
    }
    fleet.nodes[2].process.signal(Signal::KILL);
    fleet.nodes[2].process.ended();
    let down = fleet.at(0, &words("FT.SEARCH i * LIMIT 0 0"));
    assert!(down.text().starts_with("Could not send query to cluster"), "{down:?}");
    let dropped = fleet.at(0, &words("FT.DROPINDEX i DD"));
    assert!(dropped.text().starts_with("The index is gone, but node"), "{dropped:?}");
    fleet.nodes[2].process.restart();
    fleet.links[2] = fleet.nodes[2].connect();
    // It had no file, and learns what there is.
    until("it learns what there is", || definitions(&mut fleet, 2) == definitions(&mut fleet, 0));
    assert_eq!(said(&fleet.at(2, &["FT._LIST"])), "j");
}

/// Stops all threads of a node.
fn stop(node: &Node) {
    node.process.signal(Signal::STOP);
    until("the node has stopped", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", node.process.pid())).unwrap();
        threads.flatten().all(|thread| {
            let status = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            status.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('T'))
        })
    });
}

/// Keys move one by one, and each is found once.
#[test]
fn keys_that_move_one_by_one_are_found() {
    let mut fleet = Fleet::start("search-fan-keys", 0, &[]);
    fleet.every("FT.CREATE i PREFIX 1 {a} SCHEMA n NUMERIC");
    for n in 0..80 {
        fleet.document(&["HSET", &format!("{{a}}{n}"), "n", &n.to_string()].map(str::to_owned));
    }
    // The slot of {a} is the third node's.
    let (from, to) = (fleet.nodes[2].id(), fleet.nodes[0].id());
    assert_eq!(fleet.at(0, &words(&format!("CLUSTER SETSLOT 15495 IMPORTING {from}"))).text(), "OK");
    assert_eq!(fleet.at(2, &words(&format!("CLUSTER SETSLOT 15495 MIGRATING {to}"))).text(), "OK");
    let stopped = AtomicBool::new(false);
    let all: std::collections::BTreeSet<String> = (0..80).map(|n| format!("{{a}}{n}")).collect();
    thread::scope(|scope| {
        let queries: Vec<_> = (0..3)
            .map(|node| {
                let (mut link, stopped, all) = (fleet.nodes[node].connect(), &stopped, &all);
                scope.spawn(move || {
                    take_bare_errors();
                    while !stopped.load(Relaxed) {
                        let reply = ask(&mut link, &words_of("FT.SEARCH i * NOCONTENT LIMIT 0 200"));
                        let Value::Array(items) = &reply else { panic!("{reply:?}") };
                        let found: Vec<String> = items[1..].iter().map(Value::text).collect();
                        assert_eq!(found.len(), 80);
                        assert_eq!(found.into_iter().collect::<std::collections::BTreeSet<_>>(), *all);
                    }
                })
            })
            .collect();
        let guard = Stopped(&stopped);
        for n in 0..80 {
            let migrate = format!("MIGRATE 127.0.0.1 {} {{a}}{n} 0 5000", fleet.nodes[0].port);
            assert_eq!(fleet.at(2, &words(&migrate)).text(), "OK");
        }
        for node in [0, 2, 1] {
            assert_eq!(fleet.at(node, &words(&format!("CLUSTER SETSLOT 15495 NODE {to}"))).text(), "OK");
        }
        thread::sleep(Duration::from_millis(200));
        drop(guard);
        queries.into_iter().for_each(|query| query.join().unwrap());
    });
}

#[test]
fn definitions_of_a_node_that_was_alone() {
    take_bare_errors();
    let [one, two] = ["one", "two"].map(|name| Node::start(&format!("search-fan-alone-{name}"), &[]));
    one.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    until("it serves", || one.says("CLUSTER INFO", "cluster_state:ok"));
    assert_eq!(one.ask("FT.CREATE i SCHEMA t TEXT").text(), "OK");
    one.meets(&two);
    until("the other one has the index", || said(&two.ask("FT._LIST")) == "i");
}

/// Nodes that serve replication with TLS ask each other so, too.
#[test]
fn nodes_ask_each_other_with_tls() {
    take_bare_errors();
    let settings = speaks_tls("search-fan-tls-0");
    let other = [("tls-port".to_owned(), ports().0)];
    let other: Vec<_> = settings.iter().filter(|(name, _)| name != "tls-port").chain(&other).cloned().collect();
    let nodes = [tls_node("search-fan-tls-0", &settings, &[]), tls_node("search-fan-tls-1", &other, &[])];
    nodes[0].ask("CLUSTER ADDSLOTSRANGE 0 8191");
    nodes[1].ask("CLUSTER ADDSLOTSRANGE 8192 16383");
    nodes[0].meets(&nodes[1]);
    until("both serve", || nodes.iter().all(|node| node.says("CLUSTER INFO", "cluster_state:ok")));
    assert_eq!(nodes[1].ask("FT.CREATE i SCHEMA t TEXT").text(), "OK");
    // b is the first node's, a the second's.
    assert_eq!(nodes[0].ask("HSET b t hello").text(), "1");
    assert_eq!(nodes[1].ask("HSET a t hello").text(), "1");
    for node in &nodes {
        assert_eq!(said(&node.ask("FT.SEARCH i hello LIMIT 0 0 TIMEOUT 0")), "2");
    }
}

#[test]
fn rights_transactions_and_passwords() {
    let login = [("masteruser", "node"), ("masterauth", "secret")];
    let mut fleet = Fleet::start("search-fan-rights", 0, &login);
    for node in 0..3 {
        for line in [
            "ACL SETUSER node on >secret +@all ~*",
            "ACL SETUSER reader on >pw +ft.search +ft.create %R~*",
            "ACL SETUSER narrow on >pw +ft.search %R~h:*",
            "ACL SETUSER inner on >pw +ft._shard +ft._define +ft._propose %R~*",
        ] {
            assert_eq!(fleet.at(node, &words(line)).text(), "OK", "{line}");
        }
    }
    fleet.every("FT.CONFIG SET TIMEOUT 0");
    fill(&mut fleet);
    for node in 0..3 {
        assert_eq!(fleet.at(node, &words("ACL SETUSER default resetpass >other")).text(), "OK");
    }
    let as_user = |user: &str, line: &str| {
        let mut link = fleet.nodes[1].connect();
        assert_eq!(ask(&mut link, &["AUTH", user, "pw"]).text(), "OK");
        said(&ask(&mut link, &words(line).iter().map(String::as_str).collect::<Vec<_>>()))
    };
    assert_eq!(as_user("reader", "FT.SEARCH i * LIMIT 0 0"), "60");
    assert!(as_user("narrow", "FT.SEARCH i *").contains("NOPERM"));
    assert!(as_user("reader", "FT.AGGREGATE i *").contains("NOPERM"));
    assert!(as_user("reader", "FT._SHARD 2 FT.SEARCH i *").contains("NOPERM"));
    for line in ["FT._SHARD 2 FT.SEARCH i *", "FT._PROPOSE FT.DROPINDEX i", "FT._DEFINE APPLY 0 1 FT.DROPINDEX i"] {
        let reply = as_user("inner", line);
        assert!(reply.contains("NOPERM") || reply.contains("BEHIND"), "{line}: {reply}");
    }
    assert!(as_user("inner", "FT._SHARD 2 SET h:1 x").contains("Such a command has no parts"));
    // Nothing waits for other nodes while it is alone.
    let mut link = fleet.nodes[0].connect();
    ask(&mut link, &["AUTH", "other"]);
    ask(&mut link, &["MULTI"]);
    ask(&mut link, &["FT.SEARCH", "i", "*"]);
    assert!(said(&ask(&mut link, &["EXEC"])).contains("Cannot perform"));
    let script = ask(&mut link, &["EVAL", "return redis.call('FT.SEARCH','i','*')", "0"]);
    assert!(script.text().contains("Cannot block"), "{script:?}");
}
