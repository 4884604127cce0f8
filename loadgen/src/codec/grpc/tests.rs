//! Calls of methods against answers written by hand.

use super::*;
use crate::codec::h2::tests::{bodies, data, headers, settings};
use crate::record::Window;
use crate::schema;
use crate::workload::{Distribution, Keys, Sizes, Values};

const PROTO: &str = r#"
syntax = "proto3";
package t;
service S {
  rpc Unary(M) returns (M);
  rpc Up(stream M) returns (M);
  rpc Down(M) returns (stream M);
}
message M { string text = 1; int64 number = 2; map<string, int32> map = 3; M inner = 4; bytes raw = 5; }
"#;

fn subjects(size: Sizes) -> Subjects {
    Subjects { keys: Keys::new(10, Distribution::Sequential).unwrap(), values: Values::new(size, 0).unwrap() }
}

fn call(method: &str, messages: &[&str]) -> GrpcCall {
    let folder = std::env::temp_dir().join(format!("loadgen-grpc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{method}-{}.proto", messages.len()));
    std::fs::write(&file, PROTO).unwrap();
    let pool = schema::from_proto(&[file], &[]).unwrap();
    GrpcCall {
        method: schema::method(&pool, &format!("t.S/{method}")).unwrap(),
        authority: "localhost".to_owned(),
        tls: false,
        data: messages.iter().map(ToString::to_string).collect(),
        messages: None,
        expected: Vec::new(),
        metadata: Vec::new(),
        deadline: None,
        compression: Compression::None,
    }
}

/// Three calls on a connection, and the bytes that were sent.
fn started(grpc: &Grpc) -> (GrpcConnection, Vec<u8>, Tally) {
    let (mut connection, mut out, mut tally) = (grpc.connect(0), Vec::new(), Tally::new(1));
    tally.set_window(Window::Open { from: 0, until: 9 });
    grpc.control(&mut connection, &mut out);
    grpc.receive(&mut connection, &settings(), &mut tally).unwrap();
    let mut source = Source::new(0, 0, 1);
    for _ in 0..3 {
        grpc.begin(&mut connection, 1, &mut source, &mut out);
    }
    (connection, out, tally)
}

/// The bodies of three calls.
fn sent(call: &GrpcCall, size: Sizes) -> Vec<Vec<u8>> {
    let grpc = Grpc::new(&[(call.clone(), 1)], subjects(size), false).unwrap();
    let (_, out, _) = started(&grpc);
    bodies(&out).into_iter().map(|(_, body)| body).collect()
}

/// A message of a text and nothing else, framed.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, text.len() as u8 + 2, 0x0a, text.len() as u8];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[test]
fn messages_are_made_of_json() {
    #[track_caller]
    fn check(json: &str, size: Sizes, expected: [&[u8]; 3]) {
        assert_eq!(sent(&call("Unary", &[json]), size), expected, "{json}");
    }
    let fixed = Sizes::Fixed(16);
    check(r#"{"text":"a"}"#, fixed, [&text("a"); 3]);
    let keys = ["x000000000000", "x000000000001", "x000000000002"].map(text);
    check(r#"{"text":"x{key}"}"#, fixed, [&keys[0], &keys[1], &keys[2]]);
    let values = ["0000000000000000", "1000000000000000", "2000000000000000"].map(text);
    check(r#"{"text":"{value}"}"#, fixed, [&values[0], &values[1], &values[2]]);
    // Values that are too short to be found again, and numbers, are put into the JSON.
    let short = ["000", "100", "200"].map(text);
    check(r#"{"text":"{value}"}"#, Sizes::Fixed(3), [&short[0], &short[1], &short[2]]);
    let numbers: [&[u8]; 3] = [&[0, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 0x10, 1], &[0, 0, 0, 0, 2, 0x10, 2]];
    check(r#"{"number":"{key}"}"#, fixed, numbers);
    let inner = ["000000000000", "000000000001", "000000000002"]
        .map(|key| [&[0, 0, 0, 0, 16, 0x22, 14, 0x0a, 12], key.as_bytes()].concat());
    check(r#"{"inner":{"text":"{sequence}"}}"#, fixed, [&inner[0], &inner[1], &inner[2]]);
}

#[test]
fn calls_take_turns_and_streams_send_all() {
    let messages = [r#"{"text":"a"}"#, r#"{"text":"b"}"#];
    let turns = sent(&call("Unary", &messages), Sizes::Fixed(1));
    assert_eq!(turns, [text("a"), text("b"), text("a")]);
    let mut up = call("Up", &messages);
    let both = [text("a"), text("b")].concat();
    assert_eq!(sent(&up, Sizes::Fixed(1)), [both.clone(), both.clone(), both.clone()]);
    up.messages = Some(3);
    assert_eq!(sent(&up, Sizes::Fixed(1))[0], [both, text("a")].concat());
    up.compression = Compression::Gzip;
    let compressed = &sent(&up, Sizes::Fixed(1))[0];
    let mut found = Vec::new();
    let mut exchange = Exchange::default();
    let mut head = Head { status: 200, grpc: true, ..Head::default() };
    head.grpc_encoding = crate::codec::h2::Encoding::Gzip;
    exchange.head(&head);
    exchange.look(compressed, |_, message| found.push(message.to_vec()));
    assert_eq!(found, [b"\x0a\x01a", b"\x0a\x01b", b"\x0a\x01a"]);
}

const HEAD: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
const DONE: &[(&str, &str)] = &[("grpc-status", "0")];

/// The outcome of three calls: right answers and examples of failures.
#[track_caller]
fn check(call: &GrpcCall, verify: bool, answer: &[Vec<u8>], right: u64, failures: &[(Failure, &str)]) {
    let grpc = Grpc::new(&[(call.clone(), 1)], subjects(Sizes::Fixed(3)), verify).unwrap();
    let (mut connection, _, mut tally) = started(&grpc);
    let answer = answer.concat();
    assert_eq!(grpc.receive(&mut connection, &answer, &mut tally).unwrap().consumed, answer.len());
    let list = tally.failures().list();
    let examples: Vec<_> =
        list.iter().flat_map(|count| count.examples.iter().map(|text| (count.kind, text.as_str()))).collect();
    assert_eq!((tally.latencies()[0].count(), &examples[..]), (right, failures));
}

fn answer(stream: u32, body: &[u8]) -> Vec<u8> {
    [headers(stream, HEAD, false), data(stream, body, false), headers(stream, DONE, true)].concat()
}

#[test]
fn statuses_are_told_apart() {
    let call = call("Unary", &["{}"]);
    let failed = [HEAD, &[("grpc-status", "5"), ("grpc-message", "no%20such")]].concat();
    let rejected = Failure::Rejected;
    check(
        &call,
        false,
        &[answer(1, &text("a")), answer(3, &text("b")), headers(5, &failed, true)],
        2,
        &[(rejected, "NOT_FOUND: no such")],
    );
    let page = [headers(1, &[(":status", "503")], false), data(1, b"<html>", true)].concat();
    let other = [headers(3, &[(":status", "200")], false), data(3, b"<html>", true)].concat();
    let without = [headers(5, HEAD, false), data(5, &text("a"), true)].concat();
    check(
        &call,
        false,
        &[page, other, without],
        0,
        &[
            (Failure::Protocol, "an answer that is not application/grpc"),
            (Failure::Protocol, "an answer without grpc-status"),
            (rejected, "HTTP status 503"),
        ],
    );
    let nothing = [headers(1, HEAD, false), headers(1, DONE, true)].concat();
    check(
        &call,
        false,
        &[nothing, answer(3, &text("a")[..4]), answer(5, &text("a").repeat(2))],
        0,
        &[
            (Failure::Protocol, "0 messages, expected one"),
            (Failure::Protocol, "a message that is cut off"),
            (Failure::Protocol, "2 messages, expected one"),
        ],
    );
}

#[test]
fn answers_are_checked() {
    let wrong = Failure::Wrong;
    let alike = call("Unary", &["{}"]);
    check(
        &alike,
        true,
        &[answer(1, &text("a")), answer(3, &text("a")), answer(5, &text("b"))],
        2,
        &[(wrong, r#"the first answer was {"text":"a"}, this one is {"text":"b"}"#)],
    );
    let mut by_key = call("Unary", &[r#"{"text":"{key}"}"#]);
    by_key.expected = vec![r#"{"text":"Hello {value}"}"#.to_owned()];
    let answers = [answer(1, &text("Hello 000")), answer(5, &text("Hello 200")), answer(3, &text("Hello 200"))];
    check(&by_key, true, &answers, 2, &[(wrong, r#"expected {"text":"Hello 100"}, read {"text":"Hello 200"}"#)]);
    // The same meaning in other bytes: a field that is given twice, the last one counts.
    let mut down = call("Down", &["{}"]);
    down.expected = vec![r#"{"text":"a"}"#.to_owned(), r#"{"text":"b"}"#.to_owned()];
    let twice = [&[0, 0, 0, 0, 6][..], &text("x")[5..], &text("a")[5..]].concat();
    let stream = [twice, text("b")].concat();
    check(
        &down,
        true,
        &[answer(1, &stream), answer(3, &text("a")), answer(5, &text("b").repeat(2))],
        1,
        &[(wrong, "1 messages, expected 2"), (wrong, r#"expected {"text":"a"}, read {"text":"b"}"#)],
    );
    let mut random = call("Unary", &["{}"]);
    random.expected = vec![r#"{"text":"{random}"}"#.to_owned()];
    let refused = Grpc::new(&[(random, 1)], subjects(Sizes::Fixed(3)), true).unwrap_err();
    assert_eq!(refused, "what is expected can hold {key} and {value}, but nothing random");
}
