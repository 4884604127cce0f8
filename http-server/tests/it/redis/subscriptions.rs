//! Messages to those who listen, as events and over WebSockets.

use std::io::{BufRead, Read, Write};

use super::support::{Folder, Front, Genuine, Http};

/// The data of the next event.
fn next_event(http: &mut Http) -> String {
    loop {
        let mut line = String::new();
        assert!(http.0.read_line(&mut line).unwrap() > 0, "the events ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return data.trim_end().to_owned();
        }
    }
}

fn listen(front: &Front, path: &str) -> Http {
    let mut http = front.connect();
    http.ask("GET", path, &[], b"");
    let (status, head) = http.head();
    assert_eq!(status, 200, "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: text/event-stream\r\n"), "{head}");
    http
}

#[test]
fn events() {
    let genuine = Genuine::start(&[]);
    let places = genuine.as_ref().map(Genuine::place).into_iter().chain(["embedded".to_owned()]);
    for place in places {
        let front = Front::start(&["--redis", &place, "--redis-allow", "@all"]);
        let mut both = listen(&front, "/v1/subscribe/a/b%2Fc");
        let mut confirmed = [next_event(&mut both), next_event(&mut both)];
        confirmed.sort();
        assert_eq!(confirmed[0], r#"{"event":"subscribed","channel":"a"}"#);
        assert_eq!(confirmed[1], r#"{"event":"subscribed","channel":"b/c"}"#);
        let mut pattern = listen(&front, "/v1/PSUBSCRIBE/b*");
        assert_eq!(next_event(&mut pattern), r#"{"event":"subscribed","pattern":"b*"}"#);
        assert_eq!(front.post("/v1/PUBLISH/a", "x\n\ny").text(), r#"{"result":1}"#);
        assert_eq!(next_event(&mut both), r#"{"event":"message","channel":"a","message":"x\n\ny"}"#);
        front.post("/v1", r#"["PUBLISH","b/c",{"base64":"/w=="}]"#);
        let message = r#""channel":"b/c","message":{"base64":"/w=="}}"#;
        assert_eq!(next_event(&mut both), format!(r#"{{"event":"message",{message}"#));
        assert_eq!(next_event(&mut pattern), format!(r#"{{"event":"message","pattern":"b*",{message}"#));
        let mut socket = front.connect();
        socket.ask("GET", "/v1/subscribe/s", &UPGRADE, b"");
        assert_eq!(socket.head().0, 101);
        assert_eq!(next_frame(&mut socket), r#"{"event":"subscribed","channel":"s"}"#);
        drop((both, pattern, socket));
        // A listener that has gone is given up although nothing is to be written.
        while front.put("/v1/PUBSUB/NUMPAT").text() != r#"{"result":0}"#
            || front.put("/v1/PUBSUB/CHANNELS").text() != r#"{"result":[]}"#
        {
            std::thread::yield_now();
        }
    }
}

/// Many listeners on few connections, and each hears every message once, in order.
#[test]
fn many_listeners() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let mut listeners: Vec<_> = (0..50).map(|_| listen(&front, "/v1/subscribe/news")).collect();
    listeners.iter_mut().for_each(|http| assert!(next_event(http).contains("subscribed")));
    for number in 0..100 {
        front.put(&format!("/v1/PUBLISH/news/{number}"));
    }
    for http in &mut listeners {
        for number in 0..100 {
            assert_eq!(next_event(http), format!(r#"{{"event":"message","channel":"news","message":"{number}"}}"#));
        }
    }
}

#[test]
fn told_of_a_gap() {
    let Some(mut redis) = Genuine::start(&[]) else { return };
    let front = Front::start(&["--redis", &redis.place(), "--redis-allow", "@all"]);
    let mut http = listen(&front, "/v1/subscribe/a");
    assert!(next_event(&mut http).contains("subscribed"));
    redis.kill();
    assert_eq!(next_event(&mut http), r#"{"event":"lost","error":"the connection to Redis ended"}"#);
    redis.start_again();
    while !next_event(&mut http).contains("subscribed") {}
    front.put("/v1/PUBLISH/a/again");
    assert_eq!(next_event(&mut http), r#"{"event":"message","channel":"a","message":"again"}"#);
}

const RULES: &str = r#"
[[token]]
name = "news"
secret = "fedcba9876543210"
commands = ["@read"]
keys = []
channels = ["news:"]
"#;

#[test]
fn rules() {
    let folder = Folder::new();
    let front = Front::start(&["--redis", "embedded", "--redis-access", &folder.file("rules.toml", RULES)]);
    let check = |path: &str, headers: &[(&str, &str)], expected: u16| {
        let mut http = front.connect();
        http.ask("GET", path, headers, b"");
        assert_eq!(http.head().0, expected, "{path} {headers:?}");
    };
    let token = ("Authorization", "Bearer fedcba9876543210");
    check("/v1/subscribe/news:1", &[], 401);
    check("/v1/subscribe/news:1", &[token], 200);
    check("/v1/subscribe/news:1/other", &[token], 403);
    check("/v1/subscribe/other", &[token], 403);
    check("/v1/psubscribe/news:*", &[token], 200);
    check("/v1/psubscribe/*", &[token], 403);
    check("/v1/psubscribe/new?:*", &[token], 403);
    check("/v1/subscribe/__keyspace@0__:k", &[token], 403);
    let path = (0..101).fold("/v1/subscribe".to_owned(), |path, number| format!("{path}/news:{number}"));
    check(&path, &[token], 400);
}

/// RFC 6455's own example of a key and its answer.
const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
const UPGRADE: [(&str, &str); 4] =
    [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), KEY];

/// The text of the next frame, which a server does not mask.
fn next_frame(http: &mut Http) -> String {
    let mut head = [0; 2];
    http.0.read_exact(&mut head).unwrap();
    assert_eq!((head[0], head[1] < 126), (0x81, true), "a short text in one piece");
    let mut text = vec![0; head[1].into()];
    http.0.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn web_sockets() {
    let folder = Folder::new();
    let rules = RULES.replace("[\"@read\"]", "[\"@read\", \"publish\"]");
    let front = Front::start(&["--redis", "embedded", "--redis-access", &folder.file("rules.toml", &rules)]);
    let open = |headers: &[(&str, &str)]| {
        let mut http = front.connect();
        http.ask("GET", "/v1/subscribe/news:1", &[&UPGRADE[..], headers].concat(), b"");
        let (status, head) = http.head();
        (http, status, head)
    };
    let (mut http, status, head) = open(&[("Sec-WebSocket-Protocol", "redis, bearer.fedcba9876543210")]);
    assert_eq!(status, 101, "{head}");
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert!(head.to_ascii_lowercase().contains("sec-websocket-protocol: redis\r\n"), "{head}");
    assert_eq!(next_frame(&mut http), r#"{"event":"subscribed","channel":"news:1"}"#);
    let bearer = ("Authorization", "Bearer fedcba9876543210");
    let sent = front.connect().send("POST", "/v1/PUBLISH/news:1", &[bearer], b"hello");
    assert_eq!(sent.text(), r#"{"result":1}"#);
    assert_eq!(next_frame(&mut http), r#"{"event":"message","channel":"news:1","message":"hello"}"#);
    // A close, masked with zeros, is answered by one.
    http.0.get_mut().write_all(&[0x88, 0x80, 0, 0, 0, 0]).unwrap();
    let mut rest = Vec::new();
    http.0.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.first(), Some(&0x88));
    assert_eq!(open(&[("Sec-WebSocket-Protocol", "redis, bearer.wrong")]).1, 401);
    assert_eq!(open(&[]).1, 401);
    assert_eq!(open(&[bearer, ("Origin", "https://evil.example")]).1, 403);
}

/// A listener that does not read is told so before it is let go.
#[test]
fn overflow_over_a_web_socket() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let mut socket = front.connect();
    socket.ask("GET", "/v1/subscribe/a", &UPGRADE, b"");
    assert_eq!(socket.head().0, 101);
    assert!(next_frame(&mut socket).contains("subscribed"));
    let publish = format!("[{}]", vec![format!(r#"["PUBLISH","a","{}"]"#, "x".repeat(10_000)); 50].join(","));
    let mut http = front.connect();
    // Until the listener is cut off: the sockets' buffers and 8 MiB more.
    let told = |answer: &str| answer.contains(r#""result":1"#);
    let rounds = (0..2000).take_while(|_| told(&http.send("POST", "/v1", &[], publish.as_bytes()).text())).count();
    assert!((1..2000).contains(&rounds), "{rounds}");
    let mut rest = Vec::new();
    socket.0.read_to_end(&mut rest).unwrap();
    let end = [br#"{"event":"overflow"}"#.as_slice(), &[0x88]].concat();
    let at = rest.windows(end.len()).position(|bytes| bytes == end).expect("it says why");
    let close = &rest[at + end.len()..];
    assert_eq!(close[1..3], 1013_u16.to_be_bytes(), "to be tried again later");
}
