use super::*;
use crate::{Document, Field, FieldKind, ParseOptions, Schema, Value};

/// Sales: city, amount, tags; `note` is not in the index.
fn index() -> Index {
    let fields = [Field::new("city", FieldKind::TAG).sortable(), Field::new("amount", FieldKind::Numeric).sortable()];
    let mut index = Index::new(Schema::new(fields).expect("the names differ"));
    let sales = [
        ("s1", "Kyoto", Some(10.0)),
        ("s2", "Oslo", Some(4.0)),
        ("s3", "Kyoto", Some(20.0)),
        ("s4", "Oslo", None),
        ("s5", "Rome", Some(7.0)),
    ];
    for (id, city, amount) in sales {
        let mut values = vec![(0, Value::Text(city.as_bytes()))];
        values.extend(amount.map(|amount| (1, Value::Number(amount))));
        index.put(&Document::new(id.as_bytes(), values)).expect("valid");
    }
    index
}

fn expression(text: &str) -> Expression {
    Expression::parse(text.as_bytes()).expect("valid")
}

fn reduce(kind: ReducerKind, name: &str) -> Reducer {
    Reducer { kind, name: name.to_owned() }
}

fn shown(datum: &Option<Datum>) -> String {
    match datum {
        None => "-".to_owned(),
        Some(Datum::Null) => "null".to_owned(),
        Some(Datum::List(list)) => {
            format!("[{}]", list.iter().map(|item| shown(&Some(item.clone()))).collect::<Vec<_>>().join(" "))
        }
        Some(datum) => String::from_utf8_lossy(&datum.bytes()).into_owned(),
    }
}

fn check(steps: &[Step], load: &[&str], columns: &str, expected: &[&str]) {
    let fetch = |id: &[u8], name: &str| match name {
        "note" => Some(Datum::text([b"note of ", id].concat())),
        "list" => Some(Datum::List([Datum::text("a"), Datum::Number(f64::from(id[1]) % 2.0)].into())),
        _ => None,
    };
    let load: Vec<String> = load.iter().map(|name| (*name).to_owned()).collect();
    let aggregation = Aggregation { steps, load: &load, fetch: Some(&fetch), ..Aggregation::default() };
    let index = index();
    let query = Query::parse(b"*", index.schema(), &ParseOptions::default()).expect("valid");
    let mut rows = index.aggregate(&query, &SearchOptions::default(), &aggregation).expect("every row has a value");
    assert_eq!(rows.columns().join(" "), columns);
    let (first, rest) = (rows.read(1), rows.read(usize::MAX));
    let all: Vec<String> =
        first.iter().chain(&rest).map(|row| row.iter().map(shown).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(all, expected);
    assert_eq!(rows.left(), 0);
}

#[test]
fn rows_are_loaded_changed_and_filtered() {
    let steps = [
        Step::Apply { expression: expression("upper(@city)"), name: "shout".to_owned() },
        Step::Filter(expression("exists(@amount) && @amount > 5")),
        Step::Apply { expression: expression("@amount * 2"), name: "amount".to_owned() },
    ];
    check(
        &steps,
        &[KEY, "note"],
        "__key note city amount shout",
        &["s1 note of s1 kyoto 20 KYOTO", "s3 note of s3 kyoto 40 KYOTO", "s5 note of s5 rome 14 ROME"],
    );
}

#[test]
fn groups_are_reduced() {
    let amount = || "amount".to_owned();
    let reducers = vec![
        reduce(ReducerKind::Count, "count"),
        reduce(ReducerKind::CountDistinct(amount()), "distinct"),
        reduce(ReducerKind::Sum(amount()), "sum"),
        reduce(ReducerKind::Min(amount()), "min"),
        reduce(ReducerKind::Max(amount()), "max"),
        reduce(ReducerKind::Average(amount()), "mean"),
        reduce(ReducerKind::Deviation(amount()), "deviation"),
        reduce(ReducerKind::Quantile(amount(), 0.5), "median"),
        reduce(ReducerKind::ToList(amount()), "list"),
        reduce(ReducerKind::FirstValue { name: KEY.to_owned(), by: Some((amount(), false)) }, "best"),
        reduce(ReducerKind::FirstValue { name: KEY.to_owned(), by: None }, "first"),
        reduce(ReducerKind::RandomSample(amount(), 5), "sample"),
    ];
    let steps = [Step::Group { by: vec!["city".to_owned()], reducers }];
    let columns = "city count distinct sum min max mean deviation median list best first sample";
    check(
        &steps,
        &[],
        columns,
        &[
            "oslo 2 1 4 4 4 2 0 4 [4] s2 s2 [4 null]",
            "kyoto 2 2 30 10 20 15 7.07106781187 10 [10 20] s3 s1 [10 20]",
            "rome 1 1 7 7 7 7 0 7 [7] s5 s5 [7]",
        ],
    );
    let steps = [Step::Group { by: vec![], reducers: vec![reduce(ReducerKind::Sum("gone".to_owned()), "sum")] }];
    check(&steps, &[], "sum", &["0"]);
}

#[test]
fn lists_make_a_group_per_item() {
    let steps = [Step::Group { by: vec!["list".to_owned()], reducers: vec![reduce(ReducerKind::Count, "count")] }];
    check(&steps, &[], "list count", &["0 2", "1 3", "a 5"]);
}

#[test]
fn rows_are_sorted_and_cut() {
    let by = vec![("city".to_owned(), false), ("amount".to_owned(), true)];
    let sort = Step::Sort { by, max: None };
    check(
        std::slice::from_ref(&sort),
        &[KEY],
        "__key city amount",
        &["s5 rome 7", "s2 oslo 4", "s4 oslo -", "s1 kyoto 10", "s3 kyoto 20"],
    );
    let steps = [sort, Step::Limit { offset: 1, count: 2 }];
    check(&steps, &[KEY], "__key city amount", &["s2 oslo 4", "s4 oslo -"]);
    let steps = [Step::Sort { by: vec![("amount".to_owned(), false)], max: Some(1) }];
    check(&steps, &[KEY], "__key amount", &["s3 20"]);
}

#[test]
fn rows_end_before_one_without_a_value() {
    let index = index();
    let query = Query::parse(b"*", index.schema(), &ParseOptions::default()).expect("valid");
    let run = |steps: &[Step]| {
        let aggregation = Aggregation { steps, ..Aggregation::default() };
        let mut rows = index.aggregate(&query, &SearchOptions::default(), &aggregation)?;
        let failure = rows.failure().cloned();
        Ok((rows.read(usize::MAX).len(), failure))
    };
    let missing = AggregateError::Expression(ExpressionError::Missing("amount".to_owned()));
    let filter = Step::Filter(expression("@amount > 5"));
    let (sort, limit) =
        (Step::Sort { by: vec![("amount".to_owned(), true)], max: None }, Step::Limit { offset: 1, count: 1 });
    let group = Step::Group { by: vec![], reducers: vec![reduce(ReducerKind::Count, "count")] };
    // The fourth of five has no amount.
    assert_eq!(run(std::slice::from_ref(&filter)), Ok((2, Some(missing.clone()))));
    assert_eq!(run(&[filter.clone(), limit]), Ok((1, None)), "the fourth is never asked for");
    assert_eq!(run(&[filter.clone(), sort]), Err(missing.clone()), "the first needs all");
    assert_eq!(run(&[filter, group]), Err(missing.clone()));
    assert_eq!(run(&[Step::Filter(expression("@amount > 99"))]), Err(missing), "none comes before it");
}

/// The totals of the answer's pieces, each of one row, and all that the last step has seen.
fn check_totals(steps: &[Step], expected: &[u64], all: u64) {
    let index = index();
    let query = Query::parse(b"*", index.schema(), &ParseOptions::default()).expect("valid");
    let aggregation = Aggregation { steps, ..Aggregation::default() };
    let mut rows = index.aggregate(&query, &SearchOptions::default(), &aggregation).expect("every row has a value");
    let mut totals = vec![rows.total()];
    while !rows.read(1).is_empty() {
        totals.push(rows.total());
    }
    assert_eq!((totals.as_slice(), rows.all()), (expected, all), "{steps:?}");
}

#[test]
fn totals_are_those_of_a_lazy_pipeline() {
    let filter = |text: &str| Step::Filter(expression(text));
    let sort = Step::Sort { by: vec![("city".to_owned(), true)], max: None };
    let group = Step::Group { by: vec!["city".to_owned()], reducers: Vec::new() };
    check_totals(&[], &[1, 1, 1, 1, 1, 0], 5);
    check_totals(&[filter("@city == 'oslo'")], &[2, 2, 0], 5);
    check_totals(&[Step::Limit { offset: 2, count: 1 }], &[3, 0], 5);
    check_totals(&[Step::Limit { offset: 0, count: 0 }], &[5], 5);
    check_totals(std::slice::from_ref(&sort), &[5, 0, 0, 0, 0, 0], 5);
    check_totals(&[group, Step::Limit { offset: 0, count: 1 }], &[3, 0], 3);
}

/// Rows of two indexes with the documents of one between them are those of that one.
#[test]
fn parts_are_as_the_whole() {
    let whole = index();
    let mut parts = [index(), index()];
    for id in ["s1", "s4"] {
        parts[0].remove(id.as_bytes());
    }
    // s5 is on its way: both have it.
    for id in ["s2", "s3"] {
        parts[1].remove(id.as_bytes());
    }
    let sort = |max| Step::Sort { by: vec![("amount".to_owned(), false)], max };
    let group = Step::Group {
        by: vec!["city".to_owned()],
        reducers: vec![reduce(ReducerKind::Count, "n"), reduce(ReducerKind::Sum("amount".to_owned()), "s")],
    };
    for steps in [
        vec![sort(Some(2))],
        vec![Step::Load(Vec::new()), sort(Some(3)), Step::Limit { offset: 1, count: 2 }],
        vec![group, Step::Sort { by: vec![("city".to_owned(), true)], max: None }],
        vec![Step::Filter(expression("exists(@amount)")), sort(None)],
    ] {
        let aggregation = Aggregation { steps: &steps, ..Aggregation::default() };
        let query = Query::parse(b"*", whole.schema(), &ParseOptions::default()).expect("valid");
        let options = SearchOptions::default();
        let mut one = whole.aggregate(&query, &options, &aggregation).expect("every row has a value");
        let given = parts.iter().map(|part| part.part(&query, &options, &aggregation)).collect();
        let mut many = Part::aggregate(given, &steps, None).expect("every row has a value");
        assert_eq!(many.columns(), one.columns());
        let rows = one.read(usize::MAX);
        assert_eq!(many.read(usize::MAX), rows, "{steps:?}");
    }
    // A limit alone sends no more rows than it leaves.
    let steps = [Step::Limit { offset: 0, count: 1 }];
    let query = Query::parse(b"*", whole.schema(), &ParseOptions::default()).expect("valid");
    let part = whole.part(&query, &SearchOptions::default(), &Aggregation { steps: &steps, ..Aggregation::default() });
    assert_eq!((part.rows.len(), part.left_out), (1, 4));
    let keeps = |id: &[u8]| id == b"s3";
    let options = SearchOptions { keeps: Some(&keeps), ..SearchOptions::default() };
    assert_eq!(whole.search(&query, &options).expect("a small window").total, 1);
}

#[test]
fn documents_are_known_before_they_are_fetched() {
    let mut index = Index::new(Schema::new([Field::new("city", FieldKind::TAG)]).expect("one field"));
    for number in 0..100 {
        let id = format!("s{number:02}");
        index.put(&Document::new(id.as_bytes(), vec![(0, Value::Text(b"Kyoto"))])).expect("valid");
    }
    let (known, windows) = (std::cell::RefCell::new(Vec::new()), std::cell::Cell::new(0));
    let ahead = |ids: &[&[u8]]| {
        windows.set(windows.get() + 1);
        known.borrow_mut().extend(ids.iter().map(|id| id.to_vec()));
    };
    let fetch = |id: &[u8], _: &str| {
        assert!(known.borrow().iter().any(|known| known == id), "{}", String::from_utf8_lossy(id));
        Some(Datum::text(id))
    };
    let query = Query::parse(b"@city:{kyoto}", index.schema(), &ParseOptions::default()).expect("valid");
    let group = Step::Group { by: vec!["note".to_owned()], reducers: vec![reduce(ReducerKind::Count, "count")] };
    let load = ["note".to_owned()];
    for steps in [vec![group], vec![Step::Load(load.to_vec())]] {
        known.borrow_mut().clear();
        windows.set(0);
        let aggregation = Aggregation {
            steps: &steps,
            load: &load,
            fetch: Some(&fetch),
            ahead: Some(&ahead),
            ..Aggregation::default()
        };
        let mut rows = index.aggregate(&query, &SearchOptions::default(), &aggregation).expect("no expressions");
        assert_eq!((rows.read(usize::MAX).len(), known.borrow().len()), (100, 100));
        assert_eq!(windows.get(), 100_usize.div_ceil(WINDOW));
    }
    // A row with a score is made where the match stands, and a row of ids alone needs no document.
    windows.set(0);
    for (with_scores, load) in [(true, &load), (false, &[KEY.to_owned()])] {
        let aggregation =
            Aggregation { with_scores, load, fetch: Some(&fetch), ahead: Some(&ahead), ..Aggregation::default() };
        let mut rows = index.aggregate(&query, &SearchOptions::default(), &aggregation).expect("no expressions");
        assert_eq!((rows.read(usize::MAX).len(), windows.get()), (100, 0));
    }
}
