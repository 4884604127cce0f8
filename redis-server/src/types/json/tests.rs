//! Documents against their text, edits against a model that is a tree.

use super::*;
use crate::types::testing::Rng;

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn text(json: &Json) -> String {
    json.root().to_text()
}

#[test]
fn texts_survive() {
    let long = "x".repeat(300);
    let same = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "127",
        "128",
        "-1",
        "-128",
        "-129",
        "32767",
        "-40000",
        "2147483648",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "1.5",
        "-0.0",
        "0.1",
        "8.95",
        "-19.5",
        "1e20",
        "1e-7",
        "0.00001",
        "1.7976931348623157e308",
        "5e-324",
        "123456.789",
        "0.1234567891234",
        "\"\"",
        "\"é😀\"",
        "\"a\\\"\\\\\\n\\u0001\"",
        "[]",
        "{}",
        "[[],{}]",
        "{\"a\":{\"b\":[1,2.5,null]}}",
    ];
    for case in same {
        assert_eq!(text(&json(case)), case);
    }
    for case in [format!("\"{long}\""), format!("[\"{long}\",1]"), format!("{{\"{long}\":[{}1]}}", "0,".repeat(500))] {
        assert_eq!(text(&json(&case)), case);
    }
    let other = [
        (" [ 1 , 2 ]\n", "[1,2]"),
        ("1.0", "1.0"),
        ("1.50", "1.5"),
        ("10E2", "1000.0"),
        ("-0", "-0.0"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("\"\\u00e9\\ud83d\\ude00\\/\"", "\"é😀/\""),
        ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"),
    ];
    for (case, expected) in other {
        assert_eq!(text(&json(case)), expected);
    }
}

#[test]
fn of_many_members_with_one_name_the_last_counts() {
    let members = |numbers: std::ops::Range<usize>, from: usize| {
        numbers.map(|n| format!("\"m{n}\":{}", n + from)).collect::<Vec<_>>().join(",")
    };
    assert_eq!(text(&json(r#"{"a":1,"b":{"c":2,"c":3},"a":[4]}"#)), r#"{"a":[4],"b":{"c":3}}"#);
    let document = json(&format!("{{{},{}}}", members(0..100, 0), members(50..150, 1000)));
    assert_eq!(text(&document), format!("{{{},{}}}", members(0..50, 0), members(50..150, 1000)));
}

#[test]
fn malformed_documents_are_refused_with_their_position() {
    let cases = [
        ("", "expected a value at byte 0 of the JSON text, found its end"),
        ("{bad}", "expected a string or '}' at byte 1 of the JSON text, found 'b'"),
        ("1 2", "expected the end of the document at byte 2 of the JSON text, found '2'"),
        ("[1,]", "expected a value at byte 3 of the JSON text, found ']'"),
        ("[1", "expected ',' or ']' at byte 2 of the JSON text, found its end"),
        ("{\"a\" 1}", "expected ':' at byte 5 of the JSON text, found '1'"),
        ("{\"a\":1,}", "expected a string at byte 7 of the JSON text, found '}'"),
        ("01", "expected the end of the document at byte 1 of the JSON text, found '1'"),
        ("1.", "expected a digit at byte 2 of the JSON text, found its end"),
        ("-", "expected a digit at byte 1 of the JSON text, found its end"),
        ("1e400", "expected a number that a double holds at byte 0 of the JSON text, found '1'"),
        ("nul", "expected true, false or null at byte 3 of the JSON text, found its end"),
        ("\"a\nb\"", "expected a character that is no control character at byte 2 of the JSON text, found byte 0x0a"),
        ("\"abc", "expected '\"' at byte 4 of the JSON text, found its end"),
        ("\"\\x\"", "expected an escape: one of \"\\/bfnrtu at byte 2 of the JSON text, found 'x'"),
        ("\"\\ud800\"", "expected the second half of a surrogate pair at byte 7 of the JSON text, found '\"'"),
        ("\"\\ud800\\u0041\"", "expected the second half of a surrogate pair at byte 9 of the JSON text, found '0'"),
        ("\"\\udc00\"", "expected the first half of a surrogate pair at byte 3 of the JSON text, found 'd'"),
    ];
    for (case, expected) in cases {
        assert_eq!(Json::parse(case.as_bytes()).map(|_| ()).unwrap_err().to_string(), expected, "{case}");
    }
    assert!(Json::parse(b"\"\xff\"").unwrap_err().to_string().starts_with("expected UTF-8 at byte 1"));
}

#[test]
fn depth_ends_at_its_limit() {
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    assert_eq!(text(&json(&nested(MAX_DEPTH))), nested(MAX_DEPTH));
    for depth in [MAX_DEPTH + 1, 10_000, 1_000_000] {
        let error = Json::parse(nested(depth).as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "the document would be deeper than 128 containers, at byte 128 of the JSON text");
    }
    // Also where it grows piece by piece.
    let mut document = json(&nested(MAX_DEPTH));
    let innermost = Path::parse(["$", &"[0]".repeat(MAX_DEPTH - 1)].concat().as_bytes()).unwrap();
    let mut edits = document.edit(&innermost).unwrap();
    assert_eq!(edits.insert(0, 0, &[json("[]")]), Err(Refused::Depth));
    assert_eq!(edits.replace(0, json("[[]]").root()), Err(Refused::Depth));
    edits.insert(0, 0, &[json("7")]).unwrap();
    edits.apply().unwrap();
    assert_eq!(text(&document), nested(MAX_DEPTH).replace("[]", "[7]"));
}

#[track_caller]
fn found(document: &Json, path: &str) -> String {
    let path = Path::parse(path.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let found: Vec<String> = document.find(&path).unwrap().map(|node| node.to_text()).collect();
    found.join(" ")
}

#[test]
fn paths_lead_to_values() {
    let document = json(
        r#"{"s":{"b":[{"c":"r","p":8.95,"i":"x","t":["a"]},{"c":"f","p":12.99},{"c":"f","p":22,"n":null}],"y":{"p":19.95}},
            "max":10,"w-x":1,"x y":2,"n":[0,1,2,3,4,5],"é":3,"a\"q":5}"#,
    );
    let cases = [
        ("$.s.b[*].c", r#""r" "f" "f""#),
        ("$..p", "8.95 12.99 22 19.95"),
        ("..p", "8.95 12.99 22 19.95"),
        ("s.y.p", "19.95"),
        ("$.n[-2]", "4"),
        ("$.n[-99]", "0"),
        ("$.n[9]", ""),
        ("$.n[1:5:2]", "1 3"),
        ("$.n[ 4 : ]", "4 5"),
        ("$.n[-2:]", "4 5"),
        ("$.n[5:1]", ""),
        ("$.n[0,0, 1]", "0 0 1"),
        ("$.n[?(@>3)]", "4 5"),
        ("$.n[?@>3]", "4 5"),
        ("$..b[?(@.i)].p", "8.95"),
        ("$..b[?(!@.i)].p", "12.99 22"),
        ("$..b[?(@.p<$.max)].c", r#""r""#),
        ("$..b[?(@.p>10 && @.c==\"f\")].p", "12.99 22"),
        ("$..b[?(@.p<10 || @.n==null)].p", "8.95 22"),
        ("$..b[?((@.p>10 && @.p<20) || @.p==22.0)].p", "12.99 22"),
        ("$..b[?('f'==@.c)].p", "12.99 22"),
        ("$..b[?(@.i!='x')].p", "12.99 22"),
        ("$..b[?(@.c=~\"^R\")].p", ""),
        ("$..b[?(@.c=~\"(?i)^R\")].p", "8.95"),
        ("$..b[?(@.t[0]=='a')].p", "8.95"),
        ("$['s']['y','b'].p", "19.95"),
        ("$.[\"w-x\"]", "1"),
        ("$.w-x", "1"),
        ("$['x y']", "2"),
        ("$.é", "3"),
        ("$[\"a\\\"q\"]", "5"),
        ("$..b..p", "8.95 12.99 22"),
        ("$.s.*.p", "19.95"),
        ("$.nothing", ""),
    ];
    for (path, expected) in cases {
        assert_eq!(found(&document, path), expected, "{path}");
    }
    assert_eq!(found(&document, "$.."[..1].trim()), text(&document));
    let nested = json(r#"{"a":{"b":{"a":{"b":1}}}}"#);
    assert_eq!(found(&nested, "$..a..b"), r#"{"a":{"b":1}} 1 1"#, "in every way");
}

#[test]
fn malformed_paths_are_refused_with_their_position() {
    let cases = [
        ("$[", "path '$[ ---->>>> ': expected a place, a slice, a name in quotes, '*' or '?' at byte 2"),
        ("", "path '$. ---->>>> ': expected a name, '*' or '[' at byte 2"),
        ("$.a.b.", "path '$.a.b. ---->>>> ': expected a name, '*' or '[' at byte 6"),
        ("$..", "path '$.. ---->>>> ': expected a name, '*' or '[' at byte 3"),
        ("$.a[1", "path '$.a[1 ---->>>> ': expected ']' at byte 5"),
        ("$.a[::0]", "path '$.a[:: ---->>>> 0]': expected a step above 0 at byte 6"),
        (
            "$.a[99999999999999999999]",
            "path '$.a[ ---->>>> 99999999999999999999]': expected an integer of 64 bits at byte 4",
        ),
        ("$.a['b]", "path '$.a[ ---->>>> 'b]': expected a string that ends with its quote at byte 4"),
        (
            "$.a[?(@ > )]",
            "path '$.a[?(@ >  ---->>>> )]': expected '@', '$', a number, a string in quotes, true, false or null at byte 10",
        ),
        ("$.a[?(1)]", "path '$.a[?(1 ---->>>> )]': expected a comparison at byte 7"),
        (
            "$.a[?(@=~'(')]",
            "path '$.a[?(@=~ ---->>>> '(')]': expected a regular expression of a bounded size in quotes at byte 9",
        ),
    ];
    for (path, expected) in cases {
        assert_eq!(Path::parse(path.as_bytes()).map(|_| ()).unwrap_err().to_string(), expected, "{path}");
    }
    for hostile in [
        ["$", &".a".repeat(10_000)].concat(),
        ["$[?(", &"(".repeat(5_000)].concat(),
        ["$[?", &"!".repeat(5_000)].concat(),
    ] {
        assert!(Path::parse(hostile.as_bytes()).is_err());
    }
}

#[test]
fn hostile_paths_end() {
    let chain = json(&["{\"a\":".repeat(MAX_DEPTH - 1), "[]".to_owned(), "}".repeat(MAX_DEPTH - 1)].concat());
    let wide = json(&format!("[{}]", vec!["[1,2,3]"; 2000].join(",")));
    let mut rng = Rng::new(5);
    let letters: String = (0..100_000).map(|_| if rng.below(2) == 0 { 'a' } else { 'b' }).collect();
    let letters = json(&format!("[\"{letters}\"]"));
    for (document, path) in [
        (&chain, ["$", &"..a".repeat(20)].concat()),
        (&chain, ["$", &"..*".repeat(100)].concat()),
        (&chain, "$..[?(@..[?(@..[?(@..[?(@==9)])])])]".to_owned()),
        (&chain, ["$", &"..[?(1==1)]".repeat(20)].concat()),
        (&wide, "$[?($..[?(@==9)])]".to_owned()),
        (&letters, "$[?(@=~'a[ab]{400}c')]".to_owned()),
    ] {
        let path = Path::parse(path.as_bytes()).unwrap();
        let ended = document.find(&path).map(|found| found.len());
        assert!(matches!(ended, Err(Refused::Work(_))), "{}: {ended:?}", path.text());
    }
    // A single `..` stays far below the limit.
    let path = Path::parse(b"$..*").unwrap();
    assert_eq!(wide.find(&path).unwrap().len(), 8000);
}

/// The deepest recursion: each filter goes down from the root, and has the next one there.
#[test]
fn filters_in_filters_take_little_of_a_stack() {
    let chain = json(&["{\"a\":".repeat(MAX_DEPTH - 1), "[1]".to_owned(), "}".repeat(MAX_DEPTH - 1)].concat());
    let nested = |step: &str, filters: usize| {
        let down = ["$", &step.repeat(MAX_DEPTH - 1)].concat();
        (0..filters).fold(down.clone(), |inner, _| [&down, "[?(((((((", &inner, ")))))))]"].concat())
    };
    for step in [".a", "[*]", "..a"] {
        let path = Path::parse(nested(step, 4).as_bytes()).unwrap();
        match chain.find(&path).map(|found| found.len()) {
            Ok(1) | Err(Refused::Work(_)) => {}
            other => panic!("{step}: {other:?}"),
        }
        let error = Path::parse(nested(step, 5).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("expected no more than 4 filters in each other"), "{error}");
    }
}

#[test]
fn equality_ignores_the_order_of_object_members() {
    let check = |one: &str, other: &str, expected: bool| {
        assert_eq!(json(one).root() == json(other).root(), expected, "{one} {other}");
    };
    check(r#"{"a":1,"b":[2,{"c":3,"d":4}]}"#, r#"{"b":[2,{"d":4,"c":3}],"a":1}"#, true);
    check("1", "1.0", false);
    check("1.50", "1.5", true);
    check("[1,2]", "[2,1]", false);
    check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false);
    check(r#"{"a":1}"#, r#"{"b":1}"#, false);
}

#[test]
fn merge_patches_of_the_rfc() {
    // RFC 7396, appendix A.
    let cases = [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, "null", "null"),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    ];
    for (target, patch, expected) in cases {
        assert_eq!(text(&merge(json(target).root(), json(patch).root()).unwrap()), expected, "{target} {patch}");
    }
}

/// A tree, which is edited as one would without packing.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Leaf(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Tree {
    fn random(rng: &mut Rng, depth: usize) -> Self {
        let len = if rng.below(8) == 0 { rng.below(300) } else { rng.below(5) };
        match rng.below(if depth == 0 { 4 } else { 7 }) {
            0 => Self::Leaf(rng.below(1 << 20).to_string()),
            1 => Self::Leaf(format!("{}.5", rng.below(1000))),
            2 => Self::Leaf(format!("\"{}\"", "s".repeat(rng.below(100)))),
            3 => Self::Leaf("null".to_owned()),
            4 | 5 => {
                let depth = if len > 5 { 0 } else { depth - 1 };
                Self::Array((0..len).map(|_| Self::random(rng, depth)).collect())
            }
            _ => {
                let depth = if len > 5 { 0 } else { depth - 1 };
                Self::Object((0..len).map(|n| (format!("k{n}"), Self::random(rng, depth))).collect())
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Array(elements) => format!("[{}]", elements.iter().map(Self::text).collect::<Vec<_>>().join(",")),
            Self::Object(members) => {
                let members = members.iter().map(|(name, value)| format!("\"{name}\":{}", value.text()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Changes every number, the arrays, or the members called `k1`, depending on `edit`.
    fn edited(&self, edit: usize) -> Self {
        let inner = |value: &Self| value.edited(edit);
        match (self, edit) {
            (Self::Leaf(text), 0) if text.parse::<f64>().is_ok() => Self::Leaf("\"number\"".to_owned()),
            (Self::Leaf(_), _) => self.clone(),
            (Self::Array(elements), 1) => {
                let mut elements: Vec<_> = elements.iter().map(inner).collect();
                let fresh = [Self::Leaf("1".to_owned()), Self::Array(Vec::new())];
                let at = elements.len().min(1);
                elements.splice(at..at, fresh);
                Self::Array(elements)
            }
            (Self::Array(elements), 2) => Self::Array(elements.iter().skip(1).take(2).map(inner).collect()),
            (Self::Array(elements), _) => Self::Array(elements.iter().map(inner).collect()),
            (Self::Object(members), 3) => {
                let left = members.iter().filter(|(name, _)| name != "k1");
                Self::Object(left.map(|(name, value)| (name.clone(), inner(value))).collect())
            }
            (Self::Object(members), 4) => {
                let all = members.iter().map(|(name, value)| (name.clone(), inner(value)));
                let is_there = members.iter().any(|(name, _)| name == "new");
                let new = (!is_there).then(|| ("new".to_owned(), Self::Leaf("7".to_owned())));
                Self::Object(all.chain(new).collect())
            }
            (Self::Object(members), _) => {
                Self::Object(members.iter().map(|(name, value)| (name.clone(), inner(value))).collect())
            }
        }
    }
}

fn edit(document: &mut Json, edit: usize) {
    // The root is one of the values that are to change.
    let mut wrapped = json(&format!("[{}]", text(document)));
    let path = Path::parse(if edit == 3 { b"$..k1" } else { b"$..*" }).unwrap();
    let mut edits = wrapped.edit(&path).unwrap();
    for index in 0..edits.len() {
        match (edits.value(index).kind(), edit) {
            (Kind::Number(_), 0) => edits.replace(index, json("\"number\"").root()).unwrap(),
            (Kind::Array(elements), 1) => {
                let at = elements.len().min(1);
                edits.insert(index, at, &[json("1"), json("[]")]).unwrap();
            }
            (Kind::Array(_), 2) => edits.keep(index, 1..3),
            (_, 3) => edits.remove(index),
            (Kind::Object(_), 4) if edits.value(index).member(b"new").is_none() => {
                edits.add_member(index, b"new", json("7").root()).unwrap();
            }
            _ => {}
        }
    }
    edits.apply().unwrap();
    let first = Path::parse(b"$[0]").unwrap();
    *document = wrapped.find(&first).unwrap().next().map(Json::copy_of).expect("the wrapping stays");
}

#[test]
fn edits_are_those_of_a_tree() {
    let mut rng = Rng::new(7);
    for round in 0..400 {
        let mut tree = Tree::random(&mut rng, 4);
        let mut document = json(&tree.text());
        for which in [rng.below(5), rng.below(5), rng.below(5)] {
            tree = tree.edited(which);
            edit(&mut document, which);
            assert_eq!(text(&document), tree.text(), "round {round}, edit {which}");
            // There is one form for each value.
            assert!(document == json(&tree.text()), "round {round}, edit {which}");
        }
    }
}

#[test]
fn few_edits_are_made_in_place_and_many_anew() {
    for count in [1, 3, 20, 300] {
        let elements: Vec<String> = (0..count).map(|n| format!("{{\"n\":{n}}}")).collect();
        let mut document = json(&format!("[{}]", elements.join(",")));
        let path = Path::parse(b"$[*].n").unwrap();
        let mut edits = document.edit(&path).unwrap();
        (0..count).for_each(|index| edits.replace(index, json("\"a longer value\"").root()).unwrap());
        edits.apply().unwrap();
        let expected = vec!["{\"n\":\"a longer value\"}"; count].join(",");
        assert_eq!(text(&document), format!("[{expected}]"));
    }
}

#[test]
fn documents_are_smaller_than_their_text() {
    let record = r#"{"id":4711,"name":"Ada Lovelace","email":"ada@example.org","active":true,"balance":1042.55,"tags":["a","b"]}"#;
    let document = json(record);
    let bytes = document.memory() - size_of::<Json>();
    assert!(bytes < record.len() * 7 / 8, "{bytes} of {}", record.len());
}
