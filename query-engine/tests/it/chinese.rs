//! Chinese: texts without spaces.

use query_engine::{
    Dialect, Document, Field, FieldKind, Index, Language, Marks, ParseOptions, Query, Schema, SearchOptions, StopWords,
    Summary, Value, highlight, summarize,
};

const TEXTS: [(&str, &str); 6] = [
    ("d1", "我喜欢编程"),
    ("d2", "编写程序，我们喜欢"),
    ("d3", "Redis支持主从同步。数据可以从主服务器同步"),
    ("d4", "测试 同义词 功能"),
    ("d5", "hello\\-world 那时"),
    ("d6", "我们的书"),
];

fn index() -> Index {
    let mut schema = Schema::new([Field::new("t", FieldKind::TEXT)]).expect("one field");
    schema.language = Language::Chinese;
    schema.stop_words = StopWords::new(["的", "可以"]);
    let mut index = Index::new(schema);
    index.add_synonyms("g".as_bytes(), ["同义词", "近义词"]);
    for (id, text) in TEXTS {
        index.put(&Document::new(id.as_bytes(), vec![(0, Value::Text(text.as_bytes()))])).expect("text");
    }
    index
}

fn parse(index: &Index, query: &str, dialect: Dialect) -> Query {
    Query::parse(query.as_bytes(), index.schema(), &ParseOptions { dialect, ..ParseOptions::default() }).expect("valid")
}

#[test]
fn runs_of_ideographs_are_found_inside_longer_ones() {
    let index = index();
    for dialect in [Dialect::One, Dialect::Two] {
        let check = |query: &str, expected: &str| {
            let answer = index.search(&parse(&index, query, dialect), &SearchOptions::default()).expect("a window");
            let mut ids: Vec<_> = answer.hits.iter().map(|hit| String::from_utf8_lossy(&hit.id)).collect();
            ids.sort_unstable();
            assert_eq!(ids.join(" "), expected, "{query}");
        };
        check("编程", "d1");
        check("编", "d1 d2");
        check("喜欢编程", "d1");
        check("欢喜", "");
        check("程编", "");
        check("主服务器", "d3");
        check("redis同步", "d3");
        check("同步redis", "d3");
        check("\"redis同步\"", "");
        check("\"Redis支持主从\"", "d3");
        check("\"测试 同义词 功\"", "d4");
        check("\"测试 同义词 能\"", "");
        check("\"从同步。数据\"", "d3");
        check("近义词", "d4");
        check("同义", "d4");
        check("hello\\-world", "d5");
        check("那时 -书", "d5");
        check("我们 ~书", "d2 d6");
        // Stop words do not part what stands side by side.
        check("们的书", "d6");
        check("据可以从", "d3");
        check("我们 的", "d2 d6");
        check("同义*", "d4");
        // Punctuation alone is no word.
        check("我们 。", "d2 d6");
        check("。 我们 ，", "d2 d6");
        check("\"我们 。 喜欢\"", "d2");
        check("。，", "");
        check("\"。\"", "");
    }
}

#[test]
fn words_are_explained_with_their_pairs() {
    let index = index();
    let check = |query: &str, expected: &str| {
        let lines = parse(&index, query, Dialect::Two).explain(index.schema());
        assert_eq!(lines.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{query}");
    };
    check("编", "编");
    check("编程", "编程");
    check("喜欢编", "UNION { 喜欢编 EXACT { 喜欢 欢编 } }");
    check("redis客户端", "UNION { redis客户端 INTERSECT { redis EXACT { 客户 户端 } } }");
    check("\"测试 同义词\"", "EXACT { 测试 试 同义 义词 }");
    check("redis", "redis");
}

#[test]
fn runs_are_marked_as_a_whole() {
    let index = index();
    let check = |query: &str, text: &str, marked: &str, cut: &str| {
        let options = SearchOptions { with_words: true, ..SearchOptions::default() };
        let answer = index.search(&parse(&index, query, Dialect::Two), &options).expect("a window");
        let words = &answer.hits[0].words;
        let (language, punctuation) = (Language::Chinese, index.schema().punctuation);
        let marks = Marks { words, language, punctuation, open: b"[", close: b"]" };
        assert_eq!(String::from_utf8_lossy(&highlight(text.as_bytes(), &marks)), marked, "{query}");
        let stop_words = &index.schema().stop_words;
        let summary = Summary { fragments: 1, words: 4, separator: b"...", stop_words, keeps_unfound: false };
        assert_eq!(String::from_utf8(summarize(text.as_bytes(), &marks, &summary)).as_deref(), Ok(cut), "{query}");
    };
    let text = "Redis支持主从同步。数据可以从主服务器同步";
    check("主服务器", text, "Redis支持主从同步。数据可以从[主服务器]同步", "据可以从[主服务器]同步...");
    check("同步", text, "Redis支持主从[同步]。数据可以从主服务器[同步]", "支持主从[同步]。数据可...");
    check("redis", text, "[Redis]支持主从同步。数据可以从主服务器同步", "[Redis]支持主从...");
    check("书", "一本书", "一本[书]", "一本[书]...");
}
