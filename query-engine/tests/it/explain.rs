//! EXPLAIN of what RediSearch 2.10.5 was asked: `> DIALECT QUERY`, then its answer up to an empty line.

use query_engine::{Dialect, Field, FieldKind, ParseOptions, Query, Schema};

pub(crate) const PARAMS: &[(&str, &[u8])] =
    &[("p", b"Some Text"), ("one", b"1"), ("two", b"2.5"), ("unit", b"km"), ("wild", b"a*")];

/// The schema that the answers were recorded with.
fn schema() -> Schema {
    let missing = Field { index_missing: true, ..Field::new("m", FieldKind::TEXT) };
    let unstemmed = Field::new("s", FieldKind::Text { weight: 1.0, stem: false, phonetic: false });
    let fields = [
        Field::new("t", FieldKind::TEXT),
        Field::new("u", FieldKind::TEXT),
        Field::new("g", FieldKind::TAG),
        Field::new("n", FieldKind::Numeric),
        Field::new("p", FieldKind::Geo),
        missing,
        unstemmed,
    ];
    Schema::new(fields).expect("the names differ")
}

/// Intended differences in the replies: errors of RediSearch's grammars that the engine does not have, and later texts.
const ON_PURPOSE: &[&str] = &[
    // Stop words in quotes and tags, and empty strings are as in dialect 2.
    "1 \"hello the running world\"",
    "1 \"the a\"",
    "1 @n:[1 2] @g:{a b|c*} @p:[1 2 3 km]",
    "1 \"\"",
    // A stop word in a union makes RediSearch join the rest by "and".
    "2 a|b c|d",
    // Redis 8 names the parameter.
    "2 @n:[$p $two]",
];

#[test]
fn trees_are_those_of_redisearch() {
    let schema = schema();
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in include_str!("explain.txt").split("\n> ") {
        let (question, expected) = case.split_once('\n').expect("a question and an answer");
        let (dialect, query) = question.trim_start_matches("> ").split_once(' ').expect("a dialect and a query");
        let dialect = if dialect == "1" { Dialect::One } else { Dialect::Two };
        let params = if dialect == Dialect::One { &[] } else { PARAMS };
        let options = ParseOptions { dialect, params, ..ParseOptions::default() };
        let answer = match Query::parse(query.as_bytes(), &schema, &options) {
            Ok(query) => query.explain(&schema),
            Err(error) => format!("(error) {error}"),
        };
        count += 1;
        let question = question.trim_start_matches("> ");
        let is_same = answer.trim_end() == expected.trim_end();
        if is_same == ON_PURPOSE.contains(&question) {
            wrong.push(format!("> {question}\n{}\ninstead of\n{}", answer.trim_end(), expected.trim_end()));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(count > 250, "{count}");
}
