//! Vector queries: KNN with and without filters, ranges, distances, errors.

use query_engine::vector::{Algorithm, ElementType, Metric, VectorOptions};
use query_engine::{
    Aggregation, Datum, Dialect, DistanceOrder, Document, DocumentError, Expected, Field, FieldKind, Index,
    ParseOptions, Query, QueryError, Schema, SchemaError, SearchOptions, SortBy, Step, Value,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const DIMENSIONS: usize = 8;

fn vector(algorithm: Algorithm) -> VectorOptions {
    VectorOptions::new(ElementType::Float32, DIMENSIONS, Metric::L2, algorithm)
}

fn schema() -> Schema {
    Schema::new([
        Field::new("flat", FieldKind::Vector(vector(Algorithm::FLAT))),
        Field::new("graph", FieldKind::Vector(vector(Algorithm::HNSW))),
        Field::new("n", FieldKind::Numeric).sortable(),
        Field::new("g", FieldKind::TAG),
        Field::new("t", FieldKind::TEXT),
    ])
    .expect("the names differ")
}

fn blob(numbers: [f32; DIMENSIONS]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn random_vector(random: &mut SmallRng) -> [f32; DIMENSIONS] {
    std::array::from_fn(|_| random.random_range(-1.0..1.0))
}

struct Doc {
    vector: [f32; DIMENSIONS],
    number: u32,
}

impl Doc {
    fn random(random: &mut SmallRng) -> Self {
        Self { vector: random_vector(random), number: random.random_range(0..1000) }
    }

    fn put(&self, index: &mut Index, id: usize) {
        let blob = blob(self.vector);
        let tag = format!("g{}", self.number % 10);
        let mut values = vec![(2, Value::Number(f64::from(self.number))), (3, Value::Text(tag.as_bytes()))];
        values.push((4, Value::Text(b"hello")));
        // A document without vectors is never near.
        if self.number % 50 != 7 {
            values.extend([(0, Value::Vector(&blob)), (1, Value::Text(&blob))]);
        }
        index.put(&Document::new(format!("d{id}").as_bytes(), values)).expect("every value fits its field");
    }
}

fn parse(text: &str, params: &[(&str, &[u8])], schema: &Schema) -> Result<Query, QueryError> {
    let options = ParseOptions { dialect: Dialect::Two, params, ..ParseOptions::default() };
    Query::parse(text.as_bytes(), schema, &options)
}

/// Ids with their first distances; sorted by that of KNN if the options name no order.
fn ask(index: &Index, text: &str, params: &[(&str, &[u8])], options: &SearchOptions<'_>) -> Vec<(String, f64)> {
    let query = parse(text, params, index.schema()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let nearest = query.nearest_name().filter(|_| options.sort_by.is_none());
    let nearest = nearest.map(|name| DistanceOrder { name, ascending: true });
    let options = SearchOptions { sort_by_distance: options.sort_by_distance.or(nearest), ..*options };
    let answer = index.search(&query, &options).expect("a small window");
    let hits = answer.hits.into_iter().map(|hit| {
        let distance = hit.distances.first().map_or(f64::NAN, |(_, distance)| *distance);
        (String::from_utf8_lossy(&hit.id).into_owned(), distance)
    });
    hits.collect()
}

/// The nearest documents that pass a filter, compared one by one.
fn nearest(docs: &[Option<Doc>], query: [f32; DIMENSIONS], filter: &dyn Fn(u32) -> bool) -> Vec<(String, f64)> {
    let near = docs.iter().enumerate().filter_map(|(id, doc)| {
        let doc = doc.as_ref().filter(|doc| doc.number % 50 != 7 && filter(doc.number))?;
        let distance: f32 = doc.vector.iter().zip(query).map(|(one, other)| (one - other) * (one - other)).sum();
        Some((format!("d{id}"), f64::from(distance)))
    });
    let mut near: Vec<_> = near.collect();
    near.sort_by(|one, other| one.1.total_cmp(&other.1));
    near
}

fn ids(answer: &[(String, f64)]) -> Vec<&str> {
    answer.iter().map(|(id, _)| id.as_str()).collect()
}

type Filter = (&'static str, fn(u32) -> bool);

const FILTERS: &[Filter] = &[
    ("*", |_| true),
    ("(@n:[0 500])", |number| number <= 500),
    ("(@n:[10 30])", |number| (10..=30).contains(&number)),
    ("(@g:{g3} | @n:[0 20])", |number| number % 10 == 3 || number <= 20),
    ("(hello -@g:{g1})", |number| number % 10 != 1),
    ("(@n:[7 7])", |_| false),
    ("(absent)", |_| false),
];

#[test]
fn filtered_answers_are_those_of_a_scan_while_documents_change() {
    let mut random = SmallRng::seed_from_u64(5);
    let mut index = Index::new(schema());
    let mut docs: Vec<Option<Doc>> = (0..2000).map(|_| Some(Doc::random(&mut random))).collect();
    docs.iter().enumerate().for_each(|(id, doc)| doc.iter().for_each(|doc| doc.put(&mut index, id)));
    let (mut hits, mut expected_hits) = (0, 0);
    for round in 0..12 {
        for _ in 0..100 {
            let id = random.random_range(0..docs.len());
            docs[id] = if random.random_ratio(1, 3) { None } else { Some(Doc::random(&mut random)) };
            match &docs[id] {
                Some(doc) => doc.put(&mut index, id),
                None => {
                    index.remove(format!("d{id}").as_bytes());
                }
            }
            if round % 3 == 1 {
                index.compact(50);
            }
        }
        for (filter, passes) in FILTERS {
            let query = random_vector(&mut random);
            let (all, blob) = (nearest(&docs, query, passes), blob(query));
            let expected = &all[..all.len().min(10)];
            let options = SearchOptions::default();
            let params: &[(&str, &[u8])] = &[("v", &blob), ("k", b"10")];
            let policies: &[&str] = if *filter == "*" {
                &[""]
            } else {
                &["", "HYBRID_POLICY ADHOC_BF", "HYBRID_POLICY BATCHES", "HYBRID_POLICY BATCHES BATCH_SIZE 7"]
            };
            for policy in policies {
                let found = ask(&index, &format!("{filter}=>[KNN $k @flat $v {policy}]"), params, &options);
                assert_eq!(ids(&found), ids(expected), "{filter} {policy}");
                assert!(found.iter().zip(expected).all(|(one, other)| (one.1 - other.1).abs() < 1e-5));
                let found = ask(
                    &index,
                    &format!("{filter}=>[KNN 10 @graph $v {policy}]=>{{$yield_distance_as: d}}"),
                    params,
                    &options,
                );
                assert_eq!(found.len(), expected.len(), "{filter} {policy}");
                assert!(found.is_sorted_by(|one, other| one.1 <= other.1));
                assert!(found.iter().all(|(id, _)| all.iter().any(|(known, _)| known == id)), "{filter} {policy}");
                hits += found.iter().filter(|(id, _)| ids(expected).contains(&id.as_str())).count();
                expected_hits += expected.len();
            }
            check_ranges(&index, filter, params, &all);
        }
    }
    assert!(hits * 100 >= expected_hits * 95, "{hits} of {expected_hits}");
    while index.compact(1000) {}
    let (before, live) = (index.memory().vectors, docs.iter().flatten().count());
    assert!(before > 0 && before < live * 1000, "{before} for {live}");
    for id in 0..docs.len() {
        index.remove(format!("d{id}").as_bytes());
    }
    let mut steps = 0;
    while index.compact(100) {
        steps += 1;
    }
    assert!(steps > live / 2, "{steps} steps of bounded work");
    assert!(index.memory().vectors < before / 2, "{} of {before}", index.memory().vectors);
}

/// The documents within a radius are those of `all` that are near enough.
fn check_ranges(index: &Index, filter: &str, params: &[(&str, &[u8])], all: &[(String, f64)]) {
    for radius in [0.0, 0.8, 1.5] {
        let text = format!("@flat:[VECTOR_RANGE {radius} $v]=>{{$yield_distance_as: d}}");
        let text = if filter == "*" { text } else { format!("{text} {filter}") };
        let sort_by_distance = Some(DistanceOrder { name: "d", ascending: true });
        let options = SearchOptions { limit: 3000, sort_by_distance, ..SearchOptions::default() };
        let within: Vec<_> = all.iter().filter(|(_, distance)| *distance <= radius).cloned().collect();
        assert_eq!(ids(&ask(index, &text, params, &options)), ids(&within), "{text}");
    }
}

fn small() -> Index {
    let mut index = Index::new(schema());
    for (id, number) in [("a", 3), ("b", 1), ("c", 2)] {
        let vector = [number as f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let numbers: Vec<f64> = vector.iter().map(|number| f64::from(*number)).collect();
        let values = vec![
            (0, Value::Vector(&[0; 32])),
            (1, Value::Numbers(numbers)),
            (2, Value::Number(f64::from(10 - number))),
            (4, Value::Text(b"hello")),
        ];
        index.put(&Document::new(id.as_bytes(), values)).expect("every value fits its field");
    }
    index
}

const ZERO: &[(&str, &[u8])] = &[("v", &[0; 32])];

#[test]
fn distances_are_given_and_sorted_by() {
    let index = small();
    let text = "*=>[KNN 3 @graph $v]";
    let query = parse(text, ZERO, index.schema()).expect("valid");
    assert_eq!(query.distance_names(), ["__graph_score"]);
    let by_number = Some(SortBy { field: 2, ascending: true, load: None });
    let far = Some(DistanceOrder { name: "__graph_score", ascending: false });
    let check = |options: SearchOptions<'_>, expected: &[(&str, f64)]| {
        let found = ask(&index, text, ZERO, &options);
        assert!(found.iter().map(|(id, distance)| (id.as_str(), *distance)).eq(expected.iter().copied()), "{found:?}");
    };
    check(SearchOptions::default(), &[("b", 1.0), ("c", 4.0), ("a", 9.0)]);
    check(SearchOptions { sort_by: by_number, ..SearchOptions::default() }, &[("a", 9.0), ("c", 4.0), ("b", 1.0)]);
    check(SearchOptions { sort_by_distance: far, ..SearchOptions::default() }, &[("a", 9.0), ("c", 4.0), ("b", 1.0)]);
    check(SearchOptions { offset: 1, limit: 1, ..SearchOptions::default() }, &[("c", 4.0)]);
    let two = ask(&index, "hello=>[KNN 2 @graph $v]", ZERO, &SearchOptions::default());
    assert_eq!(ids(&two), ["b", "c"]);
    // Without SORTBY the order is that of scores, as in RediSearch 2.10.5.
    let score = |text: &str| {
        let query = parse(text, ZERO, index.schema()).expect("valid");
        let answer = index.search(&query, &SearchOptions::default()).expect("a small window");
        answer.hits.iter().map(|hit| (String::from_utf8_lossy(&hit.id).into_owned(), hit.score)).collect::<Vec<_>>()
    };
    let scored = |score: f64, ids: [&str; 3]| ids.map(|id| (id.to_owned(), score)).to_vec();
    assert_eq!(score("*=>[KNN 3 @graph $v]"), scored(0.0, ["a", "b", "c"]));
    assert_eq!(score("@graph:[VECTOR_RANGE 100 $v]"), scored(0.0, ["a", "b", "c"]));
    assert_eq!(score("hello=>[KNN 3 @graph $v]"), score("hello"));
    let query = parse("(@graph:[VECTOR_RANGE 4 $v]=>{$yield_distance_as: d})=>[KNN 1 @flat $v]", ZERO, index.schema());
    let answer = index.search(&query.expect("valid"), &SearchOptions::default()).expect("a small window");
    assert_eq!(answer.hits[0].distances.len(), 2, "{:?}", answer.hits);
    // A filter that is added later is part of what the nearest are looked for in.
    let query = parse("*=>[KNN 1 @graph $v AS d]", ZERO, index.schema()).expect("valid");
    let query = query.and(parse("@n:[7 7]", &[], index.schema()).expect("valid")).with_ids([b"a".to_vec()]);
    let answer = index.search(&query, &SearchOptions::default()).expect("a small window");
    assert_eq!(
        (answer.total, &*answer.hits[0].id, answer.hits[0].distances[0].clone()),
        (1, &b"a"[..], ("d".to_owned(), 9.0))
    );
}

#[test]
fn ranges_are_parts_of_queries() {
    let index = small();
    let range = "@graph:[VECTOR_RANGE 4 $v]=>{$yield_distance_as: d; $epsilon: 0.5}";
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(ids(&ask(&index, text, ZERO, &SearchOptions::default())), expected, "{text}");
    };
    check(range, &["b", "c"]);
    check(&format!("-{range}"), &["a"]);
    check(&format!("({range}) | @n:[7 7]"), &["a", "b", "c"]);
    check(&format!("{range} @n:[9 9]"), &["b"]);
    check("@n:[VECTOR_RANGE 5 $v]", &[]);
    check("*=>[KNN 5 @absent $v]", &[]);
    check("@t:hello=>[KNN 1 @graph $v]=>{$weight: 2}", &["b"]);
    check(
        "@flat:[VECTOR_RANGE 0 $v]=>{$yield_distance_as: one} @graph:[VECTOR_RANGE 1 $v]=>{$yield_distance_as: two}",
        &["b"],
    );
    check("(@graph:[VECTOR_RANGE 4 $v])=>[KNN 1 @flat $v]", &["b"]);
    let query = parse(range, ZERO, index.schema()).expect("valid");
    let rows = |steps: &[Step]| {
        let load = ["d".to_owned(), "n".to_owned()];
        let aggregation = Aggregation { steps, load: &load, ..Aggregation::default() };
        index.aggregate(&query, &SearchOptions::default(), &aggregation).expect("no expression").read(10)
    };
    let expected = |values: [(f64, f64); 2]| values.map(|(d, n)| vec![Some(Datum::Number(d)), Some(Datum::Number(n))]);
    assert_eq!(rows(&[]), expected([(1.0, 9.0), (4.0, 8.0)]));
    assert_eq!(
        rows(&[Step::Sort { by: vec![("d".to_owned(), false)], max: None }]),
        expected([(4.0, 8.0), (1.0, 9.0)])
    );
}

#[test]
fn trees_of_vector_queries_are_printed() {
    let index = small();
    let check = |text: &str, expected: &str| {
        let query = parse(text, ZERO, index.schema()).expect("valid");
        assert_eq!(query.explain(index.schema()), expected, "{text}");
    };
    check(
        "*=>[KNN 10 @graph $v]",
        "VECTOR {K=10 nearest vectors to `$v` in vector index associated with field @graph, yields distance as `__graph_score`}\n",
    );
    check(
        "(@n:[1 2])=>[KNN 10 @flat $v AS d]",
        "VECTOR {\n  NUMERIC {1.000000 <= @n <= 2.000000}\n} => {K=10 nearest vectors to `$v` in vector index associated with field @flat, yields distance as `d`}\n",
    );
    check(
        "*=>[KNN 10 @graph $v EF_RUNTIME 100]",
        "VECTOR {K=10 nearest vectors to `$v` in vector index associated with field @graph, EF_RUNTIME = 100, yields distance as `__graph_score`}\n",
    );
    check(
        "@graph:[VECTOR_RANGE 0.5 $v]=>{$epsilon: 1.2; $yield_distance_as: d}",
        "VECTOR {Vectors that are within 0.5 distance radius from `$v` in vector index associated with field @graph, epsilon = 1.2, yields distance as `d`}\n",
    );
    check(
        "@flat:[VECTOR_RANGE 0.5 $v]",
        "VECTOR {Vectors that are within 0.5 distance radius from `$v` in vector index associated with field @flat}\n",
    );
}

const PARAMS: &[(&str, &[u8])] =
    &[("v", &[0; 32]), ("short", b"abc"), ("no", b"five"), ("minus", b"-5"), ("huge", b"99999999999999999999")];

/// The text is refused by an error that begins so.
fn refuse(text: &str, expected: &str) {
    match parse(text, PARAMS, &schema()) {
        Ok(query) => panic!("{text}: {}", query.explain(&schema())),
        Err(error) => assert!(error.to_string().starts_with(expected), "{text}: {error}"),
    }
}

#[test]
fn wrong_vector_queries_are_refused() {
    let check = refuse;
    check(
        "*=>[KNN 5 @flat $short]",
        "Error parsing vector similarity query: query vector blob size (3) does not match index's expected size (32).",
    );
    check("@flat:[VECTOR_RANGE 5 $short]", "Error parsing vector similarity query: query vector blob size (3) does");
    check(
        "@flat:[VECTOR_RANGE -5 $v]",
        "Error parsing vector similarity query: negative radius (-5) given in a range query",
    );
    check("*=>[KNN $huge @flat $v]", "Invalid numeric value (99999999999999999999) for parameter `huge`");
    check(
        "*=>[KNN 5 @flat $v AS d]=>{$yield_distance_as: e}",
        "Distance field was specified twice for vector query: d and e",
    );
    check("*=>[KNN 5 @flat $v]=>{$foo: 2}", "Invalid attribute foo");
    check("*=>[KNN $no @flat $v]", "Invalid numeric value (five) for parameter `no`");
    check("*=>[KNN $minus @flat $v]", "Invalid numeric value (-5) for parameter `minus`");
    check("*=>[KNN 5 @flat $absent]", "No such parameter `absent`");
    check("*=>[KNN $absent @flat $v]", "No such parameter `absent`");
    check("*=>[KNN 5 @flat $v AS $absent]", "No such parameter `absent`");
    check("@flat:[VECTOR_RANGE $absent $v]", "No such parameter `absent`");
    check("*=>[FARTHEST 5 @flat $v]", "Syntax error: Expecting Vector Similarity command at offset 4 near FARTHEST");
    check("*=>[KNN 5 @flat $v AS n]", "Property `n` already exists in schema");
    check(
        "@flat:[VECTOR_RANGE 1 $v]=>{$yield_distance_as: d} @graph:[VECTOR_RANGE 1 $v]=>{$yield_distance_as: d}",
        "Property `d` specified more than once",
    );
    for text in [
        "*=>[KNN",
        "*=>[KNN]",
        "*=>[KNN @flat $v]",
        "*=>[KNN -5 @flat $v]",
        "*=>[KNN 5 flat $v]",
        "*=>[KNN 5 @flat v]",
        "*=>[KNN 5 @flat $v",
        "*=>[KNN 5 @flat $v] hello",
        "*=>[KNN 5 @flat $v]=>[KNN 5 @flat $v]",
        "=>[KNN 5 @flat $v]",
        "(*=>[KNN 5 @flat $v])",
        "hello *=>[KNN 5 @flat $v]",
        "*=>[KNN 5 @flat $v AS d EF_RUNTIME 5]",
        "*=>[KNN 1.5 @flat $v]",
        "hello|world=>[KNN 5 @flat $v]=>{",
        "@flat:[VECTOR_RANGE 5]",
        "@flat:[VECTOR_RANGE 5 $v",
    ] {
        check(text, "Syntax error");
    }
    let (schema, old) = (schema(), ParseOptions { params: PARAMS, ..ParseOptions::default() });
    assert!(matches!(Query::parse(b"*=>[KNN 5 @flat $v]", &schema, &old), Err(QueryError::Syntax { .. })));
    assert!(matches!(Query::parse(b"@flat:[VECTOR_RANGE 5 $v]", &schema, &old), Err(QueryError::Syntax { .. })));
}

#[test]
fn wrong_parameters_of_vector_queries_are_refused() {
    let parameters = |text: &str, expected: &str| {
        refuse(text, &format!("Error parsing vector similarity parameters: {expected}"));
    };
    parameters("*=>[KNN 5 @graph $v EF_FUNTIME 10]", "Invalid option");
    parameters("*=>[KNN 5 @flat $v EF_RUNTIME 10]", "Invalid option");
    parameters("@flat:[VECTOR_RANGE 1 $v]=>{$epsilon: 0.5}", "Invalid option");
    parameters("*=>[KNN 5 @graph $v EF_RUNTIME -42]", "Invalid value was given");
    parameters("*=>[KNN 5 @graph $v EF_RUNTIME 2.5]", "Invalid value was given");
    parameters("@graph:[VECTOR_RANGE 1 $v]=>{$epsilon: -1}", "Invalid value was given");
    parameters("*=>[KNN 5 @graph $v EF_RUNTIME 5 EF_RUNTIME 6]", "Parameter was specified twice");
    parameters("*=>[KNN 5 @graph $v EF_RUNTIME 5]=>{$ef_runtime: 6}", "Parameter was specified twice");
    parameters("*=>[KNN 5 @graph $v EPSILON 0.5]", "range query attributes were sent for a non-range query");
    parameters("*=>[KNN 5 @graph $v BATCH_SIZE 5]", "hybrid query attributes were sent for a non-hybrid query");
    parameters("@graph:[VECTOR_RANGE 1 $v]=>{$batch_size: 1}", "hybrid query attributes were sent");
    parameters("@n:[0 1]=>[KNN 5 @graph $v HYBRID_POLICY FAST]", "invalid hybrid policy was given");
    parameters("@n:[0 1]=>[KNN 5 @graph $v HYBRID_POLICY ADHOC_BF BATCH_SIZE 5]", "'batch size' is irrelevant");
    parameters("@n:[0 1]=>[KNN 5 @graph $v HYBRID_POLICY ADHOC_BF EF_RUNTIME 5]", "'EF_RUNTIME' is irrelevant");
}

#[test]
fn hostile_numbers_cost_no_more_than_the_index() {
    let index = small();
    let options = SearchOptions { limit: 1000, ..SearchOptions::default() };
    for k in ["0", "2147483648", "288230376151711745", "99999999999999999999"] {
        for field in ["flat", "graph"] {
            let expected = if k == "0" { 0 } else { 3 };
            let ef = if field == "flat" { "" } else { "EF_RUNTIME 18446744073709551615" };
            for filter in ["*", "hello", "@n:[0 100]"] {
                let found = ask(&index, &format!("{filter}=>[KNN {k} @{field} $v {ef}]"), ZERO, &options);
                assert_eq!(found.len(), expected, "{filter} {k} {field}");
            }
        }
    }
    for radius in ["1e300", "inf"] {
        assert_eq!(ask(&index, &format!("@graph:[VECTOR_RANGE {radius} $v]"), ZERO, &options).len(), 3);
    }
}

#[test]
fn vectors_of_another_size_are_refused() {
    let mut index = small();
    for (value, given) in [
        (Value::Vector(&[0; 31]), 31),
        (Value::Text(b""), 0),
        (Value::Text(&[0; 33]), 33),
        (Value::Numbers(vec![1.0; 7]), 28),
        (Value::Numbers(vec![1.0; 1_000_000]), 0),
        (Value::Number(1.0), 4),
        (Value::Texts(vec![b"a"]), 0),
    ] {
        let error = index.put(&Document::new(b"a", vec![(0, value)])).expect_err("another size");
        let expected = Expected::Vector { given, expected: 32 };
        assert_eq!(
            (error.expected.clone(), error.to_string()),
            (expected, format!("Could not add vector with blob size {given} (expected size 32)"))
        );
        assert!(!index.contains(b"a"));
    }
    let wrong = index.put(&Document::new(b"a", vec![(2, Value::Vector(&[0; 32]))]));
    assert_eq!(
        wrong,
        Err(DocumentError { field: "n".to_owned(), value: "32 bytes".to_owned(), expected: Expected::Number })
    );
    let options = VectorOptions { dimensions: 0, ..vector(Algorithm::FLAT) };
    let refused = Schema::new([Field::new("v", FieldKind::Vector(options))]).map(|_| ());
    assert!(matches!(refused, Err(SchemaError::Vector(_))));
}

#[test]
fn a_vector_query_ends_when_the_caller_says_so() {
    let mut random = SmallRng::seed_from_u64(6);
    let mut index = Index::new(schema());
    (0..1000).for_each(|id| Doc::random(&mut random).put(&mut index, id));
    for text in
        ["*=>[KNN 500 @flat $v]", "*=>[KNN 500 @graph $v]", "hello=>[KNN 500 @graph $v]", "@graph:[VECTOR_RANGE 9 $v]"]
    {
        let query = parse(text, ZERO, index.schema()).expect("valid");
        let options = SearchOptions { is_over: Some(&|| true), ..SearchOptions::default() };
        assert!(index.search(&query, &options).expect("a small window").is_partial, "{text}");
    }
}

/// The scores are those of RediSearch 2.10.5: a vector in front of or behind a text changes the norm of TFIDF.
#[test]
fn vectors_count_in_the_norm_of_scores() {
    let (kind, blob) = (FieldKind::Vector(vector(Algorithm::FLAT)), blob([1.0; DIMENSIONS]));
    let (vector, text) = (Value::Vector(&blob), Value::Text(b"apple apple"));
    for (vector_at, both) in [(0, 0.5), (1, 1.0 / 3.0)] {
        let mut fields = vec![Field::new("t", FieldKind::TEXT), Field::new("n", FieldKind::Numeric)];
        fields.insert(vector_at, Field::new("v", kind.clone()));
        let mut index = Index::new(Schema::new(fields).expect("the names differ"));
        let text_at = 1 - vector_at;
        let number = (2, Value::Number(1.0));
        let mut values = vec![(text_at, text.clone())];
        values.insert(vector_at, (vector_at, vector.clone()));
        for (id, values) in
            [("both", values), ("vector", vec![(vector_at, vector.clone())]), ("text", vec![(text_at, text.clone())])]
        {
            let values = values.into_iter().chain([number.clone()]).collect();
            index.put(&Document::new(id.as_bytes(), values)).expect("every value fits its field");
        }
        let query = parse("@n:[0 5]", &[], index.schema()).expect("a query");
        let answer = index.search(&query, &SearchOptions::default()).expect("a small window");
        let score = |id: &str| answer.hits.iter().find(|hit| *hit.id == *id.as_bytes()).map(|hit| hit.score);
        let scores = ["both", "text", "vector"].map(score);
        assert_eq!(scores, [Some(both), Some(0.5), Some(1.0)], "{vector_at}");
    }
}
