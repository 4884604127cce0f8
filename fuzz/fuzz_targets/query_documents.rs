//! Documents of any bytes go into fields of every kind, are found or refused, and leave nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use query_engine::Document;
use query_engine::vector::{Algorithm, ElementType, Metric, VectorOptions};
use query_engine::{
    Expected, Field, FieldKind, Index, Language, ParseOptions, Query, Schema, SearchOptions, Surface, Value,
};

fuzz_target!(|documents: Vec<(u8, u8, Vec<u8>)>| {
    let tag = FieldKind::Tag { separator: None, case_sensitive: true };
    let vector = |algorithm| FieldKind::Vector(VectorOptions::new(ElementType::Float16, 1, Metric::Cosine, algorithm));
    let (flat, graph) = (vector(Algorithm::FLAT), vector(Algorithm::HNSW));
    let sound = FieldKind::Text { weight: 1.0, stem: true, phonetic: true };
    let [plane, earth] = [Surface::Flat, Surface::Spherical].map(FieldKind::Shape);
    let kinds = [FieldKind::TEXT, FieldKind::TAG, tag, FieldKind::Numeric, FieldKind::Geo, flat, graph, sound, plane, earth];
    let fields = kinds.into_iter().enumerate().map(|(at, kind)| Field {
        index_missing: true,
        index_empty: true,
        ..Field::new(format!("f{at}"), kind).sortable()
    });
    let mut index = Index::new(Schema::new(fields).expect("the names differ"));
    let all = Query::parse(b"*", index.schema(), &ParseOptions::default()).expect("valid");
    for (id, field, value) in &documents {
        let values = vec![(usize::from(*field % 10), Value::Text(value))];
        let language = (*field >= 128).then_some(Language::Chinese);
        let document = Document { language, ..Document::new(std::slice::from_ref(id), values) };
        // A document without a valid shape is there all the same.
        let is_there = index.put(&document).map_or_else(|error| matches!(error.expected, Expected::Shape(_)), |()| true);
        assert_eq!(index.contains(&[*id]), is_there);
        let found =
            index.search(&all, &SearchOptions { limit: 1000, ..SearchOptions::default() }).expect("a small window");
        assert_eq!(found.total as usize, index.len());
        index.compact(2);
    }
    for (id, _, _) in &documents {
        index.remove(&[*id]);
    }
    while index.compact(100) {}
    index.compact(100);
    while index.compact(100) {}
    assert_eq!((index.len(), index.word_count()), (0, 0));
});
