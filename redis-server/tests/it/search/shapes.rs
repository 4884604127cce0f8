//! GEOSHAPE fields. The replies are those of RediSearch 2.10.5.

use std::time::{Duration, Instant};

use super::{ask, ids, run};
use crate::support::process::{Process, ask as ask_process};
use crate::support::resp::Value;
use crate::support::server::{Client, Server};

/// The documents whose shapes have a relation to a shape.
fn related(client: &mut Client, field: &str, relation: &str, shape: &str) -> Vec<String> {
    let query = format!("@{field}:[{relation} $shape]");
    client.send(&["FT.SEARCH", "i", &query, "NOCONTENT", "PARAMS", "2", "shape", shape, "DIALECT", "2"]);
    ids(&client.reply()).into_iter().collect()
}

#[test]
fn shapes_are_found() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i SCHEMA flat GEOSHAPE FLAT round GEOSHAPE name TEXT missing GEOSHAPE INDEXMISSING");
    run(client, "HSET small flat 'POLYGON((1 1, 1 100, 100 100, 100 1, 1 1))' name small");
    run(
        client,
        "HSET large flat 'POLYGON((1 1, 1 200, 200 200, 200 1, 1 1), (2 2, 49 2, 49 49, 2 49, 2 2))' name large",
    );
    run(client, "HSET point flat 'POINT(10 10)' round 'POINT(34.9 29.7)'");
    let check = |client: &mut Client, relation: &str, shape: &str, expected: &[&str]| {
        assert_eq!(related(client, "flat", relation, shape), expected, "{relation} {shape}");
    };
    let square = |size: u32| format!("POLYGON((0 0, 0 {size}, {size} {size}, {size} 0, 0 0))");
    check(client, "within", &square(150), &["point", "small"]);
    check(client, "WITHIN", &square(250), &["large", "point", "small"]);
    check(client, "contains", &square(150), &[]);
    check(client, "contains", "POLYGON((50 50, 50 99, 99 99, 99 50, 50 50))", &["large", "small"]);
    check(client, "contains", "POINT(10 10)", &["small"]);
    check(client, "intersects", "POINT(10 10)", &["point", "small"]);
    check(client, "disjoint", "POINT(150 150)", &["point", "small"]);
    // The old shape goes with the old document, and a bad one leaves the rest of its document.
    run(client, "HSET small flat 'POINT(500 500)'");
    check(client, "within", &square(250), &["large", "point"]);
    run(client, "HSET small flat 'POINT(255, 255)'");
    check(client, "disjoint", "POINT(1000 1000)", &["large", "point"]);
    assert_eq!(ids(&run(client, "FT.SEARCH i @name:small NOCONTENT")).len(), 1);
    assert_eq!(ids(&run(client, "FT.SEARCH i ismissing(@missing) NOCONTENT DIALECT 2")).len(), 3);
    assert_eq!(run(client, "FT.DEBUG DUMP_GEOMIDX i flat"), run(client, "FT.DEBUG DUMP_GEOMIDX i flat"));
    let info = format!("{:?}", run(client, "FT.INFO i"));
    let error = "Error indexing geoshape: Expected ')' at ',' in 'POINT(255, 255)'";
    assert!(info.contains(&format!("{:?}", error.as_bytes().to_vec())[1..200]), "{info}");
    run(client, "HDEL large flat");
    check(client, "disjoint", "POINT(1000 1000)", &["point"]);
    assert_eq!(related(client, "round", "within", "POLYGON((34 29, 35 29, 35 30, 34 30, 34 29))"), ["point"]);
    assert_eq!(related(client, "name", "within", "POINT(1 1)"), [""; 0]);
}

#[test]
fn shapes_of_json_and_in_other_commands() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i ON JSON SCHEMA $.g AS g GEOSHAPE FLAT SORTABLE $.n AS n NUMERIC");
    run(client, r#"JSON.SET a $ '{"g":"POLYGON((0 0,0 10,10 10,10 0,0 0))","n":1}'"#);
    run(client, r#"JSON.SET list $ '{"g":["POINT(1 1)"],"n":2}'"#);
    run(client, r#"JSON.SET null $ '{"g":null,"n":3}'"#);
    assert_eq!(related(client, "g", "contains", "POINT(1 1)"), ["a"]);
    assert_eq!(ids(&run(client, "FT.SEARCH i * NOCONTENT")).len(), 2);
    let query = ["@g:[contains $p] @n:[0 5]", "PARAMS", "2", "p", "POINT(1 1)", "DIALECT", "2"];
    let ask_all = |client: &mut Client, head: &[&str], tail: &[&str]| {
        client.send(&[head, &query, tail].concat());
        client.reply()
    };
    let explained = ask_all(client, &["FT.EXPLAIN", "i"], &[]).text();
    assert_eq!(explained, "INTERSECT {\n  GEOSHAPE{1 POINT(1 1)}\n  NUMERIC {0.000000 <= @n <= 5.000000}\n}\n");
    let found =
        ask_all(client, &["FT.SEARCH", "i"], &["SORTBY", "g", "WITHSCORES", "WITHSORTKEYS", "RETURN", "1", "g"]);
    let Value::Array(items) = found else { panic!("{found:?}") };
    assert_eq!(items[..3].iter().map(Value::text).collect::<Vec<_>>(), ["1", "a", "inf"], "{items:?}");
    let Value::Array(rows) = ask_all(client, &["FT.AGGREGATE", "i"], &["LOAD", "1", "g"]) else { panic!("rows") };
    let Value::Array(row) = &rows[1] else { panic!("{rows:?}") };
    assert_eq!(row.iter().map(Value::text).collect::<Vec<_>>(), ["g", "POLYGON((0 0,0 10,10 10,10 0,0 0))"]);
}

#[test]
fn wrong_shapes_are_named() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i SCHEMA g GEOSHAPE FLAT n NUMERIC");
    let mut check = |query: &str, shape: &str, expected: &str| {
        client.send(&["FT.SEARCH", "i", query, "PARAMS", "2", "p", shape, "DIALECT", "2"]);
        assert_eq!(client.reply().text(), expected, "{query} {shape}");
    };
    let point = "POINT(1 1)";
    check("@g:[foo $p]", point, "Syntax error: Expecting a geoshape predicate at offset 8");
    check("@g:[within p]", point, "Syntax error at offset 11 near p");
    check("@g:[within]", point, "Syntax error at offset 10 near within");
    check("@g:[within $p", point, "Syntax error at offset 11 near p");
    check("@g:[within $q]", point, "No such parameter `q`");
    check("@g:[within $p]", "", "Error querying geoshape index: unknown geometry type");
    check("@g:[within $p]", "POLYGON", "Error querying geoshape index: Expected '(' in 'POLYGON'");
    check(
        "@g:[within $p]",
        "POLYGON((0 0,0 0))",
        "Error querying geoshape index: invalid geometry: Geometry has too few points",
    );
    check("@g:[within $p] (", "POLYGON", "Syntax error at offset 15 near p");
    let begin = "FT.SEARCH i '@g:[within $p]' PARAMS 2 p 'POINT(1 1)' DIALECT";
    assert_eq!(ask(client, &format!("{begin} 1")).text(), "Syntax error at offset 4 near within");
}

/// Large and deep shapes have an end, in documents and in queries.
#[test]
fn hostile_shapes_have_an_end() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i SCHEMA f GEOSHAPE FLAT s GEOSHAPE t TEXT");
    let ring = |count: usize, radius: &dyn Fn(usize) -> f64| {
        let point = |at: usize| {
            let angle = at as f64 / count as f64 * std::f64::consts::TAU;
            format!("{} {}", radius(at) * angle.cos(), radius(at) * angle.sin())
        };
        format!("POLYGON(({}))", (0..count).map(point).collect::<Vec<_>>().join(","))
    };
    let comb = (0..60_000).map(|at| format!("{at} 0,{at} 1e9")).collect::<Vec<_>>().join(",");
    let shapes = [
        format!("POLYGON{}", "(".repeat(1 << 20)),
        format!("POLYGON({}", "()".repeat(1 << 20)),
        format!("POLYGON(({}))", "1 1,".repeat(1_100_000)),
        format!("POLYGON(({comb}))"),
        ring(500_000, &|_| 40.0),
        ring(40_001, &|at| if at % 2 == 0 { 1e-3 } else { 40.0 }),
    ];
    let began = Instant::now();
    for (at, shape) in shapes.iter().enumerate() {
        run(client, "PING");
        client.send(&["HSET", &format!("d{at}"), "f", shape, "s", shape, "t", "word"]);
        drop(client.reply());
        for field in ["f", "s"] {
            for relation in ["within", "disjoint"] {
                let query = format!("@{field}:[{relation} $p]");
                client.send(&["FT.SEARCH", "i", &query, "NOCONTENT", "PARAMS", "2", "p", shape, "DIALECT", "2"]);
                drop(client.reply());
            }
        }
    }
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    // The documents themselves are there, whatever their shapes.
    assert_eq!(ids(&run(client, "FT.SEARCH i word NOCONTENT TIMEOUT 0")).len(), shapes.len());
}

#[test]
fn shapes_are_there_after_a_restart() {
    let mut server = Process::start("search-shapes", &[("appendonly", "no")]);
    let client = &mut server.connect();
    for line in
        [&["FT.CREATE", "i", "SCHEMA", "g", "GEOSHAPE", "FLAT"][..], &["HSET", "d", "g", "POINT(1 1)"], &["SAVE"]]
    {
        assert!(!ask_process(client, line).is_error(), "{line:?}");
    }
    server.signal(rustix::process::Signal::KILL);
    server.ended();
    server.restart();
    let query = ["FT.SEARCH", "i", "@g:[intersects $p]", "NOCONTENT", "PARAMS", "2", "p", "POINT(1 1)", "DIALECT", "2"];
    assert_eq!(ids(&ask_process(&mut server.connect(), &query)).len(), 1);
}
