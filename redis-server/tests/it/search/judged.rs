//! Faults that RediSearch's own tests and those of redis-py have found. The replies are those of RediSearch 2.10.5.

use redis_server::config::{Config, Launch};

use super::{ask, run};
use crate::support::resp::Value;
use crate::support::server::{Client, Server};

/// A reply in one line: lists in brackets.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::NullBulk | Value::NullArray | Value::Null => "null".to_owned(),
        other => other.text(),
    }
}

/// Calls and their replies, one after the other.
#[track_caller]
fn check(client: &mut Client, calls: &[(&str, &str)]) {
    for (line, expected) in calls {
        assert_eq!(shown(&ask(client, line)), *expected, "{line}");
    }
}

#[track_caller]
fn fill(client: &mut Client, lines: &[&str]) {
    lines.iter().for_each(|line| drop(run(client, line)));
}

#[test]
fn documents_by_name() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client, &["FT.CREATE i SCHEMA t TEXT n NUMERIC", "SET s text"]);
    check(
        client,
        &[
            ("FT.ADD i d 0.5 LANGUAGE french PAYLOAD p FIELDS t hello n 3", "OK"),
            ("HGETALL d", "[t hello n 3 __score 0.5 __language french __payload p]"),
            ("FT.SEARCH i hello WITHSCORES WITHPAYLOADS", "[1 d 0.5 p [t hello n 3]]"),
            ("FT.ADD i d 1 FIELDS t x", "Document already exists"),
            ("FT.ADD i d 1 REPLACE IF @n>7 FIELDS n 6", "NOADD"),
            ("FT.ADD i d 1 REPLACE IF @zz>7 FIELDS n 6", "Property `zz` not loaded nor in pipeline"),
            ("FT.ADD i d 1 REPLACE PARTIAL FIELDS n 5", "OK"),
            ("FT.GET i d", "[t hello n 5]"),
            ("FT.ADD i d 1 REPLACE FIELDS n 5", "OK"),
            ("FT.MGET i d none", "[[n 5] null]"),
            ("FT.ADD i e 1 REPLACE NOCREATE FIELDS n 6", "Document does not exist"),
            ("FT.ADD i s 1 REPLACE FIELDS n 6", "Invalid Redis key"),
            ("FT.ADD i e 1.5 FIELDS n 6", "Score must be between 0 and 1"),
            ("FT.ADD i e 1 FIELDS n", "Fields must be specified in FIELD VALUE pairs"),
            ("FT.ADD i e 1 NOSAVE FIELDS n 1", "Unknown keyword `NOSAVE` provided"),
            ("FT.ADD i e 1 IF foo FIELDS n 1", "OK"),
            ("FT.DEL i e", "1"),
            ("FT.DEL i s", "0"),
            ("EXISTS e s", "1"),
            ("FT.GET none d", "Unknown Index name"),
            ("FT._CREATEIFNX i SCHEMA t TEXT", "OK"),
            ("FT._ALTERIFNX i SCHEMA ADD t TEXT", "OK"),
            ("FT._ALIASADDIFNX a i", "OK"),
            ("FT._ALIASADDIFNX a none", "OK"),
            ("FT._ALIASDELIFX b", "OK"),
            ("FT._DROPINDEXIFX none", "OK"),
            ("FT.DROP i", "OK"),
            ("EXISTS d s", "1"),
            ("FT._DROPIFX i", "OK"),
        ],
    );
}

#[test]
fn totals_and_order_of_aggregations() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client, &["FT.CREATE i SCHEMA t TEXT n NUMERIC SORTABLE b NUMERIC SORTABLE"]);
    for n in 1..=5 {
        fill(client, &[&format!("HSET d{n} t w{} n {n} b 637387878524969984", n % 3)]);
    }
    check(
        client,
        &[
            ("FT.AGGREGATE i * LOAD 1 n LIMIT 2 1", "[3 [n 3]]"),
            ("FT.AGGREGATE i * LOAD 1 n FILTER @n>3", "[4 [n 4] [n 5]]"),
            ("FT.AGGREGATE i * LOAD 1 n FILTER @n>30", "[5]"),
            ("FT.AGGREGATE i * LOAD 1 n SORTBY 2 @n DESC LIMIT 1 2", "[5 [n 4] [n 3]]"),
            ("FT.AGGREGATE i * SORTBY 2 @n DESC MAX 1 LIMIT 0 2", "[5 [n 5] [n 4]]"),
            ("FT.AGGREGATE i * LIMIT 0 1 SORTBY 2 @n DESC MAX 2", "[5 [n 5] [n 4]]"),
            ("FT.AGGREGATE i * GROUPBY 1 @n LIMIT 0 1", "[5 [n 2]]"),
            ("FT.AGGREGATE i '@n:[5 5]' LOAD 1 b", "[1 [b 637387878524969984]]"),
            ("FT.AGGREGATE i '@n:[5 5]' LOAD 3 @__key AS k", "[1 [k d5]]"),
            (
                "FT.AGGREGATE i '@n:[5 5]' FILTER '@t==\"w2\" && @n>1' SORTBY 1 @n LIMIT 0 1",
                "Property `t` not loaded nor in pipeline",
            ),
            ("FT.AGGREGATE i * LOAD 1 @t FILTER 'bad filter'", "Syntax error at offset 4"),
            ("FT.AGGREGATE i * APPLY zz AS x", "Unknown symbol 'zz'"),
            ("FT.AGGREGATE i * RETURN 1 t", "RETURN is not supported on FT.AGGREGATE"),
            ("FT.AGGREGATE i * GROUPBY 1 @t REDUCE SUM 1 @zz", "Property `zz` not present in document or pipeline"),
            ("FT.SEARCH i * LIMIT 1000001 1", "OFFSET exceeds maximum of 1000000"),
        ],
    );
    // A cursor ends with a piece that is not full, here an empty one.
    let reply = shown(&run(client, "FT.AGGREGATE i * LOAD 1 n WITHCURSOR COUNT 5"));
    let (rows, number) = reply.trim_end_matches(']').rsplit_once(' ').unwrap();
    assert!(rows.starts_with("[[1 [n 1]") && number != "0", "{reply}");
    assert_eq!(shown(&run(client, &format!("FT.CURSOR READ i {number}"))), "[[0] 0]");
}

#[test]
fn a_cursor_tells_that_its_index_is_gone() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i PREFIX 1 d: SCHEMA n NUMERIC");
    (0..5).for_each(|number| drop(run(client, &format!("HSET d:{number} n {number}"))));
    let reply = shown(&run(client, "FT.AGGREGATE i * WITHCURSOR COUNT 2"));
    let number = reply.trim_end_matches(']').rsplit(' ').next().expect("a number").to_owned();
    run(client, "FT.DROPINDEX i");
    let read = format!("FT.CURSOR READ i {number}");
    assert_eq!(shown(&ask(client, &read)), "The index was dropped while the cursor was idle");
    assert_eq!(shown(&ask(client, &read)), "Unknown index name");
}

#[test]
fn answers_of_searches() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(
        client,
        &[
            "FT.CREATE i SCORE_FIELD s SCHEMA t TEXT SORTABLE n NUMERIC SORTABLE g TAG INDEXEMPTY weight NUMERIC",
            "HSET a n 1.0 s 1",
            "HSET b t Straße n 2 g \"\"",
            "FT.CREATE j ON JSON SCHEMA $.t AS t TEXT",
            "FT.CREATE m ON JSON SCHEMA $.n AS n NUMERIC",
            r#"JSON.SET k $ '{"t":["one two","three"],"n":7,"other":1}'"#,
        ],
    );
    check(
        client,
        &[
            // A document without words has an infinite score.
            ("FT.SEARCH i * NOCONTENT WITHSCORES", "[2 a inf b 1]"),
            ("FT.SEARCH i '@n:[1 1]' RETURN 2 n n", "[1 a [n 1]]"),
            ("FT.SEARCH i '@n:[1 1]'", "[1 a [n 1.0]]"),
            ("FT.SEARCH i * SORTBY t LIMIT 0 1", "[2 b [t Straße n 2 g ]]"),
            ("FT.SEARCH i @g:{''} NOCONTENT DIALECT 2", "[1 b]"),
            ("FT.SEARCH i kinder EXPANDER none NOCONTENT", "[0]"),
            ("FT.SEARCH i $w NOCONTENT PARAMS 2 w stra\\ße DIALECT 2", "[0]"),
            // Between the texts of one field lie a hundred places.
            ("FT.SEARCH j 'two three' NOCONTENT SLOP 98", "[0]"),
            ("FT.SEARCH j 'two three' NOCONTENT SLOP 99", "[1 k]"),
            // JSON: the first of several values sorts, and a name outside of the schema is no path.
            ("FT.SEARCH m * SORTBY n WITHSORTKEYS RETURN 2 n other DIALECT 3", "[1 k #7 [n [7]]]"),
            ("FT.EXPLAIN i n LIMIT 0 1 VERBATIM", "n\n"),
            ("FT.SEARCH i * WITHCOUNT LIMIT 0 0", "[2]"),
            ("FT.SEARCH i * EXPLAINSCORE", "EXPLAINSCORE must be accompanied with WITHSCORES"),
        ],
    );
}

#[test]
fn synonyms_leave_documents_alone_that_came_before() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(
        client,
        &[
            "FT.CREATE i SCHEMA t TEXT",
            "FT.SYNUPDATE i g SKIPINITIALSCAN boy child",
            "HSET a t baby",
            "FT.SYNUPDATE i g SKIPINITIALSCAN baby",
            "HSET b t baby",
        ],
    );
    check(client, &[("FT.SEARCH i child NOCONTENT", "[1 b]")]);
}

#[test]
fn settings_of_a_line_of_loadmodule() {
    let flags = ["--loadmodule", "/x/redisearch.so", "DEFAULT_DIALECT", "2", "NOGC", "TIMEOUT", "0"];
    let launch = Launch::from_flags(&flags).unwrap();
    let server = Server::configured(Config::load(&launch, std::iter::empty()).unwrap().0);
    let client = &mut server.connect();
    check(
        client,
        &[
            ("FT.CONFIG GET DEFAULT_DIALECT", "[[DEFAULT_DIALECT 2]]"),
            ("FT.CONFIG GET NOGC", "[[NOGC true]]"),
            ("FT.CONFIG GET TIMEOUT", "[[TIMEOUT 0]]"),
            ("FT.CONFIG SET NOGC true", "Not modifiable at runtime"),
            ("FT.CONFIG SET MINPREFIX str", "Could not convert argument to expected type"),
            ("FT.CONFIG SET FORK_GC_CLEAN_THRESHOLD 0", "OK"),
            ("FT.CONFIG GET FORK_GC_CLEAN_THRESHOLD", "[[FORK_GC_CLEAN_THRESHOLD 0]]"),
        ],
    );
}

/// A thousand groups of synonyms do not cost a thousand scans.
#[test]
fn many_synonyms() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client, &["FT.CREATE i SCHEMA t TEXT"]);
    for n in 0..1000 {
        fill(client, &[&format!("HSET d{n} t word{n}")]);
    }
    for n in 0..1000 {
        fill(client, &[&format!("FT.SYNUPDATE i g{n} word{n} other{n}")]);
    }
    client.send(&["FT.SEARCH", "i", "other999", "NOCONTENT", "TIMEOUT", "0"]);
    assert_eq!(shown(&client.reply()), "[1 d999]");
}

/// A reload replays FT.ALTER and FT.SYNUPDATE under the locks of all shards, while the thread of the indexes goes on.
#[test]
fn reloads_do_not_wait_for_the_thread_of_indexes() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client, &["FT.CREATE i SCHEMA t TEXT", "FT.ALTER i SCHEMA ADD u TEXT", "FT.SYNUPDATE i g boy child"]);
    for n in 0..30 {
        fill(client, &[&format!("HSET d{n} t boy u x"), "DEBUG RELOAD"]);
        client.send(&["FT.SEARCH", "i", "child", "LIMIT", "0", "0", "TIMEOUT", "0"]);
        assert_eq!(shown(&client.reply()), format!("[{}]", n + 1));
    }
}

/// FT.ADD that changes the definition has locked a shard; queries that read documents hold the index.
#[test]
fn additions_beside_queries() {
    let server = Server::start();
    let (client, other) = (&mut server.connect(), &mut server.connect());
    for n in 0..100 {
        fill(client, &[&format!("FT.CREATE i{n} PREFIX 1 d{n}: SCHEMA t TEXT"), &format!("HSET d{n}:1 t x")]);
        other.send(&["FT.SEARCH", &format!("i{n}"), "x"]);
        fill(client, &[&format!("FT.ADD i{n} d{n}:1 0.5 REPLACE FIELDS t x")]);
        drop(other.reply());
    }
}

/// RediSearch 2.10.5 finds the same documents; it marks each word of its dictionary by itself.
#[test]
fn chinese_needs_no_spaces() {
    let server = Server::start();
    let client = &mut server.connect();
    let schema = "SCHEMA t TEXT";
    fill(
        client,
        &[
            &format!("FT.CREATE c PREFIX 1 c: LANGUAGE chinese {schema}"),
            &format!("FT.CREATE e PREFIX 1 c: {schema}"),
            &format!("FT.CREATE f PREFIX 1 f: LANGUAGE_FIELD l {schema}"),
            "HSET c:1 t 我喜欢编程",
            "HSET f:1 t 我们在香港学习简体中文 l chinese",
            "HSET f:2 t running l english",
        ],
    );
    check(
        client,
        &[
            ("FT.SEARCH c 编程 NOCONTENT", "[1 c:1]"),
            ("FT.SEARCH c 编程 LANGUAGE chinese NOCONTENT", "[1 c:1]"),
            ("FT.SEARCH e 编程 NOCONTENT", "[0]"),
            ("FT.SEARCH c 编程 HIGHLIGHT", "[1 c:1 [t 我喜欢<b>编程</b>]]"),
            ("FT.SEARCH f 香港 LANGUAGE chinese NOCONTENT", "[1 f:1]"),
            ("FT.SEARCH f 简体中文 NOCONTENT", "[0]"),
            ("FT.SEARCH f 简体中文 LANGUAGE chinese HIGHLIGHT RETURN 1 t", "[1 f:1 [t 我们在香港学习<b>简体中文</b>]]"),
            ("FT.SEARCH f 学习 LANGUAGE chinese SUMMARIZE LEN 5 RETURN 1 t", "[1 f:1 [t 们在香港学习简体中文... ]]"),
            ("FT.SEARCH f runs NOCONTENT", "[1 f:2]"),
            ("FT.CREATE g LANGUAGE klingon SCHEMA t TEXT", "Invalid language"),
        ],
    );
}

#[test]
fn expanders_by_name() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client, &["FT.CREATE i SCHEMA t TEXT p TEXT PHONETIC dm:en", "FT.SYNUPDATE i g run jog"]);
    for word in ["run", "running", "jog", "phone", "fone"] {
        fill(client, &[&format!("HSET {word} t {word} p {word}")]);
    }
    for (expander, run, phone) in [
        ("DEFAULT", "[3 jog run running]", "[2 fone phone]"),
        ("SBSTEM", "[2 run running]", "[1 phone]"),
        ("SYNONYM", "[2 jog run]", "[1 phone]"),
        ("PHONETIC", "[1 run]", "[2 fone phone]"),
        ("sbstem", "[1 run]", "[1 phone]"),
        ("none", "[1 run]", "[1 phone]"),
    ] {
        for (query, expected) in [("run", run), ("@p:phone", phone)] {
            let Value::Array(mut items) = ask(client, &format!("FT.SEARCH i {query} NOCONTENT EXPANDER {expander}"))
            else {
                panic!("{query} {expander}")
            };
            items.sort_by_key(shown);
            assert_eq!(shown(&Value::Array(items)), expected, "{query} {expander}");
        }
    }
    check(client, &[("FT.EXPLAIN i @t:run EXPANDER PHONETIC", "@t:UNION {\n  @t:run\n  @t:<RN(expanded)\n}\n")]);
}

#[test]
fn dictionaries_without_words() {
    let server = Server::start();
    let client = &mut server.connect();
    check(
        client,
        &[
            ("FT.DICTDUMP d", "could not open dict key"),
            ("FT.DICTADD d a", "1"),
            ("FT.DICTDEL d a", "1"),
            ("FT.DICTDUMP d", "[]"),
            ("FT.DICTDEL e a", "0"),
            ("FT.DICTDUMP e", "[]"),
            ("DEBUG RELOAD", "OK"),
            ("FT.DICTDUMP d", "[]"),
        ],
    );
}

#[test]
fn a_null_is_not_missing() {
    let server = Server::start();
    let client = &mut server.connect();
    let fields =
        "$.t AS t TEXT INDEXMISSING $.g AS g TAG INDEXMISSING INDEXEMPTY $.n AS n NUMERIC SORTABLE INDEXMISSING";
    fill(
        client,
        &[
            &format!("FT.CREATE i ON JSON SCHEMA {fields}"),
            r#"JSON.SET a $ {"t":null,"g":null,"n":null}"#,
            "JSON.SET b $ {}",
        ],
    );
    for field in ["t", "g", "n"] {
        check(client, &[(&format!("FT.SEARCH i ismissing(@{field}) NOCONTENT DIALECT 2"), "[1 b]")]);
    }
    check(
        client,
        &[
            ("FT.SEARCH i @g:{\"\"} NOCONTENT DIALECT 2", "[0]"),
            ("FT.SEARCH i * NOCONTENT SORTBY n DIALECT 2", "[2 a b]"),
        ],
    );
}
