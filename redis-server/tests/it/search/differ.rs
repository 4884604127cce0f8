//! Random documents and queries, asked of a genuine server with RediSearch 2.10.5 and of ours: the answers are the same.
//!
//! `REDISEARCH_SOCKET` names the Unix socket of the genuine server, which the test empties; without it the test is skipped. `SEARCH_QUERIES` is the
//! number of queries, `SEARCH_SEED` the first seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::net::UnixStream;

use crate::support::Random;
use crate::support::process::{Process, ask, try_ask};
use crate::support::resp::{Value, take_bare_errors};
use crate::support::until;

/// Queries without a word from outside, and those between two changes.
const QUERIES: usize = 2000;
const PER_CHANGE: usize = 8;
/// Queries until all data and the schema are others.
const ROUND: usize = 400;
const DOCUMENTS: usize = 60;
/// Differences that are printed.
const SHOWN: usize = 30;

const WORDS: &[&str] = &[
    "apple", "apples", "pear", "running", "run", "runs", "house", "houses", "quick", "quickly", "foo", "bar", "hello",
    "world", "the", "of", "x1", "2024", "naïve", "Große",
];
const TAGS: &[&str] = &["red", "green", "Blue", "dark red", "a-b", "re", "1", "x y z"];

const EXPRESSIONS: &[&str] = &[
    "@n+1",
    "@n*@m",
    "upper(@u)",
    "lower(@t)",
    "substr(@t,0,3)",
    "strlen(@u)",
    "format('%s-%s',@n,@m)",
    "exists(@m)",
    "@n>2",
    "@n==@m",
    "!exists(@n)",
    "floor(@n/2)",
    "abs(@n)",
    "sqrt(@n)",
    "log2(@n)",
    "contains(@t,'a')",
    "startswith(@t,'a')",
    "split(@g)",
    "to_number('12')",
    "to_str(@n)",
    "timefmt(@n)",
    "year(@n)",
    "@n%3",
    "@n^2",
    "geodistance(@p,'1,1')",
    "@n/0",
    "ceil(@m)",
    "exp(@n)",
    "parsetime(@t,'%F')",
];
const REDUCERS: &[&str] = &[
    "COUNT 0",
    "SUM 1 @n",
    "AVG 1 @m",
    "MIN 1 @n",
    "MAX 1 @n",
    "COUNT_DISTINCT 1 @n",
    "STDDEV 1 @n",
    "QUANTILE 2 @n 0.5",
    "FIRST_VALUE 4 @n BY @n DESC",
    "SUM 1 @u",
];

/// The server to compare with, and ours.
struct Pair {
    genuine: UnixStream,
    ours: UnixStream,
}

fn int(random: &mut Random, below: usize) -> usize {
    random.below(below)
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len())]
}

pub(super) fn maybe(random: &mut Random, percent: usize) -> bool {
    random.below(100) < percent
}

/// The schemas, of hashes and of documents.
pub(super) fn schema(random: &mut Random, json: bool) -> Vec<String> {
    let head = if json { "FT.CREATE i ON JSON PREFIX 1 d: " } else { "FT.CREATE i ON HASH PREFIX 1 d: " };
    let path = |name: &str| if json { format!("$.{name} AS {name}") } else { name.to_owned() };
    let list = |name: &str| if json { format!("$.{name}[*] AS {name}") } else { name.to_owned() };
    let mut text = head.to_owned();
    if maybe(random, 20) {
        text += "STOPWORDS 2 the foo ";
    }
    if maybe(random, 10) {
        text += pick(random, &["NOOFFSETS ", "NOFREQS ", "NOFIELDS "]);
    }
    text += "SCHEMA ";
    let suffixes = if maybe(random, 30) { " WITHSUFFIXTRIE" } else { "" };
    write!(text, "{} TEXT WEIGHT {} ", path("t"), pick(random, &["1", "2", "0.5"])).unwrap();
    write!(text, "{} TEXT {} ", path("u"), pick(random, &["NOSTEM", "", "SORTABLE"])).unwrap();
    write!(text, "{} TAG {suffixes} ", list("g")).unwrap();
    write!(text, "{} TAG CASESENSITIVE ", path("h")).unwrap();
    write!(text, "{} NUMERIC SORTABLE ", path("n")).unwrap();
    write!(text, "{} NUMERIC ", path("m")).unwrap();
    write!(text, "{} GEO ", path("p")).unwrap();
    write!(text, "{} TAG {}", path("e"), pick(random, &["INDEXEMPTY INDEXMISSING", "INDEXMISSING", ""])).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn sentence(random: &mut Random) -> String {
    let length = 1 + int(random, 6);
    let separator = [" ", " ", " ", ", ", "-", "  "];
    let mut text = String::new();
    for at in 0..length {
        if at > 0 {
            text += pick(random, &separator);
        }
        text += pick(random, WORDS);
    }
    text
}

/// A document of this number, or, if it is there already, a change of it.
pub(super) fn change(random: &mut Random, number: usize, json: bool, is_there: bool) -> Vec<String> {
    let key = format!("d:{number}");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    if is_there && maybe(random, 8) {
        return words(&["DEL", &key]);
    }
    let number = |random: &mut Random| pick(random, &["0", "1", "2", "-3", "4.5", "10", "1e3", "7", "-0.25"]);
    let tags = |random: &mut Random| (0..1 + int(random, 3)).map(|_| pick(random, TAGS)).collect::<Vec<_>>();
    let place = |random: &mut Random| {
        format!("{},{}", pick(random, &["0", "1.5", "-10", "2.25"]), pick(random, &["0", "1", "50.5"]))
    };
    if json {
        let quoted = |text: &str| format!("{text:?}");
        let mut fields = Vec::new();
        if maybe(random, 90) {
            fields.push(format!("\"t\":{}", quoted(&sentence(random))));
        }
        if maybe(random, 60) {
            fields.push(format!("\"u\":{}", quoted(&sentence(random))));
        }
        if maybe(random, 70) {
            let tags: Vec<String> = tags(random).iter().map(|tag| quoted(tag)).collect();
            fields.push(format!("\"g\":[{}]", tags.join(",")));
        }
        if maybe(random, 50) {
            fields.push(format!("\"h\":{}", quoted(pick(random, TAGS))));
        }
        for name in ["n", "m"] {
            if maybe(random, 70) {
                fields.push(format!("{name:?}:{}", number(random)));
            }
        }
        if maybe(random, 40) {
            fields.push(format!("\"p\":{}", quoted(&place(random))));
        }
        if maybe(random, 30) {
            fields.push("\"e\":\"some\"".to_owned());
        }
        return words(&["JSON.SET", &key, "$", &format!("{{{}}}", fields.join(","))]);
    }
    if is_there && maybe(random, 8) {
        return words(&["HDEL", &key, pick(random, &["t", "u", "g", "n", "e", "p"])]);
    }
    let mut set = words(&["HSET", &key]);
    if maybe(random, 90) {
        set.extend(["t".to_owned(), sentence(random)]);
    }
    if maybe(random, 60) {
        set.extend(["u".to_owned(), sentence(random)]);
    }
    if maybe(random, 70) {
        set.extend(["g".to_owned(), tags(random).join(pick(random, &[",", ", "]))]);
    }
    if maybe(random, 50) {
        set.extend(["h".to_owned(), pick(random, TAGS).to_owned()]);
    }
    for name in ["n", "m"] {
        if maybe(random, 70) {
            set.extend([name.to_owned(), number(random).to_owned()]);
        }
    }
    if maybe(random, 40) {
        set.extend(["p".to_owned(), place(random)]);
    }
    if maybe(random, 30) {
        set.extend(["e".to_owned(), pick(random, &["some", ""]).to_owned()]);
    }
    if set.len() == 2 {
        set.extend(["n".to_owned(), "1".to_owned()]);
    }
    set
}

fn word(random: &mut Random) -> &'static str {
    pick(random, WORDS)
}

/// A word that is no stop word: dialect 1 of RediSearch refuses these in quotes.
fn plain_word(random: &mut Random) -> &'static str {
    let plain: Vec<&str> = WORDS.iter().copied().filter(|word| !["the", "of", "foo"].contains(word)).collect();
    pick(random, &plain)
}

/// Words and parts of words that must all match.
fn words_node(random: &mut Random) -> String {
    let word = |random: &mut Random| match random.below(4) {
        0 => format!("{}*", plain_word(random).chars().take(3).collect::<String>()),
        _ => plain_word(random).to_owned(),
    };
    (0..1 + random.below(3)).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

/// A part of a query that texts answer.
fn text_node(random: &mut Random, depth: usize) -> String {
    let word = |random: &mut Random| word(random);
    match int(random, 16) {
        0..6 => word(random).to_owned(),
        6 => format!("{}*", &word(random).chars().take(2 + random.below(2)).collect::<String>()),
        // RediSearch folds ß in such a part to another letter than in the words.
        7 => format!("*{}", word(random).trim_end_matches("ße").chars().skip(2).collect::<String>()),
        8 => format!("*{}*", word(random).chars().skip(1).take(2).collect::<String>()),
        9 => format!("%{}%", word(random)),
        10 => format!("%%{}%%", word(random)),
        11 => format!("\"{} {}\"", plain_word(random), plain_word(random)),
        12 => format!("w'{}?*'", word(random).chars().take(2).collect::<String>()),
        13 if depth > 0 => format!("({} {})", text_node(random, depth - 1), text_node(random, depth - 1)),
        14 if depth > 0 => format!("({}|{})", text_node(random, depth - 1), text_node(random, depth - 1)),
        15 => format!("-{}", word(random)),
        _ => word(random).to_owned(),
    }
}

fn tag_node(random: &mut Random) -> String {
    let escaped = |tag: &str| tag.replace('-', "\\-").replace(' ', "\\ ");
    let one = |random: &mut Random| match random.below(5) {
        0 => format!("{}*", pick(random, &["re", "gr", "B", "da"])),
        _ => escaped(pick(random, TAGS)),
    };
    let first = one(random);
    if maybe(random, 40) { format!("{{{first}|{}}}", one(random)) } else { format!("{{{first}}}") }
}

fn number_node(random: &mut Random) -> String {
    let bound = |random: &mut Random| {
        let number = pick(random, &["0", "1", "2", "4.5", "-3", "10", "1000", "inf", "-inf", "+inf"]);
        if maybe(random, 25) { format!("({number}") } else { number.to_owned() }
    };
    format!("[{} {}]", bound(random), bound(random))
}

/// A query.
fn node(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return match int(random, 10) {
            0..4 => text_node(random, 0),
            4 => format!("@t:{}", text_node(random, 0)),
            5 => format!("@g:{}", tag_node(random)),
            6 => format!("@n:{}", number_node(random)),
            7 => format!("@h:{}", tag_node(random)),
            8 => format!(
                "@p:[{} {} {}]",
                pick(random, &["0 0", "1.5 1", "-10 50"]),
                pick(random, &["10", "200", "6000"]),
                pick(random, &["km", "m", "mi", "ft"])
            ),
            _ => format!("@m:{}", number_node(random)),
        };
    }
    let next = |random: &mut Random| node(random, depth - 1);
    match int(random, 16) {
        0..3 => format!("{} {}", next(random), next(random)),
        3..5 => format!("({}|{})", next(random), next(random)),
        5 => format!("({} {})", next(random), next(random)),
        6 => format!("-({})", next(random)),
        7 => format!("~({})", next(random)),
        8 => format!("-{}", node(random, 0)),
        9 => format!("~{}", node(random, 0)),
        10 => format!("({}) => {{$weight: {};}}", next(random), pick(random, &["2", "0.5", "10"])),
        // Which places of a word RediSearch sees for $slop depends on the way in which its iterators came to a document.
        11 => format!("({}) => {{$weight: {};}}", words_node(random), pick(random, &["3", "0.1"])),
        12 => format!("@t|u:({})", text_node(random, 1)),
        13 => format!("@u:({})", text_node(random, 2)),
        14 => "ismissing(@e)".to_owned(),
        _ => next(random),
    }
}

fn query(random: &mut Random) -> String {
    if maybe(random, 6) {
        return "*".to_owned();
    }
    let depth = int(random, 4);
    node(random, depth)
}

/// A query whose scores do not depend on how RediSearch's iterators come to a document: words that must all match.
fn plain_query(random: &mut Random) -> String {
    let part = |random: &mut Random| match random.below(5) {
        0..3 => plain_word(random).to_owned(),
        3 => format!("@t:{}", plain_word(random)),
        _ => format!("\"{} {}\"", plain_word(random), plain_word(random)),
    };
    (0..1 + random.below(2)).map(|_| part(random)).collect::<Vec<_>>().join(" ")
}

/// A command, and how its answers are compared.
pub(super) fn command(random: &mut Random, json: bool, with_scores: bool) -> (Vec<String>, Kind) {
    let dialect = pick(random, &["1", "2", "2", "3", "4"]);
    let (text, kind) = (query(random), int(random, 10));
    let mut words: Vec<String> = Vec::new();
    let mut add = |texts: &[&str]| words.extend(texts.iter().map(|text| (*text).to_owned()));
    match kind {
        0 | 1 => {
            add(&["FT.EXPLAIN", "i", &text, "DIALECT", dialect]);
            (words, Kind::Exact)
        }
        2 | 3 => {
            add(&["FT.AGGREGATE", "i", &text]);
            aggregation(random, json).iter().for_each(|word| add(&[word]));
            // Dialect 4 leaves out rows without the number that they are sorted by.
            add(&["DIALECT", if dialect == "4" { "3" } else { dialect }]);
            (words, Kind::Rows)
        }
        4 if with_scores => {
            let scorer = pick(random, &["TFIDF", "BM25", "TFIDF.DOCNORM", "DISMAX", "DOCSCORE", "BM25STD"]);
            add(&["FT.SEARCH", "i", &plain_query(random), "VERBATIM", "NOCONTENT", "WITHSCORES", "SCORER", scorer]);
            add(&["LIMIT", "0", "1000", "DIALECT", dialect]);
            (words, Kind::Documents)
        }
        _ => {
            add(&["FT.SEARCH", "i", &text]);
            options(random, json).iter().for_each(|option| add(&option.split(' ').collect::<Vec<_>>()));
            let is_sorted = words.iter().any(|word| word == "SORTBY");
            let dialect = if is_sorted && dialect == "4" { "3" } else { dialect };
            words.extend(["LIMIT", "0", "1000", "DIALECT", dialect].map(str::to_owned));
            (words, Kind::Documents)
        }
    }
}

/// Options of FT.SEARCH.
fn options(random: &mut Random, json: bool) -> Vec<&'static str> {
    const OPTIONS: &[(usize, &[&str])] = &[
        (40, &["NOCONTENT"]),
        (15, &["VERBATIM"]),
        (8, &["NOSTOPWORDS"]),
        (8, &["INKEYS 3 d:1 d:2 d:3"]),
        (8, &["INFIELDS 1 t", "INFIELDS 2 t u", "INFIELDS 1 u"]),
        (8, &["FILTER n 0 5", "FILTER n -inf (4.5"]),
        (15, &["RETURN 2 t n", "RETURN 3 n AS number", "RETURN 0", "RETURN 1 e"]),
        (30, &["SORTBY n", "SORTBY n DESC", "SORTBY m ASC", "SORTBY u", "SORTBY n WITHSORTKEYS"]),
    ];
    const MARKS: &[&str] = &["HIGHLIGHT", "HIGHLIGHT FIELDS 1 t TAGS < >", "SUMMARIZE FIELDS 1 t LEN 3", "SUMMARIZE"];
    let mut chosen = Vec::new();
    for (percent, texts) in OPTIONS {
        if maybe(random, *percent) {
            chosen.push(pick(random, texts));
        }
    }
    // A summary of a whole JSON document squeezes its spaces in RediSearch.
    if !json && maybe(random, 10) {
        chosen.push(pick(random, MARKS));
    }
    chosen
}

fn aggregation(random: &mut Random, json: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |line: &str| words.extend(line.split(' ').map(str::to_owned));
    if maybe(random, 60) {
        add(pick(random, &["LOAD 3 @n @m @u", "LOAD 2 @g @n", "LOAD *", "LOAD 4 @__key @t @n @m"]));
    }
    // The values of a path are a list from dialect 3 on, and RediSearch makes no text of a list.
    if !json && maybe(random, 30) {
        add("APPLY");
        add(pick(random, EXPRESSIONS));
        add("AS a");
    }
    if maybe(random, 15) {
        add("FILTER");
        add(pick(random, &["@n>1", "@n>=1&&@n<8", "exists(@n)", "@m==2||@n==1", "!(@n<3)"]));
    }
    if maybe(random, 50) {
        let groups = ["GROUPBY 1 @n", "GROUPBY 0", "GROUPBY 2 @n @m", "GROUPBY 1 @g", "GROUPBY 1 @h", "GROUPBY 1 @e"];
        // Lists of JSON are one group in RediSearch from dialect 3 on.
        add(pick(random, &groups[..if json { 3 } else { groups.len() }]));
        for at in 0..random.below(3) {
            add(&format!("REDUCE {} AS r{at}", pick(random, REDUCERS)));
        }
    }
    if maybe(random, 15) {
        add(pick(random, &["SORTBY 2 @n ASC", "SORTBY 4 @n DESC @m ASC", "SORTBY 1 @n"]));
        add("LIMIT 0 1000");
    }
    words
}

/// How answers are compared.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Exact,
    /// Documents in the order of scores or keys, which may be the same for some.
    Documents,
    /// Rows in any order.
    Rows,
}

/// A reply as text; numbers in the precision that is promised.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::Bulk(text) | Value::Status(text) => match String::from_utf8_lossy(text).parse::<f64>() {
            // A score without a word is no number in RediSearch, and infinite after some filters.
            Ok(number) if !number.is_finite() => "0.000000e0".to_owned(),
            Ok(number) => format!("{number:.6e}"),
            Err(_) => format!("\"{}\"", String::from_utf8_lossy(text)),
        },
        Value::Int(number) => number.to_string(),
        Value::Error(_) => "error".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A document's fields in one order: those of a hash come in the order of its table.
fn fields(value: &Value) -> String {
    let Value::Array(items) = value else { return shown(value) };
    let pairs: BTreeMap<_, _> = items.chunks(2).map(|pair| (shown(&pair[0]), pair.get(1).map(shown))).collect();
    format!("{pairs:?}")
}

/// An answer in a form that says all that is promised.
pub(super) fn normal(reply: &Value, command: &[String], kind: Kind) -> String {
    let (Value::Array(items), false) = (reply, kind == Kind::Exact) else {
        // Tags are shown as they are in the query, or as they are in the index if it has any.
        return if reply.is_error() { shown(reply) } else { reply.text().replace('\\', "").to_lowercase() };
    };
    let Some((total, rest)) = items.split_first() else { return shown(reply) };
    let has = |option: &str| command.iter().any(|word| word == option);
    let mut rows: Vec<String> = match kind {
        Kind::Rows => rest.iter().map(fields).collect(),
        _ => {
            let no_content = has("NOCONTENT") || command.windows(2).any(|pair| pair == ["RETURN", "0"]);
            let size = 1 + usize::from(has("WITHSCORES")) + usize::from(has("WITHSORTKEYS")) + usize::from(!no_content);
            rest.chunks(size).map(|row| row.iter().map(fields).collect::<Vec<_>>().join(" ")).collect()
        }
    };
    rows.sort();
    // With dialect 4, RediSearch counts as far as it needs to.
    let counts = kind == Kind::Documents && command.last().is_none_or(|dialect| dialect != "4");
    let total = if counts { shown(total) } else { String::new() };
    format!("{total}\n{}", rows.join("\n"))
}

/// Faults of RediSearch that are not imitated.
fn is_known(command: &[String], theirs: &str, ours: &str) -> bool {
    let has = |option: &str| command.iter().any(|word| word == option);
    let query = &command[2];
    // RediSearch's marks depend on how its iterators came to a document, ours on the word.
    let are_same_documents = theirs.lines().map(document).eq(ours.lines().map(document));
    let is_word = !query.contains(['@', ' ', '*', '%', '\'']);
    if (has("HIGHLIGHT") || has("SUMMARIZE")) && (!is_word || has("INFIELDS")) && are_same_documents {
        return true;
    }
    // Parts of words, stems and negations are looked for in all fields if the query names fields that INFIELDS does not.
    let leaves_out = |named: &str, field: &str| {
        command.windows(3).any(|words| words == ["INFIELDS", "1", named]) && query.contains(field)
    };
    if leaves_out("t", "@u:") || leaves_out("u", "@t:") {
        return true;
    }
    // Dialect 1 takes no phrase at the end of a union.
    if theirs == "error" && query.contains("|\"") && command.last().is_some_and(|dialect| dialect == "1") {
        return true;
    }
    let (theirs, ours): (Vec<_>, Vec<_>) = (theirs.lines().skip(1).collect(), ours.lines().skip(1).collect());
    // The number of FILTER becomes a word of a phrase that is the whole query.
    if command[0] == "FT.SEARCH" && has("FILTER") && theirs.is_empty() && is_phrase(query) {
        return true;
    }
    // Each negation misses the newest document now and then, so a negation of it has one more.
    let negations = query.matches('-').count();
    let is_part = |part: &[&str], whole: &[&str]| {
        part.iter().all(|line| whole.contains(line))
            && (1..=negations).contains(&whole.len().saturating_sub(part.len()))
    };
    if is_part(&theirs, &ours) || negations > 1 && is_part(&ours, &theirs) {
        return true;
    }
    let only = |one: &[&str], other: &[&str]| one.iter().filter(|line| !other.contains(line)).count();
    // The document that a negation misses is missed in its group.
    if has("GROUPBY") && (1..=negations).contains(&only(&theirs, &ours)) && only(&theirs, &ours) == only(&ours, &theirs)
    {
        return true;
    }
    // Two groups of two properties whose hashes collide are one.
    let groups = command.windows(2).any(|words| words == ["GROUPBY", "2"]);
    groups && ours.len() == theirs.len() + 1 && only(&theirs, &ours) <= 1 && only(&ours, &theirs) <= 2
}

/// The first column of a row: the name of a document.
fn document(row: &str) -> &str {
    row.split(' ').next().unwrap_or_default()
}

/// Returns true if a query is one phrase in quotes. Fields, parentheses and a weight may stand around the phrase.
fn is_phrase(query: &str) -> bool {
    let query = query.split(" => ").next().unwrap_or_default();
    let bare = query.trim_matches(|sign| "()".contains(sign));
    let text = bare.rsplit_once(':').map_or(bare, |(_, text)| text).trim_matches(|sign| "()".contains(sign));
    text.len() > 2 && text.starts_with('"') && text[1..].find('"') == Some(text.len() - 2)
}

/// The first lines that only one of two answers has.
pub(super) fn apart(theirs: &str, ours: &str) -> String {
    let lines = |one: &str, other: &str, of: &str| {
        let only = one.lines().filter(|line| !other.lines().any(|known| known == *line)).take(4);
        only.map(|line| format!("    {of} {line}\n")).collect::<String>()
    };
    lines(theirs, ours, "genuine") + &lines(ours, theirs, "ours   ")
}

impl Pair {
    /// Both replies; `None` if the genuine server has ended, as it does at some queries.
    fn ask(&mut self, words: &[String]) -> Option<[Value; 2]> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ours = ask(&mut self.ours, &words);
        try_ask(&mut self.genuine, &words).ok().map(|genuine| [genuine, ours])
    }

    fn both(&mut self, line: &str) -> Option<[Value; 2]> {
        self.ask(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }
}

/// The counts of a run, and how answers differ.
#[derive(Default)]
struct Report {
    queries: usize,
    errors: usize,
    differences: Vec<String>,
}

/// Asks both servers the queries of a seed; `None` if the genuine server has ended.
fn round(pair: &mut Pair, seed: usize, report: &mut Report) -> Option<()> {
    let mut random = Random::new((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let json = maybe(&mut random, 30);
    pair.both("FLUSHALL")?;
    pair.both("FT.CONFIG SET TIMEOUT 0")?;
    let schema = schema(&mut random, json);
    let [theirs, ours] = pair.ask(&schema)?;
    assert_eq!(theirs, ours, "{schema:?}");
    // RediSearch's scores count what documents have left until it is collected, so they are compared where no document has changed.
    let changes = maybe(&mut random, 50);
    for step in 0..ROUND {
        let keys = match step {
            0 => (0..DOCUMENTS).collect(),
            _ if changes && step % PER_CHANGE == 0 => vec![random.below(DOCUMENTS); 3],
            _ => Vec::new(),
        };
        for key in keys {
            let change = change(&mut random, key, json, step > 0);
            assert!(pair.ask(&change)?.iter().all(|reply| !reply.is_error()), "{change:?}");
        }
        let (command, kind) = command(&mut random, json, !changes);
        let shown = command.iter().map(|word| if word.contains(' ') { format!("{word:?}") } else { word.clone() });
        let shown = shown.collect::<Vec<_>>().join(" ");
        let Some([theirs, ours]) = pair.ask(&command) else {
            println!("seed {seed} step {step}: the genuine server ends at {shown}");
            return None;
        };
        report.queries += 1;
        report.errors += usize::from(theirs.is_error());
        let [theirs, ours] = [&theirs, &ours].map(|reply| normal(reply, &command, kind));
        if theirs != ours && !is_known(&command, &theirs, &ours) {
            let (schema, apart) = (schema.join(" "), apart(&theirs, &ours));
            report.differences.push(format!("seed {seed} step {step} [{schema}]\n  {shown}\n{apart}"));
        }
    }
    Some(())
}

#[test]
fn answers_are_those_of_the_genuine_server() {
    let Ok(path) = std::env::var("REDISEARCH_SOCKET") else {
        println!("skipped: REDISEARCH_SOCKET names no server with RediSearch");
        return;
    };
    take_bare_errors();
    let number = |name: &str, default: usize| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (queries, seed) = (number("SEARCH_QUERIES", QUERIES), number("SEARCH_SEED", 1));
    let process = Process::start("search-differ", &[]);
    let connect = || {
        let mut genuine = None;
        until("the genuine server is there", || {
            genuine = UnixStream::connect(&path).ok();
            genuine.is_some()
        });
        Pair { genuine: genuine.unwrap(), ours: process.connect() }
    };
    let (mut pair, mut report) = (connect(), Report::default());
    for seed in seed..seed + queries.div_ceil(ROUND) {
        if round(&mut pair, seed, &mut report).is_none() {
            pair = connect();
        }
        if report.differences.len() >= SHOWN {
            break;
        }
    }
    let Report { queries, errors, mut differences } = report;
    println!("{queries} queries, {errors} of them with errors, {} differences", differences.len());
    differences.truncate(SHOWN);
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}
