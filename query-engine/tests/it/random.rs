//! Random documents and queries, and the engine held against the model while documents change.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use query_engine::{
    Dialect, Document, Field, FieldKind, Index, ParseOptions, Query as Parsed, Schema, Scorer, SearchOptions, Value,
};

use crate::model::{Doc, Model, Query, STOPS, TAGS, TEXTS, WORDS, dismax};

pub(crate) fn schema() -> Schema {
    let text = |(name, weight): &(&str, u32)| Field {
        index_missing: true,
        ..Field::new(*name, FieldKind::Text { weight: f64::from(*weight), stem: true, phonetic: false })
    };
    let others =
        [Field::new("g", FieldKind::TAG), Field::new("n", FieldKind::Numeric), Field::new("p", FieldKind::Geo)];
    Schema::new(TEXTS.iter().map(text).chain(others)).expect("the names differ")
}

/// Words that never stand at one place: what is near of words that do depends on RediSearch's way of looking.
const APART: &[&str] = &["running", "walk", "house", "hello", "helped", "world", "cats", "car", "x1"];

pub(crate) fn word(random: &mut SmallRng) -> &'static str {
    WORDS.choose(random).expect("there are words").0
}

pub(crate) fn doc(random: &mut SmallRng, ids: u32) -> Doc {
    let mut text = |most: usize| {
        let words: Vec<&str> = (0..random.random_range(1..=most))
            .map(|_| {
                if random.random_ratio(1, 8) {
                    STOPS.choose(random).copied().expect("there are some")
                } else {
                    word(random)
                }
            })
            .collect();
        random.random_ratio(3, 4).then(|| words.join(if random.random() { " " } else { ", " }))
    };
    let texts = [text(12), text(5)];
    let tags = random.random_ratio(3, 4).then(|| TAGS.choose_multiple(random, 2).copied().collect());
    let number = random.random_ratio(3, 4).then(|| f64::from(random.random_range(-10..10)) / 2.0);
    let place =
        random.random_ratio(3, 4).then(|| (random.random_range(-179.0..179.0), random.random_range(-84.0..84.0)));
    Doc { id: format!("d{}", random.random_range(0..ids)), texts, tags, number, place }
}

/// A query of at most so many levels.
pub(crate) fn query(random: &mut SmallRng, depth: u32) -> Query {
    if depth == 0 {
        return if random.random_ratio(3, 5) { text(random, 0) } else { other_leaf(random) };
    }
    let parts = |random: &mut SmallRng| {
        let mut parts: Vec<Query> = (0..random.random_range(2..4)).map(|_| query(random, depth - 1)).collect();
        // An intersection takes what follows into itself, with its weight and slop, as in RediSearch.
        if matches!(parts[0], Query::Near(..) | Query::Weight(..)) {
            parts[0] = Query::Word(word(random).to_owned());
        }
        parts
    };
    match random.random_range(0..9) {
        0 | 1 => Query::And(parts(random)),
        2 | 3 => Query::Or(parts(random)),
        4 => Query::Not(Box::new(query(random, depth - 1))),
        5 => Query::Optional(Box::new(query(random, depth - 1))),
        6 => Query::Fields(random.random_range(1..4), Box::new(text(random, depth - 1))),
        7 => Query::Weight(f64::from(random.random_range(1..5)), Box::new(Query::And(parts(random)))),
        _ => query(random, 0),
    }
}

/// A text or group behind `@field:`.
fn text(random: &mut SmallRng, depth: u32) -> Query {
    let words = |random: &mut SmallRng| (0..random.random_range(2..4)).map(|_| word(random).to_owned()).collect();
    if depth > 0 {
        let mut parts: Vec<Query> = (0..random.random_range(2..4)).map(|_| text(random, depth - 1)).collect();
        if matches!(parts[0], Query::Near(..)) {
            parts[0] = Query::Word(word(random).to_owned());
        }
        return match random.random_range(0..4) {
            0 => Query::And(parts),
            1 => Query::Or(parts),
            2 => Query::Not(Box::new(text(random, depth - 1))),
            _ => text(random, 0),
        };
    }
    let word = word(random).to_owned();
    let (cut, end) = (random.random_range(0..=word.len() - 2), random.random_range(2..=word.len()));
    match random.random_range(0..14) {
        0 => Query::Exact(words(random)),
        1 => {
            let apart = APART.choose_multiple(random, 3).map(|word| (*word).to_owned()).collect();
            Query::Near(apart, random.random_range(0..6), random.random())
        }
        2 => Query::Prefix(word[..end].to_owned()),
        3 => Query::Suffix(word[cut..].to_owned()),
        4 => Query::Infix(word[cut.min(end - 2)..end].to_owned()),
        5 => Query::Fuzzy(word, random.random_range(1..3)),
        6 => Query::Wildcard(format!("{}?*", &word[..1])),
        _ => Query::Word(word),
    }
}

fn other_leaf(random: &mut SmallRng) -> Query {
    match random.random_range(0..4) {
        0 => Query::Tags(TAGS.choose_multiple(random, 2).map(|tag| (*tag).to_owned()).collect()),
        1 => {
            let (min, max) =
                (f64::from(random.random_range(-10..10)) / 2.0, f64::from(random.random_range(-10..10)) / 2.0);
            Query::Number(min.min(max), min.max(max), random.random(), random.random())
        }
        2 => Query::Place(
            random.random_range(-180.0..180.0),
            random.random_range(-85.0..85.0),
            random.random_range(1.0..9000.0),
        ),
        _ => Query::Missing(random.random_range(0..2)),
    }
}

/// Puts a document of the model into the engine.
pub(crate) fn put(index: &mut Index, doc: &Doc) {
    let tags = doc.tags.as_ref().map(|tags| tags.join(","));
    let place = doc.place.map(|(longitude, latitude)| format!("{longitude},{latitude}"));
    let mut values = Vec::new();
    for (field, text) in doc.texts.iter().enumerate() {
        values.extend(text.as_ref().map(|text| (field, Value::Text(text.as_bytes()))));
    }
    values.extend(tags.as_ref().map(|tags| (2, Value::Text(tags.as_bytes()))));
    values.extend(doc.number.map(|number| (3, Value::Number(number))));
    values.extend(place.as_ref().map(|place| (4, Value::Text(place.as_bytes()))));
    index.put(&Document::new(doc.id.as_bytes(), values)).expect("every value fits its field");
}

/// The engine's result: ids with scores, in its order.
fn found(index: &Index, query: &Query, scorer: Scorer) -> Vec<(String, f64)> {
    let options = ParseOptions { dialect: Dialect::Two, ..ParseOptions::default() };
    let text = query.text();
    let parsed =
        Parsed::parse(text.as_bytes(), index.schema(), &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let options = SearchOptions { limit: 10_000, scorer, ..SearchOptions::default() };
    let answer = index.search(&parsed, &options).expect("a small window");
    assert_eq!(answer.total, answer.hits.len() as u64, "{text}");
    answer.hits.iter().map(|hit| (String::from_utf8_lossy(&hit.id).into_owned(), hit.score)).collect()
}

fn check_documents(index: &Index, model: &Model, query: &Query) {
    let mut ids: Vec<String> = found(index, query, Scorer::DocScore).into_iter().map(|(id, _)| id).collect();
    let mut expected: Vec<String> = model.matching(query).into_iter().map(|(doc, _)| doc.id.clone()).collect();
    // Equal scores: both have the documents in the order of their putting in.
    assert_eq!(ids, expected, "{}", query.text());
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
}

fn check_scores(index: &Index, model: &Model, query: &Query) {
    for scorer in [Scorer::Bm25Std, Scorer::DisMax] {
        let scores = found(index, query, scorer);
        assert!(scores.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{scorer:?} sorts: {}", query.text());
        for (doc, matched) in model.matching(query) {
            let expected = if scorer == Scorer::DisMax { dismax(&matched) } else { model.bm25std(doc, &matched) };
            let (_, score) = scores.iter().find(|(id, _)| *id == doc.id).expect("documents are checked before");
            let is_near = (score - expected).abs() <= 1e-5 * expected.abs().max(1.0);
            assert!(
                is_near,
                "{scorer:?} gives {score} instead of {expected} for {doc:?} in {}: {matched:?}",
                query.text()
            );
        }
    }
}

fn differ(seed: u64, changes: u32, queries: u32) {
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut index, mut model) = (Index::new(schema()), Model::default());
    for change in 0..changes {
        let new = doc(&mut random, 60);
        if random.random_ratio(1, 4) {
            assert_eq!(index.remove(new.id.as_bytes()), model.docs.iter().any(|doc| doc.id == new.id));
            model.remove(&new.id);
        } else {
            put(&mut index, &new);
            model.put(new);
        }
        // Queries meet every stage of a compaction.
        if random.random_ratio(1, 3) {
            index.compact(20);
        }
        for _ in 0..queries {
            check_documents(&index, &model, &query(&mut random, 2));
        }
        if change % 20 == 19 {
            while index.uncompacted() > 0 || index.compact(1000) {
                index.compact(1000);
            }
            for _ in 0..queries * 10 {
                let (depth, query_random) = (random.random_range(0..3), &mut random);
                let asked = query(query_random, depth);
                check_documents(&index, &model, &asked);
                check_scores(&index, &model, &asked);
            }
        }
    }
}

#[test]
fn answers_are_those_of_a_scan() {
    for seed in 0..6 {
        differ(seed, 100, 8);
    }
}

/// `QUERY_SEEDS=1000` runs so many instead.
#[test]
fn answers_are_those_of_a_scan_with_more_seeds() {
    let seeds = std::env::var("QUERY_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(0);
    for seed in 0..seeds {
        differ(seed + 1_000_000, 100, 8);
    }
}
