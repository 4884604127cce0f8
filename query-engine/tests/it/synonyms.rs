//! Synonyms, as RediSearch 2.10 has them.

use query_engine::{Document, Field, FieldKind, Index, ParseOptions, Query, Schema, SearchOptions, Value};

fn index() -> Index {
    let text = Field::new("t", FieldKind::Text { weight: 5.0, stem: true, phonetic: false });
    let mut index = Index::new(Schema::new([text]).expect("one field"));
    index.add_synonyms(b"g1", ["boy", "Child", "running"]);
    index.add_synonyms(b"g2", ["child", "kid"]);
    for (id, text) in [("d1", "boy"), ("d2", "kid kid"), ("d3", "runs"), ("d4", "child")] {
        index.put(&Document::new(id.as_bytes(), vec![(0, Value::Text(text.as_bytes()))])).expect("text");
    }
    index
}

#[test]
fn words_stand_for_their_groups() {
    let index = index();
    let check = |text: &str, explained: &str, found: &[(&str, f64)]| {
        let query = Query::parse(text.as_bytes(), index.schema(), &ParseOptions::default()).expect("valid");
        let lines: Vec<String> = query.explain(index.schema()).split_whitespace().map(str::to_owned).collect();
        assert_eq!(lines.join(" "), explained);
        let answer = index.search(&query, &SearchOptions::default()).expect("a small window");
        let hits: Vec<_> =
            answer.hits.iter().map(|hit| (std::str::from_utf8(&hit.id).expect("ASCII"), hit.score)).collect();
        assert_eq!(hits, found, "{text}");
    };
    check(
        "child",
        "UNION { child ~g1(expanded) ~g2(expanded) +child(expanded) }",
        &[("d4", 2.0), ("d1", 1.0), ("d2", 1.0)],
    );
    check("\"child\"", "child", &[("d4", 2.0)]);
    check("kid", "UNION { kid ~g2(expanded) +kid(expanded) }", &[("d2", 3.0), ("d4", 1.0)]);
}

#[test]
fn groups_are_listed_by_word() {
    let index = index();
    let listed: Vec<String> = index
        .schema()
        .synonyms
        .iter()
        .map(|(word, groups)| {
            let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
            format!("{}: {}", String::from_utf8_lossy(word), groups.join(" "))
        })
        .collect();
    assert_eq!(listed, ["boy: g1", "child: g1 g2", "kid: g2", "running: g1"]);
}
