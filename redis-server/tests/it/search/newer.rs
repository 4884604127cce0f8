//! Redis 8's additions to RediSearch 2.10: FT.HYBRID, scorers, the words that are expanded, the category of FT._LIST.

use super::{ask, run};
use crate::support::resp::Value;
use crate::support::server::{Client, Server};

/// An answer in one line: lists in brackets, without the time that FT.HYBRID ends with.
fn line(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let timed = items.iter().position(|item| item.text() == "execution_time");
            let items = &items[..timed.unwrap_or(items.len())];
            format!("[{}]", items.iter().map(line).collect::<Vec<_>>().join(" "))
        }
        other => other.text(),
    }
}

/// A server of Redis 8 with four documents. Bytes are the elements of INT8: `aa` and `ab` are 1 apart.
fn filled() -> (Server, Client) {
    let server = Server::with(&[("compatibility", "8.0")]);
    let mut client = server.connect();
    run(&mut client, "FT.CREATE i SCHEMA v VECTOR FLAT 6 TYPE INT8 DIM 2 DISTANCE_METRIC L2 t TEXT c TAG");
    for (key, vector, text, tag) in [
        ("1", "aa", "red shoes", "shoes"),
        ("2", "ab", "red running shoes", "shoes"),
        ("3", "ad", "running gear", "gear"),
        ("4", "zz", "blue shoes", "shoes"),
    ] {
        run(&mut client, &format!("HSET {key} v {vector} t '{text}' c {tag}"));
    }
    (server, client)
}

/// The rows of FT.HYBRID for the text `red` and the vector `aa`.
#[track_caller]
fn check_hybrid(client: &mut Client, cases: &[(&str, &str)]) {
    for (words, expected) in cases {
        let reply = ask(client, &format!("FT.HYBRID i {words} PARAMS 2 q aa"));
        assert_eq!(line(&reply), *expected, "{words}");
    }
}

#[test]
fn hybrid_queries_merge_two_answers() {
    let (_server, mut client) = filled();
    check_hybrid(
        &mut client,
        &[
            (
                "SEARCH red VSIM @v $q",
                "[total_results 4 results [[__key 1 __score 0.0327868852459] [__key 2 __score 0.0322580645161] \
                 [__key 3 __score 0.015873015873] [__key 4 __score 0.015625]] warnings []]",
            ),
            (
                "2 SEARCH red YIELD_SCORE_AS s VSIM @v $q KNN 2 K 2 YIELD_SCORE_AS n \
                 COMBINE LINEAR 4 ALPHA 0.5 BETA 0.5 YIELD_SCORE_AS both",
                "[total_results 2 results [[__key 1 s 0.726154189783 n 1 both 0.863077094891] \
                 [__key 2 s 0.609969517571 n 0.5 both 0.554984758785]] warnings []]",
            ),
            (
                "SEARCH gear VSIM @v $q RANGE 4 RADIUS 1 EPSILON 0.1 COMBINE RRF 2 CONSTANT 1",
                "Error parsing vector similarity parameters: Invalid option",
            ),
            (
                "SEARCH gear VSIM @v $q RANGE 2 RADIUS 1 COMBINE RRF 4 CONSTANT 1 WINDOW 1",
                "[total_results 2 results [[__key 3 __score 0.5] [__key 1 __score 0.5]] warnings []]",
            ),
            (
                "SEARCH red VSIM @v $q KNN 2 K 3 FILTER 3 @c:{gear} POLICY ADHOC LOAD 2 @__key @t SORTBY 2 @t DESC",
                "[total_results 3 results [[__key 3 t running gear] [__key 1 t red shoes] [__key 2 t red running shoes]] \
                 warnings []]",
            ),
            (
                "SEARCH * VSIM @v $q LOAD 1 @c GROUPBY 1 @c REDUCE COUNT 0 AS n SORTBY 2 @c ASC",
                "[total_results 2 results [[c gear n 1] [c shoes n 3]] warnings []]",
            ),
            (
                "SEARCH red VSIM @v $q KNN 2 K 9 YIELD_SCORE_AS n SORTBY 2 @t ASC LIMIT 0 1",
                "[total_results 4 results [[__key 4 __score 0.015625 n 0.000799360511591 t blue shoes]] warnings []]",
            ),
            (
                "SEARCH red VSIM @v $q COMBINE RRF 0 LOAD * FILTER '@__key==\"2\"'",
                "[total_results 4 results [[__key 2 v ab t red running shoes c shoes]] warnings []]",
            ),
            ("SEARCH red VSIM @v $q LIMIT 0 0", "[total_results 4 results [] warnings []]"),
        ],
    );
}

#[test]
fn bad_hybrid_queries_are_errors() {
    let (_server, mut client) = filled();
    check_hybrid(
        &mut client,
        &[
            ("3 SEARCH red VSIM @v $q", "FT.HYBRID currently supports only two subqueries"),
            ("red", "SEARCH keyword is required"),
            ("SEARCH red", "Unknown argument `PARAMS` in SEARCH"),
            ("SEARCH red VSIM v $q", "Missing @ prefix for vector field name"),
            ("SEARCH red VSIM @none $q", "Unknown field at offset 0 near none"),
            ("SEARCH red VSIM @t $q", "Expected a VECTOR field at offset 0 near t"),
            ("SEARCH red VSIM @v q", "Invalid vector argument, expected a parameter name starting with $"),
            ("SEARCH red VSIM @v $none", "No such parameter `none`"),
            ("SEARCH red VSIM @v $q KNN 2 EF_RUNTIME 5", "Missing required argument K"),
            ("SEARCH red VSIM @v $q KNN 2 K 0", "Invalid K value"),
            ("SEARCH red VSIM @v $q KNN 40 K 1", "Expected arguments 40, but 6 were provided"),
            ("SEARCH red VSIM @v $q RANGE 2 RADIUS -1", "Invalid RADIUS value"),
            ("SEARCH red VSIM @v $q DIALECT 2", NO_DIALECT),
            ("SEARCH red VSIM @v $q COMBINE SUM 0", "COMBINE: Invalid value for argument"),
            ("SEARCH red VSIM @v $q COMBINE LINEAR 2 ALPHA 1", "Missing value for BETA"),
            ("SEARCH red VSIM @v $q COMBINE LINEAR 4 ALPHA nan BETA 1", "Invalid ALPHA value"),
            ("SEARCH red VSIM @v $q COMBINE LINEAR 4 ALPHA 1 BETA inf", "Invalid BETA value"),
            ("SEARCH red VSIM @v $q COMBINE RRF 2 CONSTANT -inf", "Invalid CONSTANT value"),
            ("SEARCH red VSIM @v $q NOSORT SORTBY 1 @t", "NOSORT is not allowed with SORTBY"),
            ("SEARCH '@v:[VECTOR_RANGE 1 $q]' VSIM @v $q", "Vector expressions are not allowed in FT.HYBRID SEARCH"),
            (
                "SEARCH red VSIM @v $q FILTER '@v:[VECTOR_RANGE 1 $q]'",
                "Vector expressions are not allowed in FT.HYBRID VSIM FILTER",
            ),
        ],
    );
}

const NO_DIALECT: &str = "DIALECT is not supported in FT.HYBRID or any of its subqueries. Please check the documentation on \
                          search-default-dialect configuration.";

#[test]
fn scorers_of_redis_8() {
    let (_server, mut client) = filled();
    for (words, expected) in [
        ("FT.SEARCH i red SCORER BM25STD.NORM", "[2 1 1 2 0.8399999974568685]"),
        ("FT.SEARCH i red SCORER BM25STD.TANH", "[2 1 0.17957021468726586 2 0.15132125598395543]"),
    ] {
        assert_eq!(line(&run(&mut client, &format!("{words} WITHSCORES NOCONTENT"))), expected, "{words}");
    }
    let rows = run(&mut client, "FT.AGGREGATE i red ADDSCORES SCORER BM25STD.NORM");
    assert_eq!(line(&rows), "[1 [__score 1] [__score 0.839999997457]]");
}

/// RediSearch 2.10 expands neither negated nor optional words, but those of NOSTEM fields.
#[test]
fn words_are_expanded_as_in_redis_8() {
    let (_server, mut client) = filled();
    run(&mut client, "FT.CREATE j SCHEMA s TEXT n TEXT NOSTEM");
    for (query, expected) in [
        ("-shoes", "NOT{ UNION { shoes +shoe(expanded) shoe(expanded) } }"),
        ("~@s:shoes", "OPTIONAL{ @s:UNION { @s:shoes @s:+shoe(expanded) @s:shoe(expanded) } }"),
        ("@n:shoes", "@n:shoes"),
        ("'\"red shoes\"'", "EXACT { red shoes }"),
    ] {
        let tree = run(&mut client, &format!("FT.EXPLAIN j {query} DIALECT 2")).text();
        assert_eq!(tree.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{query}");
    }
}

/// A user without `@admin` asks FT.INFO whether an index is there.
#[test]
fn the_list_of_indexes_is_administrative() {
    let (server, mut client) = filled();
    run(&mut client, "ACL SETUSER searcher on >p ~* &* +@all -@admin");
    let mut searcher = server.connect();
    run(&mut searcher, "AUTH searcher p");
    assert!(ask(&mut searcher, "FT._LIST").text().starts_with("NOPERM"));
    run(&mut searcher, "FT.INFO i");
}
