//! A small library: search, sort and aggregate.

use std::error::Error;

use query_engine::{
    Aggregation, Datum, Dialect, Document, Expression, Field, FieldKind, Index, ParseOptions, Query, Reducer,
    ReducerKind, Schema, Scorer, SearchOptions, SortBy, Step, Value,
};

const TITLE: usize = 0;
const TAGS: usize = 1;
const YEAR: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::new([
        Field::new("title", FieldKind::TEXT).sortable(),
        Field::new("tags", FieldKind::TAG),
        Field::new("year", FieldKind::Numeric).sortable(),
    ])?;
    let mut index = Index::new(schema);
    for (id, title, tags, year) in [
        ("book:1", "The running river", "nature,fiction", 1950.0),
        ("book:2", "A history of rivers", "nature,history", 1999.0),
        ("book:3", "How to run a marathon", "sport", 2010.0),
    ] {
        let values = vec![
            (TITLE, Value::Text(title.as_bytes())),
            (TAGS, Value::Text(tags.as_bytes())),
            (YEAR, Value::Number(year)),
        ];
        index.put(&Document::new(id.as_bytes(), values))?;
    }
    search(&index)?;
    aggregate(&index)
}

fn search(index: &Index) -> Result<(), Box<dyn Error>> {
    let parse = ParseOptions { dialect: Dialect::Two, ..ParseOptions::default() };
    for text in ["run", "@tags:{nature} river", "(run | history) -@year:[2000 +inf]", "%marathn%"] {
        let query = Query::parse(text.as_bytes(), index.schema(), &parse)?;
        let answer = index.search(&query, &SearchOptions { scorer: Scorer::Bm25Std, ..SearchOptions::default() })?;
        let hits: Vec<_> =
            answer.hits.iter().map(|hit| format!("{} {:.2}", String::from_utf8_lossy(&hit.id), hit.score)).collect();
        println!("{text}: {}", hits.join(", "));
    }
    let all = Query::parse(b"*", index.schema(), &parse)?;
    let sort_by = Some(SortBy { field: YEAR, ascending: false, load: None });
    let newest = index.search(&all, &SearchOptions { sort_by, limit: 1, ..SearchOptions::default() })?;
    println!("newest of {}: {}", newest.total, String::from_utf8_lossy(&newest.hits[0].id));
    Ok(())
}

fn aggregate(index: &Index) -> Result<(), Box<dyn Error>> {
    let count = Reducer { kind: ReducerKind::Count, name: "books".to_owned() };
    let steps = [
        Step::Apply { expression: Expression::parse(b"floor(@year / 50) * 50")?, name: "period".to_owned() },
        Step::Group { by: vec!["period".to_owned()], reducers: vec![count] },
        Step::Sort { by: vec![("period".to_owned(), true)], max: None },
    ];
    let all = Query::parse(b"*", index.schema(), &ParseOptions::default())?;
    let aggregation = Aggregation { steps: &steps, ..Aggregation::default() };
    let mut rows = index.aggregate(&all, &SearchOptions::default(), &aggregation)?;
    println!("{}", rows.columns().join(" "));
    for row in rows.read(usize::MAX) {
        let values: Vec<_> = row.iter().map(|value| value.as_ref().unwrap_or(&Datum::Null).bytes()).collect();
        println!("{}", values.iter().map(|value| String::from_utf8_lossy(value)).collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
