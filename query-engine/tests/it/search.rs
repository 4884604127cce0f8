//! Sorting, windows, replacement, memory, explanations.

use query_engine::{
    Dialect, Document, DocumentError, Expected, Explanation, Field, FieldKind, Index, Language, Marks, ParseOptions,
    Punctuation, Query, Schema, Scorer, SearchError, SearchOptions, SortBy, SortKey, Value,
};

fn library() -> Index {
    let fields = [
        Field::new("title", FieldKind::TEXT).sortable(),
        Field::new("year", FieldKind::Numeric).sortable(),
        Field::new("tags", FieldKind::Tag { separator: Some(b';'), case_sensitive: true }),
    ];
    let mut index = Index::new(Schema::new(fields).expect("the names differ"));
    let books: [(&str, &str, Option<f64>); 5] = [
        ("b1", "hello world running hello", Some(3.0)),
        ("b2", "Banana", None),
        ("b3", "apple", Some(1.0)),
        ("b4", "Cherry", Some(3.0)),
        ("b5", "banana", Some(2.0)),
    ];
    for (id, title, year) in books {
        let mut values = vec![(0, Value::Text(title.as_bytes())), (2, Value::Text(b"A b; C ;;"))];
        values.extend(year.map(|year| (1, Value::Number(year))));
        index.put(&Document::new(id.as_bytes(), values)).expect("valid");
    }
    index
}

fn ids(index: &Index, query: &str, options: &SearchOptions<'_>) -> String {
    let query = Query::parse(query.as_bytes(), index.schema(), &ParseOptions::default()).expect("valid");
    let answer = index.search(&query, options).expect("a small window");
    let ids: Vec<_> = answer.hits.iter().map(|hit| String::from_utf8_lossy(&hit.id)).collect();
    ids.join(" ")
}

#[test]
fn answers_are_sorted_as_in_redisearch() {
    let index = library();
    let check = |field, ascending, expected: &str| {
        let sort_by = Some(SortBy { field, ascending, load: None });
        assert_eq!(ids(&index, "*", &SearchOptions { sort_by, ..SearchOptions::default() }), expected);
    };
    check(0, true, "b3 b2 b5 b4 b1");
    check(0, false, "b1 b4 b5 b2 b3");
    check(1, true, "b3 b5 b1 b4 b2");
    check(1, false, "b4 b1 b5 b3 b2");
    check(2, true, "b1 b2 b3 b4 b5");
    let load = |id: &[u8]| SortKey::Number(-f64::from(id[1]));
    let sort_by = Some(SortBy { field: 2, ascending: true, load: Some(&load) });
    assert_eq!(ids(&index, "*", &SearchOptions { sort_by, ..SearchOptions::default() }), "b5 b4 b3 b2 b1");
}

#[test]
fn windows_are_cut_from_the_order() {
    let index = library();
    let sort_by = Some(SortBy { field: 1, ascending: true, load: None });
    for offset in 0..7 {
        for limit in 0..7 {
            let all = ["b3", "b5", "b1", "b4", "b2"];
            let expected = all.iter().skip(offset).take(limit).copied().collect::<Vec<_>>().join(" ");
            assert_eq!(
                ids(&index, "*", &SearchOptions { sort_by, offset, limit, ..SearchOptions::default() }),
                expected
            );
        }
    }
    let query = Query::parse(b"*", index.schema(), &ParseOptions::default()).expect("valid");
    let far = SearchOptions { offset: usize::MAX, ..SearchOptions::default() };
    assert_eq!(index.search(&query, &far), Err(SearchError::Window));
}

#[test]
fn tags_keep_case_and_spaces_if_asked() {
    let index = library();
    let tags: Vec<_> = index.tag_values(2).expect("a TAG field").map(String::from_utf8_lossy).collect();
    assert_eq!(tags, ["A b", "C"]);
    let check = |query: &str, expected: usize| {
        assert_eq!(ids(&index, query, &SearchOptions::default()).split_whitespace().count(), expected, "{query}");
    };
    check("@tags:{A b}", 5);
    check("@tags:{a b}", 0);
    check("@tags:{A\\ b}", 5);
    check("@tags:{C}", 5);
    check("@tags:{A*}", 0);
    check("@tags:{A\\ *}", 5);
    assert!(index.tag_values(0).is_none());
}

#[test]
fn replaced_documents_leave_nothing() {
    let mut index = library();
    let before = index.memory();
    assert_eq!(before.total(), before.documents + before.words + before.tags + before.numbers + before.places);
    for round in 0..200 {
        let text = format!("word{round} hello");
        index
            .put(&Document::new(b"b1", vec![(0, Value::Text(text.as_bytes())), (1, Value::Number(f64::from(round)))]))
            .expect("valid");
    }
    assert_eq!((index.len(), index.contains(b"b1")), (5, true));
    assert_eq!(ids(&index, "world | word198", &SearchOptions::default()), "");
    assert_eq!(ids(&index, "word199 @year:[199 199]", &SearchOptions::default()), "b1");
    assert!(index.memory().words > before.words * 4);
    let mut steps = 0;
    while index.compact(10) {
        steps += 1;
    }
    assert!((10..1000).contains(&steps), "{steps}");
    assert_eq!(index.uncompacted(), 0);
    // As the first library, with other words of the first book.
    let after = index.memory();
    assert!(after.words < before.words + 200 && after.numbers < before.numbers * 2, "{before:?} {after:?}");
    for id in ["b1", "b2", "b3", "b4", "b5"] {
        assert!(index.remove(id.as_bytes()));
        assert!(!index.remove(id.as_bytes()));
    }
    while index.compact(1000) {}
    assert_eq!((index.len(), index.word_count(), index.memory().numbers), (0, 0, 0));
}

#[test]
fn values_that_no_field_holds_are_refused() {
    let mut index = library();
    let wrong = index.put(&Document::new(b"b1", vec![(1, Value::Text(b"soon"))]));
    let expected = DocumentError { field: "year".to_owned(), value: "soon".to_owned(), expected: Expected::Number };
    assert_eq!(wrong, Err(expected));
    assert!(!index.contains(b"b1"), "an old version is not left in its place");
    let wrong = index.put(&Document::new(b"b1", vec![(0, Value::Number(1.0))]));
    assert_eq!(wrong.map_err(|error| error.expected), Err(Expected::Text));
}

#[test]
fn scores_are_explained_as_in_redisearch() {
    let index = library();
    let query = Query::parse(b"hello world", index.schema(), &ParseOptions::default()).expect("valid");
    let explained = |scorer| {
        let options = SearchOptions { scorer, explain: true, ..SearchOptions::default() };
        index.search(&query, &options).expect("a small window").hits.remove(0).explanation.expect("asked for")
    };
    let lines = |explanation: &Explanation| {
        let parts = &explanation.parts[0];
        let rest: Vec<_> = parts.parts.iter().map(|part| part.text.clone()).collect();
        [explanation.text.clone(), parts.text.clone()].into_iter().chain(rest).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&explained(Scorer::Tfidf)),
        [
            "Final TFIDF : words TFIDF 6.00 * document score 1.00 / norm 2 / slop 1",
            "(Weight 1.00 * total children TFIDF 6.00)",
            "(TFIDF 4.00 = Weight 1.00 * TF 2 * IDF 2.00)",
            "(TFIDF 2.00 = Weight 1.00 * TF 1 * IDF 2.00)",
        ]
    );
}

#[test]
fn found_words_are_named_and_marked() {
    let index = library();
    let query = Query::parse(b"run world -apple", index.schema(), &ParseOptions::default()).expect("valid");
    let answer =
        index.search(&query, &SearchOptions { with_words: true, ..SearchOptions::default() }).expect("a small window");
    let words = &answer.hits[0].words;
    assert_eq!(words.iter().map(|word| String::from_utf8_lossy(&word.text)).collect::<Vec<_>>(), ["+run", "world"]);
    let marks = Marks {
        words,
        language: Language::English,
        punctuation: index.schema().punctuation,
        open: b"<b>",
        close: b"</b>",
    };
    let marked = query_engine::highlight(b"Running the world", &marks);
    assert_eq!(String::from_utf8_lossy(&marked), "<b>Running</b> the <b>world</b>");
}

#[test]
fn a_query_ends_when_the_caller_says_so() {
    let mut index = library();
    for number in 0..1000 {
        index.put(&Document::new(format!("n{number}").as_bytes(), vec![(0, Value::Text(b"hello"))])).expect("valid");
    }
    let query = Query::parse(b"hello", index.schema(), &ParseOptions::default()).expect("valid");
    let asked = std::cell::Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let answer = index
        .search(&query, &SearchOptions { is_over: Some(&is_over), ..SearchOptions::default() })
        .expect("a small window");
    assert_eq!((answer.is_partial, answer.total, asked.get()), (true, 299, 3));
    // Looking up words ends, too.
    asked.set(0);
    let patterns = vec!["%hello%"; 1000].join("|");
    let query = Query::parse(patterns.as_bytes(), index.schema(), &ParseOptions::default()).expect("valid");
    let options = SearchOptions { is_over: Some(&is_over), ..SearchOptions::default() };
    let answer = index.search(&query, &options).expect("a small window");
    assert_eq!((answer.is_partial, answer.total, asked.get()), (true, 0, 3));
}

#[test]
fn many_threads_query_at_once() {
    let index = std::sync::RwLock::new(library());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let index = index.read().expect("no writer panics");
                    assert_eq!(ids(&index, "hello", &SearchOptions::default()), "b1");
                }
            });
        }
        scope.spawn(|| {
            for number in 0..100 {
                let values = vec![(0, Value::Text(&b"other"[..]))];
                index
                    .write()
                    .expect("no reader panics")
                    .put(&Document::new(format!("n{number}").as_bytes(), values))
                    .expect("valid");
            }
        });
    });
}

/// Documents of an index with punctuation of its own.
fn punctuated(characters: &[u8]) -> Index {
    let mut schema = Schema::new([
        Field::new("t_t", FieldKind::TEXT),
        Field::new("u", FieldKind::TEXT),
        Field::new("g", FieldKind::TAG),
        Field::new("n", FieldKind::Numeric),
    ])
    .expect("the names differ");
    schema.punctuation = Punctuation::new(characters).expect("ASCII");
    schema.synonyms.add(b"group", [&b"me@home"[..], b"self"]);
    let mut index = Index::new(schema);
    let texts = [
        ("1", "hello.world test@email", "a_b", 1.5),
        ("2", "me@home says it's C#/C++", "x y", 2.0),
        ("3", "snake_case Running-shoes", "red", 3.0),
        ("4", "test\\.value back\\slash", "", 4.0),
    ];
    for (id, text, tag, number) in texts {
        let values =
            vec![(0, Value::Text(text.as_bytes())), (2, Value::Text(tag.as_bytes())), (3, Value::Number(number))];
        index.put(&Document::new(id.as_bytes(), values)).expect("valid");
    }
    index
}

#[test]
fn queries_read_an_index_own_punctuation() {
    let options = SearchOptions::default();
    let dots = punctuated(b"._");
    let slashes = punctuated(b".\\");
    let params: &[(&str, &[u8])] = &[("p", b"test@email")];
    let parse = ParseOptions { params, dialect: Dialect::Two, ..ParseOptions::default() };
    for (index, query, expected) in [
        (&dots, "hello", "1"),
        (&dots, "hello.world", "1"),
        (&dots, "test", ""),
        (&dots, "\"test@email\"", "1"),
        (&dots, "\"world test@email\"", "1"),
        (&dots, "test\\@email", "1"),
        (&dots, "$p", "1"),
        (&dots, "test\\@*", "1"),
        (&dots, "*c#/c*", "2"),
        (&dots, "w'tes?@*'", "1"),
        (&dots, "%it's2%", "2"),
        (&dots, "c#/c++", "2"),
        (&dots, "it's", "2"),
        (&dots, "self", "2"),
        (&dots, "snake_case", "3"),
        (&dots, "snake", "3"),
        (&dots, "running\\-shoe", "3"),
        (&dots, "running -shoes", ""),
        (&dots, "backslash", "4"),
        (&dots, "back\\slash", "4"),
        (&dots, "slash", ""),
        (&dots, "test\\.value", "4"),
        (&dots, "test.value", ""),
        // Names, tags and numbers are no text.
        (&dots, "@t_t:hello.world", "1"),
        (&dots, "@u|t_t:hello", "1"),
        (&dots, "@g:{a_b}", "1"),
        (&dots, "@g:{a_*}", "1"),
        (&dots, "@n:[1.5,1.9] hello", "1"),
        (&dots, "@n==1.5 hello", "1"),
        (&dots, "hello=>{$weight: 1.5; $inorder: true}", "1"),
        (&slashes, "back", "4"),
        (&slashes, "back\\slash", "4"),
        (&slashes, "\"back slash\"", "4"),
        (&slashes, "backslash", ""),
        (&slashes, "test\\.value", "4"),
        (&slashes, "snake_case", "3"),
    ] {
        let query_text = query;
        let query = Query::parse(query.as_bytes(), index.schema(), &parse);
        let query = query.unwrap_or_else(|error| panic!("{query_text}: {error}"));
        let answer = index.search(&query, &options).expect("a small window");
        let found: Vec<_> = answer.hits.iter().map(|hit| String::from_utf8_lossy(&hit.id)).collect();
        assert_eq!(found.join(" "), expected, "{query_text}");
    }
}
