//! `/get`, whose plain requests do not pass through the router.

use std::io::{Read, Write};
use std::net::Shutdown;

use super::support::{Answer, Front};
use crate::support::PATIENCE;

/// With values for [`QUERIES`]; `large` is sent without a copy, and `packed` is worth compressing.
fn front() -> Front {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let mut http = front.connect();
    let mut set = |key: &str, value: &[u8]| {
        let answer = http.send("PUT", &format!("/v1/SET/{key}"), &[], value);
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    set("text", "zürich".as_bytes());
    set("bytes", b"\xff\0\r\n");
    set("packed", "abcdefgh".repeat(1000).as_bytes());
    set("large", "0123456789".repeat(30_000).as_bytes());
    set("a%20b", b"blank");
    assert_eq!(http.send("POST", "/v1/RPUSH/list/x", &[], b"").status, 200);
    front
}

const QUERIES: &[&str] = &[
    "?key=text",
    "?key=bytes",
    "?key=packed",
    "?key=large",
    "?key=a+b",
    "?key=a%20b",
    "?x=y&key=text",
    "?key=list",
    "?key=missing",
    "?key=",
    "?",
    "",
    "?other=text",
];

/// The parts of an answer that must be the same by every way of a request.
fn seen(answer: &Answer) -> (u16, Vec<String>, String) {
    let mut fields: Vec<_> = answer.head.lines().skip(1).map(str::to_lowercase).collect();
    fields.retain(|field| !field.is_empty() && !field.starts_with("x-request-id:") && !field.starts_with("date:"));
    fields.sort();
    (answer.status, fields, answer.text())
}

#[test]
fn both_ways_answer_alike() {
    let front = front();
    let mut http = front.connect();
    for query in QUERIES {
        let path = format!("/get{query}");
        let routed = http.send("GET", &path, &[("X-Request-Id", "1")], b"");
        assert_eq!(routed.header("x-request-id"), Some("1"), "{path}");
        let plain = http.send("GET", &path, &[], b"");
        assert_eq!(seen(&plain), seen(&routed), "{path}");
        let asked = plain.status == 200 || plain.status == 404 || query.ends_with("list");
        assert_eq!(plain.header("x-request-id").is_none(), asked, "{path} goes the short way");
    }
    let get = "GET /get?key=packed HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
    http.0
        .get_mut()
        .write_all(get.repeat(3).replace("packed", "large").replacen("large", "packed", 1).as_bytes())
        .unwrap();
    let answers = [http.answer(false), http.answer(false), http.answer(false)];
    for (answer, len) in answers.iter().zip([8000, 300_000, 300_000]) {
        assert_eq!((answer.header("content-encoding"), answer.header("x-request-id")), (Some("gzip"), None));
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain.len(), len);
    }
    let small = http.send("GET", "/get?key=text", &[("Accept-Encoding", "gzip")], b"");
    assert_eq!((small.header("content-encoding"), small.header("x-request-id")), (None, None));
    assert_eq!(http.send("HEAD", "/get?key=text", &[], b"").header("content-length"), Some("7"));
}

/// Over HTTP/2 both ways are others, and answers wait for windows that are smaller than they are.
#[test]
fn http2_answers_alike() {
    let front = front();
    let mut http = front.connect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let paths: Vec<String> = QUERIES.repeat(8).iter().map(|query| format!("/get{query}")).collect();
    let expected: Vec<_> = paths.iter().map(|path| seen(&http.send("GET", path, &[], b""))).collect();
    for (window, id) in [(1000, ""), (1 << 20, ""), (1 << 20, "a")] {
        let asked = async { tokio::time::timeout(PATIENCE, over_http2(&front, &paths, window, id)).await };
        let answered = runtime.block_on(asked).expect("answers come in time");
        for (answer, expected) in answered.iter().zip(&expected) {
            assert_eq!(&seen(answer), expected, "window {window}, id {id:?}");
            let is_short = matches!(expected.0, 200 | 404) || answer.text().contains("WRONGTYPE");
            let had = if is_short { None } else { answer.header("x-request-id") };
            let expected_id = if id.is_empty() { had } else { Some(id) };
            assert_eq!(answer.header("x-request-id"), expected_id, "window {window}: {}", answer.head);
        }
    }
}

/// Requests these paths at once on one connection, and reads the answers as they come. All answers share the
/// connection's window. A client that reads one answer after another waits for ever when later answers fill the window
/// (RFC 9113 section 5.2.2).
async fn over_http2(front: &Front, paths: &[String], window: u32, id: &str) -> Vec<Answer> {
    let socket = tokio::net::TcpStream::connect(front.addr).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (mut requests, connection) =
        builder.initial_window_size(window).handshake::<_, bytes::Bytes>(socket).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut waiting = Vec::new();
    for path in paths {
        let mut request = http::Request::get(format!("http://localhost{path}"));
        if !id.is_empty() {
            request = request.header("x-request-id", id);
        }
        let answer = requests.send_request(request.body(()).unwrap(), true).unwrap().0;
        waiting.push(tokio::spawn(whole(answer)));
    }
    let mut answers = Vec::new();
    for answer in waiting {
        answers.push(answer.await.unwrap());
    }
    drop(requests);
    connection.await.unwrap().unwrap();
    answers
}

/// An answer to its end.
async fn whole(answer: h2::client::ResponseFuture) -> Answer {
    let (parts, mut stream) = answer.await.unwrap().into_parts();
    let fields = parts.headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
    let head = format!("HTTP/2 {}\r\n{}", parts.status, fields.collect::<String>());
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    Answer { status: parts.status.as_u16(), head, body }
}

#[test]
fn rules_hold_both_ways() {
    let front = Front::start(&["--redis", "embedded", "--redis-keys", "t,l"]);
    let mut http = front.connect();
    for (key, status) in [("text", 404), ("bytes", 403), ("%74ext", 404), ("%62ytes", 403), ("", 403)] {
        for fields in [&[][..], &[("X-Request-Id", "1")], &[("Authorization", "Bearer nobody")]] {
            let answer = http.send("GET", &format!("/get?key={key}"), fields, b"");
            let expected = if fields.first().is_some_and(|(name, _)| *name == "Authorization") { 401 } else { status };
            assert_eq!(answer.status, expected, "{key} {fields:?}");
        }
    }
}

/// In one write and byte by byte, in a mixture with requests that are answered at once and by the router.
#[test]
fn pipelined_answers_come_in_order() {
    let front = front();
    let mut http = front.connect();
    let of = |number: usize| match number % 7 {
        0 => ("/".to_owned(), "Hello from Rust".to_owned()),
        1 => (format!("/n{number}"), format!("Hello, visitor! You've requested: /n{number}")),
        2 => (format!("/v1/ECHO/{number}"), format!(r#"{{"result":"{number}"}}"#)),
        3 => ("/get?key=missing".to_owned(), "there is no such key\n".to_owned()),
        4 => ("/get".to_owned(), "a key is expected: /get?key=NAME\n".to_owned()),
        _ => ("/get?key=text".to_owned(), "zürich".to_owned()),
    };
    for count in [3, 1000] {
        let all: String =
            (0..count).map(|number| format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", of(number).0)).collect();
        let mut writer = http.0.get_ref().try_clone().unwrap();
        let step = if count > 10 { all.len() } else { 1 };
        let writing =
            std::thread::spawn(move || all.as_bytes().chunks(step).for_each(|part| writer.write_all(part).unwrap()));
        for number in 0..count {
            assert_eq!(http.answer(false).text(), of(number).1, "{number}");
        }
        writing.join().unwrap();
    }
    // More than may wait at a time.
    http.0
        .get_mut()
        .write_all("GET /get?key=text HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000).as_bytes())
        .unwrap();
    (0..1000).for_each(|_| assert_eq!(http.answer(false).text(), "zürich"));
}

#[test]
fn ends_of_connections() {
    let front = front();
    let get = "GET /get?key=text HTTP/1.1\r\nHost: localhost\r\n";
    // Said by the client: the requests behind are not answered.
    let mut http = front.connect();
    http.0.get_mut().write_all(format!("{get}\r\n{get}Connection: close\r\n\r\n{get}\r\n").as_bytes()).unwrap();
    assert_eq!(http.answer(false).header("connection"), None);
    assert_eq!(http.answer(false).header("connection"), Some("close"));
    assert_eq!(test_peers::read(&mut http.0, &mut [0]).unwrap(), 0);
    // Half of the connection ends: the requests before are answered.
    let mut http = front.connect();
    http.0.get_mut().write_all(format!("{get}\r\n").repeat(100).as_bytes()).unwrap();
    http.0.get_mut().shutdown(Shutdown::Write).unwrap();
    (0..100).for_each(|_| assert_eq!(http.answer(false).text(), "zürich"));
    assert_eq!(test_peers::read(&mut http.0, &mut [0]).unwrap(), 0);
    // Clients that leave: others still get their own.
    for _ in 0..50 {
        let mut gone = front.connect();
        gone.0.get_mut().write_all(format!("{get}\r\n").repeat(20).as_bytes()).unwrap();
        drop(gone);
        assert_eq!(front.get("/get?key=a+b").text(), "blank");
    }
}
