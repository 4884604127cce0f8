//! Possible answers of servers to messages.

use super::*;
use crate::record::Window;
use crate::workload::{Distribution, Keys, Sizes, Values};

fn websocket(message: &str, verify: bool) -> WebSocket {
    let subjects = Subjects {
        keys: Keys::new(1, Distribution::Uniform).unwrap(),
        values: Values::new(Sizes::Fixed(5), 0).unwrap(),
    };
    let headers = [("X-A".to_owned(), "b".to_owned())];
    WebSocket::new("h:1", "/p", &headers, Template::new(message), false, subjects, verify).unwrap()
}

/// A connection whose handshake is done, with three messages in flight.
fn greeted(websocket: &WebSocket) -> WebSocketConnection {
    let (mut connection, mut out) = (websocket.connect(0), Vec::new());
    websocket.control(&mut connection, &mut out);
    let key = connection.key.clone();
    let expected = format!(
        "GET /p HTTP/1.1\r\nHost: h:1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-A: b\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    );
    assert_eq!((String::from_utf8(out).unwrap(), websocket.room(&connection)), (expected, 0));
    let answer = format!("HTTP/1.1 101 Switching\r\nsec-websocket-accept: {}\r\n\r\n", accepted(&key));
    let received = websocket.receive(&mut connection, answer.as_bytes(), &mut Tally::new(1)).unwrap();
    assert_eq!((received.consumed, websocket.room(&connection)), (answer.len(), usize::MAX));
    for _ in 0..3 {
        websocket.begin(&mut connection, 1, &mut Source::new(0, 0, 1), &mut Vec::new());
    }
    connection
}

/// The outcome of a server's bytes, cut once: right answers and examples of failures.
fn outcome(websocket: &WebSocket, answer: &[u8], cut: usize) -> Result<(u64, Vec<String>), Broken> {
    let (mut connection, mut tally) = (greeted(websocket), Tally::new(1));
    tally.set_window(Window::Open { from: 0, until: 9 });
    let mut unread = Vec::new();
    for piece in [&answer[..cut], &answer[cut..]] {
        unread.extend_from_slice(piece);
        let received = websocket.receive(&mut connection, &unread, &mut tally)?;
        unread.drain(..received.consumed);
    }
    let failures = tally.failures().list();
    Ok((tally.latencies()[0].count(), failures.into_iter().flat_map(|failure| failure.examples).collect()))
}

/// The server's frames: first byte, and payload.
fn frames(frames: &[(u8, &str)]) -> Vec<u8> {
    frames.iter().flat_map(|(first, payload)| [&[*first, payload.len() as u8], payload.as_bytes()].concat()).collect()
}

#[test]
fn messages_are_read_whole_and_in_parts() {
    #[track_caller]
    fn check(parts: &[(u8, &str)], right: u64, failures: &[&str]) {
        for verify in [true, false] {
            let (websocket, answer) = (websocket("{value}", verify), frames(parts));
            for cut in 0..=answer.len() {
                let found = outcome(&websocket, &answer, cut).unwrap();
                let failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
                assert_eq!(found, (right, if verify { failures } else { Vec::new() }), "{verify} {cut}");
            }
        }
    }
    check(&[(0x81, "00000"), (0x82, "00000"), (0x81, "00000")], 3, &[]);
    check(&[(0x01, "00"), (0x00, ""), (0x80, "000"), (0x81, "00000")], 2, &[]);
    check(&[(0x01, ""), (0x89, "ping"), (0x80, "00000"), (0x8a, "")], 1, &[]);
}

#[test]
fn wrong_messages_are_told() {
    #[track_caller]
    fn check(verify: bool, payload: &str, expected: &str) {
        let found = outcome(&websocket("{value}", verify), &frames(&[(0x81, payload)]), 0).unwrap();
        assert_eq!(found, (0, vec![expected.to_owned()]));
    }
    check(true, "00001", "expected `00000`, read `00001`");
    check(true, "", "expected `00000`, read ``");
    check(false, "0000", "a message of 4 bytes, expected 5");
    // Of what is random only the number of messages is known.
    assert_eq!(outcome(&websocket("{random}", false), &frames(&[(0x81, "x")]), 0).unwrap(), (1, Vec::new()));
}

#[test]
fn pings_and_farewells_are_answered() {
    let websocket = websocket("{value}", true);
    let (mut connection, mut tally, mut out) = (greeted(&websocket), Tally::new(1), Vec::new());
    let answer = frames(&[(0x89, "abc"), (0x88, "\u{3}\u{0}bye")]);
    websocket.receive(&mut connection, &answer, &mut tally).unwrap();
    websocket.control(&mut connection, &mut out);
    assert_eq!(out, [&[0x8a, 0x83, 0, 0, 0, 0][..], b"abc", &[0x88, 0x82, 0, 0, 0, 0, 3, 0]].concat());
    assert_eq!((websocket.room(&connection), websocket.in_flight(&connection)), (0, 3));
}

#[test]
fn websocket_protocol_errors_end_the_connection() {
    #[track_caller]
    fn check(answer: &[u8], example: &str) {
        let websocket = websocket("{value}", true);
        assert_eq!(outcome(&websocket, answer, 0).unwrap_err().example, example);
    }
    check(&frames(&[(0x80, "x")]), "expected a message's beginning, read `\u{fffd}`");
    check(&frames(&[(0x01, "x"), (0x81, "y")]), "expected the rest of a message, read `\u{fffd}`");
    check(&frames(&[(0x09, "x")]), "expected a control frame of 125 bytes at most, read `\u{fffd}`");
    let four = frames(&[(0x81, "00000"); 4]);
    check(&four, "expected no message that nobody asked for, read `00000`");
    let long = [&[0x81, 127][..], &(1_u64 << 40).to_be_bytes()].concat();
    check(&long, "a message longer than 67108864 bytes");
    let websocket = websocket("{value}", true);
    for (answer, example) in [
        ("HTTP/1.1 404 Not Found\r\n\r\n", "handshake: HTTP/1.1 404 Not Found"),
        ("HTTP/1.1 101 x\r\n\r\n", "expected a Sec-WebSocket-Accept that fits the key, read ``"),
        ("SSH-2.0\r\n", "expected an answer to the handshake, read `SSH-2.0\u{fffd}\u{fffd}`"),
    ] {
        let mut connection = websocket.connect(0);
        websocket.control(&mut connection, &mut Vec::new());
        let broken = websocket.receive(&mut connection, answer.as_bytes(), &mut Tally::new(1)).unwrap_err();
        assert_eq!(broken.example, example);
    }
}

/// The example of section 1.3.
#[test]
fn a_key_is_accepted_as_the_specification_says() {
    assert_eq!(accepted("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn invalid_headers_paths_and_templates_are_refused() {
    let subjects = websocket("", false).subjects;
    #[track_caller]
    fn check(subjects: &Subjects, path: &str, header: (&str, &str), message: &str, expected: &str) {
        let headers = [(header.0.to_owned(), header.1.to_owned())];
        let made = WebSocket::new("h", path, &headers, Template::new(message), false, subjects.clone(), true);
        assert_eq!(made.unwrap_err(), expected);
    }
    check(&subjects, "/", ("a b", "c"), "", "the header is `a b: c`, expected a name and a line of text");
    check(&subjects, "/", ("a", "b\r\nc"), "", "the header is `a: b\r\nc`, expected a name and a line of text");
    check(&subjects, "/a b", ("a", "b"), "", "the path is `/a b`, expected one without blanks");
    let random = "with --verify a message can hold {key} and {value}, but nothing random";
    check(&subjects, "/", ("a", "b"), "{sequence}", random);
}
