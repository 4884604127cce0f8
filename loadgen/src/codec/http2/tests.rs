//! Requests against answers written by hand.

use super::*;
use crate::codec::h2::tests::{bodies, data, headers, settings};
use crate::record::Window;
use crate::workload::{Distribution, Keys, Sizes, Template, Values};

fn http(requests: Vec<(HttpRequest, u32)>, sizes: Sizes, verify: bool) -> Result<Http2, String> {
    let subjects =
        Subjects { keys: Keys::new(10, Distribution::Sequential).unwrap(), values: Values::new(sizes, 0).unwrap() };
    Http2::new(requests, subjects, false, verify)
}

fn get(path: &str) -> HttpRequest {
    HttpRequest::new("GET", path).unwrap().header("Host", "a.b").unwrap()
}

/// Three requests on a connection, and the bytes that were sent.
fn started(http: &Http2) -> (Http2Connection, Vec<u8>, Tally) {
    let (mut connection, mut out, mut tally) = (http.connect(0), Vec::new(), Tally::new(2));
    tally.set_window(Window::Open { from: 0, until: 9 });
    http.control(&mut connection, &mut out);
    http.receive(&mut connection, &settings(), &mut tally).unwrap();
    let mut source = Source::new(0, 0, 1);
    for _ in 0..3 {
        http.begin(&mut connection, 1, &mut source, &mut out);
    }
    (connection, out, tally)
}

#[track_caller]
fn check(request: HttpRequest, verify: bool, answer: &[Vec<u8>], right: u64, failures: &[(Failure, &str)]) {
    let http = http(vec![(request, 1)], Sizes::Fixed(3), verify).unwrap();
    let (mut connection, _, mut tally) = started(&http);
    http.receive(&mut connection, &answer.concat(), &mut tally).unwrap();
    let list = tally.failures().list();
    let examples: Vec<_> =
        list.iter().flat_map(|count| count.examples.iter().map(|text| (count.kind, text.as_str()))).collect();
    assert_eq!((tally.latencies()[0].count(), &examples[..]), (right, failures));
}

fn answer(stream: u32, list: &[(&str, &str)], pieces: &[&str]) -> Vec<u8> {
    let mut bytes = headers(stream, list, pieces.is_empty());
    for (place, piece) in pieces.iter().enumerate() {
        bytes.extend(data(stream, piece.as_bytes(), place + 1 == pieces.len()));
    }
    bytes
}

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn statuses_and_lengths_are_told_apart() {
    let failed = answer(1, &[(":status", "404")], &["none"]);
    let short = answer(3, &[(":status", "200"), ("content-length", "3")], &["ab"]);
    check(
        get("/"),
        false,
        &[failed, short, answer(5, OK, &[])],
        1,
        &[
            (Failure::Protocol, "GET /: a content-length of 3 with 2 bytes of body"),
            (Failure::Rejected, "GET /: status 404"),
        ],
    );
    let head = HttpRequest::new("HEAD", "/").unwrap();
    check(head, false, &[answer(1, &[(":status", "200"), ("content-length", "3")], &[])], 1, &[]);
}

#[test]
fn answers_are_checked() {
    let wrong = Failure::Wrong;
    let first = answer(1, OK, &["he", "llo"]);
    let other = answer(5, OK, &["h", "e", "lp"]);
    check(
        get("/"),
        true,
        &[first.clone(), answer(3, OK, &["hello"]), other],
        2,
        &[(wrong, "GET /: expected `llo`, read `lp` at byte 2")],
    );
    check(
        get("/"),
        true,
        &[first, answer(3, OK, &["hell"]), answer(5, OK, &["hello!"])],
        1,
        &[(wrong, "GET /: a body of 4 bytes, expected 5"), (wrong, "GET /: expected `hello`, read `hello!` at byte 0")],
    );
    let by_key = get("/{key}").expecting(Template::new("<{value}>"));
    check(
        by_key,
        true,
        &[answer(3, OK, &["<1", "00>"]), answer(1, OK, &["<000>"]), answer(5, OK, &["<100>"])],
        2,
        &[(wrong, "GET /{key}: expected `<200>`, read `<100>` at byte 0")],
    );
}

#[test]
fn paths_headers_and_bodies_are_filled() {
    let post = HttpRequest::new("POST", "/k/{key}").unwrap().header("Host", "a.b").unwrap();
    let post = post.header("X-Key", "{key}").unwrap().body(Template::new("{value}"));
    for sizes in [Sizes::Fixed(2), Sizes::Uniform(2, 2)] {
        let http = http(vec![(post.clone(), 1)], sizes, false).unwrap();
        let (_, out, _) = started(&http);
        assert_eq!(bodies(&out), [(1, b"00".to_vec()), (3, b"10".to_vec()), (5, b"20".to_vec())]);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains("/k/000000000002") && text.contains("x-key\u{c}000000000002"), "{text}");
    }
}

#[test]
fn headers_of_http1_are_refused() {
    let request = get("/").header("Connection", "close").unwrap();
    let refused = http(vec![(request, 1)], Sizes::Fixed(1), false).unwrap_err();
    assert_eq!(refused, "the header connection is one of HTTP/1.1, which HTTP/2 does not have");
}
