//! Numbers against tables, and against a genuine server.

use super::*;
use crate::protocol::oracle::{Oracle, Reply};

/// Texts at every border of what is read.
const TEXTS: &[&str] = &[
    "",
    "0",
    "-0",
    "+0",
    "1",
    "-1",
    "+5",
    "05",
    " 5",
    "5 ",
    "5.",
    ".5",
    ".",
    "-.5",
    "-",
    "+",
    "--1",
    "1.2.3",
    "1e",
    "1e+",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "e5",
    "0e5",
    "1_0",
    "1,5",
    "inf",
    "+inf",
    "-inf",
    "INF",
    "Infinity",
    "infinit",
    "infinityy",
    "nan",
    "-nan",
    "nan(1)",
    "1e308",
    "1e309",
    "-1e309",
    "1e400",
    "1e-400",
    "1e4932",
    "1.2e4932",
    "1e4933",
    "1e-4951",
    "1e-4000",
    "1e-4952",
    "1e-5000",
    "1e99999999999",
    "1e-99999999999",
    "0e99999999999",
    "4e-324",
    "2e-324",
    "1e-320",
    "0x",
    "0x10",
    "0X1F",
    "-0x1.8p1",
    "0x1p-3",
    "0x.8",
    "0x1p",
    "0xg",
    "0x1p2000",
    "0x123456789abcdef123456789abcdef123456789abcdef",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "12345678901234567890",
    "18446744073709551615",
    "18446744073709551616",
    "18446744073709551617",
    "36893488147419103231",
    "123456789012345678901234567890.5",
    "0.00000000000000001",
    "0.000000000000000005",
    "0.0000000000000000051",
    "99999999999999999",
    "100000000000000000",
    "0.1",
    "0.0001",
    "0.00001",
    "3.1415926535897931",
    "123456.789",
    "1e21",
    "1e23",
    "-1e17",
    "1.7976931348623157e308",
];

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 16
}

/// Decimal texts of many lengths and sizes.
fn random_text(state: &mut u64) -> String {
    let mut digits =
        |most| (0..=random(state) % most).map(|_| (b'0' + (random(state) % 10) as u8) as char).collect::<String>();
    let (whole, fraction, long) = (digits(12), digits(12), digits(60));
    let exponent = random(state) % 60;
    let sign = if random(state).is_multiple_of(2) { "-" } else { "" };
    match random(state) % 7 {
        0 => format!("{sign}{whole}"),
        1 => format!("{sign}{long}"),
        2 => format!("{sign}{whole}.{long}"),
        3 => format!("{sign}{whole}.{fraction}e{exponent}"),
        4 => format!("{sign}{whole}.{fraction}e-{exponent}"),
        5 => format!("{sign}{whole}e{}", exponent * 40),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

fn texts() -> Vec<String> {
    let mut state = 1;
    let random = (0..20_000).map(|_| random_text(&mut state));
    TEXTS.iter().map(|text| text.to_string()).chain(random).collect()
}

#[test]
fn integers() {
    let check = |text: &str, expected: Option<i64>| assert_eq!(parse_i64(text.as_bytes()), expected, "{text:?}");
    for value in [0, 1, -1, 9, 10, 12345, i64::MAX, i64::MIN] {
        check(&value.to_string(), Some(value));
        assert_eq!(*IntText::new(value), *value.to_string().as_bytes());
    }
    for text in ["", "-", "+1", "01", "-0", "00", " 1", "1 ", "1a", "a", "--1", "1.0", "99999999999999999999"] {
        check(text, None);
    }
    check("9223372036854775808", None);
    check("-9223372036854775809", None);
}

#[test]
fn doubles() {
    let check = |text: &str, expected: Option<&str>| {
        let text = parse_f64(text.as_bytes()).map(|value| String::from_utf8(format_f64(value).to_vec()).unwrap());
        assert_eq!(text.as_deref(), expected);
    };
    check("3.14", Some("3.1400000000000001"));
    check("-0", Some("-0"));
    check("-1.7976931348623157e308", Some("-1.7976931348623157e+308"));
    check("5e-324", Some("4.9406564584124654e-324"));
    check("0.0001", Some("0.0001"));
    check("0.00001", Some("1.0000000000000001e-05"));
    check("123456789012345678", Some("1.2345678901234568e+17"));
    check("12345678901234.5", Some("12345678901234.5"));
    check("inf", Some("inf"));
    check("nan", None);
    check("1e400", None);
}

#[test]
fn sums() {
    let check = |a: &str, b: &str, expected: &str| {
        let sum = Extended::parse(a.as_bytes()).unwrap() + Extended::parse(b.as_bytes()).unwrap();
        assert_eq!(sum.to_string(), expected);
    };
    check("10.5", "0.1", "10.6");
    check("5.0e3", "2.0e2", "5200");
    check("3", "1.1", "4.1");
    check("1", "-1", "0");
    check("-0.1", "0.1", "0");
    check("1e-30", "-2e-30", "0");
    check("1e17", "0.5", "100000000000000000.5");
}

/// Scores and sums read and print as in Redis.
#[test]
fn reads_and_prints_like_a_genuine_server() {
    let Some(mut oracle) = Oracle::start("number") else { return };
    let texts = texts();
    // A sorted set out of its compact form, which would print -0 as 0.
    let long = [b'x'; 100];
    let mut commands: Vec<Vec<&[u8]>> = vec![vec![b"ZADD", b"z", b"1", &long]];
    for text in &texts {
        commands.push(vec![b"DEL", b"h"]);
        commands.push(vec![b"ZADD", b"z", text.as_bytes(), b"m"]);
        commands.push(vec![b"ZSCORE", b"z", b"m"]);
    }
    let replies = oracle.run(&commands);
    for (text, replies) in texts.iter().zip(replies[1..].chunks_exact(3)) {
        match parse_f64(text.as_bytes()) {
            None => assert!(matches!(replies[1], Reply::Error(_)), "{text:?}"),
            // An equal score leaves the old one, so 0 may be printed as the zero that was there.
            Some(0.0) => assert!(!matches!(replies[1], Reply::Error(_)), "{text:?}"),
            Some(value) => assert_eq!(replies[2], Reply::Text(format_f64(value).to_vec()), "{text:?}"),
        }
    }
}

#[test]
fn adds_like_a_genuine_server() {
    let Some(mut oracle) = Oracle::start("extended") else { return };
    let texts = texts();
    let mut commands: Vec<Vec<&[u8]>> = Vec::new();
    for pair in texts.windows(2) {
        commands.push(vec![b"SET", b"k", pair[0].as_bytes()]);
        commands.push(vec![b"INCRBYFLOAT", b"k", pair[1].as_bytes()]);
    }
    let replies = oracle.run(&commands);
    for (pair, replies) in texts.windows(2).zip(replies.chunks_exact(2)) {
        let parse = |text: &String| Extended::parse(text.as_bytes());
        let sum = parse(&pair[0]).zip(parse(&pair[1])).map(|(a, b)| a + b).filter(|sum| sum.is_finite());
        match sum {
            Some(sum) => assert_eq!(replies[1], Reply::Text(sum.to_string().into_bytes()), "{pair:?}"),
            None => assert!(matches!(replies[1], Reply::Error(_)), "{pair:?}"),
        }
    }
}

#[test]
fn as_few_digits_as_can_be() {
    let check = |value: f64, expected: &str| {
        assert_eq!(std::str::from_utf8(&format_shortest(value)), Ok(expected));
        assert_eq!(format_shortest(-value)[1..], *expected.as_bytes(), "-{expected}");
    };
    check(0.1, "0.1");
    check(0.2, "0.2");
    check(100.5, "100.5");
    check(4_503_599_627_370_495.0, "4503599627370495");
    check(9_007_199_254_740_993.0, "9007199254740992");
    check(1e17, "100000000000000000");
    check(1e19, "1e+19");
    check(1.5e300, "1.5e+300");
    check(123_456_789.123, "123456789.123");
    check(0.000_001, "0.000001");
    check(1e-7, "1e-7");
    check(1.234_567_890_123e-5, "1.234567890123e-5");
    check(0.001_234_567_890_123, "0.001234567890123");
    check(f64::INFINITY, "inf");
    check(0.0, "0");
    check(f64::MAX, "1.7976931348623157e+308");
    check(5e-324, "5e-324");
    check(1.25e-100, "1.25e-100");
}
