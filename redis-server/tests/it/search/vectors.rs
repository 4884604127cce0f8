//! Vector fields: nearest neighbours, ranges, filters, distances in answers, and changes.

use super::{ask, run};
use crate::support::resp::Value;
use crate::support::server::{Client, Server};

/// An answer in one line: lists in brackets.
fn line(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(line).collect::<Vec<_>>().join(" ")),
        other => other.text(),
    }
}

/// Bytes are the elements of INT8: `aa` and `ab` are 1 apart.
fn filled(client: &mut Client, algorithm: &str) {
    run(client, "FLUSHALL");
    run(
        client,
        &format!(
            "FT.CREATE i ON HASH PREFIX 1 d: SCHEMA v VECTOR {algorithm} 6 TYPE INT8 DIM 2 DISTANCE_METRIC L2 t TAG"
        ),
    );
    for (key, vector, tag) in [("d:1", "aa", "x"), ("d:2", "ab", "y"), ("d:3", "ad", "x"), ("d:4", "zz", "y")] {
        run(client, &format!("HSET {key} v {vector} t {tag}"));
    }
}

#[test]
fn distances_find_and_sort_documents() {
    let server = Server::start();
    let client = &mut server.connect();
    for algorithm in ["FLAT", "HNSW"] {
        filled(client, algorithm);
        for (query, expected) in [
            ("'*=>[KNN 2 @v $q AS s]' PARAMS 2 q aa SORTBY s RETURN 1 s", "[2 d:1 [s 0] d:2 [s 1]]"),
            ("'@t:{x}=>[KNN 2 @v $q AS s]' PARAMS 2 q ab SORTBY s DESC NOCONTENT", "[2 d:3 d:1]"),
            ("'*=>[KNN 1 @v $q]' PARAMS 2 q zz", "[1 d:4 [__v_score 0 v zz t y]]"),
            ("'*=>[KNN $k @v $q]' PARAMS 4 k 1 q ad RETURN 2 t __v_score", "[1 d:3 [t x __v_score 0]]"),
            (
                "'@v:[VECTOR_RANGE 10 $q]=>{$yield_distance_as: s}' PARAMS 2 q aa SORTBY s NOCONTENT WITHSORTKEYS",
                "[3 d:1 #0 d:2 #1 d:3 #9]",
            ),
            ("'@t:{y} @v:[VECTOR_RANGE 10 $q]' PARAMS 2 q aa NOCONTENT", "[1 d:2]"),
        ] {
            let reply = run(client, &format!("FT.SEARCH i {query} DIALECT 2"));
            assert_eq!(line(&reply), expected, "{algorithm}: {query}");
        }
        let rows = run(client, "FT.AGGREGATE i '*=>[KNN 3 @v $q AS s]' PARAMS 2 q aa APPLY 'sqrt(@s)' AS r DIALECT 2");
        assert_eq!(line(&rows), "[3 [s 0 r 0] [s 1 r 1] [s 9 r 3]]", "{algorithm}");
    }
}

#[test]
fn vectors_follow_their_documents() {
    let server = Server::start();
    let client = &mut server.connect();
    for algorithm in ["FLAT", "HNSW"] {
        filled(client, algorithm);
        let nearest = |client: &mut Client| {
            line(&run(client, "FT.SEARCH i '*=>[KNN 1 @v $q]' PARAMS 2 q aa NOCONTENT DIALECT 2"))
        };
        assert_eq!(nearest(client), "[1 d:1]", "{algorithm}");
        run(client, "DEL d:1");
        assert_eq!(nearest(client), "[1 d:2]", "{algorithm}");
        run(client, "HSET d:4 v aa");
        assert_eq!(nearest(client), "[1 d:4]", "{algorithm}");
        run(client, "RENAME d:4 elsewhere");
        run(client, "HDEL d:2 v");
        assert_eq!(nearest(client), "[1 d:3]", "{algorithm}");
        // A vector of another size: the document is not indexed, and counted.
        run(client, "HSET d:3 v abc");
        assert_eq!(nearest(client), "[0]", "{algorithm}");
        let info = line(&run(client, "FT.INFO i"));
        assert!(info.contains("Could not add vector with blob size 3 (expected size 2)"), "{info}");
        assert!(
            info.contains(&format!("type VECTOR algorithm {algorithm} data_type INT8 dim 2 distance_metric L2")),
            "{info}"
        );
    }
    let reply = ask(client, "FT.SEARCH i '*=>[KNN 1 @v $q]' PARAMS 2 q abc DIALECT 2");
    assert!(
        reply.is_error() && reply.text().contains("blob size (3) does not match index's expected size (2)"),
        "{reply:?}"
    );
}

/// SVS-VAMANA's attributes, at the index and in queries. Vectors are not compressed, which FT.INFO says.
#[test]
fn vamana_takes_its_own_attributes() {
    let server = Server::start();
    let client = &mut server.connect();
    let asked = "TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2 GRAPH_MAX_DEGREE 24 CONSTRUCTION_WINDOW_SIZE 100 SEARCH_WINDOW_SIZE 20 \
                 EPSILON 0.1 COMPRESSION LeanVec4x8 TRAINING_THRESHOLD 2048 REDUCE 1";
    let count = asked.split_whitespace().count();
    run(client, &format!("FT.CREATE i PREFIX 1 d: SCHEMA v VECTOR SVS-VAMANA {count} {asked} t TAG"));
    run(client, "FT.CREATE h PREFIX 1 d: SCHEMA v VECTOR HNSW 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2");
    // Four letters are a number: of equal first three, the greater letter is the greater number.
    for (key, vector, tag) in [("d:1", "aaa>aaa>", "x"), ("d:2", "aaa?aaa>", "y"), ("d:3", "aaa?aaa?", "x")] {
        run(client, &format!("HSET {key} v {vector} t {tag}"));
    }
    let nearest = "[3 d:1 d:2 d:3]";
    for attributes in [
        "",
        " SEARCH_WINDOW_SIZE 30",
        " SEARCH_WINDOW_SIZE 30 SEARCH_BUFFER_CAPACITY 40 USE_SEARCH_HISTORY AUTO",
        " HYBRID_POLICY BATCHES SEARCH_WINDOW_SIZE $w",
    ] {
        let filter = if attributes.contains("POLICY") { "@t:{x|y}" } else { "*" };
        let query = format!(
            "FT.SEARCH i '{filter}=>[KNN 3 @v $q{attributes} AS s]' PARAMS 4 q aaa>aaa> w 9 SORTBY s NOCONTENT"
        );
        assert_eq!(line(&run(client, &format!("{query} DIALECT 2"))), nearest, "{attributes}");
    }
    let range = "'@v:[VECTOR_RANGE 10 $q]=>{$epsilon: 0.5; $search_window_size: 40; $yield_distance_as: s}'";
    let range = format!("FT.SEARCH i {range} PARAMS 2 q aaa>aaa> SORTBY s NOCONTENT DIALECT 2");
    assert_eq!(line(&run(client, &range)), nearest);
    for (index, attribute) in [
        ("i", "EF_RUNTIME 5"),
        ("i", "USE_SEARCH_HISTORY maybe"),
        ("i", "SEARCH_WINDOW_SIZE 0"),
        ("h", "SEARCH_WINDOW_SIZE 5"),
    ] {
        let query = format!("FT.SEARCH {index} '*=>[KNN 3 @v $q {attribute}]' PARAMS 2 q aaa>aaa> DIALECT 2");
        assert!(ask(client, &query).is_error(), "{index}: {attribute}");
    }
    let facts = "type VECTOR algorithm SVS-VAMANA data_type FLOAT32 dim 2 distance_metric L2 graph_max_degree #24 \
                 construction_window_size #100 compression NO_COMPRESSION";
    let info = line(&run(client, "FT.INFO i"));
    assert!(info.replace('#', "").contains(&facts.replace('#', "")), "{info}");
    // An insertion and a removal follow.
    run(client, "DEL d:1");
    let query = "FT.SEARCH i '*=>[KNN 1 @v $q]' PARAMS 2 q aaa>aaa> NOCONTENT DIALECT 2";
    assert_eq!(line(&run(client, query)), "[1 d:2]");
}

#[test]
fn json_has_vectors_as_numbers() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE j ON JSON SCHEMA $.v AS v VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC COSINE");
    for (key, vector) in [("a", "[1,1]"), ("b", "[1,-1]"), ("c", "[1,0.5]"), ("d", "[1]"), ("e", "[\"x\",1]")] {
        run(client, &format!("JSON.SET {key} $ '{{\"v\":{vector}}}'"));
    }
    // Two numbers that are the same, about 0.22.
    let query = "FT.SEARCH j '*=>[KNN 5 @v $q AS s]' PARAMS 2 q aaa>aaa> SORTBY s NOCONTENT DIALECT 2";
    assert_eq!(line(&run(client, query)), "[3 a c b]");
}

/// Of several vectors of a document the nearest one counts. The answers are those of RediSearch 2.10.5.
#[test]
fn documents_of_json_may_have_several_vectors() {
    let server = Server::start();
    let client = &mut server.connect();
    for algorithm in ["FLAT", "HNSW"] {
        run(client, "FLUSHALL");
        let vector = format!("VECTOR {algorithm} 6 TYPE INT8 DIM 2 DISTANCE_METRIC L2");
        run(client, &format!("FT.CREATE i ON JSON SCHEMA $.v[*].vec AS v {vector} $.one AS one {vector} $.t AS t TAG"));
        let documents = [
            ("a", r#"{"v":[{"vec":[97,97]},{"vec":[101,101]}],"t":"p"}"#),
            ("b", r#"{"v":[{"vec":[98,98]},{"vec":null},{"w":1}],"t":"q"}"#),
            ("none", r#"{"v":[],"one":[1,2]}"#),
            ("null", r#"{"v":null,"one":null}"#),
            // These are not indexed.
            ("number", r#"{"v":[{"vec":[97,97]},{"vec":1}]}"#),
            ("size", r#"{"v":[{"vec":[97,97]},{"vec":[97]}]}"#),
            ("text", r#"{"v":[{"vec":[97,"x"]}]}"#),
            ("wrapped", r#"{"one":[[1,2]]}"#),
        ];
        for (key, document) in documents {
            client.send(&["JSON.SET", key, "$", document]);
            drop(client.reply());
        }
        for (query, expected) in [
            ("'*=>[KNN 10 @v $q AS s]' PARAMS 2 q aa SORTBY s RETURN 1 s", "[2 a [s 0] b [s 2]]"),
            ("'*=>[KNN 10 @v $q AS s]' PARAMS 2 q ee SORTBY s RETURN 1 s", "[2 a [s 0] b [s 18]]"),
            ("'*=>[KNN 1 @v $q AS s]' PARAMS 2 q cc SORTBY s RETURN 1 s", "[1 b [s 2]]"),
            ("'@t:{p|q}=>[KNN 2 @v $q AS s]' PARAMS 2 q ee SORTBY s RETURN 1 s", "[2 a [s 0] b [s 18]]"),
            ("'@v:[VECTOR_RANGE 40 $q]=>{$yield_distance_as: s}' PARAMS 2 q aa SORTBY s NOCONTENT", "[2 a b]"),
            ("* NOCONTENT LIMIT 0 0", "[4]"),
        ] {
            let reply = run(client, &format!("FT.SEARCH i {query} DIALECT 2"));
            assert_eq!(line(&reply), expected, "{algorithm}: {query}");
        }
        client.send(&["JSON.SET", "a", "$", r#"{"v":[{"vec":[103,103]}]}"#]);
        drop(client.reply());
        let query = "FT.SEARCH i '*=>[KNN 10 @v $q AS s]' PARAMS 2 q aa SORTBY s RETURN 1 s DIALECT 2";
        assert_eq!(line(&run(client, query)), "[2 b [s 2] a [s 72]]", "{algorithm}");
        run(client, "DEL a");
        assert_eq!(line(&run(client, query)), "[1 b [s 2]]", "{algorithm}");
    }
}
