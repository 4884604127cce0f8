//! A slow, plain definition of what queries mean, over documents and queries that the tests make up. It shares no code with
//! the engine: words have stems by a table, trees are written as text and read by the engine alone.

use std::collections::BTreeSet;

/// Words of the made-up documents, with their stems.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("running", "run"),
    ("runs", "run"),
    ("run", "run"),
    ("walked", "walk"),
    ("walking", "walk"),
    ("walk", "walk"),
    ("houses", "hous"),
    ("house", "hous"),
    ("hello", "hello"),
    ("help", "help"),
    ("helped", "help"),
    ("world", "world"),
    ("cat", "cat"),
    ("cats", "cat"),
    ("car", "car"),
    ("cart", "cart"),
    ("x1", "x1"),
    ("y22", "y22"),
    ("foo_bar", "foo_bar"),
];
/// Stop words that documents and queries have, too.
pub(crate) const STOPS: &[&str] = &["the", "of", "and"];
pub(crate) const TAGS: &[&str] = &["red", "green", "light blue", "dark blue", "black"];
/// TEXT fields, with their weights.
pub(crate) const TEXTS: &[(&str, u32)] = &[("t", 1), ("u", 3)];

/// A document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doc {
    pub(crate) id: String,
    /// By TEXT field; `None` is missing.
    pub(crate) texts: [Option<String>; 2],
    pub(crate) tags: Option<Vec<&'static str>>,
    pub(crate) number: Option<f64>,
    /// Longitude and latitude.
    pub(crate) place: Option<(f64, f64)>,
}

impl Doc {
    /// Words that count, with field, in order over both fields.
    pub(crate) fn words(&self) -> Vec<(usize, &str)> {
        let texts = self.texts.iter().enumerate().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        let words = texts.flat_map(|(field, text)| text.split([' ', ',']).map(move |word| (field, word)));
        words.filter(|(_, word)| !word.is_empty() && !STOPS.contains(word)).collect()
    }

    pub(crate) fn length(&self) -> u32 {
        self.words().iter().map(|(field, _)| TEXTS[*field].1).sum()
    }

    /// The terms of a query that match a word of this document: the word itself, and its stem marked by `+`.
    fn terms(&self) -> BTreeSet<String> {
        let words = self.words();
        let stems = words.iter().filter_map(|(_, word)| indexed_stem(word));
        words.iter().map(|(_, word)| (*word).to_owned()).chain(stems).collect()
    }

    /// How often a term counts in the fields, or `None`.
    fn frequency(&self, term: &str, fields: u8) -> Option<u32> {
        let (mut count, mut mask) = (0, 0);
        for (field, word) in self.words() {
            let weight = TEXTS[field].1;
            let times = if word == term {
                weight
            } else if indexed_stem(word).as_deref() == Some(term) {
                (weight / 5).max(1)
            } else {
                continue;
            };
            count += times;
            mask |= 1 << field;
        }
        (mask & fields != 0).then_some(count)
    }
}

pub(crate) fn stem(word: &str) -> &str {
    WORDS.iter().find(|(known, _)| *known == word).map_or(word, |(_, stem)| stem)
}

fn indexed_stem(word: &str) -> Option<String> {
    let stem = stem(word);
    (stem != word && word.len() >= 4).then(|| format!("+{stem}"))
}

/// A query.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    Word(String),
    Exact(Vec<String>),
    Prefix(String),
    Suffix(String),
    Infix(String),
    Wildcard(String),
    Fuzzy(String, usize),
    And(Vec<Self>),
    Or(Vec<Self>),
    Near(Vec<String>, u32, bool),
    Not(Box<Self>),
    Optional(Box<Self>),
    /// The mask of TEXT fields, and text.
    Fields(u8, Box<Self>),
    Weight(f64, Box<Self>),
    Tags(Vec<String>),
    Number(f64, f64, bool, bool),
    Place(f64, f64, f64),
    Missing(usize),
}

impl Query {
    /// Whether it or a part of it is like this.
    pub(crate) fn has(&self, test: &dyn Fn(&Self) -> bool) -> bool {
        let below = match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().any(|part| part.has(test)),
            Self::Not(part) | Self::Optional(part) | Self::Fields(_, part) | Self::Weight(_, part) => part.has(test),
            _ => false,
        };
        below || test(self)
    }

    /// In dialect 2.
    pub(crate) fn text(&self) -> String {
        let join = |parts: &[Self], with: &str| parts.iter().map(Self::text).collect::<Vec<_>>().join(with);
        match self {
            Self::Word(word) => word.clone(),
            Self::Exact(words) => format!("\"{}\"", words.join(" ")),
            Self::Prefix(text) => format!("{text}*"),
            Self::Suffix(text) => format!("*{text}"),
            Self::Infix(text) => format!("*{text}*"),
            Self::Wildcard(pattern) => format!("w'{pattern}'"),
            Self::Fuzzy(word, distance) => format!("{0}{word}{0}", "%".repeat(*distance)),
            Self::And(parts) => format!("({})", join(parts, ") (")),
            Self::Or(parts) => format!("(({}))", join(parts, ")|(")),
            Self::Near(words, slop, in_order) => {
                format!("(({})=>{{$slop:{slop};$inorder:{in_order}}})", words.join(" "))
            }
            Self::Not(part) => format!("-({})", part.text()),
            Self::Optional(part) => format!("~({})", part.text()),
            Self::Fields(mask, part) => {
                let names: Vec<_> = (0..2).filter(|bit| mask >> bit & 1 == 1).map(|bit: usize| TEXTS[bit].0).collect();
                format!("@{}:({})", names.join("|"), part.text())
            }
            Self::Weight(weight, part) => format!("(({})=>{{$weight:{weight}}})", part.text()),
            Self::Tags(tags) => format!("@g:{{{}}}", tags.join("|")),
            Self::Number(min, max, opens, closes) => {
                let mark = |is| if is { "(" } else { "" };
                format!("@n:[{}{min} {}{max}]", mark(*opens), mark(*closes))
            }
            Self::Place(longitude, latitude, radius) => format!("@p:[{longitude} {latitude} {radius} km]"),
            Self::Missing(field) => format!("ismissing(@{})", TEXTS[*field].0),
        }
    }
}

/// How a document matches.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    weight: f64,
    frequency: u32,
    kind: MatchKind,
    /// Where its words stand.
    positions: Vec<u32>,
}

#[derive(Clone, Debug)]
enum MatchKind {
    Term(String),
    All(Vec<Match>),
    Any(Vec<Match>),
    Number,
    Virtual,
}

impl Match {
    fn leaf(kind: MatchKind, frequency: u32) -> Self {
        Self { weight: 1.0, frequency, kind, positions: Vec::new() }
    }

    fn group(kind: fn(Vec<Self>) -> MatchKind, parts: Vec<Self>) -> Self {
        let mut positions: Vec<u32> = parts.iter().flat_map(|part| part.positions.clone()).collect();
        positions.sort_unstable();
        let frequency = parts.iter().map(|part| part.frequency).sum();
        Self { weight: 1.0, frequency, kind: kind(parts), positions }
    }
}

/// All documents, in the order in which they were put in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) docs: Vec<Doc>,
}

impl Model {
    pub(crate) fn put(&mut self, doc: Doc) {
        self.remove(&doc.id);
        self.docs.push(doc);
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.docs.retain(|doc| doc.id != id);
    }

    /// Documents that match, in their order.
    pub(crate) fn matching(&self, query: &Query) -> Vec<(&Doc, Match)> {
        let matching = self.docs.iter().filter_map(|doc| Some((doc, self.matches(doc, query, 3, true)?)));
        matching.collect()
    }

    /// `expand`: words stand for their stems, too.
    fn matches(&self, doc: &Doc, query: &Query, fields: u8, expand: bool) -> Option<Match> {
        let term = |term: &str| self.term(doc, term, fields);
        let any_term = |fits: &dyn Fn(&str) -> bool| {
            let found = doc.terms().into_iter().filter(|word| fits(word)).find_map(|word| term(&word));
            found.map(|found| Match::group(MatchKind::Any, vec![found]))
        };
        let each = |parts: &[Query]| -> Vec<Option<Match>> {
            parts.iter().map(|part| self.matches(doc, part, fields, expand)).collect()
        };
        match query {
            Query::Word(word) if expand => any(expansions(word).iter().map(|word| term(word)).collect()),
            Query::Word(word) => term(word),
            Query::Exact(words) => near(words.iter().map(|word| term(word)).collect(), 0, true),
            Query::Near(words, slop, in_order) => {
                let words = words.iter().map(|word| self.matches(doc, &Query::Word(word.clone()), fields, expand));
                near(words.collect(), *slop, *in_order)
            }
            Query::Prefix(text) => any_term(&|word| word.starts_with(text)),
            Query::Suffix(text) => any_term(&|word| word.ends_with(text)),
            Query::Infix(text) => any_term(&|word| word.contains(text)),
            Query::Wildcard(pattern) => any_term(&|word| wildcard(pattern.as_bytes(), word.as_bytes())),
            Query::Fuzzy(text, distance) => any_term(&|word| levenshtein(word, text) <= *distance),
            Query::And(parts) => all(each(parts)),
            Query::Or(parts) => any(each(parts)),
            Query::Not(part) => match self.matches(doc, part, fields, false) {
                Some(_) => None,
                None => Some(Match::leaf(MatchKind::Virtual, 0)),
            },
            Query::Optional(part) => {
                let missed = Match { weight: 0.0, ..Match::leaf(MatchKind::Virtual, 1) };
                Some(self.matches(doc, part, fields, false).map_or(missed, |found| Match { weight: 1.0, ..found }))
            }
            Query::Fields(mask, part) => self.matches(doc, part, fields & mask, expand),
            Query::Weight(weight, part) => Some(Match { weight: *weight, ..self.matches(doc, part, fields, expand)? }),
            Query::Tags(tags) => {
                let given = doc.tags.as_ref()?;
                let one = |tag: &String| {
                    given.contains(&tag.as_str()).then(|| Match::leaf(MatchKind::Term(format!("tag {tag}")), 1))
                };
                any(tags.iter().map(one).collect())
            }
            Query::Number(min, max, opens, closes) => {
                let number = doc.number?;
                let inside =
                    (number > *min || number == *min && !opens) && (number < *max || number == *max && !closes);
                inside.then(|| Match::leaf(MatchKind::Number, 1))
            }
            Query::Place(longitude, latitude, radius) => {
                let inside = kilometres(doc.place?, (*longitude, *latitude)) <= *radius;
                inside.then(|| Match::leaf(MatchKind::Number, 1))
            }
            Query::Missing(field) => {
                doc.texts[*field].is_none().then(|| Match { weight: 0.0, ..Match::leaf(MatchKind::Virtual, 1) })
            }
        }
    }

    fn term(&self, doc: &Doc, term: &str, fields: u8) -> Option<Match> {
        let frequency = doc.frequency(term, fields)?;
        let words = doc.words();
        let stands = |word: &str| word == term || indexed_stem(word).as_deref() == Some(term);
        let positions = words.iter().enumerate().filter(|(_, (_, word))| stands(word)).map(|(at, _)| at as u32 + 1);
        let positions = positions.collect();
        Some(Match { positions, ..Match::leaf(MatchKind::Term(term.to_owned()), frequency) })
    }

    /// BM25STD as RediSearch 2.10 has it.
    pub(crate) fn bm25std(&self, doc: &Doc, found: &Match) -> f64 {
        let average = self.docs.iter().map(|doc| f64::from(doc.length())).sum::<f64>() / self.docs.len() as f64;
        let one = |idf: f64, f: f64| idf * f * 2.2 / (f + 1.2 * (0.5 + 0.5 * f64::from(doc.length()) / average));
        match &found.kind {
            MatchKind::Term(term) => {
                let all = self.docs.len() as f64;
                let with = self.docs.iter().filter(|doc| has(doc, term)).count() as f64;
                one((1.0 + (all - with + 0.5) / (with + 0.5)).ln(), f64::from(found.frequency))
            }
            MatchKind::All(parts) | MatchKind::Any(parts) => {
                found.weight * parts.iter().map(|part| self.bm25std(doc, part)).sum::<f64>()
            }
            MatchKind::Virtual if found.frequency > 0 && found.weight > 0.0 => one(1.0, 1.0),
            MatchKind::Number | MatchKind::Virtual => 0.0,
        }
    }
}

fn has(doc: &Doc, term: &str) -> bool {
    match term.strip_prefix("tag ") {
        Some(tag) => doc.tags.as_ref().is_some_and(|tags| tags.contains(&tag)),
        None => doc.frequency(term, 3).is_some(),
    }
}

pub(crate) fn dismax(found: &Match) -> f64 {
    let value = match &found.kind {
        MatchKind::All(parts) => parts.iter().map(dismax).sum(),
        MatchKind::Any(parts) => parts.iter().map(dismax).fold(0.0, f64::max),
        MatchKind::Term(_) | MatchKind::Number | MatchKind::Virtual => f64::from(found.frequency),
    };
    found.weight * value
}

/// The words that a word of a query stands for.
fn expansions(word: &str) -> Vec<String> {
    let stem = stem(word);
    let mut words = vec![word.to_owned(), format!("+{stem}")];
    if stem != word {
        words.push(stem.to_owned());
    }
    words
}

fn all(parts: Vec<Option<Match>>) -> Option<Match> {
    let parts: Vec<Match> = parts.into_iter().collect::<Option<_>>()?;
    if parts.len() == 1 { parts.into_iter().next() } else { Some(Match::group(MatchKind::All, parts)) }
}

fn any(parts: Vec<Option<Match>>) -> Option<Match> {
    let is_one = parts.len() == 1;
    let parts: Vec<Match> = parts.into_iter().flatten().collect();
    if is_one || parts.is_empty() { parts.into_iter().next() } else { Some(Match::group(MatchKind::Any, parts)) }
}

/// Tries every choice of one position per word.
fn near(parts: Vec<Option<Match>>, slop: u32, in_order: bool) -> Option<Match> {
    let parts: Vec<Match> = parts.into_iter().collect::<Option<_>>()?;
    let fits = parts.len() <= 1
        || choices(&parts, &mut Vec::new(), &|chosen| {
            let (low, high) = (chosen.iter().min().copied().unwrap_or(0), chosen.iter().max().copied().unwrap_or(0));
            let rises = chosen.windows(2).all(|pair| pair[0] <= pair[1]);
            let fits = |low: u32, high: u32, words: usize| {
                i64::from(high) - i64::from(low) - (words as i64 - 1) <= i64::from(slop)
            };
            // In order, no beginning may exceed the slop either; the end may come back where a word stands for two.
            let begins = (2..=chosen.len()).all(|words| fits(chosen[0], chosen[words - 1], words));
            if in_order { rises && begins } else { low != high && fits(low, high, chosen.len()) }
        });
    fits.then(|| all(parts.into_iter().map(Some).collect())).flatten()
}

fn choices(parts: &[Match], chosen: &mut Vec<u32>, fits: &dyn Fn(&[u32]) -> bool) -> bool {
    let Some((first, rest)) = parts.split_first() else { return fits(chosen) };
    first.positions.iter().any(|position| {
        chosen.push(*position);
        let found = choices(rest, chosen, fits);
        chosen.pop();
        found
    })
}

fn wildcard(pattern: &[u8], word: &[u8]) -> bool {
    match (pattern.split_first(), word.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=word.len()).any(|skip| wildcard(rest, &word[skip..])),
        (Some((b'?', rest)), Some((_, others))) => wildcard(rest, others),
        (Some((one, rest)), Some((other, others))) => one == other && wildcard(rest, others),
        _ => false,
    }
}

fn levenshtein(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (x, y) in (0..=one.len()).flat_map(|x| (0..=other.len()).map(move |y| (x, y))) {
        table[x][y] = match (x, y) {
            (x, 0) => x,
            (0, y) => y,
            (x, y) => {
                let exchange = table[x - 1][y - 1] + usize::from(one[x - 1] != other[y - 1]);
                exchange.min(table[x - 1][y] + 1).min(table[x][y - 1] + 1)
            }
        };
    }
    table[one.len()][other.len()]
}

/// By the law of cosines, unlike the engine.
fn kilometres(one: (f64, f64), other: (f64, f64)) -> f64 {
    let (a, b) = (one.1.to_radians(), other.1.to_radians());
    let cosine = a.sin() * b.sin() + a.cos() * b.cos() * (one.0 - other.0).to_radians().cos();
    6_372.797_560_856 * cosine.clamp(-1.0, 1.0).acos()
}
