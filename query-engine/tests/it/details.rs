//! FT.PROFILE, checks of whole queries, and values that are shown as others than they are computed with.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use query_engine::{
    Aggregation, Datum, Dialect, Document, Expression, Field, FieldKind, Index, IteratorKind, IteratorProfile,
    ParseOptions, Profiler, Query, QueryError, Schema, SearchOptions, Step, Value,
};

fn index() -> Index {
    let mut loose = Field::new("loose", FieldKind::TEXT);
    loose.unordered = true;
    let mut full = Field::new("full", FieldKind::TEXT);
    full.index_empty = true;
    let fields = [Field::new("t", FieldKind::TEXT), loose, full, Field::new("g", FieldKind::TAG)];
    let mut index = Index::new(Schema::new(fields).expect("four fields"));
    for (id, text) in [("a", "hello world"), ("b", "hello there")] {
        let values = vec![(0, Value::Text(text.as_bytes())), (3, Value::Text(b"x"))];
        index.put(&Document::new(id.as_bytes(), values)).expect("text and a tag");
    }
    index
}

fn parse(index: &Index, text: &str, is_near: bool) -> Result<Query, QueryError> {
    let options = ParseOptions { dialect: Dialect::Two, is_near, ..ParseOptions::default() };
    Query::parse(text.as_bytes(), index.schema(), &options)
}

/// A clock that goes on by one microsecond at each look.
fn clock() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.fetch_add(1, Relaxed)
}

/// Kinds and counts of a tree, without times.
fn shown(profile: &IteratorProfile) -> String {
    let kind = match &profile.kind {
        IteratorKind::Reader { kind, term, size } => format!("{kind} {term}/{size}"),
        other => format!("{other:?}"),
    };
    let children: Vec<String> = profile.children.iter().map(shown).collect();
    format!(
        "{kind} {}{}",
        profile.count,
        if children.is_empty() { String::new() } else { format!(" [{}]", children.join(", ")) }
    )
}

#[test]
fn a_profiler_sees_iterators() {
    let index = index();
    let check = |text: &str, expected: &str| {
        let profiler = Profiler::new(clock);
        let options = SearchOptions { profiler: Some(&profiler), ..SearchOptions::default() };
        let hits = index.search(&parse(&index, text, false).expect("a query"), &options).expect("a small window");
        let root = profiler.iterators().expect("the query is over");
        assert_eq!((shown(&root).as_str(), profiler.found()), (expected, hits.total), "{text}");
        assert!(root.micros > 0, "{text}: each look at the clock is a microsecond");
    };
    check("*", "All 2");
    check("nothing", "Empty 0");
    check("hello world", "Intersection 1 [TEXT world/1 1, TEXT hello/2 1]");
    check("-world", "Not 1 [TEXT world/1 1]");
    check("~world", "Optional 2 [TEXT world/1 1]");
    check("hel*", "Union(\"PREFIX - hel\") 2 [TEXT hello/2 2]");
    check("@g:{x} hello|world", "Union(\"UNION\") 2 [Intersection 2 [TAG x/2 2, TEXT hello/2 2], TEXT world/1 1]");
}

#[test]
fn a_profiler_sees_steps() {
    let (index, profiler) = (index(), Profiler::new(clock));
    let options = SearchOptions { profiler: Some(&profiler), ..SearchOptions::default() };
    let steps = [
        Step::Apply { expression: Expression::parse(b"matched_terms()").expect("a function"), name: "m".into() },
        Step::Filter(Expression::parse(b"@__key=='a'").expect("a comparison")),
    ];
    let aggregation = Aggregation { steps: &steps, ..Aggregation::default() };
    let query = parse(&index, "hello|world", false).expect("a query");
    let mut rows = index.aggregate(&query, &options, &aggregation).expect("all properties are there");
    let counts: Vec<u64> = profiler.steps().iter().map(|step| step.rows).collect();
    assert_eq!((profiler.found(), counts), (2, vec![2, 1]));
    let terms = Datum::List([Datum::text("hello"), Datum::text("world")].into());
    let row = rows.read(1).remove(0);
    assert!(row.contains(&Some(terms)), "{:?}: {row:?}", rows.columns());
}

#[test]
fn whole_queries_are_checked() {
    let index = index();
    let check = |text: &str, is_near: bool, expected: Result<(), QueryError>| {
        assert_eq!(parse(&index, text, is_near).map(drop), expected, "{text}");
    };
    let no_order = || Err(QueryError::NoOrder("loose".into()));
    check("@t:\"\"", false, Err(QueryError::EmptyNotIndexed));
    check("@g:{\"\"}", false, Err(QueryError::EmptyNotIndexed));
    check("@full:\"\"", false, Ok(()));
    check("@t|full:\"\"", false, Ok(()));
    check("\"\"", false, Ok(()));
    check("@loose:(one two)", false, Ok(()));
    check("@loose:(one two)", true, no_order());
    check("@loose:(one two)=>{$inorder:false}", false, no_order());
    check("one two", true, no_order());
    check("@t:(one two)=>{$slop:1}", false, Ok(()));
}

#[test]
fn values_are_shown_as_others() {
    let shown = Datum::Shown(Box::new(Datum::Number(2.0)), b"[2,1]"[..].into());
    assert_eq!((shown.number(), &*shown.bytes(), shown.is_true()), (Some(2.0), &b"[2,1]"[..], true));
    assert!(shown.order(&Datum::Number(10.0)).is_lt());
}
