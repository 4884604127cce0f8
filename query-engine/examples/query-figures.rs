//! Figures of queries: the microseconds of CPU time that one takes, by one thread.
//!
//! `cargo run --release -p query-engine --example query-figures -- 1000000 term`: documents, and a part of the names of the rows that are
//! wanted. Each row ends with the documents that were found, and a sum of what was answered, which no change for speed may change.

use std::error::Error;

use query_engine::{
    Aggregation, Datum, Dialect, Document, Field, FieldKind, Index, ParseOptions, Query, Reducer, ReducerKind, Schema,
    Scorer, SearchOptions, SortBy, Step, Value,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const BODY: usize = 0;
const TAG: usize = 1;
const PRICE: usize = 2;
/// Different words; the frequency of each is inverse to its rank.
const VOCABULARY: usize = 50_000;
const PRICES: u32 = 1_000_000;
/// Queries of each row.
const QUERIES: usize = 20;

/// Queries of one kind.
struct Row {
    name: &'static str,
    scorer: Scorer,
    /// Sorted by the number, rising or falling.
    rises: Option<bool>,
    text: fn(&mut SmallRng, usize) -> String,
}

const fn row(name: &'static str, text: fn(&mut SmallRng, usize) -> String) -> Row {
    Row { name, scorer: Scorer::Bm25Std, rises: None, text }
}

const ROWS: [Row; 14] = [
    row("a term", rare),
    Row { scorer: Scorer::Tfidf, ..row("a term, TFIDF", rare) },
    row("a frequent term", |_, at| frequent(at)),
    row("two frequent terms", |random, _| two(random, "(", " ", ")")),
    Row { scorer: Scorer::Tfidf, ..row("two frequent terms, TFIDF", |random, _| two(random, "(", " ", ")")) },
    row("a phrase", |random, _| two(random, "\"", " ", "\"")),
    row("either of two terms", |random, _| two(random, "(", "|", ")")),
    row("a term without another", |random, _| two(random, "(", " -", ")")),
    row("a prefix", |random, _| format!("@body:{}*", &word(rank(random))[..3])),
    row("a tag", |_, at| format!("@tag:{{t{at}}}")),
    row("a term with a tag", |_, at| format!("{} @tag:{{t{at}}}", frequent(at))),
    row("a term with a range", |random, at| format!("{} {}", frequent(at), range(random))),
    Row { rises: Some(true), ..row("a range, sorted", |random, _| range(random)) },
    Row { rises: Some(false), ..row("a term, sorted by number", |_, at| frequent(at)) },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(100_000), |count| count.parse::<usize>())?;
    let wanted = arguments.next().unwrap_or_default();
    let index = filled(count)?;
    let mut random = SmallRng::seed_from_u64(7);
    for Row { name, scorer, rises, text } in ROWS.into_iter().filter(|row| row.name.contains(&wanted)) {
        let texts = (0..QUERIES).map(|at| text(&mut random, at));
        let queries = texts.map(|text| parsed(&index, &text)).collect::<Result<Vec<_>, _>>()?;
        let sort_by = rises.map(|ascending| SortBy { field: PRICE, ascending, load: None });
        let options = SearchOptions { scorer, sort_by, ..SearchOptions::default() };
        figure(name, || {
            let (mut total, mut sum) = (0, 0.0);
            for query in &queries {
                let hits = index.search(query, &options)?;
                total += hits.total;
                let hits = hits.hits.iter().enumerate();
                sum += hits.map(|(at, hit)| hit.score * at as f64 + hit.id.len() as f64).sum::<f64>();
            }
            Ok((total, sum))
        })?;
    }
    if "groups".contains(&wanted) {
        let texts = (0..QUERIES).map(|_| range(&mut random));
        groups(&index, &texts.map(|text| parsed(&index, &text)).collect::<Result<Vec<_>, _>>()?)?;
    }
    Ok(())
}

fn rare(_: &mut SmallRng, at: usize) -> String {
    format!("@body:{}", word(50 + 50 * at))
}

fn frequent(at: usize) -> String {
    format!("@body:{}", word(1 + at))
}

/// Two frequent words.
fn two(random: &mut SmallRng, before: &str, between: &str, behind: &str) -> String {
    let (one, other) = (random.random_range(1..6), random.random_range(6..11));
    format!("@body:{before}{}{between}{}{behind}", word(one), word(other))
}

/// A tenth of all prices.
fn range(random: &mut SmallRng) -> String {
    let from = random.random_range(0..PRICES * 9 / 10);
    format!("@price:[{from} {}]", from + PRICES / 10)
}

fn groups(index: &Index, queries: &[Query]) -> Result<(), Box<dyn Error>> {
    let reducer = |kind, name: &str| Reducer { kind, name: name.to_owned() };
    let mean = reducer(ReducerKind::Average("price".to_owned()), "mean");
    let by = vec![("count".to_owned(), false), ("tag".to_owned(), true)];
    let steps = [
        Step::Group { by: vec!["tag".to_owned()], reducers: vec![reducer(ReducerKind::Count, "count"), mean] },
        Step::Sort { by, max: Some(10) },
    ];
    let fetch = |id: &[u8], _: &str| Some(Datum::text(format!("t{}", id[id.len() - 1] % 10).as_bytes()));
    let aggregation = Aggregation { steps: &steps, fetch: Some(&fetch), ..Aggregation::default() };
    figure("groups of a tenth of all", || {
        let (mut total, mut sum) = (0, 0.0);
        for query in queries {
            let mut rows = index.aggregate(query, &SearchOptions::default(), &aggregation)?;
            total += rows.all();
            sum += rows.read(10).iter().flatten().flatten().filter_map(Datum::number).sum::<f64>();
        }
        Ok((total, sum))
    })
}

/// The word of a rank: three syllables.
fn word(rank: usize) -> String {
    let triple = (rank * 101_377) % 343_000;
    let syllable =
        |place: usize| [b"bdfghjklmnprtz"[place / 5], b"aeiou"[place % 5]].map(char::from).iter().collect::<String>();
    [triple / 4900, triple / 70, triple].map(|place| syllable(place % 70)).concat()
}

fn rank(random: &mut SmallRng) -> usize {
    ((VOCABULARY as f64 + 1.0).powf(random.random_range(0.0..1.0)) as usize).saturating_sub(1)
}

fn filled(count: usize) -> Result<Index, Box<dyn Error>> {
    let mut random = SmallRng::seed_from_u64(1);
    let mut index = Index::new(Schema::new([
        Field::new("body", FieldKind::TEXT),
        Field::new("tag", FieldKind::TAG),
        Field::new("price", FieldKind::Numeric).sortable(),
    ])?);
    let started = cpu_seconds()?;
    for number in 0..count {
        let body = (0..20).map(|_| word(rank(&mut random))).collect::<Vec<_>>().join(" ");
        let (id, tag) = (format!("doc:{number}"), format!("t{}", random.random_range(0..100)));
        let price = Value::Number(f64::from(random.random_range(0..PRICES)));
        let values = vec![(BODY, Value::Text(body.as_bytes())), (TAG, Value::Text(tag.as_bytes())), (PRICE, price)];
        index.put(&Document::new(id.as_bytes(), values))?;
    }
    let each = (cpu_seconds()? - started) * 1e6 / count as f64;
    println!("{count} documents, {each:.1} us each, {:?}", index.memory());
    Ok(index)
}

fn parsed(index: &Index, text: &str) -> Result<Query, Box<dyn Error>> {
    let options = ParseOptions { dialect: Dialect::Two, ..ParseOptions::default() };
    Ok(Query::parse(text.as_bytes(), index.schema(), &options)?)
}

/// Runs all queries of a row for a fifth of a second, three times: the fastest of these.
fn figure(name: &str, run: impl Fn() -> Result<(u64, f64), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let (mut least, mut found) = (f64::INFINITY, (0, 0.0));
    for _ in 0..3 {
        let (started, mut runs) = (cpu_seconds()?, 0);
        while cpu_seconds()? - started < 0.2 {
            found = run()?;
            runs += QUERIES;
        }
        least = least.min((cpu_seconds()? - started) * 1e6 / runs as f64);
    }
    println!("{name}: {least:.1} us, {} found, sum {:.9}", found.0 / QUERIES as u64, found.1);
    Ok(())
}

/// The CPU time of this thread: other programs on the machine do not count.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("schedstat has no time")?.parse::<f64>()? / 1e9)
}
