//! Queries of any bytes are read, printed and answered without a panic, in every dialect.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use query_engine::Query;
use query_engine::vector::{Algorithm, ElementType, Metric, VectorOptions};
use query_engine::{Dialect, Document, Field, FieldKind, Index, Language, ParseOptions, Schema, SearchOptions, Value};

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let missing = Field { index_missing: true, ..Field::new("u", FieldKind::TEXT) };
    let fields = [
        Field::new("t", FieldKind::TEXT),
        missing,
        Field::new("g", FieldKind::TAG),
        Field::new("n", FieldKind::Numeric),
        Field::new("p", FieldKind::Geo),
        Field::new("v", FieldKind::Vector(VectorOptions::new(ElementType::Int8, 2, Metric::L2, Algorithm::FLAT))),
        Field::new("h", FieldKind::Vector(VectorOptions::new(ElementType::Int8, 2, Metric::Cosine, Algorithm::HNSW))),
    ];
    let mut index = Index::new(Schema::new(fields).expect("the names differ"));
    for (id, text) in [("a", "hello running world"), ("b", "hello world hello"), ("c", "run")] {
        let values = vec![
            (0, Value::Text(text.as_bytes())),
            (2, Value::Text(b"red,light blue")),
            (3, Value::Number(5.0)),
            (4, Value::Text(b"1.5,2.5")),
            (5, Value::Vector(text.as_bytes().first_chunk::<2>().expect("longer"))),
            (6, Value::Vector(text.as_bytes().last_chunk::<2>().expect("longer"))),
        ];
        index.put(&Document::new(id.as_bytes(), values)).expect("every value fits its field");
    }
    index
});

fuzz_target!(|text: &[u8]| {
    let params: &[(&str, &[u8])] = &[("a", b"1"), ("b", b"word"), ("c", text), ("v", b"he")];
    let languages = [None, Some(Language::Chinese)];
    for (dialect, language) in [Dialect::One, Dialect::Two].into_iter().flat_map(|dialect| languages.map(|it| (dialect, it))) {
        let params = if dialect == Dialect::One { &[] } else { params };
        let options = ParseOptions { dialect, params, language, max_leaves: 256, ..ParseOptions::default() };
        if let Ok(query) = Query::parse(text, INDEX.schema(), &options) {
            std::hint::black_box(query.explain(INDEX.schema()));
            let answer = INDEX.search(&query, &SearchOptions { explain: true, ..SearchOptions::default() });
            assert!(answer.is_ok_and(|answer| answer.total <= 3 && answer.total == answer.hits.len() as u64));
        }
    }
});
