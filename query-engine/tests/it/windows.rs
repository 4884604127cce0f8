//! Many documents: the ways to answer that are fast find what the others find.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use query_engine::{
    Aggregation, Dialect, Document, Field, FieldKind, Hits, Index, ParseOptions, Profiler, Query, Reducer, ReducerKind,
    Schema, Scorer, SearchOptions, SortBy, Step, Value,
};

const TEXT: usize = 0;
const TAG: usize = 1;
const NUMBER: usize = 2;
const PLAIN: usize = 3;

/// Some thousand documents, of which some are gone and some were put again. Words have one to three letters of `abc`.
fn filled(random: &mut SmallRng, numbers: impl Fn(&mut SmallRng) -> Vec<f64>) -> Index {
    let schema = Schema::new([
        Field::new("text", FieldKind::TEXT),
        Field::new("tag", FieldKind::TAG),
        Field::new("number", FieldKind::Numeric).sortable(),
        Field::new("plain", FieldKind::Numeric),
    ]);
    let mut index = Index::new(schema.expect("the names differ"));
    let word = |random: &mut SmallRng| -> String {
        let length = random.random_range(2..5);
        (0..length).map(|_| ['k', 'v', 'z'][random.random_range(0..3)]).collect()
    };
    for _ in 0..9000 {
        let id = format!("d{}", random.random_range(0..7000));
        if random.random_ratio(1, 6) {
            index.remove(id.as_bytes());
            continue;
        }
        let text = (0..random.random_range(1..200)).map(|_| word(random)).collect::<Vec<_>>().join(" ");
        let tag = word(random);
        let (several, plain) = (numbers(random), f64::from(random.random_range(0..1000)));
        let mut values = vec![(TEXT, Value::Text(text.as_bytes())), (TAG, Value::Text(tag.as_bytes()))];
        values.push((PLAIN, Value::Number(plain)));
        if random.random_ratio(9, 10) {
            values.push((NUMBER, Value::Numbers(several)));
        }
        index.put(&Document::new(id.as_bytes(), values)).expect("every value fits its field");
    }
    index
}

fn one(random: &mut SmallRng) -> Vec<f64> {
    vec![f64::from(random.random_range(0..500))]
}

fn search(index: &Index, query: &str, options: &SearchOptions<'_>) -> Hits {
    let parse = ParseOptions { dialect: Dialect::Two, ..ParseOptions::default() };
    let query = Query::parse(query.as_bytes(), index.schema(), &parse).expect("a query");
    index.search(&query, options).expect("a small window")
}

const QUERIES: [&str; 12] = [
    "kv*",
    "(*zz*) @tag:{kk*}",
    "kvzz kv*",
    "(w'?k*' -kv*)",
    "kvz | zzz",
    "(kvz zzz) | kk*",
    "~kvz zz*",
    "\"kv zv\"",
    "@number:[100 200] kz*",
    "@plain:[0 999]",
    "%kvz% @tag:{vv*}",
    "*",
];

#[test]
fn a_window_is_a_part_of_the_whole_order() {
    let mut random = SmallRng::seed_from_u64(1);
    let index = filled(&mut random, one);
    let scorers = [Scorer::Bm25Std, Scorer::Tfidf, Scorer::Bm25StdNorm, Scorer::DisMax, Scorer::DocScore];
    for (query, scorer) in QUERIES.into_iter().flat_map(|query| scorers.map(|scorer| (query, scorer))) {
        for sort_by in [None, Some(true), Some(false)] {
            let sort_by = sort_by.map(|ascending| SortBy { field: NUMBER, ascending, load: None });
            let all = SearchOptions { scorer, sort_by, limit: 20_000, ..SearchOptions::default() };
            let whole = search(&index, query, &all);
            assert_eq!(whole.total as usize, whole.hits.len(), "{query}");
            assert!(whole.total > 30, "{query}: {}", whole.total);
            for (offset, limit) in [(0, 1), (0, 10), (7, 40), (whole.hits.len() - 5, 10)] {
                let part = search(&index, query, &SearchOptions { offset, limit, ..all });
                let expected: Vec<_> = whole.hits.iter().skip(offset).take(limit).cloned().collect();
                assert_eq!((part.total, part.hits), (whole.total, expected), "{query} {scorer:?} {offset} {limit}");
            }
        }
    }
}

#[test]
fn words_of_a_pattern_are_read_in_windows_as_by_a_heap() {
    let mut random = SmallRng::seed_from_u64(2);
    let index = filled(&mut random, one);
    for query in QUERIES {
        for scorer in [Scorer::Bm25Std, Scorer::Tfidf, Scorer::Bm25] {
            let options = SearchOptions { scorer, limit: 20_000, with_words: true, ..SearchOptions::default() };
            // A query that is watched reads them by a heap.
            let profiler = Profiler::new(|| 0);
            let watched = SearchOptions { profiler: Some(&profiler), ..options };
            assert_eq!(search(&index, query, &options), search(&index, query, &watched), "{query} {scorer:?}");
            let explained = SearchOptions { explain: true, with_words: false, ..options };
            let scores = |hits: Hits| hits.hits.into_iter().map(|hit| (hit.id, hit.score)).collect::<Vec<_>>();
            assert_eq!(scores(search(&index, query, &options)), scores(search(&index, query, &explained)), "{query}");
        }
    }
}

#[test]
fn a_range_that_is_sorted_by_its_numbers_is_answered_as_any_query() {
    let mut random = SmallRng::seed_from_u64(3);
    let several = |random: &mut SmallRng| (0..random.random_range(1..4)).map(|_| one(random)[0]).collect();
    let zeros = |random: &mut SmallRng| vec![[-1.0, -0.0, 0.0, 1.0][random.random_range(0..4)]];
    let kinds: [fn(&mut SmallRng) -> Vec<f64>; 3] = [one, several, zeros];
    for (kind, numbers) in kinds.into_iter().enumerate() {
        let mut index = filled(&mut random, numbers);
        for compacted in [false, true] {
            while compacted && (index.compact(1000) || index.uncompacted() > 0) {}
            for query in
                ["@number:[100 200]", "@number:[(100 200]", "@number:[-inf (3]", "@number:[0 0]", "@number:[7 5]"]
            {
                for (ascending, field) in [(true, NUMBER), (false, NUMBER), (true, PLAIN)] {
                    let sort_by = Some(SortBy { field, ascending, load: None });
                    for (offset, limit) in [(0, 10), (3, 300), (0, 0)] {
                        let options = SearchOptions { sort_by, offset, limit, ..SearchOptions::default() };
                        let scored = SearchOptions { with_scores: true, scorer: Scorer::DocScore, ..options };
                        let found = |options| {
                            let Hits { total, hits, .. } = search(&index, query, options);
                            (total, hits.into_iter().map(|hit| (hit.id, hit.sort_key)).collect::<Vec<_>>())
                        };
                        assert_eq!(
                            found(&options),
                            found(&scored),
                            "{kind} {query} {ascending} {offset} {limit} {compacted}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn groups_that_are_made_at_once_are_those_of_a_table() {
    let mut random = SmallRng::seed_from_u64(4);
    let index = filled(&mut random, one);
    let of = |name: &str| name.to_owned();
    let reducer = |kind, name: &str| Reducer { kind, name: name.to_owned() };
    let reducers = vec![
        reducer(ReducerKind::Count, "count"),
        reducer(ReducerKind::Average(of("number")), "mean"),
        reducer(ReducerKind::ToList(of("number")), "list"),
        reducer(ReducerKind::FirstValue { name: of("number"), by: Some((of("__key"), false)) }, "first"),
        reducer(ReducerKind::Quantile(of("unknown"), 0.5), "none"),
    ];
    let fetch = |id: &[u8], name: &str| (name == "tag").then(|| query_engine::Datum::text(&id[id.len() - 1..]));
    let all = Query::parse(b"kz*", index.schema(), &ParseOptions::default()).unwrap();
    for by in [vec![of("tag")], vec![of("tag"), of("number")], vec![], vec![of("list")]] {
        let group = Step::Group { by: by.clone(), reducers: reducers.clone() };
        // A step in front of the groups takes a table of all rows.
        let at_once = [group.clone()];
        let by_table = [Step::Limit { offset: 0, count: usize::MAX }, group];
        let run = |steps: &[Step]| {
            let aggregation = Aggregation { steps, fetch: Some(&fetch), ..Aggregation::default() };
            let mut rows = index.aggregate(&all, &SearchOptions::default(), &aggregation).unwrap();
            (rows.columns().to_vec(), rows.all(), rows.read(usize::MAX))
        };
        let (columns, total, rows) = run(&at_once);
        assert!(total > 0 && rows.len() as u64 == total, "{by:?}");
        assert_eq!((columns, total, rows), run(&by_table), "{by:?}");
    }
}
