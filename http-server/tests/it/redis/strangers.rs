//! Web pages of other sites, which a visitor's browser sends requests for, and the answers to strangers.

use std::io::{Read, Write};

use bytes::Bytes;
use http::Request;

use super::support::Front;
use crate::support::PATIENCE;

type Fields<'a> = &'a [(&'a str, &'a str)];

const OPEN: [&str; 4] = ["--redis", "embedded", "--redis-allow", "@all"];

/// A request that any page can have a browser send, without a preflight and without an origin, changes nothing.
#[test]
fn pages_of_other_sites_change_nothing() {
    let front = Front::start(&OPEN);
    let check = |method: &str, path: &str, media_type: &str, body: &str, status: u16| {
        let answer = front.connect().send(method, path, &[("Content-Type", media_type)], body.as_bytes());
        assert_eq!(answer.status, status, "{method} {path} {media_type}: {}", answer.text());
    };
    let forms = [
        "text/plain",
        "TEXT/plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ];
    for command in ["SET/k/v", "GETEX/k", "PUBLISH/c/m", "EVAL/return%201/0", "FLUSHALL", "CONFIG/SET/maxmemory/1"] {
        for method in ["GET", "HEAD"] {
            check(method, &format!("/v1/{command}"), "application/json", "", 405);
        }
        forms.iter().for_each(|form| check("POST", &format!("/v1/{command}"), form, "", 403));
    }
    for body in [r#"["SET","k","v"]"#, r#"[["GET","k"],["SET","k","v"]]"#, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"]
    {
        forms.iter().for_each(|form| check("POST", "/v1", form, body, 403));
    }
    check("POST", "/v1/transaction", "text/plain", r#"[["SET","k","v"]]"#, 403);
    // Not even a type.
    let mut http = front.connect();
    http.0.get_mut().write_all(b"POST /v1/SET/k/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert_eq!(http.answer(false).status, 403);
    assert_eq!(front.get("/v1/EXISTS/k").text(), r#"{"result":0}"#);
    // Reading is no harm: the page does not see the answer.
    check("POST", "/v1", "text/plain", r#"["GET","k"]"#, 200);
    check("GET", "/v1/GET/k", "text/plain", "", 200);
    // Requests for which a page needs a preflight, which is refused.
    check("POST", "/v1", "application/json", r#"["SET","k","v"]"#, 200);
    check("POST", "/v1/SET/k/v", "application/octet-stream", "", 200);
    check("PUT", "/v1/SET/k", "text/plain", "v", 200);
    check("DELETE", "/v1/DEL/k", "text/plain", "", 200);
    check("DELETE", "/v1", "application/json", r#"["DEL","k"]"#, 405);
    let preflight = front.connect().send(
        "OPTIONS",
        "/v1/SET/k/v",
        &[("Origin", "https://evil.example"), ("Access-Control-Request-Method", "PUT")],
        b"",
    );
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, None));
}

/// A form with a token is no form: browsers send no such header unasked.
#[test]
fn a_token_shows_that_no_page_sent_it() {
    let folder = super::support::Folder::new();
    let rules = "[[token]]\nname = \"a\"\nsecret = \"0123456789abcdef\"\ncommands = [\"@write\"]\n";
    let front = Front::start(&["--redis", "embedded", "--redis-access", &folder.file("rules.toml", rules)]);
    let token = ("Authorization", "Bearer 0123456789abcdef");
    let send =
        |method: &str, headers: &[(&str, &str)]| front.connect().send(method, "/v1/SET/k/v", headers, b"").status;
    assert_eq!(send("POST", &[token, ("Content-Type", "text/plain")]), 200);
    assert_eq!(send("GET", &[token]), 405);
    assert_eq!(send("POST", &[]), 401);
}

/// A name that an attacker's DNS makes ours: the page is of the same origin then, and could read everything.
#[test]
fn names_that_are_not_ours() {
    let check = |front: &Front, host: &str, is_ours: bool| {
        let ways: [(&str, &str, Fields<'_>); 6] = [
            ("GET", "/v1/GET/k", &[]),
            ("GET", "/get?key=k", &[]),
            ("GET", "/get?key=k", &[("x-request-id", "1")]),
            ("PUT", "/v1/SET/k/v", &[]),
            ("GET", "/v1/subscribe/c", &[]),
            ("POST", "/v1", &[("Content-Type", "application/json")]),
        ];
        for (method, path, headers) in ways {
            let origin = format!("http://{host}");
            let plain = headers.is_empty() && method == "GET";
            let mut headers = [headers, &[("Host", host)]].concat();
            if !plain {
                headers.push(("Origin", &origin));
            }
            let mut http = front.connect();
            http.ask(method, path, &headers, if method == "POST" { br#"["PING"]"# } else { b"" });
            let status = http.head().0;
            assert_eq!(status != 421, is_ours, "{host}: {status} to {method} {path}");
            assert!(!is_ours || matches!(status, 200 | 404), "{host}: {status} to {method} {path}");
        }
    };
    let front = Front::start(&OPEN);
    for host in [
        "localhost",
        "LocalHost:8000",
        "app.localhost",
        "localhost.",
        "127.0.0.1:1",
        "10.0.0.5",
        "[::1]:8000",
        "[fe80::1]",
    ] {
        check(&front, host, true);
    }
    for host in [
        "evil.com",
        "evil.com:8000",
        "127.0.0.1.evil.com",
        "1.evil.com:80",
        "localhost.evil.com",
        "notlocalhost",
        "front",
    ] {
        check(&front, host, false);
    }
    let named = Front::start(&[&OPEN[..], &["--host", "redis.example,other.example"]].concat());
    for host in ["redis.example", "Redis.Example:443", "other.example.", "localhost"] {
        check(&named, host, true);
    }
    check(&named, "evil.com", false);
    check(&named, "x.redis.example", false);
    check(&Front::start(&[&OPEN[..], &["--host", "*"]].concat()), "evil.com", true);
    // A client that sends no Host is no browser.
    let mut http = front.connect();
    http.0.get_mut().write_all(b"GET /v1/GET/k HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    http.0.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// The built-in page over HTTP/2, whose requests name the server elsewhere than in `Host`.
#[test]
fn the_page_writes_over_http2() {
    let front = Front::start(&OPEN);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let asked = async {
        let stream = tokio::net::TcpStream::connect(front.addr).await.unwrap();
        let (mut requests, connection) = h2::client::handshake::<_>(stream).await.unwrap();
        tokio::spawn(connection);
        for (authority, origin, expected) in [
            ("localhost:8000", "http://localhost:8000", 200),
            ("127.0.0.1", "http://127.0.0.1", 200),
            ("localhost:8000", "https://evil.example", 403),
            ("evil.example", "http://evil.example", 421),
        ] {
            let request = Request::post(format!("http://{authority}/v1"))
                .header("origin", origin)
                .header("content-type", "application/json")
                .header("sec-fetch-site", "same-origin");
            let (answer, mut body) = requests.send_request(request.body(()).unwrap(), false).unwrap();
            body.send_data(Bytes::from_static(br#"["SET","k","v"]"#), true).unwrap();
            assert_eq!(answer.await.unwrap().status(), expected, "{authority} {origin}");
        }
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await.unwrap() });
}
