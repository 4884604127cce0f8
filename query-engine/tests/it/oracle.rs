//! Random queries to the engine and to a genuine RediSearch 2.10, whose totals, order and scores must be the same.
//!
//! `REDISEARCH_SOCKET` names the Unix socket of a server that may be flushed; `QUERY_ORACLE=20000` asks so many queries.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use query_engine::{
    Dialect, Document, Expander, Field, FieldKind, Index, Language, Marks, ParseOptions, Query as Parsed, Schema,
    Scorer, SearchOptions, Summary, Value, summarize,
};

use crate::model::{Doc, Query};
use crate::random::{doc, put, query, schema, word};
use crate::resp::{Client, Reply};

/// The tests empty the server.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

const SCORERS: &[(Scorer, &str)] = &[
    (Scorer::Tfidf, "TFIDF"),
    (Scorer::TfidfDocNorm, "TFIDF.DOCNORM"),
    (Scorer::Bm25, "BM25"),
    (Scorer::Bm25Std, "BM25STD"),
    (Scorer::DisMax, "DISMAX"),
];

const CREATE: &str = "FT.CREATE idx SCHEMA t TEXT INDEXMISSING u TEXT WEIGHT 3 INDEXMISSING g TAG n NUMERIC p GEO";

fn hset(client: &mut Client, doc: &Doc) {
    let mut words = vec!["HSET".to_owned(), doc.id.clone()];
    let mut add =
        |name: &str, value: Option<String>| words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    add("t", doc.texts[0].clone());
    add("u", doc.texts[1].clone());
    add("g", doc.tags.as_ref().map(|tags| tags.join(",")));
    add("n", doc.number.map(|number| number.to_string()));
    add("p", doc.place.map(|(longitude, latitude)| format!("{longitude},{latitude}")));
    add("other", Some("x".to_owned()));
    client.call(&["DEL", &doc.id]);
    client.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Total, and ids with scores.
type Answer = (i64, Vec<(String, f64)>);

fn genuine(client: &mut Client, query: &str, scorer: &str, verbatim: bool) -> Result<Answer, String> {
    let mut words = vec![
        "FT.SEARCH",
        "idx",
        query,
        "NOCONTENT",
        "WITHSCORES",
        "SCORER",
        scorer,
        "LIMIT",
        "0",
        "1000",
        "DIALECT",
        "2",
    ];
    words.extend(verbatim.then_some("VERBATIM"));
    match client.call(&words) {
        Reply::List(mut list) if !list.is_empty() => {
            let Reply::Number(total) = list.remove(0) else { return Err("no total".to_owned()) };
            let text = |reply: &Reply| if let Reply::Text(text) = reply { text.clone() } else { String::new() };
            // A document without words has the score 0 ÷ 0 in 2.10 and 0 later.
            let score = |text: String| text.parse().unwrap_or(f64::NAN);
            let hits = list.chunks(2).map(|pair| (text(&pair[0]), score(text(&pair[1]))));
            Ok((total, hits.map(|(id, score)| (id, if score.is_nan() { 0.0 } else { score })).collect()))
        }
        other => Err(format!("{other:?}")),
    }
}

fn ours(index: &Index, query: &str, scorer: Scorer, verbatim: bool) -> Answer {
    let expander = if verbatim { Expander::Nothing } else { Expander::All };
    let options = ParseOptions { dialect: Dialect::Two, expander, ..ParseOptions::default() };
    let parsed =
        Parsed::parse(query.as_bytes(), index.schema(), &options).unwrap_or_else(|error| panic!("{query}: {error}"));
    let answer = index
        .search(&parsed, &SearchOptions { limit: 1000, scorer, ..SearchOptions::default() })
        .expect("a small window");
    let hits = answer.hits.iter().map(|hit| (String::from_utf8_lossy(&hit.id).into_owned(), hit.score));
    (answer.total as i64, hits.collect())
}

/// The parts of two answers that are compared. RediSearch 2.10 forgets parts of a union that an intersection skips to, so scores and
/// distances are compared where no union stands in an intersection. How many ranges its numeric tree has counts as distance in TFIDF and
/// BM25.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Compared {
    Nothing,
    Documents,
    Scores,
}

fn compared(query: &Query, scorer: Scorer, verbatim: bool) -> Compared {
    let is_near = |part: &Query| matches!(part, Query::Near(..));
    let is_union = |part: &Query| matches!(part, Query::Or(_) | Query::Tags(_) | Query::Optional(_));
    let is_number = |part: &Query| matches!(part, Query::Number(..) | Query::Place(..));
    let joins_unions = |part: &Query| matches!(part, Query::And(_)) && part.has(&is_union);
    if !verbatim {
        return if query.has(&is_near) { Compared::Nothing } else { Compared::Documents };
    }
    let by_distance = matches!(scorer, Scorer::Tfidf | Scorer::TfidfDocNorm | Scorer::Bm25);
    let is_another = query.has(&joins_unions) || by_distance && query.has(&is_number);
    if is_another { Compared::Documents } else { Compared::Scores }
}

/// The same documents with the same scores; documents of nearly equal scores may change places.
fn agree(one: &Answer, other: &Answer, compared: Compared) -> bool {
    let sorted = |answer: &Answer| {
        let mut hits = answer.1.clone();
        hits.sort_by(|one, other| one.0.cmp(&other.0));
        hits
    };
    let (one_hits, other_hits) = (sorted(one), sorted(other));
    let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(1.0);
    one.0 == other.0
        && one_hits.len() == other_hits.len()
        && one_hits
            .iter()
            .zip(&other_hits)
            .all(|(one, other)| one.0 == other.0 && (compared == Compared::Documents || near(one.1, other.1)))
}

#[test]
fn answers_are_those_of_redisearch() {
    let Ok(path) = std::env::var("REDISEARCH_SOCKET") else {
        println!("skipped: REDISEARCH_SOCKET names no server with RediSearch");
        return;
    };
    let mut client = Client::connect(&path).expect("REDISEARCH_SOCKET is a server's socket");
    let queries: u32 = std::env::var("QUERY_ORACLE").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    let mut random =
        SmallRng::seed_from_u64(std::env::var("QUERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7));
    let _alone = ALONE.lock().expect("the other test has not failed");
    let (mut wrong, mut asked, mut scored, mut refused) = (Vec::new(), 0, 0, 0);
    for _ in 0..queries.div_ceil(200) {
        client.call(&["FLUSHALL"]);
        client.call(&CREATE.split(' ').collect::<Vec<_>>());
        let mut index = Index::new(schema());
        for number in 0..60 {
            let new = Doc { id: format!("d{number}"), ..doc(&mut random, 1) };
            hset(&mut client, &new);
            put(&mut index, &new);
        }
        for _ in 0..200 {
            let depth = random.random_range(0..3);
            let asked_query: Query = query(&mut random, depth);
            let text = asked_query.text();
            let (scorer, name) = SCORERS[random.random_range(0..SCORERS.len())];
            let verbatim = random.random();
            let compared = compared(&asked_query, scorer, verbatim);
            if compared == Compared::Nothing {
                continue;
            }
            asked += 1;
            scored += u32::from(compared == Compared::Scores);
            let expected = genuine(&mut client, &text, name, verbatim);
            let answer = ours(&index, &text, scorer, verbatim);
            match expected {
                Ok(expected) if agree(&expected, &answer, compared) => {}
                Ok(expected) => {
                    wrong.push(format!("{name} {verbatim} {text}\n genuine {expected:?}\n ours    {answer:?}"))
                }
                // Its grammar refuses a union whose words come before a tag, range or circle.
                Err(error) if error.contains("Syntax error") => refused += 1,
                Err(error) => wrong.push(format!("{name} {text}\n genuine {error}")),
            }
        }
    }
    println!(
        "{asked} queries, {scored} with scores, {refused} refused by the genuine server, {} differences",
        wrong.len()
    );
    assert!(refused * 4 < asked, "{refused} of {asked} queries compare nothing");
    wrong.sort_by_key(String::len);
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Texts of many words, cut and marked by both.
#[test]
fn summaries_are_those_of_redisearch() {
    let Ok(path) = std::env::var("REDISEARCH_SOCKET") else {
        println!("skipped: REDISEARCH_SOCKET names no server with RediSearch");
        return;
    };
    let mut client = Client::connect(&path).expect("REDISEARCH_SOCKET is a server's socket");
    let mut random = SmallRng::seed_from_u64(11);
    let _alone = ALONE.lock().expect("the other test has not failed");
    client.call(&["FLUSHALL"]);
    client.call(&["FT.CREATE", "summaries", "PREFIX", "1", "s:", "SCHEMA", "t", "TEXT"]);
    let mut index = Index::new(Schema::new([Field::new("t", FieldKind::TEXT)]).expect("one field"));
    let mut texts = std::collections::HashMap::new();
    for number in 0..60 {
        let id = format!("s:{number}");
        let filler = |random: &mut SmallRng| if random.random_ratio(1, 4) { word(random) } else { "filler" };
        let words: Vec<&str> = (0..random.random_range(1..80)).map(|_| filler(&mut random)).collect();
        let text = words.join(if random.random() { " " } else { ",  " });
        client.call(&["HSET", &id, "t", &text]);
        index.put(&Document::new(id.as_bytes(), vec![(0, Value::Text(text.as_bytes()))])).expect("text");
        texts.insert(id, text);
    }
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for _ in 0..100 {
        let query = format!("{} | {}", word(&mut random), word(&mut random));
        let (fragments, length) = (random.random_range(1..5), random.random_range(1..30));
        let (count, words) = (fragments.to_string(), length.to_string());
        let asked = [
            "FT.SEARCH",
            "summaries",
            &query,
            "VERBATIM",
            "LIMIT",
            "0",
            "100",
            "SUMMARIZE",
            "FRAGS",
            &count,
            "LEN",
            &words,
            "HIGHLIGHT",
        ];
        let Reply::List(reply) = client.call(&asked) else { panic!("{query}") };
        let parse = ParseOptions { expander: Expander::Nothing, ..ParseOptions::default() };
        let parsed = Parsed::parse(query.as_bytes(), index.schema(), &parse).expect("two words");
        let options = SearchOptions { limit: 100, with_words: true, ..SearchOptions::default() };
        let answer = index.search(&parsed, &options).expect("a small window");
        let (stop_words, punctuation) = (&index.schema().stop_words, index.schema().punctuation);
        let summary = Summary { fragments, words: length, separator: b"... ", stop_words, keeps_unfound: false };
        for pair in reply[1..].chunks(2) {
            let (Reply::Text(id), Reply::List(fields)) = (&pair[0], &pair[1]) else { panic!("{pair:?}") };
            let hit = answer.hits.iter().find(|hit| *hit.id == *id.as_bytes()).expect("both find it");
            let marks =
                Marks { words: &hit.words, language: Language::English, punctuation, open: b"<b>", close: b"</b>" };
            let cut = summarize(texts[id].as_bytes(), &marks, &summary);
            compared += 1;
            if fields[1] != Reply::Text(String::from_utf8_lossy(&cut).into_owned()) {
                wrong.push(format!(
                    "{query} {count} {words} {}\n genuine {:?}\n ours    {}",
                    texts[id],
                    fields[1],
                    String::from_utf8_lossy(&cut)
                ));
            }
        }
    }
    println!("{compared} summaries, {} differences", wrong.len());
    assert!(compared > 500);
    wrong.sort_by_key(String::len);
    wrong.truncate(10);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
