//! Queries that nobody writes in good faith end with an error in bounded time.

use query_engine::vector::{Algorithm, ElementType, Metric, VectorOptions};
use query_engine::{
    Dialect, Document, Field, FieldKind, Index, ParseOptions, Query, QueryError, Schema, SearchOptions, Value,
};

fn schema() -> Schema {
    let vector = VectorOptions::new(ElementType::Int8, 1, Metric::L2, Algorithm::HNSW);
    let fields = [("t", FieldKind::TEXT), ("g", FieldKind::TAG), ("v", FieldKind::Vector(vector))];
    Schema::new(fields.map(|(name, kind)| Field::new(name, kind))).expect("the names differ")
}

fn parse(query: &str, dialect: Dialect) -> Result<Query, QueryError> {
    Query::parse(
        query.as_bytes(),
        &schema(),
        &ParseOptions { dialect, params: &[("p", b"5")], ..ParseOptions::default() },
    )
}

#[test]
fn deep_queries_are_refused() {
    for dialect in [Dialect::One, Dialect::Two] {
        for part in ["(", "-", "~", "-(", "@t:(", "xa* "] {
            let query = part.repeat(100_000);
            let outcome = parse(&query, dialect).map(|_| ());
            let is_flat = part == "xa* " && dialect == Dialect::One || part == "~" && dialect == Dialect::Two;
            match outcome {
                Err(QueryError::TooDeep) if dialect == Dialect::Two => {}
                // Dialect 1 tells where, as in RediSearch.
                Err(QueryError::Syntax { .. }) if dialect == Dialect::One => {}
                Err(QueryError::Syntax { offset: 4, .. }) if part == "@t:(" && dialect == Dialect::Two => {}
                Err(QueryError::TooManyLeaves(_)) if is_flat => {}
                other => panic!("{part} in {dialect:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn long_queries_are_refused() {
    for dialect in [Dialect::One, Dialect::Two] {
        for part in ["xa ", "xa|", "%xa% ", "\"xb xc\" "] {
            let query = part.repeat(1_000_000);
            let outcome = parse(&query, dialect).map(|_| ());
            assert!(
                matches!(outcome, Err(QueryError::TooManyLeaves(65_536) | QueryError::TooDeep)),
                "{part}: {outcome:?}"
            );
        }
        let tags = format!("@g:{{{}}}", vec!["xa"; 1_000_000].join("|"));
        assert_eq!(parse(&tags, dialect).map(|_| ()), Err(QueryError::TooManyLeaves(65_536)));
    }
}

#[test]
fn long_but_honest_queries_are_answered() {
    let mut index = Index::new(schema());
    for number in 0..100 {
        let (id, tag) = (format!("d{number}"), format!("tag{number}"));
        let values = vec![(0, Value::Text(b"xa xb xc")), (1, Value::Text(tag.as_bytes()))];
        index.put(&Document::new(id.as_bytes(), values)).expect("valid");
    }
    let tags: Vec<String> = (0..50_000).map(|number| format!("tag{number}")).collect();
    let long = [format!("@g:{{{}}}", tags.join("|")), tags.join("|") + "|xa", "xa ".repeat(1000), "xa|xb ".repeat(500)];
    for text in long {
        let query = parse(&text, Dialect::Two).expect("within the limits");
        let answer = index.search(&query, &SearchOptions::default()).expect("a small window");
        assert_eq!(answer.total, 100, "{}…", &text[..20]);
    }
}

#[test]
fn odd_bytes_are_no_panic() {
    let pieces = [
        "\"",
        "\\",
        "'",
        "w'",
        "$",
        "@",
        ":",
        "{",
        "}",
        "[",
        "]",
        "=>",
        "|",
        "(",
        ")",
        "%",
        "*",
        "-",
        "~",
        "\u{e9}",
        "5",
        "inf",
        "a",
        " ",
        "=>[KNN 5 @v $p ",
        "[VECTOR_RANGE 5 $p]",
        "@v:",
    ];
    let mut state = 1_u64;
    for _ in 0..200_000 {
        let mut query = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            query.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        for dialect in [Dialect::One, Dialect::Two] {
            if let Ok(query) = parse(&query, dialect) {
                assert!(query.explain(&schema()).ends_with('\n'));
            }
        }
    }
}
